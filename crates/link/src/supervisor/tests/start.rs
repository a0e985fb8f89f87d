//! Wanting, beginning, ending.

use super::*;
use crate::{Stage, supervisor::Foreground};

#[test]
fn nothing_is_tried_before_it_is_wanted() {
    let mut bench = Bench::new();
    for input in [
        ONLINE,
        Input::PathChanged,
        Input::RetryNow { wake: true },
        Input::Foreground(Foreground::Long),
        Input::CredentialsChanged { bound: true },
        Input::Environment(wakeful_wire::Phase::Ready),
        Input::Reachable,
    ] {
        bench.tell(input);
    }
    bench.pass_ms(3_600_000);
    assert_eq!(bench.take(), []);
    assert_eq!(bench.phase(), ConnectionPhase::Available);
    assert_eq!(bench.supervisor.poll_timeout(), None);
}

#[test]
fn being_wanted_again_does_not_cancel_the_attempt_that_it_started() {
    let mut bench = Bench::new();
    bench.tell(Input::Connect { wake: false });
    let first = bench.last();
    assert_eq!(bench.take(), begins(&bench, false));
    bench.tell(Input::Connect { wake: false });
    assert_eq!(bench.take(), []);
    assert_eq!(bench.last(), first);
    assert_eq!(bench.phase(), ConnectionPhase::Connecting);
}

#[test]
fn wanted_offline_it_begins_at_once_when_the_network_comes() {
    let mut bench = Bench::new();
    bench.tell(OFFLINE);
    bench.tell(Input::Connect { wake: false });
    assert_eq!(bench.phase(), ConnectionPhase::Offline);
    bench.pass_ms(3_600_000);
    assert_eq!(bench.take(), []);
    assert_eq!(bench.state().attempt, 0, "being offline consumes no attempts");
    bench.tell(ONLINE);
    assert_eq!(bench.take(), begins(&bench, false));
    assert_eq!(bench.state().attempt, 1);
    bench.become_ready(RouteClass::Public);
    assert_eq!(bench.state().generation, 1);
    assert_eq!(bench.phase(), ConnectionPhase::Connected);
}

#[test]
fn an_attempt_passes_its_stages_only_while_connecting() {
    let mut bench = Bench::new();
    bench.stingy = true;
    bench.tell(Input::Connect { wake: false });
    let attempt = bench.last();
    assert_eq!(bench.state().stage, Some(Stage::Waiting));
    bench.tell(Input::Stage { attempt, stage: Stage::Opening });
    bench.tell(Input::Ready { attempt });
    assert_eq!(bench.state().stage, Some(Stage::Waiting), "it has not begun");
    bench.pass_ms(3_600_000);
    assert_eq!(bench.phase(), ConnectionPhase::Connecting, "waiting for a place costs no budget");
    bench.tell(Input::Granted { attempt });
    bench.tell(Input::Granted { attempt });
    for stage in [Stage::Preparing, Stage::Opening, Stage::Synchronizing] {
        bench.tell(Input::Stage { attempt, stage });
        assert_eq!(bench.state().stage, Some(stage));
        bench.tell(Input::Stage { attempt, stage: Stage::Waiting });
        assert_eq!(bench.state().stage, Some(stage), "it waits no more");
    }
    let begun = bench.now.after(Duration::from_secs(15));
    assert_eq!(
        bench.take(),
        [
            Action::Want { attempt, urgent: false },
            Action::Begin { attempt, wake: false, deadline: begun },
        ],
    );
    bench.become_ready(RouteClass::Lan);
    assert_eq!(bench.state().stage, None);
}

#[test]
fn setup_fails_at_fifteen_seconds_and_not_before() {
    for stage in [Stage::Preparing, Stage::Opening, Stage::Synchronizing] {
        let mut bench = Bench::connecting();
        let attempt = bench.last();
        bench.tell(Input::Stage { attempt, stage });
        bench.take();
        bench.pass_ms(14_999);
        assert_eq!(bench.take(), []);
        assert_eq!(bench.phase(), ConnectionPhase::Connecting);
        bench.pass_ms(1);
        assert_eq!(bench.take(), [Action::Abandon { attempt }], "what is half open is ended");
        assert_eq!(bench.phase(), ConnectionPhase::Backoff);
        assert_eq!(bench.supervisor.session(), None);
        let failure = bench.state().last_failure.clone().unwrap();
        assert_eq!(failure.reason, FailureReason::Timeout);
    }
}

#[test]
fn a_timeout_far_away_hints_at_the_network_until_the_connection_recovers() {
    let cases = [
        (Some(RouteClass::Public), true),
        (Some(RouteClass::Tailnet), true),
        (None, true),
        (Some(RouteClass::Lan), false),
        (Some(RouteClass::Loopback), false),
    ];
    for (class, hinted) in cases {
        let mut bench = Bench::connecting();
        if let Some(class) = class {
            bench.tell(Input::Route { attempt: bench.last(), class });
        }
        bench.pass_ms(15_000);
        let failure = bench.state().last_failure.clone().unwrap();
        assert_eq!(failure.detail.contains("may be blocking"), hinted, "{class:?}: {failure}");
        bench.pass_to_retry();
        assert_eq!(bench.state().last_failure, Some(failure), "through the whole next attempt");
        bench.become_ready(RouteClass::Public);
        assert_eq!(bench.state().last_failure, None);
    }
}

#[test]
fn a_disconnect_releases_the_one_session_and_stops_everything() {
    let mut bench = Bench::connected(RouteClass::Lan);
    let attempt = bench.last();
    bench.tell(Input::Disconnect);
    assert_eq!(
        bench.take(),
        [
            Action::Unpublish { attempt },
            Action::Release { attempt, why: ReleaseReason::Disconnected },
        ],
    );
    assert_eq!(bench.phase(), ConnectionPhase::Available);
    assert!(!bench.state().desired);
    assert_eq!(bench.supervisor.session(), None);
    bench.tell(Input::Disconnect);
    bench.tell(Input::Closed { attempt, failure: Failure::new(FailureReason::Transport, "gone") });
    bench.pass_ms(3_600_000);
    assert_eq!(bench.take(), []);
    assert_eq!(bench.supervisor.poll_timeout(), None, "zero timers");
}

#[test]
fn a_disconnect_is_not_lost_among_signs_that_come_with_it() {
    for prepare in [
        Bench::connecting as fn() -> Bench,
        || Bench::failed(2),
        || Bench::connected(RouteClass::Public),
    ] {
        let mut bench = prepare();
        bench.tell(Input::PathChanged);
        bench.tell(Input::Foreground(Foreground::Short));
        bench.tell(Input::Disconnect);
        for input in [ONLINE, Input::Foreground(Foreground::Long), Input::RetryNow { wake: true }] {
            bench.tell(input);
        }
        bench.take();
        bench.pass_ms(3_600_000);
        assert_eq!(bench.take(), []);
        assert_eq!(bench.phase(), ConnectionPhase::Available);
        assert_eq!(bench.state().last_failure, None);
        assert_eq!(bench.state().attempt, 0);
    }
}

#[test]
fn a_disconnect_during_an_attempt_ends_it_and_a_late_session_is_released() {
    let mut bench = Bench::connecting();
    let attempt = bench.last();
    bench.take();
    bench.tell(Input::Disconnect);
    assert_eq!(bench.take(), [Action::Abandon { attempt }]);
    bench.tell(Input::Ready { attempt });
    assert_eq!(bench.take(), [Action::Release { attempt, why: ReleaseReason::Late }]);
    assert_eq!(bench.phase(), ConnectionPhase::Available);
    bench.tell(Input::Ready { attempt: AttemptId(77) });
    bench.tell(Input::Ready { attempt: AttemptId(0) });
    assert_eq!(bench.take(), [], "what was never an attempt is nothing");
}

#[test]
fn each_session_raises_the_generation_by_one() {
    let mut bench = Bench::connecting();
    for generation in 1..=4 {
        bench.take();
        bench.become_ready(RouteClass::Public);
        let attempt = bench.last();
        assert_eq!(bench.take(), [Action::Publish { attempt, generation }]);
        assert_eq!(bench.state().generation, generation);
        assert_eq!(bench.supervisor.session(), Some(attempt));
        bench.tell(Input::Ready { attempt });
        assert_eq!(bench.take(), [], "said again");
        bench.pass_ms(60_000);
        bench.close(FailureReason::Transport);
        bench.pass_to_retry();
    }
}

#[test]
fn what_an_old_attempt_says_changes_nothing() {
    let mut bench = Bench::connecting();
    let old = bench.last();
    bench.tell(Input::RetryNow { wake: false });
    bench.become_ready(RouteClass::Lan);
    bench.take();
    let before = bench.state().clone();
    let failure = Failure::new(FailureReason::Permission, "no");
    for input in [
        Input::Granted { attempt: old },
        Input::Stage { attempt: old, stage: Stage::Opening },
        Input::Route { attempt: old, class: RouteClass::Public },
        Input::Failed { attempt: old, failure: failure.clone() },
        Input::Closed { attempt: old, failure },
        Input::Frame { attempt: old },
        Input::Alive { attempt: old, check: 0 },
        Input::Silent { attempt: old },
        Input::HostAnswered { check: 0 },
        Input::HostFailed { check: 0 },
    ] {
        bench.tell(input);
        assert_eq!(bench.take(), []);
        assert_eq!(*bench.state(), before);
    }
}

#[test]
fn credentials_that_a_session_does_not_depend_on_do_not_churn_it() {
    let mut bench = Bench::connected(RouteClass::Public);
    bench.tell(Input::CredentialsChanged { bound: false });
    assert_eq!(bench.take(), []);
    assert_eq!((bench.phase(), bench.state().generation), (ConnectionPhase::Connected, 1));
}

#[test]
fn credentials_that_a_session_depends_on_replace_it() {
    let mut bench = Bench::connected(RouteClass::Public);
    let attempt = bench.last();
    bench.tell(Input::CredentialsChanged { bound: true });
    let mut expected = vec![
        Action::Unpublish { attempt },
        Action::Release { attempt, why: ReleaseReason::CredentialsChanged },
    ];
    expected.extend(begins(&bench, false));
    assert_eq!(bench.take(), expected);
    bench.become_ready(RouteClass::Public);
    assert_eq!(bench.state().generation, 2);
}

#[test]
fn a_day_of_a_healthy_session_leaves_it_alone() {
    let mut bench = Bench::connected(RouteClass::Public);
    for _ in 0..86_400 / 15 {
        bench.pass_ms(15_000);
        bench.frame();
    }
    assert_eq!(bench.take(), []);
    assert_eq!(bench.state().generation, 1);
    assert_eq!(bench.supervisor.poll_timeout(), None);
}
