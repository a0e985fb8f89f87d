//! The gate: what the control plane last said, cached, and asked for by one caller at a time.
//!
//! A machine without IO. It has one home per process, behind a lock ([`Gate`]); what it hands out
//! is shared ([`Entry`]), so that a core keeps the entries it uses in a map of its own and admits
//! from them without any lock.
//!
//! # How a shell drives it
//!
//! For each request, with `key` from route, admission and intent:
//!
//! 1. The core's own map has an entry: [`Entry::admit`] gives the lease, and the request goes on.
//! 2. Else, behind the lock, [`Gate::handle_request`]:
//!    - [`Ask::Answer`]: an answer that holds now. Ready: admit from it as in 1 and keep it in the
//!      core's map. Not ready: refuse, or hold until the environment stirs or the answer's
//!      [`Entry::valid_until`], then go on at 2.
//!    - [`Ask::Load`]: this caller was the first. Spawn a task that no client's departure cancels;
//!      it calls `ensure` and brings the result to [`Gate::handle_answer`]. Wait as for `Wait`.
//!    - [`Ask::Wait`]: somebody asks already. Wait until the environment stirs, then call
//!      [`Gate::handle_wait`] with the number.
//!    - [`Ask::Later`]: asked too lately. Wait until then, or until it stirs, and go on at 2.
//!    - [`Ask::Overloaded`]: too many questions are open. 503 at once.
//! 3. After each `handle_*`, poll [`Gate::poll_stirred`] until it says nothing, and wake whoever
//!    waits for those environments.
//!
//! Events of the control plane go to [`Gate::handle_event`], before [`crate::activity::Drains`]
//! sees a drain: entries die first, counts are looked at afterwards (see [`crate::leases`]).
//!
//! # What is stale
//!
//! Every answer and every event carries the record's generation. The gate knows the highest per
//! environment; an answer below it was true once and is dropped, and the caller asks again. What is
//! not there has no generation, so "gone" and "not found" are taken at any, and lower nothing: an
//! environment that is restored goes on at a higher one.

mod entry;
mod slot;

use std::{
    collections::{HashMap, VecDeque},
    sync::{Arc, atomic::AtomicBool},
    time::Duration,
};

use wakeful_wire::{
    EnvId, Generation, Phase, SandboxUid,
    gate::{EnsureAnswer, GateEvent, GateState},
};

use crate::leases::Leases;
use slot::{Slot, TOKENS, worth_asking};

pub use entry::{Entry, Key};

/// Bounds of the gate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Config {
    /// The longest that "ready" is cached; also at most a fifth of the shortest idle timeout.
    pub ready_ttl: Duration,
    /// How long any other answer is cached, and the pace at which those who wait ask again.
    pub other_ttl: Duration,
    /// How many keys are kept. Beyond it the longest known one without an open question goes, so
    /// that there are never more than these and `loads_max` together.
    pub keys_max: usize,
    /// How many questions may be open at once.
    pub loads_max: usize,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            ready_ttl: Duration::from_secs(5),
            other_ttl: Duration::from_secs(1),
            keys_max: 65_536,
            loads_max: 4_096,
        }
    }
}

/// The number of one question to the control plane.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LoadId(u64);

/// One question that the caller is to put to the control plane. Every one of them must come back
/// by [`Gate::handle_answer`].
#[derive(Debug)]
#[must_use = "a question that is never answered keeps its key from being asked again"]
pub struct Load {
    /// The key.
    pub key: Key,
    /// Its number.
    pub id: LoadId,
}

/// What a request is to do next.
#[derive(Debug)]
pub enum Ask {
    /// This answer holds.
    Answer(Arc<Entry>),
    /// Put this question, then wait for it.
    Load(Load),
    /// Somebody puts it already: wait for this number.
    Wait(LoadId),
    /// The key was asked for lately: ask again then, since the gateway's start.
    Later(Duration),
    /// The question that was waited for could not be put. Nothing is cached.
    Unavailable,
    /// Too many questions are open.
    Overloaded,
}

/// Whoever waited for an answer must find it alive, however short the idle timeout.
const READY_TTL_MIN: Duration = Duration::from_millis(20);

#[derive(Debug, Default)]
struct Known {
    /// The highest generation that an answer or event has told.
    generation: Generation,
    /// Whether the last change was to `suspending`.
    suspending: bool,
    /// The generation at which it was last put to sleep by more than idleness.
    put_to_sleep: Generation,
    /// An event told that it was deleted, and nothing since that it is there again.
    deleted: bool,
    slots: usize,
}

/// The gate of one gateway process. See the module for how it is driven.
#[derive(Debug)]
pub struct Gate {
    config: Config,
    slots: HashMap<Key, Slot>,
    by_env: HashMap<EnvId, Vec<Key>>,
    known: HashMap<EnvId, Known>,
    order: VecDeque<Key>,
    stirred: VecDeque<EnvId>,
    loads: usize,
    last_load: u64,
    asked: u64,
}

impl Gate {
    /// A gate that knows nothing.
    #[must_use]
    pub fn new(config: Config) -> Self {
        Self {
            config,
            slots: HashMap::new(),
            by_env: HashMap::new(),
            known: HashMap::new(),
            order: VecDeque::new(),
            stirred: VecDeque::new(),
            loads: 0,
            last_load: 0,
            asked: 0,
        }
    }

    /// A request whose core has no live entry asks what to do.
    pub fn handle_request(&mut self, key: &Key, now: Duration) -> Ask {
        if !self.slots.contains_key(key) {
            self.make_room(now);
            self.insert(key, now);
        }
        let full = self.loads >= self.config.loads_max;
        let pace = self.config.other_ttl;
        let Some(slot) = self.slots.get_mut(key) else { return Ask::Overloaded };
        if let Some(entry) = slot.entry.as_ref().filter(|entry| entry.is_live(now)) {
            return Ask::Answer(Arc::clone(entry));
        }
        if let Some(id) = slot.loading {
            return Ask::Wait(id);
        }
        if full {
            return Ask::Overloaded;
        }
        if slot.paced {
            slot.refill(now, pace);
            if slot.tokens == 0 {
                return Ask::Later(slot.refilled.saturating_add(pace));
            }
            slot.tokens -= 1;
        }
        self.last_load += 1;
        self.asked += 1;
        self.loads += 1;
        let id = LoadId(self.last_load);
        slot.loading = Some(id);
        slot.outdated = false;
        Ask::Load(Load { key: key.clone(), id })
    }

    /// One who waited for a question asks what came of it.
    pub fn handle_wait(&mut self, key: &Key, id: LoadId, now: Duration) -> Ask {
        match self.slots.get(key) {
            Some(slot) if slot.loading == Some(id) => Ask::Wait(id),
            Some(slot) if slot.failed.is_some_and(|failed| failed >= id) => Ask::Unavailable,
            Some(_) | None => self.handle_request(key, now),
        }
    }

    /// The control plane answered a question, or could not be asked (`None`). `idle_min` is the
    /// shortest idle timeout in force for the environment, `leases` the gateway's counters.
    ///
    /// An answer older than what is known meanwhile is dropped; whoever waited asks again.
    pub fn handle_answer(
        &mut self,
        load: Load,
        answer: Option<EnsureAnswer>,
        idle_min: Duration,
        leases: &Leases,
        now: Duration,
    ) {
        let Load { key, id } = load;
        self.loads = self.loads.saturating_sub(1);
        self.stir(key.env);
        let known = self.known.entry(key.env).or_default();
        let ttl = match answer.as_ref().map(|answer| answer.state) {
            Some(GateState::Ready) => self.config.ready_ttl.min(idle_min / 5).max(READY_TTL_MIN),
            Some(_) | None => self.config.other_ttl,
        };
        let Some(slot) = self.slots.get_mut(&key).filter(|slot| slot.loading == Some(id)) else {
            return;
        };
        slot.loading = None;
        slot.paced = true;
        let Some(answer) = answer else {
            slot.failed = Some(id);
            return;
        };
        let absent = matches!(answer.state, GateState::Gone | GateState::NotFound);
        if slot.outdated || (!absent && answer.generation < known.generation) {
            // The question was put before something that is known by now.
            return;
        }
        known.generation = known.generation.max(answer.generation);
        known.deleted &= absent;
        slot.failed = None;
        slot.paced = answer.state != GateState::Ready;
        let hold = leases.hold(key.env, &key.surface);
        let entry = Entry {
            answer,
            valid_until: now.saturating_add(ttl),
            dead: AtomicBool::new(false),
            hold,
        };
        if let Some(old) = slot.entry.replace(Arc::new(entry)) {
            old.kill();
        }
    }

    /// The control plane pushed an event. What it makes untrue is dead when this returns.
    pub fn handle_event(&mut self, event: &GateEvent) {
        match event {
            GateEvent::Changed { env, generation, phase } => {
                self.learn(*env, *generation);
                let suspending = *phase == Phase::Suspending;
                let mut restored = false;
                if let Some(known) = self.known.get_mut(env) {
                    known.suspending = suspending;
                    if *generation >= known.generation {
                        let deleted = *phase == Phase::Deleted;
                        restored = known.deleted && !deleted;
                        known.deleted = deleted;
                    }
                }
                if restored {
                    // "Gone" on a question that was put before is taken whatever its generation.
                    self.outdate(*env);
                }
                // A change of readiness may leave the generation as it is, so what was not ready
                // is asked for again either way.
                let news = *generation;
                self.kill(*env, |answer| {
                    answer.generation < news
                        || (answer.state != GateState::Ready && worth_asking(*phase, answer))
                });
                // Only the drain that follows tells whose wish it is: who waits must not ask, and
                // so wake it again, before that is known.
                if !suspending {
                    self.stir(*env);
                }
            }
            GateEvent::Drain { env, generation, forced } => {
                self.learn(*env, *generation);
                if let Some(known) = self.known.get_mut(env).filter(|known| known.suspending)
                    && *forced
                {
                    known.put_to_sleep = known.put_to_sleep.max(*generation);
                }
                self.kill(*env, |_| true);
                self.stir(*env);
            }
            GateEvent::RouteChanged { env } => {
                self.outdate(*env);
                self.kill(*env, |_| true);
                self.stir(*env);
            }
            GateEvent::SignedOut { user } => {
                let theirs = |key: &Key| key.principal.as_ref().is_some_and(|p| p.user == *user);
                for (_, slot) in self.slots.iter_mut().filter(|(key, _)| theirs(key)) {
                    slot.kill();
                }
            }
        }
    }

    /// Events were lost: nothing that is cached can be trusted.
    pub fn handle_lagged(&mut self) {
        self.slots.values_mut().for_each(Slot::kill);
        self.stirred.clear();
        self.stirred.extend(self.by_env.keys().copied());
    }

    /// A request to this sandbox failed: what says that it is ready is not believed any longer.
    pub fn handle_failure(&mut self, env: EnvId, sandbox: SandboxUid) {
        self.outdate(env);
        self.kill(env, |answer| answer.sandbox == Some(sandbox));
    }

    /// Whether somebody who got this answer waits in vain: the start that it waits for was stopped
    /// by a person, or by the platform's end. To ask again would be to wake it against that wish.
    #[must_use]
    pub fn was_put_to_sleep(&self, env: EnvId, since: &EnsureAnswer) -> bool {
        matches!(since.state, GateState::Starting | GateState::SurfaceStarting)
            && self.known.get(&env).is_some_and(|known| since.generation < known.put_to_sleep)
    }

    /// Whether an event told that this environment was deleted. False where nobody has asked for it
    /// lately.
    #[must_use]
    pub fn is_deleted(&self, env: EnvId) -> bool {
        self.known.get(&env).is_some_and(|known| known.deleted)
    }

    /// The next environment whose waiting requests should look again. `None`: no more.
    pub fn poll_stirred(&mut self) -> Option<EnvId> {
        self.stirred.pop_front()
    }

    /// How many questions were put in all.
    #[must_use]
    pub const fn asked(&self) -> u64 {
        self.asked
    }

    /// How many keys are kept.
    #[must_use]
    pub fn len(&self) -> usize {
        self.slots.len()
    }

    /// Whether no key is kept.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.slots.is_empty()
    }

    fn learn(&mut self, env: EnvId, generation: Generation) {
        // An environment that nobody asked for has nothing cached that could be stale.
        if let Some(known) = self.known.get_mut(&env) {
            known.generation = known.generation.max(generation);
        }
    }

    fn kill(&mut self, env: EnvId, dies: impl Fn(&EnsureAnswer) -> bool) {
        for key in self.by_env.get(&env).map(Vec::as_slice).unwrap_or_default() {
            let entry = self.slots.get(key).and_then(|slot| slot.entry.as_ref());
            if let Some(entry) = entry.filter(|entry| dies(&entry.answer)) {
                entry.kill();
            }
        }
    }

    /// What is asked for just now may be answered without knowing what has happened.
    fn outdate(&mut self, env: EnvId) {
        for key in self.by_env.get(&env).map(Vec::as_slice).unwrap_or_default() {
            if let Some(slot) = self.slots.get_mut(key) {
                slot.outdated = true;
            }
        }
    }

    fn stir(&mut self, env: EnvId) {
        if self.by_env.contains_key(&env) && self.stirred.back() != Some(&env) {
            self.stirred.push_back(env);
        }
    }

    fn insert(&mut self, key: &Key, now: Duration) {
        let slot = Slot {
            loading: None,
            outdated: false,
            entry: None,
            failed: None,
            paced: true,
            tokens: TOKENS,
            refilled: now,
        };
        self.slots.insert(key.clone(), slot);
        self.by_env.entry(key.env).or_default().push(key.clone());
        self.known.entry(key.env).or_default().slots += 1;
        self.order.push_back(key.clone());
    }

    /// Looks at the two longest known keys, forgets those that are of no more use, and at the
    /// bound forgets one that is. Keys with an open question stay.
    fn make_room(&mut self, now: Duration) {
        for _ in 0..2 {
            let Some(key) = self.order.pop_front() else { return };
            let idle = self.config.other_ttl.saturating_mul(u32::from(TOKENS));
            let spent = self.slots.get(&key).is_some_and(|slot| slot.is_spent(now, idle));
            if spent { self.forget(&key) } else { self.order.push_back(key) }
        }
        let mut tries = self.order.len();
        while self.slots.len() >= self.config.keys_max && tries > 0 {
            tries -= 1;
            let Some(key) = self.order.pop_front() else { return };
            if self.slots.get(&key).is_some_and(|slot| slot.loading.is_some()) {
                self.order.push_back(key);
            } else {
                self.forget(&key);
            }
        }
    }

    fn forget(&mut self, key: &Key) {
        let Some(slot) = self.slots.remove(key) else { return };
        if let Some(entry) = slot.entry {
            // A core may still hold it, and no event would reach it there.
            entry.kill();
        }
        if let Some(keys) = self.by_env.get_mut(&key.env) {
            keys.retain(|other| other != key);
            if keys.is_empty() {
                self.by_env.remove(&key.env);
            }
        }
        if let Some(known) = self.known.get_mut(&key.env) {
            known.slots -= 1;
            if known.slots == 0 {
                self.known.remove(&key.env);
            }
        }
    }
}

#[cfg(test)]
mod tests;
