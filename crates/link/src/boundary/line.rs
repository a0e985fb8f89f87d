//! Which call of one session belongs to whom.

use std::collections::BTreeMap;

use wakeful_wire::rpc::{Call, CallId};

use super::action::{Action, Sending, SubscriptionId, Token};
use crate::{AttemptId, session::CallEvent};

/// Who made a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Caller {
    Request(Token),
    Stream(Token),
    Subscription(SubscriptionId),
    /// Somebody who left before the call had an id: it is cancelled as soon as it has one.
    Nobody,
}

/// The calls of one session. Dropped with it.
#[derive(Debug)]
pub(super) struct Line {
    attempt: AttemptId,
    /// Given to the session, without an id yet.
    sending: BTreeMap<Sending, Caller>,
    /// Open, those of requests that nobody waits for any more among them: never more than one socket
    /// may have.
    open: BTreeMap<CallId, Caller>,
}

impl Line {
    pub(super) const fn new(attempt: AttemptId) -> Self {
        Self { attempt, sending: BTreeMap::new(), open: BTreeMap::new() }
    }

    pub(super) const fn attempt(&self) -> AttemptId {
        self.attempt
    }

    /// Gives a call to the session.
    pub(super) fn send(&mut self, sending: Sending, caller: Caller, call: Call) -> Action {
        self.sending.insert(sending, caller);
        Action::Send { attempt: self.attempt, sending, call: Box::new(call) }
    }

    /// The session has taken a call under this id, or not taken it. Returns who made it.
    pub(super) fn sent(&mut self, sending: Sending, id: Option<CallId>) -> Option<Caller> {
        let caller = self.sending.remove(&sending)?;
        if let Some(id) = id.filter(|_| caller != Caller::Nobody) {
            self.open.insert(id, caller);
        }
        Some(caller)
    }

    /// Whose event it is. After the last word on a call it is nobody's.
    pub(super) fn caller(&mut self, event: &CallEvent) -> Option<Caller> {
        match event {
            CallEvent::Item { id, .. } => self.open.get(id).copied(),
            CallEvent::Response { id, .. }
            | CallEvent::Failed { id, .. }
            | CallEvent::End { id } => self.open.remove(id),
        }
    }

    /// This caller leaves, and the host is told, now or once the call has its id.
    pub(super) fn leave(&mut self, caller: Caller) -> Option<Action> {
        if let Some(sending) = self.sending.values_mut().find(|sending| **sending == caller) {
            *sending = Caller::Nobody;
        }
        let id = self.open.iter().find(|(_, open)| **open == caller).map(|(id, _)| *id)?;
        self.open.remove(&id);
        Some(Action::Cancel { attempt: self.attempt, id })
    }
}
