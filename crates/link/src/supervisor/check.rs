//! Finding out whether a session still lives.

use std::time::Duration;

use crate::{
    Instant,
    route::RouteClass,
    supervisor::{round_trip::RoundTrip, suspension::Foreground},
};

/// A probe unanswered for this long is doubted: the host is asked by a fresh request (seed, One
/// transport retry owner; so are all times of a check but [`BUSY_MOST`]).
pub const FIRST_ASK: Duration = Duration::from_millis(500);

/// The host is asked again each time this much has passed, until it answers.
pub const ASK_AGAIN: Duration = Duration::from_secs(1);

/// How long a probe may stay unanswered on this machine, in the local network, and after a long
/// suspension.
pub const DEADLINE_SHORT: Duration = Duration::from_secs(3);

/// How long it may stay unanswered elsewhere: a relayed way can be this slow on a live socket.
pub const DEADLINE_FAR: Duration = Duration::from_secs(15);

/// Frames that come in show a busy host, not a dead socket: each lets the deadline begin anew, up
/// to this time after the check's start. Then a host that streams but answers nothing is given up.
pub const BUSY_MOST: Duration = Duration::from_secs(60);

/// Why a session is looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Trigger {
    Foreground(Foreground),
    RetryNow,
    Network,
    Path,
    Silence,
}

impl Trigger {
    /// Whether the host may be asked. Not when a window comes to the front: a busy host can answer
    /// the fresh request before a probe that waits in line, and its socket would be killed.
    const fn may_ask(self) -> bool {
        !matches!(self, Self::Foreground(Foreground::Desk))
    }

    /// Whether what is on the screen is old, so that patience is out of place.
    pub(super) const fn is_long(self) -> bool {
        matches!(self, Self::Foreground(Foreground::Long))
    }

    /// Whether a person is there.
    pub(super) const fn is_attended(self) -> bool {
        matches!(self, Self::Foreground(_) | Self::RetryNow)
    }
}

/// What a check has come to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Due {
    /// Ask the host (again).
    Ask,
    /// The host answers, and the socket does not: it is dead.
    DeadByEvidence,
    /// The probe's time is up.
    DeadBySilence,
}

/// One check of one session.
#[derive(Debug, Clone)]
pub(super) struct Check {
    pub(super) number: u64,
    started: Instant,
    near: bool,
    pub(super) long: bool,
    pub(super) attended: bool,
    /// How long a silence with evidence means nothing, counted from the start.
    patience: Duration,
    next_ask: Option<Instant>,
    asking: bool,
    answered: Option<Instant>,
    heard: Option<Instant>,
}

impl Check {
    /// Begins with the probe that is sent now.
    pub(super) fn begin(
        number: u64,
        now: Instant,
        trigger: Trigger,
        route: RouteClass,
        round_trip: &RoundTrip,
    ) -> Self {
        Self {
            number,
            started: now,
            near: route.is_near(),
            long: trigger.is_long(),
            attended: trigger.is_attended(),
            patience: if route.is_near() { Duration::ZERO } else { round_trip.patience() },
            next_ask: trigger.may_ask().then(|| now.after(FIRST_ASK)),
            asking: false,
            answered: None,
            heard: None,
        }
    }

    /// Another reason came up meanwhile. It starts no second check, but what it allows is allowed
    /// from now on.
    pub(super) fn join(&mut self, now: Instant, trigger: Trigger) {
        self.attended |= trigger.is_attended();
        let undecided = self.answered.is_none() && self.heard.is_none();
        if trigger.may_ask() && undecided && self.next_ask.is_none() {
            self.next_ask = Some(now.after(FIRST_ASK));
        }
    }

    /// A frame came in: the socket lives, and the host's answers prove nothing any more.
    pub(super) const fn heard(&mut self, now: Instant) {
        self.heard = Some(now);
        self.next_ask = None;
    }

    /// The host answered a fresh request.
    pub(super) const fn host_answered(&mut self, now: Instant) {
        if self.answered.is_none() {
            self.answered = Some(now);
        }
        self.next_ask = None;
    }

    /// Whether the host answered and the socket gave no sign since the start.
    pub(super) const fn has_evidence(&self) -> bool {
        self.answered.is_some() && self.heard.is_none()
    }

    /// Since when the probe has been on its way.
    pub(super) const fn started(&self) -> Instant {
        self.started
    }

    /// Whether a request may be under way that is not needed any more; says so once.
    pub(super) const fn stop_asking(&mut self) -> bool {
        let was = self.asking;
        self.asking = false;
        was
    }

    fn verdict(&self) -> Option<Instant> {
        let answered = self.answered?;
        self.has_evidence().then(|| answered.max(self.started.after(self.patience)))
    }

    fn deadline(&self) -> Instant {
        let patience = if self.near || self.long { DEADLINE_SHORT } else { DEADLINE_FAR };
        let last_sign = self.heard.unwrap_or(self.started);
        last_sign.after(patience).min(self.started.after(BUSY_MOST))
    }

    /// When something is due next.
    pub(super) fn poll_timeout(&self) -> Option<Instant> {
        Instant::earliest([self.next_ask, self.verdict(), Some(self.deadline())])
    }

    /// What is due now. A request that is due is counted as made.
    pub(super) fn poll_due(&mut self, now: Instant) -> Option<Due> {
        if self.verdict().is_some_and(|at| at <= now) {
            return Some(Due::DeadByEvidence);
        }
        if self.deadline() <= now {
            return Some(Due::DeadBySilence);
        }
        let at = self.next_ask.filter(|at| *at <= now)?;
        // On the grid of the check's own seconds, also when it is looked at late.
        let next = at.after(ASK_AGAIN);
        self.next_ask = Some(if next > now { next } else { now.after(ASK_AGAIN) });
        self.asking = true;
        Some(Due::Ask)
    }
}
