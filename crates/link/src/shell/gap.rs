//! Whether something was missed: the host's newest event against what is held.
//!
//! # The rule
//!
//! A host's head counts every event. The list changes with few of them, and a subscriber of the list
//! hears of the others only once, by the marker. So a head beyond the held place says that something
//! *may* be missing. It is looked at once: the subscription begins anew from the held place. What
//! was missed then comes as changes; if nothing was, the host says so in two small items, and its
//! marker moves the place to the head. Either way that head is answered for and never a reason
//! again, also where a host sends no marker.

use std::time::Duration;

use wakeful_wire::rpc::Seq;

use crate::Instant;

/// How long what a head counts may be on its way: a head overtakes the items that wait to be sent.
pub const GAP_GRACE: Duration = Duration::from_secs(2);

/// Compares heads with what is held, for one session.
#[derive(Debug, Default)]
pub(super) struct GapWatch {
    /// The newest head that was heard.
    head: Seq,
    /// Heads up to this one were looked at.
    looked: Seq,
    due: Option<Instant>,
}

impl GapWatch {
    /// A head was heard.
    pub(super) fn handle_head(&mut self, head: Seq) {
        self.head = self.head.max(head);
    }

    /// Something came: what is missing has the grace once more.
    pub(super) const fn handle_progress(&mut self) {
        self.due = None;
    }

    /// Compares. `held` is the place, if everything up to it is held and the stream runs; nothing
    /// while it is being brought up to date, which is a look by itself.
    pub(super) fn compare(&mut self, now: Instant, held: Option<Seq>) {
        let behind = held.is_some_and(|held| self.head > held.max(self.looked));
        self.due = if behind { self.due.or_else(|| Some(now.after(GAP_GRACE))) } else { None };
    }

    /// When a look is due.
    pub(super) const fn poll_timeout(&self) -> Option<Instant> {
        self.due
    }

    /// Whether to look now. Says so once for a head.
    pub(super) fn handle_timeout(&mut self, now: Instant) -> bool {
        let due = self.due.is_some_and(|due| due <= now);
        if due {
            self.due = None;
            self.looked = self.head;
        }
        due
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const AT: Instant = Instant(1_000);
    const LATER: Instant = Instant(1_000 + 2_000);

    #[test]
    fn a_head_beyond_what_is_held_is_looked_at_once() {
        let mut watch = GapWatch::default();
        watch.handle_head(Seq(7));
        watch.compare(AT, Some(Seq(5)));
        assert_eq!(watch.poll_timeout(), Some(LATER));
        assert!(!watch.handle_timeout(Instant(2_999)), "too early");
        assert!(watch.handle_timeout(LATER));
        watch.compare(LATER, Some(Seq(5)));
        assert_eq!(watch.poll_timeout(), None, "the same head is no reason again");
        watch.handle_head(Seq(8));
        watch.compare(LATER, Some(Seq(5)));
        assert!(watch.poll_timeout().is_some(), "a newer one is");
    }

    #[test]
    fn what_comes_within_the_grace_ends_it() {
        let mut watch = GapWatch::default();
        watch.handle_head(Seq(7));
        watch.compare(AT, Some(Seq(5)));
        watch.compare(AT.after(GAP_GRACE / 2), Some(Seq(7)));
        assert_eq!(watch.poll_timeout(), None);
    }

    #[test]
    fn progress_begins_the_grace_anew_and_further_heads_do_not() {
        let mut watch = GapWatch::default();
        watch.handle_head(Seq(7));
        watch.compare(AT, Some(Seq(5)));
        watch.handle_head(Seq(9));
        watch.compare(AT.after(GAP_GRACE / 2), Some(Seq(5)));
        assert_eq!(watch.poll_timeout(), Some(LATER), "heads alone do not put it off");
        watch.handle_progress();
        watch.compare(AT.after(GAP_GRACE / 2), Some(Seq(6)));
        assert_eq!(watch.poll_timeout(), Some(LATER.after(GAP_GRACE / 2)));
    }

    #[test]
    fn nothing_is_due_while_the_list_is_brought_up_to_date() {
        let mut watch = GapWatch::default();
        watch.handle_head(Seq(7));
        watch.compare(AT, None);
        assert_eq!(watch.poll_timeout(), None);
    }
}
