//! All durable subscriptions of a host.

use std::collections::{BTreeMap, VecDeque};

use super::{
    action::{Action, Over, SubscriptionId},
    subscription::{OnFailure, Stage, Subscription, Verdict},
};
use crate::{Failure, FailureReason, Instant};

/// How many subscriptions there are at most: three quarters of the calls that one socket may have
/// open, so that views can never take the place of what a person does.
pub const SUBSCRIPTIONS_MAX: usize = wakeful_wire::rpc::CALLS_MAX / 4 * 3;

/// All durable subscriptions of a host.
#[derive(Debug, Default)]
pub(super) struct Subscriptions {
    all: BTreeMap<SubscriptionId, Subscription>,
    begun: u64,
}

impl Subscriptions {
    pub(super) fn subscribe(
        &mut self,
        on_failure: OnFailure,
        is_connected: bool,
        actions: &mut VecDeque<Action>,
    ) -> Result<SubscriptionId, Failure> {
        if self.all.len() >= SUBSCRIPTIONS_MAX {
            let detail = format!("{SUBSCRIPTIONS_MAX} subscriptions are open.");
            return Err(Failure::new(FailureReason::Overloaded, detail));
        }
        self.begun += 1;
        let id = SubscriptionId(self.begun);
        let mut subscription = Subscription::new(on_failure);
        if is_connected {
            subscription.handle_published();
            actions.push_back(Action::Build { subscription: id });
        }
        self.all.insert(id, subscription);
        Ok(id)
    }

    /// Ends one without a word. Returns whether it was there.
    pub(super) fn unsubscribe(&mut self, id: SubscriptionId) -> bool {
        self.all.remove(&id).is_some()
    }

    /// Ends one for good.
    pub(super) fn over(&mut self, id: SubscriptionId, over: Over, actions: &mut VecDeque<Action>) {
        if self.unsubscribe(id) {
            actions.push_back(Action::Over { subscription: id, over });
        }
    }

    pub(super) fn handle_published(&mut self, actions: &mut VecDeque<Action>) {
        for (id, subscription) in &mut self.all {
            subscription.handle_published();
            actions.push_back(Action::Build { subscription: *id });
        }
    }

    pub(super) fn handle_unpublished(&mut self, actions: &mut VecDeque<Action>) {
        for (id, subscription) in &mut self.all {
            if subscription.handle_unpublished() {
                actions.push_back(Action::Lost { subscription: *id });
            }
        }
    }

    /// The input of one is there. Returns whether it was awaited.
    pub(super) fn handle_input(&mut self, id: SubscriptionId) -> bool {
        self.all.get_mut(&id).is_some_and(Subscription::handle_input)
    }

    /// One is to begin anew. Returns whether its input is to be built.
    pub(super) fn resubscribe(&mut self, id: SubscriptionId) -> bool {
        self.all.get_mut(&id).is_some_and(Subscription::begin_anew)
    }

    pub(super) fn handle_started(
        &mut self,
        now: Instant,
        id: SubscriptionId,
        actions: &mut VecDeque<Action>,
    ) {
        if let Some(subscription) = self.all.get_mut(&id)
            && subscription.stage() == Stage::Sending
        {
            subscription.handle_started(now);
            actions.push_back(Action::Started { subscription: id });
        }
    }

    pub(super) fn handle_failed(
        &mut self,
        now: Instant,
        id: SubscriptionId,
        failure: Failure,
        actions: &mut VecDeque<Action>,
    ) {
        let Some(subscription) = self.all.get_mut(&id) else { return };
        match subscription.handle_failed(now, &failure) {
            Verdict::Silent => {}
            Verdict::Told(again_at) => {
                actions.push_back(Action::Failed { subscription: id, failure, again_at });
            }
            Verdict::Over => self.over(id, Over::Failed(failure), actions),
        }
    }

    pub(super) fn poll_timeout(&self) -> Option<Instant> {
        Instant::earliest(self.all.values().map(Subscription::poll_timeout))
    }

    pub(super) fn handle_timeout(&mut self, now: Instant, actions: &mut VecDeque<Action>) {
        for (id, subscription) in &mut self.all {
            if subscription.handle_timeout(now) {
                actions.push_back(Action::Build { subscription: *id });
            }
        }
    }
}
