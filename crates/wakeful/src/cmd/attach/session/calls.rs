//! What is asked of the host, and what becomes of it.

use serde_json::Value;
use wakeful_link::{Failure, FailureReason, boundary::CallFailure, session::Effect};
use wakeful_wire::rpc::{AnswerPermission, Call, Remember, RequestId, Seq, Taken};

use super::{
    super::{
        harmless::one_line,
        outbox::{Missed, Sending},
        shown::Shown,
    },
    Act, REASON_MAX, Session,
};

impl Session {
    /// Answers whatever waits, where a rule says how. Each permission once, also if the host does
    /// not take the answer.
    pub(super) fn rule(&mut self) {
        let Some(approve) = self.options.approve else { return };
        let Some(shown) = self.shown.as_ref().filter(|shown| shown.is_live()) else { return };
        self.ruled.retain(|request| shown.is_pending(*request));
        for pending in shown.pending() {
            if self.ruled.contains(&pending.request) {
                continue;
            }
            if let Some(option) = approve.choose(&pending.options) {
                let answer = answer_of(shown, pending.request, option.id.clone(), None);
                // Where there is no room it is tried again with the next look.
                if self.outbox.put(answer).is_err() {
                    return;
                }
            }
            self.ruled.push(pending.request);
        }
    }

    /// Sends what can be sent. Nothing but prompts until it is known how the thread stands: what has
    /// lost its purpose meanwhile is not sent.
    pub(super) fn send(&mut self) {
        if !self.standing.is_connected() {
            return;
        }
        let shown = self.shown.as_ref().filter(|shown| shown.is_live());
        if let Some(shown) = shown {
            self.outbox.drop_unsent(|call| has_purpose(shown, call));
        }
        let live = shown.is_some();
        let may = |call: &Call| live || matches!(call, Call::ThreadPrompt(_));
        while let Some((sending, call)) = self.outbox.send_next(may) {
            self.acts.push_back(Act::Call(sending, Box::new(call)));
        }
    }

    /// A call was answered, or is not going to be.
    pub(in crate::cmd::attach) fn handle_answered(
        &mut self,
        sending: Sending,
        outcome: Result<Value, CallFailure>,
    ) {
        let failed = match outcome {
            Ok(taken) => {
                if self.outbox.handle_taken(sending) {
                    let taken = serde_json::from_value::<Taken>(taken);
                    self.caused = self.caused.max(taken.map_or(Seq::ZERO, |taken| taken.seq));
                }
                return;
            }
            Err(failed) => failed,
        };
        let may_have_happened = failed.effect == Effect::Unknown;
        match self.outbox.handle_missed(sending, failed) {
            None => {}
            Some(Missed::Again) if may_have_happened => {
                self.note("the answer to a prompt was lost; it is sent again under its id");
            }
            Some(Missed::Again) => {}
            Some(Missed::Refused(_, failure)) => {
                self.note(format!("not taken: {}", one_line(&failure.detail, REASON_MAX)));
            }
            Some(Missed::Unknown(call)) => self.handle_unknown(&call),
        }
    }

    /// Nobody knows whether a call was taken. It is not repeated: what it was for is looked at anew.
    fn handle_unknown(&mut self, call: &Call) {
        if let Call::ThreadAnswer(answer) = call {
            let ruled = self.ruled.len();
            self.ruled.retain(|request| *request != answer.request);
            if ruled == self.ruled.len() {
                if let Some(shown) = &mut self.shown {
                    shown.ask_again();
                }
                self.note("it is not known whether the answer was taken; if it is asked again, answer again");
            }
        } else {
            self.note(format!(
                "it is not known whether that was taken, and it is not sent again ({})",
                call.method()
            ));
        }
    }

    /// Answers may have been missed: what is on its way has an unknown outcome.
    pub(in crate::cmd::attach) fn handle_overlooked(&mut self) {
        for sending in self.outbox.under_way() {
            let failure = Failure::new(
                FailureReason::Overloaded,
                "This program was too slow to hear the answer.",
            );
            let failed = CallFailure { failure, effect: Effect::Unknown };
            self.handle_answered(sending, Err(failed));
        }
    }
}

pub(super) fn answer_of(
    shown: &Shown,
    request: RequestId,
    option: String,
    remember: Option<Remember>,
) -> Call {
    let thread = shown.thread();
    Call::ThreadAnswer(AnswerPermission { thread, request, option, remember })
}

fn has_purpose(shown: &Shown, call: &Call) -> bool {
    if let Call::ThreadAnswer(answer) = call {
        shown.is_pending(answer.request)
    } else if let Call::ThreadCancel(cancel) = call {
        cancel.turn.is_none() || cancel.turn == shown.running()
    } else {
        true
    }
}
