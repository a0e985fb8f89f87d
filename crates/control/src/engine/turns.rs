//! What a sandbox's own host says of its use, as leases and touches.
//!
//! The turns of its agents are a lease of the sandbox, as what is open at a gateway is one of that
//! gateway: on the surface `host`, of the kind `turn`, its holder the sandbox's uid. It is reported
//! when the number changes and again each keep-alive interval, by the same way as a gateway's. Each
//! report touches the agent clock, the one that ends the lease too, so a whole idle timeout follows
//! the end of a turn. Somebody's use of the host without a turn touches that clock and no more.
//!
//! It is level-triggered: what is stored is compared with what is seen, whoever saw it first. A
//! platform that starts again so finds the turns of what it adopts, and ends the leases of turns and
//! sandboxes that ended meanwhile. Only what is known of use stands in memory; after a restart the
//! first sight of it touches the clock, since it is not known how old it is.

use std::{
    collections::{BTreeSet, HashMap},
    sync::Arc,
};

use tokio::{sync::Notify, time::MissedTickBehavior};
use wakeful_lifecycle::{
    Lease, Policy, Seen,
    port::{Loaded, Touch},
};
use wakeful_wire::{
    ClockKind, EnvId, HolderId, SandboxUid, SurfaceName, Timestamp,
    gate::{ActivityReport, LeaseKind},
    time::millis,
};

use super::{Engine, EngineError, drain::holder_of};

/// What is to be looked at, and what is known. At most one entry of each for an environment.
#[derive(Debug, Default)]
pub(crate) struct Turns {
    /// Environments where what is stored and what is seen may differ.
    stirred: BTreeSet<EnvId>,
    /// Environments that run turns: reported again each interval.
    running: BTreeSet<EnvId>,
    /// How much use of each environment's sandbox has reached its clock.
    used: HashMap<EnvId, (SandboxUid, u64)>,
    wake: Arc<Notify>,
}

impl Turns {
    fn stir(&mut self, env: EnvId) {
        self.stirred.insert(env);
        self.wake.notify_one();
    }

    fn forget(&mut self, env: EnvId) {
        self.running.remove(&env);
        self.used.remove(&env);
    }
}

/// What there is to do about one environment.
#[derive(Debug, Default, PartialEq, Eq)]
struct Due {
    /// Former sandboxes that still hold leases.
    gone: BTreeSet<HolderId>,
    /// The sandbox and the number of its turns, to be reported.
    report: Option<(SandboxUid, u32)>,
    /// The sandbox and how much use of it was seen, of which the clock does not know yet.
    used: Option<(SandboxUid, u64)>,
}

impl Due {
    fn is_nothing(&self) -> bool {
        self.gone.is_empty() && self.report.is_none() && self.used.is_none()
    }
}

/// Compares what is stored with what is seen. `used` is what is known of the sandbox's use.
fn due(
    loaded: &Loaded,
    seen: &Seen,
    used: Option<(SandboxUid, u64)>,
    policy: &Policy,
    now: Timestamp,
) -> Due {
    let sandbox = loaded.record.sandbox.as_ref().map(|sandbox| sandbox.uid);
    let ours = sandbox.map(holder_of);
    let host = SurfaceName::host();
    let is_turn = |lease: &&Lease| lease.surface == host && lease.kind == LeaseKind::Turn;
    let (own, others): (Vec<_>, Vec<_>) =
        loaded.clocks.leases.iter().filter(is_turn).partition(|lease| Some(lease.holder) == ours);
    let gone = others.into_iter().map(|lease| lease.holder).collect();
    let mut due = Due { gone, ..Due::default() };
    // A doubtful look changes nothing, and an absence is the plan's to take in first.
    let (Some(uid), Seen::Present(present)) = (sandbox, seen) else { return due };
    let turns = present.host.turns;
    let stands = own.first().map_or(turns == 0, |lease| {
        let fresh = now.until(lease.expires_at) > policy.keepalive_interval * 2;
        turns > 0 && turns == lease.count && fresh
    });
    due.report = (!stands).then_some((uid, turns));
    let known = used.filter(|(known, _)| *known == uid).map_or(0, |(_, activity)| activity);
    let activity = present.host.activity;
    due.used = (activity > known).then_some((uid, activity));
    due
}

impl Engine {
    /// A sandbox was looked at: whatever that says of its host's use is reported soon.
    pub(super) fn notice_turns(&self, loaded: &Loaded, seen: &Seen) {
        let mut turns = self.inner.turns.lock();
        let env = loaded.record.id;
        let used = turns.used.get(&env).copied();
        if !due(loaded, seen, used, self.policy(), self.now()).is_nothing() {
            turns.stir(env);
        }
    }

    /// An environment's sandbox is another now, or none: the former one holds nothing any more.
    pub(super) fn sandbox_changed(&self, env: EnvId) {
        self.inner.turns.lock().stir(env);
    }

    /// Reports what was noticed, at once, and what still runs each keep-alive interval.
    pub(super) async fn report_turns(&self) {
        let wake = Arc::clone(&self.inner.turns.lock().wake);
        let mut interval = tokio::time::interval(self.policy().keepalive_interval);
        interval.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            let stirred = std::mem::take(&mut self.inner.turns.lock().stirred);
            for env in stirred {
                if let Err(error) = self.settle_turns(env).await {
                    let error = &error as &dyn std::error::Error;
                    tracing::warn!(%env, error, "what its host does is reported later");
                    // With the next tick: the lease lasts longer than that.
                    self.inner.turns.lock().running.insert(env);
                }
            }
            tokio::select! {
                () = wake.notified() => {}
                _ = interval.tick() => {
                    let mut turns = self.inner.turns.lock();
                    let running = turns.running.clone();
                    turns.stirred.extend(running);
                }
            }
        }
    }

    /// Brings what is stored in line with what is seen.
    async fn settle_turns(&self, env: EnvId) -> Result<(), EngineError> {
        let Some(loaded) = self.inner.parts.store.load(env).await? else {
            self.inner.turns.lock().forget(env);
            return Ok(());
        };
        let sandbox = loaded.record.sandbox.as_ref().map(|sandbox| sandbox.reference(env));
        let seen = sandbox.map_or(Seen::Absent, |at| self.inner.parts.driver.glance(&at));
        let used = self.inner.turns.lock().used.get(&env).copied();
        let due = due(&loaded, &seen, used, self.policy(), self.now());
        for holder in &due.gone {
            self.inner.parts.store.release(*holder).await?;
        }
        if let Some((uid, count)) = due.report {
            let report = ActivityReport {
                env,
                surface: SurfaceName::host(),
                holder: holder_of(uid),
                kind: LeaseKind::Turn,
                count,
                expires_ms: millis(self.policy().lease_time()),
                touch: true,
            };
            self.activity(&report).await?;
        } else if due.used.is_some() {
            let touch = Touch { clock: ClockKind::Agent, now: self.now() };
            self.inner.parts.store.touch(env, touch).await?;
        }
        self.remember_turns(env, &loaded, &seen, &due);
        if !due.is_nothing()
            && let Some(loaded) = self.inner.parts.store.load(env).await?
        {
            self.publish(&loaded);
        }
        Ok(())
    }

    fn remember_turns(&self, env: EnvId, loaded: &Loaded, seen: &Seen, due: &Due) {
        let mut turns = self.inner.turns.lock();
        if loaded.record.sandbox.is_none() {
            return turns.forget(env);
        }
        if let Some(used) = due.used {
            turns.used.insert(env, used);
        }
        match seen {
            Seen::Present(present) if present.host.turns > 0 => drop(turns.running.insert(env)),
            Seen::Present(_) => drop(turns.running.remove(&env)),
            // Its turns may run on, unseen: somebody is to look before the lease lapses.
            Seen::Absent | Seen::Unknown => {
                let ran = turns.running.contains(&env);
                drop(turns);
                if ran {
                    self.nudge(env);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use wakeful_lifecycle::{
        Present, Record, Sandbox, Secret,
        testing::{a_fresh_sandbox, a_holder, a_project},
    };
    use wakeful_wire::sandbox::HostUse;

    use super::*;

    const NOW: Timestamp = Timestamp(1_000_000);

    fn loaded(uid: SandboxUid) -> Loaded {
        let (_, record) = a_project("alice", NOW);
        let sandbox = Sandbox {
            uid,
            secret: Secret("s".to_owned()),
            created_at: NOW,
            launched: true,
            ready_since: Some(NOW),
            unready_since: None,
            recovery: false,
            stop: None,
        };
        Loaded {
            record: Record { sandbox: Some(sandbox), ..record },
            clocks: wakeful_lifecycle::Clocks::default(),
        }
    }

    fn lease(holder: HolderId, count: u32, lasts: u64) -> Lease {
        Lease {
            holder,
            surface: SurfaceName::host(),
            kind: LeaseKind::Turn,
            count,
            since: NOW,
            expires_at: NOW.after(Duration::from_secs(lasts)),
        }
    }

    fn seen(turns: u32, activity: u64) -> Seen {
        let host = HostUse { turns, activity, ..HostUse::default() };
        Seen::Present(Present { ready: true, host, ..Present::default() })
    }

    #[test]
    fn turns_are_reported_when_they_differ_from_the_lease_or_it_grows_old() {
        // The lease: its count and how long it still lasts; the turns seen; what is reported.
        let table = [
            (None, 0, None),
            (None, 2, Some(2)),
            (Some((2, 150)), 2, None),
            (Some((2, 121)), 2, None),
            (Some((2, 120)), 2, Some(2)),
            (Some((2, 150)), 1, Some(1)),
            (Some((2, 150)), 0, Some(0)),
            // Lapsed while nobody reported.
            (Some((2, 0)), 0, Some(0)),
            (Some((2, 0)), 2, Some(2)),
        ];
        let uid = a_fresh_sandbox().uid;
        for (stored, turns, reported) in table {
            let mut loaded = loaded(uid);
            loaded.clocks.leases = stored
                .map(|(count, lasts)| lease(holder_of(uid), count, lasts))
                .into_iter()
                .collect();
            let due = due(&loaded, &seen(turns, 0), None, &Policy::default(), NOW);
            assert_eq!(due.report, reported.map(|count| (uid, count)), "{stored:?} {turns}");
            assert!(due.gone.is_empty() && due.used.is_none());
        }
    }

    #[test]
    fn a_doubtful_look_changes_nothing() {
        let uid = a_fresh_sandbox().uid;
        let mut loaded = loaded(uid);
        loaded.clocks.leases.push(lease(holder_of(uid), 1, 0));
        for seen in [Seen::Unknown, Seen::Absent] {
            assert!(due(&loaded, &seen, None, &Policy::default(), NOW).is_nothing());
        }
    }

    #[test]
    fn only_the_turns_of_a_former_sandbox_lose_their_lease() {
        let (uid, former) = (a_fresh_sandbox().uid, holder_of(a_fresh_sandbox().uid));
        let gateway = a_holder();
        let socket = Lease { kind: LeaseKind::Socket, ..lease(gateway, 1, 150) };
        let elsewhere = Lease { surface: SurfaceName::app(), ..lease(gateway, 1, 150) };
        let mut loaded = loaded(uid);
        loaded.clocks.leases = vec![socket, elsewhere, lease(former, 1, 150)];
        for sandbox in [loaded.record.sandbox.clone(), None] {
            loaded.record.sandbox = sandbox;
            let due = due(&loaded, &Seen::Unknown, None, &Policy::default(), NOW);
            assert_eq!(due.gone, BTreeSet::from([former]));
        }
    }

    #[test]
    fn a_rise_of_use_counts_once_for_each_sandbox() {
        let (uid, former) = (a_fresh_sandbox().uid, a_fresh_sandbox().uid);
        let table = [
            (0, None, None),
            (1, None, Some(1)),
            (1, Some((uid, 1)), None),
            (2, Some((uid, 1)), Some(2)),
            (1, Some((former, 7)), Some(1)),
        ];
        for (activity, known, used) in table {
            let due = due(&loaded(uid), &seen(0, activity), known, &Policy::default(), NOW);
            assert_eq!(due.used, used.map(|count| (uid, count)), "{activity} {known:?}");
        }
    }
}
