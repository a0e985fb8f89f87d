//! Subscriptions that the host refuses or ends while the session goes on.

use std::time::Duration;

use wakeful_wire::{
    Code,
    rpc::{CallId, ClientFrame, ServerFrame},
};

use super::bench::{A, B, Bench, command, list};
use crate::{
    AttemptId, Failure, FailureReason, Instant,
    boundary::{Action, OnFailure, Over, RESUBSCRIBE_LEAST, SubscriptionId},
};

const AFTER: OnFailure =
    OnFailure::After { least: Duration::from_secs(1), most: Duration::from_secs(60) };
const ALL: [OnFailure; 3] = [OnFailure::Surface, OnFailure::Dormant, AFTER];

/// The one thing that was reported: why this subscription failed, and when it begins anew.
#[track_caller]
fn failed(bench: &mut Bench, expected: SubscriptionId) -> (FailureReason, Option<Instant>) {
    match &bench.log()[..] {
        [Action::Failed { subscription, failure, again_at }] if *subscription == expected => {
            (failure.reason, *again_at)
        }
        log => panic!("{log:?}"),
    }
}

#[test]
fn a_failure_that_nobody_handles_surfaces_and_the_session_stays() {
    let mut bench = Bench::connected();
    let (subscription, id) = bench.subscribed(OnFailure::Surface);
    bench.refuses(A, id, Code::Internal);
    let log = bench.log();
    let [Action::Over { subscription: over, over: Over::Failed(failure) }] = &log[..] else {
        panic!("{log:?}")
    };
    assert_eq!((*over, failure.reason), (subscription, FailureReason::Remote));
    assert_eq!(bench.boundary.session(), Some(A));
    bench.pass(1_000_000);
    bench.publish(B);
    assert_eq!((bench.log(), bench.sent()), (vec![], vec![]), "it is over");
}

#[test]
fn a_failure_that_is_handled_leaves_it_dormant_until_the_next_session() {
    let mut bench = Bench::connected();
    let (subscription, id) = bench.subscribed(OnFailure::Dormant);
    bench.refuses(A, id, Code::Internal);
    assert_eq!(failed(&mut bench, subscription), (FailureReason::Remote, None));
    bench.pass(1_000_000);
    assert_eq!((bench.log(), bench.sent()), (vec![], vec![]));
    bench.unpublish();
    assert_eq!(bench.log(), [], "it was not on the session any more");
    bench.publish(B);
    bench.build(subscription);
}

#[test]
fn with_a_delay_it_begins_anew_on_the_same_session() {
    let mut bench = Bench::connected();
    let (subscription, id) = bench.subscribed(AFTER);
    bench.refuses(A, id, Code::Internal);
    let again_at = bench.now.after(Duration::from_secs(1));
    assert_eq!(failed(&mut bench, subscription), (FailureReason::Remote, Some(again_at)));
    bench.pass(999);
    assert_eq!(bench.log(), []);
    bench.pass(1);
    bench.build(subscription);
    assert_eq!(bench.boundary.session(), Some(A));
}

/// How long it waits after each of these failures in a row.
fn waits(bench: &mut Bench, subscription: SubscriptionId, mut id: CallId, times: u32) -> Vec<u64> {
    (0..times)
        .map(|_| {
            bench.refuses(A, id, Code::Internal);
            let (_, again_at) = failed(bench, subscription);
            let wait = bench.now.until(again_at.unwrap()).as_millis().try_into().unwrap();
            bench.pass(wait);
            id = bench.build(subscription);
            wait
        })
        .collect()
}

#[test]
fn each_further_failure_doubles_the_delay_up_to_a_bound() {
    let mut bench = Bench::connected();
    let (subscription, id) = bench.subscribed(AFTER);
    let seconds: Vec<u64> =
        waits(&mut bench, subscription, id, 9).into_iter().map(|ms| ms / 1_000).collect();
    assert_eq!(seconds, [1, 2, 4, 8, 16, 32, 60, 60, 60]);
}

#[test]
fn the_delay_is_the_first_one_again_after_it_lasted_and_on_the_next_session() {
    let mut bench = Bench::connected();
    let (subscription, id) = bench.subscribed(AFTER);
    waits(&mut bench, subscription, id, 5);
    bench.pass(59_999);
    // The id that the last call has: they are given out in order.
    bench.refuses(A, CallId(5), Code::Internal);
    let wait = |bench: &mut Bench| {
        let (_, again_at) = failed(bench, subscription);
        bench.now.until(again_at.unwrap())
    };
    assert_eq!(wait(&mut bench), Duration::from_secs(32), "it has not lasted long enough");
    bench.pass(32_000);
    let id = bench.build(subscription);
    bench.pass(60_000);
    bench.refuses(A, id, Code::Internal);
    assert_eq!(wait(&mut bench), Duration::from_secs(1));
    bench.pass(1_000);
    let id = bench.build(subscription);
    bench.refuses(A, id, Code::Internal);
    assert_eq!(wait(&mut bench), Duration::from_secs(2));
    bench.publish(B);
    let id = bench.build(subscription);
    bench.refuses(B, id, Code::Internal);
    assert_eq!(wait(&mut bench), Duration::from_secs(1));
}

#[test]
fn no_setting_asks_a_host_as_fast_as_it_refuses() {
    for (least, most, expected) in [(0, 0, 250), (0, 1, 250), (5_000, 1, 5_000)] {
        let mut bench = Bench::connected();
        let (least, most) = (Duration::from_millis(least), Duration::from_millis(most));
        let (subscription, id) = bench.subscribed(OnFailure::After { least, most });
        assert_eq!(waits(&mut bench, subscription, id, 3), [expected; 3]);
    }
    assert_eq!(RESUBSCRIBE_LEAST, Duration::from_millis(250));
}

#[test]
fn what_is_not_there_ends_it_whatever_was_asked_for() {
    for on_failure in ALL {
        for code in [Code::NotFound, Code::Gone] {
            let mut bench = Bench::connected();
            let (subscription, id) = bench.subscribed(on_failure);
            bench.refuses(A, id, code);
            let log = bench.log();
            let [Action::Over { subscription: over, over: Over::Gone(problem) }] = &log[..] else {
                panic!("{log:?}")
            };
            assert_eq!((*over, problem.code), (subscription, code));
            bench.pass(1_000_000);
            bench.publish(B);
            assert_eq!((bench.log(), bench.sent()), (vec![], vec![]), "{on_failure:?}");
        }
    }
}

#[test]
fn what_no_repetition_mends_waits_for_the_next_session() {
    for code in [Code::Forbidden, Code::Unsupported, Code::Invalid] {
        let mut bench = Bench::connected();
        let (subscription, id) = bench.subscribed(AFTER);
        bench.refuses(A, id, code);
        let (_, again_at) = failed(&mut bench, subscription);
        assert_eq!(again_at, None, "{code}");
        bench.pass(1_000_000);
        assert_eq!(bench.log(), []);
        bench.publish(B);
        bench.build(subscription);
    }
}

#[test]
fn an_environment_that_is_put_to_sleep_ends_no_subscription() {
    for on_failure in ALL {
        let mut bench = Bench::connected();
        let (subscription, id) = bench.subscribed(on_failure);
        bench.refuses(A, id, Code::Asleep);
        let (reason, again_at) = failed(&mut bench, subscription);
        assert_eq!(reason, FailureReason::Asleep);
        assert_eq!(again_at.is_some(), on_failure == AFTER, "{on_failure:?}");
        bench.publish(B);
        bench.build(subscription);
    }
}

#[test]
fn one_that_the_host_ends_of_itself_has_failed() {
    let mut bench = Bench::connected();
    let (subscription, id) = bench.subscribed(AFTER);
    bench.says(A, &ServerFrame::End { id });
    let (reason, again_at) = failed(&mut bench, subscription);
    assert_eq!((reason, again_at.is_some()), (FailureReason::Remote, true));
}

#[test]
fn one_that_waits_begins_at_once_when_it_is_told_to() {
    for on_failure in [OnFailure::Dormant, AFTER] {
        let mut bench = Bench::connected();
        let (subscription, id) = bench.subscribed(on_failure);
        bench.refuses(A, id, Code::Internal);
        bench.log();
        bench.boundary.resubscribe(subscription);
        bench.build(subscription);
        bench.pass(1_000_000);
        assert_eq!((bench.log(), bench.sent()), (vec![], vec![]), "and not a second time");
    }
}

#[test]
fn a_defect_is_never_expected() {
    for on_failure in ALL {
        let mut bench = Bench::connected();
        let (subscription, id) = bench.subscribed(on_failure);
        bench.item(A, id, "not a list");
        bench.log();
        bench.boundary.handle_defect(subscription, "An item of the list cannot be read.");
        bench.settle();
        let expected = Failure::new(FailureReason::Remote, "An item of the list cannot be read.");
        let over = Action::Over { subscription, over: Over::Failed(expected) };
        assert_eq!(bench.log(), [over], "{on_failure:?}");
        let sent = bench.sent();
        assert!(matches!(sent[..], [(A, ClientFrame::Cancel { id: ended })] if ended == id));
        bench.pass(1_000_000);
        bench.publish(B);
        assert_eq!((bench.log(), bench.sent()), (vec![], vec![]));
    }
}

#[test]
fn a_socket_that_is_full_is_a_failure_and_one_that_is_not_ready_is_the_sessions() {
    let refused = |reason| {
        let mut bench = Bench::connected();
        let subscription = bench.boundary.subscribe(AFTER).unwrap();
        bench.settle();
        bench.log();
        bench.boundary.handle_input(subscription, list());
        let Some(Action::Send { sending, .. }) = bench.boundary.poll_action() else {
            panic!("it is sent")
        };
        bench.boundary.handle_sent(bench.now, sending, Err(Failure::new(reason, "no")));
        bench.settle();
        (bench, subscription)
    };
    let (mut bench, subscription) = refused(FailureReason::Overloaded);
    let (_, again_at) = failed(&mut bench, subscription);
    assert!(again_at.is_some());
    let (mut bench, subscription) = refused(FailureReason::Transport);
    bench.pass(1_000_000);
    assert_eq!(bench.log(), []);
    bench.publish(B);
    bench.build(subscription);
}

#[test]
fn time_may_be_looked_at_early_late_or_twice() {
    let mut bench = Bench::connected();
    let (subscription, id) = bench.subscribed(AFTER);
    bench.refuses(A, id, Code::Internal);
    bench.log();
    bench.boundary.request(bench.now, command());
    bench.settle();
    assert_eq!(bench.boundary.poll_timeout(), Some(Instant(1_000)));
    bench.boundary.handle_timeout(Instant(999));
    bench.boundary.handle_timeout(Instant(5_000));
    bench.boundary.handle_timeout(Instant(5_000));
    bench.settle();
    assert_eq!(bench.log(), [Action::Build { subscription }]);
    assert_eq!(bench.boundary.poll_timeout(), Some(Instant(90_000)));
    assert_eq!(AttemptId(1), A);
}
