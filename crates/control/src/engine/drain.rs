//! Drains: which gateways have answered that nothing of theirs is in flight.
//!
//! A gateway registers when it starts and says goodbye when it ends. A drain that is asked for
//! waits for every gateway that was registered at that moment. One that registers later has no
//! cached verdict of before, so it need not be waited for.

use std::collections::{BTreeSet, HashMap};

use wakeful_lifecycle::Drained;
use wakeful_wire::{
    EnvId, Generation, HolderId,
    gate::{DrainAnswer, GateEvent},
};

use super::Engine;

/// The gateways and the drains under way. At most one per environment.
#[derive(Debug, Default)]
pub(crate) struct Drains {
    gateways: BTreeSet<HolderId>,
    under_way: HashMap<EnvId, Drain>,
}

#[derive(Debug)]
struct Drain {
    decided: Generation,
    waiting: BTreeSet<HolderId>,
    busy: BTreeSet<HolderId>,
}

impl Drains {
    pub(crate) fn begin(&mut self, env: EnvId, decided: Generation) {
        let drain = Drain { decided, waiting: self.gateways.clone(), busy: BTreeSet::new() };
        self.under_way.insert(env, drain);
    }

    /// Takes an answer in. False when it is to a drain that is not under way any more.
    pub(crate) fn answer(&mut self, answer: &DrainAnswer) -> bool {
        let Some(drain) = self.under_way.get_mut(&answer.env) else { return false };
        if drain.decided != answer.generation {
            return false;
        }
        // A gateway that has drained stays so for this decision, since nothing is admitted without
        // a new one. Its two answers to a forced drain may change places on their way.
        if answer.drained {
            drain.waiting.remove(&answer.holder);
            drain.busy.remove(&answer.holder);
        } else if drain.waiting.remove(&answer.holder) {
            drain.busy.insert(answer.holder);
        }
        true
    }

    /// How the drain of this decision stands.
    pub(crate) fn state(&self, env: EnvId, decided: Generation) -> Drained {
        match self.under_way.get(&env) {
            Some(drain) if drain.decided == decided => {
                if !drain.busy.is_empty() {
                    Drained::Busy
                } else if drain.waiting.is_empty() {
                    Drained::Yes
                } else {
                    Drained::Pending
                }
            }
            // Asked for by a process that is gone: nobody will answer.
            Some(_) | None => Drained::Pending,
        }
    }

    /// Whether this process has asked for the drain of this decision.
    pub(crate) fn is_under_way(&self, env: EnvId, decided: Generation) -> bool {
        self.under_way.get(&env).is_some_and(|drain| drain.decided == decided)
    }

    pub(crate) fn end(&mut self, env: EnvId) {
        self.under_way.remove(&env);
    }

    fn leave(&mut self, holder: HolderId) -> Vec<EnvId> {
        self.gateways.remove(&holder);
        let mut changed = Vec::new();
        for (env, drain) in &mut self.under_way {
            if drain.waiting.remove(&holder) | drain.busy.remove(&holder) {
                changed.push(*env);
            }
        }
        changed
    }
}

impl Engine {
    /// A gateway has started. From now on every drain waits for its answer.
    pub fn gateway_joined(&self, holder: HolderId) {
        self.inner.drains.lock().gateways.insert(holder);
    }

    /// A gateway has ended, with everything that it held.
    ///
    /// # Errors
    /// When its leases cannot be released; they lapse by themselves then.
    pub async fn gateway_left(&self, holder: HolderId) -> Result<(), super::EngineError> {
        let changed = self.inner.drains.lock().leave(holder);
        self.inner.parts.store.release(holder).await?;
        for env in changed {
            self.nudge(env);
        }
        Ok(())
    }

    /// A gateway's answer to [`GateEvent::Drain`].
    pub fn drained(&self, answer: &DrainAnswer) {
        if self.inner.drains.lock().answer(answer) {
            self.nudge(answer.env);
        }
    }

    pub(super) fn begin_drain(&self, env: EnvId, decided: Generation, forced: bool) {
        self.inner.drains.lock().begin(env, decided);
        let event = GateEvent::Drain { env, generation: decided, forced };
        if self.inner.gate_events.send(event).is_err() {
            tracing::debug!(%env, "nobody listens for drains");
        }
        // With no gateway at all the drain is over as soon as it has begun.
        self.nudge(env);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use wakeful_lifecycle::testing::{a_holder, an_env};

    #[test]
    fn a_drain_is_over_when_every_gateway_of_that_moment_has_answered() {
        let mut drains = Drains::default();
        let (one, two, env) = (a_holder(), a_holder(), an_env());
        drains.gateways.extend([one, two]);
        drains.begin(env, Generation(4));
        let answer = |holder, generation, drained| DrainAnswer {
            holder,
            env,
            generation: Generation(generation),
            drained,
        };
        assert_eq!(drains.state(env, Generation(4)), Drained::Pending);
        assert!(!drains.answer(&answer(one, 3, true)), "an answer to an older decision");
        assert!(drains.answer(&answer(one, 4, true)));
        assert_eq!(drains.state(env, Generation(4)), Drained::Pending);
        drains.answer(&answer(two, 4, false));
        assert_eq!(drains.state(env, Generation(4)), Drained::Busy);
        drains.answer(&answer(two, 4, true));
        assert_eq!(drains.state(env, Generation(4)), Drained::Yes);
        assert_eq!(drains.state(env, Generation(5)), Drained::Pending, "another decision");
    }

    #[test]
    fn a_drained_gateway_is_not_busy_again_because_an_earlier_answer_comes_late() {
        let mut drains = Drains::default();
        let (holder, env) = (a_holder(), an_env());
        drains.gateways.insert(holder);
        drains.begin(env, Generation(4));
        for drained in [true, false] {
            drains.answer(&DrainAnswer { holder, env, generation: Generation(4), drained });
            assert_eq!(drains.state(env, Generation(4)), Drained::Yes);
        }
    }

    #[test]
    fn a_gateway_that_ends_is_not_waited_for() {
        let mut drains = Drains::default();
        let (one, env) = (a_holder(), an_env());
        drains.gateways.insert(one);
        drains.begin(env, Generation(4));
        assert_eq!(drains.leave(one), [env]);
        assert_eq!(drains.state(env, Generation(4)), Drained::Yes);
    }
}
