//! The clock that deadlines are measured on.

use std::{fmt, time::Duration};

/// A moment of the client's own clock: milliseconds since some origin. The clock never goes back
/// and stands still while the machine is suspended, so that a deadline does not pass in a sleep.
/// How long a suspension took is told apart from it, by the shell that knows.
#[derive(Clone, Copy, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Instant(pub u64);

impl Instant {
    /// This moment and `duration` more. Saturates at the end of time.
    #[must_use]
    pub fn after(self, duration: Duration) -> Self {
        Self(self.0.saturating_add(u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)))
    }

    /// How long ago `earlier` was; zero if it lies ahead.
    #[must_use]
    pub const fn since(self, earlier: Self) -> Duration {
        Duration::from_millis(self.0.saturating_sub(earlier.0))
    }

    /// How long until `later`; zero if it is past.
    #[must_use]
    pub const fn until(self, later: Self) -> Duration {
        later.since(self)
    }

    /// The earlier one of those that are there.
    #[must_use]
    pub fn earliest(moments: impl IntoIterator<Item = Option<Self>>) -> Option<Self> {
        moments.into_iter().flatten().min()
    }
}

impl fmt::Debug for Instant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{:03}s", self.0 / 1_000, self.0 % 1_000)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_instant_moves_on_and_never_wraps() {
        let at = Instant(1_500);
        assert_eq!(at.after(Duration::from_secs(2)), Instant(3_500));
        assert_eq!(at.after(Duration::MAX), Instant(u64::MAX));
        assert_eq!(at.since(Instant(500)), Duration::from_secs(1));
        assert_eq!(at.since(Instant(2_000)), Duration::ZERO);
        assert_eq!(at.until(Instant(2_000)), Duration::from_millis(500));
        assert_eq!(format!("{at:?}"), "1.500s");
    }

    #[test]
    fn the_earliest_of_nothing_is_nothing() {
        assert_eq!(Instant::earliest([None, None]), None);
        assert_eq!(Instant::earliest([Some(Instant(2)), None, Some(Instant(1))]), Some(Instant(1)));
    }
}
