//! Which calls of a socket are open.
//!
//! A call's id is free again once it is answered for good. What was begun under it may go on longer
//! than the call (a command that nobody waits for any more), so whatever is begun has a [`Key`] of
//! its own, which is never used again.

use std::collections::HashMap;

use wakeful_wire::{
    Code, Problem,
    rpc::{CALLS_MAX, CallId},
};

/// Names what was begun for a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct Key(u64);

/// What a call is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// Answered once.
    Command,
    /// Answered by items.
    Subscription,
}

/// The table of open calls.
#[derive(Debug, Default)]
pub(super) struct Calls {
    open: HashMap<CallId, (Key, Kind)>,
    /// Whatever was begun and is not over, with the call that waits for it.
    begun: HashMap<Key, Option<CallId>>,
    next: u64,
}

impl Calls {
    /// Opens a call.
    ///
    /// # Errors
    /// If its id is open already, which does the open call no harm, or if [`CALLS_MAX`] are begun.
    pub(super) fn open(&mut self, id: CallId, kind: Kind) -> Result<Key, Problem> {
        if self.open.contains_key(&id) {
            return Err(Problem::new(Code::Conflict)
                .field("id")
                .detail("A call with this id is open. It goes on; this one was not begun."));
        }
        if self.begun.len() >= CALLS_MAX {
            return Err(Problem::new(Code::TooManyRequests)
                .detail(format!("{CALLS_MAX} calls are open on this socket.")));
        }
        let key = Key(self.next);
        self.next += 1;
        self.open.insert(id, (key, kind));
        self.begun.insert(key, Some(id));
        Ok(key)
    }

    /// Ends a call, if it is open. A subscription is over with it; a command is begun until
    /// [`Self::over`] says otherwise.
    pub(super) fn cancel(&mut self, id: CallId) -> Option<(Key, Kind)> {
        let (key, kind) = self.open.remove(&id)?;
        match kind {
            Kind::Command => self.begun.insert(key, None),
            Kind::Subscription => self.begun.remove(&key),
        };
        Some((key, kind))
    }

    /// What was begun is over. Returns the call that waits for an answer, if one still does.
    pub(super) fn over(&mut self, key: Key) -> Option<CallId> {
        let id = self.begun.remove(&key)??;
        self.open.remove(&id);
        Some(id)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ONE: CallId = CallId(1);

    #[test]
    fn a_second_call_with_an_open_id_is_refused_and_the_first_goes_on() {
        let mut calls = Calls::default();
        let key = calls.open(ONE, Kind::Command).unwrap();
        let problem = calls.open(ONE, Kind::Subscription).unwrap_err();
        assert_eq!(problem.code, Code::Conflict);
        assert_eq!(calls.over(key), Some(ONE));
        let again = calls.open(ONE, Kind::Command).unwrap();
        assert_ne!(again, key);
    }

    #[test]
    fn a_cancelled_command_is_not_answered_and_counts_until_it_is_over() {
        let mut calls = Calls::default();
        let mut keys = Vec::new();
        for _ in 0..CALLS_MAX {
            keys.push(calls.open(ONE, Kind::Command).unwrap());
            assert!(calls.cancel(ONE).is_some());
        }
        assert_eq!(calls.open(ONE, Kind::Command).unwrap_err().code, Code::TooManyRequests);
        assert_eq!(calls.over(keys[0]), None);
        let key = calls.open(ONE, Kind::Command).unwrap();
        assert_eq!(calls.over(keys[1]), None, "an older command never answers a newer call");
        assert_eq!(calls.over(key), Some(ONE));
    }

    #[test]
    fn a_cancelled_subscription_makes_room_at_once() {
        let mut calls = Calls::default();
        for n in 0..u32::try_from(CALLS_MAX).unwrap() {
            calls.open(CallId(n), Kind::Subscription).unwrap();
        }
        assert!(calls.open(CallId(9_999), Kind::Command).is_err());
        let (key, kind) = calls.cancel(ONE).unwrap();
        assert_eq!(kind, Kind::Subscription);
        assert_eq!(calls.cancel(ONE), None);
        assert_eq!(calls.over(key), None);
        assert!(calls.open(ONE, Kind::Command).is_ok());
    }
}
