//! Subscriptions from session to session.

use serde_json::json;
use wakeful_wire::rpc::{CallId, ClientFrame, ServerFrame};

use super::bench::{A, B, Bench, command, list};
use crate::{
    FailureReason,
    boundary::{Action, OnFailure, Over, SUBSCRIPTIONS_MAX},
    session::CallEvent,
};

const FIRST: CallId = CallId(0);

#[test]
fn without_a_session_a_subscription_waits_in_silence() {
    let mut bench = Bench::default();
    let subscription = bench.boundary.subscribe(OnFailure::Surface).unwrap();
    bench.pass(1_000_000);
    assert_eq!(bench.log(), []);
    bench.boundary.handle_input(subscription, list());
    bench.boundary.resubscribe(subscription);
    bench.settle();
    assert_eq!((bench.log(), bench.sent()), (vec![], vec![]), "nobody asked for its input");
    bench.publish(A);
    bench.build(subscription);
}

#[test]
fn items_come_in_order() {
    let mut bench = Bench::connected();
    let (subscription, id) = bench.subscribed(OnFailure::Surface);
    for n in 0..3 {
        bench.item(A, id, n);
        assert_eq!(bench.log(), [Action::Item { subscription, item: json!(n) }]);
    }
}

#[test]
fn a_subscription_moves_to_the_replacement_with_freshly_built_input() {
    let mut bench = Bench::connected();
    let (subscription, _) = bench.subscribed(OnFailure::Surface);
    bench.boundary.handle_unpublished();
    bench.publish(B);
    assert_eq!(
        bench.log(),
        [Action::Lost { subscription }, Action::Build { subscription }],
        "its owner is asked again"
    );
    bench.boundary.handle_input(subscription, list());
    bench.settle();
    let sent = bench.sent();
    assert!(matches!(&sent[..], [(over, ClientFrame::Request { .. })] if *over == B), "{sent:?}");
    assert_eq!(bench.log(), [Action::Started { subscription }]);
    bench.item(B, FIRST, 1);
    assert_eq!(bench.log(), [Action::Item { subscription, item: json!(1) }]);
}

#[test]
fn the_end_of_a_session_is_silent_and_asks_for_nothing() {
    let mut bench = Bench::connected();
    let (subscription, _) = bench.subscribed(OnFailure::Surface);
    bench.unpublish();
    bench.pass(1_000_000);
    assert_eq!(bench.log(), [Action::Lost { subscription }], "no failure, no retry");
    assert_eq!(bench.boundary.poll_timeout(), None);
    assert_eq!(bench.sent(), []);
    bench.publish(B);
    bench.build(subscription);
}

#[test]
fn one_that_was_not_started_yet_is_not_lost() {
    let mut bench = Bench::connected();
    let subscription = bench.boundary.subscribe(OnFailure::Surface).unwrap();
    bench.unpublish();
    assert_eq!(bench.log(), [Action::Build { subscription }]);
    bench.boundary.handle_input(subscription, list());
    bench.settle();
    assert_eq!(bench.sent(), [], "the session that asked is gone");
    bench.publish(B);
    bench.build(subscription);
}

#[test]
fn what_an_old_socket_still_delivers_changes_nothing() {
    let mut bench = Bench::connected();
    let (subscription, id) = bench.subscribed(OnFailure::Surface);
    bench.boundary.request(bench.now, command());
    bench.settle();
    bench.publish(B);
    bench.log();
    bench.boundary.handle_input(subscription, list());
    let again = bench.boundary.request(bench.now, command());
    bench.settle();
    bench.log();
    let command_ids: Vec<(_, CallId)> = bench
        .sent()
        .into_iter()
        .filter_map(|(over, frame)| match frame {
            ClientFrame::Request { id, method, .. } => (method == "activity").then_some((over, id)),
            ClientFrame::Cancel { .. } | ClientFrame::Probe { .. } | ClientFrame::Unknown => None,
        })
        .collect();
    assert_eq!(command_ids, [(A, CallId(1)), (B, CallId(1))], "the same id on both sockets");
    // Both calls are open on the old session, under the ids that the new one uses.
    bench.item(A, id, "old");
    bench.says(A, &ServerFrame::Response { id: CallId(1), result: json!("old") });
    bench.says(A, &ServerFrame::End { id });
    assert_eq!(bench.log(), []);
    bench.item(B, id, "new");
    bench.says(B, &ServerFrame::Response { id: CallId(1), result: json!("new") });
    assert_eq!(
        bench.log(),
        [
            Action::Item { subscription, item: json!("new") },
            Action::Finished { token: again, outcome: Ok(json!("new")) },
        ]
    );
}

#[test]
fn a_late_answer_to_a_sending_of_an_old_session_changes_nothing() {
    let mut bench = Bench::connected();
    let subscription = bench.boundary.subscribe(OnFailure::Surface).unwrap();
    bench.settle();
    bench.boundary.handle_input(subscription, list());
    let Some(Action::Send { sending, .. }) = bench.boundary.poll_action() else {
        panic!("it is sent")
    };
    bench.publish(B);
    bench.log();
    bench.boundary.handle_sent(bench.now, sending, Ok(FIRST));
    bench.settle();
    assert_eq!(bench.log(), []);
    let event = CallEvent::Item { id: FIRST, item: json!("old") };
    for attempt in [A, B] {
        bench.boundary.handle_event(bench.now, attempt, event.clone());
        bench.settle();
    }
    assert_eq!(bench.log(), [], "there is no such call on the new one");
}

#[test]
fn one_that_missed_something_begins_anew_on_the_same_session() {
    let mut bench = Bench::connected();
    let (subscription, id) = bench.subscribed(OnFailure::Surface);
    bench.boundary.resubscribe(subscription);
    bench.boundary.resubscribe(subscription);
    bench.settle();
    assert_eq!(bench.log(), [Action::Build { subscription }], "once, however often it is asked");
    bench.item(A, id, "of before");
    assert_eq!(bench.log(), []);
    bench.boundary.handle_input(subscription, list());
    bench.settle();
    let sent: Vec<_> = bench.sent().into_iter().map(|(_, frame)| frame).collect();
    assert!(matches!(sent[0], ClientFrame::Cancel { id: old } if old == id));
    let ClientFrame::Request { id: anew, .. } = sent[1] else { panic!("{sent:?}") };
    assert_ne!(anew, id, "the old id is not free yet");
    bench.says(A, &ServerFrame::End { id });
    bench.item(A, anew, 1);
    let item = Action::Item { subscription, item: json!(1) };
    assert_eq!(bench.log(), [Action::Started { subscription }, item]);
}

#[test]
fn one_that_begins_anew_while_it_is_being_sent_leaves_no_call_behind() {
    let mut bench = Bench::connected();
    let subscription = bench.boundary.subscribe(OnFailure::Surface).unwrap();
    bench.settle();
    bench.boundary.handle_input(subscription, list());
    bench.boundary.resubscribe(subscription);
    bench.settle();
    let build = Action::Build { subscription };
    assert_eq!(bench.log(), [build.clone(), build], "nothing was started in between");
    let sent = bench.sent();
    assert!(matches!(
        sent[..],
        [(A, ClientFrame::Request { .. }), (A, ClientFrame::Cancel { id: FIRST })]
    ));
}

#[test]
fn one_that_is_ended_is_ended_at_the_host_and_says_nothing_more() {
    let mut bench = Bench::connected();
    let (subscription, id) = bench.subscribed(OnFailure::Surface);
    bench.boundary.unsubscribe(subscription);
    bench.boundary.unsubscribe(subscription);
    bench.settle();
    assert!(matches!(bench.sent()[..], [(A, ClientFrame::Cancel { id: ended })] if ended == id));
    bench.item(A, id, 1);
    bench.says(A, &ServerFrame::End { id });
    bench.publish(B);
    assert_eq!((bench.log(), bench.sent()), (vec![], vec![]));
}

#[test]
fn there_is_a_bound_that_leaves_room_for_commands() {
    let mut bench = Bench::connected();
    let all: Vec<_> = (0..SUBSCRIPTIONS_MAX)
        .map(|_| bench.boundary.subscribe(OnFailure::Surface).unwrap())
        .collect();
    let refused = bench.boundary.subscribe(OnFailure::Surface).unwrap_err();
    assert_eq!(refused.reason, FailureReason::Overloaded);
    for subscription in &all {
        bench.boundary.handle_input(*subscription, list());
    }
    bench.settle();
    assert_eq!(bench.sent().len(), SUBSCRIPTIONS_MAX);
    bench.log();
    bench.boundary.request(bench.now, command());
    bench.settle();
    assert_eq!((bench.sent().len(), bench.log()), (1, vec![]));
    bench.boundary.unsubscribe(all[0]);
    assert!(bench.boundary.subscribe(OnFailure::Surface).is_ok());
}

#[test]
fn input_that_has_no_items_ends_the_subscription() {
    let mut bench = Bench::connected();
    let subscription = bench.boundary.subscribe(OnFailure::Dormant).unwrap();
    bench.settle();
    bench.log();
    bench.boundary.handle_input(subscription, command());
    bench.settle();
    let log = bench.log();
    assert!(matches!(log[..], [Action::Over { over: Over::Failed(_), .. }]), "{log:?}");
    assert_eq!(bench.sent(), []);
}
