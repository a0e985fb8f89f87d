//! Calls and what answers them.

use serde_json::{Value, json};
use wakeful_wire::{
    Code, Problem,
    rpc::{
        CALLS_MAX, CLIENT_FRAME_MAX, Call, CallId, ClientFrame, Empty, ServerFrame, ShellSubscribe,
        ThreadRename,
    },
};

use super::sample::{events, ready, text};
use crate::{
    FailureReason, Instant,
    session::{CallEvent, Session, SessionEvent},
};

const NOW: Instant = Instant(1_000);

fn command() -> Call {
    Call::Activity(Empty {})
}

fn subscription() -> Call {
    Call::ShellSubscribe(ShellSubscribe::default())
}

fn frames(session: &mut Session) -> Vec<ClientFrame> {
    std::iter::from_fn(|| session.poll_frame())
        .map(|text| serde_json::from_str(&text).unwrap())
        .collect()
}

fn hear(session: &mut Session, frame: &ServerFrame) -> Vec<CallEvent> {
    session.handle_frame(NOW, &text(frame)).unwrap();
    events(session)
        .into_iter()
        .map(|event| match event {
            SessionEvent::Call(event) => event,
            other @ (SessionEvent::Ready(_)
            | SessionEvent::Config(_)
            | SessionEvent::Alive { .. }
            | SessionEvent::Head(_)
            | SessionEvent::Silent) => panic!("{other:?}"),
        })
        .collect()
}

#[test]
fn a_command_is_sent_and_answered_once() {
    let mut session = ready(NOW);
    let call = Call::ThreadRename(ThreadRename {
        thread: "0199f0a0-7b5c-7c3e-9d2f-6a1b2c3d4e50".parse().unwrap(),
        title: "Dishes".to_owned(),
    });
    let id = session.call(&call).unwrap();
    let [ClientFrame::Request { id: sent, method, params }] = &frames(&mut session)[..] else {
        panic!("one request")
    };
    assert_eq!(*sent, id);
    assert_eq!(Call::read(method, params.clone()).unwrap(), call);
    let answer = ServerFrame::Response { id, result: json!({ "seq": 41, "changed": true }) };
    let CallEvent::Response { result, .. } = hear(&mut session, &answer).remove(0) else {
        panic!("no answer")
    };
    assert_eq!(result["seq"], 41);
    assert_eq!(hear(&mut session, &answer), [], "the id is free");
    assert_eq!(session.open_calls(), 0);
}

#[test]
fn a_subscription_has_items_in_order_until_the_last_word() {
    let last_words = [
        ServerFrame::End { id: CallId(0) },
        ServerFrame::Error { id: CallId(0), problem: Problem::new(Code::Internal) },
    ];
    for last in &last_words {
        let mut session = ready(NOW);
        let id = session.call(&subscription()).unwrap();
        for n in 0..3 {
            let item = ServerFrame::Item { id, item: json!(n) };
            assert_eq!(hear(&mut session, &item), [CallEvent::Item { id, item: json!(n) }]);
        }
        assert_eq!(hear(&mut session, last).len(), 1);
        let late = ServerFrame::Item { id, item: Value::Null };
        assert_eq!(hear(&mut session, &late), []);
    }
}

#[test]
fn nothing_comes_of_a_cancelled_subscription_and_its_id_is_free_only_after_the_last_word() {
    let mut session = ready(NOW);
    let id = session.call(&subscription()).unwrap();
    session.cancel(id);
    session.cancel(id);
    let sent = frames(&mut session);
    assert!(
        matches!(sent[..], [ClientFrame::Request { .. }, ClientFrame::Cancel { id: ended }] if ended == id)
    );
    assert_eq!(hear(&mut session, &ServerFrame::Item { id, item: json!(1) }), []);
    assert_eq!(session.open_calls(), 1);
    assert_eq!(hear(&mut session, &ServerFrame::End { id }), []);
    assert_eq!(session.open_calls(), 0);
}

#[test]
fn a_command_that_is_left_is_not_called_back_and_counts_until_it_is_answered() {
    let mut session = ready(NOW);
    let id = session.call(&command()).unwrap();
    session.cancel(id);
    assert!(matches!(frames(&mut session)[..], [ClientFrame::Request { .. }]));
    assert_eq!(session.open_calls(), 1);
    let next = session.call(&command()).unwrap();
    assert_ne!(next, id);
    assert_eq!(hear(&mut session, &ServerFrame::Response { id, result: json!(1) }), []);
    assert_eq!(session.open_calls(), 1);
}

#[test]
fn one_call_more_than_a_socket_may_have_is_refused_here() {
    let mut session = ready(NOW);
    let ids: Vec<CallId> = (0..CALLS_MAX).map(|_| session.call(&command()).unwrap()).collect();
    session.cancel(ids[0]);
    assert_eq!(session.call(&command()).unwrap_err().reason, FailureReason::Overloaded);
    assert_eq!(frames(&mut session).len(), CALLS_MAX, "the refused one is not sent");
    hear(&mut session, &ServerFrame::Response { id: ids[0], result: Value::Null });
    assert!(session.call(&command()).is_ok());
}

#[test]
fn a_request_that_would_close_the_socket_is_refused_and_leaves_no_call_open() {
    let mut session = ready(NOW);
    let call = Call::ThreadRename(ThreadRename {
        thread: "0199f0a0-7b5c-7c3e-9d2f-6a1b2c3d4e50".parse().unwrap(),
        title: "x".repeat(CLIENT_FRAME_MAX),
    });
    assert_eq!(session.call(&call).unwrap_err().reason, FailureReason::Configuration);
    assert_eq!((session.poll_frame(), session.open_calls()), (None, 0));
}

#[test]
fn a_probe_overtakes_what_waits_and_a_newer_one_takes_its_place() {
    let mut session = ready(NOW);
    session.call(&command()).unwrap();
    session.call(&command()).unwrap();
    session.probe(7);
    session.probe(8);
    let sent = frames(&mut session);
    assert_eq!(sent[0], ClientFrame::Probe { id: CallId(8) });
    assert_eq!(sent.len(), 3);
}

#[test]
fn a_probe_is_no_call_and_takes_no_id() {
    let mut session = ready(NOW);
    let id = session.call(&subscription()).unwrap();
    session.probe(id.0);
    let alive = ServerFrame::Alive { id, head: super::sample::cursor(1) };
    session.handle_frame(NOW, &text(&alive)).unwrap();
    assert_eq!(events(&mut session).len(), 2);
    assert_eq!(session.open_calls(), 1);
}
