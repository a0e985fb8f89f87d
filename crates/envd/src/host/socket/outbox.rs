//! What waits to be sent on a socket, and what goes first.
//!
//! Pure: it is asked for the next frame when the one before was written. What shows the newest head
//! is only noted here and made into text when its turn comes.

use std::collections::VecDeque;

use wakeful_wire::rpc::CallId;

use super::calls::Key;

/// Answers to probes that wait while more is read.
pub(super) const ALIVE_MAX: usize = 64;
/// Answers to calls that wait while more is read.
pub(super) const ANSWERS_MAX: usize = 256;
/// The same in bytes.
pub(super) const ANSWERS_BYTES_MAX: usize = 1024 * 1024;
/// Bytes of items that wait while subscriptions are asked for more.
pub(super) const ITEMS_BYTES_MAX: usize = 1024 * 1024;

/// What is sent next.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Next {
    /// A WebSocket ping.
    Ping,
    /// The answer to a probe.
    Alive(CallId),
    /// A heartbeat.
    Heartbeat,
    /// The configuration as it is by now.
    Config,
    /// What answers a call for good.
    Answer(String),
    /// An item of a subscription.
    Item(Key, String),
}

/// What waits.
#[derive(Debug, Default)]
pub(super) struct Outbox {
    ping: bool,
    alive: VecDeque<CallId>,
    heartbeat: bool,
    config: bool,
    answers: VecDeque<String>,
    answers_bytes: usize,
    items: VecDeque<(Key, String)>,
    items_bytes: usize,
}

impl Outbox {
    /// A ping is due.
    pub(super) const fn ping(&mut self) {
        self.ping = true;
    }

    /// A heartbeat is due.
    pub(super) const fn heartbeat(&mut self) {
        self.heartbeat = true;
    }

    /// A probe is to be answered.
    pub(super) fn alive(&mut self, id: CallId) {
        self.alive.push_back(id);
    }

    /// The configuration has changed. Several changes that nobody was told of are one.
    pub(super) const fn config(&mut self) {
        self.config = true;
    }

    /// A call is answered for good.
    pub(super) fn answer(&mut self, text: String) {
        self.answers_bytes += text.len();
        self.answers.push_back(text);
    }

    /// A subscription that has no item waiting has one.
    pub(super) fn item(&mut self, key: Key, text: String) {
        self.items_bytes += text.len();
        self.items.push_back((key, text));
    }

    /// A subscription is over: what waits of it is not sent.
    pub(super) fn forget(&mut self, key: Key) {
        let bytes = &mut self.items_bytes;
        self.items.retain(|(of, text)| {
            let keeps = *of != key;
            if !keeps {
                *bytes -= text.len();
            }
            keeps
        });
    }

    /// Whether more may be read from the client.
    pub(super) fn reads(&self) -> bool {
        self.alive.len() < ALIVE_MAX
            && self.answers.len() < ANSWERS_MAX
            && self.answers_bytes < ANSWERS_BYTES_MAX
    }

    /// Whether subscriptions may be asked for more.
    pub(super) const fn has_room(&self) -> bool {
        self.items_bytes < ITEMS_BYTES_MAX
    }

    /// What is sent next.
    pub(super) fn poll(&mut self) -> Option<Next> {
        if std::mem::take(&mut self.ping) {
            return Some(Next::Ping);
        }
        if let Some(id) = self.alive.pop_front() {
            return Some(Next::Alive(id));
        }
        if std::mem::take(&mut self.heartbeat) {
            return Some(Next::Heartbeat);
        }
        if std::mem::take(&mut self.config) {
            return Some(Next::Config);
        }
        if let Some(answer) = self.poll_answer() {
            return Some(Next::Answer(answer));
        }
        let (key, text) = self.items.pop_front()?;
        self.items_bytes -= text.len();
        Some(Next::Item(key, text))
    }

    /// The next answer to a call, whatever goes before it.
    pub(super) fn poll_answer(&mut self) -> Option<String> {
        let text = self.answers.pop_front()?;
        self.answers_bytes -= text.len();
        Some(text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::socket::calls::{Calls, Kind};

    fn keys(many: u32) -> Vec<Key> {
        let mut calls = Calls::default();
        (0..many).map(|n| calls.open(CallId(n), Kind::Subscription).unwrap()).collect()
    }

    #[test]
    fn signs_of_life_overtake_everything_and_answers_overtake_items() {
        let keys = keys(2);
        let mut outbox = Outbox::default();
        outbox.item(keys[0], "a".to_owned());
        outbox.item(keys[1], "b".to_owned());
        outbox.answer("x".to_owned());
        outbox.config();
        outbox.config();
        outbox.heartbeat();
        outbox.alive(CallId(7));
        outbox.ping();
        let order: Vec<_> = std::iter::from_fn(|| outbox.poll()).collect();
        let expected = [
            Next::Ping,
            Next::Alive(CallId(7)),
            Next::Heartbeat,
            Next::Config,
            Next::Answer("x".to_owned()),
            Next::Item(keys[0], "a".to_owned()),
            Next::Item(keys[1], "b".to_owned()),
        ];
        assert_eq!(order, expected);
    }

    #[test]
    fn reading_stops_at_each_bound_and_goes_on_below_it() {
        let mut outbox = Outbox::default();
        for n in 0..ALIVE_MAX {
            assert!(outbox.reads());
            outbox.alive(CallId(u32::try_from(n).unwrap()));
        }
        assert!(!outbox.reads());
        outbox.poll();
        assert!(outbox.reads());
        for _ in 1..ALIVE_MAX {
            outbox.poll();
        }
        for _ in 0..ANSWERS_MAX {
            assert!(outbox.reads());
            outbox.answer("x".to_owned());
        }
        assert!(!outbox.reads());
        while outbox.poll().is_some() {}
        outbox.answer("x".repeat(ANSWERS_BYTES_MAX));
        assert!(!outbox.reads());
        outbox.poll();
        assert!(outbox.reads());
    }

    #[test]
    fn items_that_were_sent_or_forgotten_make_room() {
        let keys = keys(2);
        let mut outbox = Outbox::default();
        outbox.item(keys[0], "x".repeat(ITEMS_BYTES_MAX));
        assert!(!outbox.has_room() && outbox.reads(), "items never stop the reading");
        outbox.item(keys[1], "y".to_owned());
        outbox.forget(keys[0]);
        assert!(outbox.has_room());
        assert_eq!(outbox.poll(), Some(Next::Item(keys[1], "y".to_owned())));
        assert_eq!((outbox.poll(), outbox.items_bytes), (None, 0));
    }
}
