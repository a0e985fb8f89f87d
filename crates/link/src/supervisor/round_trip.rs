//! How long this host's answers take.

use std::time::Duration;

/// On a way where a packet can be lost, the socket's silence beside an answering host means nothing
/// before this (seed, One transport retry owner).
pub const VERDICT_FAR: Duration = Duration::from_millis(2_500);

/// Nor before so many round trips: two losses in a row on a slow way take that long to repair.
pub const VERDICT_ROUND_TRIPS: u32 = 4;

/// However slow the way is known to be, the verdict waits no longer.
pub const VERDICT_MOST: Duration = Duration::from_secs(10);

/// The smoothed time of the probes' answers on the present way.
#[derive(Debug, Clone, Default)]
pub(super) struct RoundTrip {
    smoothed: Option<Duration>,
}

impl RoundTrip {
    /// One more answer took this long.
    pub(super) fn measured(&mut self, taken: Duration) {
        self.smoothed = Some(self.smoothed.map_or(taken, |known| (known * 7 + taken) / 8));
    }

    /// The way is another one.
    pub(super) const fn forget(&mut self) {
        self.smoothed = None;
    }

    /// How long after a check's start a far socket's silence means nothing.
    pub(super) fn patience(&self) -> Duration {
        self.smoothed
            .map_or(VERDICT_FAR, |known| known.saturating_mul(VERDICT_ROUND_TRIPS))
            .clamp(VERDICT_FAR, VERDICT_MOST)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_verdict_on_a_far_socket_waits_for_four_of_its_round_trips() {
        let mut known = RoundTrip::default();
        assert_eq!(known.patience(), VERDICT_FAR);
        known.measured(Duration::from_millis(200));
        assert_eq!(known.patience(), VERDICT_FAR, "a fast way gains nothing");
        known.forget();
        known.measured(Duration::from_secs(1));
        assert_eq!(known.patience(), Duration::from_secs(4));
        known.measured(Duration::from_secs(9));
        assert_eq!(known.patience(), Duration::from_secs(8), "one outlier counts for an eighth");
        known.measured(Duration::from_secs(60));
        assert_eq!(known.patience(), VERDICT_MOST);
    }
}
