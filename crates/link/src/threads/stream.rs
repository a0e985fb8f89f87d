//! One thread's stream, from its first consumer to its last.

use std::{collections::BTreeSet, time::Duration};

use wakeful_wire::rpc::{Cursor, Seq, ShellRow, ThreadItem, ThreadSubscribe};

use super::{
    Held, Options,
    action::{Action, ConsumerId, Outbox, StreamId},
    behind::Behind,
    older::Older,
    retained::Kept,
    saving::{Saving, Writes},
    state::{PageState, ThreadState},
    tap::Tap,
};
use crate::{DataStatus, Failure, Instant};

mod feed;
mod pages;

/// How long the cached copy is waited for before a snapshot is asked for instead: a slow disk must
/// not hold up a thread.
pub const CACHE_WAIT: Duration = Duration::from_secs(2);
/// Most segments in a window that nobody has made longer; of more the oldest go, and come back as
/// older pages.
pub const SEGMENTS_KEPT: usize = 150;

/// What is known of the connection.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum Link {
    /// There is none, and none is on its way.
    #[default]
    Down,
    /// An attempt is under way.
    Connecting,
    /// A session is ready.
    Up,
}

/// What a stream works with.
#[derive(Debug)]
pub(super) struct Around<'a> {
    pub(super) now: Instant,
    pub(super) link: Link,
    pub(super) out: &'a mut Outbox,
    pub(super) writes: &'a mut Writes,
}

/// How far the stream's subscription is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Feed {
    /// There is none yet: the cached copy is awaited until this moment.
    Reading(Instant),
    /// It waits for a session, or to begin anew.
    Waiting,
    /// It was asked for with this cursor; its first item is awaited.
    Asked(Option<Cursor>),
    /// It delivers what had happened before; the marker is awaited.
    Open,
    /// It delivers what happens.
    Live,
    /// It failed on a session that may be healthy.
    Failed,
    /// The thread is gone. Final.
    Over,
}

/// One thread's stream.
#[derive(Debug)]
pub(super) struct Stream {
    id: StreamId,
    persist: bool,
    consumers: BTreeSet<ConsumerId>,
    state: ThreadState,
    feed: Feed,
    /// Something was lost on the way, so the next subscription begins with a snapshot.
    distrusted: bool,
    /// Whether a person has made the window longer.
    loaded: bool,
    older: Older,
    saving: Saving,
    behind: Behind,
    /// For a consumer that passes items on, if there is one.
    tap: Option<Tap>,
}

impl Stream {
    /// Begins a stream with what was kept of the thread. Where nothing was, the cached copy is read
    /// first.
    pub(super) fn begin(
        id: StreamId,
        options: Options,
        kept: Option<Kept>,
        around: &mut Around<'_>,
    ) -> Self {
        let reads = kept.is_none() && options.persist && !around.writes.is_forgetting(id.thread);
        let (held, loaded) = kept.map_or((None, false), |kept| (Some(kept.held), kept.loaded));
        let mut stream = Self {
            id,
            persist: options.persist,
            consumers: BTreeSet::new(),
            state: ThreadState { held, ..ThreadState::default() },
            feed: Feed::Reading(around.now.after(CACHE_WAIT)),
            distrusted: false,
            loaded,
            older: Older::default(),
            saving: Saving::default(),
            behind: Behind::default(),
            tap: None,
        };
        if reads {
            around.out.push(Action::LoadCache { stream: id });
        } else {
            stream.subscribe(around);
        }
        stream.publish(true, around);
        stream
    }

    /// Ends the stream: what was not saved is, and what is to be kept is returned.
    pub(super) fn end(mut self, around: &mut Around<'_>) -> Option<Kept> {
        self.cancel_page(around);
        if !matches!(self.feed, Feed::Reading(_) | Feed::Over) {
            around.out.push(Action::Unsubscribe { stream: self.id });
        }
        if self.saving.is_unsaved() {
            self.save(around);
        }
        let loaded = self.loaded;
        self.state.held.map(|held| Kept { held, loaded })
    }

    pub(super) const fn id(&self) -> StreamId {
        self.id
    }

    pub(super) const fn state(&self) -> &ThreadState {
        &self.state
    }

    /// Who looks at it.
    pub(super) const fn consumers(&mut self) -> &mut BTreeSet<ConsumerId> {
        &mut self.consumers
    }

    /// Whether so many look at it, and no more.
    pub(super) fn has_consumers(&self, many: usize) -> bool {
        self.consumers.len() == many
    }

    pub(super) fn begin_tap(&mut self) {
        self.tap.get_or_insert_default();
    }

    pub(super) fn take_tapped(&mut self) -> Vec<ThreadItem> {
        let live = self.feed == Feed::Live;
        let held = self.state.held.as_ref();
        self.tap.as_mut().map(|tap| tap.take(held, live)).unwrap_or_default()
    }

    fn tapped(&mut self, item: ThreadItem) {
        if let Some(tap) = &mut self.tap {
            tap.push(item);
        }
    }

    /// Whether the thread is gone.
    pub(super) fn is_over(&self) -> bool {
        self.feed == Feed::Over
    }

    /// Whether it is current and shows that the thread does not run.
    pub(super) fn shows_stop(&self) -> bool {
        let stopped = self.state.held.as_ref().is_some_and(|held| !held.is_running());
        self.is_over() || self.feed == Feed::Live && stopped
    }

    /// The cached copy was read. One that comes too late is taken as long as nothing else was had.
    pub(super) fn handle_cached(&mut self, cached: Option<Held>, around: &mut Around<'_>) {
        let fits =
            |held: &Held| held.detail.thread.id == self.id.thread && !held.detail.thread.deleted;
        let wanted = self.state.held.is_none() && !self.is_over();
        let cached = cached.filter(|held| wanted && fits(held));
        let taken = cached.is_some();
        if taken {
            self.state.held = cached;
        }
        if matches!(self.feed, Feed::Reading(_)) {
            self.subscribe(around);
        }
        self.publish(taken, around);
    }

    fn subscribe(&mut self, around: &mut Around<'_>) {
        self.feed = Feed::Waiting;
        around.out.push(Action::Subscribe { stream: self.id });
    }

    /// The connection has changed.
    pub(super) fn handle_link(&mut self, around: &mut Around<'_>) {
        if around.link == Link::Down
            && matches!(self.feed, Feed::Asked(_) | Feed::Open | Feed::Live | Feed::Failed)
        {
            self.feed = Feed::Waiting;
        }
        self.publish(false, around);
    }

    /// The subscription begins: what it is to begin with. Nothing for a thread that is gone.
    pub(super) fn subscription_input(
        &mut self,
        around: &mut Around<'_>,
    ) -> Option<ThreadSubscribe> {
        if matches!(self.feed, Feed::Over | Feed::Reading(_)) {
            return None;
        }
        let cursor = self.state.cursor().filter(|_| !self.distrusted);
        self.feed = Feed::Asked(cursor);
        self.publish(false, around);
        Some(ThreadSubscribe { thread: self.id.thread, cursor })
    }

    /// The subscription failed.
    pub(super) fn handle_failed(&mut self, failure: Failure, around: &mut Around<'_>) {
        if matches!(self.feed, Feed::Over | Feed::Reading(_)) {
            return;
        }
        self.feed = Feed::Failed;
        self.state.error = Some(failure);
        self.publish(true, around);
    }

    /// The thread is gone for good. Nothing revives this stream.
    pub(super) fn handle_gone(&mut self, around: &mut Around<'_>) {
        if self.is_over() {
            return;
        }
        self.cancel_page(around);
        if !matches!(self.feed, Feed::Reading(_)) {
            around.out.push(Action::Unsubscribe { stream: self.id });
        }
        if self.persist {
            around.writes.forget(self.id.thread, around.out);
        }
        self.tapped(ThreadItem::Deleted { seq: self.seq() });
        self.feed = Feed::Over;
        self.saving = Saving::default();
        self.state.held = None;
        self.state.error = None;
        self.publish(true, around);
    }

    /// The list says this of the thread.
    pub(super) fn handle_row(&mut self, row: &ShellRow, around: &mut Around<'_>) {
        self.behind.handle_row(row.seq);
        self.publish(false, around);
    }

    /// The host says where its log is.
    pub(super) fn handle_head(&mut self, head: Cursor, around: &mut Around<'_>) {
        let current = self.state.cursor().filter(|_| self.feed == Feed::Live);
        if self.behind.is_elsewhere(current, head) {
            self.resubscribe(around);
        }
        self.publish(false, around);
    }

    fn resubscribe(&mut self, around: &mut Around<'_>) {
        self.feed = Feed::Waiting;
        around.out.push(Action::Resubscribe { stream: self.id });
    }

    /// When [`Self::handle_timeout`] is due.
    pub(super) fn poll_timeout(&self) -> Option<Instant> {
        let reading = match self.feed {
            Feed::Reading(until) => Some(until),
            Feed::Waiting
            | Feed::Asked(_)
            | Feed::Open
            | Feed::Live
            | Feed::Failed
            | Feed::Over => None,
        };
        let parts = [
            reading,
            self.saving.poll_timeout(),
            self.older.poll_timeout(),
            self.behind.poll_timeout(),
        ];
        Instant::earliest(parts)
    }

    /// Does what is due.
    pub(super) fn handle_timeout(&mut self, around: &mut Around<'_>) {
        if matches!(self.feed, Feed::Reading(until) if until <= around.now) {
            self.subscribe(around);
        }
        if self.saving.take_due(around.now) {
            self.save(around);
        }
        self.end_late_page(around);
        if self.behind.take_due(around.now) {
            self.resubscribe(around);
        }
        self.publish(false, around);
    }

    /// The state has changed, not only its position.
    fn handle_changed(&mut self, around: &mut Around<'_>) {
        let most = if self.loaded { super::older::LOADED_SEGMENTS_MAX } else { SEGMENTS_KEPT };
        let Some(held) = &mut self.state.held else { return };
        held.keep_newest(most);
        if self.persist {
            self.saving.handle_changed(around.now, held.is_running());
        }
    }

    fn save(&self, around: &mut Around<'_>) {
        let Some(mut held) = self.state.held.clone() else { return };
        held.keep_newest(SEGMENTS_KEPT);
        around.writes.save(self.id.thread, held, around.out);
    }

    /// Publishes what follows from the rest. `touched` says that something else has changed.
    fn publish(&mut self, touched: bool, around: &mut Around<'_>) {
        let status = self.status(around.link);
        let before = self.state.held.as_ref().and_then(Held::before);
        let page = PageState {
            has_more: before.is_some(),
            loading: self.older.is_loading(),
            before,
            error: self.older.error().cloned(),
        };
        if touched || status != self.state.status || page != self.state.page {
            self.state.status = status;
            self.state.page = page;
            around.out.changed(self.id.thread);
        }
        let current = self.state.cursor().filter(|_| self.feed == Feed::Live);
        self.behind.look(around.now, current);
    }

    fn status(&self, link: Link) -> DataStatus {
        let still = || match self.state.held {
            Some(_) => DataStatus::Cached,
            None => DataStatus::Empty,
        };
        match self.feed {
            Feed::Reading(_) | Feed::Waiting if link == Link::Down => still(),
            Feed::Reading(_) | Feed::Waiting | Feed::Asked(_) | Feed::Open => {
                DataStatus::Synchronizing
            }
            Feed::Live => DataStatus::Live,
            Feed::Failed => still(),
            Feed::Over => DataStatus::Deleted,
        }
    }

    /// Up to where everything was taken in.
    fn seq(&self) -> Seq {
        self.state.cursor().map_or(Seq::ZERO, |cursor| cursor.seq)
    }
}
