//! What is published: threads, the list and the newest events, all of them durable.

use std::{
    collections::{HashMap, VecDeque},
    sync::{Arc, OnceLock},
};

use wakeful_wire::rpc::{
    Cursor, Event, EventBody, Omissions, Seq, ShellSnapshot, Thread, ThreadId,
};

use super::{
    limits::{GAP_BYTES_MAX, GAP_MAX, ITEM_BYTES_MAX, ITEM_MAX, TAIL_BYTES_MAX},
    numbering::Numbering,
    shell::{RowKey, Rows, Shell},
    state::{Entry, Epochs, State},
};

/// An event with its JSON, which is made once for all who send it.
#[derive(Debug)]
pub struct Recorded {
    /// The event.
    pub event: Event,
    text: OnceLock<Box<str>>,
    weight: usize,
}

impl Recorded {
    /// Wraps an event. `weight` is about how many bytes it is as JSON.
    #[must_use]
    pub const fn new(event: Event, weight: usize) -> Self {
        Self { event, text: OnceLock::new(), weight }
    }

    /// To be shared by all who send it.
    #[must_use]
    pub fn into_shared(self) -> Arc<Self> {
        Arc::new(self)
    }

    /// The event as JSON.
    #[must_use]
    pub fn text(&self) -> &str {
        self.text.get_or_init(|| {
            serde_json::to_string(&self.event).expect("an event is always JSON").into()
        })
    }

    /// About how many bytes it is as JSON.
    #[must_use]
    pub const fn weight(&self) -> usize {
        self.weight
    }
}

/// How much subscribers are sent at once, and how much is kept in memory for them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FeedLimits {
    /// A resume that would bring more rows, or more events of a thread, gets a snapshot.
    pub gap: usize,
    /// The same in bytes, as JSON.
    pub gap_bytes: usize,
    /// Most rows or events of one item.
    pub item: usize,
    /// Bytes at which an item ends; one row or event may exceed it.
    pub item_bytes: usize,
    /// Newest events that are kept in memory, in bytes over all threads.
    pub tail_bytes: usize,
}

impl Default for FeedLimits {
    fn default() -> Self {
        Self {
            gap: GAP_MAX,
            gap_bytes: GAP_BYTES_MAX,
            item: ITEM_MAX,
            item_bytes: ITEM_BYTES_MAX,
            tail_bytes: TAIL_BYTES_MAX,
        }
    }
}

/// Newest events of one thread: all that are newer than `floor`.
#[derive(Debug, Default)]
struct Tail {
    floor: Seq,
    events: VecDeque<Arc<Recorded>>,
}

/// The newest events of all threads, as far as they fit.
#[derive(Debug, Default)]
struct Tails {
    threads: HashMap<ThreadId, Tail>,
    /// Every event that is held, oldest first.
    order: VecDeque<(ThreadId, usize)>,
    bytes: usize,
}

impl Tails {
    fn push(&mut self, id: ThreadId, before: Seq, event: &Arc<Recorded>, max: usize) {
        let tail = self
            .threads
            .entry(id)
            .or_insert_with(|| Tail { floor: before, events: VecDeque::new() });
        tail.events.push_back(Arc::clone(event));
        self.order.push_back((id, event.weight));
        self.bytes += event.weight;
        while self.bytes > max {
            let Some((id, weight)) = self.order.pop_front() else { break };
            self.bytes -= weight;
            if let Some(tail) = self.threads.get_mut(&id) {
                if let Some(gone) = tail.events.pop_front() {
                    tail.floor = gone.event.seq;
                }
                if tail.events.is_empty() {
                    self.threads.remove(&id);
                }
            }
        }
    }
}

/// Whether an event can change no row: most events, and what there is most of.
const fn is_content(body: &EventBody) -> bool {
    matches!(
        body,
        EventBody::Text { .. }
            | EventBody::Terminal { .. }
            | EventBody::Plan { .. }
            | EventBody::Notice { .. }
            | EventBody::UsageReported { .. }
    )
}

/// What is published. It changes by [`Self::apply`], which is called with durable events alone.
#[derive(Debug, Default)]
pub struct View {
    head: Seq,
    epochs: Epochs,
    threads: HashMap<ThreadId, Arc<Entry>>,
    shell: Shell,
    tails: Tails,
    limits: FeedLimits,
}

impl View {
    /// The same view under other limits. To be called before anything is published.
    #[must_use]
    pub fn with_limits(self, limits: FeedLimits) -> Self {
        Self { limits, ..self }
    }

    /// How much subscribers are sent at once.
    #[must_use]
    pub const fn limits(&self) -> FeedLimits {
        self.limits
    }

    /// A view of saved threads, each with when its row last changed, at `head`.
    #[must_use]
    pub fn load(state: &State, changed: &HashMap<ThreadId, Seq>) -> Self {
        let mut view = Self {
            head: state.head,
            epochs: state.epochs.clone(),
            threads: state.threads.clone(),
            ..Self::default()
        };
        for entry in view.threads.values() {
            let at = changed.get(&entry.thread.id).copied();
            view.shell.load(&entry.thread, at.unwrap_or(entry.thread.seq));
        }
        view
    }

    /// Takes in one durable event. Returns whether the list changed.
    pub fn apply(&mut self, recorded: &Arc<Recorded>) -> bool {
        let event = &recorded.event;
        if event.seq <= self.head {
            return false;
        }
        self.head = event.seq;
        let Some(id) = event.thread else {
            if let EventBody::HostStarted { epoch } = &event.body {
                self.epochs.start(*epoch, event.seq);
            }
            return false;
        };
        let content = is_content(&event.body);
        let (before, before_seq) = match self.threads.get_mut(&id) {
            Some(entry) => {
                let before_seq = entry.thread.seq;
                let before = (!content).then(|| entry.thread.clone());
                Arc::make_mut(entry).apply(event);
                (before, before_seq)
            }
            None => {
                // An event of a thread that nobody made has no effect.
                let Some(thread) = Thread::created(event) else { return false };
                let mut numbering = Numbering::default();
                numbering.apply(&event.body);
                self.threads.insert(id, Arc::new(Entry { thread, numbering }));
                (None, Seq::ZERO)
            }
        };
        self.tails.push(id, before_seq, recorded, self.limits.tail_bytes);
        if content {
            return false;
        }
        let Some(after) = self.threads.get(&id) else { return false };
        !self.shell.apply(before.as_ref(), &after.thread, event.seq).is_empty()
    }

    /// Shares the threads that a batch touched with the state that decided it, instead of holding
    /// them twice.
    pub fn share(&mut self, state: &State, touched: impl IntoIterator<Item = ThreadId>) {
        for id in touched {
            if let Some(entry) = state.threads.get(&id)
                && let Some(held) = self.threads.get_mut(&id)
                && held.thread.seq == entry.thread.seq
            {
                *held = Arc::clone(entry);
            }
        }
    }

    /// The newest event.
    #[must_use]
    pub const fn head(&self) -> Seq {
        self.head
    }

    /// Where somebody is who has everything.
    #[must_use]
    pub fn cursor(&self) -> Cursor {
        Cursor { epoch: self.epochs.present(), seq: self.head }
    }

    /// Whether a cursor names a position of this log that is not ahead of it.
    #[must_use]
    pub fn confirms(&self, cursor: Cursor) -> bool {
        self.epochs.confirms(cursor, self.head)
    }

    /// A thread, deleted ones included.
    #[must_use]
    pub fn thread(&self, id: ThreadId) -> Option<&Thread> {
        self.threads.get(&id).map(|entry| &entry.thread)
    }

    /// A thread, deleted ones included, to be kept without a copy.
    #[must_use]
    pub fn entry(&self, id: ThreadId) -> Option<Arc<Entry>> {
        self.threads.get(&id).cloned()
    }

    /// All threads, deleted ones included, in no order.
    pub fn threads(&self) -> impl Iterator<Item = &Thread> {
        self.threads.values().map(|entry| &entry.thread)
    }

    /// The list.
    #[must_use]
    pub const fn shell(&self) -> &Shell {
        &self.shell
    }

    /// The list at this moment.
    #[must_use]
    pub fn shell_snapshot(&self, omit: Omissions) -> ShellSnapshot {
        let (rows, older_settled) = self.shell.snapshot(omit);
        ShellSnapshot { cursor: self.cursor(), omitted: omit, rows, older_settled }
    }

    /// Rows of the family of a thread; nothing if the thread is unknown or deleted.
    #[must_use]
    pub fn family(&self, id: ThreadId) -> Option<Rows> {
        let thread = self.thread(id).filter(|thread| !thread.deleted)?;
        Some(Rows { seq: self.head, rows: self.shell.family(thread.root), next: None })
    }

    /// A page of settled threads, newest first.
    #[must_use]
    pub fn settled(&self, before: Option<RowKey>, limit: usize) -> Rows {
        let (ids, next) = self.shell.settled_page(before, limit);
        let rows = ids.iter().filter_map(|id| self.shell.row(*id)).cloned().collect();
        Rows { seq: self.head, rows, next }
    }

    /// A page of archived threads, newest first.
    #[must_use]
    pub fn archived(&self, before: Option<RowKey>, limit: usize) -> Rows {
        let (ids, next) = self.shell.archived_page(before, limit);
        Rows { seq: self.head, rows: self.rows_of(ids), next }
    }

    /// The rows of threads that are not deleted, in the given order.
    #[must_use]
    pub fn rows_of(
        &self,
        ids: impl IntoIterator<Item = ThreadId>,
    ) -> Vec<Arc<wakeful_wire::rpc::ShellRow>> {
        let row = |id| {
            let listed = self.shell.row(id).cloned();
            listed.or_else(|| {
                let thread = self.thread(id).filter(|thread| !thread.deleted)?;
                Some(Arc::new(wakeful_wire::rpc::ShellRow::of(thread)))
            })
        };
        ids.into_iter().filter_map(row).collect()
    }

    /// Events of a thread after `seq`, from memory: as many as make one item. Nothing if memory
    /// does not reach back so far; then the log does.
    #[must_use]
    pub fn events_after(&self, id: ThreadId, seq: Seq) -> Option<Vec<Arc<Recorded>>> {
        let tail = self.tails.threads.get(&id).filter(|tail| tail.floor <= seq)?;
        let from = tail.events.partition_point(|held| held.event.seq <= seq);
        let mut bytes = 0;
        let fits = |held: &&Arc<Recorded>| {
            let before = bytes;
            bytes += held.weight;
            before < self.limits.item_bytes
        };
        Some(tail.events.range(from..).take(self.limits.item).take_while(fits).cloned().collect())
    }

    /// Whether the gap after `seq` in a thread is within the bounds of a resume; nothing if memory
    /// does not reach back so far.
    #[must_use]
    pub fn gap_is_small(&self, id: ThreadId, seq: Seq) -> Option<bool> {
        let tail = self.tails.threads.get(&id).filter(|tail| tail.floor <= seq)?;
        let from = tail.events.partition_point(|held| held.event.seq <= seq);
        let gap = tail.events.range(from..);
        let many = gap.len();
        let bytes = gap.map(|held| held.weight).sum::<usize>();
        Some(many <= self.limits.gap && bytes <= self.limits.gap_bytes)
    }
}
