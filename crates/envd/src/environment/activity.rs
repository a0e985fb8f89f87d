//! How often use counts.

use std::time::Duration;

/// A moment: how long ago everything began.
pub(crate) type Tick = Duration;

/// Counts use, at most once each interval.
///
/// The first use counts at once. Further ones within the interval count together at its end: what
/// was used last is never forgotten, it is only told late, by less than an interval.
#[derive(Debug, Clone)]
pub(crate) struct Activity {
    interval: Duration,
    count: u64,
    counted_at: Option<Tick>,
    /// Somebody used it since it was counted.
    waits: bool,
}

impl Activity {
    pub(crate) const fn new(interval: Duration) -> Self {
        Self { interval, count: 0, counted_at: None, waits: false }
    }

    /// Somebody used it.
    pub(crate) fn handle_use(&mut self, now: Tick) {
        self.waits = true;
        self.handle_timeout(now);
    }

    /// When to call [`Self::handle_timeout`].
    pub(crate) fn poll_timeout(&self) -> Option<Tick> {
        self.waits.then(|| self.free_at())
    }

    /// Counts what waits, once the interval is over.
    pub(crate) fn handle_timeout(&mut self, now: Tick) {
        if self.waits && now >= self.free_at() {
            self.waits = false;
            self.count += 1;
            self.counted_at = Some(now);
        }
    }

    /// What has been counted. Only rises.
    pub(crate) const fn count(&self) -> u64 {
        self.count
    }

    fn free_at(&self) -> Tick {
        self.counted_at.map_or(Tick::ZERO, |at| at.saturating_add(self.interval))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    enum Step {
        Use,
        Look,
    }
    use Step::{Look, Use};

    #[test]
    fn use_counts_at_once_and_then_once_each_interval_and_none_is_lost() {
        let seconds = Duration::from_secs;
        // Each step: when, what, the count after it, and when it wants to look again.
        let table = [
            (1, Look, 0, None),
            (5, Use, 1, None),
            (6, Use, 1, Some(15)),
            (7, Use, 1, Some(15)),
            (14, Look, 1, Some(15)),
            (15, Look, 2, None),
            (16, Look, 2, None),
            (17, Use, 2, Some(25)),
            // Looked at late: counted then, and the interval begins anew.
            (40, Look, 3, None),
            (45, Use, 3, Some(50)),
            (50, Use, 4, None),
            (70, Use, 5, None),
        ];
        let mut activity = Activity::new(seconds(10));
        for (at, step, count, due) in table {
            match step {
                Use => activity.handle_use(seconds(at)),
                Look => activity.handle_timeout(seconds(at)),
            }
            assert_eq!(activity.count(), count, "at {at}");
            assert_eq!(activity.poll_timeout(), due.map(seconds), "at {at}");
        }
    }

    #[test]
    fn without_an_interval_each_use_counts() {
        let mut activity = Activity::new(Duration::ZERO);
        for _ in 0..3 {
            activity.handle_use(Duration::from_secs(1));
        }
        assert_eq!((activity.count(), activity.poll_timeout()), (3, None));
    }
}
