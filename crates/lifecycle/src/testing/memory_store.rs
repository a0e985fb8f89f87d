//! The store in memory.

use std::collections::BTreeMap;

use async_trait::async_trait;
use parking_lot::Mutex;
use wakeful_wire::{EnvId, HolderId, ProjectId, Timestamp, UserName};

use crate::{
    Clock, Clocks, Guard, Lease, Record,
    port::{Commit, LeaseReport, Loaded, ProjectRow, Store, StoreError, Tombstone, Touch},
};

#[derive(Debug, Clone)]
struct Row {
    record: Record,
    clocks: Clocks,
    due: Option<Timestamp>,
}

#[derive(Debug, Default)]
struct Rows {
    projects: BTreeMap<ProjectId, ProjectRow>,
    environments: BTreeMap<EnvId, Row>,
    tombstones: BTreeMap<ProjectId, Tombstone>,
}

/// The store in memory: one lock is one transaction.
#[derive(Debug, Default)]
pub struct MemoryStore {
    rows: Mutex<Rows>,
}

impl MemoryStore {
    /// An empty store.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Loses both clocks of an environment, as a store of clocks that was flushed does.
    pub fn lose_clocks(&self, env: EnvId) {
        if let Some(row) = self.rows.lock().environments.get_mut(&env) {
            row.clocks.agent = Clock::Lost;
            row.clocks.app = Clock::Lost;
        }
    }
}

impl Rows {
    fn loaded(&self, env: EnvId) -> Option<Loaded> {
        self.environments
            .get(&env)
            .map(|row| Loaded { record: row.record.clone(), clocks: row.clocks.clone() })
    }

    fn of_project(&self, id: ProjectId) -> Vec<Loaded> {
        self.environments
            .values()
            .filter(|row| row.record.project == id)
            .map(|row| Loaded { record: row.record.clone(), clocks: row.clocks.clone() })
            .collect()
    }
}

#[async_trait]
impl Store for MemoryStore {
    async fn load(&self, env: EnvId) -> Result<Option<Loaded>, StoreError> {
        Ok(self.rows.lock().loaded(env))
    }

    async fn commit(
        &self,
        next: &Record,
        guard: Guard,
        due: Option<Timestamp>,
        touch: Option<Touch>,
    ) -> Result<Commit, StoreError> {
        let mut rows = self.rows.lock();
        let Some(row) = rows.environments.get_mut(&next.id) else { return Ok(Commit::Lost) };
        let moved = row.record.generation != guard.generation
            || guard.activity.is_some_and(|seq| seq != row.clocks.seq);
        if moved {
            return Ok(Commit::Lost);
        }
        row.record = next.clone();
        row.due = due;
        if let Some(touch) = touch {
            row.clocks.touch(touch.clock, touch.now);
        }
        Ok(Commit::Done)
    }

    async fn set_due(&self, env: EnvId, due: Option<Timestamp>) -> Result<(), StoreError> {
        if let Some(row) = self.rows.lock().environments.get_mut(&env) {
            row.due = due;
        }
        Ok(())
    }

    async fn touch(&self, env: EnvId, touch: Touch) -> Result<Option<Loaded>, StoreError> {
        let mut rows = self.rows.lock();
        if let Some(row) = rows.environments.get_mut(&env)
            && row.record.takes_touches()
        {
            row.clocks.touch(touch.clock, touch.now);
        }
        Ok(rows.loaded(env))
    }

    async fn extend(&self, env: EnvId, until: Timestamp) -> Result<Option<Loaded>, StoreError> {
        let mut rows = self.rows.lock();
        if let Some(row) = rows.environments.get_mut(&env) {
            row.clocks.extend(until);
        }
        Ok(rows.loaded(env))
    }

    async fn report(
        &self,
        report: &LeaseReport,
        now: Timestamp,
    ) -> Result<Option<Loaded>, StoreError> {
        let mut rows = self.rows.lock();
        if let Some(row) = rows.environments.get_mut(&report.env) {
            let lease = Lease {
                holder: report.holder,
                surface: report.surface.clone(),
                kind: report.kind,
                count: report.count,
                since: now,
                expires_at: now.after(report.expires),
            };
            row.clocks.report(lease, now);
            if let Some(clock) = report.touch
                && row.record.takes_touches()
            {
                row.clocks.touch(clock, now);
            }
        }
        Ok(rows.loaded(report.env))
    }

    async fn release(&self, holder: HolderId) -> Result<(), StoreError> {
        for row in self.rows.lock().environments.values_mut() {
            let before = row.clocks.leases.len();
            row.clocks.leases.retain(|lease| lease.holder != holder);
            if row.clocks.leases.len() != before {
                row.clocks.seq = row.clocks.seq.next();
            }
        }
        Ok(())
    }

    async fn due(&self, now: Timestamp, limit: usize) -> Result<Vec<EnvId>, StoreError> {
        let rows = self.rows.lock();
        let mut due: Vec<_> = rows
            .environments
            .values()
            .filter_map(|row| row.due.filter(|at| *at <= now).map(|at| (at, row.record.id)))
            .collect();
        due.sort_unstable();
        due.truncate(limit);
        Ok(due.into_iter().map(|(_, env)| env).collect())
    }

    async fn next_due(&self) -> Result<Option<Timestamp>, StoreError> {
        Ok(self.rows.lock().environments.values().filter_map(|row| row.due).min())
    }

    async fn create_project(
        &self,
        project: &ProjectRow,
        record: &Record,
    ) -> Result<(), StoreError> {
        let mut rows = self.rows.lock();
        let taken = rows.projects.contains_key(&project.id)
            || rows.tombstones.contains_key(&project.id)
            || rows.environments.contains_key(&record.id);
        if taken {
            return Err(StoreError::Conflict);
        }
        rows.projects.insert(project.id, project.clone());
        let clocks = Clocks { last_activity: record.created_at, ..Clocks::default() };
        rows.environments.insert(record.id, Row { record: record.clone(), clocks, due: None });
        Ok(())
    }

    async fn project(
        &self,
        id: ProjectId,
    ) -> Result<Option<(ProjectRow, Vec<Loaded>)>, StoreError> {
        let rows = self.rows.lock();
        Ok(rows.projects.get(&id).map(|row| (row.clone(), rows.of_project(id))))
    }

    async fn projects(
        &self,
        owner: &UserName,
    ) -> Result<Vec<(ProjectRow, Vec<Loaded>)>, StoreError> {
        let rows = self.rows.lock();
        let mut found: Vec<_> = rows
            .projects
            .values()
            .filter(|row| row.owner == *owner)
            .map(|row| (row.clone(), rows.of_project(row.id)))
            .collect();
        found.sort_by_key(|(row, _)| (row.created_at, row.id));
        Ok(found)
    }

    async fn environments(&self) -> Result<Vec<EnvId>, StoreError> {
        Ok(self.rows.lock().environments.keys().copied().collect())
    }

    async fn bury(
        &self,
        id: ProjectId,
        now: Timestamp,
        keep_until: Timestamp,
    ) -> Result<(), StoreError> {
        let mut rows = self.rows.lock();
        let Some(project) = rows.projects.remove(&id) else {
            return if rows.tombstones.contains_key(&id) {
                Ok(())
            } else {
                Err(StoreError::Missing)
            };
        };
        let environments: Vec<Record> =
            rows.of_project(id).into_iter().map(|loaded| loaded.record).collect();
        rows.environments.retain(|_, row| row.record.project != id);
        rows.tombstones
            .insert(id, Tombstone { project, environments, deleted_at: now, keep_until });
        Ok(())
    }

    async fn restore(&self, id: ProjectId, now: Timestamp) -> Result<(), StoreError> {
        let mut rows = self.rows.lock();
        if rows.tombstones.get(&id).is_none_or(|tombstone| tombstone.keep_until <= now) {
            return Err(StoreError::Missing);
        }
        let tombstone = rows.tombstones.remove(&id).ok_or(StoreError::Missing)?;
        rows.projects.insert(id, tombstone.project);
        for mut record in tombstone.environments {
            record.revive(now);
            let clocks = Clocks { last_activity: now, ..Clocks::default() };
            rows.environments.insert(record.id, Row { record, clocks, due: None });
        }
        Ok(())
    }

    async fn tombstones(&self, owner: &UserName) -> Result<Vec<Tombstone>, StoreError> {
        let rows = self.rows.lock();
        let mut found: Vec<_> =
            rows.tombstones.values().filter(|t| t.project.owner == *owner).cloned().collect();
        found.sort_by_key(|t| std::cmp::Reverse(t.deleted_at));
        Ok(found)
    }

    async fn tombstone(&self, id: ProjectId) -> Result<Option<Tombstone>, StoreError> {
        Ok(self.rows.lock().tombstones.get(&id).cloned())
    }

    async fn expired(&self, now: Timestamp) -> Result<Vec<Tombstone>, StoreError> {
        let rows = self.rows.lock();
        Ok(rows.tombstones.values().filter(|t| t.keep_until <= now).cloned().collect())
    }

    async fn purge(&self, id: ProjectId) -> Result<(), StoreError> {
        self.rows.lock().tombstones.remove(&id);
        Ok(())
    }

    async fn unnamed(&self, ids: &[EnvId]) -> Result<Vec<EnvId>, StoreError> {
        let rows = self.rows.lock();
        let named = |id: &EnvId| {
            rows.environments.contains_key(id)
                || rows.tombstones.values().any(|t| t.environments.iter().any(|r| r.id == *id))
        };
        Ok(ids.iter().copied().filter(|id| !named(id)).collect())
    }
}
