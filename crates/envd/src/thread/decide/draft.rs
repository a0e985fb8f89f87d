//! A decision in the making.

use std::collections::HashMap;

use wakeful_wire::{
    Timestamp,
    rpc::{Event, EventBody, Thread, ThreadId},
};

use crate::thread::{
    command::Refused,
    numbering::Numbering,
    state::{Entry, State},
};

/// The events of a decision, and the threads as they are after them, so that each step of the
/// decision sees the ones before.
#[derive(Debug)]
pub(crate) struct Draft<'a> {
    pub(crate) state: &'a State,
    pub(crate) now: Timestamp,
    touched: HashMap<ThreadId, Entry>,
    events: Vec<Event>,
}

impl<'a> Draft<'a> {
    pub(crate) fn new(state: &'a State, now: Timestamp) -> Self {
        Self { state, now, touched: HashMap::new(), events: Vec::new() }
    }

    /// The thread as it is by now, deleted or not.
    pub(crate) fn entry(&self, id: ThreadId) -> Option<&Entry> {
        self.touched.get(&id).or_else(|| self.state.threads.get(&id).map(AsRef::as_ref))
    }

    /// The thread as it is by now.
    ///
    /// # Errors
    /// If it is unknown or deleted.
    pub(crate) fn present(&self, id: ThreadId) -> Result<&Thread, Refused> {
        let thread = &self.entry(id).ok_or(Refused::UnknownThread)?.thread;
        if thread.deleted { Err(Refused::Deleted) } else { Ok(thread) }
    }

    /// How the thread's next item is numbered.
    pub(crate) fn numbering(&self, id: ThreadId) -> Numbering {
        self.entry(id).map(|entry| entry.numbering.clone()).unwrap_or_default()
    }

    /// Adds an event of a thread.
    pub(crate) fn push(&mut self, id: ThreadId, body: EventBody) {
        let event = self.number(Some(id), body);
        if let Some(entry) = self.touched.get_mut(&id) {
            entry.apply(&event);
        } else if let Some(held) = self.state.threads.get(&id) {
            let mut entry = Entry::clone(held);
            entry.apply(&event);
            self.touched.insert(id, entry);
        } else if let Some(thread) = Thread::created(&event) {
            self.touched.insert(id, Entry { thread, numbering: Numbering::default() });
        }
        self.events.push(event);
    }

    /// Adds an event of the host.
    pub(crate) fn push_host(&mut self, body: EventBody) {
        let event = self.number(None, body);
        self.events.push(event);
    }

    fn number(&self, thread: Option<ThreadId>, body: EventBody) -> Event {
        let before = self.events.last().map_or(self.state.head, |event| event.seq);
        Event { seq: before.next(), at: self.now, thread, body }
    }

    /// How many events there are.
    pub(crate) const fn len(&self) -> usize {
        self.events.len()
    }

    pub(crate) fn into_events(self) -> Vec<Event> {
        self.events
    }
}
