//! The record port.

use std::time::Duration;

use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use wakeful_wire::{
    ClockKind, EnvId, HolderId, ProjectId, SurfaceName, TemplateName, Timestamp, UserName,
    gate::LeaseKind,
};

use crate::{Clocks, Guard, Record};

/// The store cannot be asked, or refused.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// A row with this key exists.
    #[error("it exists already")]
    Conflict,
    /// There is no such row.
    #[error("there is no such row")]
    Missing,
    /// The store failed.
    #[error("the store failed: {0}")]
    Failed(String),
}

/// A record with its clocks, read in one transaction.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Loaded {
    /// The record.
    pub record: Record,
    /// Its clocks and leases.
    pub clocks: Clocks,
}

/// How a commit ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Commit {
    /// It is stored.
    Done,
    /// Somebody else was faster, or a touch came in between: load and plan again.
    Lost,
}

/// A touch of one clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Touch {
    /// Which clock.
    pub clock: ClockKind,
    /// When.
    pub now: Timestamp,
}

/// A report of what a holder holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeaseReport {
    /// The environment.
    pub env: EnvId,
    /// Who counts.
    pub holder: HolderId,
    /// The surface.
    pub surface: SurfaceName,
    /// What is open.
    pub kind: LeaseKind,
    /// How many; 0 ends the lease.
    pub count: u32,
    /// How long it holds unless reported again.
    pub expires: Duration,
    /// The clock to touch with it, if any.
    pub touch: Option<ClockKind>,
}

/// A project's own row.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProjectRow {
    /// Its id.
    pub id: ProjectId,
    /// Its owner.
    pub owner: UserName,
    /// Its title.
    pub title: String,
    /// What its environments run.
    pub template: TemplateName,
    /// When it was created.
    pub created_at: Timestamp,
}

/// What is left of a deleted project until it is reaped.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tombstone {
    /// The project's row as it was.
    pub project: ProjectRow,
    /// Its environments' records as they were.
    pub environments: Vec<Record>,
    /// When it was deleted.
    pub deleted_at: Timestamp,
    /// Until when it can be restored.
    pub keep_until: Timestamp,
}

/// Holds records, clocks, leases, projects and tombstones.
///
/// Each method is one transaction. Two methods that run at once behave as one after the other.
#[async_trait]
pub trait Store: Send + Sync + 'static {
    /// A record with its clocks.
    async fn load(&self, env: EnvId) -> Result<Option<Loaded>, StoreError>;

    /// Stores `next` if the stored generation is `guard.generation` and, where the guard names an
    /// activity sequence, that too is as named. `due` is when it is to be looked at again; `touch`
    /// touches a clock in the same transaction.
    async fn commit(
        &self,
        next: &Record,
        guard: Guard,
        due: Option<Timestamp>,
        touch: Option<Touch>,
    ) -> Result<Commit, StoreError>;

    /// Sets when an environment is to be looked at again, without changing its generation.
    async fn set_due(&self, env: EnvId, due: Option<Timestamp>) -> Result<(), StoreError>;

    /// Touches a clock if the record takes touches
    /// ([`Record::takes_touches`]), and returns what is stored after that. `None`: no such record.
    async fn touch(&self, env: EnvId, touch: Touch) -> Result<Option<Loaded>, StoreError>;

    /// Keeps an environment awake until `until` at least.
    async fn extend(&self, env: EnvId, until: Timestamp) -> Result<Option<Loaded>, StoreError>;

    /// Takes a holder's report, and touches a clock with it if the record takes touches.
    /// `None`: no such record.
    async fn report(
        &self,
        report: &LeaseReport,
        now: Timestamp,
    ) -> Result<Option<Loaded>, StoreError>;

    /// Ends all leases of a holder: it said goodbye.
    async fn release(&self, holder: HolderId) -> Result<(), StoreError>;

    /// Environments whose time to be looked at has come, the longest due first.
    async fn due(&self, now: Timestamp, limit: usize) -> Result<Vec<EnvId>, StoreError>;

    /// The earliest moment at which an environment is due.
    async fn next_due(&self) -> Result<Option<Timestamp>, StoreError>;

    /// Makes a project with its first environment.
    ///
    /// # Errors
    /// [`StoreError::Conflict`] when either id exists, also as a tombstone.
    async fn create_project(&self, project: &ProjectRow, record: &Record)
    -> Result<(), StoreError>;

    /// A project with its environments. `None`: no such project, or a tombstone.
    async fn project(&self, id: ProjectId)
    -> Result<Option<(ProjectRow, Vec<Loaded>)>, StoreError>;

    /// A user's projects, oldest first, with their environments.
    async fn projects(
        &self,
        owner: &UserName,
    ) -> Result<Vec<(ProjectRow, Vec<Loaded>)>, StoreError>;

    /// Every live environment: for a restart and for the reaper.
    async fn environments(&self) -> Result<Vec<EnvId>, StoreError>;

    /// Removes a project's rows and writes its tombstone, in one transaction (W22). Idempotent.
    ///
    /// # Errors
    /// [`StoreError::Missing`] when there is neither row nor tombstone.
    async fn bury(
        &self,
        id: ProjectId,
        now: Timestamp,
        keep_until: Timestamp,
    ) -> Result<(), StoreError>;

    /// Makes a buried project live again, suspended, in one transaction. One that has expired by
    /// `now` stays buried: its files may be on their way out already.
    ///
    /// # Errors
    /// [`StoreError::Missing`] when there is no tombstone that has not expired.
    async fn restore(&self, id: ProjectId, now: Timestamp) -> Result<(), StoreError>;

    /// A user's tombstones, newest first.
    async fn tombstones(&self, owner: &UserName) -> Result<Vec<Tombstone>, StoreError>;

    /// One tombstone.
    async fn tombstone(&self, id: ProjectId) -> Result<Option<Tombstone>, StoreError>;

    /// Tombstones that are past their `keep_until`.
    async fn expired(&self, now: Timestamp) -> Result<Vec<Tombstone>, StoreError>;

    /// Removes a tombstone, after its workspaces were removed.
    async fn purge(&self, id: ProjectId) -> Result<(), StoreError>;

    /// Of these ids, those that neither a row nor a tombstone names, read in one transaction: a row
    /// that becomes a tombstone meanwhile is never missed (W23).
    async fn unnamed(&self, ids: &[EnvId]) -> Result<Vec<EnvId>, StoreError>;
}
