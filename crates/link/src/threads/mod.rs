//! The threads that are looked at: one stream each, kept for a while.
//!
//! # Theory of operation
//!
//! [`Threads`] is one host's. Whoever shows a thread mounts it and is a consumer, whether the view
//! is seen or not; all consumers of a thread share one *stream*, which begins with the first and
//! ends with the last. A stream holds state and position as one value ([`Held`]), takes in one item
//! at a time, whole, and publishes only after that. So neither a lost connection nor an end in the
//! middle of anything leaves a position that is ahead of its state.
//!
//! | part | what it decides |
//! |---|---|
//! | `stream` | one stream: its cached copy, its subscription, what is taken in, what is published |
//! | `older` | the one load of an older page |
//! | `saving` | when a thread is saved, and that writes keep their order |
//! | `retained` | what is kept after the last consumer went |
//! | `behind` | whether a stream that seems current has missed something |
//! | `tap` | what was taken in, for a consumer that passes items on |
//! | `keep_alive` | which running threads are held although nobody looks at them |
//!
//! # Scopes
//!
//! Each life of a stream has a number of its own ([`StreamId`]). Items, failures and cached copies
//! come back with it, and those of an earlier life change nothing. Writes of one thread are given
//! out one after another, so an earlier life's last write cannot end up over its successor's.
//!
//! # What never happens here
//!
//! No event is taken in twice or left out: a gap ends in a resume or a snapshot. A thread that is
//! gone is not asked for again. No transport is ever asked for.

mod action;
mod behind;
mod held;
mod inputs;
mod keep_alive;
mod older;
mod retained;
mod saving;
mod state;
mod stream;
mod tap;

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use wakeful_wire::rpc::{ThreadId, ThreadItem};

use self::{
    action::Outbox,
    keep_alive::KeepAlive,
    retained::Retained,
    saving::Writes,
    stream::{Around, Link, Stream},
};
use crate::{Failure, FailureReason, Instant};

pub use self::{
    action::{Action, ConsumerId, FetchId, StreamId, WriteId},
    behind::BEHIND_GRACE,
    held::{Held, row_is_running},
    keep_alive::KEPT_ALIVE_MAX,
    older::{LOADED_BYTES_MAX, LOADED_SEGMENTS_MAX, PAGE_WAIT, STALE_MAX},
    retained::{RETAINED_BYTES_MAX, RETAINED_MAX, RETENTION},
    saving::{SAVE_AFTER, WRITES_MAX},
    state::{PageState, ThreadState},
    stream::{CACHE_WAIT, SEGMENTS_KEPT},
    tap::TAPPED_MAX,
};

/// Most streams of one host: a quarter of the calls that a socket may have open.
pub const MOUNTED_MAX: usize = 64;
/// Most consumers of one host.
pub const CONSUMERS_MAX: usize = 1_024;

/// How a client treats threads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Options {
    /// Whether running threads are held although nobody looks at them. The native client does; the
    /// web and mobile do not (seed, The desktop app adds).
    pub keep_alive: bool,
    /// Whether there is a cache on disk.
    pub persist: bool,
}

/// The threads of one host that are looked at.
///
/// After each input the parent empties the queue by [`Self::poll_action`], and calls
/// [`Self::handle_timeout`] no later than at [`Self::poll_timeout`].
#[derive(Debug)]
pub struct Threads {
    options: Options,
    link: Link,
    closed: bool,
    scopes: u64,
    drawn: u64,
    streams: BTreeMap<ThreadId, Stream>,
    consumers: BTreeMap<ConsumerId, ThreadId>,
    retained: Retained,
    keep_alive: KeepAlive,
    writes: Writes,
    out: Outbox,
}

impl Threads {
    /// A host none of whose threads is looked at.
    #[must_use]
    pub fn new(options: Options) -> Self {
        Self {
            options,
            link: Link::default(),
            closed: false,
            scopes: 0,
            drawn: 0,
            streams: BTreeMap::new(),
            consumers: BTreeMap::new(),
            retained: Retained::default(),
            keep_alive: KeepAlive::default(),
            writes: Writes::default(),
            out: Outbox::default(),
        }
    }

    /// Somebody looks at a thread. A view that is hidden but stays mounted goes on looking. A thread
    /// is mounted once it is known to be made: an unknown one counts as gone.
    ///
    /// # Errors
    /// [`FailureReason::Overloaded`] at [`MOUNTED_MAX`] or [`CONSUMERS_MAX`], and
    /// [`FailureReason::Unusable`] after [`Self::close`].
    pub fn mount(&mut self, now: Instant, thread: ThreadId) -> Result<ConsumerId, Failure> {
        if self.closed {
            return Err(Failure::new(FailureReason::Unusable, "This host is not in use."));
        }
        if self.consumers.len() >= CONSUMERS_MAX || !self.has_place(now, thread) {
            let detail = "Too many threads of this host are open. Close some.";
            return Err(Failure::new(FailureReason::Overloaded, detail));
        }
        Ok(self.join(now, thread))
    }

    /// Whether a thread has a stream or can have one. One that is only kept alive makes place.
    fn has_place(&mut self, now: Instant, thread: ThreadId) -> bool {
        if self.streams.contains_key(&thread) || self.streams.len() < MOUNTED_MAX {
            return true;
        }
        let streams = &self.streams;
        let alone = |held| streams.get(&held).is_some_and(|stream| stream.has_consumers(1));
        let given_up = self.keep_alive.give_up(alone);
        if let Some(consumer) = given_up {
            self.leave(now, consumer);
        }
        given_up.is_some()
    }

    /// Somebody no longer looks. The last one's going ends the stream; what it holds is kept for
    /// [`RETENTION`]. Without effect on a consumer that is unknown or gone.
    pub fn unmount(&mut self, now: Instant, consumer: ConsumerId) {
        self.leave(now, consumer);
        self.tend(now);
    }

    /// The host is no longer in use: every stream ends, and what was not saved is saved. Nothing
    /// begins any more. A host that is removed is dropped instead, so that nothing is saved.
    pub fn close(&mut self, now: Instant) {
        self.closed = true;
        self.keep_alive = KeepAlive::default();
        self.retained = Retained::default();
        self.consumers.clear();
        for (thread, stream) in std::mem::take(&mut self.streams) {
            stream.end(&mut self.around(now));
            self.out.changed(thread);
        }
    }

    fn join(&mut self, now: Instant, thread: ThreadId) -> ConsumerId {
        self.drawn += 1;
        let consumer = ConsumerId(self.drawn);
        self.consumers.insert(consumer, thread);
        if !self.streams.contains_key(&thread) {
            self.scopes += 1;
            let id = StreamId { thread, scope: self.scopes };
            let kept = self.retained.take(now, thread);
            let stream = Stream::begin(id, self.options, kept, &mut self.around(now));
            self.streams.insert(thread, stream);
        }
        if let Some(stream) = self.streams.get_mut(&thread) {
            stream.consumers().insert(consumer);
        }
        consumer
    }

    fn leave(&mut self, now: Instant, consumer: ConsumerId) {
        let Some(thread) = self.consumers.remove(&consumer) else { return };
        let Some(stream) = self.streams.get_mut(&thread) else { return };
        stream.consumers().remove(&consumer);
        if !stream.has_consumers(0) {
            return;
        }
        let ended = self.streams.remove(&thread);
        let kept = ended.and_then(|stream| stream.end(&mut self.around(now)));
        if let Some(kept) = kept {
            self.retained.put(now, thread, kept);
        }
        self.out.changed(thread);
    }

    const fn around(&mut self, now: Instant) -> Around<'_> {
        Around { now, link: self.link, out: &mut self.out, writes: &mut self.writes }
    }

    /// Holds the running threads, and lets go of those that have stopped.
    fn tend(&mut self, now: Instant) {
        if !self.options.keep_alive || self.closed {
            return;
        }
        let streams = &self.streams;
        let shows_stop = |thread| streams.get(&thread).is_none_or(Stream::shows_stop);
        for consumer in self.keep_alive.take_released(shows_stop) {
            self.leave(now, consumer);
        }
        for thread in self.keep_alive.missing() {
            let joins = match self.streams.get(&thread) {
                Some(stream) => !stream.is_over(),
                None => self.streams.len() < MOUNTED_MAX,
            };
            if joins {
                let consumer = self.join(now, thread);
                self.keep_alive.hold(thread, consumer);
            }
        }
    }

    /// What is known of a thread that somebody looks at.
    #[must_use]
    pub fn thread(&self, thread: ThreadId) -> Option<&ThreadState> {
        self.streams.get(&thread).map(Stream::state)
    }

    /// From now on what the thread's stream takes in waits for [`Self::take_tapped`], until the
    /// stream ends. Whether there is one.
    pub fn tap(&mut self, thread: ThreadId) -> bool {
        self.streams.get_mut(&thread).map(Stream::begin_tap).is_some()
    }

    /// What a tapped stream has taken in since this was last asked: snapshots, resumes, events that
    /// were new, marks, and the end, as the host sent them. Past [`TAPPED_MAX`] events one snapshot
    /// stands for all. Nothing of a cached copy, which no host has sent.
    pub fn take_tapped(&mut self, thread: ThreadId) -> Vec<ThreadItem> {
        self.streams.get_mut(&thread).map(Stream::take_tapped).unwrap_or_default()
    }

    /// The threads that have a stream, and what is known of them.
    pub fn threads(&self) -> impl Iterator<Item = (ThreadId, &ThreadState)> {
        self.streams.iter().map(|(thread, stream)| (*thread, stream.state()))
    }

    /// Whether a thread is held because it runs.
    #[must_use]
    pub fn is_kept_alive(&self, thread: ThreadId) -> bool {
        self.keep_alive.holds(thread)
    }

    /// Whether all that was to be written to the cache is. After [`Self::close`] the parent waits
    /// for it, within its own bound.
    #[must_use]
    pub fn is_stored(&self) -> bool {
        self.writes.is_idle()
    }

    /// What is to be done next.
    pub fn poll_action(&mut self) -> Option<Action> {
        self.out.pop()
    }

    /// When [`Self::handle_timeout`] is due at the latest.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Instant> {
        let streams = self.streams.values().map(Stream::poll_timeout);
        Instant::earliest(streams.chain([self.retained.poll_timeout()]))
    }

    /// Does what is due. Harmless at any moment.
    pub fn handle_timeout(&mut self, now: Instant) {
        self.retained.handle_timeout(now);
        self.each(now, Stream::handle_timeout);
    }
}
