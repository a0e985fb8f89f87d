//! The ladder, and what shortens a wait.

use super::*;
use crate::supervisor::Foreground;

fn secs(bench: &Bench) -> u64 {
    bench.now.until(bench.state().retry_at.unwrap()).as_millis().div_ceil(1_000) as u64
}

/// The ladder's rung by the wait that follows the next failure: rungs from the third on do not
/// overlap with the first.
fn is_first_rung(bench: &mut Bench) -> bool {
    bench.fail(FailureReason::Transport);
    assert_eq!(bench.phase(), ConnectionPhase::Backoff);
    bench.state().attempt == 1 && secs(bench) <= 6
}

#[test]
fn transient_failures_are_retried_without_limit() {
    let mut bench = Bench::connecting();
    for attempt in 1..=200 {
        assert_eq!(bench.state().attempt, attempt);
        bench.take();
        bench.fail(FailureReason::Network);
        assert_eq!(bench.phase(), ConnectionPhase::Backoff);
        assert_eq!(bench.state().attempt, attempt);
        let wait = bench.pass_to_retry();
        assert!(wait >= Duration::from_secs(1) && wait <= Duration::from_secs(300));
        assert_eq!(bench.take(), begins(&bench, false));
        assert_eq!(bench.state().retry_at, None);
    }
}

#[test]
fn a_failure_is_shown_through_the_next_attempt_and_gone_once_connected() {
    let mut bench = Bench::failed(1);
    let failure = Failure::new(FailureReason::Transport, "it did not work");
    assert_eq!(bench.state().last_failure, Some(failure.clone()));
    bench.pass_to_retry();
    assert_eq!(bench.state().last_failure, Some(failure));
    bench.become_ready(RouteClass::Public);
    assert_eq!(bench.state().last_failure, None);
}

#[test]
fn a_short_session_climbs_the_ladder_and_a_lasting_one_resets_it() {
    for (lasted, attempt) in [(0, 5), (29_999, 5), (30_000, 1), (3_600_000, 1)] {
        let mut bench = Bench::failed(4);
        bench.pass_to_retry();
        bench.become_ready(RouteClass::Public);
        bench.pass_ms(lasted);
        bench.take();
        let session = bench.last();
        bench.close(FailureReason::Transport);
        assert_eq!(
            bench.take(),
            [
                Action::Unpublish { attempt: session },
                Action::Release { attempt: session, why: ReleaseReason::Closed },
            ],
            "never at once",
        );
        assert_eq!(bench.phase(), ConnectionPhase::Backoff, "left in the same step");
        assert_eq!(bench.state().attempt, attempt, "after {lasted} ms");
        assert_eq!(secs(&bench) <= 6, attempt == 1);
    }
}

#[test]
fn a_host_that_ends_each_session_at_once_is_asked_ever_more_rarely() {
    let mut bench = Bench::connecting();
    let end = bench.now.after(Duration::from_secs(1_800));
    let mut sessions = 0;
    while bench.now < end {
        bench.become_ready(RouteClass::Loopback);
        sessions += 1;
        bench.pass_ms(100);
        bench.close(FailureReason::Transport);
        let told = bench.state().last_failure.clone().unwrap().detail;
        assert_eq!(told.starts_with("the connection keeps ending"), sessions >= 3, "{told}");
        assert!(told.contains("the socket closed"), "{told}");
        bench.pass_to_retry();
    }
    assert!((9..=15).contains(&sessions), "{sessions} in half an hour");
    bench.become_ready(RouteClass::Loopback);
    bench.pass_ms(30_000);
    bench.close(FailureReason::Transport);
    assert_eq!(bench.state().last_failure.clone().unwrap().detail, "the socket closed");
}

#[test]
fn nobody_comes_before_the_time_that_the_host_asked_for() {
    let asked = Duration::from_secs(20);
    let mut waits = std::collections::BTreeSet::new();
    for seed in 0..200 {
        let mut bench = Bench::seeded(seed);
        bench.tell(Input::Connect { wake: false });
        let mut failure = Failure::new(FailureReason::Overloaded, "busy");
        failure.retry_after = Some(asked);
        bench.fail_with(failure);
        bench.tell(ONLINE);
        bench.tell(Input::Reachable);
        let wait = bench.pass_to_retry();
        assert!(wait >= asked, "{wait:?}");
        waits.insert(wait);
    }
    assert!(waits.len() > 150, "spread: {}", waits.len());
}

#[test]
fn a_crowd_that_lost_its_server_comes_back_spread() {
    let mut firsts = std::collections::BTreeMap::new();
    for seed in 0..600 {
        let mut bench = Bench::seeded(seed);
        bench.tell(Input::Connect { wake: false });
        bench.become_ready(RouteClass::Public);
        bench.pass_ms(3_600_000);
        bench.close(FailureReason::Transport);
        *firsts.entry(bench.pass_to_retry().as_secs()).or_insert(0) += 1;
    }
    assert_eq!(firsts.keys().copied().collect::<Vec<_>>(), [1, 2, 3, 4, 5]);
    assert!(firsts.values().all(|count| *count < 180), "{firsts:?}");
}

#[test]
fn a_retry_by_hand_begins_at_once_and_from_the_first_rung() {
    let mut bench = Bench::failed(4);
    bench.tell(Input::RetryNow { wake: false });
    let attempt = bench.last();
    assert_eq!(bench.take()[0], Action::Want { attempt, urgent: true });
    assert_eq!(bench.state().attempt, 1);
    assert_eq!(bench.state().last_failure, None);
    assert!(is_first_rung(&mut bench));
}

#[test]
fn a_retry_by_hand_begins_an_attempt_anew_and_adds_none() {
    let mut bench = Bench::connecting();
    let old = bench.last();
    bench.take();
    bench.tell(Input::RetryNow { wake: false });
    assert_eq!(bench.take()[0], Action::Abandon { attempt: old });
    bench.fail(FailureReason::Network);
    bench.stingy = true;
    bench.tell(Input::RetryNow { wake: false });
    bench.tell(Input::RetryNow { wake: false });
    let attempt = bench.last();
    assert_eq!(bench.take(), [Action::Want { attempt, urgent: true }], "it stands in line once");
}

#[test]
fn coming_to_the_foreground_wakes_a_pending_retry() {
    for foreground in [Foreground::Desk, Foreground::Short, Foreground::Long] {
        let mut bench = Bench::failed(4);
        bench.tell(Input::Foreground(foreground));
        assert_eq!(bench.take(), begins(&bench, false));
        assert!(is_first_rung(&mut bench), "{foreground:?}");
    }
}

#[test]
fn being_wanted_again_ends_a_wait_and_keeps_the_ladder() {
    let mut bench = Bench::failed(4);
    bench.tell(Input::Connect { wake: false });
    assert_eq!(bench.begun(), 1);
    assert_eq!(bench.state().attempt, 5);
}

#[test]
fn a_short_foreground_leaves_an_attempt_alone() {
    for input in [
        Input::Foreground(Foreground::Short),
        Input::Foreground(Foreground::Desk),
        Input::CredentialsChanged { bound: false },
        ONLINE,
    ] {
        let mut bench = Bench::connecting();
        bench.take();
        bench.tell(input);
        assert_eq!(bench.take(), []);
        assert_eq!(bench.phase(), ConnectionPhase::Connecting);
    }
}

#[test]
fn a_long_suspension_begins_an_attempt_anew_from_the_first_rung() {
    let mut bench = Bench::failed(4);
    bench.pass_to_retry();
    let old = bench.last();
    bench.take();
    bench.tell(Input::Foreground(Foreground::Long));
    let mut expected = vec![Action::Abandon { attempt: old }];
    expected.extend(begins(&bench, false));
    assert_eq!(bench.take(), expected);
    assert!(is_first_rung(&mut bench));
}

#[test]
fn what_waits_in_line_keeps_its_place_through_a_long_suspension_and_a_new_way() {
    let mut bench = Bench::failed(2);
    bench.stingy = true;
    bench.pass_to_retry();
    let attempt = bench.last();
    bench.tell(Input::PathChanged);
    bench.tell(Input::CredentialsChanged { bound: true });
    assert_eq!(bench.state().attempt, 3);
    bench.tell(Input::Foreground(Foreground::Long));
    assert_eq!(bench.take(), [Action::Want { attempt, urgent: false }]);
    assert_eq!(bench.state().attempt, 1);
}

#[test]
fn changes_of_the_way_do_not_shorten_a_wait() {
    let mut bench = Bench::failed(4);
    let planned = bench.state().retry_at;
    for _ in 0..100 {
        bench.tell(Input::PathChanged);
    }
    assert_eq!((bench.begun(), bench.state().retry_at), (0, planned));
    assert_eq!(bench.state().attempt, 4);
}

#[test]
fn a_new_way_begins_an_attempt_anew_and_keeps_the_ladder() {
    for input in [Input::PathChanged, Input::CredentialsChanged { bound: true }] {
        let mut bench = Bench::failed(4);
        bench.pass_to_retry();
        let old = bench.last();
        bench.take();
        bench.tell(input);
        let mut expected = vec![Action::Abandon { attempt: old }];
        expected.extend(begins(&bench, false));
        assert_eq!(bench.take(), expected);
        assert_eq!(bench.state().attempt, 5);
    }
}

#[test]
fn a_foreground_while_offline_resets_the_ladder_for_later() {
    for (input, attempt) in [(Input::Foreground(Foreground::Short), 1), (Input::PathChanged, 5)] {
        let mut bench = Bench::failed(4);
        bench.tell(OFFLINE);
        assert_eq!(bench.phase(), ConnectionPhase::Offline);
        bench.tell(input);
        assert_eq!((bench.phase(), bench.begun()), (ConnectionPhase::Offline, 0));
        bench.tell(ONLINE);
        assert_eq!((bench.begun(), bench.state().attempt), (1, attempt));
    }
}

#[test]
fn a_network_that_goes_ends_an_attempt_on_a_way_that_needs_it() {
    let cases = [
        (None, ConnectionPhase::Offline),
        (Some(RouteClass::Public), ConnectionPhase::Offline),
        (Some(RouteClass::Tailnet), ConnectionPhase::Offline),
        (Some(RouteClass::Lan), ConnectionPhase::Connecting),
        (Some(RouteClass::Loopback), ConnectionPhase::Connecting),
    ];
    for (class, phase) in cases {
        let mut bench = Bench::connecting();
        let attempt = bench.last();
        if let Some(class) = class {
            bench.tell(Input::Route { attempt, class });
        }
        bench.take();
        bench.tell(OFFLINE);
        assert_eq!(bench.phase(), phase, "{class:?}");
        let ended = phase == ConnectionPhase::Offline;
        assert_eq!(bench.take(), [Action::Abandon { attempt }][..usize::from(ended)]);
    }
}

#[test]
fn a_retry_by_hand_tries_once_although_offline() {
    let mut bench = Bench::new();
    bench.tell(OFFLINE);
    bench.tell(Input::Connect { wake: false });
    bench.tell(Input::RetryNow { wake: false });
    assert_eq!(bench.begun(), 1);
    bench.fail(FailureReason::Network);
    bench.pass_ms(3_600_000);
    assert_eq!((bench.phase(), bench.begun()), (ConnectionPhase::Offline, 0), "once");
    bench.tell(Input::RetryNow { wake: false });
    bench.become_ready(RouteClass::Public);
    assert_eq!(bench.phase(), ConnectionPhase::Connected, "the report was wrong");
}

#[test]
fn a_host_on_this_machine_is_retried_whatever_is_said_of_the_network() {
    let mut bench = Bench::connected(RouteClass::Loopback);
    bench.pass_ms(60_000);
    bench.tell(OFFLINE);
    bench.tell(Input::Alive { attempt: bench.last(), check: 1 });
    bench.close(FailureReason::Transport);
    assert_eq!(bench.phase(), ConnectionPhase::Backoff);
    bench.pass_to_retry();
    bench.fail(FailureReason::Network);
    assert_eq!(bench.phase(), ConnectionPhase::Backoff);
    bench.tell(ONLINE);
    bench.tell(OFFLINE);
    assert_eq!(bench.phase(), ConnectionPhase::Connecting);
}

#[test]
fn a_radio_that_flaps_does_not_hammer_a_server() {
    let mut bench = Bench::connecting();
    bench.fail(FailureReason::Network);
    bench.take();
    let mut begun = 0;
    for _ in 0..600 {
        bench.tell(OFFLINE);
        bench.pass_ms(500);
        bench.tell(ONLINE);
        let started = bench.begun();
        begun += started;
        if started > 0 {
            bench.fail(FailureReason::Network);
        }
        bench.pass_ms(500);
        let started = bench.begun();
        begun += started;
        if started > 0 {
            bench.fail(FailureReason::Network);
        }
    }
    assert!((8..=22).contains(&begun), "{begun} attempts in ten minutes");
}

#[test]
fn a_network_that_comes_back_ends_a_wait_at_once() {
    let mut bench = Bench::failed(5);
    bench.tell(OFFLINE);
    bench.pass_ms(60_000);
    assert_eq!((bench.phase(), bench.state().retry_at), (ConnectionPhase::Offline, None));
    assert_eq!(bench.begun(), 0);
    bench.tell(ONLINE);
    assert_eq!((bench.begun(), bench.state().attempt), (1, 6));
    let mut bench = Bench::failed(5);
    bench.tell(ONLINE);
    assert_eq!(bench.begun(), 1, "from unknown as well");
}

#[test]
fn a_neighbour_that_was_reached_ends_a_wait_spread_and_not_twice() {
    let mut bench = Bench::failed(5);
    bench.tell(Input::Reachable);
    assert!(bench.now.until(bench.state().retry_at.unwrap()) <= Duration::from_secs(2));
    bench.pass_to_retry();
    bench.fail(FailureReason::Network);
    bench.tell(Input::Reachable);
    let wait = bench.pass_to_retry();
    assert!(wait >= Duration::from_secs(27), "{wait:?}");
    let mut bench = Bench::failed(1);
    let planned = bench.state().retry_at;
    bench.pass_ms(0);
    bench.tell(Input::Reachable);
    assert!(bench.state().retry_at <= planned, "never later than it was");
}
