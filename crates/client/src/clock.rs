//! This machine's clocks.

use std::time::{SystemTime, UNIX_EPOCH};

use wakeful_wire::{Timestamp, time::millis};

/// The wall clock's time. Good for dates that people read and for proofs, never for deadlines.
#[must_use]
pub fn now() -> Timestamp {
    Timestamp(millis(SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default()))
}

/// The wall clock in seconds, as proofs hold it.
#[must_use]
pub fn seconds() -> u64 {
    now().0 / 1_000
}
