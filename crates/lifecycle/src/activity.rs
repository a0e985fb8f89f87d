//! The two activity clocks and the leases: what keeps an environment awake.
//!
//! # The race of suspend and touch
//!
//! A touch raises [`ActivitySeq`] in the same transaction that reads the record's phase. A suspend
//! is committed in two steps, and each names the generation *and* the sequence that it was planned
//! from:
//!
//! 1. *Draining* is committed. From here on [`verdict`](crate::verdict()) answers "asleep", so a
//!    gateway that asks is not admitted; one that asks with intent aborts the drain. A touch before
//!    this commit makes it lose (the sequence moved); one after it sees the phase.
//! 2. Every gateway is told. It first kills its cached verdicts and then answers whether anything
//!    of its own is in flight. A request that was admitted from a cache just before is in flight,
//!    so the answer is "busy" and the suspend is given up; one that comes after must ask.
//!    The sandbox is asked as well, as one holder more: only it knows of the turns of its agents,
//!    since a client's socket at its host holds nothing. It counts the turns that run and the
//!    commands that are just being carried out; from then on, for a limited time, commands wait.
//! 3. Only when all have answered "drained", *stopping* is committed, again on the sequence: a
//!    touch, an upload or a lease that was reported meanwhile makes it lose.
//!
//! So in every interleaving either the request is counted before the point of no return, or it asks
//! after it and is held through one more wake. It is never cut. The simulation in the crate `sim`
//! runs tens of thousands of these interleavings.
//!
//! A command at the host likewise: either its turn was counted and the suspend is given up, or it
//! waits. When the stop comes, what waits is refused as not taken, and its client sends it again
//! through one more wake; when the suspend is given up, it goes on. The hold lasts until gateways
//! are waited for no longer, and some seconds more for the commit and the first word of the stop;
//! whoever plans relies on the answer only up to there, and a sandbox that gives none is busy. What
//! remains is a platform that ends between the commit of *stopping* and its first word to the
//! sandbox, and comes back after the hold: a turn that began meanwhile is interrupted by the stop,
//! and its prompt is in the log.
//!
//! # A lost clock is not an idle clock
//!
//! Clocks may live in a store that can lose them (W2). [`Clock::Lost`] is rebuilt from the durable
//! last activity and never read as run out.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use wakeful_wire::{ActivitySeq, ClockKind, HolderId, SurfaceName, Timestamp, gate::LeaseKind};

use crate::Policy;

/// One activity clock.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Clock {
    /// Never touched: this kind of activity has not happened.
    #[default]
    Never,
    /// Last touched then.
    At(Timestamp),
    /// The store lost it. Rebuilt from the last activity of any kind.
    Lost,
}

/// What keeps an environment awake.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Clocks {
    /// Fed by every surface but the app, and by uploads.
    pub agent: Clock,
    /// Fed by visits of the app.
    pub app: Clock,
    /// A person asked that it stays awake until then.
    pub extended_until: Option<Timestamp>,
    /// The durable moment of the last activity of any kind.
    pub last_activity: Timestamp,
    /// Counts touches and lease reports.
    pub seq: ActivitySeq,
    /// What is held, by whom.
    pub leases: Vec<Lease>,
}

/// Something open that holds an environment awake.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Lease {
    /// Who counts it.
    pub holder: HolderId,
    /// The surface.
    pub surface: SurfaceName,
    /// What is open.
    pub kind: LeaseKind,
    /// How many.
    pub count: u32,
    /// Since when there has been at least one.
    pub since: Timestamp,
    /// When it lapses unless it is reported again: a holder that falls silent loses its leases.
    pub expires_at: Timestamp,
}

impl Clocks {
    /// When this clock runs out. A moment in the future of `now` (a wall clock that was set back)
    /// counts as now, so no clock ever holds for longer than its idle timeout.
    #[must_use]
    pub fn expires_at(&self, kind: ClockKind, policy: &Policy, now: Timestamp) -> Timestamp {
        let clock = match kind {
            ClockKind::Agent => self.agent,
            ClockKind::App => self.app,
        };
        match clock {
            Clock::Never => Timestamp(0),
            Clock::At(touched) => touched.min(now).after(policy.idle(kind)),
            Clock::Lost => self.last_activity.min(now).after(policy.idle(kind)),
        }
    }

    /// How long this clock still runs.
    #[must_use]
    pub fn runs_for(&self, kind: ClockKind, policy: &Policy, now: Timestamp) -> Duration {
        now.until(self.expires_at(kind, policy, now))
    }

    /// The leases in force.
    pub fn held(&self, now: Timestamp) -> impl Iterator<Item = &Lease> {
        self.leases.iter().filter(move |lease| lease.count > 0 && lease.expires_at > now)
    }

    /// When the environment may be suspended if nothing more happens: when both clocks and any
    /// extension have run out.
    #[must_use]
    pub fn idle_at(&self, policy: &Policy, now: Timestamp) -> Timestamp {
        self.expires_at(ClockKind::Agent, policy, now)
            .max(self.expires_at(ClockKind::App, policy, now))
            .max(self.extended_until.unwrap_or_default())
    }

    /// Whether nothing keeps it awake: the only condition under which idleness suspends.
    #[must_use]
    pub fn is_idle(&self, policy: &Policy, now: Timestamp) -> bool {
        self.held(now).next().is_none() && self.idle_at(policy, now) <= now
    }

    /// When to look again whether it is idle: when the clocks run out, or when the last lease would
    /// lapse, whichever is later.
    #[must_use]
    pub fn look_again_at(&self, policy: &Policy, now: Timestamp) -> Timestamp {
        let lapse = self.held(now).map(|lease| lease.expires_at).max().unwrap_or_default();
        self.idle_at(policy, now).max(lapse)
    }

    /// Touches a clock. The sequence moves, so that a suspend planned before loses.
    pub fn touch(&mut self, kind: ClockKind, now: Timestamp) {
        match kind {
            ClockKind::Agent => self.agent = Clock::At(now),
            ClockKind::App => self.app = Clock::At(now),
        }
        self.last_activity = self.last_activity.max(now);
        self.seq = self.seq.next();
    }

    /// Keeps it awake until `until` at least. Never shortens.
    pub fn extend(&mut self, until: Timestamp) {
        self.extended_until = Some(self.extended_until.map_or(until, |old| old.max(until)));
        self.seq = self.seq.next();
    }

    /// Takes a holder's report of one kind of thing on one surface. A count of 0 ends the lease.
    pub fn report(&mut self, lease: Lease, now: Timestamp) {
        self.leases.retain(|old| old.expires_at > now);
        let same = |old: &Lease| {
            old.holder == lease.holder && old.surface == lease.surface && old.kind == lease.kind
        };
        let since = self.leases.iter().find(|old| same(old)).map_or(lease.since, |old| old.since);
        self.leases.retain(|old| !same(old));
        if lease.count > 0 {
            self.leases.push(Lease { since, ..lease });
        }
        self.seq = self.seq.next();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const POLICY_NOW: Timestamp = Timestamp(100_000_000);

    fn policy() -> Policy {
        Policy::default()
    }

    #[test]
    fn it_is_idle_only_when_both_clocks_have_run_out() {
        let p = policy();
        let mut clocks = Clocks::default();
        clocks.touch(ClockKind::App, POLICY_NOW);
        clocks.touch(ClockKind::Agent, POLICY_NOW);
        let app_out = POLICY_NOW.after(p.idle_app);
        assert!(!clocks.is_idle(&p, app_out), "the agent clock still runs");
        let both_out = POLICY_NOW.after(p.idle_agent);
        assert!(!clocks.is_idle(&p, Timestamp(both_out.0 - 1)));
        assert!(clocks.is_idle(&p, both_out));
    }

    #[test]
    fn app_visits_alone_leave_the_agent_clock_alone() {
        let p = policy();
        let mut clocks = Clocks::default();
        clocks.touch(ClockKind::App, POLICY_NOW);
        assert!(clocks.is_idle(&p, POLICY_NOW.after(p.idle_app)));
    }

    #[test]
    fn a_lost_clock_is_rebuilt_from_the_last_activity_and_not_idle() {
        let p = policy();
        let clocks = Clocks {
            agent: Clock::Lost,
            app: Clock::Lost,
            last_activity: POLICY_NOW,
            ..Clocks::default()
        };
        assert!(!clocks.is_idle(&p, POLICY_NOW.after(Duration::from_secs(60))));
        assert!(clocks.is_idle(&p, POLICY_NOW.after(p.idle_agent)));
    }

    #[test]
    fn a_clock_set_in_the_future_holds_no_longer_than_its_idle_timeout() {
        let p = policy();
        let hour = Duration::from_secs(3600);
        let mut clocks = Clocks::default();
        clocks.touch(ClockKind::Agent, POLICY_NOW.after(hour));
        assert_eq!(clocks.idle_at(&p, POLICY_NOW), POLICY_NOW.after(p.idle_agent));
    }

    #[test]
    fn a_lease_holds_until_it_lapses_and_the_same_holder_reports_once() {
        let p = policy();
        let lease = |count| Lease {
            holder: "0199f0a0-7b5c-7c3e-9d2f-6a1b2c3d4e5f".parse().unwrap(),
            surface: SurfaceName::app(),
            kind: LeaseKind::Socket,
            count,
            since: POLICY_NOW,
            expires_at: POLICY_NOW.after(Duration::from_secs(150)),
        };
        let mut clocks = Clocks::default();
        clocks.report(lease(1), POLICY_NOW);
        clocks.report(Lease { since: Timestamp(POLICY_NOW.0 + 5), ..lease(3) }, POLICY_NOW);
        assert_eq!(clocks.leases.len(), 1);
        assert_eq!(clocks.leases[0].since, POLICY_NOW, "held since the first");
        assert!(!clocks.is_idle(&p, POLICY_NOW));
        assert!(clocks.is_idle(&p, POLICY_NOW.after(Duration::from_secs(150))), "lapsed");
        clocks.report(lease(0), POLICY_NOW);
        assert!(clocks.is_idle(&p, POLICY_NOW), "ended");
        assert_eq!(clocks.seq, ActivitySeq(3));
    }
}
