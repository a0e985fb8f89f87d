//! Sessions under random frames and calls.

use std::collections::{BTreeMap, BTreeSet};

use proptest::{collection::vec, prelude::*};
use serde_json::json;
use wakeful_wire::{
    Code, Problem,
    rpc::{CALLS_MAX, Call, CallId, ClientFrame, Empty, ServerFrame, ShellSubscribe},
};

use super::tests::sample::{cursor, ready, text};
use crate::{
    Instant,
    session::{CallEvent, SessionEvent},
};

#[derive(Debug, Clone)]
enum Step {
    Call { subscription: bool },
    Cancel(u32),
    Probe(u32),
    Answer { id: u32, how: u8 },
    Wait(u64),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        any::<bool>().prop_map(|subscription| Step::Call { subscription }),
        (0..24_u32).prop_map(Step::Cancel),
        (0..24_u32).prop_map(Step::Probe),
        (0..24_u32, 0..6_u8).prop_map(|(id, how)| Step::Answer { id, how }),
        (0..20_000_u64).prop_map(Step::Wait),
    ]
}

/// What a host may say at any time, whether it makes sense or not.
fn frame(id: u32, how: u8) -> ServerFrame {
    let id = CallId(id);
    match how {
        0 => ServerFrame::Response { id, result: json!(id.0) },
        1 => ServerFrame::Error { id, problem: Problem::new(Code::Internal) },
        2 => ServerFrame::End { id },
        3 => ServerFrame::Heartbeat { head: cursor(1) },
        4 => ServerFrame::Alive { id, head: cursor(2) },
        _ => ServerFrame::Item { id, item: json!(id.0) },
    }
}

proptest! {
    /// A call is open from its request to the host's last word; what comes is of an open call that
    /// somebody waits for; no id is given out twice while it is open.
    #[test]
    fn events_belong_to_calls_that_are_open_and_awaited(steps in vec(step(), 0..400)) {
        let mut now = Instant(0);
        let mut session = ready(now);
        // The reference: each open call, and whether somebody waits for it.
        let mut open: BTreeMap<CallId, bool> = BTreeMap::new();
        for step in steps {
            match step {
                Step::Call { subscription } => {
                    let call = if subscription {
                        Call::ShellSubscribe(ShellSubscribe::default())
                    } else {
                        Call::Activity(Empty {})
                    };
                    match session.call(&call) {
                        Ok(id) => prop_assert_eq!(open.insert(id, true), None),
                        Err(_) => prop_assert_eq!(open.len(), CALLS_MAX),
                    }
                }
                Step::Cancel(id) => {
                    session.cancel(CallId(id));
                    if let Some(awaited) = open.get_mut(&CallId(id)) {
                        *awaited = false;
                    }
                }
                Step::Probe(check) => session.probe(check),
                Step::Answer { id, how } => {
                    let expected = open.get(&CallId(id)).copied().unwrap_or_default();
                    session.handle_frame(now, &text(&frame(id, how))).unwrap();
                    let mut heard = 0;
                    while let Some(event) = session.poll_event() {
                        if let SessionEvent::Call(event) = event {
                            prop_assert_eq!(event.id(), CallId(id));
                            prop_assert_eq!(matches!(event, CallEvent::Item { .. }), how == 5);
                            heard += 1;
                        }
                    }
                    let about_a_call = matches!(how, 0..=2 | 5);
                    prop_assert_eq!(heard, u32::from(expected && about_a_call));
                    if how <= 2 {
                        open.remove(&CallId(id));
                    }
                }
                Step::Wait(ms) => {
                    now = Instant(now.0 + ms);
                    session.handle_timeout(now);
                    prop_assert!(session.poll_timeout().is_none_or(|at| at > now));
                    while session.poll_event().is_some() {}
                }
            }
            prop_assert_eq!(session.open_calls(), open.len());
        }
        let mut requested = BTreeSet::new();
        while let Some(text) = session.poll_frame() {
            match serde_json::from_str::<ClientFrame>(&text).unwrap() {
                ClientFrame::Request { id, .. } => {
                    requested.insert(id);
                }
                ClientFrame::Cancel { id } => prop_assert!(requested.contains(&id)),
                ClientFrame::Probe { .. } => {}
                ClientFrame::Unknown => prop_assert!(false, "{text}"),
            }
        }
    }

    /// Whatever text comes, a session answers and stays within its bounds.
    #[test]
    fn no_text_makes_a_session_panic(texts in vec(".{0,64}", 0..16), close in any::<Option<u16>>()) {
        let mut session = ready(Instant(0));
        for text in &texts {
            let _ = session.handle_frame(Instant(1), text);
        }
        let reason = texts.concat();
        prop_assert!(session.handle_closed(close, &reason).detail.chars().count() < 256);
        prop_assert_eq!(session.poll_frame(), None);
    }
}
