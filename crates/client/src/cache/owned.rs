//! What belongs to a host and is nobody's copy: its entry, drafts, prompts on their way. It is kept
//! through every loss of a connection and deleted when the host is removed.

use serde::{Serialize, de::DeserializeOwned};
use sqlx::{Row as _, sqlite::SqliteRow};
use wakeful_wire::HostId;

use super::{Cache, CacheError, bytes, key, value};

impl Cache {
    /// A value of a host.
    ///
    /// # Errors
    /// [`CacheError::Database`].
    pub async fn owned<T: DeserializeOwned>(
        &self,
        host: HostId,
        name: &str,
    ) -> Result<Option<T>, CacheError> {
        let row = sqlx::query("SELECT value FROM owned WHERE host = ? AND key = ?")
            .bind(key(host))
            .bind(name)
            .fetch_optional(&self.pool)
            .await?;
        Ok(row.and_then(|row| value(&row)))
    }

    /// Every value of that name, by host.
    ///
    /// # Errors
    /// [`CacheError::Database`].
    pub async fn owned_by_all<T: DeserializeOwned>(
        &self,
        name: &str,
    ) -> Result<Vec<(HostId, T)>, CacheError> {
        let rows = sqlx::query("SELECT host, value FROM owned WHERE key = ?")
            .bind(name)
            .fetch_all(&self.pool)
            .await?;
        let one = |row: SqliteRow| {
            let host: String = row.try_get("host").ok()?;
            Some((host.parse().ok()?, value(&row)?))
        };
        Ok(rows.into_iter().filter_map(one).collect())
    }

    /// Keeps a value of a host, in the place of the former one of that name. Durable when it
    /// returns.
    ///
    /// # Errors
    /// [`CacheError`]; the former one stands.
    pub async fn keep_owned(
        &self,
        host: HostId,
        name: &str,
        value: &impl Serialize,
    ) -> Result<(), CacheError> {
        let mut connection = self.pool.acquire().await?;
        sqlx::query("PRAGMA synchronous = FULL").execute(&mut *connection).await?;
        let kept = sqlx::query(
            "INSERT INTO owned (host, key, value) VALUES (?, ?, ?)
             ON CONFLICT DO UPDATE SET value = excluded.value",
        )
        .bind(key(host))
        .bind(name)
        .bind(bytes(value)?)
        .execute(&mut *connection)
        .await;
        sqlx::query("PRAGMA synchronous = NORMAL").execute(&mut *connection).await?;
        kept?;
        Ok(())
    }

    /// Removes a value of a host. With `clear_follows` the same step notes that everything else of
    /// the host is to be deleted, so that [`Self::doomed`] knows after a crash.
    ///
    /// # Errors
    /// [`CacheError::Database`]; then nothing has changed.
    pub async fn remove_owned(
        &self,
        host: HostId,
        name: &str,
        clear_follows: bool,
    ) -> Result<(), CacheError> {
        let mut transaction = self.pool.begin_with("BEGIN IMMEDIATE").await?;
        sqlx::query("DELETE FROM owned WHERE host = ? AND key = ?")
            .bind(key(host))
            .bind(name)
            .execute(&mut *transaction)
            .await?;
        if clear_follows {
            sqlx::query("INSERT OR IGNORE INTO doomed (host) VALUES (?)")
                .bind(key(host))
                .execute(&mut *transaction)
                .await?;
        }
        transaction.commit().await?;
        Ok(())
    }

    /// Hosts whose data are still to be deleted.
    ///
    /// # Errors
    /// [`CacheError::Database`].
    pub async fn doomed(&self) -> Result<Vec<HostId>, CacheError> {
        let rows: Vec<String> =
            sqlx::query_scalar("SELECT host FROM doomed").fetch_all(&self.pool).await?;
        Ok(rows.into_iter().filter_map(|host| host.parse().ok()).collect())
    }

    /// Deletes everything of a host, and the note that this is to be done.
    ///
    /// # Errors
    /// [`CacheError::Database`]; then nothing has changed.
    pub async fn clear(&self, host: HostId) -> Result<(), CacheError> {
        let mut transaction = self.pool.begin_with("BEGIN IMMEDIATE").await?;
        for statement in [
            "DELETE FROM shells WHERE host = ?",
            "DELETE FROM threads WHERE host = ?",
            "DELETE FROM owned WHERE host = ?",
            "DELETE FROM doomed WHERE host = ?",
        ] {
            sqlx::query(statement).bind(key(host)).execute(&mut *transaction).await?;
        }
        transaction.commit().await?;
        Ok(())
    }
}
