//! Environments that sleep, and who wakes them.

use wakeful_wire::Phase;

use super::*;
use crate::supervisor::{Foreground, INTENT_LASTS};

/// Asleep after a session that lasted.
fn asleep() -> Bench {
    let mut bench = Bench::connected(RouteClass::Public);
    bench.pass_ms(600_000);
    bench.close(FailureReason::Asleep);
    assert_eq!(bench.phase(), ConnectionPhase::Asleep);
    bench.take();
    bench
}

#[test]
fn a_sleeping_environment_is_left_alone() {
    let mut bench = asleep();
    for input in [
        Input::Connect { wake: false },
        Input::Foreground(Foreground::Desk),
        Input::Foreground(Foreground::Long),
        OFFLINE,
        ONLINE,
        Input::PathChanged,
        Input::CredentialsChanged { bound: true },
        Input::Reachable,
        Input::Environment(Phase::Suspended),
        Input::Environment(Phase::Starting),
    ] {
        bench.tell(input);
        bench.pass_ms(3_600_000);
        assert_eq!(bench.take(), []);
        assert_eq!(bench.supervisor.poll_timeout(), None, "no timers");
        assert_eq!(bench.phase(), ConnectionPhase::Asleep);
    }
    assert_eq!(bench.state().environment, Some(Phase::Starting));
    assert_eq!(bench.state().last_failure, None, "sleep is no failure");
}

#[test]
fn a_person_wakes_a_sleeping_environment() {
    for input in [Input::Connect { wake: true }, Input::RetryNow { wake: true }] {
        let mut bench = asleep();
        bench.tell(input);
        assert_eq!(bench.take(), begins(&bench, true));
    }
}

#[test]
fn a_retry_by_hand_that_must_not_wake_is_one_attempt_that_does_not() {
    let mut bench = asleep();
    bench.tell(Input::RetryNow { wake: false });
    let attempt = bench.last();
    let begin = bench.take().pop();
    let deadline = bench.now.after(Duration::from_secs(15));
    assert_eq!(begin, Some(Action::Begin { attempt, wake: false, deadline }));
    bench.fail(FailureReason::Asleep);
    bench.pass_ms(3_600_000);
    assert_eq!((bench.begun(), bench.phase()), (0, ConnectionPhase::Asleep));
}

#[test]
fn an_environment_that_is_ready_is_joined_spread_and_without_waking_it() {
    let mut waits = std::collections::BTreeSet::new();
    for seed in 0..50 {
        let mut bench = Bench::seeded(seed);
        bench.tell(Input::Environment(Phase::Suspended));
        bench.tell(Input::Connect { wake: false });
        assert_eq!((bench.begun(), bench.phase()), (0, ConnectionPhase::Asleep), "it is known");
        bench.tell(Input::Environment(Phase::Starting));
        bench.tell(Input::Environment(Phase::Ready));
        let at = bench.state().retry_at.unwrap_or(bench.now);
        let wait = bench.now.until(at);
        assert!(wait <= Duration::from_secs(2));
        bench.pass(wait);
        waits.insert(wait);
        assert_eq!(bench.take(), begins(&bench, false));
    }
    assert!(waits.len() > 40);
}

#[test]
fn an_environment_that_falls_asleep_again_before_it_is_joined_is_left_alone() {
    let mut bench = asleep();
    bench.tell(Input::Environment(Phase::Ready));
    bench.tell(Input::Environment(Phase::Suspending));
    bench.pass_ms(3_600_000);
    assert_eq!((bench.begun(), bench.phase()), (0, ConnectionPhase::Asleep));
}

#[test]
fn what_the_platform_says_of_a_session_is_no_reason_to_touch_it() {
    let mut bench = Bench::connected(RouteClass::Public);
    for phase in [Phase::Suspending, Phase::Suspended, Phase::Frozen, Phase::Starting] {
        bench.tell(Input::Environment(phase));
        assert_eq!(bench.state().environment, Some(phase));
    }
    assert_eq!((bench.take(), bench.phase()), (vec![], ConnectionPhase::Connected));
}

#[test]
fn an_environment_that_falls_asleep_ends_attempts_that_would_not_wake_it() {
    for phase in [Phase::Suspended, Phase::Frozen, Phase::Suspending] {
        let mut bench = Bench::connecting();
        let attempt = bench.last();
        bench.take();
        bench.tell(Input::Environment(phase));
        assert_eq!(bench.take(), [Action::Abandon { attempt }]);
        assert_eq!(bench.phase(), ConnectionPhase::Asleep);
        let mut bench = Bench::failed(3);
        bench.tell(Input::Environment(phase));
        bench.pass_ms(3_600_000);
        assert_eq!((bench.take(), bench.phase()), (vec![], ConnectionPhase::Asleep));
    }
}

#[test]
fn an_attempt_that_wakes_goes_on_while_the_environment_sleeps() {
    let mut bench = Bench::new();
    bench.tell(Input::Connect { wake: true });
    assert_eq!(bench.take(), begins(&bench, true));
    bench.tell(Input::Environment(Phase::Suspended));
    bench.fail(FailureReason::Starting);
    bench.tell(Input::Environment(Phase::Suspended));
    assert_eq!(bench.phase(), ConnectionPhase::Backoff);
    bench.pass_to_retry();
    assert_eq!(bench.take(), begins(&bench, true));
}

#[test]
fn retries_of_an_attempt_that_wakes_wake_five_times_more() {
    let mut bench = Bench::new();
    bench.tell(Input::Connect { wake: true });
    let mut began = Vec::new();
    for _ in 0..8 {
        bench.fail(FailureReason::Starting);
        bench.tell(Input::Connect { wake: false });
        began.extend(wakes(&bench.take()));
    }
    assert_eq!(began, [true, true, true, true, true, true, false, false, false]);
}

#[test]
fn an_intent_ends_with_time_a_session_a_disconnect_and_a_long_absence() {
    let endings: [(&str, Deed); 5] = [
        ("time", |bench| bench.pass(INTENT_LASTS)),
        ("a retry that must not wake", |bench| bench.tell(Input::RetryNow { wake: false })),
        ("a session", |bench| {
            bench.tell(ONLINE);
            bench.become_ready(RouteClass::Public);
            bench.tell(OFFLINE);
            bench.close(FailureReason::Transport);
        }),
        ("a disconnect", |bench| {
            bench.tell(Input::Disconnect);
            bench.tell(Input::Connect { wake: false });
        }),
        ("a long absence", |bench| bench.tell(Input::Foreground(Foreground::Long))),
    ];
    for (name, ending) in endings {
        let mut bench = Bench::new();
        bench.tell(OFFLINE);
        bench.tell(Input::Connect { wake: true });
        assert_eq!((bench.begun(), bench.phase()), (0, ConnectionPhase::Offline));
        ending(&mut bench);
        if bench.phase() == ConnectionPhase::Connecting {
            bench.fail(FailureReason::Network);
        }
        bench.take();
        bench.tell(ONLINE);
        bench.pass_ms(40_000);
        let began = wakes(&bench.take());
        assert!(began.first() == Some(&false), "{name}: {began:?}");
        assert!(!began.contains(&true), "{name}: {began:?}");
    }
}

#[test]
fn a_person_who_comes_while_an_attempt_is_under_way_is_not_lost() {
    let mut bench = Bench::connecting();
    bench.tell(Input::Connect { wake: true });
    assert_eq!(bench.begun(), 1, "the attempt goes on");
    bench.fail(FailureReason::Asleep);
    assert_eq!(bench.take(), begins(&bench, true));
    bench.fail(FailureReason::Asleep);
    assert_eq!(bench.phase(), ConnectionPhase::Asleep, "it does not let itself be woken");
    bench.pass_ms(3_600_000);
    assert_eq!(bench.begun(), 0);
}

#[test]
fn a_person_who_comes_while_an_attempt_waits_in_line_goes_before_the_others() {
    let mut bench = Bench::new();
    bench.stingy = true;
    bench.tell(Input::Connect { wake: false });
    let old = bench.last();
    bench.take();
    bench.tell(Input::Connect { wake: true });
    bench.tell(Input::Connect { wake: true });
    let attempt = bench.last();
    assert_eq!(
        bench.take(),
        [Action::Abandon { attempt: old }, Action::Want { attempt, urgent: true }],
    );
}

#[test]
fn a_background_retry_never_wakes() {
    let mut bench = Bench::connected(RouteClass::Public);
    bench.pass_ms(60_000);
    bench.close(FailureReason::Transport);
    for _ in 0..20 {
        bench.pass_to_retry();
        assert_eq!(bench.take().pop(), begins(&bench, false).into_iter().next_back());
        bench.fail(FailureReason::Network);
    }
}

#[test]
fn a_retry_by_hand_on_a_session_that_is_falling_asleep_wakes_it_again() {
    let mut bench = Bench::connected(RouteClass::Public);
    bench.pass_ms(60_000);
    bench.tell(Input::RetryNow { wake: true });
    bench.take();
    bench.close(FailureReason::Asleep);
    assert_eq!(bench.take()[2..], begins(&bench, true));
    let mut bench = Bench::connected(RouteClass::Public);
    bench.tell(Input::RetryNow { wake: true });
    bench.tell(Input::Alive { attempt: bench.last(), check: 1 });
    bench.pass_ms(60_000);
    bench.close(FailureReason::Asleep);
    assert_eq!(bench.phase(), ConnectionPhase::Asleep, "that wish was fulfilled");
}

#[test]
fn what_the_host_says_of_its_environment_is_published() {
    let mut bench = Bench::connecting();
    let mut failure = Failure::new(FailureReason::Starting, "it starts");
    failure.phase = Some(Phase::Starting);
    bench.fail_with(failure);
    assert_eq!(bench.state().environment, Some(Phase::Starting));
    bench.pass_to_retry();
    bench.fail(FailureReason::Asleep);
    assert_eq!(bench.state().environment, Some(Phase::Suspended), "it is not starting any more");
}

#[test]
fn a_starting_environment_that_is_ready_ends_the_wait_for_it() {
    let mut bench = Bench::connecting();
    for _ in 0..5 {
        bench.fail(FailureReason::Starting);
        bench.pass_to_retry();
    }
    bench.fail(FailureReason::Starting);
    bench.tell(Input::Environment(Phase::Starting));
    let planned = bench.state().retry_at;
    bench.tell(Input::Environment(Phase::Ready));
    assert!(bench.state().retry_at < planned);
    assert!(bench.pass_to_retry() <= Duration::from_secs(2));
}
