//! Leases of this process: uploads hold the environment that they go to.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};

use tokio::sync::Notify;
use wakeful_lifecycle::port::LeaseReport;
use wakeful_wire::{EnvId, SurfaceName, gate::LeaseKind};

use super::Engine;

/// How often holds are reported again, and how long a report holds.
const REPORT_EVERY: Duration = Duration::from_secs(60);
const REPORT_HOLDS: Duration = Duration::from_secs(150);

type Key = (EnvId, SurfaceName, LeaseKind);

/// What this process holds.
#[derive(Debug, Default)]
pub(crate) struct Holds {
    counts: BTreeMap<Key, u32>,
    /// Counts that changed since the last report.
    changed: BTreeSet<Key>,
    wake: Arc<Notify>,
}

/// Holds an environment awake until it is dropped.
#[must_use = "dropping it ends the hold"]
#[derive(Debug)]
pub struct Hold {
    engine: Engine,
    key: Key,
}

impl Engine {
    /// Holds an environment awake until the result is dropped. It wakes nothing.
    pub fn hold(&self, env: EnvId, surface: SurfaceName, kind: LeaseKind) -> Hold {
        let key = (env, surface, kind);
        self.count(&key, 1);
        Hold { engine: self.clone(), key }
    }

    fn count(&self, key: &Key, by: i32) {
        let mut holds = self.inner.holds.lock();
        let count = holds.counts.entry(key.clone()).or_default();
        *count = count.saturating_add_signed(by);
        let (before, now) = (count.saturating_add_signed(-by), *count);
        if now == 0 {
            holds.counts.remove(key);
        }
        if before == 0 || now == 0 {
            holds.changed.insert(key.clone());
            holds.wake.notify_one();
        }
    }

    /// Reports what is held: at once when something begins or ends, and again before it would lapse.
    pub(super) async fn report_holds(&self) {
        let wake = Arc::clone(&self.inner.holds.lock().wake);
        loop {
            let due: Vec<Key> =
                std::mem::take(&mut self.inner.holds.lock().changed).into_iter().collect();
            for key in due {
                self.report_hold(key).await;
            }
            if tokio::time::timeout(REPORT_EVERY, wake.notified()).await.is_err() {
                let mut holds = self.inner.holds.lock();
                let held: Vec<Key> = holds.counts.keys().cloned().collect();
                holds.changed.extend(held);
            }
        }
    }

    async fn report_hold(&self, key: Key) {
        let count = self.inner.holds.lock().counts.get(&key).copied().unwrap_or(0);
        let (env, surface, kind) = key.clone();
        let report = LeaseReport {
            env,
            holder: self.inner.holder,
            surface,
            kind,
            count,
            expires: REPORT_HOLDS,
            touch: None,
        };
        if let Err(error) = self.inner.parts.store.report(&report, self.now()).await {
            tracing::warn!(%env, error = &error as &dyn std::error::Error, "a hold is reported later");
            self.inner.holds.lock().changed.insert(key);
        }
    }
}

impl Drop for Hold {
    fn drop(&mut self) {
        self.engine.count(&self.key, -1);
    }
}
