//! How often a signal may end a wait early.

use std::time::Duration;

use crate::Instant;

/// Signals that nobody gave by hand (the network is back, the environment is ready, a neighbour
/// could be reached) end a wait at once, but no more than once in this time: a radio that flaps
/// must not hammer a server. A session that became ready clears the count.
pub const HURRY_GAP: Duration = Duration::from_secs(30);

/// When an attempt last began early. A wait that was given up again counts as nothing.
#[derive(Debug, Clone, Default)]
pub(super) struct Hurry {
    last: Option<Instant>,
}

impl Hurry {
    /// The earliest moment that a signal of now may choose.
    pub(super) fn earliest(&self, now: Instant) -> Instant {
        self.last.map_or(now, |last| last.after(HURRY_GAP).max(now))
    }

    /// An attempt begins now, early.
    pub(super) const fn spend(&mut self, now: Instant) {
        self.last = Some(now);
    }

    /// The last one was worth it.
    pub(super) const fn clear(&mut self) {
        self.last = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_signal_ends_a_wait_at_once_but_not_twice_in_half_a_minute() {
        let mut hurry = Hurry::default();
        assert_eq!(hurry.earliest(Instant(5_000)), Instant(5_000));
        hurry.spend(Instant(5_000));
        assert_eq!(hurry.earliest(Instant(6_000)), Instant(35_000));
        assert_eq!(hurry.earliest(Instant(40_000)), Instant(40_000));
        hurry.clear();
        assert_eq!(hurry.earliest(Instant(6_000)), Instant(6_000));
    }
}
