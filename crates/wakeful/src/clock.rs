//! This machine's wall clock.

use std::time::{SystemTime, UNIX_EPOCH};

use wakeful_wire::{Timestamp, time::millis};

/// The time now.
#[must_use]
pub fn now() -> Timestamp {
    Timestamp(millis(SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default()))
}
