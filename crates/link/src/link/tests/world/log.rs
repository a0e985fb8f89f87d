//! A host's log, and what follows from it: threads, rows, feeds.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use uuid::Uuid;
use wakeful_wire::{
    Timestamp,
    rpc::{
        ClientId, Cursor, Detail, Epoch, Event, EventBody, Omissions, Outcome, Page, Prompt, Role,
        Segment, Seq, ShellItem, ShellRow, ShellSnapshot, StopReason, Thread, ThreadId, ThreadItem,
        TurnId,
    },
};

use crate::threads::Held;

/// A larger gap than this is answered by a snapshot.
const GAP: usize = 400;
/// Segments that a snapshot of a thread brings.
const WINDOW: usize = 4;

pub(in crate::link::tests) fn thread(number: u64) -> ThreadId {
    ThreadId::from_uuid(Uuid::from_u128(u128::from(number)))
}

pub(in crate::link::tests) fn client(number: u64) -> ClientId {
    ClientId::from_uuid(Uuid::from_u128(u128::from(number)))
}

/// What an event did to the list: the row of its thread since then, or that it has none.
type RowChange = (Seq, ThreadId, Option<Arc<ShellRow>>);

/// What one start of a host has written, and all that it found.
#[derive(Debug, Clone, Default)]
struct Written {
    events: Vec<Arc<Event>>,
    rows: Vec<RowChange>,
}

impl Written {
    fn cut(&mut self, head: Seq) {
        self.events.truncate(self.events.partition_point(|event| event.seq <= head));
        self.rows.truncate(self.rows.partition_point(|(seq, ..)| *seq <= head));
    }
}

/// A host's log.
#[derive(Debug, Default)]
pub(in crate::link::tests) struct Log {
    epoch: Epoch,
    /// The starts that the present log knows, each with the first number that it could write.
    starts: Vec<(Epoch, Seq)>,
    written: Written,
    /// What every earlier start had written when it ended, lost ones included.
    past: BTreeMap<Epoch, Written>,
    head: Seq,
    now: BTreeMap<ThreadId, Detail>,
    turns: u64,
    /// Threads that were deleted at some time, also where that was lost.
    deleted: BTreeSet<ThreadId>,
}

/// What was written just now.
#[derive(Debug, Clone)]
pub(in crate::link::tests) struct Wrote {
    pub(in crate::link::tests) event: Arc<Event>,
    /// What follows for the list, if anything does.
    pub(in crate::link::tests) list: Option<ShellItem>,
}

impl Log {
    pub(in crate::link::tests) fn begin(epoch: u64) -> Self {
        let mut log = Self::default();
        log.start(epoch);
        log
    }

    fn start(&mut self, epoch: u64) {
        self.head = self.head.next();
        self.epoch = Epoch(epoch);
        self.starts.push((self.epoch, self.head));
    }

    /// The host starts anew. With `lost`, from a copy that lacks so many of the newest numbers.
    pub(in crate::link::tests) fn restart(&mut self, lost: u64) {
        self.past.insert(self.epoch, self.written.clone());
        let epoch = self.past.keys().last().map_or(1, |last| last.0 + 1);
        self.head = Seq(self.head.0.saturating_sub(lost).max(1));
        if lost > 0 {
            let head = self.head;
            self.starts.retain(|(_, first)| *first <= head);
            self.written.cut(head);
            let threads: Vec<_> = std::mem::take(&mut self.now).into_keys().collect();
            for thread in threads {
                if let Some(detail) = replay(&self.written.events, thread, head) {
                    self.now.insert(thread, detail);
                }
            }
        }
        self.start(epoch);
    }

    pub(in crate::link::tests) const fn head(&self) -> Cursor {
        Cursor { epoch: self.epoch, seq: self.head }
    }

    /// Whether a client may have heard that a thread is gone.
    pub(in crate::link::tests) fn was_deleted(&self, thread: ThreadId) -> bool {
        self.deleted.contains(&thread)
    }

    pub(in crate::link::tests) fn threads(&self) -> impl Iterator<Item = ThreadId> {
        self.now.keys().copied()
    }

    /// The small state of a thread, if it ever was.
    pub(in crate::link::tests) fn thread(&self, thread: ThreadId) -> Option<&Thread> {
        self.now.get(&thread).map(|detail| &detail.thread)
    }

    pub(in crate::link::tests) fn write(&mut self, thread: ThreadId, body: EventBody) -> Wrote {
        self.head = self.head.next();
        let at = Timestamp(1_700_000_000_000 + self.head.0 * 1_000);
        let event = Event { seq: self.head, at, thread: Some(thread), body };
        let row = |detail: &Detail| {
            detail
                .thread
                .is_active()
                .then(|| ShellRow { seq: Seq::ZERO, ..ShellRow::of(&detail.thread) })
        };
        let before = self.now.get(&thread).and_then(row);
        if matches!(event.body, EventBody::Deleted {}) {
            self.deleted.insert(thread);
        }
        match self.now.get_mut(&thread) {
            Some(detail) => {
                detail.apply(&event);
            }
            None => {
                let made = Thread::created(&event).expect("a thread begins with its creation");
                self.now.insert(thread, Detail::new(made, Page::default()));
            }
        }
        let after = self.now.get(&thread).and_then(row);
        let event = Arc::new(event);
        self.written.events.push(Arc::clone(&event));
        let seq = event.seq;
        let list = (before != after).then(|| {
            let row = after.map(|row| Arc::new(ShellRow { seq, ..row }));
            self.written.rows.push((seq, thread, row.clone()));
            let removed = if row.is_none() { vec![thread] } else { Vec::new() };
            ShellItem::Changes { seq, rows: row.into_iter().collect(), removed }
        });
        Wrote { event, list }
    }

    pub(in crate::link::tests) fn create(&mut self, thread: ThreadId) -> Wrote {
        let agent = "shell".to_owned();
        let project = String::new();
        let body =
            EventBody::ThreadCreated { parent: None, root: thread, project, agent, title: None };
        self.write(thread, body)
    }

    /// A piece of text in an item of its own.
    pub(in crate::link::tests) fn text(&mut self, thread: ThreadId, text: &str) -> Wrote {
        let item = self.now[&thread].page.segments.last().map_or(0, Segment::next_item);
        let text = text.to_owned();
        self.write(thread, EventBody::Text { item, role: Role::Agent, text, message: None })
    }

    pub(in crate::link::tests) fn turn_started(&mut self, thread: ThreadId) -> Wrote {
        self.turns += 1;
        let turn = TurnId::from_uuid(Uuid::from_u128(u128::from(self.turns)));
        let segment = self.now[&thread].thread.segment + 1;
        let queued = self.now[&thread].thread.queue.first().map(|queued| (*queued.prompt).clone());
        let prompt = queued.unwrap_or_else(|| Prompt::text(client(1_000_000 + self.turns), "go"));
        self.write(thread, EventBody::TurnStarted { turn, segment, prompt })
    }

    pub(in crate::link::tests) fn turn_ended(&mut self, thread: ThreadId) -> Wrote {
        let turn = self.now[&thread].thread.turn.expect("a turn that runs").id;
        let outcome = Outcome::Completed { reason: StopReason::EndTurn };
        self.write(thread, EventBody::TurnEnded { turn, outcome })
    }

    /// Whether the start that a cursor names wrote so far.
    pub(in crate::link::tests) fn confirms(&self, cursor: Cursor) -> bool {
        let Some(place) = self.starts.iter().position(|(epoch, _)| *epoch == cursor.epoch) else {
            return false;
        };
        match self.starts.get(place + 1) {
            Some((_, next)) => cursor.seq < *next,
            None => cursor.seq <= self.head,
        }
    }

    /// The rows that the list had at a position of the present log.
    fn rows_at(written: &Written, seq: Seq) -> BTreeMap<ThreadId, Arc<ShellRow>> {
        let mut rows = BTreeMap::new();
        for (_, thread, row) in written.rows.iter().take_while(|(at, ..)| *at <= seq) {
            match row {
                Some(row) => rows.insert(*thread, Arc::clone(row)),
                None => rows.remove(thread),
            };
        }
        rows
    }

    pub(in crate::link::tests) fn snapshot(&self, omit: Omissions) -> ShellSnapshot {
        ShellSnapshot {
            cursor: self.head(),
            omitted: omit,
            rows: Self::rows_at(&self.written, self.head).into_values().rev().collect(),
            older_settled: omit.older_settled.then(Default::default),
        }
    }

    /// The tag of the list as it is now.
    pub(in crate::link::tests) fn etag(&self, omit: Omissions) -> String {
        format!("{}.{}.{}.{}", self.epoch.0, self.head, omit.families, omit.older_settled)
    }

    /// Whether the list is what a tag stands for.
    pub(in crate::link::tests) fn is_unchanged(&self, etag: &str, omit: Omissions) -> bool {
        let mut parts = etag.split('.');
        let mut next = || parts.next().unwrap_or_default();
        let (epoch, seq) = (next().parse().unwrap_or(0), next().parse().unwrap_or(0));
        let held = Cursor { epoch: Epoch(epoch), seq: Seq(seq) };
        let left_out = (next() == "true", next() == "true");
        let newest = self.written.rows.last().map_or(Seq::ZERO, |(seq, ..)| *seq);
        left_out == (omit.families, omit.older_settled) && self.confirms(held) && newest <= held.seq
    }

    /// What a subscription of the list brings at once.
    pub(in crate::link::tests) fn shell_feed(
        &self,
        cursor: Option<Cursor>,
        omit: Omissions,
    ) -> Vec<ShellItem> {
        let after = |seq: Seq| self.written.rows.iter().filter(move |(at, ..)| *at > seq);
        let known = cursor.filter(|held| self.confirms(*held) && after(held.seq).count() <= GAP);
        let mut items = Vec::new();
        match known {
            Some(held) => {
                items.push(ShellItem::Resumed { cursor: Cursor { epoch: self.epoch, ..held } });
                let mut newest = BTreeMap::new();
                newest.extend(after(held.seq).map(|(_, thread, row)| (*thread, row)));
                if let Some((seq, ..)) = after(held.seq).next_back() {
                    let gone = newest.iter().filter(|(_, row)| row.is_none());
                    items.push(ShellItem::Changes {
                        seq: *seq,
                        removed: gone.map(|(thread, _)| *thread).collect(),
                        rows: newest.into_values().flatten().cloned().collect(),
                    });
                }
            }
            None => items.push(ShellItem::Snapshot { snapshot: self.snapshot(omit) }),
        }
        items.push(ShellItem::Synchronized { cursor: self.head() });
        items
    }

    /// What a subscription of a thread brings at once; nothing if there never was one.
    pub(in crate::link::tests) fn thread_feed(
        &self,
        thread: ThreadId,
        cursor: Option<Cursor>,
    ) -> Option<Vec<ThreadItem>> {
        let whole = self.now.get(&thread)?;
        if whole.thread.deleted {
            return Some(vec![ThreadItem::Deleted { seq: whole.thread.seq }]);
        }
        let after = |seq: Seq| {
            let newer = move |event: &&Arc<Event>| event.thread == Some(thread) && event.seq > seq;
            self.written.events.iter().filter(newer)
        };
        let known = cursor.filter(|held| {
            let same = held.seq >= whole.thread.created;
            self.confirms(*held) && same && after(held.seq).count() <= GAP
        });
        let mut items = Vec::new();
        match known {
            Some(held) => {
                items.push(ThreadItem::Resumed { cursor: Cursor { epoch: self.epoch, ..held } });
                let events: Vec<_> = after(held.seq).map(|event| (**event).clone()).collect();
                if !events.is_empty() {
                    items.push(ThreadItem::Events { events });
                }
            }
            None => {
                let mut page = whole.page.clone();
                let over = page.segments.len().saturating_sub(WINDOW);
                page.segments.drain(..over);
                let detail = Box::new(Detail::new(whole.thread.clone(), page));
                items.push(ThreadItem::Snapshot { cursor: self.head(), detail });
            }
        }
        items.push(ThreadItem::Synchronized { cursor: self.head() });
        Some(items)
    }

    fn lineage(&self, epoch: Epoch) -> &Written {
        if epoch == self.epoch { &self.written } else { &self.past[&epoch] }
    }

    /// Whether the rows are those that the list had where the cursor says.
    pub(in crate::link::tests) fn check_list<'a>(
        &self,
        cursor: Cursor,
        rows: impl Iterator<Item = &'a Arc<ShellRow>>,
    ) {
        let held: BTreeMap<_, _> = rows.map(|row| (row.id, Arc::clone(row))).collect();
        let expected = Self::rows_at(self.lineage(cursor.epoch), cursor.seq);
        assert_eq!(held, expected, "the list at {cursor:?}");
    }

    /// Whether what is held of a thread is what the events up to its cursor make, no more and no
    /// less.
    pub(in crate::link::tests) fn check_thread(&self, held: &Held) {
        let (detail, cursor) = (&held.detail, held.cursor);
        let events = &self.lineage(cursor.epoch).events;
        let now = self
            .now
            .get(&detail.thread.id)
            .filter(|now| cursor.epoch == self.epoch && now.thread.seq <= cursor.seq);
        let replayed;
        let expected = match now {
            Some(now) => now,
            None => {
                replayed = replay(events, detail.thread.id, cursor.seq).expect("a known thread");
                &replayed
            }
        };
        assert_eq!(detail.thread, expected.thread, "the thread at {cursor:?}");
        let (held, whole) = (&detail.page.segments, &expected.page.segments);
        let missing = whole.len().checked_sub(held.len()).expect("no more than there is");
        assert_eq!(held[..], whole[missing..], "the content at {cursor:?}");
    }
}

/// A thread as the events up to a position make it.
fn replay(events: &[Arc<Event>], thread: ThreadId, seq: Seq) -> Option<Detail> {
    let mut held: Option<Detail> = None;
    for event in events.iter().take_while(|event| event.seq <= seq) {
        match &mut held {
            Some(detail) => {
                detail.apply(event);
            }
            None if event.thread == Some(thread) => {
                held = Thread::created(event).map(|made| Detail::new(made, Page::default()));
            }
            None => {}
        }
    }
    held
}
