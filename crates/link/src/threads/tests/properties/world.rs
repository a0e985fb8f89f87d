//! A client, its disk, a socket that can be slow, and a host.

use std::{
    collections::{BTreeMap, VecDeque},
    time::Duration,
};

use wakeful_wire::rpc::{
    Epoch, Event, EventBody, Page, PageCursor, Seq, ShellRow, ThreadId, ThreadItem,
};

use super::{Happening, Step, THREADS};
use crate::{
    DataStatus, Failure, FailureReason, Instant,
    threads::{
        Action, ConsumerId, FetchId, Held, KEPT_ALIVE_MAX, Options, StreamId, Threads,
        tests::{Log, prompt, thread},
    },
};

/// A subscription as the host serves it: a position, and what is on its way.
#[derive(Debug, Default)]
struct Feed {
    at: Seq,
    frames: VecDeque<ThreadItem>,
}

/// A client, its disk, a socket that can be slow and a host.
#[derive(Debug)]
pub(super) struct World {
    now: Instant,
    log: Log,
    threads: Threads,
    connected: bool,
    consumers: Vec<ConsumerId>,
    open: BTreeMap<ThreadId, StreamId>,
    feeds: BTreeMap<StreamId, Feed>,
    /// Frames of sessions that are over, which the parent has not let go of yet.
    stale: VecDeque<(StreamId, ThreadItem)>,
    disk: BTreeMap<ThreadId, Held>,
    disk_queue: VecDeque<Action>,
    asked: VecDeque<(FetchId, ThreadId, PageCursor)>,
    read: VecDeque<(FetchId, Page)>,
    restored: bool,
}

impl World {
    pub(super) fn new(options: Options) -> Self {
        let mut log = Log::with((2, 3), 12);
        for number in 1..=THREADS {
            log.create(thread(number));
        }
        Self {
            now: Instant(50_000),
            log,
            threads: Threads::new(options),
            connected: false,
            consumers: Vec::new(),
            open: BTreeMap::new(),
            feeds: BTreeMap::new(),
            stale: VecDeque::new(),
            disk: BTreeMap::new(),
            disk_queue: VecDeque::new(),
            asked: VecDeque::new(),
            read: VecDeque::new(),
            restored: false,
        }
    }

    fn pump(&mut self) {
        while let Some(action) = self.threads.poll_action() {
            match action {
                Action::LoadCache { .. } | Action::Save { .. } | Action::Forget { .. } => {
                    self.disk_queue.push_back(action);
                }
                Action::Subscribe { stream } => {
                    assert_eq!(self.open.insert(stream.thread, stream), None, "one stream each");
                    self.subscribe(stream);
                }
                Action::Unsubscribe { stream } => {
                    assert_eq!(self.open.remove(&stream.thread), Some(stream));
                    self.abandon(stream);
                }
                Action::Resubscribe { stream } => {
                    assert_eq!(self.open.get(&stream.thread), Some(&stream));
                    self.abandon(stream);
                    self.subscribe(stream);
                }
                Action::FetchPage { fetch, thread, before } => {
                    self.asked.push_back((fetch, thread, before));
                }
                // The request may be answered all the same.
                Action::CancelFetch { .. } | Action::Changed { .. } => {}
            }
        }
        assert!(self.threads.threads().count() <= self.consumers.len() + KEPT_ALIVE_MAX);
    }

    /// Frames of a subscription that is over may still come.
    fn abandon(&mut self, stream: StreamId) {
        if let Some(feed) = self.feeds.remove(&stream) {
            self.stale.extend(feed.frames.into_iter().map(|item| (stream, item)));
        }
    }

    fn subscribe(&mut self, stream: StreamId) {
        if !self.connected {
            return;
        }
        let Some(input) = self.threads.subscription_input(self.now, stream) else { return };
        let frames: VecDeque<_> = self.log.feed(input.thread, input.cursor).into();
        let at = self.log.at(input.thread, Seq(u64::MAX)).unwrap().thread.seq;
        self.feeds.insert(stream, Feed { at, frames });
    }

    /// What happened since goes on its way.
    fn serve(&mut self) {
        for (stream, feed) in &mut self.feeds {
            let newer = |event: &&Event| event.thread == Some(stream.thread) && event.seq > feed.at;
            let events: Vec<_> = self.log.events.iter().filter(newer).cloned().collect();
            let Some(last) = events.last() else { continue };
            feed.at = last.seq;
            feed.frames.push_back(ThreadItem::Events { events });
        }
    }

    fn arrive(&mut self, many: u8) {
        self.serve();
        for _ in 0..many {
            let streams: Vec<_> = self.feeds.keys().copied().collect();
            for stream in streams {
                let Some(item) = self.feeds.get_mut(&stream).and_then(|f| f.frames.pop_front())
                else {
                    continue;
                };
                self.threads.handle_item(self.now, stream, item);
                self.pump();
                self.check();
            }
            if let Some((stream, item)) = self.stale.pop_front() {
                self.deliver_stale(stream, item);
            }
        }
    }

    /// A frame of an earlier session or scope. One that would be read as the present one's never
    /// comes: the parent tells them apart by the session. What is left is another scope's.
    fn deliver_stale(&mut self, stream: StreamId, item: ThreadItem) {
        if self.open.get(&stream.thread) != Some(&stream) || !self.feeds.contains_key(&stream) {
            self.threads.handle_item(self.now, stream, item);
            self.pump();
        }
    }

    fn lose(&mut self) {
        self.connected = false;
        let streams: Vec<_> = self.feeds.keys().copied().collect();
        streams.into_iter().for_each(|stream| self.abandon(stream));
        self.threads.handle_disconnected(self.now);
        self.pump();
    }

    fn connect(&mut self) {
        if std::mem::replace(&mut self.connected, true) {
            return;
        }
        self.threads.handle_connected(self.now);
        let open: Vec<_> = self.open.values().copied().collect();
        open.into_iter().for_each(|stream| self.subscribe(stream));
        self.pump();
    }

    fn work_disk(&mut self) {
        let Some(action) = self.disk_queue.pop_front() else { return };
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
        self.pump();
    }

    fn happen(&mut self, thread: ThreadId, what: Happening) {
        let running = self.log.is_running(thread);
        let body = match what {
            Happening::Queue => EventBody::PromptQueued { prompt: prompt(77) },
            Happening::Begin if !running => self.log.turn_started(thread),
            Happening::Finish if running => self.log.turn_ended(thread),
            Happening::Begin | Happening::Finish | Happening::Say => self.log.text(thread, "é"),
            Happening::Add(item) => self.log.add(thread, u32::from(item)),
            Happening::Pin => EventBody::Pinned {},
            Happening::DeleteAndCreate => {
                self.log.push(thread, EventBody::Deleted {});
                self.log.create(thread);
                return;
            }
        };
        self.log.push(thread, body);
    }

    fn wait(&mut self, millis: u64) {
        let end = self.now.after(Duration::from_millis(millis));
        while let Some(due) = self.threads.poll_timeout().filter(|due| *due <= end) {
            self.now = self.now.max(due);
            self.threads.handle_timeout(self.now);
            self.pump();
            assert_ne!(self.threads.poll_timeout(), Some(due), "a deadline that stays");
        }
        self.now = end;
    }

    fn tell_row(&mut self, thread: ThreadId) {
        let row = ShellRow::of(&self.log.at(thread, Seq(u64::MAX)).unwrap().thread);
        self.threads.handle_shell_row(self.now, &row);
        self.pump();
    }

    pub(super) fn run(&mut self, step: &Step) {
        match step {
            Step::Happen(number, what) => self.happen(thread(*number), *what),
            Step::Arrive(many) => self.arrive(*many),
            Step::Lose => {
                self.lose();
                self.threads.handle_connecting(self.now);
            }
            Step::HandOver => {
                if self.connected {
                    self.lose();
                    self.connect();
                }
            }
            Step::Connect => self.connect(),
            Step::Mount(number) => {
                let consumer = self.threads.mount(self.now, thread(*number)).unwrap();
                self.consumers.push(consumer);
            }
            Step::Unmount(which) => {
                if !self.consumers.is_empty() {
                    let place = usize::from(*which) % self.consumers.len();
                    let consumer = self.consumers.swap_remove(place);
                    self.threads.unmount(self.now, consumer);
                }
            }
            Step::LoadOlder(number) => {
                self.threads.load_older(self.now, thread(*number));
            }
            Step::CancelOlder(number) => self.threads.cancel_older(self.now, thread(*number)),
            Step::ReadPage => {
                if let Some((fetch, thread, before)) = self.asked.pop_front() {
                    let page = self.log.page(thread, before, (1, 2));
                    self.read.push_back((fetch, page));
                }
            }
            Step::Page => {
                if let Some((fetch, page)) = self.read.pop_front() {
                    self.threads.handle_page(self.now, fetch, Ok(page));
                }
            }
            Step::FailPage => {
                if let Some((fetch, ..)) = self.asked.pop_front() {
                    let failure = Failure::new(FailureReason::Network, "gone");
                    self.threads.handle_page(self.now, fetch, Err(failure));
                }
            }
            Step::Disk => self.work_disk(),
            Step::TellRow(number) => self.tell_row(thread(*number)),
            Step::Head => self.threads.handle_head(self.now, self.log.head()),
            Step::Unreadable(number) => {
                // The frame is lost, and what is behind it still comes.
                if let Some(stream) = self.open.get(&thread(*number)).copied()
                    && let Some(feed) = self.feeds.get_mut(&stream)
                    && feed.frames.pop_front().is_some()
                {
                    self.threads.handle_unreadable(self.now, stream);
                }
            }
            Step::FailSubscription(number) => {
                if let Some(stream) = self.open.get(&thread(*number)).copied()
                    && self.feeds.contains_key(&stream)
                {
                    self.abandon(stream);
                    let failure = Failure::new(FailureReason::Remote, "refused");
                    self.threads.handle_failed(self.now, stream, failure);
                    self.pump();
                    self.subscribe(stream);
                }
            }
            Step::Wait(millis) => {
                let many = if *millis == u16::MAX { 400_000 } else { u64::from(*millis) };
                self.wait(many);
            }
            Step::Restart => {
                self.lose();
                self.log.restart(Epoch(self.now.0));
            }
            Step::Restore(back) => self.restore(*back),
        }
        self.pump();
        self.check();
    }

    /// The host comes back as it was some events ago; each of its threads is one that lives.
    fn restore(&mut self, back: u8) {
        let head = self.log.head().seq.0.saturating_sub(u64::from(back));
        let lives = |number| {
            self.log.at(thread(number), Seq(head)).is_some_and(|detail| !detail.thread.deleted)
        };
        if !(1..=THREADS).all(lives) {
            return;
        }
        self.lose();
        self.stale.clear();
        // A page of the log before is none of this one: the host is asked anew after a snapshot.
        self.asked.clear();
        self.read.clear();
        self.restored = true;
        self.now = Instant(self.now.0 + 1);
        self.log.restore(Seq(head), Epoch(self.now.0));
    }

    /// State and position agree, at every moment: shown, saved, and on its way to the disk.
    fn check(&self) {
        // After a restore what is held may be of the log before, until a snapshot has come.
        let known = |held: &Held| !self.restored || self.log.confirms(held.cursor);
        let waiting = self.disk_queue.iter().filter_map(saved);
        let shown = self.threads.threads().filter_map(|(_, state)| state.held.as_ref());
        for held in shown.chain(waiting).chain(self.disk.values()).filter(|held| known(held)) {
            self.log.check(held);
        }
        for (thread, state) in self.threads.threads() {
            if state.status == DataStatus::Live {
                assert!(state.held.is_some(), "{thread} is current and empty");
            }
        }
    }

    /// After some quiet everything is there, once.
    pub(super) fn settle(&mut self) {
        self.stale.clear();
        self.connect();
        while !self.disk_queue.is_empty() {
            self.work_disk();
        }
        self.wait(4_000);
        for _ in 0..4 {
            self.arrive(60);
            self.wait(4_000);
        }
        // A second failure in a row waits for the next session.
        self.lose();
        self.connect();
        self.arrive(60);
        self.check();
        for (thread, state) in self.threads.threads() {
            assert_eq!(state.status, DataStatus::Live, "{thread}");
            let held = state.held.as_ref().unwrap();
            assert_eq!(held.detail.thread, self.log.at(thread, Seq(u64::MAX)).unwrap().thread);
            assert!(held.detail.thread.seq <= held.cursor.seq);
        }
        for consumer in std::mem::take(&mut self.consumers) {
            self.threads.unmount(self.now, consumer);
        }
        (1..=THREADS).for_each(|number| self.tell_row(thread(number)));
        self.arrive(60);
        self.threads.close(self.now);
        self.pump();
        assert!(self.open.is_empty());
        while !self.disk_queue.is_empty() {
            self.work_disk();
        }
        self.check();
    }
}

/// What an action saves.
pub(in crate::threads) fn saved(action: &Action) -> Option<&Held> {
    let Action::Save { held, .. } = action else { return None };
    Some(held)
}
