//! Calls and subscriptions of a host, over whichever session is the current one.
//!
//! # Theory of operation
//!
//! What a caller may expect when a session ends depends on what it asked for (spec client-runtime
//! 5.3; seed, last paragraph):
//!
//! | kind | bound to | no session | session ends | refused by the host | unreadable |
//! |---|---|---|---|---|---|
//! | request | the session that is current when it is made | fails at once, is never queued | fails, and is **never sent again** | fails | its caller's |
//! | stream | the session that is current when it is made | fails at once | fails | fails | its caller's |
//! | subscription | none: it follows the current session | waits in silence | waits in silence, then begins anew with freshly built input | as [`OnFailure`] says | it is over |
//!
//! A request is never repeated here, because only whoever gave a command knows whether giving it
//! again is safe: [`CallFailure::effect`] says whether it may have happened. A subscription never
//! asks for another connection: it observes what the supervisor does. That is why no action of this
//! module speaks of connecting.
//!
//! A line (`line.rs`) holds which call of the current session belongs to whom, and is dropped
//! with the session. Whatever comes from the world names its attempt, so a late event of an old
//! socket finds no line, although both sockets number their calls from nought.
//!
//! # Order of calling
//!
//! The parent drains [`Boundary::poll_action`] after every call of another method, hands
//! [`Action::Send`] to the named session and its answer to [`Boundary::handle_sent`], and asks
//! [`Boundary::poll_timeout`] then. At a handover it calls [`Boundary::handle_unpublished`] and
//! [`Boundary::handle_published`] in one step.
//!
//! # Bounds
//!
//! [`SUBSCRIPTIONS_MAX`] subscriptions; as many calls as the session takes, beyond which it refuses
//! them as overloaded; [`REQUEST_TIMEOUT`] for an answer. Actions that were not drained when what
//! they are about ended may still come; its id is never used again.

mod action;
mod config;
mod line;
mod requests;
mod subscription;
mod subscriptions;

#[cfg(test)]
#[cfg(not(target_arch = "wasm32"))]
mod properties;
#[cfg(test)]
mod tests;

use std::collections::VecDeque;

use wakeful_wire::{
    Problem,
    rpc::{Call, CallId},
};

pub use self::{
    action::{Action, CallFailure, Over, Sending, SubscriptionId, Token},
    config::{ConfigFeed, ConfigReader},
    requests::REQUEST_TIMEOUT,
    subscription::{OnFailure, RESUBSCRIBE_LEAST},
    subscriptions::SUBSCRIPTIONS_MAX,
};
use self::{
    line::{Caller, Line},
    requests::Requests,
    subscriptions::Subscriptions,
};
use crate::{
    AttemptId, Failure, FailureReason, Instant,
    session::{CallEvent, failure_of},
};

/// Calls and subscriptions of one host; see the [module](self) for the order of calling.
#[derive(Debug, Default)]
pub struct Boundary {
    line: Option<Line>,
    sendings: u64,
    requests: Requests,
    subscriptions: Subscriptions,
    actions: VecDeque<Action>,
}

impl Boundary {
    /// Without a session.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// The current session.
    #[must_use]
    pub fn session(&self) -> Option<AttemptId> {
        self.line.as_ref().map(Line::attempt)
    }

    /// This session is the current one from now on. Every subscription begins anew on it. If there
    /// was another until now, it is taken away first.
    pub fn handle_published(&mut self, attempt: AttemptId) {
        self.handle_unpublished();
        self.line = Some(Line::new(attempt));
        self.subscriptions.handle_published(&mut self.actions);
    }

    /// There is no session any more. Requests and streams in flight fail; subscriptions wait.
    pub fn handle_unpublished(&mut self) {
        if self.line.take().is_none() {
            return;
        }
        // What was to be sent over it can no longer be, and must not be over another.
        self.actions.retain(|action| !action.is_for_session());
        self.requests.handle_unpublished(&mut self.actions);
        self.subscriptions.handle_unpublished(&mut self.actions);
    }

    /// Makes a request over the session that is current now. Its outcome comes as
    /// [`Action::Finished`], also where it fails at once: without a session, or if `call` is one
    /// that is answered by items.
    pub fn request(&mut self, now: Instant, call: Call) -> Token {
        let token = self.requests.begin(Some(now.after(REQUEST_TIMEOUT)));
        if call.is_subscription() {
            self.requests.fail(token, CallFailure::certain(wrong_kind(&call)), &mut self.actions);
        } else {
            self.send(Caller::Request(token), token, call);
        }
        token
    }

    /// Follows something over the session that is current now, and over no other. Items come as
    /// [`Action::StreamItem`], the end as [`Action::Finished`]. There is no limit of time.
    pub fn stream(&mut self, call: Call) -> Token {
        let token = self.requests.begin(None);
        if call.is_subscription() {
            self.send(Caller::Stream(token), token, call);
        } else {
            self.requests.fail(token, CallFailure::certain(wrong_kind(&call)), &mut self.actions);
        }
        token
    }

    fn send(&mut self, caller: Caller, token: Token, call: Call) {
        let Some(line) = &mut self.line else {
            let failure = Failure::new(FailureReason::Transport, "There is no connection.");
            return self.requests.fail(token, CallFailure::certain(failure), &mut self.actions);
        };
        self.sendings += 1;
        self.actions.push_back(line.send(Sending(self.sendings), caller, call));
    }

    /// Nobody waits for this request or stream any more: its outcome does not come. A stream is
    /// ended at the host. A request is not called back, since it may have happened already.
    pub fn give_up(&mut self, token: Token) {
        if !self.requests.end(token) {
            return;
        }
        if let Some(line) = &mut self.line {
            self.actions.extend(line.leave(Caller::Stream(token)));
        }
    }

    /// Begins a subscription. Whenever it is to be sent, [`Action::Build`] asks for its input.
    ///
    /// # Errors
    /// If there are [`SUBSCRIPTIONS_MAX`] already ([`FailureReason::Overloaded`]).
    pub fn subscribe(&mut self, on_failure: OnFailure) -> Result<SubscriptionId, Failure> {
        self.subscriptions.subscribe(on_failure, self.line.is_some(), &mut self.actions)
    }

    /// The answer to [`Action::Build`], now or later. Without effect where none is awaited: the
    /// session has ended meanwhile, and the next one asks again.
    pub fn handle_input(&mut self, subscription: SubscriptionId, call: Call) {
        let Some(line) = &mut self.line else { return };
        if !self.subscriptions.handle_input(subscription) {
            return;
        }
        if call.is_subscription() {
            self.sendings += 1;
            let caller = Caller::Subscription(subscription);
            self.actions.push_back(line.send(Sending(self.sendings), caller, call));
        } else {
            let over = Over::Failed(wrong_kind(&call));
            self.subscriptions.over(subscription, over, &mut self.actions);
        }
    }

    /// Begins a subscription anew on the present session, at once and with fresh input: because it
    /// was found to have missed something, or because waiting is of no use any more. Without effect
    /// where that is on its way anyhow, or where there is no session.
    pub fn resubscribe(&mut self, subscription: SubscriptionId) {
        if let Some(line) = &mut self.line
            && self.subscriptions.resubscribe(subscription)
        {
            self.actions.extend(line.leave(Caller::Subscription(subscription)));
            self.actions.push_back(Action::Build { subscription });
        }
    }

    /// Ends a subscription, at the host too.
    pub fn unsubscribe(&mut self, subscription: SubscriptionId) {
        if self.subscriptions.unsubscribe(subscription) {
            self.leave(subscription);
        }
    }

    /// An item of this subscription cannot be read. That is nobody's to expect: the subscription is
    /// over whatever its [`OnFailure`] is, and ended at the host (spec client-runtime 5.3).
    pub fn handle_defect(&mut self, subscription: SubscriptionId, detail: impl Into<String>) {
        let over = Over::Failed(Failure::new(FailureReason::Remote, detail));
        self.subscriptions.over(subscription, over, &mut self.actions);
        self.leave(subscription);
    }

    fn leave(&mut self, subscription: SubscriptionId) {
        if let Some(line) = &mut self.line {
            self.actions.extend(line.leave(Caller::Subscription(subscription)));
        }
    }

    /// What came of [`Action::Send`]: the call's id, or why it was not sent. Of a session that is
    /// gone it changes nothing.
    pub fn handle_sent(&mut self, now: Instant, sending: Sending, sent: Result<CallId, Failure>) {
        let Some(line) = &mut self.line else { return };
        match (line.sent(sending, sent.as_ref().ok().copied()), sent) {
            (Some(Caller::Subscription(id)), Ok(_)) => {
                self.subscriptions.handle_started(now, id, &mut self.actions);
            }
            (Some(Caller::Subscription(id)), Err(failure)) => {
                self.subscriptions.handle_failed(now, id, failure, &mut self.actions);
            }
            (Some(Caller::Request(token) | Caller::Stream(token)), Err(failure)) => {
                self.requests.fail(token, CallFailure::certain(failure), &mut self.actions);
            }
            (Some(Caller::Nobody), Ok(id)) => {
                self.actions.push_back(Action::Cancel { attempt: line.attempt(), id });
            }
            (Some(Caller::Request(_) | Caller::Stream(_)), Ok(_))
            | (Some(Caller::Nobody), Err(_))
            | (None, _) => {}
        }
    }

    /// Something came for a call of this session. Whatever is not of the current session, or of no
    /// call that somebody waits for, changes nothing.
    pub fn handle_event(&mut self, now: Instant, attempt: AttemptId, event: CallEvent) {
        let Some(line) = self.line.as_mut().filter(|line| line.attempt() == attempt) else {
            return;
        };
        match line.caller(&event) {
            Some(Caller::Request(token)) => {
                self.requests.handle_answer(token, event, &mut self.actions);
            }
            Some(Caller::Stream(token)) => {
                self.requests.handle_streamed(token, event, &mut self.actions);
            }
            Some(Caller::Subscription(subscription)) => {
                self.handle_subscribed(now, subscription, event);
            }
            Some(Caller::Nobody) | None => {}
        }
    }

    fn handle_subscribed(&mut self, now: Instant, id: SubscriptionId, event: CallEvent) {
        let actions = &mut self.actions;
        match event {
            CallEvent::Item { item, .. } => {
                actions.push_back(Action::Item { subscription: id, item });
            }
            CallEvent::Failed { problem, .. } if is_gone(&problem) => {
                self.subscriptions.over(id, Over::Gone(problem), actions);
            }
            CallEvent::Failed { problem, .. } => {
                self.subscriptions.handle_failed(now, id, failure_of(&problem), actions);
            }
            CallEvent::End { .. } | CallEvent::Response { .. } => {
                let ended = "The host has ended the subscription.";
                let failure = Failure::new(FailureReason::Remote, ended);
                self.subscriptions.handle_failed(now, id, failure, actions);
            }
        }
    }

    /// What is to be done.
    pub fn poll_action(&mut self) -> Option<Action> {
        self.actions.pop_front()
    }

    /// When to call [`Self::handle_timeout`] at the latest.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Instant> {
        Instant::earliest([self.requests.poll_timeout(), self.subscriptions.poll_timeout()])
    }

    /// Time has passed.
    pub fn handle_timeout(&mut self, now: Instant) {
        self.requests.handle_timeout(now, &mut self.actions);
        self.subscriptions.handle_timeout(now, &mut self.actions);
    }
}

/// Whether it is about something that is not there: no repetition of the same subscription can be
/// answered otherwise, so none is tried (spec client-runtime, W15).
const fn is_gone(problem: &Problem) -> bool {
    use wakeful_wire::Code;
    matches!(problem.code, Code::NotFound | Code::Gone)
}

fn wrong_kind(call: &Call) -> Failure {
    let answered = if call.is_subscription() { "items" } else { "one answer" };
    let detail = format!("`{}` has {answered}: it was asked in another way.", call.method());
    Failure::new(FailureReason::Unsupported, detail)
}
