//! Moments and durations as they are stored and sent: whole milliseconds.

use std::time::Duration;

use serde::{Deserialize, Serialize};

/// A moment: milliseconds since the Unix epoch, by the platform's own clock, which never jumps
/// back while a process runs (`wakeful_control::clock` says how it is kept).
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize,
)]
#[cfg_attr(
    feature = "schema",
    derive(schemars::JsonSchema),
    schemars(description = "A moment: whole milliseconds since the Unix epoch.")
)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema), schema(value_type = u64))]
#[serde(transparent)]
pub struct Timestamp(pub u64);

impl Timestamp {
    /// This moment and `duration` more. Saturates at the end of time.
    #[must_use]
    pub fn after(self, duration: Duration) -> Self {
        Self(self.0.saturating_add(millis(duration)))
    }

    /// How long ago `earlier` was; zero if it lies ahead.
    #[must_use]
    pub fn since(self, earlier: Self) -> Duration {
        Duration::from_millis(self.0.saturating_sub(earlier.0))
    }

    /// How long until `later`; zero if it is past.
    #[must_use]
    pub fn until(self, later: Self) -> Duration {
        later.since(self)
    }
}

/// A duration in whole milliseconds, saturating.
#[must_use]
pub fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
