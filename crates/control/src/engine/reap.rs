//! The reaper: removes what was deleted long enough ago, and nothing else.
//!
//! It never removes what a row, a tombstone or a running flow names (W23): a directory is a
//! candidate only when it is older than the retention itself, which no flow takes; the candidates
//! are then asked for in one transaction, so that a row that becomes a tombstone meanwhile is never
//! missed. A database without a single row is a wrong or lost one, and nothing is removed then.

use std::time::Duration;

use wakeful_wire::EnvId;

use super::{Engine, EngineError};

/// How often the reaper runs.
const REAP_EVERY: Duration = Duration::from_secs(3_600);

impl Engine {
    pub(super) async fn reap_at_times(&self) {
        loop {
            if let Err(error) = self.reap().await {
                tracing::warn!(error = &error as &dyn std::error::Error, "the reaper failed");
            }
            tokio::time::sleep(REAP_EVERY).await;
        }
    }

    /// Removes expired tombstones with their workspaces, then workspaces that nothing names.
    /// Returns the environments whose workspaces were removed.
    ///
    /// # Errors
    /// A failing store; what could not be removed is tried again at the next run.
    pub async fn reap(&self) -> Result<Vec<EnvId>, EngineError> {
        let mut removed = self.reap_tombstones().await?;
        removed.extend(self.reap_unnamed().await?);
        Ok(removed)
    }

    async fn reap_tombstones(&self) -> Result<Vec<EnvId>, EngineError> {
        let parts = &self.inner.parts;
        let mut removed = Vec::new();
        for tombstone in parts.store.expired(self.now()).await? {
            let mut left = false;
            for record in &tombstone.environments {
                left |= !self.remove_for_good(record.id).await;
                removed.push(record.id);
            }
            // The tombstone goes last: a crash before it leads to the same removal again.
            if !left {
                parts.store.purge(tombstone.project.id).await?;
            }
        }
        Ok(removed)
    }

    async fn reap_unnamed(&self) -> Result<Vec<EnvId>, EngineError> {
        let parts = &self.inner.parts;
        if parts.store.environments().await?.is_empty() {
            return Ok(Vec::new());
        }
        let guard = self.inner.config.retention;
        let entries = parts.workspaces.list().await.map_err(EngineError::Workspace)?;
        let old: Vec<EnvId> =
            entries.iter().filter(|entry| entry.age > guard).map(|entry| entry.env).collect();
        let mut removed = Vec::new();
        for env in parts.store.unnamed(&old).await? {
            tracing::warn!(%env, "removing a workspace that nothing names");
            if self.remove_for_good(env).await {
                removed.push(env);
            }
        }
        Ok(removed)
    }

    async fn remove_for_good(&self, env: EnvId) -> bool {
        let parts = &self.inner.parts;
        if let Err(error) = parts.driver.forget(env).await {
            tracing::warn!(%env, reason = error.fault.reason, "logs not removed");
            return false;
        }
        match parts.workspaces.remove(env).await {
            Ok(()) => true,
            Err(error) => {
                tracing::warn!(%env, %error, "workspace not removed");
                false
            }
        }
    }
}
