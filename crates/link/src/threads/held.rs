//! A thread's state and the position that it is at: one value.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use wakeful_wire::rpc::{
    Applied, Cursor, Detail, Event, Page, PageCursor, Prepended, Seq, ShellRow, Thread,
};

/// A thread's state and the position that it is at. The two are changed, published, retained and
/// saved together and never apart, so that a resume misses nothing: the position may lag behind the
/// state, it never leads.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Held {
    /// The thread and a window of its content. Shared: a change copies it only while somebody else
    /// holds it.
    pub detail: Arc<Detail>,
    /// What it is at.
    pub cursor: Cursor,
}

impl Held {
    /// Where the window begins; nothing if at the beginning.
    #[must_use]
    pub fn before(&self) -> Option<PageCursor> {
        self.detail.page.before
    }

    /// Whether a turn runs, or a prompt waits that nobody holds back. A row of the list says the
    /// same by [`row_is_running`].
    #[must_use]
    pub fn is_running(&self) -> bool {
        is_running(&self.detail.thread)
    }

    /// Those of some events that are not in yet, in order.
    pub(super) fn new_of(&self, events: &[Event]) -> Vec<Event> {
        let thread = &self.detail.thread;
        let mut newest = thread.seq;
        let mut is_new = |event: &&Event| {
            let new = event.thread == Some(thread.id) && event.seq > newest;
            newest = newest.max(event.seq);
            new
        };
        events.iter().filter(|event| is_new(event)).cloned().collect()
    }

    /// Takes in events as one update: first the state, and the position only when all are in.
    /// Returns whether the state changed.
    pub(super) fn take_in(&mut self, events: &[Event]) -> bool {
        let thread = &self.detail.thread;
        let is_new = |event: &Event| event.thread == Some(thread.id) && event.seq > thread.seq;
        // Asked first, because what comes twice must not cost a copy.
        let changed = events.iter().any(is_new);
        if changed {
            let detail = Arc::make_mut(&mut self.detail);
            let taken = events.iter().filter(|event| detail.apply(event) == Applied::Changed);
            let newest = taken.map(|event| event.seq).last().unwrap_or(Seq::ZERO);
            self.cursor.seq = self.cursor.seq.max(newest);
        }
        changed
    }

    /// The host has confirmed a position that is at least this one.
    pub(super) fn confirm(&mut self, cursor: Cursor) {
        self.cursor = Cursor { epoch: cursor.epoch, seq: self.cursor.seq.max(cursor.seq) };
    }

    /// Puts an older page before the window.
    pub(super) fn prepend(&mut self, asked: PageCursor, page: Page) -> Prepended {
        Arc::make_mut(&mut self.detail).prepend(asked, page)
    }

    /// Leaves at most so many of the newest segments, and moves the window's beginning with it.
    pub(super) fn keep_newest(&mut self, most: usize) {
        let over = self.detail.page.segments.len().saturating_sub(most);
        if over == 0 {
            return;
        }
        let detail = Arc::make_mut(&mut self.detail);
        detail.page.segments.drain(..over);
        if let Some(first) = detail.page.segments.first() {
            let (segment, item) = (first.number, first.skipped);
            let created = detail.thread.created;
            detail.page.before = Some(PageCursor { created, segment, item });
        }
    }

    /// How many segments are in the window.
    pub(super) fn segments(&self) -> usize {
        self.detail.page.segments.len()
    }

    /// About how much it holds: its length as JSON, in bytes.
    pub(super) fn weight(&self) -> usize {
        let mut counted = Counted(0);
        match serde_json::to_writer(&mut counted, self) {
            Ok(()) => counted.0,
            Err(_) => usize::MAX,
        }
    }
}

/// Counts what is written and keeps nothing.
struct Counted(usize);

impl std::io::Write for Counted {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0 = self.0.saturating_add(bytes.len());
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

fn is_running(thread: &Thread) -> bool {
    thread.turn.is_some() || !thread.queue.is_empty() && !thread.held
}

/// Whether a row of the list says that a turn runs, or that a prompt waits that nobody holds back.
#[must_use]
pub const fn row_is_running(row: &ShellRow) -> bool {
    row.running_since.is_some() || row.queued > 0 && !row.held
}
