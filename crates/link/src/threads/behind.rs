//! Whether a stream that seems current has missed something.

use std::time::Duration;

use wakeful_wire::rpc::{Cursor, Epoch, Seq};

use crate::Instant;

/// How long a stream may lag behind what the list says of its thread. The two are independent
/// streams of one socket, so one of them is ahead for a moment all the time.
pub const BEHIND_GRACE: Duration = Duration::from_secs(2);

/// Compares one stream with what the list says of its thread.
///
/// The number of a row is that of the event that changed it, and now and then a higher one (the row
/// came into the list). So being behind it is a reason to ask the host once, and never twice for
/// the same number.
#[derive(Debug, Default)]
pub(super) struct Behind {
    row: Seq,
    asked: Seq,
    /// The host's start that it was asked about.
    started: Option<Epoch>,
    since: Option<Instant>,
}

impl Behind {
    /// The list says that the thread changed.
    pub(super) fn handle_row(&mut self, seq: Seq) {
        self.row = self.row.max(seq);
    }

    /// Looks at the stream as it is: its position, if it seems current.
    pub(super) fn look(&mut self, now: Instant, current: Option<Cursor>) {
        let behind = current.is_some_and(|cursor| cursor.seq < self.row && self.asked < self.row);
        self.since = if behind { self.since.or(Some(now)) } else { None };
    }

    /// Whether a current stream goes on from another start of the host than the one that speaks.
    /// Said once per start.
    pub(super) fn is_elsewhere(&mut self, current: Option<Cursor>, head: Cursor) -> bool {
        let elsewhere = current.is_some_and(|cursor| cursor.epoch != head.epoch)
            && self.started != Some(head.epoch);
        if elsewhere {
            self.started = Some(head.epoch);
        }
        elsewhere
    }

    /// When the host is to be asked.
    pub(super) fn poll_timeout(&self) -> Option<Instant> {
        self.since.map(|since| since.after(BEHIND_GRACE))
    }

    /// Whether the host is to be asked now.
    pub(super) fn take_due(&mut self, now: Instant) -> bool {
        let due = self.since.take_if(|since| since.after(BEHIND_GRACE) <= now).is_some();
        if due {
            self.asked = self.row;
        }
        due
    }

    /// The log is another one: what was said of the earlier one counts no longer.
    pub(super) fn reset(&mut self) {
        *self = Self::default();
    }
}
