//! When a session is ready, and when never.

use serde_json::json;
use wakeful_wire::rpc::{Call, CallId, Empty, Hello, HelloAgain, ServerFrame};

use super::sample::{config, cursor, events, hello, hello_text, host, ready, text};
use crate::{
    FailureReason, Instant,
    session::{CallEvent, Session, SessionEvent},
};

const NOW: Instant = Instant(1_000);

#[test]
fn an_open_socket_is_not_ready_before_the_hello_whatever_else_comes() {
    let mut session = Session::new(NOW, host());
    let frames = [
        ServerFrame::Heartbeat { head: cursor(1) },
        ServerFrame::Alive { id: CallId(1), head: cursor(1) },
        ServerFrame::Config { config: config(9) },
        ServerFrame::Response { id: CallId(0), result: json!({}) },
    ];
    for frame in &frames {
        session.handle_frame(NOW, &text(frame)).unwrap();
        assert!(!session.is_ready());
    }
    let refused = session.call(&Call::Activity(Empty {})).unwrap_err();
    assert_eq!(refused.reason, FailureReason::Transport);
    session.probe(1);
    assert_eq!((session.poll_frame(), session.poll_event()), (None, None));
    assert_eq!(session.poll_timeout(), None, "the attempt's own limit decides");
}

#[test]
fn the_hello_makes_it_ready_and_says_where_the_host_is() {
    let mut session = Session::new(NOW, host());
    session.handle_frame(NOW, &hello_text(hello())).unwrap();
    assert!(session.is_ready());
    assert_eq!(
        events(&mut session),
        [SessionEvent::Ready(Box::new(hello())), SessionEvent::Head(cursor(40))]
    );
    assert_eq!(session.poll_frame(), None, "no frame asks for the configuration");
}

fn again(tag: &str) -> HelloAgain {
    HelloAgain {
        protocol: hello().protocol,
        host: host(),
        tag: tag.to_owned(),
        session: hello().session,
        head: cursor(44),
    }
}

#[test]
fn a_host_that_is_known_may_greet_with_what_has_changed() {
    let known = Hello { tag: Some("t1".to_owned()), ..hello() };
    let mut session = Session::new(NOW, host()).knowing(Some(Box::new(known.clone())));
    session.handle_frame(NOW, &text(&ServerFrame::HelloAgain(Box::new(again("t1"))))).unwrap();
    let whole = Hello { head: cursor(44), ..known };
    assert_eq!(
        events(&mut session),
        [SessionEvent::Ready(Box::new(whole)), SessionEvent::Head(cursor(44))]
    );
}

#[test]
fn a_greeting_that_counts_on_what_is_not_known_or_of_another_host_ends_the_session() {
    let known = Hello { tag: Some("t1".to_owned()), ..hello() };
    let other = "1199f0a0-7b5c-7c3e-9d2f-6a1b2c3d4e06".parse().unwrap();
    let table = [
        (None, again("t1"), FailureReason::Remote),
        (Some(known.clone()), again("t2"), FailureReason::Remote),
        (Some(hello()), again("t1"), FailureReason::Remote),
        (Some(known), HelloAgain { host: other, ..again("t1") }, FailureReason::Configuration),
    ];
    for (known, again, expected) in table {
        let mut session = Session::new(NOW, host()).knowing(known.map(Box::new));
        let frame = text(&ServerFrame::HelloAgain(Box::new(again)));
        assert_eq!(session.handle_frame(NOW, &frame).unwrap_err().reason, expected);
        assert!(!session.is_ready());
    }
}

#[test]
fn another_host_is_an_error_of_configuration() {
    let mut session = Session::new(NOW, host());
    let mut other = hello();
    other.host.id = "1199f0a0-7b5c-7c3e-9d2f-6a1b2c3d4e06".parse().unwrap();
    let failure = session.handle_frame(NOW, &hello_text(other)).unwrap_err();
    assert_eq!(failure.reason, FailureReason::Configuration);
    assert!(!session.is_ready());
    assert_eq!(session.poll_event(), None);
}

#[test]
fn another_protocol_is_unsupported_and_says_who_is_too_old() {
    for (protocol, whose) in [(2, "client"), (0, "host")] {
        let mut session = Session::new(NOW, host());
        let text = hello_text(Hello { protocol, ..hello() });
        let failure = session.handle_frame(NOW, &text).unwrap_err();
        assert_eq!(failure.reason, FailureReason::Unsupported);
        assert!(failure.detail.contains(whose), "{}", failure.detail);
    }
    // Of another protocol, a hello may have any shape.
    let mut session = Session::new(NOW, host());
    let text = json!({ "type": "hello", "protocol": 2, "greetings": [] }).to_string();
    assert_eq!(session.handle_frame(NOW, &text).unwrap_err().reason, FailureReason::Unsupported);
    let mut session = Session::new(NOW, host());
    let text = json!({ "type": "hello", "protocol": 1, "greetings": [] }).to_string();
    assert_eq!(session.handle_frame(NOW, &text).unwrap_err().reason, FailureReason::Remote);
}

#[test]
fn what_cannot_be_read_ends_the_session() {
    let broken = [
        "",
        "nonsense",
        "[]",
        "{}",
        r#"{"type":"item","id":-1,"item":0}"#,
        r#"{"type":"config","config":{"revision":"new"}}"#,
        r#"{"type":"error","id":0,"problem":{}}"#,
    ];
    for text in broken {
        let mut session = ready(NOW);
        session.call(&Call::Activity(Empty {})).unwrap();
        let failure = session.handle_frame(NOW, text).unwrap_err();
        assert_eq!(failure.reason, FailureReason::Remote, "{text}");
        assert!(!session.is_ready(), "{text}");
        assert_eq!(session.poll_frame(), None, "nothing more is sent");
        session.handle_frame(NOW, &hello_text(hello())).unwrap();
        session.handle_frame(NOW, "nonsense").unwrap();
        assert_eq!(session.poll_event(), None, "nothing more is believed");
        assert_eq!(session.poll_timeout(), None);
        assert!(session.call(&Call::Activity(Empty {})).is_err());
    }
}

#[test]
fn a_configuration_that_cannot_be_read_ends_the_session() {
    let mut session = ready(NOW);
    let text = json!({ "type": "config", "config": 4 }).to_string();
    assert_eq!(session.handle_frame(NOW, &text).unwrap_err().reason, FailureReason::Remote);
    assert!(!session.is_ready());
}

#[test]
fn a_frame_of_a_newer_host_is_skipped() {
    let mut session = ready(NOW);
    let text = json!({ "type": "fanfare", "id": 4, "notes": ["c"] }).to_string();
    session.handle_frame(NOW, &text).unwrap();
    assert!(session.is_ready());
    assert_eq!(session.poll_event(), None);
}

#[test]
fn a_second_hello_changes_nothing() {
    let mut session = ready(NOW);
    let mut other = hello();
    other.host.id = "1199f0a0-7b5c-7c3e-9d2f-6a1b2c3d4e06".parse().unwrap();
    session.handle_frame(NOW, &hello_text(other)).unwrap();
    assert!(session.is_ready());
    assert_eq!(session.poll_event(), None);
}

#[test]
fn a_closed_session_says_why_and_does_nothing_more() {
    let mut session = ready(NOW);
    session.call(&Call::Activity(Empty {})).unwrap();
    session.probe(3);
    let failure = session.handle_closed(Some(4503), "suspending");
    assert_eq!(failure.reason, FailureReason::Asleep);
    assert_eq!((session.poll_frame(), session.poll_event()), (None, None));
    assert_eq!(session.poll_timeout(), None);
    session.handle_timeout(Instant(u64::MAX));
    assert_eq!(session.poll_event(), None);
    assert_eq!(session.open_calls(), 0);
}

#[test]
fn an_answer_that_came_before_the_end_counts() {
    let mut session = ready(NOW);
    let id = session.call(&Call::Activity(Empty {})).unwrap();
    session.handle_frame(NOW, &text(&ServerFrame::Response { id, result: json!(1) })).unwrap();
    session.handle_closed(None, "");
    let answer = CallEvent::Response { id, result: json!(1) };
    assert_eq!(events(&mut session), [SessionEvent::Call(answer)]);
}
