//! The files that survive.

use std::{path::PathBuf, time::Duration};

use async_trait::async_trait;
use wakeful_wire::EnvId;

/// Workspaces cannot be reached, or an operation failed.
#[derive(Debug, Clone, thiserror::Error)]
#[error("the workspace cannot be used: {0}")]
pub struct WorkspaceError(pub String);

/// A workspace that exists.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WorkspaceEntry {
    /// Whose it is.
    pub env: EnvId,
    /// How long ago its directory was made or last changed: the reaper's age guard.
    pub age: Duration,
}

/// Makes, lists and removes workspaces. What is in them is nobody's business here.
#[async_trait]
pub trait Workspaces: Send + Sync + 'static {
    /// Makes the workspace if there is none, and returns its directory.
    async fn create(&self, env: EnvId) -> Result<PathBuf, WorkspaceError>;

    /// Its directory; `None` if there is none.
    async fn locate(&self, env: EnvId) -> Result<Option<PathBuf>, WorkspaceError>;

    /// Every workspace that exists.
    async fn list(&self) -> Result<Vec<WorkspaceEntry>, WorkspaceError>;

    /// Removes it with all that is in it, never following a link. Idempotent. After a crash in the
    /// middle it is either listed still or gone.
    async fn remove(&self, env: EnvId) -> Result<(), WorkspaceError>;
}
