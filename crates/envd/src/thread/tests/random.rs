//! Random commands, crashes at any moment, and subscribers who come, go, lag and hold cursors of
//! any age: in the end all have what the log has, nothing twice, nothing missing.
//!
//! `WAKEFUL_STEPS` says how many steps in all, `WAKEFUL_SEED` which run is the first.

use std::collections::{BTreeMap, HashMap, HashSet};

use wakeful_wire::{
    Timestamp,
    rpc::{
        ClientId, Cursor, Detail, Epoch, EventBody, Exit, NoticeLevel, Omissions, Outcome, Page,
        PageCursor, PermissionOption, PermissionOptionKind, PlanEntry, PlanPriority, PlanStatus,
        Prepended, Prompt, Remember, RequestId, Role, Seq, ShellRow, StopReason, ThreadId,
        ToolPatch, ToolStatus, Usage, WithdrawnWhy,
    },
};

use super::world::World;
use crate::thread::{
    command::{AgentUpdate, Append, Command, Create, Place, Refused},
    feed::{ShellDelivery, ShellFeed, ThreadDelivery, ThreadFeed},
    limits::QUEUE_MAX,
    view::FeedLimits,
};

/// Runs that once failed; they run always.
const KEPT: &[u64] = &[7, 61, 5940, 8363];

/// Steps of one run.
const RUN: u64 = 2_500;

#[expect(clippy::disallowed_methods, reason = "how far to search is said from outside")]
fn setting(name: &str, default: u64) -> u64 {
    std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(default)
}

/// One client of the list.
struct ShellClient {
    omit: Omissions,
    feed: ShellFeed,
    rows: HashMap<ThreadId, ShellRow>,
    cursor: Option<Cursor>,
    /// The first item of a subscription has come.
    settled: bool,
    synchronized: bool,
}

impl ShellClient {
    fn new(omit: Omissions) -> Self {
        Self {
            omit,
            feed: ShellFeed::new(None, omit),
            rows: HashMap::new(),
            cursor: None,
            settled: false,
            synchronized: false,
        }
    }

    /// The connection is gone; the next one begins from what is held, or from nothing.
    fn reconnect(&mut self, world: &mut World) {
        if world.draw.one_in(4) {
            self.cursor = None;
            self.rows.clear();
        }
        self.feed = ShellFeed::new(self.cursor, self.omit);
        self.settled = false;
        self.synchronized = false;
    }

    /// Takes one item. Returns whether there was one.
    fn poll(&mut self, world: &World) -> bool {
        let Some(delivery) = self.feed.poll(&world.view) else { return false };
        let was_settled = std::mem::replace(&mut self.settled, true);
        match delivery {
            ShellDelivery::Snapshot(snapshot) => {
                assert_eq!(snapshot.omitted, self.omit);
                self.rows = snapshot.rows.iter().map(|row| (row.id, (**row).clone())).collect();
                self.cursor = Some(snapshot.cursor);
                self.synchronized = false;
            }
            ShellDelivery::Resumed(cursor) => {
                assert!(!was_settled);
                assert_eq!(Some(cursor.seq), self.cursor.map(|held| held.seq));
                self.cursor = Some(cursor);
            }
            ShellDelivery::Changes(changes) => {
                assert!(was_settled);
                let held = self.cursor.as_mut().unwrap();
                assert!(changes.seq > held.seq, "nothing twice");
                for row in &changes.rows {
                    assert!(row.seq > held.seq && row.seq <= changes.seq);
                    self.rows.insert(row.id, (**row).clone());
                }
                for id in changes.removed {
                    self.rows.remove(&id);
                }
                held.seq = changes.seq;
            }
            ShellDelivery::Synchronized(cursor) => {
                assert!(was_settled);
                assert!(!std::mem::replace(&mut self.synchronized, true), "one marker");
                assert!(cursor.seq >= self.cursor.unwrap().seq);
                self.cursor = Some(cursor);
            }
        }
        true
    }

    /// What is held is what is published.
    fn check(&self, world: &World) {
        assert!(self.synchronized);
        let (kept, _) = world.view.shell().snapshot(self.omit);
        for row in kept {
            assert_eq!(self.rows.get(&row.id), Some(row.as_ref()), "a row is missing or stale");
        }
        for (id, row) in &self.rows {
            let listed = world.view.shell().row(*id).expect("a row that left the list");
            // A row that is not kept may have been touched after it was sent.
            assert_eq!(ShellRow { seq: listed.seq, ..row.clone() }, **listed);
        }
    }
}

/// One client of a thread.
struct ThreadClient {
    thread: ThreadId,
    feed: ThreadFeed,
    detail: Option<Detail>,
    cursor: Option<Cursor>,
    settled: bool,
    synchronized: bool,
    gone: bool,
    /// A page that was read and is on its way.
    page: Option<(PageCursor, Page)>,
}

impl ThreadClient {
    fn new(world: &World, thread: ThreadId) -> Option<Self> {
        let feed = ThreadFeed::new(&world.view, thread, None).ok()?;
        Some(Self {
            thread,
            feed,
            detail: None,
            cursor: None,
            settled: false,
            synchronized: false,
            gone: false,
            page: None,
        })
    }

    fn reconnect(&mut self, world: &mut World) {
        if world.draw.one_in(5) {
            self.detail = None;
            self.cursor = None;
        }
        match ThreadFeed::new(&world.view, self.thread, self.cursor) {
            Ok(feed) => {
                self.feed = feed;
                self.settled = false;
                self.synchronized = false;
                self.gone = false;
            }
            Err(refused) => {
                assert_eq!(refused, Refused::Deleted);
                self.gone = true;
            }
        }
    }

    fn poll(&mut self, world: &mut World) -> bool {
        if self.gone {
            return false;
        }
        let Some(delivery) = world.drive(&mut self.feed, self.thread) else { return false };
        let was_settled = std::mem::replace(&mut self.settled, true);
        match delivery {
            ThreadDelivery::Snapshot(cursor, detail) => {
                assert_eq!(cursor.seq, detail.thread.seq);
                self.cursor = Some(cursor);
                self.detail = Some(*detail);
                self.synchronized = false;
            }
            ThreadDelivery::Resumed(cursor) => {
                assert!(!was_settled);
                assert_eq!(Some(cursor.seq), self.cursor.map(|held| held.seq));
                self.cursor = Some(cursor);
            }
            ThreadDelivery::Events(events) => {
                assert!(was_settled && !events.is_empty());
                let (held, detail) = (self.cursor.as_mut().unwrap(), self.detail.as_mut().unwrap());
                for recorded in events {
                    assert!(recorded.event.seq > held.seq, "nothing twice, and in order");
                    detail.apply(&recorded.event);
                    held.seq = recorded.event.seq;
                }
            }
            ThreadDelivery::Synchronized(cursor) => {
                assert!(was_settled);
                assert!(!std::mem::replace(&mut self.synchronized, true), "one marker");
                assert!(cursor.seq >= self.cursor.unwrap().seq);
                self.cursor = Some(cursor);
            }
            ThreadDelivery::Deleted(_) => self.gone = true,
        }
        true
    }

    /// Takes in the page that is on its way, or asks for one.
    fn page_back(&mut self, world: &World) {
        let Some(detail) = &mut self.detail else { return };
        if let Some((asked, page)) = self.page.take() {
            let known = detail.page.before == Some(asked);
            let result = detail.prepend(asked, page);
            assert!(known || result == Prepended::Stale);
        } else if let Some(asked) = detail.page.before {
            self.page = world.before(self.thread, asked).map(|page| (asked, page));
        }
    }

    fn check(&self, world: &World) {
        if self.gone {
            let held = world.thread(self.thread);
            let anew = self.cursor.is_none_or(|cursor| held.created > cursor.seq);
            assert!(held.deleted || anew);
            return;
        }
        assert!(self.synchronized);
        let (detail, whole) = (self.detail.as_ref().unwrap(), &world.whole[&self.thread]);
        assert_eq!(&detail.thread, world.view.thread(self.thread).unwrap());
        assert_eq!(detail.thread, whole.thread);
        let held = &detail.page.segments;
        let all = &whole.page.segments;
        let all = &all[all.len() - held.len()..];
        for (place, (held, all)) in held.iter().zip(all).enumerate() {
            assert!(place == 0 || held.skipped == 0);
            let mut all = all.clone();
            all.skip_to(held.skipped);
            assert_eq!(*held, all, "the content of a segment");
        }
    }
}

/// What the senders of prompts know.
#[derive(Default)]
struct Sent {
    /// Answered: these must be in the log.
    answered: HashSet<ClientId>,
    /// Sent, the answer not seen.
    unanswered: Vec<(ThreadId, Prompt)>,
    all: Vec<(ThreadId, Prompt)>,
}

/// Few bytes in memory and small gaps, so that every way of catching up is taken; or as it is.
fn limits(seed: u64) -> FeedLimits {
    match seed % 3 {
        0 => FeedLimits::default(),
        1 => FeedLimits { gap: 30, gap_bytes: 8_000, item: 5, item_bytes: 1_500, tail_bytes: 0 },
        _ => FeedLimits { gap: 60, item: 7, tail_bytes: 6_000, ..FeedLimits::default() },
    }
}

struct Run {
    world: World,
    shells: Vec<ShellClient>,
    threads: Vec<ThreadClient>,
    sent: Sent,
    /// What a run is mostly about: many threads and their order, or a few and their content.
    about_lists: bool,
}

impl Run {
    fn new(seed: u64) -> Self {
        let mut shells = Vec::new();
        for (families, older_settled) in
            [(false, false), (true, false), (false, true), (true, true)]
        {
            for _ in 0..2 {
                shells.push(ShellClient::new(Omissions { families, older_settled }));
            }
        }
        let mut world = World::with_limits(seed, limits(seed));
        let about_lists = world.draw.one_in(3);
        Self { world, shells, threads: Vec::new(), sent: Sent::default(), about_lists }
    }

    fn any_thread(&mut self) -> ThreadId {
        let mut ids: Vec<_> = self.world.state.threads().map(|thread| thread.id).collect();
        ids.sort_unstable();
        // Mostly a few threads, so that something happens in them.
        if !self.about_lists && !self.world.draw.one_in(3) {
            ids.truncate(6);
        }
        let unknown = ThreadId::from_uuid(self.world.draw.uuid());
        self.world.draw.pick(&ids).unwrap_or(unknown)
    }

    fn command(&mut self) -> Command {
        let thread = self.any_thread();
        if self.about_lists && self.world.draw.one_in(3) {
            return Command::Settle { thread, settled: true };
        }
        let held = self.world.state.thread(thread).cloned();
        let draw = &mut self.world.draw;
        match draw.below(24) {
            0 | 1 => {
                let deleted = held.as_ref().is_some_and(|held| held.deleted);
                Command::Create(Create {
                    thread: (deleted && draw.one_in(2)).then_some(thread),
                    anew: deleted,
                    parent: draw.one_in(2).then_some(thread).filter(|_| !deleted),
                    project: ["", "web", "docs/a"][draw.below(3)].to_owned(),
                    agent: "shell".to_owned(),
                    title: draw.one_in(2).then(|| "title".to_owned()),
                    prompt: None,
                })
            }
            2 => Command::Rename { thread, title: format!("title {}", draw.below(4)) },
            3 => Command::Pin { thread, pinned: draw.one_in(2) },
            4 => {
                let until = Timestamp(self.world.now.0 + u64::try_from(draw.below(5_000)).unwrap());
                Command::Snooze { thread, until: draw.one_in(2).then_some(until) }
            }
            5..=8 => Command::Settle { thread, settled: !draw.one_in(5) },
            9 => Command::Archive { thread },
            10 => Command::Restore { thread },
            11 if draw.one_in(3) => Command::Delete { thread },
            12 => Command::Release { thread },
            13 | 14 => {
                let turn = held.as_ref().and_then(|held| held.turn).map(|turn| turn.id);
                Command::Cancel { thread, turn }
            }
            15..=17 => {
                let pending = held.as_ref().and_then(|held| held.permissions.first());
                let unknown = RequestId::from_uuid(draw.uuid());
                Command::Answer {
                    thread,
                    request: pending.map_or(unknown, |held| held.request),
                    option: ["yes", "no", "maybe"][draw.below(3)].to_owned(),
                    remember: [None, Some(Remember::Thread), Some(Remember::Project)]
                        [draw.below(3)],
                }
            }
            18 => Command::Forget {
                place: if draw.one_in(2) {
                    Place::Thread(thread)
                } else {
                    Place::Project { project: "web".to_owned(), agent: "shell".to_owned() }
                },
                key: format!("key {}", draw.below(3)),
            },
            19 => Command::SetMode { thread, mode: format!("mode {}", draw.below(3)) },
            20 => {
                let waiting = held.as_ref().and_then(|held| held.queue.last());
                let unknown = ClientId::from_uuid(draw.uuid());
                let client = waiting.map_or(unknown, |held| held.prompt.client);
                Command::Unqueue { thread, client }
            }
            _ => Command::Tick,
        }
    }

    fn update(&mut self, thread: ThreadId) -> AgentUpdate {
        let first = self
            .world
            .state
            .thread(thread)
            .and_then(|held| held.permissions.first().map(|held| held.request));
        let request = self.world.request();
        let draw = &mut self.world.draw;
        let name = |draw: &mut super::world::Draw| format!("id {}", draw.below(4));
        match draw.below(20) {
            0..=6 => AgentUpdate::Text {
                role: [Role::Agent, Role::Thought, Role::User][draw.below(3)],
                message: draw.one_in(2).then(|| name(draw)),
                text: ["a", "bé", "ccc"][draw.below(3)].repeat(1 + draw.below(4)),
            },
            7..=10 => {
                let statuses = [ToolStatus::Pending, ToolStatus::InProgress, ToolStatus::Completed];
                AgentUpdate::Tool(ToolPatch {
                    id: name(draw),
                    status: draw.pick(&statuses),
                    title: draw.one_in(2).then(|| "tool".to_owned()),
                    ..ToolPatch::default()
                })
            }
            11 | 12 => AgentUpdate::Terminal {
                terminal: name(draw),
                text: "out\n".repeat(draw.below(4)),
                exit: draw.one_in(4).then_some(Exit { code: Some(0), signal: None }),
            },
            13 => AgentUpdate::Plan(vec![PlanEntry {
                text: name(draw),
                priority: PlanPriority::Low,
                status: PlanStatus::Pending,
            }]),
            14 => AgentUpdate::Notice { level: NoticeLevel::Info, text: name(draw) },
            15 | 16 => AgentUpdate::Permission {
                request,
                tool: draw.one_in(2).then(|| ToolPatch { id: name(draw), ..ToolPatch::default() }),
                title: "may I?".to_owned(),
                options: vec![
                    option("yes", PermissionOptionKind::AllowOnce),
                    option("no", PermissionOptionKind::RejectOnce),
                    option("maybe", PermissionOptionKind::Other),
                ],
                key: draw.one_in(2).then(|| format!("key {}", draw.below(3))),
            },
            17 => AgentUpdate::Withdrawn {
                request: first.unwrap_or(request),
                why: WithdrawnWhy::SettledElsewhere,
            },
            18 => AgentUpdate::Session(name(draw)),
            _ => match draw.below(3) {
                0 => AgentUpdate::Mode(name(draw)),
                1 => AgentUpdate::Title(name(draw)),
                _ => AgentUpdate::Usage(Usage {
                    input_tokens: Some(u64::try_from(draw.below(9)).unwrap()),
                    ..Usage::default()
                }),
            },
        }
    }

    fn agent(&mut self) {
        let thread = self.any_thread();
        let running = self.world.state.thread(thread).and_then(|held| held.turn);
        let mut updates: Vec<_> =
            (0..self.world.draw.below(4)).map(|_| self.update(thread)).collect();
        let draw = &mut self.world.draw;
        let turn = running.map(|turn| turn.id).filter(|_| !draw.one_in(8));
        if turn.is_some() && draw.one_in(4) {
            updates.push(AgentUpdate::TurnEnded(match draw.below(5) {
                0 => Outcome::Cancelled { obeyed: true },
                1 => Outcome::Failed { message: "no".to_owned() },
                _ => Outcome::Completed { reason: StopReason::EndTurn },
            }));
        } else if draw.one_in(20) {
            updates.push(AgentUpdate::AgentEnded { why: "gone".to_owned() });
        }
        let result = self.world.decide(&Command::Agent(Append { thread, turn, updates }));
        if let Err(refused) = result {
            assert!(
                matches!(
                    refused,
                    Refused::UnknownThread
                        | Refused::Deleted
                        | Refused::TooMany("waiting permissions")
                ),
                "{refused:?}"
            );
        }
    }

    fn prompt(&mut self) {
        let (thread, prompt) = match self.world.draw.below(4) {
            0 if !self.sent.all.is_empty() => {
                let again = self.world.draw.below(self.sent.all.len());
                self.sent.all[again].clone()
            }
            _ => {
                let thread = self.any_thread();
                let client = self.world.client();
                (thread, Prompt::text(client, "do it"))
            }
        };
        let known = self.world.state.prompt(prompt.client);
        let command = Command::Prompt { thread, prompt: prompt.clone() };
        match self.world.decide(&command) {
            Ok(decision) => {
                if let Some((_, seq)) = known {
                    assert!(decision.events.is_empty(), "a prompt is taken once");
                    assert_eq!(decision.already, Some(seq));
                }
                self.sent.unanswered.push((thread, prompt.clone()));
                self.sent.all.push((thread, prompt));
            }
            Err(refused) => {
                assert!(known.is_none(), "a prompt that was taken is never refused");
                assert!(matches!(
                    refused,
                    Refused::UnknownThread | Refused::Deleted | Refused::QueueFull
                ));
            }
        }
    }

    fn flush(&mut self) {
        self.world.flush();
        self.sent.answered.extend(self.sent.unanswered.drain(..).map(|(_, prompt)| prompt.client));
    }

    fn step(&mut self) {
        let kinds = if self.about_lists { 20 } else { 0 } + 40;
        match self.world.draw.below(kinds) {
            40.. => {
                let command = self.command();
                let _refused_or_not = self.world.decide(&command);
            }
            0..=6 => {
                let command = self.command();
                let before = self.world.state.clone();
                if self.world.decide(&command).is_err() {
                    assert_eq!(before, self.world.state);
                }
            }
            7..=11 => self.prompt(),
            12..=21 => self.agent(),
            22..=26 => self.flush(),
            27..=29 => {
                let which = self.world.draw.below(self.shells.len());
                for _ in 0..self.world.draw.below(4) {
                    self.shells[which].poll(&self.world);
                }
            }
            30..=33 if !self.threads.is_empty() => {
                let which = self.world.draw.below(self.threads.len());
                for _ in 0..self.world.draw.below(4) {
                    self.threads[which].poll(&mut self.world);
                }
            }
            34 => {
                let which = self.world.draw.below(self.shells.len());
                self.shells[which].reconnect(&mut self.world);
            }
            35 if !self.threads.is_empty() => {
                let which = self.world.draw.below(self.threads.len());
                self.threads[which].reconnect(&mut self.world);
            }
            36 => {
                let thread = self.any_thread();
                if self.threads.len() < 12
                    && let Some(client) = ThreadClient::new(&self.world, thread)
                {
                    self.threads.push(client);
                }
            }
            37 if !self.threads.is_empty() => {
                let which = self.world.draw.below(self.threads.len());
                self.threads[which].page_back(&self.world);
            }
            38 => self.rarely(),
            _ => self.world.now = Timestamp(self.world.now.0 + self.world.draw.next() % 3_000),
        }
    }

    fn rarely(&mut self) {
        match self.world.draw.below(12) {
            0 => {
                self.sent.unanswered.clear();
                self.world.crash();
                for client in &mut self.shells {
                    client.reconnect(&mut self.world);
                }
                for client in &mut self.threads {
                    client.reconnect(&mut self.world);
                }
            }
            1 | 2 => {
                self.flush();
                self.world.checkpoint();
            }
            3 => {
                // Somebody comes with the cursor of another log.
                let cursor = Cursor {
                    epoch: Epoch::from_random(self.world.draw.next()),
                    seq: self.world.state.head(),
                };
                let mut feed = ShellFeed::new(Some(cursor), Omissions::default());
                let first = feed.poll(&self.world.view);
                assert!(matches!(first, Some(ShellDelivery::Snapshot(_))));
            }
            4 => self.check(),
            _ => {}
        }
    }

    /// Lets everybody catch up, and compares.
    fn check(&mut self) {
        self.flush();
        for client in &mut self.shells {
            while client.poll(&self.world) {}
            client.check(&self.world);
        }
        for client in &mut self.threads {
            while client.poll(&mut self.world) {}
            client.check(&self.world);
        }
        self.check_counts();
    }

    fn check_counts(&self) {
        let omit = Omissions { families: true, older_settled: true };
        let (kept, older) = self.world.view.shell().snapshot(omit);
        let older = older.unwrap();
        let settled = |row: &ShellRow| row.parent.is_none() && row.settled.is_some();
        let (all, _) = self.world.view.shell().snapshot(Omissions::default());
        let total = all.iter().filter(|row| settled(row)).count();
        let below = |row: &ShellRow| {
            older.cut.is_some_and(|cut| row.settled.is_some_and(|settled| settled.at < cut))
        };
        let kept_above = kept.iter().filter(|row| settled(row) && !below(row)).count();
        let counted: u32 = older.counts.values().sum();
        assert_eq!(kept_above + usize::try_from(counted).unwrap(), total);
        // A walk upwards from a busy row never meets a gap.
        let ids: HashSet<_> = kept.iter().map(|row| row.id).collect();
        for row in kept.iter().filter(|row| row.is_busy()) {
            let mut parent = row.parent;
            while let Some(id) = parent {
                assert!(ids.contains(&id), "a gap above a busy row");
                parent = self.world.view.shell().row(id).and_then(|row| row.parent);
            }
        }
    }

    /// What the log itself must hold.
    fn check_log(&self) {
        let mut taken: HashMap<ClientId, usize> = HashMap::new();
        let mut queued: BTreeMap<ThreadId, Vec<ClientId>> = BTreeMap::new();
        let mut running: HashSet<ThreadId> = HashSet::new();
        let mut last = Seq::ZERO;
        for recorded in &self.world.log {
            let event = &recorded.event;
            assert_eq!(event.seq, last.next());
            last = event.seq;
            let Some(id) = event.thread else { continue };
            let queue = queued.entry(id).or_default();
            if let EventBody::PromptQueued { prompt } = &event.body {
                *taken.entry(prompt.client).or_default() += 1;
                queue.push(prompt.client);
                assert!(queue.len() <= QUEUE_MAX);
            } else if let EventBody::PromptRemoved { client } = &event.body {
                queue.retain(|held| held != client);
            } else if let EventBody::TurnStarted { prompt, .. } = &event.body {
                assert!(running.insert(id), "one turn at a time");
                assert_eq!(queue.remove(0), prompt.client, "prompts start in order");
            } else if matches!(event.body, EventBody::TurnEnded { .. }) {
                assert!(running.remove(&id), "a turn ends once");
            } else if matches!(event.body, EventBody::Deleted {}) {
                assert!(!running.contains(&id));
                queue.clear();
            }
        }
        assert!(taken.values().all(|times| *times == 1), "a prompt is taken once");
        for client in &self.sent.answered {
            assert!(taken.contains_key(client), "a prompt that was answered is in the log");
        }
    }
}

fn option(id: &str, kind: PermissionOptionKind) -> PermissionOption {
    PermissionOption { id: id.to_owned(), name: id.to_owned(), kind }
}

#[test]
fn every_subscriber_ends_with_what_the_log_has() {
    let steps = setting("WAKEFUL_STEPS", 100_000);
    let first = setting("WAKEFUL_SEED", 1);
    for seed in KEPT.iter().copied().chain(first..first + steps.div_ceil(RUN)) {
        let run = std::panic::catch_unwind(|| {
            let mut run = Run::new(seed);
            for _ in 0..RUN {
                run.step();
            }
            run.check();
            run.check_log();
        });
        assert!(run.is_ok(), "the run with WAKEFUL_SEED={seed} failed; see above");
    }
}
