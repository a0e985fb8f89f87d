//! When the first frame is painted.

use std::{collections::BTreeSet, time::Duration};

use wakeful_wire::HostId;

use crate::Instant;

/// How long the first frame waits for cached lists at most. A storage that hangs must not keep the
/// application from opening, and half a second is not yet a delay that a person remarks beside a
/// start.
pub const PAINT_LIMIT: Duration = Duration::from_millis(500);

/// Waits until every enabled host has read its cached list, so that the first frame holds all cached
/// rows.
#[derive(Debug, Clone)]
pub(super) struct FirstPaint {
    limit: Instant,
    /// Those that are still reading; absent until it is known who they are.
    reading: Option<BTreeSet<HostId>>,
    painted: bool,
}

impl FirstPaint {
    pub(super) fn new(now: Instant) -> Self {
        Self { limit: now.after(PAINT_LIMIT), reading: None, painted: false }
    }

    pub(super) fn handle_hosts(&mut self, enabled: impl IntoIterator<Item = HostId>) {
        self.reading.get_or_insert_with(|| enabled.into_iter().collect());
    }

    pub(super) fn handle_read(&mut self, host: HostId) {
        if let Some(reading) = &mut self.reading {
            reading.remove(&host);
        }
    }

    pub(super) fn is_ready(&self, now: Instant) -> bool {
        self.painted || self.limit <= now || self.reading.as_ref().is_some_and(BTreeSet::is_empty)
    }

    /// Whether the first frame may be painted from now on. Answers yes once.
    pub(super) fn begins(&mut self, now: Instant) -> bool {
        !self.painted && {
            self.painted = self.is_ready(now);
            self.painted
        }
    }

    pub(super) fn poll_timeout(&self) -> Option<Instant> {
        (!self.painted).then_some(self.limit)
    }
}
