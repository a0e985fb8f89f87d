//! Leases: what this gateway has open, counted per environment, surface and kind.
//!
//! A lease is taken when a request is admitted and given back when its last byte is through; drop
//! gives it back on every path, also when a task is cancelled. The counts are what the activity
//! reports of [`crate::activity`] send, and what a drain asks about.
//!
//! # The race of an admission from the cache with a drain
//!
//! A suspend is decided while cores admit requests from cached verdicts without a lock
//! (`cases.md`, C16). Both sides write first and look afterwards, in sequentially consistent
//! order:
//!
//! | admission ([`crate::gate::Entry::admit`]) | drain ([`crate::activity::Drains`]) |
//! |---|---|
//! | 1. count the lease | 1. mark every cached entry of the environment dead |
//! | 2. look whether the entry is dead | 2. look at the counts |
//!
//! In the one order that all four steps have, either the lease was counted before the drain
//! looked, so that the answer is "not drained" and the suspend is given up; or the entry was dead
//! before the admission looked, so that the lease is given back and the request asks the control
//! plane, which holds it and wakes the environment again. Both may happen at once, which costs a
//! suspend that is tried again later. No order admits a request that the drain does not see.
//!
//! The argument needs every entry that any core can still hold to be reachable for the drain:
//! whatever leaves the gate's map is marked dead as it leaves. It also needs every counter to stay
//! reachable while somebody could count on it: [`Leases::sweep`] forgets only what nobody else
//! holds.

use std::{
    collections::HashMap,
    fmt,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU32, Ordering::SeqCst},
    },
};

use parking_lot::Mutex;
use wakeful_wire::{EnvId, SurfaceName, gate::LeaseKind};

/// The kinds of lease that a gateway holds, in the order of its counters.
pub const KINDS: [LeaseKind; 4] =
    [LeaseKind::Request, LeaseKind::Stream, LeaseKind::Socket, LeaseKind::Upload];

const fn slot(kind: LeaseKind) -> usize {
    match kind {
        // A turn is counted by `envd`; here it could only be a request.
        LeaseKind::Request | LeaseKind::Turn => 0,
        LeaseKind::Stream => 1,
        LeaseKind::Socket => 2,
        LeaseKind::Upload => 3,
    }
}

/// Rung when the tasks that report and drain should look before their next tick. The shell wakes
/// them by it (a `Notify`); it may ring for nothing, and must not block.
pub trait Bell: Send + Sync + 'static {
    /// Rings.
    fn ring(&self);
}

/// A bell that nobody hears, for tests and for single-threaded drivers that look anyway.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoBell;

impl Bell for NoBell {
    fn ring(&self) {}
}

/// What is open of one surface of one environment.
pub struct Hold {
    env: EnvId,
    surface: SurfaceName,
    /// Open leases by [`slot`].
    counts: [AtomicU32; 4],
    /// Open quiet leases: a drain waits for them, and no report tells of them.
    quiet: AtomicU32,
    /// Something was admitted or ended since the last report.
    touched: AtomicBool,
    /// It stands in `hurried`.
    urgent: AtomicBool,
    hurried: Arc<Hurried>,
    /// A forced drain waits until nothing is open.
    closing: AtomicBool,
    /// Sockets of the environment server's own surface hold nothing, or every connected client
    /// would keep every environment awake (`design.md`, "Clocks").
    sockets_weigh: bool,
    bell: Arc<dyn Bell>,
}

/// Counters whose next report should not wait for the tick. Each stands there once at most.
type Hurried = Mutex<Vec<Arc<Hold>>>;

impl fmt::Debug for Hold {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Hold")
            .field("env", &self.env)
            .field("surface", &self.surface)
            .field("counts", &self.counts)
            .finish_non_exhaustive()
    }
}

impl Hold {
    /// The environment.
    #[must_use]
    pub const fn env(&self) -> EnvId {
        self.env
    }

    /// The surface.
    #[must_use]
    pub const fn surface(&self) -> &SurfaceName {
        &self.surface
    }

    /// How many leases of a kind are open.
    #[must_use]
    pub fn count(&self, kind: LeaseKind) -> u32 {
        self.counts.get(slot(kind)).map_or(0, |count| count.load(SeqCst))
    }

    /// How many leases of any kind are open.
    #[must_use]
    pub fn in_flight(&self) -> u32 {
        let counts = self.counts.iter().chain([&self.quiet]);
        counts.map(|count| count.load(SeqCst)).fold(0, u32::saturating_add)
    }

    /// Whether anything was admitted or ended since this was last asked; asking clears it.
    #[must_use]
    pub fn take_touched(&self) -> bool {
        self.touched.load(SeqCst) && self.touched.swap(false, SeqCst)
    }

    /// Says again that something was admitted: a report of it did not arrive.
    pub fn touch(&self) {
        // Read first: in the common case this line stays shared among the cores.
        if !self.touched.load(SeqCst) {
            self.touched.store(true, SeqCst);
        }
    }

    /// Whether anything was admitted or ended since the last report.
    #[must_use]
    pub fn is_touched(&self) -> bool {
        self.touched.load(SeqCst)
    }

    /// Makes the next report due at once.
    pub(crate) fn hurry(self: &Arc<Self>) {
        if !self.urgent.swap(true, SeqCst) {
            self.hurried.lock().push(Arc::clone(self));
        }
        self.bell.ring();
    }

    /// From now on the bell rings when the last lease ends.
    pub(crate) fn close(&self) {
        self.closing.store(true, SeqCst);
    }

    pub(crate) fn reopen(&self) {
        self.closing.store(false, SeqCst);
    }

    fn weighs(&self, kind: LeaseKind) -> bool {
        self.sockets_weigh || kind != LeaseKind::Socket
    }

    /// Counts one more. True for the first stream or socket, whose report should not wait.
    fn add(&self, kind: LeaseKind) -> bool {
        let Some(count) = self.counts.get(slot(kind)) else { return false };
        let before = count.fetch_add(1, SeqCst);
        self.touch();
        before == 0 && matches!(kind, LeaseKind::Socket | LeaseKind::Stream)
    }

    /// Counts one less. True for the last stream or socket, whose report should not wait either.
    fn remove(&self, kind: LeaseKind) -> bool {
        // The idle time starts at the end of what was open, so an end is a touch as well; it must
        // stand before the count falls, or a report in between would miss it.
        self.touch();
        let Some(count) = self.counts.get(slot(kind)) else { return false };
        let before = count.fetch_sub(1, SeqCst);
        if self.closing.load(SeqCst) && self.in_flight() == 0 {
            self.bell.ring();
        }
        before == 1 && matches!(kind, LeaseKind::Socket | LeaseKind::Stream)
    }

    fn remove_quiet(&self) {
        self.quiet.fetch_sub(1, SeqCst);
        if self.closing.load(SeqCst) && self.in_flight() == 0 {
            self.bell.ring();
        }
    }
}

/// How an open lease counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Counted {
    /// It does not, or does not any more.
    No,
    /// For drains, reports and the clock.
    Told,
    /// For drains alone.
    Quiet,
}

/// One thing that is open. Giving it back happens once, by [`Lease::release`] or by drop.
pub struct Lease {
    hold: Arc<Hold>,
    kind: LeaseKind,
    counted: Counted,
}

impl fmt::Debug for Lease {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Lease")
            .field("env", &self.hold.env)
            .field("surface", &self.hold.surface)
            .field("kind", &self.kind)
            .field("counted", &self.counted)
            .finish()
    }
}

impl Lease {
    /// Counts one more of a kind. Ask [`crate::gate::Entry::admit`] for the lease of an admission:
    /// a lease that is taken after the verdict was read does not stop a drain.
    #[must_use]
    pub fn take(hold: &Arc<Hold>, kind: LeaseKind) -> Self {
        let counted = hold.weighs(kind);
        if counted && hold.add(kind) {
            hold.hurry();
        }
        let counted = if counted { Counted::Told } else { Counted::No };
        Self { hold: Arc::clone(hold), kind, counted }
    }

    /// Counts a request that a drain waits for and that touches no clock: a read of the
    /// environment server's own surface by somebody who did not mean to use the environment. A
    /// client that looks again and again would otherwise keep it awake for ever.
    #[must_use]
    pub fn take_quiet(hold: &Arc<Hold>) -> Self {
        hold.quiet.fetch_add(1, SeqCst);
        Self { hold: Arc::clone(hold), kind: LeaseKind::Request, counted: Counted::Quiet }
    }

    /// What is open.
    #[must_use]
    pub const fn kind(&self) -> LeaseKind {
        self.kind
    }

    /// What it counts on.
    #[must_use]
    pub const fn hold(&self) -> &Arc<Hold> {
        &self.hold
    }

    /// A request turned out to be a stream, or became a socket. The new kind is counted before the
    /// old one is given back, so that the sum never falls to zero in between; the report that is
    /// hurried comes after both, or it would tell of a request that is none any more. A quiet
    /// lease stays quiet. Does nothing to a lease that was released.
    pub fn become_kind(&mut self, kind: LeaseKind) {
        if self.counted == Counted::No || kind == self.kind {
            return;
        }
        if self.counted == Counted::Quiet {
            self.kind = kind;
            if !self.hold.weighs(kind) {
                self.release();
            }
            return;
        }
        let counted = self.hold.weighs(kind);
        let first = counted && self.hold.add(kind);
        let last = self.hold.remove(self.kind);
        if first || last {
            self.hold.hurry();
        }
        self.kind = kind;
        self.counted = if counted { Counted::Told } else { Counted::No };
    }

    /// Says that data above the surface's floor went through: the next report touches the clock.
    pub fn touch(&self) {
        self.hold.touch();
    }

    /// Gives it back. Again has no effect.
    pub fn release(&mut self) {
        match std::mem::replace(&mut self.counted, Counted::No) {
            Counted::No => {}
            Counted::Told => {
                if self.hold.remove(self.kind) {
                    self.hold.hurry();
                }
            }
            Counted::Quiet => self.hold.remove_quiet(),
        }
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        self.release();
    }
}

/// All that is open in this gateway. One per process; its lock is taken when an entry of the gate
/// is made, by reports and by drains, never by an admission.
pub struct Leases {
    holds: Mutex<HashMap<EnvId, Vec<Arc<Hold>>>>,
    hurried: Arc<Hurried>,
    bell: Arc<dyn Bell>,
}

impl fmt::Debug for Leases {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Leases").finish_non_exhaustive()
    }
}

impl Leases {
    /// None open. `bell` is rung when a report or an answer to a drain should not wait.
    #[must_use]
    pub fn new(bell: Arc<dyn Bell>) -> Self {
        Self { holds: Mutex::default(), hurried: Arc::default(), bell }
    }

    /// The counters of a surface of an environment, made if there are none. There are as many as
    /// surfaces were visited since the last sweep.
    #[must_use]
    pub fn hold(&self, env: EnvId, surface: &SurfaceName) -> Arc<Hold> {
        let mut holds = self.holds.lock();
        let of_env = holds.entry(env).or_default();
        if let Some(hold) = of_env.iter().find(|hold| hold.surface == *surface) {
            return Arc::clone(hold);
        }
        let hold = Arc::new(Hold {
            env,
            surface: surface.clone(),
            counts: Default::default(),
            quiet: AtomicU32::new(0),
            touched: AtomicBool::new(false),
            urgent: AtomicBool::new(false),
            hurried: Arc::clone(&self.hurried),
            closing: AtomicBool::new(false),
            sockets_weigh: surface.as_str() != "host",
            bell: Arc::clone(&self.bell),
        });
        of_env.push(Arc::clone(&hold));
        hold
    }

    /// How many leases of an environment are open, over all its surfaces.
    #[must_use]
    pub fn in_flight(&self, env: EnvId) -> u32 {
        let holds = self.holds.lock();
        let of_env = holds.get(&env).map(Vec::as_slice).unwrap_or_default();
        of_env.iter().map(|hold| hold.in_flight()).fold(0, u32::saturating_add)
    }

    /// The counters of one environment.
    #[must_use]
    pub fn of(&self, env: EnvId) -> Vec<Arc<Hold>> {
        self.holds.lock().get(&env).cloned().unwrap_or_default()
    }

    /// All counters.
    #[must_use]
    pub fn all(&self) -> Vec<Arc<Hold>> {
        self.holds.lock().values().flatten().map(Arc::clone).collect()
    }

    /// The counters that were hurried since this was last asked.
    pub(crate) fn take_hurried(&self) -> Vec<Arc<Hold>> {
        let hurried = std::mem::take(&mut *self.hurried.lock());
        for hold in &hurried {
            hold.urgent.store(false, SeqCst);
        }
        hurried
    }

    /// How many leases of each kind are open in all, for the metric `wakeful_leases`.
    #[must_use]
    pub fn totals(&self) -> [(LeaseKind, u64); 4] {
        let all = self.all();
        KINDS.map(|kind| (kind, all.iter().map(|hold| u64::from(hold.count(kind))).sum()))
    }

    /// Forgets counters that nobody holds any more and that have nothing to report. A counter that
    /// a cached entry or a lease still refers to stays, or a later admission would count where no
    /// drain looks.
    pub fn sweep(&self, has_more_to_say: impl Fn(&Hold) -> bool) {
        let mut holds = self.holds.lock();
        holds.retain(|_, of_env| {
            of_env.retain(|hold| {
                Arc::strong_count(hold) > 1 || hold.touched.load(SeqCst) || has_more_to_say(hold)
            });
            !of_env.is_empty()
        });
    }
}

#[cfg(test)]
mod tests;
