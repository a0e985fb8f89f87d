//! One host: its machines, and who tells whom.
//!
//! # Theory of operation
//!
//! Nothing is decided here. Each machine says what is to be done, and [`HostLink`] carries it to the
//! machine or the shell that does it, until none has anything to say. What comes from the world
//! names its attempt, its errand or its stream, so that whatever is late finds nobody.
//!
//! | what happens | where it goes |
//! |---|---|
//! | signals, ends of sockets, answers to probes | `supervisor` |
//! | frames | the `session` of their attempt; from the current one on to `boundary` |
//! | items of subscriptions | `shell`, `threads`; changes of rows also to `families` and `settled` |
//! | answers to requests | the errand that sent them (`errands`) |

mod attempt;
mod commands;
mod data;
mod errands;

use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    time::Duration,
};

use wakeful_wire::{
    HostId,
    hosts::Scheme,
    rpc::{Hello, HostConfig, Omissions},
};

use self::{attempt::Opening, data::Gate, errands::Errand};
use crate::{
    AttemptId, Chance, ConnectionState, Instant,
    authorization::{self, Authorization, Secret},
    boundary::{Boundary, SubscriptionId, Token},
    effect::{AskId, At, Change, Effect, Way},
    families::Families,
    registry::{Entry, Target},
    route::{Address, Routes},
    settled::SettledThreads,
    shell::Shell,
    supervisor::{self, Supervisor},
    threads::{self, StreamId, Threads},
};

/// A person's request that waits for so long, while the host gives no sign of life, is a reason to
/// look whether it lives: sooner than heartbeats are missed, because somebody waits.
const UNANSWERED: Duration = Duration::from_secs(5);

/// How this client connects, for all hosts alike.
#[derive(Debug, Clone)]
pub struct Options {
    /// The thumbprint of the key that proofs are made with.
    pub key: String,
    /// What this client calls itself in a host's list of sessions.
    pub label: String,
    /// Whether a socket is opened with a ticket, because the shell cannot send headers.
    pub tickets: bool,
    /// The scheme of the page that this client is, if it is one.
    pub page: Option<Scheme>,
    /// Whether running threads are held although nobody looks at them.
    pub keep_alive: bool,
    /// Whether there is a cache.
    pub persist: bool,
    /// Which rows this client can do without.
    pub omit: Omissions,
}

/// What the host wants of the budget that all hosts share.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Wish {
    /// To begin an attempt.
    Want { attempt: AttemptId, urgent: bool },
    /// Nothing more: the attempt is over, or a session.
    Done { attempt: AttemptId },
}

/// One scope of one host.
#[derive(Debug)]
pub(crate) struct HostLink {
    at: At,
    options: Options,
    target: Target,
    routes: Option<Routes>,
    platform: Option<Address>,
    supervisor: Supervisor,
    authorization: Authorization,
    attempts: BTreeMap<AttemptId, Opening>,
    /// The way that was taken last: reads go this way too.
    way: Option<Way>,
    boundary: Boundary,
    followed: BTreeMap<SubscriptionId, Followed>,
    /// Streams of which only the first item is wanted.
    firsts: BTreeSet<Token>,
    shell: Shell,
    threads: Threads,
    families: Families,
    settled: SettledThreads,
    gate: Gate,
    config: Option<HostConfig>,
    /// What the host said of itself when it was last greeted.
    known: Option<Box<Hello>>,
    errands: BTreeMap<u64, Errand>,
    drawn: u64,
    cache_read: bool,
    /// Whether it ends by storing what has changed.
    saves: bool,
    /// Since when a request waits without any sign of life of the host.
    asked: Option<Instant>,
    /// When a person's presence was last told.
    active: Option<Instant>,
    seen: ConnectionState,
    effects: VecDeque<Effect>,
    wishes: VecDeque<Wish>,
}

/// What a subscription is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Followed {
    Shell,
    Thread(StreamId),
}

impl HostLink {
    pub(crate) fn open(
        at: At,
        entry: &Entry,
        refresh: Option<Secret>,
        options: Options,
        mut chance: Chance,
    ) -> Self {
        let platform = entry.target.account().map(|account| account.platform.clone());
        let way_in = way_in(&entry.target, refresh);
        let entering = way_in.map(|way| authorization::Entry { key: options.key.clone(), way });
        let threads = threads::Options { keep_alive: options.keep_alive, persist: options.persist };
        let mut host = Self {
            at,
            target: entry.target.clone(),
            routes: entry.target.routes().ok(),
            platform,
            supervisor: Supervisor::new(chance.split()),
            authorization: Authorization::new(entering, chance.split()),
            attempts: BTreeMap::new(),
            way: None,
            boundary: Boundary::new(),
            followed: BTreeMap::new(),
            firsts: BTreeSet::new(),
            shell: Shell::new(options.omit, options.persist),
            threads: Threads::new(threads),
            families: Families::new(),
            settled: SettledThreads::new(),
            gate: Gate::default(),
            config: None,
            known: None,
            errands: BTreeMap::new(),
            drawn: 0,
            cache_read: false,
            saves: true,
            asked: None,
            active: None,
            seen: ConnectionState::default(),
            effects: VecDeque::new(),
            wishes: VecDeque::new(),
            options,
        };
        if host.options.persist {
            host.effects.push_back(Effect::LoadShell { at });
        }
        host
    }

    pub(crate) const fn at(&self) -> At {
        self.at
    }

    const fn host(&self) -> HostId {
        self.at.host
    }

    /// Another label, pause or way; the connection goes on.
    pub(crate) fn update(&mut self, now: Instant, entry: &Entry) {
        self.routes = entry.target.routes().ok();
        let desired = self.supervisor.state().desired;
        if entry.is_desired() != desired {
            let input = if desired {
                supervisor::Input::Disconnect
            } else {
                supervisor::Input::Connect { wake: false }
            };
            self.supervise(now, input);
        }
    }

    pub(crate) fn supervise(&mut self, now: Instant, input: supervisor::Input) {
        self.supervisor.handle(now, input);
        self.settle(now);
    }

    /// Ends the scope. With `save` what has changed is stored first.
    pub(crate) fn close(&mut self, now: Instant, save: bool) {
        self.saves = save;
        if save {
            self.shell.finish(now);
            self.threads.close(now);
        } else {
            self.shell.handle_removed(now);
        }
        self.supervise(now, supervisor::Input::Disconnect);
        for (number, _) in std::mem::take(&mut self.errands) {
            self.effects.push_back(Effect::Withdraw { ask: self.ask(number) });
        }
    }

    pub(crate) fn poll_effect(&mut self) -> Option<Effect> {
        self.effects.pop_front()
    }

    pub(crate) fn poll_wish(&mut self) -> Option<Wish> {
        self.wishes.pop_front()
    }

    pub(crate) fn poll_timeout(&self) -> Option<Instant> {
        let sessions = self.attempts.values().map(Opening::poll_timeout);
        Instant::earliest(sessions.chain([
            self.asked.map(|asked| asked.after(UNANSWERED)),
            self.supervisor.poll_timeout(),
            self.authorization.poll_timeout(),
            self.boundary.poll_timeout(),
            self.shell.poll_timeout(),
            self.threads.poll_timeout(),
            self.families.poll_timeout(),
            self.settled.poll_timeout(),
        ]))
    }

    pub(crate) fn handle_timeout(&mut self, now: Instant) {
        self.look_for_life(now);
        self.supervisor.handle_timeout(now);
        self.authorization.handle_timeout(now);
        self.boundary.handle_timeout(now);
        self.shell.handle_timeout(now);
        self.threads.handle_timeout(now);
        self.families.handle_timeout(now);
        self.settled.handle_timeout(now);
        for attempt in self.attempts.keys().copied().collect::<Vec<_>>() {
            if let Some(session) = self.session_mut(attempt) {
                session.handle_timeout(now);
            }
        }
        self.settle(now);
    }

    /// Checks the session where a request waits and nothing at all comes.
    fn look_for_life(&mut self, now: Instant) {
        if self.asked.is_some_and(|asked| asked.after(UNANSWERED) <= now) {
            self.asked = None;
            if let Some(attempt) = self.supervisor.session() {
                self.supervisor.handle(now, supervisor::Input::Silent { attempt });
            }
        }
    }

    /// Carries what the machines say, until none has anything to say.
    fn settle(&mut self, now: Instant) {
        loop {
            if let Some(action) = self.supervisor.poll_action() {
                self.carry(now, action);
            } else if let Some((attempt, event)) = self.next_event() {
                self.take_event(now, attempt, event);
            } else if let Some(action) = self.authorization.poll_action() {
                self.authorize(now, action);
            } else if let Some(action) = self.boundary.poll_action() {
                self.follow(now, action);
            } else if let Some(action) = self.shell.poll_action() {
                self.keep_list(now, action);
            } else if let Some(action) = self.threads.poll_action() {
                self.keep_threads(now, action);
            } else if let Some(action) = self.families.poll_action() {
                self.keep_families(now, action);
            } else if let Some(action) = self.settled.poll_action() {
                self.keep_settled(now, action);
            } else {
                break;
            }
        }
        self.send_frames();
        if self.seen != *self.supervisor.state() {
            self.seen = self.supervisor.state().clone();
            self.tell(Change::Connection(self.host()));
        }
    }

    /// Tells views, once for all that happened since they looked.
    fn tell(&mut self, change: Change) {
        let told = Effect::Tell(change);
        if !self.effects.contains(&told) {
            self.effects.push_back(told);
        }
    }

    /// The whole client's name of an errand of this host.
    const fn ask(&self, number: u64) -> AskId {
        AskId { scope: self.at.scope, number }
    }
}

/// With what the host is entered; nothing for a paired host whose credential is gone.
fn way_in(target: &Target, refresh: Option<Secret>) -> Option<authorization::Way> {
    match target {
        Target::Environment { account, .. } => {
            Some(authorization::Way::Environment { account: Some(account.user.clone()) })
        }
        Target::Paired { routes } => {
            let address = routes.iter().next()?.address().to_string();
            let refresh_token = refresh?;
            Some(authorization::Way::Paired { address, refresh_token, session: None })
        }
    }
}
