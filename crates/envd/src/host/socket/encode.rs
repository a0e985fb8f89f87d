//! Frames as text.
//!
//! Events come with their JSON already made, once for everybody ([`Recorded::text`]); an item of
//! them is put together from those texts.

use std::sync::Arc;

use serde::Serialize;
use wakeful_wire::{
    Problem,
    rpc::{CallId, ServerFrame},
};

use crate::thread::{feed::ThreadDelivery, view::Recorded};

/// What is around the texts of an item of events.
const AROUND: usize = 96;

/// A frame.
pub(super) fn frame(frame: &ServerFrame) -> String {
    serde_json::to_string(frame).expect("a frame is always JSON")
}

/// The last word on a call that failed.
pub(super) fn error(id: CallId, problem: Problem) -> String {
    frame(&ServerFrame::Error { id, problem })
}

/// The frame of an item.
pub(super) fn item(id: CallId, item: &impl Serialize) -> String {
    let mut text = begin(id, AROUND).into_bytes();
    serde_json::to_writer(&mut text, item).expect("an item is always JSON");
    text.push(b'}');
    String::from_utf8(text).expect("JSON is UTF-8")
}

/// The frame of what a thread's subscriber is sent.
pub(super) fn thread_item(id: CallId, delivery: ThreadDelivery) -> String {
    match delivery {
        ThreadDelivery::Events(events) => events_item(id, &events),
        other @ (ThreadDelivery::Snapshot(..)
        | ThreadDelivery::Resumed(_)
        | ThreadDelivery::Synchronized(_)
        | ThreadDelivery::Deleted(_)) => item(id, &other.into_item()),
    }
}

fn begin(id: CallId, capacity: usize) -> String {
    let mut text = String::with_capacity(capacity);
    text.push_str(r#"{"type":"item","id":"#);
    text.push_str(itoa(id.0, &mut [0; 10]));
    text.push_str(r#","item":"#);
    text
}

/// The digits of a number, without an allocation.
fn itoa(mut number: u32, buffer: &mut [u8; 10]) -> &str {
    let mut at = buffer.len();
    loop {
        at -= 1;
        buffer[at] = b'0' + u8::try_from(number % 10).unwrap_or_default();
        number /= 10;
        if number == 0 {
            return std::str::from_utf8(&buffer[at..]).unwrap_or_default();
        }
    }
}

fn events_item(id: CallId, events: &[Arc<Recorded>]) -> String {
    let bytes: usize = events.iter().map(|event| event.text().len() + 1).sum();
    let mut text = begin(id, AROUND + bytes);
    text.push_str(r#"{"type":"events","events":["#);
    for (at, event) in events.iter().enumerate() {
        if at > 0 {
            text.push(',');
        }
        text.push_str(event.text());
    }
    text.push_str("]}}");
    text
}

#[cfg(test)]
mod tests {
    use wakeful_wire::{
        Timestamp,
        rpc::{Cursor, Event, EventBody, Seq, ThreadItem},
    };

    use super::*;

    fn recorded(seq: u64) -> Arc<Recorded> {
        let body = EventBody::Titled {
            title: "\"quoted\" \u{1f9e6}\n".to_owned(),
            by: Default::default(),
        };
        let event = Event { seq: Seq(seq), at: Timestamp(5), thread: None, body };
        Recorded::new(event, 10).into_shared()
    }

    fn parsed(text: &str) -> (CallId, ThreadItem) {
        let ServerFrame::Item { id, item } = serde_json::from_str(text).unwrap() else {
            panic!("no item: {text}")
        };
        (id, serde_json::from_value(item).unwrap())
    }

    #[test]
    fn an_item_that_is_put_together_is_what_the_wire_types_write() {
        for id in [0, 7, 4_294_967_295] {
            for count in [1, 2, 30] {
                let events: Vec<_> = (1..=count).map(recorded).collect();
                let delivery = ThreadDelivery::Events(events);
                let text = thread_item(CallId(id), delivery.clone());
                assert_eq!(parsed(&text), (CallId(id), delivery.into_item()));
            }
        }
    }

    #[test]
    fn every_other_item_is_whole_too() {
        let cursor = Cursor::default();
        for delivery in [
            ThreadDelivery::Resumed(cursor),
            ThreadDelivery::Synchronized(cursor),
            ThreadDelivery::Deleted(Seq(9)),
        ] {
            let text = thread_item(CallId(10), delivery.clone());
            assert_eq!(parsed(&text), (CallId(10), delivery.into_item()));
        }
    }
}
