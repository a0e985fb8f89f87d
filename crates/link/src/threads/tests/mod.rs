//! A host's log as a model, and a client's desk in virtual time.

mod atomic;
mod behind;
mod bounds;
mod gaps;
mod keep_alive;
mod log;
mod pages;
#[cfg(not(target_arch = "wasm32"))]
mod properties;
mod saving;
mod sharing;
mod status;
mod tap;

use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    time::Duration,
};

use wakeful_wire::rpc::{Cursor, EventBody, Seq, ShellRow, ThreadId, ThreadItem};

use self::log::{Log, prompt, thread};
use super::{
    Action, BEHIND_GRACE, CACHE_WAIT, ConsumerId, FetchId, Held, KEPT_ALIVE_MAX, Options,
    PAGE_WAIT, PageState, RETENTION, SAVE_AFTER, SEGMENTS_KEPT, STALE_MAX, StreamId, TAPPED_MAX,
    ThreadState, Threads,
};
use crate::{DataStatus, Failure, FailureReason, Instant};

const NATIVE: Options = Options { keep_alive: true, persist: true };
const WEB: Options = Options { keep_alive: false, persist: true };

/// The one thread of most tests.
fn one() -> ThreadId {
    thread(1)
}

fn failure() -> Failure {
    Failure::new(FailureReason::Remote, "refused")
}

/// A client's threads with everything that is around them.
struct Desk {
    now: Instant,
    threads: Threads,
    log: Log,
    disk: BTreeMap<ThreadId, Held>,
    /// Whether reads and writes of the disk wait for [`Desk::work_disk`].
    slow_disk: bool,
    disk_queue: VecDeque<Action>,
    open: BTreeMap<ThreadId, StreamId>,
    connected: bool,
    /// Whose subscriptions this session has begun.
    asked: BTreeSet<StreamId>,
    /// What was asked for since it was last looked at, without what only says that something
    /// changed.
    seen: Vec<Action>,
}

impl Desk {
    fn new(options: Options) -> Self {
        let mut log = Log::default();
        log.create(one());
        Self {
            now: Instant(1_000_000),
            threads: Threads::new(options),
            log,
            disk: BTreeMap::new(),
            slow_disk: false,
            disk_queue: VecDeque::new(),
            open: BTreeMap::new(),
            connected: false,
            asked: BTreeSet::new(),
            seen: Vec::new(),
        }
    }

    /// One thread is looked at and current.
    fn live(options: Options) -> (Self, ConsumerId) {
        let mut desk = Self::new(options);
        desk.connect();
        let consumer = desk.mount(one());
        assert_eq!(desk.state(one()).status, DataStatus::Live);
        desk.wait(seconds(1));
        assert_eq!(desk.disk.get(&one()), options.persist.then(|| desk.held(one())));
        desk.take();
        (desk, consumer)
    }

    fn pump(&mut self) {
        while let Some(action) = self.threads.poll_action() {
            match &action {
                Action::Changed { .. } => continue,
                Action::LoadCache { .. } | Action::Save { .. } | Action::Forget { .. } => {
                    self.disk_queue.push_back(action.clone());
                }
                Action::Subscribe { stream } => {
                    assert_eq!(self.open.insert(stream.thread, *stream), None, "two streams");
                }
                Action::Unsubscribe { stream } => {
                    assert_eq!(self.open.remove(&stream.thread), Some(*stream));
                }
                Action::Resubscribe { stream } => {
                    assert_eq!(self.open.get(&stream.thread), Some(stream));
                }
                Action::FetchPage { .. } | Action::CancelFetch { .. } => {}
            }
            self.seen.push(action);
            if !self.slow_disk {
                self.work_disk();
            }
        }
    }

    /// Lets the disk do all that waits.
    fn work_disk(&mut self) {
        while let Some(action) = self.disk_queue.pop_front() {
            match action {
                Action::LoadCache { stream } => {
                    let cached = self.disk.get(&stream.thread).cloned();
                    self.threads.handle_cached(self.now, stream, cached);
                }
                Action::Save { write, thread, held } => {
                    self.disk.insert(thread, *held);
                    self.threads.handle_written(write);
                }
                Action::Forget { write, thread } => {
                    self.disk.remove(&thread);
                    self.threads.handle_written(write);
                }
                Action::Subscribe { .. }
                | Action::Unsubscribe { .. }
                | Action::Resubscribe { .. }
                | Action::FetchPage { .. }
                | Action::CancelFetch { .. }
                | Action::Changed { .. } => unreachable!("not for the disk"),
            }
        }
    }

    /// What was asked for since.
    fn take(&mut self) -> Vec<Action> {
        self.pump();
        std::mem::take(&mut self.seen)
    }

    fn mount(&mut self, thread: ThreadId) -> ConsumerId {
        let consumer = self.threads.mount(self.now, thread).unwrap();
        self.pump();
        if self.connected {
            self.follow_new();
        }
        consumer
    }

    fn unmount(&mut self, consumer: ConsumerId) {
        self.threads.unmount(self.now, consumer);
        self.pump();
    }

    fn connect(&mut self) {
        self.connected = true;
        self.threads.handle_connected(self.now);
        self.pump();
        self.follow_new();
    }

    fn disconnect(&mut self) {
        self.connected = false;
        self.asked.clear();
        self.threads.handle_disconnected(self.now);
        self.pump();
    }

    /// Begins the subscription of a thread, and returns with what cursor.
    fn ask(&mut self, thread: ThreadId) -> Option<Cursor> {
        let stream = self.open[&thread];
        self.asked.insert(stream);
        let input = self.threads.subscription_input(self.now, stream).expect("a live stream");
        assert_eq!(input.thread, thread);
        self.pump();
        input.cursor
    }

    /// Begins the subscription of a thread and delivers everything up to the marker.
    fn follow(&mut self, thread: ThreadId) -> Option<Cursor> {
        let cursor = self.ask(thread);
        for item in self.log.feed(thread, cursor) {
            self.deliver(thread, item);
        }
        cursor
    }

    fn deliver(&mut self, thread: ThreadId, item: ThreadItem) {
        if let Some(stream) = self.open.get(&thread) {
            self.threads.handle_item(self.now, *stream, item);
            self.pump();
        }
    }

    /// Something happens in a thread, and whoever follows it hears of it.
    fn happen(&mut self, thread: ThreadId, body: EventBody) -> Seq {
        let event = self.log.push(thread, body);
        let seq = event.seq;
        if self.connected {
            self.deliver(thread, ThreadItem::Events { events: vec![event] });
        }
        seq
    }

    /// A turn begins.
    fn begin(&mut self, thread: ThreadId) {
        let body = self.log.turn_started(thread);
        self.happen(thread, body);
    }

    /// The turn ends.
    fn finish(&mut self, thread: ThreadId) {
        let body = self.log.turn_ended(thread);
        self.happen(thread, body);
    }

    /// The agent says something.
    fn say(&mut self, thread: ThreadId, text: &str) -> Seq {
        let body = self.log.text(thread, text);
        self.happen(thread, body)
    }

    /// The list tells of a thread as it is now.
    fn tell_row(&mut self, thread: ThreadId) {
        let row = self.row(thread);
        self.threads.handle_shell_row(self.now, &row);
        self.pump();
        if self.connected {
            self.follow_new();
        }
    }

    fn row(&self, thread: ThreadId) -> ShellRow {
        ShellRow::of(&self.log.at(thread, Seq(u64::MAX)).unwrap().thread)
    }

    /// Follows the streams that this session does not follow yet.
    fn follow_new(&mut self) {
        let open: Vec<_> = self.open.values().copied().collect();
        for stream in open {
            if !self.asked.contains(&stream) {
                self.follow(stream.thread);
            }
        }
    }

    /// Lets time pass, from one deadline to the next.
    fn wait(&mut self, duration: Duration) {
        let end = self.now.after(duration);
        while let Some(due) = self.threads.poll_timeout().filter(|due| *due <= end) {
            self.now = self.now.max(due);
            self.threads.handle_timeout(self.now);
            self.pump();
            assert_ne!(self.threads.poll_timeout(), Some(due), "a deadline that stays");
        }
        self.now = end;
    }

    fn state(&self, thread: ThreadId) -> &ThreadState {
        self.threads.thread(thread).expect("somebody looks at it")
    }

    fn held(&self, thread: ThreadId) -> &Held {
        self.state(thread).held.as_ref().expect("something is held")
    }

    fn page(&self, thread: ThreadId) -> &PageState {
        &self.state(thread).page
    }

    /// Whether what is held of a thread is all there is.
    fn is_current(&self, thread: ThreadId) -> bool {
        self.log.check(self.held(thread));
        self.held(thread).detail.thread == self.log.at(thread, Seq(u64::MAX)).unwrap().thread
    }

    /// The only page that is asked for.
    fn fetch(&mut self) -> FetchId {
        let seen = self.take();
        match seen.as_slice() {
            [Action::FetchPage { fetch, .. }] => *fetch,
            other => panic!("no single fetch: {other:?}"),
        }
    }
}

const fn seconds(many: u64) -> Duration {
    Duration::from_secs(many)
}

fn subscribes(actions: &[Action]) -> usize {
    actions.iter().filter(|action| matches!(action, Action::Subscribe { .. })).count()
}

fn unsubscribes(actions: &[Action]) -> usize {
    actions.iter().filter(|action| matches!(action, Action::Unsubscribe { .. })).count()
}

fn resubscribes(actions: &[Action]) -> usize {
    actions.iter().filter(|action| matches!(action, Action::Resubscribe { .. })).count()
}

fn saves(actions: &[Action]) -> usize {
    actions.iter().filter(|action| matches!(action, Action::Save { .. })).count()
}
