//! Drains: who has answered that nothing of theirs is in flight.
//!
//! A gateway registers when it starts and says goodbye when it ends. A drain that is asked for
//! waits for every gateway that was registered at that moment. One that registers later has no
//! cached verdict of before, so it need not be waited for.
//!
//! Before an idle suspend the sandbox is one holder more, under its uid: it counts the turns of its
//! agents, which no gateway knows of. Its "drained" holds for a time only, so it is taken for
//! nothing once that time is nearly over ([`hold_time`]). One that gives no answer counts as busy.

use std::{
    collections::{BTreeSet, HashMap},
    time::Duration,
};

use tokio::sync::oneshot;
use wakeful_lifecycle::{Drained, Policy, Record, SandboxRef, StopReason};
use wakeful_wire::{
    EnvId, Generation, HolderId, SandboxUid, Timestamp,
    gate::{DrainAnswer, GateEvent},
};

use super::Engine;

/// What a sandbox's hold lasts beyond the time for which its answer is relied on: as long as the
/// commit and the first word of the stop may take.
const HOLD_MARGIN: Duration = Duration::from_secs(5);

/// The longest hold that a sandbox begins.
const HOLD_MAX: Duration = Duration::from_secs(60);

/// How long a sandbox is asked to begin nothing: until the answers of gateways are waited for no
/// longer, and [`HOLD_MARGIN`] more.
fn hold_time(policy: &Policy) -> Duration {
    policy.drain_deadline.saturating_add(HOLD_MARGIN).min(HOLD_MAX)
}

/// A sandbox as one that holds: leases of its turns, and answers to drains.
pub(super) const fn holder_of(sandbox: SandboxUid) -> HolderId {
    HolderId::from_uuid(sandbox.uuid())
}

/// The gateways and the drains under way. At most one per environment.
#[derive(Debug, Default)]
pub(crate) struct Drains {
    gateways: BTreeSet<HolderId>,
    under_way: HashMap<EnvId, Drain>,
    /// The end of the last ask of each environment's sandbox: the next waits for it, since two at
    /// once may arrive in either order, and the end of one hold would end the next.
    asked: HashMap<EnvId, oneshot::Receiver<()>>,
}

#[derive(Debug)]
struct Drain {
    decided: Generation,
    waiting: BTreeSet<HolderId>,
    busy: BTreeSet<HolderId>,
    /// Until when the sandbox's "drained" is relied on.
    sandbox_until: Option<Timestamp>,
}

impl Drains {
    /// Begins a drain, which waits for every gateway, and for the sandbox where one is named.
    pub(crate) fn begin(&mut self, env: EnvId, decided: Generation, sandbox: Option<SandboxUid>) {
        let mut waiting = self.gateways.clone();
        waiting.extend(sandbox.map(holder_of));
        let drain = Drain { decided, waiting, busy: BTreeSet::new(), sandbox_until: None };
        self.under_way.insert(env, drain);
    }

    /// The sandbox's answer is relied on until then.
    fn rely(&mut self, env: EnvId, decided: Generation, until: Timestamp) {
        if let Some(drain) = self.under_way.get_mut(&env).filter(|drain| drain.decided == decided) {
            drain.sandbox_until = Some(until);
        }
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
    pub(crate) fn state(&self, env: EnvId, decided: Generation, now: Timestamp) -> Drained {
        match self.under_way.get(&env) {
            Some(drain) if drain.decided == decided => {
                if !drain.busy.is_empty() {
                    Drained::Busy
                } else if drain.sandbox_until.is_some_and(|until| until <= now) {
                    // Too late to rely on: by now the wait for the others is over as well.
                    Drained::Pending
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
        self.asked.remove(&env);
    }

    /// A place behind whatever an environment's sandbox is being asked: what to wait for, and what
    /// to drop when the next may ask.
    fn queue(&mut self, env: EnvId) -> (Option<oneshot::Receiver<()>>, oneshot::Sender<()>) {
        let (done, end) = oneshot::channel();
        (self.asked.insert(env, end), done)
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

    /// Begins the drain before the end of the record's sandbox, if its end is decided: tells the
    /// gateways and, unless the drain is forced, asks the sandbox.
    pub(super) fn begin_drain(&self, record: &Record, decided: Generation, forced: bool) {
        let env = record.id;
        let sandbox = record.sandbox.as_ref().map(|sandbox| sandbox.reference(env));
        let asked = sandbox.filter(|_| !forced);
        self.inner.drains.lock().begin(env, decided, asked.as_ref().map(|sandbox| sandbox.uid));
        if let Some(sandbox) = asked {
            self.ask_sandbox(sandbox, decided);
        }
        let event = GateEvent::Drain { env, generation: decided, forced };
        if self.inner.gate_events.send(event).is_err() {
            tracing::debug!(%env, "nobody listens for drains");
        }
        // With no gateway at all a forced drain is over as soon as it has begun.
        self.nudge(env);
    }

    fn ask_sandbox(&self, sandbox: SandboxRef, decided: Generation) {
        let (before, done) = self.inner.drains.lock().queue(sandbox.env);
        let engine = self.clone();
        tokio::spawn(async move {
            wait_for(before).await;
            let hold = hold_time(engine.policy());
            // Counted from before the ask, so it ends before the hold does.
            let until = engine.now().after(hold.saturating_sub(HOLD_MARGIN));
            let drained = match engine.inner.parts.driver.drain(&sandbox, hold).await {
                Ok(turns) => turns == 0,
                Err(error) => {
                    let (env, reason) = (sandbox.env, error.fault.reason);
                    tracing::debug!(%env, reason, "a sandbox does not say whether it is idle");
                    false
                }
            };
            drop(done);
            engine.inner.drains.lock().rely(sandbox.env, decided, until);
            let holder = holder_of(sandbox.uid);
            let answer = DrainAnswer { holder, env: sandbox.env, generation: decided, drained };
            engine.drained(&answer);
        });
    }

    /// A change was committed. Where it gave an idle suspend up, whatever the sandbox holds back
    /// may go on: a courtesy, since the hold ends by itself.
    pub(super) fn release_drained(&self, before: &Record, after: &Record) {
        let (Some(old), Some(new)) = (&before.sandbox, &after.sandbox) else { return };
        let idle = old.stop.as_ref().is_some_and(|stop| stop.reason == StopReason::Idle);
        if old.uid != new.uid || !idle || new.stop.is_some() {
            return;
        }
        let sandbox = new.reference(after.id);
        let (before, done) = self.inner.drains.lock().queue(sandbox.env);
        let engine = self.clone();
        tokio::spawn(async move {
            wait_for(before).await;
            if let Err(error) = engine.inner.parts.driver.drain(&sandbox, Duration::ZERO).await {
                let (env, reason) = (sandbox.env, error.fault.reason);
                tracing::debug!(%env, reason, "a hold ends by itself");
            }
            drop(done);
        });
    }
}

/// Waits until an ask has ended, however it did.
async fn wait_for(ask: Option<oneshot::Receiver<()>>) {
    if let Some(ask) = ask {
        // Nothing is ever sent: its end is the dropped sender.
        drop(ask.await);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use wakeful_lifecycle::testing::{a_fresh_sandbox, a_holder, an_env};

    const NOW: Timestamp = Timestamp(1_000);

    #[test]
    fn a_drain_is_over_when_every_gateway_of_that_moment_has_answered() {
        let mut drains = Drains::default();
        let (one, two, env) = (a_holder(), a_holder(), an_env());
        drains.gateways.extend([one, two]);
        drains.begin(env, Generation(4), None);
        let answer = |holder, generation, drained| DrainAnswer {
            holder,
            env,
            generation: Generation(generation),
            drained,
        };
        assert_eq!(drains.state(env, Generation(4), NOW), Drained::Pending);
        assert!(!drains.answer(&answer(one, 3, true)), "an answer to an older decision");
        assert!(drains.answer(&answer(one, 4, true)));
        assert_eq!(drains.state(env, Generation(4), NOW), Drained::Pending);
        drains.answer(&answer(two, 4, false));
        assert_eq!(drains.state(env, Generation(4), NOW), Drained::Busy);
        drains.answer(&answer(two, 4, true));
        assert_eq!(drains.state(env, Generation(4), NOW), Drained::Yes);
        assert_eq!(drains.state(env, Generation(5), NOW), Drained::Pending, "another decision");
    }

    #[test]
    fn a_drained_gateway_is_not_busy_again_because_an_earlier_answer_comes_late() {
        let mut drains = Drains::default();
        let (holder, env) = (a_holder(), an_env());
        drains.gateways.insert(holder);
        drains.begin(env, Generation(4), None);
        for drained in [true, false] {
            drains.answer(&DrainAnswer { holder, env, generation: Generation(4), drained });
            assert_eq!(drains.state(env, Generation(4), NOW), Drained::Yes);
        }
    }

    #[test]
    fn an_idle_drain_waits_for_the_sandbox_and_relies_on_its_answer_for_a_time_only() {
        let mut drains = Drains::default();
        let (sandbox, env) = (a_fresh_sandbox().uid, an_env());
        let later = NOW.after(Duration::from_secs(10));
        let generation = Generation(4);
        drains.begin(env, generation, Some(sandbox));
        assert_eq!(drains.state(env, generation, NOW), Drained::Pending);
        drains.rely(env, Generation(3), NOW);
        drains.rely(env, generation, later);
        let answer = DrainAnswer { holder: holder_of(sandbox), env, generation, drained: true };
        assert!(drains.answer(&answer));
        assert_eq!(drains.state(env, generation, NOW), Drained::Yes);
        assert_eq!(drains.state(env, generation, later), Drained::Pending, "its hold may be over");
        drains.begin(env, generation, Some(sandbox));
        drains.answer(&DrainAnswer { drained: false, ..answer });
        assert_eq!(drains.state(env, generation, NOW), Drained::Busy);
    }

    #[test]
    fn a_hold_lasts_longer_than_its_answer_is_relied_on_and_no_longer_than_it_may() {
        for seconds in [0, 10, 55, 600] {
            let drain_deadline = Duration::from_secs(seconds);
            let hold = hold_time(&Policy { drain_deadline, ..Policy::default() });
            assert!(hold >= HOLD_MARGIN && hold <= HOLD_MAX);
        }
        assert_eq!(hold_time(&Policy::default()), Duration::from_secs(15));
    }

    #[test]
    fn a_gateway_that_ends_is_not_waited_for() {
        let mut drains = Drains::default();
        let (one, env) = (a_holder(), an_env());
        drains.gateways.insert(one);
        drains.begin(env, Generation(4), None);
        assert_eq!(drains.leave(one), [env]);
        assert_eq!(drains.state(env, Generation(4), NOW), Drained::Yes);
    }
}
