//! What coming back to the foreground means.

use std::time::Duration;

/// From here on a suspension is long: the system may have killed the socket without a word, and
/// what is on the screen is old.
pub const LONG_SUSPENSION: Duration = Duration::from_secs(30);

/// The client came to the foreground.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Foreground {
    /// A window or a tab of a program that was running all the time.
    Desk,
    /// After a suspension that was short, or none.
    Short,
    /// After a suspension of [`LONG_SUSPENSION`] or more. What was under way was frozen with it.
    Long,
}

impl Foreground {
    /// After a suspension. Measured on a clock that goes on while the device sleeps, unlike the
    /// clock of deadlines.
    #[must_use]
    pub fn after(suspended: Duration) -> Self {
        if suspended >= LONG_SUSPENSION { Self::Long } else { Self::Short }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_suspension_is_long_from_thirty_seconds_on() {
        assert_eq!(Foreground::after(Duration::ZERO), Foreground::Short);
        assert_eq!(Foreground::after(Duration::from_millis(29_999)), Foreground::Short);
        assert_eq!(Foreground::after(Duration::from_secs(30)), Foreground::Long);
        assert_eq!(Foreground::after(Duration::MAX), Foreground::Long);
    }
}
