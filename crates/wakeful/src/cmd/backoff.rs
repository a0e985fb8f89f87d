//! The pauses between tries of the same thing.

use std::time::Duration;

/// The first pause at most.
const FIRST: Duration = Duration::from_millis(500);

/// Pauses that double up to a bound, over a bounded number of tries. Each is shortened
/// by chance to not less than half, so that many clients of one host do not come back in step.
#[derive(Debug, Clone)]
pub(super) struct Backoff {
    next: Duration,
    longest: Duration,
    left: u32,
}

impl Backoff {
    /// So many pauses, each of at most `longest`.
    pub(super) const fn tries(pauses: u32, longest: Duration) -> Self {
        Self { next: FIRST, longest, left: pauses }
    }

    /// The next pause; nothing when it was tried often enough. `chance` is between 0 and 1.
    pub(super) fn pause(&mut self, chance: f64) -> Option<Duration> {
        self.left = self.left.checked_sub(1)?;
        let pause = self.next;
        self.next = (pause * 2).min(self.longest);
        Some(pause.mul_f64(chance.clamp(0.0, 1.0).mul_add(0.5, 0.5)))
    }
}

/// Between 0 and 1, and different on every machine.
pub(super) fn chance() -> f64 {
    getrandom::u32().map_or(1.0, |bits| f64::from(bits) / f64::from(u32::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_double_up_to_their_bound_and_end() {
        let mut backoff = Backoff::tries(5, Duration::from_millis(1_400));
        let pauses: Vec<_> = std::iter::from_fn(|| Some(backoff.pause(1.0)?.as_millis())).collect();
        assert_eq!(pauses, [500, 1_000, 1_400, 1_400, 1_400]);
    }

    #[test]
    fn a_pause_is_shortened_by_chance_to_half_at_most() {
        let mut backoff = Backoff::tries(2, Duration::from_secs(30));
        assert_eq!(backoff.pause(0.0).unwrap().as_millis(), 250);
        assert_eq!(backoff.pause(0.5).unwrap().as_millis(), 750);
    }
}
