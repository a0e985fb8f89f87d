//! What two readings of the clocks tell of the time between.

use std::time::Duration;

/// A machine that was away for less did not sleep: the clocks were read one after the other.
const ASLEEP_MIN: Duration = Duration::from_secs(1);
/// A process that is so late was busy, or its machine was; one that is later was stopped.
const LATE_MAX: Duration = Duration::from_secs(2);

/// What the clocks said at one moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Sample {
    /// Goes on while the machine sleeps.
    pub boot: Duration,
    /// Stands still while the machine sleeps.
    pub monotonic: Duration,
}

/// Readings of the clocks, each compared with the one before.
#[derive(Debug)]
pub(super) struct Readings {
    last: Sample,
}

impl Readings {
    /// The first reading tells of nothing.
    pub(super) const fn begun(first: Sample) -> Self {
        Self { last: first }
    }

    /// The next reading, which was to come after `planned`. How long the machine slept or the
    /// process was stopped since the one before; `None` if neither.
    ///
    /// The machine's sleep is exact. A stop is known by its lateness alone, so it was longer than
    /// said by at most `planned`.
    pub(super) fn read(&mut self, now: Sample, planned: Duration) -> Option<Duration> {
        between(std::mem::replace(&mut self.last, now), now, planned)
    }
}

fn between(before: Sample, after: Sample, planned: Duration) -> Option<Duration> {
    let ran = after.monotonic.saturating_sub(before.monotonic);
    let passed = after.boot.saturating_sub(before.boot);
    let asleep = passed.saturating_sub(ran);
    let late = ran.saturating_sub(planned);
    let mut suspended = Duration::ZERO;
    if asleep >= ASLEEP_MIN {
        suspended += asleep;
    }
    if late > LATE_MAX {
        suspended += late;
    }
    (!suspended.is_zero()).then_some(suspended)
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLANNED: Duration = Duration::from_secs(5);

    /// What is said if the process's clock moved by `ran` and the machine slept for `asleep`, both
    /// in milliseconds.
    fn said(ran: u64, asleep: u64) -> Option<u64> {
        let before = Sample { boot: Duration::from_secs(900), monotonic: Duration::from_secs(700) };
        let ran = Duration::from_millis(ran);
        let after = Sample {
            boot: before.boot + ran + Duration::from_millis(asleep),
            monotonic: before.monotonic + ran,
        };
        let said = between(before, after, PLANNED);
        said.map(|suspended| u64::try_from(suspended.as_millis()).unwrap())
    }

    #[test]
    fn a_machine_that_slept_and_a_process_that_was_stopped_are_told_from_a_busy_one() {
        let table = [
            // In time, early because the machine came back, and late because it is busy.
            (5_000, 0, None),
            (0, 0, None),
            (7_000, 0, None),
            // The process was stopped.
            (7_001, 0, Some(2_001)),
            (13_000, 0, Some(8_000)),
            (3_605_000, 0, Some(3_600_000)),
            // The clocks were not read at quite the same moment.
            (5_000, 999, None),
            // The machine slept, and the timer ran out meanwhile or not.
            (5_000, 1_000, Some(1_000)),
            (200, 28_000, Some(28_000)),
            (4_999, 86_400_000, Some(86_400_000)),
            // A stopped process on a machine that slept.
            (35_000, 60_000, Some(90_000)),
            // Busy, on a machine that slept: the lateness says nothing.
            (6_500, 40_000, Some(40_000)),
        ];
        for (ran, asleep, expected) in table {
            assert_eq!(said(ran, asleep), expected, "ran {ran}, asleep {asleep}");
        }
    }

    #[test]
    fn a_gap_is_told_once_and_time_that_passes_is_none() {
        let sample = |boot, monotonic| Sample {
            boot: Duration::from_secs(boot),
            monotonic: Duration::from_secs(monotonic),
        };
        let mut readings = Readings::begun(sample(100, 100));
        let table = [
            (105, 105, None),
            (110, 110, None),
            // The process is stopped for ten seconds.
            (125, 125, Some(10)),
            (130, 130, None),
            // The machine sleeps for an hour.
            (3_733, 133, Some(3_600)),
            (3_738, 138, None),
            (3_743, 143, None),
        ];
        for (boot, monotonic, expected) in table {
            let told = readings.read(sample(boot, monotonic), PLANNED);
            assert_eq!(told, expected.map(Duration::from_secs), "at {boot}");
        }
    }

    #[test]
    fn clocks_that_seem_to_go_back_say_nothing() {
        let early = Sample { boot: Duration::from_secs(8), monotonic: Duration::from_secs(8) };
        let later = Sample { boot: Duration::from_secs(9), monotonic: Duration::from_secs(10) };
        assert_eq!(between(later, early, PLANNED), None);
        assert_eq!(between(early, later, PLANNED), None);
    }
}
