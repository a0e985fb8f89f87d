//! Requests and streams: both belong to the session that was current when they were made.

use std::{
    collections::{BTreeMap, VecDeque},
    time::Duration,
};

use serde_json::Value;

use super::action::{Action, CallFailure, Token};
use crate::{
    Failure, FailureReason, Instant,
    session::{CallEvent, Effect, failure_of},
};

/// How long an answer to a request is awaited. Longer than any command of a host takes, so that
/// what a person is told to have failed hardly ever succeeds afterwards; an end all the same, so
/// that nobody waits for a host that forgot. The session goes on.
pub const REQUEST_TIMEOUT: Duration = Duration::from_secs(90);

/// Those that are under way. None survives its session.
#[derive(Debug, Default)]
pub(super) struct Requests {
    /// With the moment until which an answer is awaited; streams have none.
    under_way: BTreeMap<Token, Option<Instant>>,
    begun: u64,
}

impl Requests {
    pub(super) fn begin(&mut self, until: Option<Instant>) -> Token {
        self.begun += 1;
        let token = Token(self.begun);
        self.under_way.insert(token, until);
        token
    }

    /// Ends one without a word. Returns whether it was under way.
    pub(super) fn end(&mut self, token: Token) -> bool {
        self.under_way.remove(&token).is_some()
    }

    pub(super) fn fail(
        &mut self,
        token: Token,
        failed: CallFailure,
        actions: &mut VecDeque<Action>,
    ) {
        self.finish(token, Err(failed), actions);
    }

    fn finish(
        &mut self,
        token: Token,
        outcome: Result<Value, CallFailure>,
        actions: &mut VecDeque<Action>,
    ) {
        if self.end(token) {
            actions.push_back(Action::Finished { token, outcome });
        }
    }

    /// Something came for a request.
    pub(super) fn handle_answer(
        &mut self,
        token: Token,
        event: CallEvent,
        actions: &mut VecDeque<Action>,
    ) {
        match event {
            CallEvent::Response { result, .. } => self.finish(token, Ok(result), actions),
            CallEvent::Failed { problem, .. } => {
                let effect = Effect::of(&problem);
                let failed = CallFailure { failure: failure_of(&problem), effect };
                self.fail(token, failed, actions);
            }
            CallEvent::End { .. } => {
                let detail = "The host ended the request without an answer.";
                let failure = Failure::new(FailureReason::Remote, detail);
                self.fail(token, CallFailure::uncertain(failure), actions);
            }
            // A request has none; its answer is still to come.
            CallEvent::Item { .. } => {}
        }
    }

    /// Something came for a stream.
    pub(super) fn handle_streamed(
        &mut self,
        token: Token,
        event: CallEvent,
        actions: &mut VecDeque<Action>,
    ) {
        match event {
            CallEvent::Item { item, .. } => actions.push_back(Action::StreamItem { token, item }),
            CallEvent::End { .. } => self.finish(token, Ok(Value::Null), actions),
            CallEvent::Response { .. } | CallEvent::Failed { .. } => {
                self.handle_answer(token, event, actions);
            }
        }
    }

    /// Their session is gone.
    pub(super) fn handle_unpublished(&mut self, actions: &mut VecDeque<Action>) {
        for (token, _) in std::mem::take(&mut self.under_way) {
            let detail =
                "The connection was lost before the answer came: it may have happened or not.";
            let failure = Failure::new(FailureReason::Transport, detail);
            let outcome = Err(CallFailure::uncertain(failure));
            actions.push_back(Action::Finished { token, outcome });
        }
    }

    pub(super) fn poll_timeout(&self) -> Option<Instant> {
        Instant::earliest(self.under_way.values().copied())
    }

    /// Time has passed.
    pub(super) fn handle_timeout(&mut self, now: Instant, actions: &mut VecDeque<Action>) {
        let is_late = |until: &Option<Instant>| until.is_some_and(|until| until <= now);
        for (token, _) in self.under_way.extract_if(.., |_, until| is_late(until)) {
            let detail = "The host did not answer in time: it may have happened or not.";
            let failure = Failure::new(FailureReason::Timeout, detail);
            let outcome = Err(CallFailure::uncertain(failure));
            actions.push_back(Action::Finished { token, outcome });
        }
    }
}
