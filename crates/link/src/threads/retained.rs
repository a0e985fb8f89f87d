//! What is kept of threads that nobody looks at any more.

use std::{collections::BTreeMap, time::Duration};

use wakeful_wire::rpc::ThreadId;

use super::Held;
use crate::Instant;

/// How long a thread is kept after its last consumer went, so that going back to it needs no
/// snapshot (seed, Thread detail).
pub const RETENTION: Duration = Duration::from_secs(300);
/// Most threads that are kept; at more, the one that went first goes.
pub const RETAINED_MAX: usize = 32;
/// Most bytes of JSON that are kept, over all of them; at more, the one that went first goes.
pub const RETAINED_BYTES_MAX: usize = 64 * 1024 * 1024;

/// State, position and pagination of a thread that nobody looks at any more.
#[derive(Debug)]
pub(super) struct Kept {
    /// State and position. The window is part of the state.
    pub(super) held: Held,
    /// Whether a person has made the window longer.
    pub(super) loaded: bool,
}

#[derive(Debug)]
struct Entry {
    kept: Kept,
    weight: usize,
    until: Instant,
    /// Which of those that went at one moment went first.
    order: u64,
}

/// The threads that are kept for a while.
#[derive(Debug, Default)]
pub(super) struct Retained {
    entries: BTreeMap<ThreadId, Entry>,
    order: u64,
}

impl Retained {
    /// Keeps a thread from now on.
    pub(super) fn put(&mut self, now: Instant, thread: ThreadId, kept: Kept) {
        self.order += 1;
        let (weight, until) = (kept.held.weight(), now.after(RETENTION));
        self.entries.insert(thread, Entry { kept, weight, until, order: self.order });
        while self.entries.len() > RETAINED_MAX || self.weight() > RETAINED_BYTES_MAX {
            let first = self.entries.iter().min_by_key(|(_, entry)| (entry.until, entry.order));
            let Some(thread) = first.map(|(thread, _)| *thread) else { break };
            self.entries.remove(&thread);
        }
    }

    fn weight(&self) -> usize {
        self.entries.values().fold(0, |sum, entry| sum.saturating_add(entry.weight))
    }

    /// What was kept of a thread, if its time is not up.
    pub(super) fn take(&mut self, now: Instant, thread: ThreadId) -> Option<Kept> {
        self.entries.remove(&thread).filter(|entry| entry.until > now).map(|entry| entry.kept)
    }

    /// Keeps it no longer.
    pub(super) fn drop(&mut self, thread: ThreadId) {
        self.entries.remove(&thread);
    }

    /// When the next one's time is up.
    pub(super) fn poll_timeout(&self) -> Option<Instant> {
        self.entries.values().map(|entry| entry.until).min()
    }

    /// Drops those whose time is up.
    pub(super) fn handle_timeout(&mut self, now: Instant) {
        self.entries.retain(|_, entry| entry.until > now);
    }
}
