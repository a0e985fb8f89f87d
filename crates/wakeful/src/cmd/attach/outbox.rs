//! What a person or a rule has asked for and the host has not confirmed.

use std::collections::VecDeque;

use wakeful_link::{Failure, FailureClass, boundary::CallFailure, session::Effect};
use wakeful_wire::rpc::Call;

/// How many calls may wait. One more is refused where it is asked for.
const WAITING_MAX: usize = 64;

/// One sending of a call. Never used again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Sending(pub(super) u64);

/// Calls in the order in which they were asked for. Each is kept until it is answered.
///
/// The link repeats nothing. Here a prompt is: its id was drawn when it was asked for, and a host
/// takes each id once. Any other call whose answer was lost is given up, and said to be.
#[derive(Debug, Default)]
pub(super) struct Outbox {
    waiting: VecDeque<Waiting>,
    sendings: u64,
}

#[derive(Debug)]
struct Waiting {
    call: Call,
    /// How it was sent, if it is on its way.
    sent: Option<Sending>,
}

/// There is no more room.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Full;

/// What became of a call that was not taken.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Missed {
    /// It waits, to be sent again.
    Again,
    /// It certainly did not happen.
    Refused(Box<Call>, Failure),
    /// It may have happened.
    Unknown(Box<Call>),
}

impl Outbox {
    /// Asks for a call.
    pub(super) fn put(&mut self, call: Call) -> Result<(), Full> {
        if self.waiting.len() >= WAITING_MAX {
            return Err(Full);
        }
        self.waiting.push_back(Waiting { call, sent: None });
        Ok(())
    }

    /// Whether nothing waits.
    pub(super) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// How many have not been confirmed.
    pub(super) fn len(&self) -> usize {
        self.waiting.len()
    }

    /// Whether a call like this waits.
    pub(super) fn any(&self, like: impl Fn(&Call) -> bool) -> bool {
        self.waiting.iter().any(|waiting| like(&waiting.call))
    }

    /// The texts of prompts that have not been confirmed.
    pub(super) fn prompts(&self) -> impl Iterator<Item = String> {
        self.waiting.iter().filter_map(|waiting| {
            let Call::ThreadPrompt(asked) = &waiting.call else { return None };
            Some(asked.prompt.plain())
        })
    }

    /// Forgets unsent calls that have lost their purpose; returns how many.
    pub(super) fn drop_unsent(&mut self, purpose: impl Fn(&Call) -> bool) -> usize {
        let before = self.waiting.len();
        self.waiting.retain(|waiting| waiting.sent.is_some() || purpose(&waiting.call));
        before - self.waiting.len()
    }

    /// The oldest call that is not on its way and may be; from here on it is.
    pub(super) fn send_next(&mut self, may: impl Fn(&Call) -> bool) -> Option<(Sending, Call)> {
        let next =
            self.waiting.iter_mut().find(|waiting| waiting.sent.is_none() && may(&waiting.call))?;
        self.sendings += 1;
        let sending = Sending(self.sendings);
        next.sent = Some(sending);
        Some((sending, next.call.clone()))
    }

    /// A call was taken. Whether it was awaited.
    pub(super) fn handle_taken(&mut self, sending: Sending) -> bool {
        let place = self.waiting.iter().position(|waiting| waiting.sent == Some(sending));
        place.and_then(|place| self.waiting.remove(place)).is_some()
    }

    /// A call was not taken, as far as is known. Nothing if it was not awaited.
    pub(super) fn handle_missed(
        &mut self,
        sending: Sending,
        failed: CallFailure,
    ) -> Option<Missed> {
        let place = self.waiting.iter().position(|waiting| waiting.sent == Some(sending))?;
        let CallFailure { failure, effect } = failed;
        let prompts = |waiting: &Waiting| matches!(waiting.call, Call::ThreadPrompt(_));
        let again = match effect {
            Effect::Unknown => self.waiting.get(place).is_some_and(prompts),
            // It never left, or came too early.
            Effect::None => failure.class() == FailureClass::Transient,
        };
        if again {
            self.waiting.get_mut(place)?.sent = None;
            return Some(Missed::Again);
        }
        let call = Box::new(self.waiting.remove(place)?.call);
        Some(match effect {
            Effect::Unknown => Missed::Unknown(call),
            Effect::None => Missed::Refused(call, failure),
        })
    }

    /// What is on its way.
    pub(super) fn under_way(&self) -> Vec<Sending> {
        self.waiting.iter().filter_map(|waiting| waiting.sent).collect()
    }
}
