//! What one subscriber is sent next: machines without a clock, a buffer or IO.
//!
//! A machine holds a position and nothing else. Polled with what is published, it says what to send
//! next, or which read it needs. Whoever drives it polls again after each item was sent, and when
//! something new was published.
//!
//! # Why there is no buffer to overflow
//!
//! A subscriber pulls. Its backlog is the log itself, of which the newest part is shared in memory.
//! So a slow reader costs a position, delays nobody, and misses nothing: when it comes back it gets
//! rows as they are by then (the list is coalesced by construction: one row per thread, at its
//! newest sequence), or a thread's events from memory or the log. Whoever is further behind than a
//! resume may be ([`FeedLimits`]) gets a snapshot instead, in the middle of a
//! subscription as at its beginning.
//!
//! # Why nothing is lost while a snapshot loads
//!
//! A snapshot names the sequence that it is at, and the position becomes that sequence. What is
//! written later is newer than the position, so a later poll finds it, whether it was written while
//! the snapshot was read, sent, or waiting behind other frames. Nothing has to be attached first,
//! because nothing is ever detached from the log.
//!
//! # The completion marker
//!
//! The head is noted when the position is settled (snapshot read, or cursor accepted). When the
//! position has reached it, the head is noted once more: that is all that was gathered meanwhile.
//! When the position has reached that, the marker is the next item. Noting twice and not for ever
//! lets the marker come on a host that never rests.

use wakeful_wire::rpc::{
    Cursor, Detail, Omissions, Seq, ShellItem, ShellSnapshot, ThreadId, ThreadItem,
};

use std::sync::Arc;

use super::{
    command::Refused,
    shell::Changes,
    view::{FeedLimits, Recorded, View},
};

/// How far a subscriber is on its way to the marker.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Marker {
    /// To this head, noted when the position was settled.
    First(Seq),
    /// To this head, noted when the first was reached.
    Second(Seq),
    /// It was sent.
    Sent,
}

impl Marker {
    /// Whether the marker comes now. `reached` says whether the position has reached a head.
    fn comes(&mut self, head: Seq, reached: impl Fn(Seq) -> bool) -> Option<Seq> {
        if let Self::First(until) = *self
            && reached(until)
        {
            *self = Self::Second(head.max(until));
        }
        if let Self::Second(until) = *self
            && reached(until)
        {
            *self = Self::Sent;
            return Some(until);
        }
        None
    }
}

/// What a subscriber of the list is sent.
#[derive(Debug, Clone, PartialEq)]
pub enum ShellDelivery {
    /// The whole list.
    Snapshot(ShellSnapshot),
    /// The cursor was accepted.
    Resumed(Cursor),
    /// What changed.
    Changes(Changes),
    /// All that was gathered has been sent.
    Synchronized(Cursor),
}

impl ShellDelivery {
    /// The item that goes over a socket.
    #[must_use]
    pub fn into_item(self) -> ShellItem {
        match self {
            Self::Snapshot(snapshot) => ShellItem::Snapshot { snapshot },
            Self::Resumed(cursor) => ShellItem::Resumed { cursor },
            Self::Changes(Changes { seq, rows, removed, .. }) => {
                ShellItem::Changes { seq, rows, removed }
            }
            Self::Synchronized(cursor) => ShellItem::Synchronized { cursor },
        }
    }
}

/// One subscriber of the list.
#[derive(Debug)]
pub struct ShellFeed {
    omit: Omissions,
    /// The cursor that it came with, until that is settled.
    asked: Option<Option<Cursor>>,
    at: Seq,
    marker: Marker,
}

impl ShellFeed {
    /// A subscriber that has what its cursor says, or nothing.
    #[must_use]
    pub const fn new(cursor: Option<Cursor>, omit: Omissions) -> Self {
        Self { omit, asked: Some(cursor), at: Seq::ZERO, marker: Marker::Sent }
    }

    /// What to send next, or nothing until the list changes.
    pub fn poll(&mut self, view: &View) -> Option<ShellDelivery> {
        let shell = view.shell();
        if let Some(asked) = self.asked.take() {
            return Some(match asked.filter(|cursor| Self::resumes(view, *cursor)) {
                Some(cursor) => {
                    self.settle(cursor.seq, view.head());
                    let cursor = Cursor { epoch: view.cursor().epoch, seq: cursor.seq };
                    ShellDelivery::Resumed(cursor)
                }
                None => self.snapshot(view),
            });
        }
        if !shell.reaches_back_to(self.at) || Self::is_far(view, self.at) {
            return Some(self.snapshot(view));
        }
        let next = shell.first_after(self.at);
        let reached = |until: Seq| next.is_none_or(|next| next > until);
        if let Some(until) = self.marker.comes(view.head(), reached) {
            self.at = self.at.max(until);
            let cursor = Cursor { epoch: view.cursor().epoch, seq: self.at };
            return Some(ShellDelivery::Synchronized(cursor));
        }
        let changes = shell.changes_after(self.at, view.limits().item, view.limits().item_bytes)?;
        self.at = changes.seq;
        Some(ShellDelivery::Changes(changes))
    }

    fn resumes(view: &View, cursor: Cursor) -> bool {
        let shell = view.shell();
        view.confirms(cursor)
            && shell.reaches_back_to(cursor.seq)
            && !Self::is_far(view, cursor.seq)
    }

    fn is_far(view: &View, at: Seq) -> bool {
        let FeedLimits { gap, gap_bytes, .. } = view.limits();
        view.shell().exceeds(at, gap, gap_bytes)
    }

    fn snapshot(&mut self, view: &View) -> ShellDelivery {
        self.settle(view.head(), view.head());
        ShellDelivery::Snapshot(view.shell_snapshot(self.omit))
    }

    const fn settle(&mut self, at: Seq, head: Seq) {
        self.at = at;
        self.marker = Marker::First(head);
    }
}

/// What a subscriber of a thread is sent.
#[derive(Debug, Clone)]
pub enum ThreadDelivery {
    /// The thread and a window of its content.
    Snapshot(Cursor, Box<Detail>),
    /// The cursor was accepted.
    Resumed(Cursor),
    /// Events.
    Events(Vec<Arc<Recorded>>),
    /// All that was gathered has been sent.
    Synchronized(Cursor),
    /// The thread is gone; nothing follows.
    Deleted(Seq),
}

impl ThreadDelivery {
    /// The item that goes over a socket. Whoever sends to many uses [`Recorded::text`] instead of
    /// making the JSON of an event for each.
    #[must_use]
    pub fn into_item(self) -> ThreadItem {
        match self {
            Self::Snapshot(cursor, detail) => ThreadItem::Snapshot { cursor, detail },
            Self::Resumed(cursor) => ThreadItem::Resumed { cursor },
            Self::Events(events) => {
                let events = events.iter().map(|recorded| recorded.event.clone()).collect();
                ThreadItem::Events { events }
            }
            Self::Synchronized(cursor) => ThreadItem::Synchronized { cursor },
            Self::Deleted(seq) => ThreadItem::Deleted { seq },
        }
    }
}

/// What a thread's subscriber wants next.
#[derive(Debug)]
pub enum ThreadPoll {
    /// Send this.
    Deliver(ThreadDelivery),
    /// Read the thread with its first page, and call [`ThreadFeed::handle_snapshot`].
    ReadSnapshot,
    /// Measure what the log holds of the thread after this, and call [`ThreadFeed::handle_gap`].
    ReadGap(Seq),
    /// Read one item's worth of events after this, and call [`ThreadFeed::handle_events`].
    ReadEvents(Seq),
    /// Nothing until the thread changes.
    Idle,
    /// The subscription is over.
    Ended,
}

#[derive(Debug)]
enum Stage {
    /// The cursor is not settled yet.
    Asked(Option<Cursor>),
    /// A snapshot is to be read.
    Snapshot,
    /// It was read.
    Loaded(Box<Detail>),
    /// Following.
    Following,
    Ended,
}

/// One subscriber of a thread.
#[derive(Debug)]
pub struct ThreadFeed {
    thread: ThreadId,
    stage: Stage,
    at: Seq,
    marker: Marker,
    /// The gap from this position was measured and is small enough to be read.
    measured: Option<Seq>,
    /// Read from the log, to be sent next.
    read: Vec<Arc<Recorded>>,
}

impl ThreadFeed {
    /// A subscriber that has what its cursor says, or nothing.
    ///
    /// # Errors
    /// If the thread is unknown or deleted.
    pub fn new(view: &View, thread: ThreadId, cursor: Option<Cursor>) -> Result<Self, Refused> {
        let held = view.thread(thread).ok_or(Refused::UnknownThread)?;
        if held.deleted {
            return Err(Refused::Deleted);
        }
        Ok(Self {
            thread,
            stage: Stage::Asked(cursor),
            at: Seq::ZERO,
            marker: Marker::Sent,
            measured: None,
            read: Vec::new(),
        })
    }

    /// What is wanted next.
    pub fn poll(&mut self, view: &View) -> ThreadPoll {
        if matches!(self.stage, Stage::Ended) {
            return ThreadPoll::Ended;
        }
        let Some(thread) = view.thread(self.thread) else { return self.end() };
        if thread.deleted {
            self.stage = Stage::Ended;
            return ThreadPoll::Deliver(ThreadDelivery::Deleted(thread.seq));
        }
        let (created, newest) = (thread.created, thread.seq);
        match std::mem::replace(&mut self.stage, Stage::Following) {
            Stage::Asked(None) | Stage::Snapshot => self.want_snapshot(),
            Stage::Asked(Some(cursor)) => {
                if !view.confirms(cursor) || cursor.seq < created {
                    return self.want_snapshot();
                }
                match self.small_gap(view, cursor.seq, newest) {
                    Some(true) => {
                        self.settle(cursor.seq, newest);
                        let cursor = Cursor { epoch: view.cursor().epoch, seq: cursor.seq };
                        ThreadPoll::Deliver(ThreadDelivery::Resumed(cursor))
                    }
                    Some(false) => self.want_snapshot(),
                    None => {
                        self.stage = Stage::Asked(Some(cursor));
                        ThreadPoll::ReadGap(cursor.seq)
                    }
                }
            }
            Stage::Loaded(detail) => {
                let seq = detail.thread.seq;
                self.settle(seq, newest.max(seq));
                let cursor = Cursor { epoch: view.cursor().epoch, seq };
                ThreadPoll::Deliver(ThreadDelivery::Snapshot(cursor, detail))
            }
            Stage::Following => self.follow(view, created, newest),
            Stage::Ended => self.end(),
        }
    }

    fn follow(&mut self, view: &View, created: Seq, newest: Seq) -> ThreadPoll {
        // The id was made anew: what the subscriber has is of another thread.
        if created > self.at {
            return self.want_snapshot();
        }
        let at = self.at;
        let reached = |until: Seq| at >= until;
        if let Some(until) = self.marker.comes(newest, reached) {
            let cursor = Cursor { epoch: view.cursor().epoch, seq: until.max(self.at) };
            return ThreadPoll::Deliver(ThreadDelivery::Synchronized(cursor));
        }
        if !self.read.is_empty() {
            let read = std::mem::take(&mut self.read);
            return self.deliver(read);
        }
        if self.at >= newest {
            return ThreadPoll::Idle;
        }
        match self.small_gap(view, self.at, newest) {
            Some(true) => {}
            Some(false) => return self.want_snapshot(),
            None => return ThreadPoll::ReadGap(self.at),
        }
        match view.events_after(self.thread, self.at) {
            Some(events) if !events.is_empty() => self.deliver(events),
            Some(_) | None => ThreadPoll::ReadEvents(self.at),
        }
    }

    /// Whether the gap after `seq` is small enough; nothing if only the log can tell.
    fn small_gap(&self, view: &View, seq: Seq, newest: Seq) -> Option<bool> {
        if seq >= newest || self.measured.is_some_and(|measured| measured <= seq) {
            return Some(true);
        }
        view.gap_is_small(self.thread, seq)
    }

    fn deliver(&mut self, events: Vec<Arc<Recorded>>) -> ThreadPoll {
        if let Some(last) = events.last() {
            self.at = last.event.seq;
        }
        // What was measured has been sent once the position passes it; what came since is measured
        // anew by the next reader that is behind.
        if self.measured.is_some_and(|measured| self.at > measured) {
            self.measured = None;
        }
        ThreadPoll::Deliver(ThreadDelivery::Events(events))
    }

    fn want_snapshot(&mut self) -> ThreadPoll {
        self.stage = Stage::Snapshot;
        self.read.clear();
        ThreadPoll::ReadSnapshot
    }

    fn end(&mut self) -> ThreadPoll {
        self.stage = Stage::Ended;
        ThreadPoll::Ended
    }

    const fn settle(&mut self, at: Seq, head: Seq) {
        self.at = at;
        self.marker = Marker::First(head);
    }

    /// The thread with its first page, at one sequence; nothing if it is gone.
    pub fn handle_snapshot(&mut self, detail: Option<Box<Detail>>) {
        if matches!(self.stage, Stage::Snapshot) {
            self.measured = None;
            self.stage = detail.map_or(Stage::Ended, Stage::Loaded);
        }
    }

    /// What the log holds of the thread after the position that was asked about.
    pub fn handle_gap(&mut self, view: &View, after: Seq, events: usize, bytes: usize) {
        let limits = view.limits();
        if events <= limits.gap && bytes <= limits.gap_bytes {
            self.measured = Some(after);
        } else {
            self.stage = Stage::Snapshot;
        }
    }

    /// Events after the position that was asked for. None at all means that the log no longer has
    /// them: the thread is being removed, or was made anew.
    pub fn handle_events(&mut self, events: Vec<Arc<Recorded>>) {
        if events.is_empty() {
            self.stage = Stage::Snapshot;
        } else {
            self.read = events;
        }
    }
}
