//! Which calls of a socket are open.

use std::collections::BTreeMap;

use wakeful_wire::rpc::{CALLS_MAX, CallId};

use crate::{Failure, FailureReason};

/// An open call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Open {
    is_subscription: bool,
    /// Whether somebody waits for what comes.
    is_awaited: bool,
}

/// The table of open calls. An id is free only once the host has said its last word on it, so a
/// late answer can never be taken for the answer to a later call.
#[derive(Debug, Default)]
pub(super) struct Calls {
    open: BTreeMap<CallId, Open>,
    next: u32,
}

impl Calls {
    pub(super) fn len(&self) -> usize {
        self.open.len()
    }

    /// An id that is free.
    ///
    /// # Errors
    /// If as many calls are open as a socket may have. The host would refuse one more; a caller
    /// learns it without a round trip.
    pub(super) fn free(&mut self) -> Result<CallId, Failure> {
        if self.open.len() >= CALLS_MAX {
            let detail = format!("{CALLS_MAX} calls are open on this connection.");
            return Err(Failure::new(FailureReason::Overloaded, detail));
        }
        while self.open.contains_key(&CallId(self.next)) {
            self.next = self.next.wrapping_add(1);
        }
        let id = CallId(self.next);
        self.next = self.next.wrapping_add(1);
        Ok(id)
    }

    pub(super) fn open(&mut self, id: CallId, is_subscription: bool) {
        self.open.insert(id, Open { is_subscription, is_awaited: true });
    }

    pub(super) fn is_awaited(&self, id: CallId) -> bool {
        self.open.get(&id).is_some_and(|open| open.is_awaited)
    }

    /// Nobody waits for it any more. Returns whether the host is to be told.
    pub(super) fn leave(&mut self, id: CallId) -> bool {
        let Some(open) = self.open.get_mut(&id) else { return false };
        std::mem::take(&mut open.is_awaited) && open.is_subscription
    }

    /// The host has said its last word on it. Returns whether somebody waits for that.
    pub(super) fn over(&mut self, id: CallId) -> bool {
        self.open.remove(&id).is_some_and(|open| open.is_awaited)
    }

    #[cfg(test)]
    pub(super) const fn starting_at(next: u32) -> Self {
        Self { open: BTreeMap::new(), next }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_go_round_and_pass_over_those_that_are_open() {
        let mut calls = Calls::starting_at(u32::MAX);
        let last = calls.free().unwrap();
        assert_eq!(last, CallId(u32::MAX));
        calls.open(last, true);
        let first = calls.free().unwrap();
        assert_eq!(first, CallId(0));
        calls.open(first, false);
        calls.next = u32::MAX;
        assert_eq!(calls.free().unwrap(), CallId(1), "both are open");
    }

    #[test]
    fn only_a_subscription_that_is_left_for_the_first_time_is_told_to_the_host() {
        let mut calls = Calls::default();
        calls.open(CallId(0), true);
        calls.open(CallId(1), false);
        assert!(calls.leave(CallId(0)));
        assert!(!calls.leave(CallId(0)));
        assert!(!calls.leave(CallId(1)));
        assert!(!calls.leave(CallId(7)));
        assert_eq!(calls.len(), 2, "both are open until the host has said its last word");
        assert!(!calls.over(CallId(0)) && !calls.over(CallId(1)));
        assert_eq!(calls.len(), 0);
    }
}
