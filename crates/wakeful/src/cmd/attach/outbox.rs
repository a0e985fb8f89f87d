//! What a person or a rule has asked for and the host has not confirmed.

use std::collections::VecDeque;

use wakeful_wire::rpc::{Call, CallId};

/// How many calls may wait. One more is refused where it is asked for.
const WAITING_MAX: usize = 64;

/// Calls in the order in which they were asked for. Each is kept until it is answered, and sent
/// again on the next socket if its own went away before; every call here bears that, because its
/// ids were drawn when it was asked for.
#[derive(Debug, Default)]
pub(super) struct Outbox(VecDeque<Waiting>);

#[derive(Debug)]
struct Waiting {
    call: Call,
    /// Its id on the present socket, once it was sent there.
    sent: Option<CallId>,
}

/// There is no more room.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Full;

impl Outbox {
    /// Asks for a call.
    pub(super) fn put(&mut self, call: Call) -> Result<(), Full> {
        if self.0.len() >= WAITING_MAX {
            return Err(Full);
        }
        self.0.push_back(Waiting { call, sent: None });
        Ok(())
    }

    /// Whether nothing waits.
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether a call like this waits.
    pub(super) fn any(&self, like: impl Fn(&Call) -> bool) -> bool {
        self.0.iter().any(|waiting| like(&waiting.call))
    }

    /// Forgets unsent calls that have lost their purpose.
    pub(super) fn drop_unsent(&mut self, purpose: impl Fn(&Call) -> bool) {
        self.0.retain(|waiting| waiting.sent.is_some() || purpose(&waiting.call));
    }

    /// The oldest call that is not on its way.
    pub(super) fn unsent(&self) -> Option<&Call> {
        self.0.iter().find(|waiting| waiting.sent.is_none()).map(|waiting| &waiting.call)
    }

    /// That call is on its way under this id.
    pub(super) fn handle_sent(&mut self, id: CallId) {
        if let Some(waiting) = self.0.iter_mut().find(|waiting| waiting.sent.is_none()) {
            waiting.sent = Some(id);
        }
    }

    /// A call was answered; returns it.
    pub(super) fn handle_answer(&mut self, id: CallId) -> Option<Call> {
        let place = self.0.iter().position(|waiting| waiting.sent == Some(id))?;
        self.0.remove(place).map(|waiting| waiting.call)
    }

    /// The socket is gone: nobody knows which calls arrived.
    pub(super) fn handle_lost(&mut self) {
        for waiting in &mut self.0 {
            waiting.sent = None;
        }
    }
}
