//! Chance that is passed in: a seed, and numbers that follow from it.

use std::time::Duration;

/// Numbers that follow from a seed (SplitMix64). The shell draws the seed from the system, so two
/// clients differ; a test gives it, so a run can be repeated. Not for secrets.
#[derive(Debug, Clone)]
pub struct Chance(u64);

impl Chance {
    /// Begins at a seed.
    #[must_use]
    pub const fn seeded(seed: u64) -> Self {
        Self(seed)
    }

    /// The next number.
    pub const fn draw(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A duration from `least` to `most`, both possible, in whole milliseconds. `least` where they
    /// are the wrong way round.
    pub fn between(&mut self, least: Duration, most: Duration) -> Duration {
        let width = most.saturating_sub(least).as_millis();
        let width = u64::try_from(width).unwrap_or(u64::MAX - 1).min(u64::MAX - 1);
        least.saturating_add(Duration::from_millis(self.draw() % (width + 1)))
    }

    /// Another source that follows from this one, for one part of a whole.
    #[must_use]
    pub const fn split(&mut self) -> Self {
        Self(self.draw())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_seed_gives_one_row_of_numbers_and_another_seed_another() {
        let row = |seed| {
            let mut chance = Chance::seeded(seed);
            [chance.draw(), chance.draw(), chance.draw()]
        };
        assert_eq!(row(7), row(7));
        assert_ne!(row(7), row(8));
    }

    #[test]
    fn a_duration_lies_between_its_bounds() {
        let mut chance = Chance::seeded(1);
        let (least, most) = (Duration::from_millis(5), Duration::from_millis(8));
        let drawn: std::collections::BTreeSet<_> =
            (0..200).map(|_| chance.between(least, most)).collect();
        assert_eq!(drawn.first(), Some(&least));
        assert_eq!(drawn.last(), Some(&most));
        assert_eq!(drawn.len(), 4);
        assert_eq!(chance.between(most, least), most, "the wrong way round");
    }
}
