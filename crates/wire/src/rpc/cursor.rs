//! Positions in a host's log.

use std::fmt;

use serde::{Deserialize, Serialize};

/// Place of an event in a host's log. The first event is 1; 0 means "before every event". Numbers
/// only grow, are never reused, and may leave gaps. Below 2^53, so that every JSON reader keeps it.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize,
)]
#[cfg_attr(
    feature = "schema",
    derive(schemars::JsonSchema),
    schemars(extend("maximum" = (1_u64 << 53) - 1))
)]
#[serde(transparent)]
pub struct Seq(pub u64);

impl Seq {
    /// Before every event.
    pub const ZERO: Self = Self(0);

    /// The number after this one.
    #[must_use]
    pub const fn next(self) -> Self {
        Self(self.0.saturating_add(1))
    }
}

impl fmt::Display for Seq {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, f)
    }
}

/// One start of a host: a random number below 2^53, drawn anew at each start.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize,
)]
#[cfg_attr(
    feature = "schema",
    derive(schemars::JsonSchema),
    schemars(extend("maximum" = (1_u64 << 53) - 1))
)]
#[serde(transparent)]
pub struct Epoch(pub u64);

impl Epoch {
    /// Makes an epoch of random bits; the upper ones are cut off.
    #[must_use]
    pub const fn from_random(bits: u64) -> Self {
        Self(bits & ((1 << 53) - 1))
    }
}

/// Where a client is in a host's log: it has everything up to and including `seq`.
///
/// A client takes the epoch from the stream that it follows (first item) and the number from what
/// it has applied, and keeps both together with the state that they describe.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Cursor {
    /// The start of the host that confirmed the position.
    pub epoch: Epoch,
    /// The position.
    pub seq: Seq,
}
