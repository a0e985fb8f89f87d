//! The pauses between tries to connect.

use std::time::Duration;

/// The first pause at most.
const FIRST: Duration = Duration::from_millis(500);
/// No pause is longer.
const LONGEST: Duration = Duration::from_secs(30);

/// Pauses that double, each shortened by chance to not less than half, so that many clients of one
/// host do not come back in step.
#[derive(Debug)]
pub(super) struct Backoff(Duration);

impl Backoff {
    /// Begins with the shortest.
    pub(super) const fn new() -> Self {
        Self(FIRST)
    }

    /// The next pause. `chance` is between 0 and 1.
    pub(super) fn pause(&mut self, chance: f64) -> Duration {
        let pause = self.0;
        self.0 = (pause * 2).min(LONGEST);
        pause.mul_f64(chance.clamp(0.0, 1.0).mul_add(0.5, 0.5))
    }

    /// Begins anew: something has worked.
    pub(super) const fn reset(&mut self) {
        self.0 = FIRST;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_double_to_half_a_minute_and_begin_anew() {
        let mut backoff = Backoff::new();
        let pauses: Vec<_> = (0..9).map(|_| backoff.pause(1.0).as_millis()).collect();
        assert_eq!(pauses, [500, 1_000, 2_000, 4_000, 8_000, 16_000, 30_000, 30_000, 30_000]);
        backoff.reset();
        assert_eq!(backoff.pause(0.0).as_millis(), 250);
        assert_eq!(backoff.pause(0.5).as_millis(), 750);
    }
}
