//! Requests and streams.

use std::time::Duration;

use serde_json::{Value, json};
use wakeful_wire::{
    Code,
    rpc::{CALLS_MAX, CallId, ClientFrame, ServerFrame},
};

use super::bench::{A, B, Bench, command, list, rename};
use crate::{
    FailureReason,
    boundary::{Action, CallFailure, REQUEST_TIMEOUT, Token},
    session::Effect,
};

const FIRST: CallId = CallId(0);

/// The one thing that was reported: how this request failed.
#[track_caller]
fn failed(bench: &mut Bench, expected: Token) -> CallFailure {
    bench.settle();
    match &mut bench.log()[..] {
        [Action::Finished { token, outcome: Err(failed) }] if *token == expected => failed.clone(),
        log => panic!("{log:?}"),
    }
}

#[track_caller]
fn succeeded(bench: &mut Bench, expected: Token) -> Value {
    bench.settle();
    match &mut bench.log()[..] {
        [Action::Finished { token, outcome: Ok(value) }] if *token == expected => value.take(),
        log => panic!("{log:?}"),
    }
}

#[test]
fn without_a_session_a_request_fails_at_once_and_is_never_sent() {
    let mut bench = Bench::default();
    let token = bench.boundary.request(bench.now, command());
    let failed = failed(&mut bench, token);
    assert_eq!((failed.failure.reason, failed.effect), (FailureReason::Transport, Effect::None));
    bench.publish(A);
    assert_eq!(bench.sent(), [], "it was not kept for later");
    assert_eq!(bench.boundary.poll_timeout(), None);
}

#[test]
fn a_request_goes_over_the_session_that_is_current_when_it_is_made() {
    let mut bench = Bench::default();
    for attempt in [A, B] {
        bench.publish(attempt);
        let token = bench.boundary.request(bench.now, command());
        bench.settle();
        let sent = bench.sent();
        assert!(
            matches!(&sent[..], [(over, ClientFrame::Request { .. })] if *over == attempt),
            "{sent:?}"
        );
        bench.says(attempt, &ServerFrame::Response { id: FIRST, result: json!(attempt.0) });
        assert_eq!(succeeded(&mut bench, token), json!(attempt.0));
    }
}

#[test]
fn a_command_in_flight_at_a_disconnect_fails_and_is_sent_once_only() {
    let mut bench = Bench::connected();
    let token = bench.boundary.request(bench.now, rename("Dishes"));
    bench.settle();
    bench.unpublish();
    let failed = failed(&mut bench, token);
    assert_eq!(failed.failure.reason, FailureReason::Transport);
    assert_eq!(failed.effect, Effect::Unknown);
    assert!(failed.failure.detail.contains("may have happened"));
    bench.publish(B);
    bench.pass(1_000_000);
    let sent = bench.sent();
    assert!(matches!(&sent[..], [(over, ClientFrame::Request { .. })] if *over == A), "{sent:?}");
    assert_eq!(bench.log(), []);
}

#[test]
fn a_command_that_was_not_sent_yet_is_not_sent_over_the_next_session() {
    let mut bench = Bench::connected();
    let token = bench.boundary.request(bench.now, rename("Dishes"));
    bench.boundary.handle_unpublished();
    assert_eq!(failed(&mut bench, token).failure.reason, FailureReason::Transport);
    bench.publish(B);
    assert_eq!(bench.sent(), []);
}

#[test]
fn what_the_host_refuses_is_told_with_whether_it_may_have_happened() {
    let table = [
        (Code::Invalid, FailureReason::Configuration, Effect::None),
        (Code::Asleep, FailureReason::Asleep, Effect::None),
        (Code::Internal, FailureReason::Remote, Effect::Unknown),
    ];
    for (code, reason, effect) in table {
        let mut bench = Bench::connected();
        let token = bench.boundary.request(bench.now, command());
        bench.settle();
        bench.refuses(A, FIRST, code);
        let failed = failed(&mut bench, token);
        assert_eq!((failed.failure.reason, failed.effect), (reason, effect), "{code}");
        assert_eq!(bench.boundary.session(), Some(A), "the session goes on");
    }
}

#[test]
fn a_request_without_an_answer_ends_in_time_and_a_late_answer_is_nobodys() {
    let mut bench = Bench::connected();
    let token = bench.boundary.request(bench.now, command());
    bench.settle();
    bench.pass(89_999);
    assert_eq!(bench.log(), []);
    bench.pass(1);
    assert_eq!(REQUEST_TIMEOUT, Duration::from_secs(90));
    let failed = failed(&mut bench, token);
    assert_eq!((failed.failure.reason, failed.effect), (FailureReason::Timeout, Effect::Unknown));
    let next = bench.boundary.request(bench.now, command());
    bench.settle();
    bench.says(A, &ServerFrame::Response { id: FIRST, result: json!("late") });
    assert_eq!(bench.log(), []);
    bench.says(A, &ServerFrame::Response { id: CallId(1), result: json!("mine") });
    assert_eq!(succeeded(&mut bench, next), json!("mine"));
    assert!(bench.sent().iter().all(|(_, frame)| matches!(frame, ClientFrame::Request { .. })));
}

#[test]
fn nobody_hears_of_a_request_that_was_given_up_and_the_host_is_not_told() {
    let mut bench = Bench::connected();
    let token = bench.boundary.request(bench.now, command());
    bench.settle();
    bench.boundary.give_up(token);
    bench.boundary.give_up(token);
    bench.settle();
    assert_eq!(bench.sent().len(), 1);
    bench.says(A, &ServerFrame::Response { id: FIRST, result: json!(1) });
    bench.unpublish();
    bench.pass(1_000_000);
    assert_eq!(bench.log(), []);
}

#[test]
fn more_calls_than_a_socket_may_have_are_refused_and_were_certainly_not_sent() {
    let mut bench = Bench::connected();
    for _ in 0..CALLS_MAX {
        bench.boundary.request(bench.now, command());
    }
    bench.settle();
    assert_eq!(bench.log(), []);
    let token = bench.boundary.request(bench.now, command());
    let failed = failed(&mut bench, token);
    assert_eq!((failed.failure.reason, failed.effect), (FailureReason::Overloaded, Effect::None));
    assert_eq!(bench.sent().len(), CALLS_MAX);
}

#[test]
fn a_call_that_is_asked_in_the_wrong_way_is_not_sent() {
    let mut bench = Bench::connected();
    let token = bench.boundary.request(bench.now, list());
    assert_eq!(failed(&mut bench, token).failure.reason, FailureReason::Unsupported);
    let token = bench.boundary.stream(command());
    assert_eq!(failed(&mut bench, token).failure.reason, FailureReason::Unsupported);
    assert_eq!(bench.sent(), []);
    assert_eq!(bench.boundary.poll_timeout(), None);
}

#[test]
fn items_for_a_request_are_skipped_and_an_end_is_no_answer() {
    let mut bench = Bench::connected();
    let token = bench.boundary.request(bench.now, command());
    bench.settle();
    bench.item(A, FIRST, 1);
    assert_eq!(bench.log(), []);
    bench.says(A, &ServerFrame::End { id: FIRST });
    let failed = failed(&mut bench, token);
    assert_eq!((failed.failure.reason, failed.effect), (FailureReason::Remote, Effect::Unknown));
}

#[test]
fn a_stream_has_items_and_an_end() {
    let mut bench = Bench::connected();
    let token = bench.boundary.stream(list());
    bench.settle();
    bench.item(A, FIRST, 1);
    bench.item(A, FIRST, 2);
    let item = |item: i32| Action::StreamItem { token, item: item.into() };
    assert_eq!(bench.log(), [item(1), item(2)]);
    bench.pass(1_000_000);
    assert_eq!(bench.log(), [], "it has no limit of time");
    bench.says(A, &ServerFrame::End { id: FIRST });
    assert_eq!(succeeded(&mut bench, token), Value::Null);
}

#[test]
fn a_stream_stays_with_its_session_and_never_moves_to_another() {
    let mut bench = Bench::connected();
    let token = bench.boundary.stream(list());
    bench.settle();
    bench.publish(B);
    let failed = failed(&mut bench, token);
    assert_eq!(failed.failure.reason, FailureReason::Transport);
    let sent = bench.sent();
    assert!(matches!(&sent[..], [(over, _)] if *over == A), "{sent:?}");
    // The next session numbers its calls as the one before did.
    let next = bench.boundary.stream(list());
    bench.settle();
    bench.item(B, FIRST, 1);
    assert_eq!(bench.log(), [Action::StreamItem { token: next, item: json!(1) }]);
}

#[test]
fn without_a_session_a_stream_fails_at_once() {
    let mut bench = Bench::default();
    let token = bench.boundary.stream(list());
    assert_eq!(failed(&mut bench, token).failure.reason, FailureReason::Transport);
}

#[test]
fn a_stream_that_was_given_up_is_ended_at_the_host() {
    let mut bench = Bench::connected();
    let token = bench.boundary.stream(list());
    bench.settle();
    bench.boundary.give_up(token);
    bench.settle();
    let sent = bench.sent();
    assert!(matches!(sent[1].1, ClientFrame::Cancel { id: FIRST }), "{sent:?}");
    bench.item(A, FIRST, 1);
    bench.says(A, &ServerFrame::End { id: FIRST });
    assert_eq!(bench.log(), []);
    assert_eq!(bench.session(A).open_calls(), 0);
}

#[test]
fn a_stream_that_was_given_up_before_it_had_an_id_is_ended_once_it_has_one() {
    let mut bench = Bench::connected();
    let token = bench.boundary.stream(list());
    bench.boundary.give_up(token);
    bench.settle();
    let sent = bench.sent();
    assert!(matches!(
        sent[..],
        [(A, ClientFrame::Request { .. }), (A, ClientFrame::Cancel { id: FIRST })]
    ));
}
