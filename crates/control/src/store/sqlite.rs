//! The record port on SQLite.

use async_trait::async_trait;
use sqlx::{Row as _, Sqlite, Transaction, sqlite::SqliteRow};
use wakeful_lifecycle::{
    Clock, Clocks, Guard, Lease, Record,
    port::{Commit, LeaseReport, Loaded, ProjectRow, Store, StoreError, Tombstone, Touch},
};
use wakeful_wire::{
    ActivitySeq, EnvId, HolderId, ProjectId, SurfaceName, Timestamp, UserName, gate::LeaseKind,
};

use super::database::{Database, failed};

type Write = Transaction<'static, Sqlite>;

/// The record port on SQLite. Clocks and records share the file, so a suspend and a touch meet in
/// one compare-and-set.
#[derive(Debug, Clone)]
pub struct SqliteStore {
    database: Database,
}

impl SqliteStore {
    /// The store in this database.
    #[must_use]
    pub const fn new(database: Database) -> Self {
        Self { database }
    }
}

const ENVIRONMENT: &str = "SELECT id, project, record, activity_seq, agent_at, app_at, \
                           extended_until, last_activity FROM environments";

fn number(value: u64) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}

fn stamp(row: &SqliteRow, column: &str) -> Result<Option<Timestamp>, StoreError> {
    let value: Option<i64> = row.try_get(column).map_err(failed)?;
    Ok(value.map(|value| Timestamp(value.cast_unsigned())))
}

fn clock(row: &SqliteRow, column: &str) -> Result<Clock, StoreError> {
    Ok(stamp(row, column)?.map_or(Clock::Never, Clock::At))
}

fn loaded(row: &SqliteRow) -> Result<Loaded, StoreError> {
    let record: Record =
        serde_json::from_str(row.try_get("record").map_err(failed)?).map_err(failed)?;
    let seq: i64 = row.try_get("activity_seq").map_err(failed)?;
    let clocks = Clocks {
        agent: clock(row, "agent_at")?,
        app: clock(row, "app_at")?,
        extended_until: stamp(row, "extended_until")?,
        last_activity: stamp(row, "last_activity")?.unwrap_or_default(),
        seq: ActivitySeq(seq.cast_unsigned()),
        leases: Vec::new(),
    };
    Ok(Loaded { record, clocks })
}

fn lease(row: &SqliteRow) -> Result<Lease, StoreError> {
    let text = |column: &str| row.try_get::<String, _>(column).map_err(failed);
    let count: i64 = row.try_get("count").map_err(failed)?;
    Ok(Lease {
        holder: text("holder")?.parse().map_err(failed)?,
        surface: SurfaceName::addressed(&text("surface")?).map_err(failed)?,
        kind: lease_kind(&text("kind")?)?,
        count: u32::try_from(count).map_err(failed)?,
        since: stamp(row, "since")?.unwrap_or_default(),
        expires_at: stamp(row, "expires_at")?.unwrap_or_default(),
    })
}

fn lease_kind(text: &str) -> Result<LeaseKind, StoreError> {
    let kinds = [
        LeaseKind::Request,
        LeaseKind::Stream,
        LeaseKind::Socket,
        LeaseKind::Upload,
        LeaseKind::Turn,
    ];
    kinds
        .into_iter()
        .find(|kind| kind.as_str() == text)
        .ok_or_else(|| StoreError::Failed(format!("unknown kind of lease `{text}`")))
}

fn json(value: &impl serde::Serialize) -> Result<String, StoreError> {
    serde_json::to_string(value).map_err(failed)
}

async fn load_in(transaction: &mut Write, env: EnvId) -> Result<Option<Loaded>, StoreError> {
    let sql = sqlx::AssertSqlSafe(format!("{ENVIRONMENT} WHERE id = ?"));
    let row = sqlx::query(sql)
        .bind(env.to_string())
        .fetch_optional(&mut **transaction)
        .await
        .map_err(failed)?;
    let Some(row) = row else { return Ok(None) };
    let mut found = loaded(&row)?;
    found.clocks.leases = leases_in(transaction, env).await?;
    Ok(Some(found))
}

async fn leases_in(transaction: &mut Write, env: EnvId) -> Result<Vec<Lease>, StoreError> {
    let rows = sqlx::query("SELECT * FROM leases WHERE env = ? ORDER BY since")
        .bind(env.to_string())
        .fetch_all(&mut **transaction)
        .await
        .map_err(failed)?;
    rows.iter().map(lease).collect()
}

/// Writes the clocks of `clocks`; the sequence only grows.
async fn store_clocks(
    transaction: &mut Write,
    env: EnvId,
    clocks: &Clocks,
) -> Result<(), StoreError> {
    let at = |clock: Clock| match clock {
        Clock::At(at) => Some(number(at.0)),
        Clock::Never | Clock::Lost => None,
    };
    sqlx::query(
        "UPDATE environments SET activity_seq = ?, agent_at = ?, app_at = ?, extended_until = ?, \
         last_activity = ? WHERE id = ?",
    )
    .bind(number(clocks.seq.0))
    .bind(at(clocks.agent))
    .bind(at(clocks.app))
    .bind(clocks.extended_until.map(|at| number(at.0)))
    .bind(number(clocks.last_activity.0))
    .bind(env.to_string())
    .execute(&mut **transaction)
    .await
    .map_err(failed)?;
    Ok(())
}

async fn insert_environment(
    transaction: &mut Write,
    record: &Record,
    last_activity: Timestamp,
) -> Result<(), StoreError> {
    sqlx::query(
        "INSERT INTO environments (id, project, generation, takes_touches, record, last_activity) \
         VALUES (?, ?, ?, ?, ?, ?)",
    )
    .bind(record.id.to_string())
    .bind(record.project.to_string())
    .bind(number(record.generation.0))
    .bind(record.takes_touches())
    .bind(json(record)?)
    .bind(number(last_activity.0))
    .execute(&mut **transaction)
    .await
    .map_err(conflict)?;
    Ok(())
}

async fn insert_project(transaction: &mut Write, row: &ProjectRow) -> Result<(), StoreError> {
    sqlx::query(
        "INSERT INTO projects (id, owner, title, template, created_at) VALUES (?, ?, ?, ?, ?)",
    )
    .bind(row.id.to_string())
    .bind(row.owner.as_str())
    .bind(&row.title)
    .bind(row.template.as_str())
    .bind(number(row.created_at.0))
    .execute(&mut **transaction)
    .await
    .map_err(conflict)?;
    Ok(())
}

fn conflict(error: sqlx::Error) -> StoreError {
    match error.as_database_error() {
        Some(error) if error.is_unique_violation() => StoreError::Conflict,
        _ => failed(error),
    }
}

fn project_row(row: &SqliteRow) -> Result<ProjectRow, StoreError> {
    let text = |column: &str| row.try_get::<String, _>(column).map_err(failed);
    Ok(ProjectRow {
        id: text("id")?.parse().map_err(failed)?,
        owner: text("owner")?.parse().map_err(failed)?,
        title: text("title")?,
        template: text("template")?.parse().map_err(failed)?,
        created_at: stamp(row, "created_at")?.unwrap_or_default(),
    })
}

async fn environments_of(
    transaction: &mut Write,
    id: ProjectId,
) -> Result<Vec<Loaded>, StoreError> {
    let sql = sqlx::AssertSqlSafe(format!("{ENVIRONMENT} WHERE project = ? ORDER BY id"));
    let rows = sqlx::query(sql)
        .bind(id.to_string())
        .fetch_all(&mut **transaction)
        .await
        .map_err(failed)?;
    let mut found = Vec::with_capacity(rows.len());
    for row in &rows {
        let mut one = loaded(row)?;
        one.clocks.leases = leases_in(transaction, one.record.id).await?;
        found.push(one);
    }
    Ok(found)
}

async fn tombstone_in(
    transaction: &mut Write,
    id: ProjectId,
) -> Result<Option<Tombstone>, StoreError> {
    let body: Option<String> = sqlx::query_scalar("SELECT body FROM tombstones WHERE project = ?")
        .bind(id.to_string())
        .fetch_optional(&mut **transaction)
        .await
        .map_err(failed)?;
    body.map(|body| serde_json::from_str(&body).map_err(failed)).transpose()
}

impl SqliteStore {
    /// A consistent view for reading: one snapshot for all that is read through it.
    async fn read(&self) -> Result<Write, StoreError> {
        self.database.reader().begin().await.map_err(failed)
    }

    async fn tombstones_where(
        &self,
        clause: &'static str,
        value: impl for<'q> sqlx::Encode<'q, Sqlite> + sqlx::Type<Sqlite> + Send + 'static,
    ) -> Result<Vec<Tombstone>, StoreError> {
        let sql = sqlx::AssertSqlSafe(format!("SELECT body FROM tombstones WHERE {clause}"));
        let bodies: Vec<String> = sqlx::query_scalar(sql)
            .bind(value)
            .fetch_all(self.database.reader())
            .await
            .map_err(failed)?;
        bodies.iter().map(|body| serde_json::from_str(body).map_err(failed)).collect()
    }
}

#[async_trait]
impl Store for SqliteStore {
    async fn load(&self, env: EnvId) -> Result<Option<Loaded>, StoreError> {
        load_in(&mut self.read().await?, env).await
    }

    async fn commit(
        &self,
        next: &Record,
        guard: Guard,
        due: Option<Timestamp>,
        touch: Option<Touch>,
    ) -> Result<Commit, StoreError> {
        let mut transaction = self.database.write().await?;
        let changed = sqlx::query(
            "UPDATE environments SET generation = ?, takes_touches = ?, due_at = ?, record = ? \
             WHERE id = ? AND generation = ? AND (?7 IS NULL OR activity_seq = ?7)",
        )
        .bind(number(next.generation.0))
        .bind(next.takes_touches())
        .bind(due.map(|at| number(at.0)))
        .bind(json(next)?)
        .bind(next.id.to_string())
        .bind(number(guard.generation.0))
        .bind(guard.activity.map(|seq| number(seq.0)))
        .execute(&mut *transaction)
        .await
        .map_err(failed)?
        .rows_affected();
        if changed == 0 {
            return Ok(Commit::Lost);
        }
        if let Some(touch) = touch
            && let Some(mut loaded) = load_in(&mut transaction, next.id).await?
        {
            loaded.clocks.touch(touch.clock, touch.now);
            store_clocks(&mut transaction, next.id, &loaded.clocks).await?;
        }
        transaction.commit().await.map_err(failed)?;
        Ok(Commit::Done)
    }

    async fn set_due(&self, env: EnvId, due: Option<Timestamp>) -> Result<(), StoreError> {
        sqlx::query("UPDATE environments SET due_at = ? WHERE id = ?")
            .bind(due.map(|at| number(at.0)))
            .bind(env.to_string())
            .execute(self.database.writer())
            .await
            .map_err(failed)?;
        Ok(())
    }

    async fn touch(&self, env: EnvId, touch: Touch) -> Result<Option<Loaded>, StoreError> {
        let mut transaction = self.database.write().await?;
        let Some(mut loaded) = load_in(&mut transaction, env).await? else { return Ok(None) };
        if loaded.record.takes_touches() {
            loaded.clocks.touch(touch.clock, touch.now);
            store_clocks(&mut transaction, env, &loaded.clocks).await?;
            transaction.commit().await.map_err(failed)?;
        }
        Ok(Some(loaded))
    }

    async fn extend(&self, env: EnvId, until: Timestamp) -> Result<Option<Loaded>, StoreError> {
        let mut transaction = self.database.write().await?;
        let Some(mut loaded) = load_in(&mut transaction, env).await? else { return Ok(None) };
        loaded.clocks.extend(until);
        store_clocks(&mut transaction, env, &loaded.clocks).await?;
        transaction.commit().await.map_err(failed)?;
        Ok(Some(loaded))
    }

    async fn report(
        &self,
        report: &LeaseReport,
        now: Timestamp,
    ) -> Result<Option<Loaded>, StoreError> {
        let mut transaction = self.database.write().await?;
        let Some(mut loaded) = load_in(&mut transaction, report.env).await? else {
            return Ok(None);
        };
        let lease = Lease {
            holder: report.holder,
            surface: report.surface.clone(),
            kind: report.kind,
            count: report.count,
            since: now,
            expires_at: now.after(report.expires),
        };
        loaded.clocks.report(lease, now);
        if let Some(clock) = report.touch
            && loaded.record.takes_touches()
        {
            loaded.clocks.touch(clock, now);
        }
        store_clocks(&mut transaction, report.env, &loaded.clocks).await?;
        store_leases(&mut transaction, report.env, &loaded.clocks.leases).await?;
        transaction.commit().await.map_err(failed)?;
        Ok(Some(loaded))
    }

    async fn release(&self, holder: HolderId) -> Result<(), StoreError> {
        let mut transaction = self.database.write().await?;
        sqlx::query(
            "UPDATE environments SET activity_seq = activity_seq + 1 \
             WHERE id IN (SELECT env FROM leases WHERE holder = ?)",
        )
        .bind(holder.to_string())
        .execute(&mut *transaction)
        .await
        .map_err(failed)?;
        sqlx::query("DELETE FROM leases WHERE holder = ?")
            .bind(holder.to_string())
            .execute(&mut *transaction)
            .await
            .map_err(failed)?;
        transaction.commit().await.map_err(failed)
    }

    async fn due(&self, now: Timestamp, limit: usize) -> Result<Vec<EnvId>, StoreError> {
        let limit = i64::try_from(limit).unwrap_or(i64::MAX);
        let ids: Vec<String> = sqlx::query_scalar(
            "SELECT id FROM environments WHERE due_at <= ? ORDER BY due_at, id LIMIT ?",
        )
        .bind(number(now.0))
        .bind(limit)
        .fetch_all(self.database.reader())
        .await
        .map_err(failed)?;
        ids.iter().map(|id| id.parse().map_err(failed)).collect()
    }

    async fn next_due(&self) -> Result<Option<Timestamp>, StoreError> {
        let due: Option<i64> =
            sqlx::query_scalar("SELECT min(due_at) FROM environments WHERE due_at IS NOT NULL")
                .fetch_one(self.database.reader())
                .await
                .map_err(failed)?;
        Ok(due.map(|due| Timestamp(due.cast_unsigned())))
    }

    async fn create_project(
        &self,
        project: &ProjectRow,
        record: &Record,
    ) -> Result<(), StoreError> {
        let mut transaction = self.database.write().await?;
        if tombstone_in(&mut transaction, project.id).await?.is_some() {
            return Err(StoreError::Conflict);
        }
        insert_project(&mut transaction, project).await?;
        insert_environment(&mut transaction, record, record.created_at).await?;
        transaction.commit().await.map_err(failed)
    }

    async fn project(
        &self,
        id: ProjectId,
    ) -> Result<Option<(ProjectRow, Vec<Loaded>)>, StoreError> {
        let mut transaction = self.read().await?;
        let row = sqlx::query("SELECT * FROM projects WHERE id = ?")
            .bind(id.to_string())
            .fetch_optional(&mut *transaction)
            .await
            .map_err(failed)?;
        let Some(row) = row else { return Ok(None) };
        let environments = environments_of(&mut transaction, id).await?;
        Ok(Some((project_row(&row)?, environments)))
    }

    async fn projects(
        &self,
        owner: &UserName,
    ) -> Result<Vec<(ProjectRow, Vec<Loaded>)>, StoreError> {
        let mut transaction = self.read().await?;
        let rows = sqlx::query("SELECT * FROM projects WHERE owner = ? ORDER BY created_at, id")
            .bind(owner.as_str())
            .fetch_all(&mut *transaction)
            .await
            .map_err(failed)?;
        let mut found = Vec::with_capacity(rows.len());
        for row in &rows {
            let project = project_row(row)?;
            let environments = environments_of(&mut transaction, project.id).await?;
            found.push((project, environments));
        }
        Ok(found)
    }

    async fn environments(&self) -> Result<Vec<EnvId>, StoreError> {
        let ids: Vec<String> = sqlx::query_scalar("SELECT id FROM environments ORDER BY id")
            .fetch_all(self.database.reader())
            .await
            .map_err(failed)?;
        ids.iter().map(|id| id.parse().map_err(failed)).collect()
    }

    async fn bury(
        &self,
        id: ProjectId,
        now: Timestamp,
        keep_until: Timestamp,
    ) -> Result<(), StoreError> {
        let mut transaction = self.database.write().await?;
        let row = sqlx::query("SELECT * FROM projects WHERE id = ?")
            .bind(id.to_string())
            .fetch_optional(&mut *transaction)
            .await
            .map_err(failed)?;
        let Some(row) = row else {
            let buried = tombstone_in(&mut transaction, id).await?.is_some();
            return if buried { Ok(()) } else { Err(StoreError::Missing) };
        };
        let environments: Vec<Record> = environments_of(&mut transaction, id)
            .await?
            .into_iter()
            .map(|loaded| loaded.record)
            .collect();
        let project = project_row(&row)?;
        let tombstone = Tombstone { project, environments, deleted_at: now, keep_until };
        sqlx::query(
            "INSERT INTO tombstones (project, owner, deleted_at, keep_until, body) \
             VALUES (?, ?, ?, ?, ?)",
        )
        .bind(id.to_string())
        .bind(tombstone.project.owner.as_str())
        .bind(number(now.0))
        .bind(number(keep_until.0))
        .bind(json(&tombstone)?)
        .execute(&mut *transaction)
        .await
        .map_err(failed)?;
        for record in &tombstone.environments {
            sqlx::query("INSERT INTO tombstone_environments (env, project) VALUES (?, ?)")
                .bind(record.id.to_string())
                .bind(id.to_string())
                .execute(&mut *transaction)
                .await
                .map_err(failed)?;
        }
        for sql in
            ["DELETE FROM environments WHERE project = ?", "DELETE FROM projects WHERE id = ?"]
        {
            sqlx::query(sql)
                .bind(id.to_string())
                .execute(&mut *transaction)
                .await
                .map_err(failed)?;
        }
        transaction.commit().await.map_err(failed)
    }

    async fn restore(&self, id: ProjectId, now: Timestamp) -> Result<(), StoreError> {
        let mut transaction = self.database.write().await?;
        let tombstone = tombstone_in(&mut transaction, id).await?;
        let tombstone = tombstone.filter(|tombstone| tombstone.keep_until > now);
        let tombstone = tombstone.ok_or(StoreError::Missing)?;
        sqlx::query("DELETE FROM tombstones WHERE project = ?")
            .bind(id.to_string())
            .execute(&mut *transaction)
            .await
            .map_err(failed)?;
        insert_project(&mut transaction, &tombstone.project).await?;
        for mut record in tombstone.environments {
            record.revive(now);
            insert_environment(&mut transaction, &record, now).await?;
        }
        transaction.commit().await.map_err(failed)
    }

    async fn tombstones(&self, owner: &UserName) -> Result<Vec<Tombstone>, StoreError> {
        let owner = owner.as_str().to_owned();
        self.tombstones_where("owner = ? ORDER BY deleted_at DESC", owner).await
    }

    async fn tombstone(&self, id: ProjectId) -> Result<Option<Tombstone>, StoreError> {
        tombstone_in(&mut self.read().await?, id).await
    }

    async fn expired(&self, now: Timestamp) -> Result<Vec<Tombstone>, StoreError> {
        self.tombstones_where("keep_until <= ? ORDER BY keep_until", number(now.0)).await
    }

    async fn purge(&self, id: ProjectId) -> Result<(), StoreError> {
        sqlx::query("DELETE FROM tombstones WHERE project = ?")
            .bind(id.to_string())
            .execute(self.database.writer())
            .await
            .map_err(failed)?;
        Ok(())
    }

    async fn unnamed(&self, ids: &[EnvId]) -> Result<Vec<EnvId>, StoreError> {
        let mut transaction = self.read().await?;
        let mut unnamed = Vec::new();
        for id in ids {
            let named: bool = sqlx::query_scalar(
                "SELECT EXISTS (SELECT 1 FROM environments WHERE id = ?1) \
                 OR EXISTS (SELECT 1 FROM tombstone_environments WHERE env = ?1)",
            )
            .bind(id.to_string())
            .fetch_one(&mut *transaction)
            .await
            .map_err(failed)?;
            if !named {
                unnamed.push(*id);
            }
        }
        Ok(unnamed)
    }
}

async fn store_leases(
    transaction: &mut Write,
    env: EnvId,
    leases: &[Lease],
) -> Result<(), StoreError> {
    sqlx::query("DELETE FROM leases WHERE env = ?")
        .bind(env.to_string())
        .execute(&mut **transaction)
        .await
        .map_err(failed)?;
    for lease in leases {
        sqlx::query(
            "INSERT INTO leases (env, holder, surface, kind, count, since, expires_at) \
             VALUES (?, ?, ?, ?, ?, ?, ?)",
        )
        .bind(env.to_string())
        .bind(lease.holder.to_string())
        .bind(lease.surface.as_str())
        .bind(lease.kind.as_str())
        .bind(i64::from(lease.count))
        .bind(number(lease.since.0))
        .bind(number(lease.expires_at.0))
        .execute(&mut **transaction)
        .await
        .map_err(failed)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use wakeful_lifecycle::testing::{MemoryStore, contract::store::store_contract};

    async fn open() -> (tempfile::TempDir, SqliteStore) {
        let dir = tempfile::tempdir().unwrap();
        let database = Database::open(&dir.path().join("wakeful.db")).await.unwrap();
        (dir, SqliteStore::new(database))
    }

    #[tokio::test]
    async fn sqlite_keeps_the_store_contract() {
        let (_dir, store) = open().await;
        store_contract(&store).await;
    }

    #[tokio::test]
    async fn memory_keeps_the_store_contract() {
        store_contract(&MemoryStore::new()).await;
    }
}
