//! The one owner of transport retries of a host.
//!
//! # Theory of operation
//!
//! A [`Supervisor`] is told what happens ([`Input`]) and says what is to be done ([`Action`]). It
//! has at most one attempt under way, and at most one published session. Each attempt is made once
//! by whoever carries it out; only here is it decided whether and when another one follows.
//!
//! - A transient failure climbs the [`backoff`] ladder. Offline, blocked and asleep make no
//!   attempts: they wait for a sign.
//! - A session is never given up on a rumour. Signs that it may be dead start a check (`check`);
//!   only a failed one, or the socket's own end, replaces it.
//! - On a way where one lost packet can stall a live socket, the replacement is begun before the
//!   verdict and published at it, so that a change of sockets is no gap.
//! - A sleeping environment is woken by a person's intent alone (`intent`).
//! - Attempts of all hosts together are let through by the [`Budget`].
//!
//! # What this module never does
//!
//! It does not wait, send, or know which host it stands for.

pub mod backoff;
pub mod budget;
pub mod check;
pub mod round_trip;

mod action;
mod attempt;
mod checking;
mod flaps;
mod hurry;
mod input;
mod intent;
mod outcome;
mod signals;
mod suspension;

#[cfg(all(test, not(target_arch = "wasm32")))]
mod properties;
#[cfg(test)]
mod tests;

use std::{collections::VecDeque, time::Duration};

pub use action::{Action, ReleaseReason};
pub use attempt::SETUP_BUDGET;
pub use budget::Budget;
pub use flaps::{FLAPS_TOLD, HASTES_MOST};
pub use hurry::HURRY_GAP;
pub use input::Input;
pub use intent::{INTENT_LASTS, WAKING_ATTEMPTS};
pub use suspension::{Foreground, LONG_SUSPENSION};
use wakeful_wire::Phase;

use self::{
    attempt::{Attempt, Replacement, Session},
    backoff::Ladder,
    check::Check,
    flaps::Flaps,
    hurry::Hurry,
    intent::Intent,
    round_trip::RoundTrip,
};
use crate::{
    AttemptId, Chance, ConnectionPhase, ConnectionState, Failure, Instant, Network,
    route::RouteClass,
};

/// Clients that wait for the same environment, or the same neighbour, come back spread over this.
pub const SIGNAL_SPREAD: Duration = Duration::from_secs(2);

/// One call of [`Supervisor::handle`] or [`Supervisor::handle_timeout`] gives no more actions than
/// this. So many wait at most, if the parent takes them after each call as it must.
pub const ACTIONS_PER_CALL: usize = 8;

/// The one owner of transport retries of a host. See the module's theory of operation.
#[derive(Debug)]
pub struct Supervisor {
    state: ConnectionState,
    chance: Chance,
    /// Attempts numbered so far.
    attempts: u64,
    /// Checks numbered so far.
    checks: u64,
    ladder: Ladder,
    flaps: Flaps,
    hurry: Hurry,
    /// Whether the present wait ends early by a signal.
    hurried: bool,
    intent: Option<Intent>,
    attempt: Option<Attempt>,
    session: Option<Session>,
    check: Option<Check>,
    replacement: Option<Replacement>,
    round_trip: RoundTrip,
    /// The way that was last taken.
    route: Option<RouteClass>,
    /// The other side asked not to be visited before this. Only a person comes earlier.
    not_before: Option<Instant>,
    /// What the platform said last, apart from what a failure said.
    announced: Option<Phase>,
    actions: VecDeque<Action>,
}

impl Supervisor {
    /// A connection that nobody wants yet. `chance` is its own: no two are to wait alike.
    #[must_use]
    pub fn new(chance: Chance) -> Self {
        Self {
            state: ConnectionState::default(),
            chance,
            attempts: 0,
            checks: 0,
            ladder: Ladder::default(),
            flaps: Flaps::default(),
            hurry: Hurry::default(),
            hurried: false,
            intent: None,
            attempt: None,
            session: None,
            check: None,
            replacement: None,
            round_trip: RoundTrip::default(),
            route: None,
            not_before: None,
            announced: None,
            actions: VecDeque::new(),
        }
    }

    /// What is published.
    #[must_use]
    pub const fn state(&self) -> &ConnectionState {
        &self.state
    }

    /// The published session, by the attempt that it came from.
    #[must_use]
    pub fn session(&self) -> Option<AttemptId> {
        self.session.as_ref().map(|session| session.id)
    }

    /// Something happened. Total: no order of inputs is an error.
    pub fn handle(&mut self, now: Instant, input: Input) {
        match input {
            Input::Connect { wake } => self.connect(now, wake),
            Input::Disconnect => self.disconnect(),
            Input::RetryNow { wake } => self.retry_now(now, wake),
            Input::Network(network) => self.network(now, network),
            Input::PathChanged => self.path_changed(now),
            Input::CredentialsChanged { bound } => self.credentials_changed(now, bound),
            Input::Foreground(foreground) => self.foreground(now, foreground),
            Input::Environment(phase) => self.environment(now, phase),
            Input::Reachable => self.reachable(now),
            Input::Granted { attempt } => self.granted(now, attempt),
            Input::Stage { attempt, stage } => self.stage(attempt, stage),
            Input::Route { attempt, class } => self.routed(attempt, class),
            Input::Ready { attempt } => self.ready(now, attempt),
            Input::Failed { attempt, failure } | Input::Closed { attempt, failure } => {
                self.ended(now, attempt, failure);
            }
            Input::Frame { attempt } => self.frame(now, attempt),
            Input::Alive { attempt, check } => self.alive(now, attempt, check),
            Input::Silent { attempt } => self.silent(now, attempt),
            Input::HostAnswered { check } => self.host_answered(now, check),
            // The next request is made in its time, whatever became of this one.
            Input::HostFailed { check: _ } => {}
        }
    }

    /// When [`handle_timeout`](Self::handle_timeout) is to be called at the latest.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Instant> {
        Instant::earliest([
            self.attempt.as_ref().and_then(|attempt| attempt.deadline),
            self.replacement_deadline(),
            self.check.as_ref().and_then(Check::poll_timeout),
            self.state.retry_at,
        ])
    }

    /// Does what is due by now. May be called early, late and again.
    pub fn handle_timeout(&mut self, now: Instant) {
        self.replacement_timeout(now);
        self.check_timeout(now);
        self.attempt_timeout(now);
        if self.state.retry_at.is_some_and(|at| at <= now) {
            if self.hurried {
                self.hurry.spend(now);
            }
            self.start(now, false);
        }
    }

    /// What is to be done next. To be called after each call that tells something, until it gives
    /// nothing.
    pub fn poll_action(&mut self) -> Option<Action> {
        self.actions.pop_front()
    }

    fn push(&mut self, action: Action) {
        self.actions.push_back(action);
    }

    /// Makes an attempt, in place of the wait or the attempt that there is, unless the network is
    /// said to be gone.
    fn try_start(&mut self, now: Instant, urgent: bool) {
        if self.is_held_offline() {
            self.give_up_attempt();
            self.set_waiting(ConnectionPhase::Offline, None);
        } else {
            self.start(now, urgent);
        }
    }

    /// Makes an attempt, in place of the wait or the attempt that there is.
    fn start(&mut self, now: Instant, urgent: bool) {
        self.give_up_attempt();
        let attempt = self.want(urgent || self.may_wake(now));
        self.not_before = None;
        self.adopt(attempt);
    }

    /// This attempt is the one under way.
    fn adopt(&mut self, attempt: Attempt) {
        self.state.phase = ConnectionPhase::Connecting;
        self.state.stage = Some(attempt.stage);
        self.state.attempt = self.ladder.failures().saturating_add(1);
        self.state.retry_at = None;
        self.hurried = false;
        self.attempt = Some(attempt);
    }

    /// Numbers an attempt and asks the budget for it.
    fn want(&mut self, urgent: bool) -> Attempt {
        self.attempts += 1;
        let id = AttemptId(self.attempts);
        self.push(Action::Want { attempt: id, urgent });
        Attempt::wanted(id, urgent)
    }

    fn give_up_attempt(&mut self) {
        if let Some(attempt) = self.attempt.take() {
            self.push(Action::Abandon { attempt: attempt.id });
        }
        self.state.stage = None;
    }

    /// No attempt, until the moment or the sign that the phase waits for.
    const fn set_waiting(&mut self, phase: ConnectionPhase, retry_at: Option<Instant>) {
        self.state.phase = phase;
        self.state.stage = None;
        self.state.attempt = self.ladder.failures();
        self.state.retry_at = retry_at;
        self.hurried = false;
    }

    /// Whether the report that there is no network is to be believed: it means nothing for a host
    /// that was last reached on this machine.
    fn is_held_offline(&self) -> bool {
        self.state.network == Network::Offline && self.route != Some(RouteClass::Loopback)
    }

    fn may_wake(&self, now: Instant) -> bool {
        self.intent.as_ref().is_some_and(|intent| intent.holds(now))
    }

    /// A sign that nobody gave by hand ends a wait early: at once, or as soon as [`HURRY_GAP`] and
    /// the other side allow.
    fn hurry(&mut self, now: Instant, spread: Duration) {
        let drawn = self.chance.between(Duration::ZERO, spread);
        let asked = self.not_before.unwrap_or(now);
        let earliest = self.hurry.earliest(now).max(now.after(drawn)).max(asked);
        if self.state.retry_at.is_some_and(|at| at <= earliest) {
            return;
        }
        if self.is_held_offline() {
            self.set_waiting(ConnectionPhase::Offline, None);
        } else if earliest <= now {
            self.hurry.spend(now);
            self.start(now, false);
        } else {
            self.set_waiting(ConnectionPhase::Backoff, Some(earliest));
            self.hurried = true;
        }
    }

    /// What an environment is known by that sleeps or is about to.
    const fn sleeps(phase: Phase) -> bool {
        matches!(phase, Phase::Suspended | Phase::Frozen | Phase::Suspending)
    }

    /// Why it is not connected, for people and programs.
    fn set_failure(&mut self, failure: Failure) {
        if let Some(phase) = failure.phase {
            self.state.environment = Some(phase);
        }
        self.state.last_failure = Some(failure);
    }
}
