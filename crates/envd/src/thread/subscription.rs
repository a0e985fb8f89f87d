//! The feeds, driven: each waits for what is published and reads what its machine wants.

use std::sync::Arc;

use tokio::sync::watch;
use wakeful_wire::rpc::{Cursor, Omissions, Seq, ThreadId};

use super::{
    command::Refused,
    feed::{ShellDelivery, ShellFeed, ThreadDelivery, ThreadFeed, ThreadPoll},
    limits::{ITEM_BYTES_MAX, ITEM_MAX},
    log::{LogError, PageLimits},
    threads::Shared,
    view::{FeedLimits, Recorded},
};

/// A subscription of the list. Holds a position and nothing else: not polling it costs nothing.
#[derive(Debug)]
pub struct ShellSubscription {
    shared: Arc<Shared>,
    feed: ShellFeed,
    changed: watch::Receiver<Seq>,
}

impl ShellSubscription {
    pub(super) fn new(shared: Arc<Shared>, cursor: Option<Cursor>, omit: Omissions) -> Self {
        let changed = shared.listed.subscribe();
        Self { shared, feed: ShellFeed::new(cursor, omit), changed }
    }

    /// The next item; waits for one. Nothing when the host has closed its threads. Dropping the
    /// future loses nothing.
    pub async fn next(&mut self) -> Option<ShellDelivery> {
        loop {
            // Marked as seen before looking: what is published after the look is then a change.
            self.changed.borrow_and_update();
            let next = self.feed.poll(&self.shared.view.read());
            if next.is_some() {
                return next;
            }
            tokio::select! {
                changed = self.changed.changed() => changed.ok()?,
                () = self.shared.closed.cancelled() => return None,
            }
        }
    }
}

/// A subscription of a thread. Holds a position and at most one item.
#[derive(Debug)]
pub struct ThreadSubscription {
    shared: Arc<Shared>,
    thread: ThreadId,
    feed: ThreadFeed,
    changed: watch::Receiver<Seq>,
}

impl ThreadSubscription {
    pub(super) fn new(
        shared: Arc<Shared>,
        thread: ThreadId,
        cursor: Option<Cursor>,
    ) -> Result<Self, Refused> {
        let feed = ThreadFeed::new(&shared.view.read(), thread, cursor)?;
        let changed = shared
            .followed
            .lock()
            .entry(thread)
            .or_insert_with(|| watch::Sender::new(Seq::ZERO))
            .subscribe();
        Ok(Self { shared, thread, feed, changed })
    }

    /// The next item; waits for one. Nothing when the subscription is over: after the thread's
    /// deletion, or when the host has closed its threads. Dropping the future loses nothing.
    ///
    /// # Errors
    /// If the log cannot be read; asking again goes on where it was.
    pub async fn next(&mut self) -> Result<Option<ThreadDelivery>, LogError> {
        loop {
            self.changed.borrow_and_update();
            // The lock is held for the look alone, never while waiting.
            let poll = self.feed.poll(&self.shared.view.read());
            match poll {
                ThreadPoll::Deliver(delivery) => return Ok(Some(delivery)),
                ThreadPoll::Ended => return Ok(None),
                ThreadPoll::Idle => tokio::select! {
                    changed = self.changed.changed() => if changed.is_err() {
                        return Ok(None);
                    },
                    () = self.shared.closed.cancelled() => return Ok(None),
                },
                ThreadPoll::ReadSnapshot => {
                    let entry = self.shared.view.read().entry(self.thread);
                    let detail = match entry {
                        Some(entry) => self.shared.log.detail(&entry, PageLimits::FIRST).await?,
                        None => None,
                    };
                    self.feed.handle_snapshot(detail.map(Box::new));
                }
                ThreadPoll::ReadGap(after) => {
                    let limit = self.shared.view.read().limits().gap;
                    let gap = self.shared.log.gap(self.thread, after, limit).await?;
                    self.feed.handle_gap(&self.shared.view.read(), after, gap.events, gap.bytes);
                }
                ThreadPoll::ReadEvents(after) => {
                    let log = &self.shared.log;
                    let FeedLimits { item, item_bytes, .. } = self.shared.view.read().limits();
                    let events = log.thread_since(self.thread, after, item, item_bytes).await?;
                    self.feed
                        .handle_events(events.into_iter().map(Recorded::into_shared).collect());
                }
            }
        }
    }
}

/// Every event from a position on, in order, each once. Holds a position and nothing else.
#[derive(Debug)]
pub struct Follower {
    shared: Arc<Shared>,
    at: Seq,
    head: watch::Receiver<Seq>,
}

impl Follower {
    pub(super) fn new(shared: Arc<Shared>, after: Seq) -> Self {
        let head = shared.head.subscribe();
        Self { shared, at: after, head }
    }

    /// The newest event that was handed out.
    #[must_use]
    pub const fn at(&self) -> Seq {
        self.at
    }

    /// The next events, at least one; waits for one. Nothing when the host has closed its threads.
    /// Dropping the future loses nothing.
    ///
    /// # Errors
    /// If the log cannot be read; asking again goes on where it was.
    pub async fn next(&mut self) -> Result<Option<Vec<Recorded>>, LogError> {
        loop {
            let head = *self.head.borrow_and_update();
            if head > self.at {
                let mut events = self.shared.log.since(self.at, ITEM_MAX, ITEM_BYTES_MAX).await?;
                // What is written but not yet published is handed out next time.
                events.retain(|recorded| recorded.event.seq <= head);
                match events.last() {
                    Some(last) => {
                        self.at = last.event.seq;
                        return Ok(Some(events));
                    }
                    // Removed meanwhile, with its thread.
                    None => self.at = head,
                }
            }
            tokio::select! {
                changed = self.head.changed() => if changed.is_err() {
                    return Ok(None);
                },
                () = self.shared.closed.cancelled() => return Ok(None),
            }
        }
    }
}
