//! A platform: its list of environments, and the stream that says what phase each is in.
//!
//! A client learns from this stream that an environment fell asleep, woke, came to be or went, so
//! that it asks no sleeping host anything. The stream begins with the present state of every
//! environment, so a lost one needs no cursor: it is opened anew, by the same ladder as a host's
//! connection.

use std::{
    collections::{BTreeMap, VecDeque},
    time::Duration,
};

use wakeful_wire::{EnvId, Phase};

use crate::{
    Chance, Failure, FailureClass, FailureReason, Instant, Network,
    supervisor::{
        Foreground,
        backoff::{LASTING, Ladder},
    },
};

#[cfg(test)]
mod tests;

/// How long a platform may be silent. It says something each fifteen seconds.
pub const SILENCE: Duration = Duration::from_secs(50);
/// How long the stream may take to be opened.
pub const OPEN: Duration = Duration::from_secs(15);
/// How many environments of one platform are followed. More are left out.
pub const ENVIRONMENTS_MAX: usize = 1_000;

/// One opening of the stream. What comes of another one is of the past.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct StreamId(pub u64);

/// An environment in the platform's list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listed {
    /// The environment.
    pub env: EnvId,
    /// What it is called.
    pub label: String,
    /// What it is doing.
    pub phase: Phase,
}

/// What the connection to the platform is doing.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum PlatformState {
    /// Nobody wants it.
    #[default]
    Idle,
    /// The stream is being opened.
    Opening {
        /// Why the one before ended.
        last_failure: Option<Failure>,
    },
    /// The stream is open.
    Following,
    /// It waits for its next attempt.
    Backoff {
        /// Why.
        last_failure: Failure,
        /// Until when.
        retry_at: Instant,
    },
    /// It waits for the network.
    Offline,
    /// It waits for something to change, such as a sign-in.
    Blocked(Failure),
}

/// What is to be done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Action {
    /// Open the stream of changes.
    Follow(StreamId),
    /// Close it.
    Unfollow(StreamId),
    /// Read the list of projects, with their environments.
    List(StreamId),
    /// These environments there are, as a whole.
    Listed(Vec<Listed>),
    /// An environment is in this phase.
    Phase(EnvId, Phase),
    /// The state is another one.
    Changed,
}

/// A platform that is followed.
#[derive(Debug)]
pub struct Platform {
    state: PlatformState,
    network: Network,
    ladder: Ladder,
    chance: Chance,
    stream: StreamId,
    /// When the stream was opened, and when something was heard last.
    opened: Instant,
    heard: Instant,
    known: BTreeMap<EnvId, Phase>,
    /// Whether a list is being read, and whether it must be read once more afterwards.
    listing: bool,
    stale: bool,
    /// Whether a list was read since the stream was opened.
    listed: bool,
    actions: VecDeque<Action>,
}

impl Platform {
    /// A platform that nobody wants yet.
    #[must_use]
    pub fn new(chance: Chance) -> Self {
        Self {
            state: PlatformState::Idle,
            network: Network::Unknown,
            ladder: Ladder::default(),
            chance,
            stream: StreamId(0),
            opened: Instant(0),
            heard: Instant(0),
            known: BTreeMap::new(),
            listing: false,
            stale: false,
            listed: false,
            actions: VecDeque::new(),
        }
    }

    /// The same with streams that are numbered from here on, so that none is taken for one of a
    /// platform that was followed before at the same address.
    #[must_use]
    pub const fn numbered_from(mut self, first: StreamId) -> Self {
        self.stream = first;
        self
    }

    /// What the connection is doing.
    #[must_use]
    pub const fn state(&self) -> &PlatformState {
        &self.state
    }

    /// What an environment is doing, as far as was heard.
    #[must_use]
    pub fn phase(&self, env: EnvId) -> Option<Phase> {
        self.known.get(&env).copied()
    }

    /// The environments that there are; nothing until their list was read on the present stream.
    #[must_use]
    pub fn listed(&self) -> Option<impl Iterator<Item = EnvId>> {
        self.listed.then(|| self.known.keys().copied())
    }

    /// The next thing to do.
    pub fn poll_action(&mut self) -> Option<Action> {
        self.actions.pop_front()
    }

    /// When to call [`Self::handle_timeout`] at the latest.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Instant> {
        match &self.state {
            PlatformState::Opening { .. } => Some(self.opened.after(OPEN)),
            PlatformState::Following => Some(self.heard.after(SILENCE)),
            PlatformState::Backoff { retry_at, .. } => Some(*retry_at),
            PlatformState::Idle | PlatformState::Offline | PlatformState::Blocked(_) => None,
        }
    }

    /// Time has passed.
    pub fn handle_timeout(&mut self, now: Instant) {
        if self.poll_timeout().is_none_or(|at| now < at) {
            return;
        }
        if matches!(self.state, PlatformState::Backoff { .. }) {
            self.open(now);
        } else {
            let silent = Failure::new(FailureReason::Timeout, "the platform says nothing");
            self.lost(now, silent);
        }
    }

    /// Somebody wants it, or asks for it to be tried again now.
    pub fn handle_wanted(&mut self, now: Instant) {
        if !matches!(self.state, PlatformState::Following | PlatformState::Opening { .. }) {
            self.ladder.reset();
            self.open(now);
        }
    }

    /// Nobody wants it any more.
    pub fn handle_unwanted(&mut self) {
        self.close();
        self.known.clear();
        self.enter(PlatformState::Idle);
    }

    /// What the device says of its network. An open stream is left alone: if the report is right,
    /// the stream will be silent.
    pub fn handle_network(&mut self, now: Instant, network: Network) {
        self.network = network;
        match (&self.state, network) {
            (PlatformState::Offline | PlatformState::Backoff { .. }, Network::Online) => {
                self.open(now);
            }
            (PlatformState::Backoff { .. }, Network::Offline) => self.enter(PlatformState::Offline),
            _ => {}
        }
    }

    /// A person looks at the client again. After a long suspension the stream is opened anew: what
    /// it missed is not to be had from it, and asking is as costly as opening.
    pub fn handle_foreground(&mut self, now: Instant, foreground: Foreground) {
        match &self.state {
            PlatformState::Backoff { .. } | PlatformState::Blocked(_) => {
                self.ladder.reset();
                self.open(now);
            }
            PlatformState::Following | PlatformState::Opening { .. }
                if foreground == Foreground::Long =>
            {
                self.close();
                self.open(now);
            }
            PlatformState::Following
            | PlatformState::Opening { .. }
            | PlatformState::Offline
            | PlatformState::Idle => {}
        }
    }

    /// The stream is open.
    pub fn handle_opened(&mut self, now: Instant, stream: StreamId) {
        if stream == self.stream && matches!(self.state, PlatformState::Opening { .. }) {
            (self.opened, self.heard) = (now, now);
            self.enter(PlatformState::Following);
            self.list();
        }
    }

    /// Something came by the stream, if only to say that it lives.
    pub fn handle_heard(&mut self, now: Instant, stream: StreamId) {
        if stream == self.stream {
            self.heard = now;
            if now.since(self.opened) >= LASTING {
                self.ladder.reset();
            }
        }
    }

    /// The stream says what an environment is doing.
    pub fn handle_environment(&mut self, now: Instant, stream: StreamId, env: EnvId, phase: Phase) {
        self.handle_heard(now, stream);
        if stream != self.stream {
            return;
        }
        let known = self.known.get(&env) == Some(&phase);
        if !self.known.contains_key(&env) || phase == Phase::Deleted {
            self.list();
        }
        if known || self.known.len() >= ENVIRONMENTS_MAX && !self.known.contains_key(&env) {
            return;
        }
        self.known.insert(env, phase);
        self.actions.push_back(Action::Phase(env, phase));
    }

    /// The stream ended, or could not be opened.
    pub fn handle_ended(&mut self, now: Instant, stream: StreamId, failure: Failure) {
        if stream == self.stream {
            self.lost(now, failure);
        }
    }

    /// The list was read. What the stream said meanwhile is newer than the list, and stands.
    pub fn handle_listed(
        &mut self,
        now: Instant,
        stream: StreamId,
        listed: Result<Vec<Listed>, Failure>,
    ) {
        if stream != self.stream || !self.listing {
            return;
        }
        self.listing = false;
        if std::mem::take(&mut self.stale) {
            self.list();
            return;
        }
        match listed {
            Ok(mut listed) => {
                listed.truncate(ENVIRONMENTS_MAX);
                self.known.retain(|env, _| listed.iter().any(|one| one.env == *env));
                for one in &mut listed {
                    one.phase = *self.known.entry(one.env).or_insert(one.phase);
                }
                self.listed = true;
                self.actions.push_back(Action::Listed(listed));
            }
            // The stream has to begin anew as well: a list that is missing is missed for good.
            Err(failure) => self.lost(now, failure),
        }
    }

    fn list(&mut self) {
        if self.listing {
            self.stale = true;
        } else {
            self.listing = true;
            self.actions.push_back(Action::List(self.stream));
        }
    }

    fn open(&mut self, now: Instant) {
        let last_failure = match &self.state {
            PlatformState::Backoff { last_failure, .. } | PlatformState::Blocked(last_failure) => {
                Some(last_failure.clone())
            }
            PlatformState::Idle
            | PlatformState::Opening { .. }
            | PlatformState::Following
            | PlatformState::Offline => None,
        };
        self.stream = StreamId(self.stream.0 + 1);
        (self.opened, self.listing, self.stale, self.listed) = (now, false, false, false);
        self.actions.push_back(Action::Follow(self.stream));
        self.enter(PlatformState::Opening { last_failure });
    }

    fn close(&mut self) {
        if matches!(self.state, PlatformState::Following | PlatformState::Opening { .. }) {
            self.actions.push_back(Action::Unfollow(self.stream));
        }
        (self.listing, self.stale) = (false, false);
    }

    fn lost(&mut self, now: Instant, failure: Failure) {
        if !matches!(self.state, PlatformState::Following | PlatformState::Opening { .. }) {
            return;
        }
        self.close();
        if self.state == PlatformState::Following && now.since(self.opened) >= LASTING {
            self.ladder.reset();
        }
        match failure.class() {
            FailureClass::Transient if self.network == Network::Offline => {
                self.enter(PlatformState::Offline);
            }
            FailureClass::Transient | FailureClass::Asleep => {
                let pause = self.ladder.climb(&mut self.chance, failure.retry_after);
                let retry_at = now.after(pause);
                self.enter(PlatformState::Backoff { last_failure: failure, retry_at });
            }
            FailureClass::Blocked => self.enter(PlatformState::Blocked(failure)),
        }
    }

    fn enter(&mut self, state: PlatformState) {
        if self.state != state {
            self.state = state;
            self.actions.push_back(Action::Changed);
        }
    }
}
