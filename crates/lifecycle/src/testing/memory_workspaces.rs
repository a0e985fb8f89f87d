//! Workspaces that exist in name only.

use std::{collections::BTreeMap, path::PathBuf, time::Duration};

use async_trait::async_trait;
use parking_lot::Mutex;
use wakeful_wire::EnvId;

use crate::port::{WorkspaceEntry, WorkspaceError, Workspaces};

/// Workspaces in name only, each with an age that the test sets.
#[derive(Debug, Default)]
pub struct MemoryWorkspaces {
    entries: Mutex<BTreeMap<EnvId, Duration>>,
}

impl MemoryWorkspaces {
    /// None yet.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Makes one look as old as `age`.
    pub fn age(&self, env: EnvId, age: Duration) {
        self.entries.lock().insert(env, age);
    }
}

#[async_trait]
impl Workspaces for MemoryWorkspaces {
    async fn create(&self, env: EnvId) -> Result<PathBuf, WorkspaceError> {
        self.entries.lock().entry(env).or_default();
        Ok(PathBuf::from(format!("/memory/{env}")))
    }

    async fn locate(&self, env: EnvId) -> Result<Option<PathBuf>, WorkspaceError> {
        let there = self.entries.lock().contains_key(&env);
        Ok(there.then(|| PathBuf::from(format!("/memory/{env}"))))
    }

    async fn list(&self) -> Result<Vec<WorkspaceEntry>, WorkspaceError> {
        let entries = self.entries.lock();
        Ok(entries.iter().map(|(env, age)| WorkspaceEntry { env: *env, age: *age }).collect())
    }

    async fn remove(&self, env: EnvId) -> Result<(), WorkspaceError> {
        self.entries.lock().remove(&env);
        Ok(())
    }
}
