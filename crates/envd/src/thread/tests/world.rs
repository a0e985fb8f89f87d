//! A host without IO: the state, the log as a list, and what is published.

use std::{collections::HashMap, sync::Arc};

use uuid::Uuid;
use wakeful_wire::{
    Timestamp,
    rpc::{
        ClientId, Cursor, Detail, Epoch, Event, Outcome, Page, PageCursor, Prompt, RequestId,
        Segment, Seq, StopReason, Thread, ThreadId, TurnId,
    },
};

use crate::thread::{
    command::{AgentUpdate, Append, Command, Create, Refused, Taken},
    decide::{Decision, Fresh, Policy, decide},
    feed::{ThreadDelivery, ThreadFeed, ThreadPoll},
    limits::ITEM_MAX,
    log::FRAME_WEIGHT,
    state::{Entry, State},
    view::{FeedLimits, Recorded, View},
};

/// The randomness of one run (splitmix64).
#[derive(Debug, Clone)]
pub(super) struct Draw(pub(super) u64);

impl Draw {
    pub(super) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    pub(super) fn below(&mut self, bound: usize) -> usize {
        usize::try_from(self.next() % u64::try_from(bound.max(1)).unwrap()).unwrap()
    }

    pub(super) fn one_in(&mut self, many: usize) -> bool {
        self.below(many) == 0
    }

    pub(super) fn uuid(&mut self) -> Uuid {
        Uuid::from_u64_pair(self.next(), self.next())
    }

    pub(super) fn pick<T: Copy>(&mut self, of: &[T]) -> Option<T> {
        of.get(self.below(of.len())).copied()
    }
}

/// What was saved at a checkpoint, as text.
#[derive(Debug, Clone)]
struct Saved {
    threads: Vec<(String, Seq)>,
    head: Seq,
    epochs: String,
    remembered: String,
}

/// A host without IO.
#[derive(Debug)]
pub(super) struct World {
    pub(super) draw: Draw,
    pub(super) now: Timestamp,
    pub(super) state: State,
    pub(super) view: View,
    /// What survives a crash.
    pub(super) log: Vec<Arc<Recorded>>,
    /// Decided, not yet durable.
    pub(super) pending: Vec<Event>,
    /// Each thread with all of its content, at the published head.
    pub(super) whole: HashMap<ThreadId, Detail>,
    saved: Option<Saved>,
    pub(super) policy: Policy,
    limits: FeedLimits,
}

impl World {
    pub(super) fn new(seed: u64) -> Self {
        Self::with_limits(seed, FeedLimits::default())
    }

    pub(super) fn with_limits(seed: u64, limits: FeedLimits) -> Self {
        let mut world = Self {
            draw: Draw(seed),
            now: Timestamp(1_000_000),
            state: State::default(),
            view: View::default().with_limits(limits),
            log: Vec::new(),
            pending: Vec::new(),
            whole: HashMap::new(),
            saved: None,
            policy: Policy::default(),
            limits,
        };
        world.start();
        world
    }

    fn start(&mut self) {
        let epoch = Epoch::from_random(self.draw.next());
        self.command(&Command::Start { epoch }).unwrap();
        self.flush();
    }

    /// Decides a command; what it causes is not durable yet.
    pub(super) fn decide(&mut self, command: &Command) -> Result<Decision, Refused> {
        let fresh = Fresh {
            thread: ThreadId::from_uuid(self.draw.uuid()),
            turn: TurnId::from_uuid(self.draw.uuid()),
        };
        let decision = decide(&self.state, command, self.policy, self.now, fresh)?;
        for event in &decision.events {
            assert_eq!(event.seq, self.state.head().next());
            self.state.apply(event);
        }
        self.pending.extend(decision.events.iter().cloned());
        Ok(decision)
    }

    /// Decides a command and makes it durable and published.
    pub(super) fn command(&mut self, command: &Command) -> Result<Taken, Refused> {
        let decision = self.decide(command)?;
        self.flush();
        let seq = decision.events.last().map(|event| event.seq).or(decision.already);
        Ok(Taken {
            seq: seq.unwrap_or_else(|| self.state.head()),
            thread: decision.thread,
            changed: !decision.events.is_empty(),
        })
    }

    /// Makes what is pending durable, without publishing it.
    fn write(&mut self) -> Vec<Arc<Recorded>> {
        let written: Vec<_> = self
            .pending
            .drain(..)
            .map(|event| {
                // What is read from a log went through text.
                let body = serde_json::to_string(&event.body).unwrap();
                let body_again = serde_json::from_str(&body).unwrap();
                let event = Event { body: body_again, ..event };
                Recorded::new(event, body.len() + FRAME_WEIGHT).into_shared()
            })
            .collect();
        self.log.extend(written.iter().cloned());
        written
    }

    /// Makes what is pending durable and publishes it.
    pub(super) fn flush(&mut self) {
        let written = self.write();
        self.publish(&written);
    }

    fn publish(&mut self, events: &[Arc<Recorded>]) {
        let mut touched = Vec::new();
        for recorded in events {
            self.view.apply(recorded);
            touched.extend(recorded.event.thread);
            note(&mut self.whole, &recorded.event);
        }
        self.view.share(&self.state, touched);
    }

    /// Saves the state, as a checkpoint does.
    pub(super) fn checkpoint(&mut self) {
        self.flush();
        let entry = |entry: &Arc<Entry>| {
            let changed = self.view.shell().changed_at(entry.thread.id);
            (serde_json::to_string(entry.as_ref()).unwrap(), changed.unwrap_or(entry.thread.seq))
        };
        self.saved = Some(Saved {
            threads: self.state.threads.values().map(entry).collect(),
            head: self.state.head(),
            epochs: serde_json::to_string(&self.state.epochs).unwrap(),
            remembered: serde_json::to_string(&self.state.remembered).unwrap(),
        });
    }

    /// The host dies and starts again. What was pending is lost, or had just become durable.
    pub(super) fn crash(&mut self) {
        if self.draw.one_in(2) {
            self.pending.clear();
        } else {
            self.write();
        }
        let (state, view) = self.rebuilt();
        if let Some(saved) = self.saved.clone() {
            let (from_saved, view_from_saved) = self.restored(&saved);
            assert!(from_saved == state, "a checkpoint amounts to the log");
            assert!(view_from_saved.shell() == view.shell(), "the list of a checkpoint too");
        }
        for recorded in self.log.clone() {
            note(&mut self.whole, &recorded.event);
        }
        self.state = state;
        self.view = view.with_limits(self.limits);
        self.now = Timestamp(self.now.0 + 1);
        self.start();
    }

    fn rebuilt(&self) -> (State, View) {
        let (mut state, mut view) = (State::default(), View::default().with_limits(self.limits));
        for recorded in &self.log {
            state.apply(&recorded.event);
            view.apply(recorded);
        }
        (state, view)
    }

    fn restored(&self, saved: &Saved) -> (State, View) {
        let mut state = State::default();
        let mut changed = HashMap::new();
        for (text, at) in &saved.threads {
            let entry: Entry = serde_json::from_str(text).unwrap();
            changed.insert(entry.thread.id, *at);
            state.put(Arc::new(entry));
        }
        state.head = saved.head;
        state.epochs = serde_json::from_str(&saved.epochs).unwrap();
        state.remembered = serde_json::from_str(&saved.remembered).unwrap();
        for recorded in &self.log {
            if let (Some(id), wakeful_wire::rpc::EventBody::PromptQueued { prompt }) =
                (recorded.event.thread, &recorded.event.body)
            {
                state.clients.entry(prompt.client).or_insert((id, recorded.event.seq));
            }
        }
        let mut view = View::load(&state, &changed);
        for recorded in self.log.iter().filter(|recorded| recorded.event.seq > saved.head) {
            state.apply(&recorded.event);
            view.apply(recorded);
        }
        (state, view)
    }

    // Reads, as a log answers them.

    pub(super) fn events_after(&self, id: ThreadId, after: Seq) -> Vec<Arc<Recorded>> {
        let from = self.log.partition_point(|recorded| recorded.event.seq <= after);
        let of_thread = |recorded: &&Arc<Recorded>| recorded.event.thread == Some(id);
        self.log[from..].iter().filter(of_thread).cloned().collect()
    }

    /// The thread with a window of its content that begins at a random item.
    pub(super) fn window(&mut self, id: ThreadId) -> Option<Box<Detail>> {
        let whole = self.whole.get(&id).filter(|whole| !whole.thread.deleted)?;
        let (thread, mut page) = (whole.thread.clone(), whole.page.clone());
        let segments = &mut page.segments;
        let drop = self.draw.below(segments.len());
        segments.drain(..drop);
        let first = segments.first_mut()?;
        let many = usize::try_from(first.next_item()).unwrap();
        let item = u32::try_from(self.draw.below(many + 1)).unwrap();
        first.skip_to(item);
        if drop > 0 || item > 0 {
            let created = thread.created;
            page.before = Some(PageCursor { created, segment: first.number, item });
        }
        Some(Box::new(Detail::new(thread, page)))
    }

    /// The page before a cursor, as far as the beginning.
    pub(super) fn before(&self, id: ThreadId, cursor: PageCursor) -> Option<Page> {
        let whole = self.whole.get(&id).filter(|whole| whole.thread.created == cursor.created)?;
        let mut segments = whole.page.segments.clone();
        segments.retain(|segment| segment.number <= cursor.segment);
        if let Some(last) = segments.last_mut().filter(|last| last.number == cursor.segment) {
            last.items.truncate(usize::try_from(cursor.item).unwrap());
        }
        Some(Page { segments, before: None, seq: whole.thread.seq })
    }

    /// Polls a thread's feed until it delivers or rests, answering its reads.
    pub(super) fn drive(&mut self, feed: &mut ThreadFeed, id: ThreadId) -> Option<ThreadDelivery> {
        for _ in 0..100 {
            match feed.poll(&self.view) {
                ThreadPoll::Deliver(delivery) => return Some(delivery),
                ThreadPoll::Idle | ThreadPoll::Ended => return None,
                ThreadPoll::ReadSnapshot => {
                    let detail = self.window(id);
                    feed.handle_snapshot(detail);
                }
                ThreadPoll::ReadGap(after) => {
                    let gap = self.events_after(id, after);
                    let bytes = gap.iter().map(|event| event.weight()).sum();
                    feed.handle_gap(&self.view, after, gap.len(), bytes);
                }
                ThreadPoll::ReadEvents(after) => {
                    let mut events = self.events_after(id, after);
                    events.truncate(1 + self.draw.below(ITEM_MAX));
                    feed.handle_events(events);
                }
            }
        }
        panic!("the feed never comes to rest");
    }

    // Shorthands.

    pub(super) fn client(&mut self) -> ClientId {
        ClientId::from_uuid(self.draw.uuid())
    }

    pub(super) fn request(&mut self) -> RequestId {
        RequestId::from_uuid(self.draw.uuid())
    }

    pub(super) fn create(&mut self, parent: Option<ThreadId>) -> ThreadId {
        let create = Create { parent, agent: "shell".to_owned(), ..Create::default() };
        self.command(&Command::Create(create)).unwrap().thread.unwrap()
    }

    pub(super) fn prompt(&mut self, thread: ThreadId, text: &str) -> ClientId {
        let client = self.client();
        let prompt = Prompt::text(client, text);
        self.command(&Command::Prompt { thread, prompt }).unwrap();
        client
    }

    pub(super) fn thread(&self, id: ThreadId) -> &Thread {
        self.state.thread(id).unwrap()
    }

    pub(super) fn turn(&self, id: ThreadId) -> Option<TurnId> {
        self.thread(id).turn.map(|turn| turn.id)
    }

    pub(super) fn agent(
        &mut self,
        thread: ThreadId,
        update: AgentUpdate,
    ) -> Result<Taken, Refused> {
        let turn = self.turn(thread);
        self.command(&Command::Agent(Append { thread, turn, updates: vec![update] }))
    }

    pub(super) fn end_turn(&mut self, thread: ThreadId) {
        let reason = StopReason::EndTurn;
        self.agent(thread, AgentUpdate::TurnEnded(Outcome::Completed { reason })).unwrap();
    }

    pub(super) fn cursor(&self) -> Cursor {
        self.view.cursor()
    }

    pub(super) fn kinds_since(&self, seq: Seq) -> Vec<&str> {
        let newer = self.log.iter().filter(|recorded| recorded.event.seq > seq);
        newer.map(|recorded| recorded.event.body.kind()).collect()
    }
}

/// Keeps the whole content of threads.
fn note(whole: &mut HashMap<ThreadId, Detail>, event: &Event) {
    let Some(id) = event.thread else { return };
    if let Some(detail) = whole.get_mut(&id) {
        detail.apply(event);
    } else if let Some(thread) = Thread::created(event) {
        let page = Page { segments: vec![Segment::new(0)], before: None, seq: thread.seq };
        whole.insert(id, Detail::new(thread, page));
    }
}
