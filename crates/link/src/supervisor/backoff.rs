//! How long to wait before the next attempt.

use std::time::Duration;

use crate::Chance;

/// Ceilings of the waits after the first failures in a row; the last one holds for all that follow.
/// The first step up is a steep one, so that the clients of a restarted server, who all fail in the
/// same second, have no second with more than one in twenty of them from their second wait on. The
/// rest double. A host that can never be reached costs about 12 attempts in the first half hour and
/// about 100 in six.
pub const CEILINGS: [Duration; 6] = [
    Duration::from_secs(6),
    Duration::from_secs(36),
    Duration::from_secs(72),
    Duration::from_secs(144),
    Duration::from_secs(288),
    DELAY_MOST,
];

/// No drawn wait is longer (seed, One transport retry owner).
pub const DELAY_MOST: Duration = Duration::from_secs(300);

/// No wait is shorter: a server that is starting is not asked several times a second.
pub const DELAY_LEAST: Duration = Duration::from_secs(1);

/// Waits of the first rungs are drawn from [`DELAY_LEAST`] up, to spread a crowd as widely as can
/// be; those of the later ones from half their ceiling up, so that they grow for each client.
const WIDE_RUNGS: usize = 2;

/// A session that lasted this long shows that the connection works: the ladder begins anew after
/// it. A shorter one counts as a failure, or a host that ends each session at once would be asked
/// at a fixed rate for ever.
pub const LASTING: Duration = Duration::from_secs(30);

/// A wait that the other side asked for is believed up to this.
pub const RETRY_AFTER_MOST: Duration = Duration::from_secs(3_600);

/// Clients that were told the same time are spread over at most this much behind it: wide enough
/// that no second holds more than one in twenty of them.
pub const RETRY_AFTER_SPREAD: Duration = Duration::from_secs(40);

/// How many failures there were in a row, and the waits that follow from it.
#[derive(Debug, Clone, Default)]
pub(crate) struct Ladder {
    failures: u32,
}

impl Ladder {
    /// Failures in a row.
    pub(crate) const fn failures(&self) -> u32 {
        self.failures
    }

    /// Back to the first rung.
    pub(crate) const fn reset(&mut self) {
        self.failures = 0;
    }

    /// Counts a failure and draws the wait that follows it. `retry_after` is what the other side
    /// asked for: nobody comes before, and those told the same come spread.
    pub(crate) fn climb(&mut self, chance: &mut Chance, retry_after: Option<Duration>) -> Duration {
        let rung = usize::try_from(self.failures).unwrap_or(usize::MAX);
        self.failures = self.failures.saturating_add(1);
        let ceiling = CEILINGS.get(rung).copied().unwrap_or(DELAY_MOST);
        let floor = if rung < WIDE_RUNGS { DELAY_LEAST } else { ceiling / 2 };
        let drawn = chance.between(floor, ceiling);
        retry_after.map_or(drawn, |asked| {
            // A short time is not spread over a long one, and a crowd not over a short one.
            let width = ceiling.max(asked.saturating_mul(2)).min(RETRY_AFTER_SPREAD);
            let spread = chance.between(Duration::ZERO, width);
            drawn.max(asked.min(RETRY_AFTER_MOST) + spread)
        })
    }
}

/// What the other side asked to wait for, and this client's place behind it.
pub(super) fn believed(chance: &mut Chance, retry_after: Option<Duration>) -> Option<Duration> {
    let asked = retry_after?.min(RETRY_AFTER_MOST);
    Some(asked + chance.between(Duration::ZERO, RETRY_AFTER_SPREAD))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The waits of `rungs` failures in a row.
    fn waits(seed: u64, rungs: usize) -> Vec<Duration> {
        let (mut ladder, mut chance) = (Ladder::default(), Chance::seeded(seed));
        (0..rungs).map(|_| ladder.climb(&mut chance, None)).collect()
    }

    #[test]
    fn waits_grow_with_each_failure_and_never_pass_five_minutes() {
        let bounds =
            [(1, 6), (1, 36), (36, 72), (72, 144), (144, 288), (150, 300), (150, 300), (150, 300)];
        for seed in 0..2_000 {
            for (rung, (wait, (least, most))) in
                waits(seed, bounds.len()).into_iter().zip(bounds).enumerate()
            {
                assert!(
                    wait >= Duration::from_secs(least) && wait <= Duration::from_secs(most),
                    "rung {rung}: {wait:?}",
                );
            }
        }
        assert!(CEILINGS.is_sorted() && CEILINGS.iter().all(|ceiling| *ceiling <= DELAY_MOST));
    }

    #[test]
    fn two_sources_of_chance_give_different_waits_and_one_gives_the_same_again() {
        assert_ne!(waits(1, 6), waits(2, 6));
        assert_eq!(waits(1, 6), waits(1, 6));
    }

    /// When each of `clients` makes its `attempt`th attempt (1 is the first after the loss), in
    /// milliseconds after all lost their session at once.
    fn crowd(clients: u64, attempt: usize) -> Vec<u128> {
        (0..clients)
            .map(|seed| waits(seed * 7_919, attempt).iter().map(Duration::as_millis).sum())
            .collect()
    }

    fn fullest_second(moments: &[u128]) -> usize {
        let mut seconds = std::collections::BTreeMap::new();
        for at in moments {
            *seconds.entry(at / 1_000).or_insert(0_usize) += 1;
        }
        seconds.into_values().max().unwrap_or(0)
    }

    #[test]
    fn a_crowd_that_lost_its_server_comes_back_spread() {
        let first = crowd(1_000, 1);
        assert!(first.iter().all(|at| (1_000..=6_000).contains(at)));
        assert!(fullest_second(&first) <= 260, "spread over five seconds");
        for attempt in 2..=6 {
            let fullest = fullest_second(&crowd(1_000, attempt));
            assert!(fullest <= 50, "attempt {attempt}: {fullest} of 1000 in one second");
        }
    }

    #[test]
    fn a_hopeless_host_costs_about_twelve_attempts_in_half_an_hour_and_a_hundred_in_six() {
        let within = |seed, limit: u64| {
            let mut at = Duration::ZERO;
            waits(seed, 400)
                .into_iter()
                .take_while(|wait| {
                    at += *wait;
                    at <= Duration::from_secs(limit)
                })
                .count()
                + 1
        };
        for seed in 0..200 {
            let (half, six) = (within(seed, 1_800), within(seed, 21_600));
            assert!((10..=15).contains(&half), "{half} in half an hour");
            assert!((90..=110).contains(&six), "{six} in six hours");
        }
    }

    #[test]
    fn what_the_other_side_asked_for_is_a_floor_with_a_spread_behind_it() {
        let asked = Duration::from_secs(20);
        let drawn: Vec<_> = (0..500)
            .map(|seed| Ladder::default().climb(&mut Chance::seeded(seed), Some(asked)))
            .collect();
        assert!(drawn.iter().all(|wait| *wait >= asked && *wait <= asked + RETRY_AFTER_SPREAD));
        let moments: Vec<u128> = drawn.iter().map(Duration::as_millis).collect();
        assert!(fullest_second(&moments) <= 25, "one in twenty of 500 in one second");
        let soon = Duration::from_secs(1);
        for seed in 0..100 {
            let wait = Ladder::default().climb(&mut Chance::seeded(seed), Some(soon));
            assert!(wait >= soon && wait <= Duration::from_secs(7), "a short time stays short");
        }
        let distinct: std::collections::BTreeSet<_> = drawn.iter().collect();
        assert!(distinct.len() > 300, "spread: {}", distinct.len());
        let high = (0..8).fold(Ladder::default(), |mut ladder, seed| {
            ladder.climb(&mut Chance::seeded(seed), None);
            ladder
        });
        for seed in 0..100 {
            let wait = high.clone().climb(&mut Chance::seeded(seed), Some(asked));
            assert!(wait >= Duration::from_secs(150), "a long wait stays long: {wait:?}");
            let wait = high.clone().climb(&mut Chance::seeded(seed), Some(Duration::MAX));
            assert!(wait <= RETRY_AFTER_MOST + RETRY_AFTER_SPREAD, "a year is not believed");
        }
    }

    #[test]
    fn a_ladder_counts_for_ever_and_begins_anew_when_told() {
        let (mut ladder, mut chance) = (Ladder { failures: u32::MAX }, Chance::seeded(3));
        assert!(ladder.climb(&mut chance, None) >= Duration::from_secs(150));
        assert_eq!(ladder.failures(), u32::MAX);
        ladder.reset();
        assert!(ladder.climb(&mut chance, None) <= Duration::from_secs(6));
        assert_eq!(ladder.failures(), 1);
    }
}
