//! A person's wish that a sleeping environment wake.

use std::time::Duration;

use crate::Instant;

/// How many attempts in a row may wake: the one that the person asked for and five retries of it.
pub const WAKING_ATTEMPTS: u8 = 6;

/// After this much time nobody is taken to be waiting any more, so that a retry far in the
/// background wakes nothing.
pub const INTENT_LASTS: Duration = Duration::from_secs(600);

/// A wish that is not fulfilled yet. Ends with a session, with a disconnect, with a long
/// suspension, and by its bounds.
#[derive(Debug, Clone)]
pub(super) struct Intent {
    left: u8,
    until: Instant,
}

impl Intent {
    /// A person's wish of this moment.
    pub(super) fn expressed(now: Instant) -> Self {
        Self { left: WAKING_ATTEMPTS, until: now.after(INTENT_LASTS) }
    }

    /// Whether the next attempt may wake.
    pub(super) fn holds(&self, now: Instant) -> bool {
        self.left > 0 && now < self.until
    }

    /// Whether the attempt that begins now may wake; counts it.
    pub(super) fn spend(&mut self, now: Instant) -> bool {
        let holds = self.holds(now);
        if holds {
            self.left -= 1;
        }
        holds
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_intent_wakes_six_times_within_ten_minutes_and_then_no_more() {
        let mut intent = Intent::expressed(Instant(0));
        let spent: Vec<_> = (0..8).map(|second| intent.spend(Instant(second * 1_000))).collect();
        assert_eq!(spent, [true, true, true, true, true, true, false, false]);
        let mut intent = Intent::expressed(Instant(0));
        assert!(intent.spend(Instant(599_999)));
        assert!(!intent.spend(Instant(600_000)));
    }
}
