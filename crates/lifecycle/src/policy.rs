//! The numbers that a plan goes by.

use std::time::Duration;

use wakeful_wire::ClockKind;

/// The numbers that a plan goes by. All are resolved once, from the configuration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Policy {
    /// How long the agent clock runs after a touch.
    pub idle_agent: Duration,
    /// How long the app clock runs after a touch.
    pub idle_app: Duration,
    /// How long a ready sandbox may be unready before it is replaced (W16).
    pub unready_grace: Duration,
    /// How long one start may take before it counts as failed.
    pub start_timeout: Duration,
    /// How many starts in a row may fail before the environment is `failed` (W19).
    pub start_attempts: u32,
    /// The pause before the second start; it doubles with each further one.
    pub retry_base: Duration,
    /// The longest pause between two starts.
    pub retry_cap: Duration,
    /// How long a sandbox must have been ready for its end not to count as a failed start.
    pub stable_after: Duration,
    /// When `failed` for a passing reason becomes `suspended`, so that a visit tries again (W20).
    pub heal_after: Duration,
    /// How long gateways get to answer a drain. An idle suspend is given up then; one that a
    /// person asked for goes on.
    pub drain_deadline: Duration,
    /// How long processes get between SIGTERM and SIGKILL.
    pub stop_grace: Duration,
    /// How soon a step that failed is tried again.
    pub step_retry: Duration,
    /// How long one turn of an agent keeps its environment awake at most.
    pub turn_limit: Duration,
    /// How often what is held open is reported again, and touches its clock.
    pub keepalive_interval: Duration,
}

impl Policy {
    /// How long this clock runs after a touch.
    #[must_use]
    pub const fn idle(&self, clock: ClockKind) -> Duration {
        match clock {
            ClockKind::Agent => self.idle_agent,
            ClockKind::App => self.idle_app,
        }
    }

    /// The shorter of the two idle timeouts.
    #[must_use]
    pub fn idle_min(&self) -> Duration {
        self.idle_agent.min(self.idle_app)
    }

    /// How long a report of something held lasts unless it is repeated: two and a half intervals.
    #[must_use]
    pub fn lease_time(&self) -> Duration {
        self.keepalive_interval * 5 / 2
    }

    /// The pause after `failed` starts in a row: none after the first success, then doubling.
    #[must_use]
    pub fn retry_pause(&self, failed: u32) -> Duration {
        match failed {
            0 => Duration::ZERO,
            n => self.retry_base.saturating_mul(1 << (n - 1).min(20)).min(self.retry_cap),
        }
    }
}

impl Default for Policy {
    fn default() -> Self {
        Self {
            idle_agent: Duration::from_secs(30 * 60),
            idle_app: Duration::from_secs(10 * 60),
            unready_grace: Duration::from_secs(60),
            start_timeout: Duration::from_secs(120),
            start_attempts: 5,
            retry_base: Duration::from_secs(1),
            retry_cap: Duration::from_secs(300),
            stable_after: Duration::from_secs(60),
            heal_after: Duration::from_secs(300),
            drain_deadline: Duration::from_secs(10),
            stop_grace: Duration::from_secs(5),
            step_retry: Duration::from_secs(1),
            turn_limit: Duration::from_secs(6 * 3_600),
            keepalive_interval: Duration::from_secs(60),
        }
    }
}
