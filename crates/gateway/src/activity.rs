//! Activity: when this gateway tells the control plane what it holds, and how it answers drains.
//!
//! Two machines without IO: [`Activity`] is the schedule of reports, [`Drains`] answers
//! [`GateEvent::Drain`]. A shell owns one of each, in one task:
//!
//! - it sleeps until [`Activity::poll_timeout`], or until the [`crate::leases::Bell`] rings;
//! - then polls [`Activity::poll_report`] until it says nothing, sends each report, and brings
//!   each result to [`Activity::handle_reported`];
//! - and polls [`Drains::poll_action`] until it says nothing.

use std::{
    collections::{BTreeMap, VecDeque},
    sync::Arc,
    time::Duration,
};

use wakeful_wire::{
    EnvId, Generation, HolderId, Phase, SurfaceName,
    gate::{ActivityReport, DrainAnswer, GateEvent, LeaseKind},
    time::millis,
};

use crate::leases::{Hold, KINDS, Leases};

type Line = (EnvId, SurfaceName, LeaseKind);
type Place = (EnvId, SurfaceName);

fn place(hold: &Hold) -> Place {
    (hold.env(), hold.surface().clone())
}

/// The schedule of reports. One aggregate per environment, surface and kind, each interval.
///
/// The first stream or socket reports at once, and so does the end of the last one; a second one
/// adds nothing. A request that ended reports a count of zero at the next tick. A report that did
/// not arrive is made again at the next tick, with what is true then.
///
/// A surface reports out of turn at most once in 200 ms, and only when its reports before have
/// arrived or failed, so that a zero never overtakes a one. What comes in between is told together
/// by the next.
#[derive(Debug)]
pub struct Activity {
    holder: HolderId,
    interval: Duration,
    next_tick: Duration,
    /// What the control plane was last told and did take.
    told: BTreeMap<Line, u32>,
    queue: VecDeque<ActivityReport>,
    /// The surfaces that have reported lately, or have reports on their way.
    paces: BTreeMap<Place, Pace>,
    /// What is to report out of turn once its pace allows.
    hurried: BTreeMap<Place, Arc<Hold>>,
}

/// The least time between two reports of a surface out of turn.
const HURRY_PACE: Duration = Duration::from_millis(200);

/// How soon a surface may report out of turn.
#[derive(Debug, Default)]
struct Pace {
    /// Reports that have been made, and of which nobody knows yet whether they arrived.
    on_their_way: usize,
    until: Duration,
}

impl Pace {
    fn binds(&self, now: Duration) -> bool {
        self.on_their_way > 0 || now < self.until
    }
}

impl Activity {
    /// A schedule that begins at `now`. `interval` is `WAKEFUL_PROXY_WS_KEEPALIVE_INTERVAL`.
    #[must_use]
    pub fn new(holder: HolderId, interval: Duration, now: Duration) -> Self {
        Self {
            holder,
            interval,
            next_tick: now.saturating_add(interval),
            told: BTreeMap::new(),
            queue: VecDeque::new(),
            paces: BTreeMap::new(),
            hurried: BTreeMap::new(),
        }
    }

    /// When to poll again, unless the bell rings or a report is settled before.
    #[must_use]
    pub fn poll_timeout(&self) -> Duration {
        let turn = |place: &Place| match self.paces.get(place) {
            Some(pace) if pace.on_their_way > 0 => None,
            Some(pace) => Some(pace.until),
            None => Some(Duration::ZERO),
        };
        self.hurried.keys().filter_map(turn).fold(self.next_tick, Duration::min)
    }

    /// The next report to send. `None`: no more until the timeout or the bell.
    pub fn poll_report(&mut self, now: Duration, leases: &Leases) -> Option<ActivityReport> {
        if self.queue.is_empty() {
            let due = now >= self.next_tick;
            if due {
                // Ticks that were slept through are not made up for.
                self.next_tick = now.saturating_add(self.interval);
            }
            let hurried = leases.take_hurried();
            self.hurried.extend(hurried.into_iter().map(|hold| (place(&hold), hold)));
            if due {
                // The tick says it all, except what depends on reports that are on their way.
                let paces = &self.paces;
                self.hurried
                    .retain(|place, _| paces.get(place).is_some_and(|pace| pace.on_their_way > 0));
                for hold in leases.all() {
                    self.report(&hold);
                }
            }
            self.hurry(now);
            if due {
                let told = &self.told;
                leases.sweep(|hold| {
                    KINDS
                        .iter()
                        .any(|kind| told.contains_key(&(hold.env(), hold.surface().clone(), *kind)))
                });
            }
        }
        self.queue.pop_front()
    }

    /// Reports what may be reported out of turn, and forgets the paces that bind no more.
    fn hurry(&mut self, now: Duration) {
        self.paces.retain(|_, pace| pace.binds(now));
        let paces = &self.paces;
        let mut ready = Vec::new();
        self.hurried.retain(|place, hold| {
            let waits = paces.contains_key(place);
            if !waits {
                ready.push(Arc::clone(hold));
            }
            waits
        });
        for hold in ready {
            let until = now.saturating_add(HURRY_PACE);
            self.paces.insert(place(&hold), Pace { on_their_way: 0, until });
            self.report(&hold);
        }
    }

    fn report(&mut self, hold: &Arc<Hold>) {
        let line = |kind| (hold.env(), hold.surface().clone(), kind);
        let touched = hold.take_touched();
        let open = KINDS.map(|kind| (kind, hold.count(kind)));
        let mut said = false;
        for (kind, count) in open {
            if count == 0 && !self.told.contains_key(&line(kind)) {
                continue;
            }
            self.push(hold, kind, count, touched || count > 0);
            said = true;
        }
        if touched && !said {
            // Everything that was admitted has ended already.
            self.push(hold, LeaseKind::Request, 0, true);
        }
    }

    fn push(&mut self, hold: &Hold, kind: LeaseKind, count: u32, touch: bool) {
        self.paces.entry(place(hold)).or_default().on_their_way += 1;
        self.queue.push_back(ActivityReport {
            env: hold.env(),
            surface: hold.surface().clone(),
            holder: self.holder,
            kind,
            count,
            // A holder that falls silent loses its leases after two and a half intervals.
            expires_ms: millis(self.interval.saturating_mul(5) / 2),
            touch,
        });
    }

    /// Whether a report did arrive. One that did not is logged by the shell and costs nothing but
    /// the wait for the next tick.
    pub fn handle_reported(&mut self, report: &ActivityReport, arrived: bool, leases: &Leases) {
        if let Some(pace) = self.paces.get_mut(&(report.env, report.surface.clone())) {
            pace.on_their_way = pace.on_their_way.saturating_sub(1);
        }
        let line = (report.env, report.surface.clone(), report.kind);
        if !arrived {
            if report.touch {
                leases.hold(report.env, &report.surface).touch();
            }
            if report.count > 0 {
                // Its end must be told even if nobody knows whether its beginning was.
                self.told.insert(line, report.count);
            }
            return;
        }
        if report.count == 0 {
            self.told.remove(&line);
        } else {
            self.told.insert(line, report.count);
        }
    }
}

/// What a shell is to do about a drain.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DrainAction {
    /// Send this answer; again until it is taken.
    Answer(DrainAnswer),
    /// Close the environment's sockets with 4503 and end its streams, unless the surface has said
    /// its own close before. `all`: those of every surface. Otherwise only those that hold
    /// nothing: the environment server's own.
    Close {
        /// The environment.
        env: EnvId,
        /// Whether sockets that hold the environment are closed as well.
        all: bool,
    },
}

/// Answers drains. The cached entries of the environment must be dead before a drain is handled:
/// give each event to [`crate::gate::Gate::handle_event`] first. Why that suffices is written at
/// [`crate::leases`].
#[derive(Debug)]
pub struct Drains {
    holder: HolderId,
    /// Forced drains that wait for the last lease to end, by environment.
    waiting: BTreeMap<EnvId, Generation>,
    actions: VecDeque<DrainAction>,
}

impl Drains {
    /// None is waited for.
    #[must_use]
    pub const fn new(holder: HolderId) -> Self {
        Self { holder, waiting: BTreeMap::new(), actions: VecDeque::new() }
    }

    /// The control plane pushed an event.
    ///
    /// An idle suspend is refused while anything is open, and also while something was admitted
    /// since the last report: the clock does not know of it yet. It closes nothing, since it may
    /// still be given up: sockets that hold nothing are closed by the environment server when it
    /// stops, and what is left of them once the environment sleeps, from here. A forced one closes
    /// what is open, says "not drained" for now, and says "drained" when the last lease has ended.
    pub fn handle_event(&mut self, event: &GateEvent, leases: &Leases) {
        match event {
            GateEvent::Drain { env, generation, forced: false } => {
                let holds = leases.of(*env);
                // Counts first: what ends in between leaves a touch behind.
                let open = holds.iter().any(|hold| hold.in_flight() > 0);
                let unreported = holds.iter().any(|hold| hold.is_touched());
                let drained = !open && !unreported;
                for hold in holds.iter().filter(|hold| hold.is_touched()) {
                    hold.hurry();
                }
                self.answer(*env, *generation, drained);
            }
            GateEvent::Drain { env, generation, forced: true } => {
                self.actions.push_back(DrainAction::Close { env: *env, all: true });
                let holds = leases.of(*env);
                for hold in &holds {
                    hold.close();
                }
                let drained = holds.iter().all(|hold| hold.in_flight() == 0);
                self.answer(*env, *generation, drained);
                if drained {
                    self.reopen(*env, leases);
                } else {
                    self.waiting.insert(*env, *generation);
                }
            }
            GateEvent::Changed { env, generation, phase } => {
                if sleeps(*phase) {
                    self.actions.push_back(DrainAction::Close { env: *env, all: false });
                }
                // The record moved on: nobody waits for that answer any more.
                if self.waiting.get(env).is_some_and(|waited| waited < generation) {
                    self.waiting.remove(env);
                    self.reopen(*env, leases);
                }
            }
            GateEvent::SignedOut { .. } | GateEvent::RouteChanged { .. } => {}
        }
    }

    /// The next thing to do. `None`: no more until the bell rings.
    pub fn poll_action(&mut self, leases: &Leases) -> Option<DrainAction> {
        if self.actions.is_empty() {
            let empty = |env: &EnvId| leases.in_flight(*env) == 0;
            let done: Vec<_> =
                self.waiting.iter().filter(|(env, _)| empty(env)).map(|(e, g)| (*e, *g)).collect();
            for (env, generation) in done {
                self.waiting.remove(&env);
                self.reopen(env, leases);
                self.answer(env, generation, true);
            }
        }
        self.actions.pop_front()
    }

    fn answer(&mut self, env: EnvId, generation: Generation, drained: bool) {
        let answer = DrainAnswer { holder: self.holder, env, generation, drained };
        self.actions.push_back(DrainAction::Answer(answer));
    }

    fn reopen(&self, env: EnvId, leases: &Leases) {
        leases.of(env).iter().for_each(|hold| hold.reopen());
    }
}

/// Whether nobody answers an environment's sockets in this phase. Of a frozen sandbox they are
/// still open, and nothing would ever come of them.
const fn sleeps(phase: Phase) -> bool {
    match phase {
        Phase::Suspended | Phase::Frozen | Phase::Disabled | Phase::Deleted => true,
        Phase::Starting | Phase::Ready | Phase::Suspending | Phase::Failed | Phase::Publishing => {
            false
        }
    }
}

#[cfg(test)]
mod tests;
