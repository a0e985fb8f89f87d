//! The database file: connections and migrations.

use std::{path::Path, time::Duration};

use sqlx::{
    Connection as _, SqlitePool,
    sqlite::{SqliteConnectOptions, SqliteJournalMode, SqlitePoolOptions, SqliteSynchronous},
};
use wakeful_lifecycle::port::StoreError;
use wakeful_wire::Timestamp;

use crate::clock::Anchor;

/// Each migration brings the schema from its place in this list to the next; never changed once
/// released, only added to. The file's `user_version` says how many have run.
const MIGRATIONS: &[&str] = &[
    include_str!("../../migrations/0001_environments.sql"),
    include_str!("../../migrations/0002_accounts.sql"),
    include_str!("../../migrations/0003_prompts.sql"),
];

/// How many readers at once.
const READERS: u32 = 4;

/// The database file: one writer, a few readers (WAL).
#[derive(Debug, Clone)]
pub struct Database {
    writer: SqlitePool,
    reader: SqlitePool,
}

pub(crate) fn failed(error: impl std::fmt::Display) -> StoreError {
    StoreError::Failed(error.to_string())
}

impl Database {
    /// Opens the file, makes it if there is none, and brings its schema up to date.
    ///
    /// # Errors
    /// When it cannot be opened, or was written by a newer release.
    pub async fn open(path: &Path) -> Result<Self, StoreError> {
        let options = SqliteConnectOptions::new()
            .filename(path)
            .create_if_missing(true)
            .journal_mode(SqliteJournalMode::Wal)
            // A commit that was answered survives a power cut.
            .synchronous(SqliteSynchronous::Full)
            .foreign_keys(true)
            .busy_timeout(Duration::from_secs(5));
        let writer = SqlitePoolOptions::new()
            .max_connections(1)
            .connect_with(options.clone())
            .await
            .map_err(failed)?;
        restrict(path)?;
        migrate(&writer).await?;
        let reader = SqlitePoolOptions::new()
            .max_connections(READERS)
            .connect_with(options.read_only(true))
            .await
            .map_err(failed)?;
        Ok(Self { writer, reader })
    }

    /// The one writing connection. A transaction on it is begun with `BEGIN IMMEDIATE`
    /// ([`Self::write`]), so that it never has to give up half-way.
    #[must_use]
    pub const fn writer(&self) -> &SqlitePool {
        &self.writer
    }

    /// Connections that read.
    #[must_use]
    pub const fn reader(&self) -> &SqlitePool {
        &self.reader
    }

    /// A writing transaction; rolled back unless committed.
    ///
    /// # Errors
    /// When the database cannot be written.
    pub async fn write(&self) -> Result<sqlx::Transaction<'static, sqlx::Sqlite>, StoreError> {
        self.writer.begin_with("BEGIN IMMEDIATE").await.map_err(failed)
    }

    /// Where the platform's clock was last pinned.
    ///
    /// # Errors
    /// When the database cannot be read.
    pub async fn anchor(&self) -> Result<Option<Anchor>, StoreError> {
        let row: Option<(String, i64, i64)> =
            sqlx::query_as("SELECT boot_id, boot_ms, time_ms FROM clock_anchor")
                .fetch_optional(&self.reader)
                .await
                .map_err(failed)?;
        Ok(row.map(|(boot_id, boot_ms, time)| Anchor {
            boot_id,
            boot_ms: boot_ms.cast_unsigned(),
            time: Timestamp(time.cast_unsigned()),
        }))
    }

    /// Keeps where the platform's clock is pinned.
    ///
    /// # Errors
    /// When the database cannot be written.
    pub async fn set_anchor(&self, anchor: &Anchor) -> Result<(), StoreError> {
        sqlx::query(
            "INSERT INTO clock_anchor (one, boot_id, boot_ms, time_ms) VALUES (1, ?, ?, ?) \
             ON CONFLICT (one) DO UPDATE SET boot_id = excluded.boot_id, \
             boot_ms = excluded.boot_ms, time_ms = excluded.time_ms",
        )
        .bind(&anchor.boot_id)
        .bind(anchor.boot_ms.cast_signed())
        .bind(anchor.time.0.cast_signed())
        .execute(&self.writer)
        .await
        .map_err(failed)?;
        Ok(())
    }

    /// Closes every connection, so that the file is whole.
    pub async fn close(&self) {
        self.reader.close().await;
        self.writer.close().await;
    }
}

/// The file holds token hashes and sandbox secrets: it is for its owner alone.
fn restrict(path: &Path) -> Result<(), StoreError> {
    use std::os::unix::fs::PermissionsExt as _;
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o600)).map_err(failed)
}

async fn migrate(writer: &SqlitePool) -> Result<(), StoreError> {
    let mut connection = writer.acquire().await.map_err(failed)?;
    let mut transaction = connection.begin_with("BEGIN IMMEDIATE").await.map_err(failed)?;
    let done: i64 = sqlx::query_scalar("PRAGMA user_version")
        .fetch_one(&mut *transaction)
        .await
        .map_err(failed)?;
    let done = usize::try_from(done).map_err(failed)?;
    if done > MIGRATIONS.len() {
        return Err(StoreError::Failed(
            "this data directory was written by a newer release of Wakeful".into(),
        ));
    }
    for migration in &MIGRATIONS[done..] {
        sqlx::raw_sql(*migration).execute(&mut *transaction).await.map_err(failed)?;
    }
    let version = MIGRATIONS.len();
    sqlx::raw_sql(sqlx::AssertSqlSafe(format!("PRAGMA user_version = {version}")))
        .execute(&mut *transaction)
        .await
        .map_err(failed)?;
    transaction.commit().await.map_err(failed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_database_opens_again_and_keeps_its_anchor() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("wakeful.db");
        let anchor = Anchor { boot_id: "b".into(), boot_ms: 5, time: Timestamp(7) };
        let database = Database::open(&path).await.unwrap();
        assert_eq!(database.anchor().await.unwrap(), None);
        database.set_anchor(&anchor).await.unwrap();
        database.close().await;
        let database = Database::open(&path).await.unwrap();
        assert_eq!(database.anchor().await.unwrap(), Some(anchor));
    }

    #[tokio::test]
    async fn a_file_of_a_newer_release_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("wakeful.db");
        let database = Database::open(&path).await.unwrap();
        sqlx::raw_sql("PRAGMA user_version = 9999").execute(database.writer()).await.unwrap();
        database.close().await;
        assert!(Database::open(&path).await.is_err());
    }
}
