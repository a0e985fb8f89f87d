//! What ends with what: wishes, counts and waits that must not outlive their reason.

use wakeful_wire::Phase;

use super::*;
use crate::supervisor::Foreground;

fn asked_to_wait(bench: &mut Bench) {
    let mut failure = Failure::new(FailureReason::Overloaded, "busy");
    failure.retry_after = Some(Duration::from_secs(3_000));
    bench.fail_with(failure);
}

#[test]
fn a_signal_never_makes_a_wait_longer() {
    let mut bench = Bench::failed(5);
    bench.tell(Input::Reachable);
    bench.pass_to_retry();
    bench.tell(Input::RetryNow { wake: false });
    bench.fail(FailureReason::Network);
    let planned = bench.state().retry_at;
    bench.tell(Input::Reachable);
    assert_eq!(bench.state().retry_at, planned);
}

#[test]
fn what_the_host_asked_for_ends_with_the_next_attempt_and_with_a_disconnect() {
    let mut bench = Bench::connecting();
    asked_to_wait(&mut bench);
    bench.tell(Input::RetryNow { wake: false });
    bench.fail(FailureReason::Authentication);
    bench.take();
    bench.tell(ONLINE);
    assert_eq!(bench.begun(), 1);
    asked_to_wait(&mut bench);
    bench.tell(Input::Disconnect);
    bench.tell(OFFLINE);
    bench.tell(Input::Connect { wake: false });
    bench.tell(ONLINE);
    assert_eq!(bench.begun(), 1);
}

#[test]
fn being_wanted_again_does_not_try_what_is_blocked_and_offline() {
    let mut bench = Bench::connecting();
    bench.fail(FailureReason::Permission);
    bench.tell(OFFLINE);
    bench.take();
    bench.tell(Input::Connect { wake: true });
    assert_eq!((bench.begun(), bench.phase()), (0, ConnectionPhase::Blocked));
}

#[test]
fn a_session_and_a_disconnect_let_the_next_signal_count_at_once() {
    let deeds: [Deed; 2] = [
        |bench| {
            bench.become_ready(RouteClass::Public);
            bench.close(FailureReason::Transport);
        },
        |bench| {
            bench.tell(Input::Disconnect);
            bench.tell(Input::Connect { wake: false });
            bench.fail(FailureReason::Network);
        },
    ];
    for deed in deeds {
        let mut bench = Bench::failed(3);
        bench.tell(ONLINE);
        deed(&mut bench);
        bench.tell(OFFLINE);
        bench.take();
        bench.tell(ONLINE);
        assert_eq!(bench.begun(), 1);
    }
}

#[test]
fn a_disconnect_forgets_that_the_connection_kept_ending() {
    let mut bench = Bench::connecting();
    for _ in 0..3 {
        bench.become_ready(RouteClass::Lan);
        bench.close(FailureReason::Transport);
        bench.pass_to_retry();
    }
    bench.tell(Input::Disconnect);
    bench.tell(Input::Connect { wake: false });
    bench.become_ready(RouteClass::Lan);
    bench.close(FailureReason::Transport);
    assert_eq!(bench.state().last_failure.as_ref().unwrap().detail, "the socket closed");
}

#[test]
fn a_person_who_looks_is_worth_an_attempt_without_a_wait() {
    for input in [Input::RetryNow { wake: false }, Input::Foreground(Foreground::Desk)] {
        let mut bench = Bench::connected(RouteClass::Lan);
        let mut end = |input: &Input| {
            bench.tell(input.clone());
            bench.close(FailureReason::Transport);
            let at_once = bench.phase() == ConnectionPhase::Connecting;
            if !at_once {
                bench.pass_to_retry();
            }
            bench.become_ready(RouteClass::Lan);
            at_once
        };
        let by_itself: Vec<_> = (0..4).map(|_| end(&Input::PathChanged)).collect();
        assert_eq!(by_itself, [true, true, true, false]);
        assert!(end(&input), "{input:?}");
    }
}

#[test]
fn a_person_who_joins_a_check_waits_for_its_reconnect() {
    let mut bench = Bench::connected(RouteClass::Lan);
    bench.tell(Input::PathChanged);
    bench.tell(Input::RetryNow { wake: false });
    bench.pass_ms(3_000);
    let attempt = bench.last();
    assert!(bench.take().contains(&Action::Want { attempt, urgent: true }));
}

#[test]
fn an_environment_that_was_ready_all_the_time_is_no_news() {
    let mut bench = Bench::failed(5);
    bench.tell(Input::Environment(Phase::Ready));
    bench.pass_to_retry();
    bench.fail(FailureReason::Network);
    bench.pass_ms(31_000);
    let planned = bench.state().retry_at;
    bench.tell(Input::Environment(Phase::Ready));
    assert_eq!(bench.state().retry_at, planned);
}

#[test]
fn the_last_attempt_that_wakes_is_not_ended_by_sleep() {
    let mut bench = Bench::new();
    bench.tell(Input::Connect { wake: true });
    for _ in 0..5 {
        bench.fail(FailureReason::Starting);
        bench.pass_ms(1);
        bench.tell(Input::Connect { wake: false });
    }
    bench.tell(Input::Environment(Phase::Suspended));
    assert_eq!(bench.phase(), ConnectionPhase::Connecting);
    bench.fail(FailureReason::Starting);
    bench.tell(Input::Environment(Phase::Suspended));
    assert_eq!(bench.phase(), ConnectionPhase::Asleep, "nobody wakes it any more");
}

#[test]
fn a_wish_to_wake_ends_where_it_cannot_be_fulfilled() {
    let mut bench = Bench::new();
    bench.tell(Input::Connect { wake: true });
    bench.fail(FailureReason::Authentication);
    bench.take();
    bench.tell(Input::CredentialsChanged { bound: true });
    assert_eq!(wakes(&bench.take()), [false]);
    let mut bench = Bench::new();
    bench.tell(Input::Connect { wake: true });
    bench.fail(FailureReason::Asleep);
    bench.take();
    bench.tell(Input::Environment(Phase::Ready));
    bench.pass_ms(2_000);
    assert_eq!(wakes(&bench.take()), [false]);
}

#[test]
fn sleep_is_no_failure_and_a_lasting_session_before_it_resets_the_ladder() {
    let mut bench = Bench::failed(4);
    bench.pass_to_retry();
    bench.fail(FailureReason::Asleep);
    assert_eq!(bench.state().last_failure, None);
    let mut bench = Bench::failed(4);
    bench.pass_to_retry();
    bench.become_ready(RouteClass::Public);
    bench.pass_ms(30_000);
    bench.close(FailureReason::Asleep);
    bench.tell(Input::Connect { wake: true });
    bench.fail(FailureReason::Network);
    assert_eq!(bench.state().attempt, 1);
    let mut bench = Bench::connected(RouteClass::Public);
    bench.pass_ms(30_000);
    bench.close(FailureReason::Authentication);
    assert_eq!(bench.state().attempt, 0, "no attempt has failed");
}

#[test]
fn what_was_measured_on_one_way_says_nothing_of_another() {
    let mut bench = Bench::connected(RouteClass::Tailnet);
    bench.tell(Input::PathChanged);
    bench.pass_ms(1_500);
    bench.tell(Input::Alive { attempt: bench.last(), check: 1 });
    bench.close(FailureReason::Transport);
    bench.pass_to_retry();
    bench.become_ready(RouteClass::Public);
    bench.tell(Input::PathChanged);
    bench.pass_ms(600);
    bench.tell(Input::HostAnswered { check: 2 });
    bench.pass_ms(1_900);
    assert_eq!(bench.phase(), ConnectionPhase::Connecting);
}

#[test]
fn a_frame_ends_the_requests_to_the_host() {
    let mut bench = Bench::connected(RouteClass::Public);
    bench.tell(Input::PathChanged);
    bench.pass_ms(600);
    bench.take();
    bench.frame();
    assert_eq!(bench.take(), [Action::StopAsking { check: 1 }]);
}

#[test]
fn the_way_of_a_replacement_counts_once_it_is_the_attempt() {
    let mut bench = Bench::connected(RouteClass::Tailnet);
    bench.tell(Input::PathChanged);
    bench.pass_ms(600);
    bench.tell(Input::HostAnswered { check: 1 });
    bench.tell(Input::Route { attempt: bench.last(), class: RouteClass::Loopback });
    bench.pass_ms(1_900);
    bench.tell(OFFLINE);
    bench.fail(FailureReason::Network);
    assert_eq!(bench.phase(), ConnectionPhase::Backoff, "it needs no network");
}
