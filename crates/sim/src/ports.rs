//! Ports that give way before and after each call, so that anything may come in between.

use std::{sync::Arc, time::Duration};

use async_trait::async_trait;
use wakeful_lifecycle::{
    Guard, Record, SandboxRef, Seen,
    port::{
        Commit, DeliverError, Driver, DriverError, Launch, LeaseReport, Loaded, LogTail,
        ProjectRow, Store, StoreError, Tombstone, Touch,
    },
    testing::{MemoryStore, ScriptedDriver},
};
use wakeful_wire::{
    EnvId, HolderId, ProjectId, SurfaceName, Timestamp, UserName,
    gate::Upstream,
    rpc::{Call, Taken},
};

use crate::seed::Seed;

/// How often a call gives way at most, before and again after.
const GIVE_WAY: u64 = 4;

/// The memory store, with gaps.
#[derive(Debug)]
pub struct GappyStore {
    /// What is stored.
    pub inner: MemoryStore,
    /// Where the gaps come from.
    pub seed: Seed,
}

macro_rules! gap {
    ($self:ident, $call:expr) => {{
        $self.seed.give_way(GIVE_WAY).await;
        let answer = $call.await;
        $self.seed.give_way(GIVE_WAY).await;
        answer
    }};
}

#[async_trait]
impl Store for GappyStore {
    async fn load(&self, env: EnvId) -> Result<Option<Loaded>, StoreError> {
        gap!(self, self.inner.load(env))
    }

    async fn commit(
        &self,
        next: &Record,
        guard: Guard,
        due: Option<Timestamp>,
        touch: Option<Touch>,
    ) -> Result<Commit, StoreError> {
        gap!(self, self.inner.commit(next, guard, due, touch))
    }

    async fn set_due(&self, env: EnvId, due: Option<Timestamp>) -> Result<(), StoreError> {
        gap!(self, self.inner.set_due(env, due))
    }

    async fn touch(&self, env: EnvId, touch: Touch) -> Result<Option<Loaded>, StoreError> {
        gap!(self, self.inner.touch(env, touch))
    }

    async fn extend(&self, env: EnvId, until: Timestamp) -> Result<Option<Loaded>, StoreError> {
        gap!(self, self.inner.extend(env, until))
    }

    async fn report(
        &self,
        report: &LeaseReport,
        now: Timestamp,
    ) -> Result<Option<Loaded>, StoreError> {
        gap!(self, self.inner.report(report, now))
    }

    async fn release(&self, holder: HolderId) -> Result<(), StoreError> {
        gap!(self, self.inner.release(holder))
    }

    async fn due(&self, now: Timestamp, limit: usize) -> Result<Vec<EnvId>, StoreError> {
        gap!(self, self.inner.due(now, limit))
    }

    async fn next_due(&self) -> Result<Option<Timestamp>, StoreError> {
        gap!(self, self.inner.next_due())
    }

    async fn create_project(
        &self,
        project: &ProjectRow,
        record: &Record,
    ) -> Result<(), StoreError> {
        gap!(self, self.inner.create_project(project, record))
    }

    async fn project(
        &self,
        id: ProjectId,
    ) -> Result<Option<(ProjectRow, Vec<Loaded>)>, StoreError> {
        gap!(self, self.inner.project(id))
    }

    async fn projects(
        &self,
        owner: &UserName,
    ) -> Result<Vec<(ProjectRow, Vec<Loaded>)>, StoreError> {
        gap!(self, self.inner.projects(owner))
    }

    async fn environments(&self) -> Result<Vec<EnvId>, StoreError> {
        gap!(self, self.inner.environments())
    }

    async fn bury(
        &self,
        id: ProjectId,
        now: Timestamp,
        keep_until: Timestamp,
    ) -> Result<(), StoreError> {
        gap!(self, self.inner.bury(id, now, keep_until))
    }

    async fn restore(&self, id: ProjectId, now: Timestamp) -> Result<(), StoreError> {
        gap!(self, self.inner.restore(id, now))
    }

    async fn tombstones(&self, owner: &UserName) -> Result<Vec<Tombstone>, StoreError> {
        gap!(self, self.inner.tombstones(owner))
    }

    async fn tombstone(&self, id: ProjectId) -> Result<Option<Tombstone>, StoreError> {
        gap!(self, self.inner.tombstone(id))
    }

    async fn expired(&self, now: Timestamp) -> Result<Vec<Tombstone>, StoreError> {
        gap!(self, self.inner.expired(now))
    }

    async fn purge(&self, id: ProjectId) -> Result<(), StoreError> {
        gap!(self, self.inner.purge(id))
    }

    async fn unnamed(&self, ids: &[EnvId]) -> Result<Vec<EnvId>, StoreError> {
        gap!(self, self.inner.unnamed(ids))
    }
}

/// The scripted driver, with gaps.
#[derive(Debug)]
pub struct GappyDriver {
    /// What runs.
    pub inner: Arc<ScriptedDriver>,
    /// Where the gaps come from.
    pub seed: Seed,
}

#[async_trait]
impl Driver for GappyDriver {
    async fn create(&self, launch: &Launch) -> Result<(), DriverError> {
        gap!(self, self.inner.create(launch))
    }

    async fn observe(&self, sandbox: &SandboxRef) -> Seen {
        gap!(self, self.inner.observe(sandbox))
    }

    fn glance(&self, sandbox: &SandboxRef) -> Seen {
        self.inner.glance(sandbox)
    }

    async fn stop(&self, sandbox: &SandboxRef, grace: Duration) -> Result<(), DriverError> {
        gap!(self, self.inner.stop(sandbox, grace))
    }

    fn upstream(&self, sandbox: &SandboxRef, surface: &SurfaceName) -> Option<Upstream> {
        self.inner.upstream(sandbox, surface)
    }

    async fn start_surface(
        &self,
        sandbox: &SandboxRef,
        surface: &SurfaceName,
    ) -> Result<(), DriverError> {
        gap!(self, self.inner.start_surface(sandbox, surface))
    }

    async fn drain(&self, sandbox: &SandboxRef, hold: Duration) -> Result<u32, DriverError> {
        gap!(self, self.inner.drain(sandbox, hold))
    }

    async fn deliver(&self, sandbox: &SandboxRef, call: &Call) -> Result<Taken, DeliverError> {
        gap!(self, self.inner.deliver(sandbox, call))
    }

    async fn logs(
        &self,
        env: EnvId,
        surface: &SurfaceName,
        max: usize,
        from: Option<u64>,
    ) -> Result<LogTail, DriverError> {
        gap!(self, self.inner.logs(env, surface, max, from))
    }

    async fn forget(&self, env: EnvId) -> Result<(), DriverError> {
        gap!(self, self.inner.forget(env))
    }

    async fn next_hint(&self) -> EnvId {
        self.inner.next_hint().await
    }
}
