//! What the machine wants done, and the numbers that answers come back with.

use std::collections::VecDeque;

use wakeful_wire::rpc::{PageCursor, ThreadId};

use super::Held;

/// One who looks at a thread. Drawn by [`Threads::mount`](super::Threads::mount), never reused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ConsumerId(pub u64);

/// One life of a thread's stream, from its first consumer to its last. What comes with another
/// scope than the present one is of the past and changes nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct StreamId {
    /// The thread.
    pub thread: ThreadId,
    /// Which of its lives. Never reused within one host.
    pub scope: u64,
}

/// One request for an older page. Never reused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct FetchId(pub u64);

/// One change of the cache on disk. Never reused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct WriteId(pub u64);

/// Something that the parent is to do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Action {
    /// Read the cached copy, and answer by [`Threads::handle_cached`](super::Threads::handle_cached).
    LoadCache {
        /// For whom.
        stream: StreamId,
    },
    /// Open a durable subscription. At each of its beginnings its input is asked for by
    /// [`Threads::subscription_input`](super::Threads::subscription_input).
    Subscribe {
        /// For whom.
        stream: StreamId,
    },
    /// Close the subscription for good. Without effect if it is over already.
    Unsubscribe {
        /// Whose.
        stream: StreamId,
    },
    /// Begin the subscription anew on the same session.
    Resubscribe {
        /// Whose.
        stream: StreamId,
    },
    /// Replace the cached copy: state and cursor in one. Answered by
    /// [`Threads::handle_written`](super::Threads::handle_written), also where it failed.
    Save {
        /// Comes back with the answer.
        write: WriteId,
        /// The thread.
        thread: ThreadId,
        /// What is saved.
        held: Box<Held>,
    },
    /// Remove the cached copy. Answered like [`Action::Save`].
    Forget {
        /// Comes back with the answer.
        write: WriteId,
        /// The thread.
        thread: ThreadId,
    },
    /// Read the page that ends before the cursor, and answer by
    /// [`Threads::handle_page`](super::Threads::handle_page).
    FetchPage {
        /// Comes back with the answer.
        fetch: FetchId,
        /// The thread.
        thread: ThreadId,
        /// Where the page ends.
        before: PageCursor,
    },
    /// End that request; its answer is no longer wanted.
    CancelFetch {
        /// Which.
        fetch: FetchId,
    },
    /// What [`Threads::thread`](super::Threads::thread) says has changed. Said once, however much
    /// changed since the queue was last emptied.
    Changed {
        /// The thread.
        thread: ThreadId,
    },
}

/// The queue of actions. The parent empties it after every input, so it holds what one input can
/// cause: a few actions for each stream.
#[derive(Debug, Default)]
pub(super) struct Outbox {
    queue: VecDeque<Action>,
    drawn: u64,
}

impl Outbox {
    pub(super) fn push(&mut self, action: Action) {
        self.queue.push_back(action);
    }

    pub(super) fn changed(&mut self, thread: ThreadId) {
        let changed = Action::Changed { thread };
        if !self.queue.contains(&changed) {
            self.queue.push_back(changed);
        }
    }

    pub(super) fn pop(&mut self) -> Option<Action> {
        self.queue.pop_front()
    }

    /// A number that was not drawn before.
    pub(super) const fn draw(&mut self) -> u64 {
        self.drawn += 1;
        self.drawn
    }
}
