//! When the list is stored.

use std::time::Duration;

use crate::Instant;

/// How long after a change: changes come in flocks.
pub const SAVE_DELAY: Duration = Duration::from_millis(500);
/// How far apart two saves are at least: each writes the whole list.
pub const SAVE_SPACING: Duration = Duration::from_secs(10);

/// The pace of saves. One runs at a time, and its end has no deadline: a second one beside it could
/// be overtaken by the first.
#[derive(Debug, Default)]
pub(super) struct Saving {
    /// When the first change came that is not stored.
    changed: Option<Instant>,
    /// When the last save began.
    last: Option<Instant>,
    running: bool,
    /// What is not stored is to be stored without delay.
    urgent: bool,
}

impl Saving {
    /// What is to be stored has changed.
    pub(super) fn handle_changed(&mut self, now: Instant) {
        self.changed.get_or_insert(now);
    }

    /// Nothing is to be stored: what has changed was replaced by what must not be.
    pub(super) const fn clear(&mut self) {
        self.changed = None;
        self.urgent = false;
    }

    /// Asks for what has changed to be stored without delay.
    pub(super) const fn flush(&mut self) {
        self.urgent = self.changed.is_some();
    }

    /// A save has ended.
    pub(super) const fn handle_saved(&mut self) {
        self.running = false;
    }

    /// Whether all is stored, as far as it can be.
    pub(super) const fn is_idle(&self) -> bool {
        !self.running && self.changed.is_none()
    }

    /// When the next save is due.
    pub(super) fn poll_timeout(&self) -> Option<Instant> {
        let changed = self.changed.filter(|_| !self.running)?;
        if self.urgent {
            return Some(changed);
        }
        let spaced = self.last.map(|last| last.after(SAVE_SPACING));
        Some(
            spaced
                .map_or_else(|| changed.after(SAVE_DELAY), |at| at.max(changed.after(SAVE_DELAY))),
        )
    }

    /// Whether to save now. If so, the save has begun.
    pub(super) fn handle_timeout(&mut self, now: Instant) -> bool {
        let due = self.poll_timeout().is_some_and(|due| due <= now);
        if due {
            *self = Self { changed: None, last: Some(now), running: true, urgent: false };
        }
        due
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// When saves begin, given when changes come; each save takes no time.
    fn saves(changes: &[u64]) -> Vec<u64> {
        let mut saving = Saving::default();
        let mut changes = changes.iter().copied().peekable();
        let mut begun = Vec::new();
        loop {
            let due = saving.poll_timeout();
            match (changes.peek().copied(), due) {
                (Some(at), due) if due.is_none_or(|due| at < due.0) => {
                    changes.next();
                    saving.handle_changed(Instant(at));
                }
                (_, Some(due)) => {
                    assert!(saving.handle_timeout(due));
                    begun.push(due.0);
                    saving.handle_saved();
                }
                (_, None) => return begun,
            }
        }
    }

    #[test]
    fn a_save_follows_a_change_after_a_moment_and_another_save_after_ten_seconds() {
        let table: [(&[u64], &[u64]); 4] = [
            (&[], &[]),
            (&[100], &[600]),
            (&[100, 550, 700, 3_000], &[600, 10_600]),
            (&[100, 20_000], &[600, 20_500]),
        ];
        for (changes, expected) in table {
            assert_eq!(saves(changes), expected, "{changes:?}");
        }
        let steady: Vec<_> = (0..100).map(|n| n * 400).collect();
        assert_eq!(saves(&steady), [500, 10_500, 20_500, 30_500, 40_500]);
    }

    #[test]
    fn one_save_runs_at_a_time_also_when_it_is_urgent() {
        let mut saving = Saving::default();
        saving.handle_changed(Instant(0));
        assert!(saving.handle_timeout(Instant(500)));
        saving.handle_changed(Instant(600));
        saving.flush();
        assert!(!saving.handle_timeout(Instant(90_000)), "the first still runs");
        saving.handle_saved();
        assert!(saving.handle_timeout(Instant(90_000)));
    }

    #[test]
    fn a_flush_waits_for_nothing_and_stores_nothing_twice() {
        let mut saving = Saving::default();
        saving.handle_changed(Instant(100));
        saving.flush();
        assert!(saving.handle_timeout(Instant(100)));
        saving.handle_saved();
        saving.flush();
        assert!(saving.is_idle());
        assert!(!saving.handle_timeout(Instant(90_000)));
    }
}
