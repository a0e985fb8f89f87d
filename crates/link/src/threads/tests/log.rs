//! A host's log, and what a host makes of it.

use std::collections::BTreeMap;

use uuid::Uuid;
use wakeful_wire::{
    Timestamp,
    rpc::{
        ClientId, Cursor, Detail, Epoch, Event, EventBody, Item, Outcome, Page, PageCursor, Prompt,
        Role, Segment, Seq, StopReason, Thread, ThreadId, ThreadItem, TurnId,
    },
};

use crate::threads::Held;

pub(in crate::threads) fn thread(number: u64) -> ThreadId {
    ThreadId::from_uuid(Uuid::from_u128(u128::from(number)))
}

fn client(number: u64) -> ClientId {
    ClientId::from_uuid(Uuid::from_u128(u128::from(number)))
}

fn turn(number: u64) -> TurnId {
    TurnId::from_uuid(Uuid::from_u128(u128::from(number)))
}

pub(in crate::threads) fn prompt(number: u64) -> Prompt {
    Prompt::text(client(number), format!("prompt {number}"))
}

/// A host's log.
#[derive(Debug, Default)]
pub(in crate::threads) struct Log {
    /// The present start.
    pub(in crate::threads) epoch: Epoch,
    /// The starts after the first, and where each began.
    starts: Vec<(Epoch, Seq)>,
    pub(in crate::threads) events: Vec<Event>,
    /// How many segments a snapshot brings, and how many items of the newest one; all if zero.
    pub(in crate::threads) window: (usize, u32),
    /// More events than this are answered by a snapshot; no bound if zero.
    pub(in crate::threads) gap: usize,
    head: u64,
    /// The whole of each thread, as it is now.
    now: BTreeMap<ThreadId, Detail>,
}

impl Log {
    /// A host that sends such windows, and a snapshot for a larger gap.
    pub(in crate::threads) fn with(window: (usize, u32), gap: usize) -> Self {
        Self { window, gap, ..Self::default() }
    }

    pub(in crate::threads) fn push(&mut self, thread: ThreadId, body: EventBody) -> Event {
        self.head += 1;
        let at = Timestamp(self.head * 1_000);
        let event = Event { seq: Seq(self.head), at, thread: Some(thread), body };
        match self.now.get_mut(&thread) {
            Some(detail) => {
                detail.apply(&event);
            }
            None => {
                let made = Thread::created(&event).expect("a thread begins with its creation");
                self.now.insert(thread, Detail::new(made, Page::default()));
            }
        }
        self.events.push(event.clone());
        event
    }

    pub(in crate::threads) fn create(&mut self, thread: ThreadId) -> Event {
        let agent = "shell".to_owned();
        let project = String::new();
        let body =
            EventBody::ThreadCreated { parent: None, root: thread, project, agent, title: None };
        self.push(thread, body)
    }

    pub(in crate::threads) fn head(&self) -> Cursor {
        Cursor { epoch: self.epoch, seq: Seq(self.head) }
    }

    pub(in crate::threads) fn is_running(&self, thread: ThreadId) -> bool {
        self.now[&thread].thread.turn.is_some()
    }

    pub(in crate::threads) fn turn_started(&self, thread: ThreadId) -> EventBody {
        let segment = self.now[&thread].thread.segment + 1;
        let number = u64::from(segment);
        EventBody::TurnStarted { turn: turn(number), segment, prompt: prompt(number) }
    }

    pub(in crate::threads) fn turn_ended(&self, thread: ThreadId) -> EventBody {
        let turn = self.now[&thread].thread.turn.expect("a turn that runs").id;
        EventBody::TurnEnded { turn, outcome: Outcome::Completed { reason: StopReason::EndTurn } }
    }

    /// A text that opens an item.
    pub(in crate::threads) fn text(&self, thread: ThreadId, text: &str) -> EventBody {
        let item = self.now[&thread].page.segments.last().map_or(0, Segment::next_item);
        EventBody::Text { item, role: Role::Agent, text: text.to_owned(), message: None }
    }

    /// More text for an item of the newest segment, or for a new one.
    pub(in crate::threads) fn add(&self, thread: ThreadId, item: u32) -> EventBody {
        let next = self.now[&thread].page.segments.last().map_or(0, Segment::next_item);
        let (item, text) = (item.min(next), "+".to_owned());
        EventBody::Text { item, role: Role::Agent, text, message: None }
    }

    /// The whole thread as it was at a position.
    pub(in crate::threads) fn at(&self, thread: ThreadId, seq: Seq) -> Option<Detail> {
        let mut held: Option<Detail> = None;
        for event in self.events.iter().filter(|event| event.seq <= seq) {
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

    /// Leaves the newest segments, and of the newest the newest items.
    fn cut(&self, whole: &Detail, page: &mut Page, (segments, items): (usize, u32)) {
        let (created, first) = (whole.thread.created, whole.page.segments.first());
        if segments > 0 {
            let over = page.segments.len().saturating_sub(segments);
            page.segments.drain(..over);
        }
        if let ([only], true) = (page.segments.as_mut_slice(), items > 0) {
            only.skip_to(only.next_item().saturating_sub(items));
        }
        let begins = first.map(|first| first.number);
        let begins = |first: &&Segment| Some(first.number) == begins && first.skipped == 0;
        let first = page.segments.first().filter(|first| !begins(first));
        page.before =
            first.map(|first| PageCursor { created, segment: first.number, item: first.skipped });
    }

    pub(in crate::threads) fn snapshot(&self, thread: ThreadId) -> (Cursor, Detail) {
        let whole = &self.now[&thread];
        let mut page = whole.page.clone();
        self.cut(whole, &mut page, self.window);
        let seq = whole.thread.seq;
        (Cursor { epoch: self.epoch, seq }, Detail::new(whole.thread.clone(), page))
    }

    /// The page before a cursor, read now.
    pub(in crate::threads) fn page(
        &self,
        thread: ThreadId,
        before: PageCursor,
        window: (usize, u32),
    ) -> Page {
        let whole = &self.now[&thread];
        let mut page = whole.page.clone();
        page.seq = whole.thread.seq;
        page.segments.retain(|segment| segment.number <= before.segment);
        if let Some(last) = page.segments.last_mut().filter(|last| last.number == before.segment) {
            last.items.truncate(usize::try_from(before.item).unwrap());
        }
        if before.item == 0 {
            page.segments.retain(|segment| segment.number < before.segment);
        }
        self.cut(whole, &mut page, window);
        page
    }

    /// What a subscription brings at once.
    pub(in crate::threads) fn feed(
        &self,
        thread: ThreadId,
        cursor: Option<Cursor>,
    ) -> Vec<ThreadItem> {
        let whole = &self.now[&thread].thread;
        if whole.deleted {
            return vec![ThreadItem::Deleted { seq: whole.seq }];
        }
        let after = |seq| {
            let newer = |event: &&Event| event.thread == Some(thread) && event.seq > seq;
            self.events.iter().filter(newer).cloned().collect::<Vec<_>>()
        };
        let resumes = |cursor: &Cursor| {
            let small = self.gap == 0 || after(cursor.seq).len() <= self.gap;
            self.confirms(*cursor) && cursor.seq >= whole.created && small
        };
        let mut items = Vec::new();
        match cursor.filter(resumes) {
            Some(cursor) => {
                let epoch = self.epoch;
                items.push(ThreadItem::Resumed { cursor: Cursor { epoch, ..cursor } });
                let events = after(cursor.seq);
                if !events.is_empty() {
                    items.push(ThreadItem::Events { events });
                }
            }
            None => {
                let (cursor, detail) = self.snapshot(thread);
                items.push(ThreadItem::Snapshot { cursor, detail: Box::new(detail) });
            }
        }
        let seq = whole.seq.max(cursor.filter(resumes).map_or(Seq::ZERO, |cursor| cursor.seq));
        items.push(ThreadItem::Synchronized { cursor: Cursor { epoch: self.epoch, seq } });
        items
    }

    /// The host starts anew.
    pub(in crate::threads) fn restart(&mut self, epoch: Epoch) {
        self.head += 1;
        self.epoch = epoch;
        self.starts.push((epoch, Seq(self.head)));
    }

    /// The host starts anew with a log that was restored from a copy of that moment.
    pub(in crate::threads) fn restore(&mut self, head: Seq, epoch: Epoch) {
        self.head = head.0;
        self.starts.retain(|(_, start)| *start <= head);
        self.events.retain(|event| event.seq <= head);
        let threads: Vec<_> = std::mem::take(&mut self.now).into_keys().collect();
        for thread in threads {
            if let Some(detail) = self.at(thread, head) {
                self.now.insert(thread, detail);
            }
        }
        self.restart(epoch);
    }

    /// Whether the start that a cursor names wrote so far.
    pub(in crate::threads) fn confirms(&self, cursor: Cursor) -> bool {
        let place = self.starts.iter().rposition(|(epoch, _)| *epoch == cursor.epoch);
        if place.is_none() && cursor.epoch != Epoch::default() {
            return false;
        }
        match self.starts.get(place.map_or(0, |place| place + 1)) {
            Some((_, next)) => cursor.seq < *next,
            None => cursor.seq.0 <= self.head,
        }
    }

    /// Whether what is held is what the events up to its position make, no more and no less. Items
    /// that came with a page which was read later are as they were then.
    pub(in crate::threads) fn check(&self, held: &Held) {
        let detail = &held.detail;
        let at = |seq| self.at(detail.thread.id, seq).expect("a thread that is in the log");
        let expected = at(held.cursor.seq);
        assert!(held.cursor.seq.0 <= self.head, "a position ahead of the log");
        assert_eq!(detail.thread, expected.thread, "at {:?}", held.cursor);
        let count = expected.page.segments.len() - detail.page.segments.len();
        let newest = detail.page.segments.last().map(|segment| segment.number);
        for (segment, expected) in detail.page.segments.iter().zip(&expected.page.segments[count..])
        {
            assert_eq!((segment.number, &segment.turn), (expected.number, &expected.turn));
            assert_eq!(segment.next_item(), expected.next_item(), "segment {}", segment.number);
            for (number, item) in (segment.skipped..).zip(&segment.items) {
                let mut layers = detail.merged.iter().rev();
                let layer = layers.find(|(below, _)| number < *below);
                let later = layer.filter(|_| Some(segment.number) == newest).map(|(_, at)| *at);
                let later = later.filter(|later| *later > held.cursor.seq);
                assert_eq!(*item, item_of(expected, later.map(at), number), "item {number}");
            }
        }
        let first = detail.page.segments.first();
        let whole = |first: &&Segment| count == 0 && first.skipped == 0;
        let before = first.filter(|first| !whole(first)).map(|first| (first.number, first.skipped));
        assert_eq!(detail.page.before.map(|before| (before.segment, before.item)), before);
    }
}

fn item_of(expected: &Segment, later: Option<Detail>, number: u32) -> Item {
    let place = usize::try_from(number).unwrap();
    let later = later.and_then(|later| {
        let mut segments = later.page.segments.into_iter();
        segments.find(|segment| segment.number == expected.number)
    });
    later.as_ref().unwrap_or(expected).items[place].clone()
}
