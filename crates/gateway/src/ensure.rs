//! The shell of the gate: asks the control plane, and lets requests wait.
//!
//! The rules are in [`crate::gate`] and [`crate::holding`]; here they get a lock, a clock, tasks
//! that no client's departure cancels, and a bell per environment for those who wait.

use std::{cell::RefCell, collections::HashMap, sync::Arc, time::Duration};

use parking_lot::Mutex;
use tokio::{sync::Notify, time::Instant};
use wakeful_wire::{
    EnvId, SandboxUid,
    gate::{EnsureAnswer, GateEvent, GateState, LeaseKind, Principal},
    name::SurfaceName,
};

use crate::{
    control::ControlPlane,
    core::Core,
    gate::{Ask, Config, Entry, Gate, Key, Load},
    holding::{Overloaded, Patience, Waiting},
    leases::{Lease, Leases},
};

/// How long the control plane may take to answer before it counts as unreachable. It never waits
/// for an environment, so this is long.
const ANSWER_MAX: Duration = Duration::from_secs(10);
/// Entries that a core keeps for one environment; beyond, the oldest goes.
const PER_ENV: usize = 64;
/// Environments of which a core keeps entries; beyond, all are forgotten and asked for again.
const ENVS: usize = 65_536;

/// What the gate says to a request in the end.
#[derive(Debug)]
pub(crate) enum Gated {
    /// Go on, holding this lease.
    Ready(Arc<Entry>, Lease),
    /// The answer that ends it: the environment cannot or need not serve this request now.
    /// `waited`: it was held before.
    Refused { entry: Arc<Entry>, waited: bool },
    /// It was held for as long as it may be; what was last known, if anything.
    Over(Option<Arc<Entry>>),
    /// It was held, and the start that it waited for was stopped by somebody.
    PutToSleep,
    /// The control plane cannot be asked.
    Unavailable,
    /// Too many requests wait, or too many questions are open.
    Overloaded,
}

/// The gate of the process, with everything it needs to wait.
pub(crate) struct Ensure {
    gate: Mutex<Gate>,
    control: Arc<dyn ControlPlane>,
    leases: Arc<Leases>,
    waiting: Arc<Waiting>,
    bells: Mutex<HashMap<EnvId, Arc<Notify>>>,
    epoch: Instant,
}

impl std::fmt::Debug for Ensure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Ensure").finish_non_exhaustive()
    }
}

/// What a request brings to the gate.
#[derive(Debug)]
pub(crate) struct Asking<'a> {
    pub(crate) env: EnvId,
    pub(crate) surface: &'a SurfaceName,
    pub(crate) principal: Option<&'a Principal>,
    pub(crate) intent: bool,
    pub(crate) patience: Patience,
    /// From when its patience counts.
    pub(crate) started: Instant,
    /// The shortest idle timeout in force for the environment.
    pub(crate) idle_min: Duration,
}

impl Asking<'_> {
    fn key(&self) -> Key {
        Key {
            env: self.env,
            surface: self.surface.clone(),
            principal: self.principal.cloned(),
            intent: self.intent,
        }
    }

    /// Admits on a kept answer. Who only looks at the environment server touches no clock.
    fn admit(&self, entry: &Entry, now: Duration) -> Option<Lease> {
        if !self.intent && self.surface.as_str() == "host" {
            entry.admit_quietly(now)
        } else {
            entry.admit(now, LeaseKind::Request)
        }
    }
}

struct Kept {
    surface: SurfaceName,
    principal: Option<Principal>,
    intent: bool,
    entry: Arc<Entry>,
}

impl Kept {
    fn fits(&self, asking: &Asking<'_>) -> bool {
        self.intent == asking.intent
            && self.surface == *asking.surface
            && self.principal.as_ref() == asking.principal
    }
}

thread_local! {
    /// This core's view of the gate. Every entry in it carries its own mark of death.
    static KEPT: RefCell<HashMap<EnvId, Vec<Kept>>> = RefCell::default();
}

/// Forgets what has ended, on this thread.
pub(crate) fn sweep(now: Duration) {
    KEPT.with_borrow_mut(|envs| {
        envs.retain(|_, kept| {
            kept.retain(|kept| kept.entry.is_live(now));
            !kept.is_empty()
        });
    });
}

fn keep(asking: &Asking<'_>, entry: &Arc<Entry>) {
    KEPT.with_borrow_mut(|envs| {
        if envs.len() >= ENVS && !envs.contains_key(&asking.env) {
            envs.clear();
        }
        let kept = envs.entry(asking.env).or_default();
        if let Some(old) = kept.iter_mut().find(|kept| kept.fits(asking)) {
            old.entry = Arc::clone(entry);
            return;
        }
        if kept.len() >= PER_ENV {
            kept.remove(0);
        }
        kept.push(Kept {
            surface: asking.surface.clone(),
            principal: asking.principal.cloned(),
            intent: asking.intent,
            entry: Arc::clone(entry),
        });
    });
}

fn admit_kept(asking: &Asking<'_>, now: Duration) -> Option<(Arc<Entry>, Lease)> {
    KEPT.with_borrow(|envs| {
        let kept = envs.get(&asking.env)?.iter().find(|kept| kept.fits(asking))?;
        let lease = asking.admit(&kept.entry, now)?;
        Some((Arc::clone(&kept.entry), lease))
    })
}

impl Ensure {
    pub(crate) fn new(
        config: Config,
        control: Arc<dyn ControlPlane>,
        leases: Arc<Leases>,
        waiting: Arc<Waiting>,
        epoch: Instant,
    ) -> Self {
        Self {
            gate: Mutex::new(Gate::new(config)),
            control,
            leases,
            waiting,
            bells: Mutex::default(),
            epoch,
        }
    }

    /// The time of the rules: since the gateway's start.
    pub(crate) fn now(&self) -> Duration {
        self.epoch.elapsed()
    }

    /// Asks the gate, and waits for as long as the request's patience allows. From the cache it
    /// answers without a lock and without waiting.
    pub(crate) async fn ask(self: &Arc<Self>, core: &Core, asking: &Asking<'_>) -> Gated {
        if let Some((entry, lease)) = admit_kept(asking, self.now()) {
            return Gated::Ready(entry, lease);
        }
        // Boxed, like everything that a request with all answers at hand does not come to: a
        // request's future is moved once, and kept as long as its connection.
        Box::pin(self.ask_slowly(core, asking, true)).await
    }

    /// As [`Self::ask`], but admits nothing, so that the clock is not touched: an environment that
    /// is ready comes back as [`Gated::Refused`], with an answer that says so.
    pub(crate) async fn look(self: &Arc<Self>, core: &Core, asking: &Asking<'_>) -> Gated {
        self.ask_slowly(core, asking, false).await
    }

    async fn ask_slowly(self: &Arc<Self>, core: &Core, asking: &Asking<'_>, admits: bool) -> Gated {
        let key = asking.key();
        let bell = self.bell(key.env);
        let over = asking.started + asking.patience.hold;
        let mut last: Option<Arc<Entry>> = None;
        let mut place = None;
        let mut question = None;
        let mut deleted_before = None;
        let asked_since = Instant::now();
        loop {
            // Made before the gate is asked: it hears everything that stirs from now on.
            let stirred = bell.notified();
            let now = self.now();
            if let Some(since) = &last
                && self.with_gate(|gate| gate.was_put_to_sleep(key.env, since.answer()))
            {
                return Gated::PutToSleep;
            }
            let (ask, deleted) = self.with_gate(|gate| {
                let ask = match question.take() {
                    None => gate.handle_request(&key, now),
                    Some(id) => gate.handle_wait(&key, id, now),
                };
                (ask, gate.is_deleted(key.env))
            });
            // Who came before that was held, also without any answer so far.
            let deleted_since = !*deleted_before.get_or_insert(deleted) && deleted;
            let held_over = Instant::now() >= over;
            let until = match ask {
                Ask::Answer(entry) => {
                    if entry.answer().state == GateState::Ready && admits {
                        if let Some(lease) = asking.admit(&entry, now) {
                            keep(asking, &entry);
                            return Gated::Ready(entry, lease);
                        }
                        // It died between the two looks: the gate does not give it again.
                        continue;
                    }
                    if !may_change(entry.answer(), asking.intent) || asking.patience.hold.is_zero()
                    {
                        let waited = last.is_some() || deleted_since;
                        return Gated::Refused { entry, waited };
                    }
                    if held_over {
                        return Gated::Over(Some(entry));
                    }
                    let again = self.epoch + entry.valid_until();
                    last = Some(entry);
                    again.min(over)
                }
                Ask::Load(load) => {
                    core.counters().ensure();
                    question = Some(load.id);
                    self.put(load, asking.idle_min);
                    self.answer_by(asking, over, asked_since)
                }
                Ask::Wait(id) => {
                    question = Some(id);
                    self.answer_by(asking, over, asked_since)
                }
                Ask::Later(again) => (self.epoch + again).min(over.max(Instant::now() + SHORTLY)),
                Ask::Unavailable => return Gated::Unavailable,
                Ask::Overloaded => return Gated::Overloaded,
            };
            if place.is_none() {
                match self.waiting.enter(key.env) {
                    Ok(taken) => place = Some(taken),
                    Err(_) => return Gated::Overloaded,
                }
            }
            if Instant::now() >= until {
                return if question.is_some() && last.is_none() && asking.patience.hold.is_zero() {
                    Gated::Unavailable
                } else {
                    Gated::Over(last)
                };
            }
            // Whichever comes first, the gate knows what it means.
            let _ = tokio::time::timeout_at(until, stirred).await;
        }
    }

    /// Waits until something is known anew of an environment, or until `until`. Whoever waits here
    /// takes a place like one who waits at the gate.
    ///
    /// # Errors
    /// Too many wait already.
    pub(crate) async fn stirred(&self, env: EnvId, until: Instant) -> Result<(), Overloaded> {
        let _place = self.waiting.enter(env)?;
        let bell = self.bell(env);
        let _ = tokio::time::timeout_at(until, bell.notified()).await;
        Ok(())
    }

    /// Until when an answer of the control plane is waited for.
    fn answer_by(&self, asking: &Asking<'_>, over: Instant, since: Instant) -> Instant {
        if asking.patience.hold.is_zero() { since + ANSWER_MAX } else { over }
    }

    /// Puts a question, in a task of its own.
    fn put(self: &Arc<Self>, load: Load, idle_min: Duration) {
        let mut open = Open { ensure: Arc::clone(self), load: Some(load), idle_min };
        tokio::spawn(async move {
            let Some(request) = open.load.as_ref().map(|load| load.key.request()) else { return };
            let control = Arc::clone(&open.ensure.control);
            match tokio::time::timeout(ANSWER_MAX, control.ensure(request)).await {
                Ok(Ok(answer)) => open.close(Some(answer)),
                Ok(Err(error)) => {
                    tracing::warn!(%error, "the gate cannot ask");
                    open.close(None);
                }
                Err(_) => {
                    tracing::warn!("the control plane does not answer the gate");
                    open.close(None);
                }
            }
        });
    }

    fn with_gate<T>(&self, work: impl FnOnce(&mut Gate) -> T) -> T {
        let (result, stirred) = {
            let mut gate = self.gate.lock();
            let result = work(&mut gate);
            let mut stirred = Vec::new();
            while let Some(env) = gate.poll_stirred() {
                stirred.push(env);
            }
            (result, stirred)
        };
        if !stirred.is_empty() {
            let mut bells = self.bells.lock();
            for env in stirred {
                if let Some(bell) = bells.get(&env) {
                    if Arc::strong_count(bell) == 1 {
                        bells.remove(&env);
                    } else {
                        bell.notify_waiters();
                    }
                }
            }
        }
        result
    }

    fn bell(&self, env: EnvId) -> Arc<Notify> {
        let mut bells = self.bells.lock();
        if bells.len() >= 1024 && bells.len().is_power_of_two() {
            bells.retain(|_, bell| Arc::strong_count(bell) > 1);
        }
        Arc::clone(bells.entry(env).or_default())
    }

    /// An event of the control plane: cached entries die before anything else is done about it.
    pub(crate) fn handle_event(&self, event: &GateEvent) {
        self.with_gate(|gate| gate.handle_event(event));
    }

    /// Events were lost.
    pub(crate) fn handle_lagged(&self) {
        self.with_gate(Gate::handle_lagged);
    }

    /// See [`Gate::is_deleted`].
    pub(crate) fn is_deleted(&self, env: EnvId) -> bool {
        self.gate.lock().is_deleted(env)
    }

    /// A request to this sandbox failed: its cached verdicts are not believed any longer.
    pub(crate) fn handle_failure(&self, env: EnvId, sandbox: SandboxUid) {
        self.with_gate(|gate| gate.handle_failure(env, sandbox));
    }
}

/// A pause so short that nobody notices, for a key that was asked for a moment ago.
const SHORTLY: Duration = Duration::from_secs(1);

/// Whether waiting may help against this answer.
const fn may_change(answer: &EnsureAnswer, intent: bool) -> bool {
    match answer.state {
        GateState::Ready | GateState::Starting | GateState::SurfaceStarting => true,
        // With intent it is on its way to be woken: a suspend under way must end first.
        GateState::Asleep => intent,
        GateState::SurfaceFailed
        | GateState::Failed
        | GateState::Disabled
        | GateState::Gone
        | GateState::NotFound => false,
    }
}

/// A question on its way. Whatever becomes of its task, the gate hears of it.
struct Open {
    ensure: Arc<Ensure>,
    load: Option<Load>,
    idle_min: Duration,
}

impl Open {
    fn close(&mut self, answer: Option<EnsureAnswer>) {
        if let Some(load) = self.load.take() {
            let ensure = &self.ensure;
            let now = ensure.now();
            let (idle_min, leases) = (self.idle_min, &ensure.leases);
            ensure.with_gate(|gate| gate.handle_answer(load, answer, idle_min, leases, now));
        }
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        self.close(None);
    }
}
