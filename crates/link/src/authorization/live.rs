//! When the token of a live socket is renewed.

use std::time::Duration;

use crate::{Chance, Instant};

/// How long before its end a live socket's session is renewed (seed, HTTP authorization).
pub const LAST_MINUTE: Duration = Duration::from_secs(60);
/// How long after a renewal ended, whichever way, a live socket asks for the next one at the
/// earliest.
pub const RENEWAL_SPACING: Duration = Duration::from_secs(10);
/// Sockets that were opened in the same second, such as those of a restarted host, do not renew in
/// the same second: each waits up to this long into its last minute. It leaves time for further
/// tries.
const SPREAD: Duration = Duration::from_secs(20);

/// A socket that lives on a session.
#[derive(Debug)]
pub(super) struct Live {
    /// When the session ends.
    until: Instant,
    /// When it is renewed next; nothing if that would come too late.
    due: Option<Instant>,
}

impl Live {
    pub(super) fn new(now: Instant, until: Instant, chance: &mut Chance) -> Self {
        let mut live = Self { until, due: None };
        live.schedule(now, chance);
        live
    }

    pub(super) const fn until(&self) -> Instant {
        self.until
    }

    pub(super) const fn due(&self) -> Option<Instant> {
        self.due
    }

    /// A renewal worked: the host moves the socket to a session that ends at `until`.
    pub(super) fn renewed(&mut self, now: Instant, until: Instant, chance: &mut Chance) {
        self.until = self.until.max(until);
        self.schedule(now.after(RENEWAL_SPACING), chance);
    }

    /// A renewal did not work.
    pub(super) fn failed(&mut self, now: Instant) {
        let earliest = now.after(RENEWAL_SPACING);
        self.due = self.due.map(|due| due.max(earliest)).filter(|due| *due < self.until);
    }

    /// Renews in the last minute, and not before `earliest`.
    fn schedule(&mut self, earliest: Instant, chance: &mut Chance) {
        let minute = u64::try_from(LAST_MINUTE.as_millis()).unwrap_or(u64::MAX);
        let begins = Instant(self.until.0.saturating_sub(minute));
        let due = begins.after(chance.between(Duration::ZERO, SPREAD)).max(earliest);
        self.due = (due < self.until).then_some(due);
    }
}
