//! When changes that come in a row are over.

use std::time::Duration;

use tokio::time::Instant;

/// A change is looked at when nothing else has changed for so long.
pub(super) const QUIET: Duration = Duration::from_millis(250);
/// Changes that do not end are looked at nevertheless, so long after the first.
pub(super) const UNREST_MAX: Duration = Duration::from_secs(2);

/// Changes in a row. Joining a network is a dozen of them; only what comes of it is of interest.
#[derive(Debug, Clone, Copy)]
pub(super) struct Settling {
    first: Instant,
    last: Instant,
}

impl Settling {
    /// The first change came.
    pub(super) const fn begun(now: Instant) -> Self {
        Self { first: now, last: now }
    }

    /// Another one came.
    pub(super) const fn again(&mut self, now: Instant) {
        self.last = now;
    }

    /// When to look.
    pub(super) fn due(&self) -> Instant {
        (self.last + QUIET).min(self.first + UNREST_MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_change_puts_the_look_off_but_not_for_ever() {
        let start = Instant::now();
        let mut settling = Settling::begun(start);
        assert_eq!(settling.due(), start + QUIET);
        let mut now = start;
        while now + QUIET < start + UNREST_MAX {
            now += Duration::from_millis(100);
            settling.again(now);
            assert_eq!(settling.due(), (now + QUIET).min(start + UNREST_MAX));
        }
        settling.again(start + Duration::from_secs(60));
        assert_eq!(settling.due(), start + UNREST_MAX);
    }
}
