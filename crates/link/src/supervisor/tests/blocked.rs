//! What waits for something to change.

use wakeful_wire::Phase;

use super::*;
use crate::supervisor::Foreground;

const BLOCKING: [FailureReason; 5] = [
    FailureReason::Authentication,
    FailureReason::Permission,
    FailureReason::Configuration,
    FailureReason::Unsupported,
    FailureReason::Unusable,
];

/// Blocked after four transient failures, with an empty log.
fn blocked(reason: FailureReason) -> Bench {
    let mut bench = Bench::failed(4);
    bench.pass_to_retry();
    bench.fail(reason);
    bench.take();
    assert_eq!(bench.phase(), ConnectionPhase::Blocked);
    bench
}

#[test]
fn blocked_stays_blocked_without_any_attempt() {
    for reason in BLOCKING {
        let mut bench = blocked(reason);
        bench.pass_ms(3_600_000);
        for input in [Input::PathChanged, OFFLINE, Input::Reachable] {
            bench.tell(input);
        }
        bench.pass_ms(3_600_000);
        assert_eq!((bench.take(), bench.phase()), (vec![], ConnectionPhase::Blocked));
        assert_eq!(bench.state().last_failure.as_ref().unwrap().reason, reason);
        assert_eq!(bench.supervisor.poll_timeout(), None);
    }
}

#[test]
fn blocked_is_left_by_what_may_have_changed_something() {
    let cases = [
        (Input::RetryNow { wake: false }, 1),
        (Input::Foreground(Foreground::Desk), 1),
        (Input::Foreground(Foreground::Short), 1),
        (Input::Foreground(Foreground::Long), 1),
        (Input::CredentialsChanged { bound: true }, 5),
        (Input::CredentialsChanged { bound: false }, 5),
        (Input::Connect { wake: false }, 5),
        (ONLINE, 5),
    ];
    for (input, attempt) in cases {
        let mut bench = blocked(FailureReason::Authentication);
        bench.tell(input.clone());
        assert_eq!((bench.begun(), bench.state().attempt), (1, attempt), "{input:?}");
    }
}

#[test]
fn a_blocked_failure_does_not_advance_the_ladder() {
    let mut bench = Bench::failed(1);
    bench.pass_to_retry();
    for _ in 0..5 {
        bench.fail(FailureReason::Authentication);
        assert_eq!(bench.state().attempt, 2);
        bench.tell(Input::CredentialsChanged { bound: true });
        assert_eq!(bench.state().attempt, 2);
    }
}

#[test]
fn blocked_without_a_network_waits_for_both() {
    let mut bench = blocked(FailureReason::Authentication);
    bench.tell(OFFLINE);
    bench.tell(Input::CredentialsChanged { bound: true });
    bench.tell(Input::Foreground(Foreground::Short));
    bench.tell(Input::PathChanged);
    assert_eq!((bench.begun(), bench.phase()), (0, ConnectionPhase::Blocked));
    bench.tell(ONLINE);
    assert_eq!((bench.begun(), bench.state().attempt), (1, 1), "and the foreground counted");
}

#[test]
fn a_path_change_does_not_reset_the_ladder_of_a_blocked_one() {
    let mut bench = blocked(FailureReason::Permission);
    bench.tell(Input::PathChanged);
    bench.tell(Input::CredentialsChanged { bound: true });
    assert_eq!(bench.state().attempt, 5);
}

#[test]
fn a_session_that_is_closed_for_its_credentials_is_not_retried() {
    let mut bench = Bench::connected(RouteClass::Public);
    let attempt = bench.last();
    bench.tell(Input::Silent { attempt });
    bench.pass_ms(100);
    bench.close(FailureReason::Authentication);
    bench.pass_ms(3_600_000);
    assert_eq!((bench.begun(), bench.phase()), (0, ConnectionPhase::Blocked));
    assert!(!bench.state().verifying);
}

#[test]
fn an_unusable_environment_that_the_platform_says_is_usable_again_is_not_blocked() {
    let mut bench = blocked(FailureReason::Unusable);
    bench.tell(Input::Environment(Phase::Starting));
    assert_eq!(bench.phase(), ConnectionPhase::Blocked);
    bench.tell(Input::Environment(Phase::Ready));
    assert!(bench.pass_to_retry() <= Duration::from_secs(2));
    assert_eq!(bench.begun(), 1);
    let mut bench = blocked(FailureReason::Unusable);
    bench.tell(Input::Environment(Phase::Suspended));
    assert_eq!((bench.begun(), bench.phase()), (0, ConnectionPhase::Asleep));
    let mut bench = blocked(FailureReason::Authentication);
    bench.tell(Input::Environment(Phase::Ready));
    bench.tell(Input::Environment(Phase::Suspended));
    assert_eq!((bench.begun(), bench.phase()), (0, ConnectionPhase::Blocked));
}
