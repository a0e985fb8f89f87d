//! Changes, pushed: to gateways, and to people who watch.

use std::{collections::BTreeMap, sync::Arc};

use tokio::sync::broadcast;
use wakeful_lifecycle::{Record, Seen, port::Loaded};
use wakeful_wire::{
    Phase, ProjectId, SurfaceName, UserName, api, gate::GateEvent, sandbox::SurfaceState,
};

use super::Engine;

/// An environment changed.
#[derive(Debug, Clone)]
pub struct EnvironmentEvent {
    /// Whose it is.
    pub owner: UserName,
    /// Its project.
    pub project: ProjectId,
    /// What it is now.
    pub environment: api::Environment,
}

impl Engine {
    /// Changes of environments, for people who watch. Who lags reads the present state instead.
    #[must_use]
    pub fn events(&self) -> broadcast::Receiver<Arc<EnvironmentEvent>> {
        self.inner.environment_events.subscribe()
    }

    /// Changes for gateways. Who lags must forget everything that it cached.
    #[must_use]
    pub fn gate_events(&self) -> broadcast::Receiver<GateEvent> {
        self.inner.gate_events.subscribe()
    }

    /// What gateways know of this environment's route has changed.
    pub fn announce(&self, event: GateEvent) {
        // Without a listener there is nobody who cached anything.
        drop(self.inner.gate_events.send(event));
    }

    /// Tells everybody that a record has changed. Gateways hear of it only when that may change an
    /// answer of theirs: each such event makes every waiting request ask again, and how often they
    /// may ask is bounded.
    pub(super) fn publish_change(&self, before: &Record, after: &Loaded) {
        let sandbox = |record: &Record| record.sandbox.as_ref().map(|sandbox| sandbox.uid);
        let record = &after.record;
        if before.phase() != record.phase() || sandbox(before) != sandbox(record) {
            self.announce_change(record);
        }
        self.publish(after);
    }

    /// Tells people what an environment is now.
    pub(super) fn publish(&self, loaded: &Loaded) {
        if self.inner.environment_events.receiver_count() == 0 {
            return;
        }
        let event = EnvironmentEvent {
            owner: loaded.record.owner.clone(),
            project: loaded.record.project,
            environment: self.view(loaded),
        };
        drop(self.inner.environment_events.send(Arc::new(event)));
    }

    fn announce_change(&self, record: &Record) {
        self.announce(GateEvent::Changed {
            env: record.id,
            generation: record.generation,
            phase: record.phase(),
        });
    }

    /// A driver hinted at a change. Gateways hear of it when a surface has become ready or was
    /// given up, or is so no more; people, in any case.
    pub(super) fn publish_hint(&self, loaded: &Loaded) {
        let settled = self.settled_surfaces(loaded);
        let known = self.inner.settled.lock().insert(loaded.record.id, settled.clone());
        // Before the environment is ready its surfaces change no answer.
        if loaded.record.phase() == Phase::Ready && known != Some(settled) {
            self.announce_change(&loaded.record);
        }
        self.publish(loaded);
    }

    fn settled_surfaces(&self, loaded: &Loaded) -> BTreeMap<SurfaceName, SurfaceState> {
        let record = &loaded.record;
        let Some(sandbox) = &record.sandbox else { return BTreeMap::new() };
        let Seen::Present(present) = self.inner.parts.driver.glance(&sandbox.reference(record.id))
        else {
            return BTreeMap::new();
        };
        let settled =
            |state: &SurfaceState| matches!(state, SurfaceState::Ready | SurfaceState::GivenUp);
        let host = match present.host.fault {
            Some(_) => SurfaceState::GivenUp,
            None => SurfaceState::Ready,
        };
        present
            .surfaces
            .into_iter()
            .map(|(name, status)| (name, status.state))
            .chain([(SurfaceName::host(), host)])
            .filter(|(_, state)| settled(state))
            .collect()
    }
}
