//! One attempt, and what it became.

use std::time::Duration;

use crate::{
    AttemptId, Failure, FailureReason, Instant, Stage, route::RouteClass,
    supervisor::backoff::LASTING,
};

/// Preparing, opening and the host's hello have this much time together, from the moment that the
/// budget let the attempt begin. One deadline for all of it: whoever waits below gets what is left.
pub const SETUP_BUDGET: Duration = Duration::from_secs(15);

/// An attempt that is under way.
#[derive(Debug, Clone)]
pub(super) struct Attempt {
    pub(super) id: AttemptId,
    /// A person waits for it.
    pub(super) urgent: bool,
    /// Whether it wakes; known once it began.
    pub(super) wake: bool,
    /// When it has failed; `None` while it waits for the budget.
    pub(super) deadline: Option<Instant>,
    pub(super) stage: Stage,
    pub(super) route: Option<RouteClass>,
}

impl Attempt {
    pub(super) const fn wanted(id: AttemptId, urgent: bool) -> Self {
        Self { id, urgent, wake: false, deadline: None, stage: Stage::Waiting, route: None }
    }

    pub(super) const fn has_begun(&self) -> bool {
        self.deadline.is_some()
    }

    /// The budget let it begin. Returns its deadline.
    pub(super) fn begin(&mut self, now: Instant, wake: bool) -> Instant {
        let deadline = now.after(SETUP_BUDGET);
        self.deadline = Some(deadline);
        self.wake = wake;
        self.stage = Stage::Preparing;
        deadline
    }

    pub(super) fn is_over(&self, now: Instant) -> bool {
        self.deadline.is_some_and(|deadline| deadline <= now)
    }

    /// Why it ends at its deadline.
    pub(super) fn timeout(&self) -> Failure {
        let what = match self.stage {
            Stage::Waiting | Stage::Preparing => "what the connection needs could not be had",
            Stage::Opening => "the connection did not open",
            Stage::Synchronizing => "the host did not greet",
        };
        let hint = match self.route {
            Some(route) if route.is_near() => "",
            Some(_) | None => "; a network on the way may be blocking it",
        };
        let seconds = SETUP_BUDGET.as_secs();
        Failure::new(FailureReason::Timeout, format!("{what} within {seconds} s{hint}"))
    }

    pub(super) fn became_ready(self, now: Instant) -> Session {
        // A route that was never told is taken for a far one: its deadlines are the patient ones.
        Session { id: self.id, ready_at: now, route: self.route.unwrap_or(RouteClass::Public) }
    }
}

/// A socket that greeted.
#[derive(Debug, Clone)]
pub(super) struct Session {
    pub(super) id: AttemptId,
    pub(super) ready_at: Instant,
    pub(super) route: RouteClass,
}

impl Session {
    pub(super) fn is_lasting(&self, now: Instant) -> bool {
        now.since(self.ready_at) >= LASTING
    }
}

/// What was begun beside a session that seems dead, before that is certain.
#[derive(Debug, Clone)]
pub(super) enum Replacement {
    /// Its attempt is under way.
    UnderWay(Attempt),
    /// It is ready and held back, unpublished.
    Held(Session),
    /// It did not work.
    Failed(Failure),
}
