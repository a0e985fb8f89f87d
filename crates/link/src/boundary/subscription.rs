//! One durable subscription.

use std::time::Duration;

use crate::{Failure, FailureClass, FailureReason, Instant};

/// The shortest wait before a subscription that failed begins anew on the same session. Without it
/// a wrong setting would ask a host as fast as it refuses (spec client-runtime, W15).
pub const RESUBSCRIBE_LEAST: Duration = Duration::from_millis(250);

/// What to do when the host refuses or ends a subscription while the session goes on.
///
/// It does not speak of what is lost with a session, which always waits for the next one; nor of
/// what is not there, which always ends the subscription. What no repetition mends (a missing
/// scope, an unknown method) never waits for a time, only for the next session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OnFailure {
    /// End the subscription and say why.
    Surface,
    /// Say why, and wait for the next session.
    Dormant,
    /// Say why, and begin anew on the same session.
    After {
        /// After this wait at first, at least [`RESUBSCRIBE_LEAST`]; each further failure doubles
        /// it. It is the first one again on the next session, and after the subscription has
        /// lasted for `most`.
        least: Duration,
        /// After this wait at most.
        most: Duration,
    },
}

/// How far a subscription is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stage {
    /// There is no session.
    Waiting,
    /// Its input is awaited.
    Building,
    /// Its call is given to the session.
    Sending,
    /// Its call is open.
    Open { since: Instant },
    /// It failed, and waits for the next session.
    Dormant,
    /// It failed, and begins anew at this moment.
    Delayed { until: Instant },
}

/// What a failure makes of a subscription.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Verdict {
    /// It waits for the next session; nothing is said, since the session itself is at fault.
    Silent,
    /// It goes on; whoever owns it is told, and when it begins anew on this session.
    Told(Option<Instant>),
    /// It is over.
    Over,
}

/// One durable subscription.
#[derive(Debug)]
pub(super) struct Subscription {
    on_failure: OnFailure,
    stage: Stage,
    /// The wait after the last failure on this session.
    waited: Option<Duration>,
}

impl Subscription {
    pub(super) const fn new(on_failure: OnFailure) -> Self {
        Self { on_failure, stage: Stage::Waiting, waited: None }
    }

    pub(super) const fn stage(&self) -> Stage {
        self.stage
    }

    /// There is a new session. Its input is to be built.
    pub(super) const fn handle_published(&mut self) {
        self.stage = Stage::Building;
        self.waited = None;
    }

    /// There is no session any more. Returns whether it carried this subscription.
    pub(super) const fn handle_unpublished(&mut self) -> bool {
        let was_open = matches!(self.stage, Stage::Open { .. });
        self.stage = Stage::Waiting;
        was_open
    }

    /// Its input is there. Returns whether it was awaited.
    pub(super) fn handle_input(&mut self) -> bool {
        let awaited = self.stage == Stage::Building;
        if awaited {
            self.stage = Stage::Sending;
        }
        awaited
    }

    pub(super) const fn handle_started(&mut self, now: Instant) {
        self.stage = Stage::Open { since: now };
    }

    /// It is to begin anew on the present session. Returns whether its input is to be built.
    pub(super) const fn begin_anew(&mut self) -> bool {
        match self.stage {
            Stage::Waiting | Stage::Building => false,
            Stage::Sending | Stage::Open { .. } | Stage::Dormant | Stage::Delayed { .. } => {
                self.stage = Stage::Building;
                true
            }
        }
    }

    /// Time has passed. Returns whether its input is to be built.
    pub(super) fn handle_timeout(&mut self, now: Instant) -> bool {
        match self.stage {
            Stage::Delayed { until } if until <= now => self.begin_anew(),
            Stage::Delayed { .. }
            | Stage::Waiting
            | Stage::Building
            | Stage::Sending
            | Stage::Open { .. }
            | Stage::Dormant => false,
        }
    }

    pub(super) const fn poll_timeout(&self) -> Option<Instant> {
        match self.stage {
            Stage::Delayed { until } => Some(until),
            Stage::Waiting
            | Stage::Building
            | Stage::Sending
            | Stage::Open { .. }
            | Stage::Dormant => None,
        }
    }

    /// It failed while the session goes on, or before its call was sent.
    pub(super) fn handle_failed(&mut self, now: Instant, failure: &Failure) -> Verdict {
        if failure.reason == FailureReason::Transport {
            self.stage = Stage::Waiting;
            return Verdict::Silent;
        }
        let wait = match (self.on_failure, failure.class()) {
            (OnFailure::Surface, FailureClass::Transient | FailureClass::Blocked) => {
                return Verdict::Over;
            }
            // The environment is being put to sleep, and its socket with it: that ends nothing.
            (OnFailure::Surface | OnFailure::Dormant, FailureClass::Asleep)
            | (OnFailure::Dormant, FailureClass::Transient | FailureClass::Blocked)
            | (OnFailure::After { .. }, FailureClass::Blocked) => None,
            (OnFailure::After { least, most }, FailureClass::Transient | FailureClass::Asleep) => {
                Some(self.next_wait(now, least, most))
            }
        };
        let Some(wait) = wait else {
            self.stage = Stage::Dormant;
            return Verdict::Told(None);
        };
        self.waited = Some(wait);
        let until = now.after(wait);
        self.stage = Stage::Delayed { until };
        Verdict::Told(Some(until))
    }

    fn next_wait(&self, now: Instant, least: Duration, most: Duration) -> Duration {
        let least = least.max(RESUBSCRIBE_LEAST);
        let most = most.max(least);
        let lasted = match self.stage {
            Stage::Open { since } => now.since(since) >= most,
            Stage::Waiting
            | Stage::Building
            | Stage::Sending
            | Stage::Dormant
            | Stage::Delayed { .. } => false,
        };
        let waited = self.waited.filter(|_| !lasted);
        waited.map_or(least, |waited| waited.saturating_mul(2).min(most))
    }
}
