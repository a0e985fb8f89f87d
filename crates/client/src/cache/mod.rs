//! What a client keeps between two runs, in one SQLite file: lists and threads as they were, each
//! with its position as one value, and what belongs to a host alone.
//!
//! Lists and threads are copies: losing them costs a load. So the file is written without waiting
//! for the disk, one that cannot be used is put aside, and a value that cannot be read counts as not
//! there. Two programs of one person may use the file at once; of two writes the later one stands.

mod file;
mod owned;

#[cfg(test)]
mod tests;

use std::{path::Path, sync::Arc};

use serde::{Serialize, de::DeserializeOwned};
use sqlx::{Row as _, SqlitePool, sqlite::SqliteRow};
use wakeful_wire::{HostId, Timestamp, rpc::ThreadId};

/// Most bytes of all threads. Beyond, those that were used least recently go.
pub const THREAD_BYTES_MAX: i64 = 256 << 20;
/// Most threads.
pub const THREADS_MAX: i64 = 2_000;
/// Most bytes of one value. A longer one is not kept.
pub const VALUE_MAX: usize = 64 << 20;

/// Why something was not kept or read.
#[derive(Debug, Clone, thiserror::Error)]
pub enum CacheError {
    /// The file cannot be used.
    #[error("the cache cannot be used: {0}")]
    Database(Arc<sqlx::Error>),
    /// The value is longer than [`VALUE_MAX`], or not one that JSON can hold.
    #[error("it cannot be kept: {0}")]
    Value(String),
}

impl From<sqlx::Error> for CacheError {
    fn from(error: sqlx::Error) -> Self {
        Self::Database(Arc::new(error))
    }
}

/// The cache of this installation. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Cache {
    pool: SqlitePool,
}

impl Cache {
    /// Opens the cache in a directory, which is made for its owner alone if there is none. A file
    /// that is broken, or of a newer release, is put aside and a new one begun.
    ///
    /// # Errors
    /// Neither works.
    pub async fn open(directory: &Path) -> anyhow::Result<Self> {
        Ok(Self { pool: file::open(directory).await? })
    }

    /// Ends every connection to the file.
    pub async fn close(&self) {
        self.pool.close().await;
    }

    /// The list of a host.
    ///
    /// # Errors
    /// [`CacheError::Database`].
    pub async fn shell<T: DeserializeOwned>(&self, host: HostId) -> Result<Option<T>, CacheError> {
        let row = sqlx::query("SELECT value FROM shells WHERE host = ?")
            .bind(key(host))
            .fetch_optional(&self.pool)
            .await?;
        Ok(row.and_then(|row| value(&row)))
    }

    /// Puts this in the place of the list of a host.
    ///
    /// # Errors
    /// [`CacheError`]; the former one stands.
    pub async fn save_shell(&self, host: HostId, shell: &impl Serialize) -> Result<(), CacheError> {
        sqlx::query("INSERT INTO shells (host, value) VALUES (?, ?) ON CONFLICT DO UPDATE SET value = excluded.value")
            .bind(key(host))
            .bind(bytes(shell)?)
            .execute(&self.pool)
            .await?;
        Ok(())
    }

    /// When the list of a host was last noted to be what the host has.
    ///
    /// # Errors
    /// [`CacheError::Database`].
    pub async fn shell_confirmed_at(&self, host: HostId) -> Result<Option<Timestamp>, CacheError> {
        let at: Option<i64> = sqlx::query_scalar("SELECT confirmed_at FROM shells WHERE host = ?")
            .bind(key(host))
            .fetch_optional(&self.pool)
            .await?;
        Ok(at.and_then(|at| u64::try_from(at).ok()).filter(|at| *at > 0).map(Timestamp))
    }

    /// Notes that the list of a host, where one is kept, is what the host has at this moment.
    ///
    /// # Errors
    /// [`CacheError::Database`].
    pub async fn confirm_shell(&self, host: HostId, now: Timestamp) -> Result<(), CacheError> {
        sqlx::query("UPDATE shells SET confirmed_at = ? WHERE host = ?")
            .bind(stamp(now))
            .bind(key(host))
            .execute(&self.pool)
            .await?;
        Ok(())
    }

    /// A thread, which counts as used now.
    ///
    /// # Errors
    /// [`CacheError::Database`].
    pub async fn thread<T: DeserializeOwned>(
        &self,
        host: HostId,
        thread: ThreadId,
        now: Timestamp,
    ) -> Result<Option<T>, CacheError> {
        let row = sqlx::query(
            "UPDATE threads SET used_at = ? WHERE host = ? AND thread = ? RETURNING value",
        )
        .bind(stamp(now))
        .bind(key(host))
        .bind(thread.to_string())
        .fetch_optional(&self.pool)
        .await?;
        Ok(row.and_then(|row| value(&row)))
    }

    /// Puts this in the place of a thread. What was used least recently goes, where there is too
    /// much.
    ///
    /// # Errors
    /// [`CacheError`]; the former one stands.
    pub async fn save_thread(
        &self,
        host: HostId,
        thread: ThreadId,
        held: &impl Serialize,
        now: Timestamp,
    ) -> Result<(), CacheError> {
        let held = bytes(held)?;
        let mut transaction = self.pool.begin_with("BEGIN IMMEDIATE").await?;
        sqlx::query(
            "INSERT INTO threads (host, thread, value, bytes, used_at) VALUES (?, ?, ?, ?, ?)
             ON CONFLICT DO UPDATE SET
                value = excluded.value, bytes = excluded.bytes, used_at = excluded.used_at",
        )
        .bind(key(host))
        .bind(thread.to_string())
        .bind(&held)
        .bind(i64::try_from(held.len()).unwrap_or(i64::MAX))
        .bind(stamp(now))
        .execute(&mut *transaction)
        .await?;
        sqlx::query(
            "DELETE FROM threads WHERE rowid IN (
                SELECT rowid FROM (
                    SELECT rowid,
                        row_number() OVER newest AS place, sum(bytes) OVER newest AS together
                    FROM threads WINDOW newest AS (ORDER BY used_at DESC, rowid DESC)
                ) WHERE place > ? OR together > ?
            )",
        )
        .bind(THREADS_MAX)
        .bind(THREAD_BYTES_MAX)
        .execute(&mut *transaction)
        .await?;
        transaction.commit().await?;
        Ok(())
    }

    /// Removes a thread.
    ///
    /// # Errors
    /// [`CacheError::Database`].
    pub async fn forget_thread(&self, host: HostId, thread: ThreadId) -> Result<(), CacheError> {
        sqlx::query("DELETE FROM threads WHERE host = ? AND thread = ?")
            .bind(key(host))
            .bind(thread.to_string())
            .execute(&self.pool)
            .await?;
        Ok(())
    }
}

fn key(host: HostId) -> String {
    host.to_string()
}

fn stamp(at: Timestamp) -> i64 {
    i64::try_from(at.0).unwrap_or(i64::MAX)
}

fn bytes(value: &impl Serialize) -> Result<Vec<u8>, CacheError> {
    let bytes = serde_json::to_vec(value).map_err(|error| CacheError::Value(error.to_string()))?;
    if bytes.len() > VALUE_MAX {
        return Err(CacheError::Value("it is too long".to_owned()));
    }
    Ok(bytes)
}

/// A value that was written by this release or by one that it understands.
fn value<T: DeserializeOwned>(row: &SqliteRow) -> Option<T> {
    serde_json::from_slice(row.try_get("value").ok()?).ok()
}
