//! When a read that failed is made again without anybody asking.

use std::time::Duration;

use crate::{Failure, FailureClass, Instant};

/// How long after the first failure: a host that answers again within a blink is met soon, and one
/// that refuses is not asked more often than a person would.
pub const RETRY_FIRST: Duration = Duration::from_secs(2);
/// The longest pause. The session is up meanwhile, so a minute is what somebody waits at most after
/// the cause is gone.
pub const RETRY_MAX: Duration = Duration::from_secs(60);

/// Failures in a row, and when to try again.
#[derive(Debug, Clone, Default)]
pub(crate) struct Retry {
    failures: u32,
    at: Option<Instant>,
}

impl Retry {
    /// A read failed. What cannot work until something changes is not tried again by itself.
    pub(crate) fn handle_failed(&mut self, now: Instant, failure: &Failure) {
        let pause = RETRY_FIRST.saturating_mul(1_u32.wrapping_shl(self.failures.min(16)));
        let pause = pause.min(RETRY_MAX).max(failure.retry_after.unwrap_or(Duration::ZERO));
        self.failures = self.failures.saturating_add(1);
        self.at = match failure.class() {
            FailureClass::Transient => Some(now.after(pause)),
            FailureClass::Blocked | FailureClass::Asleep => None,
        };
    }

    /// When to try again.
    pub(crate) const fn at(&self) -> Option<Instant> {
        self.at
    }

    /// Whether it is time. Answers yes once.
    pub(crate) fn is_due(&mut self, now: Instant) -> bool {
        self.at.take_if(|at| *at <= now).is_some()
    }

    /// It worked, or everything begins anew.
    pub(crate) fn clear(&mut self) {
        *self = Self::default();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::FailureReason;

    #[test]
    fn pauses_double_up_to_a_minute_and_what_is_blocked_is_not_tried_again() {
        let mut retry = Retry::default();
        let failure = Failure::new(FailureReason::Network, "no route");
        for seconds in [2, 4, 8, 16, 32, 60, 60] {
            retry.handle_failed(Instant(500), &failure);
            assert_eq!(retry.at(), Some(Instant(500 + seconds * 1_000)));
        }
        retry.handle_failed(Instant(0), &Failure::new(FailureReason::Permission, "no"));
        assert_eq!(retry.at(), None);
        retry.clear();
        let told = Failure { retry_after: Some(Duration::from_secs(90)), ..failure };
        retry.handle_failed(Instant(0), &told);
        assert_eq!(retry.at(), Some(Instant(90_000)));
        assert!(!retry.is_due(Instant(89_999)));
        assert!(retry.is_due(Instant(90_000)));
        assert!(!retry.is_due(Instant(90_000)));
    }
}
