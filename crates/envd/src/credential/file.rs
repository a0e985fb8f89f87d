//! The file that holds the sessions: `sessions.db`, SQLite, owned by this module alone.

use std::{path::Path, time::Duration};

use sqlx::{
    Row as _, SqlitePool,
    sqlite::{
        SqliteConnectOptions, SqliteJournalMode, SqlitePoolOptions, SqliteRow, SqliteSynchronous,
    },
};
use wakeful_wire::{
    Timestamp,
    host::{Denial, SessionMethod},
};

use super::{ledger::Write, refusal::CredentialError, session::Session};

/// Each migration brings the schema from its place in this list to the next; never changed once
/// released, only added to. The file's `user_version` says how many have run.
const MIGRATIONS: &[&str] = &["
CREATE TABLE signing_key (
    one INTEGER PRIMARY KEY CHECK (one = 1),
    secret BLOB NOT NULL CHECK (length(secret) = 32)
) STRICT;
CREATE TABLE sessions (
    sequence INTEGER PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,
    subject TEXT NOT NULL,
    scopes TEXT NOT NULL,
    method TEXT NOT NULL,
    key_thumbprint TEXT NOT NULL,
    label TEXT NOT NULL,
    issued_at INTEGER NOT NULL,
    expires_at INTEGER NOT NULL,
    revoked_at INTEGER,
    last_connected_at INTEGER
) STRICT;
CREATE INDEX sessions_by_end ON sessions (expires_at);
CREATE TABLE used_grants (
    id TEXT PRIMARY KEY,
    remembered_until INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
"];

/// Why the file could not be used.
#[derive(Debug, thiserror::Error)]
pub enum SessionFileError {
    /// SQLite refused.
    #[error("the session file cannot be used")]
    Sqlite(#[from] sqlx::Error),
    /// The file cannot be made its owner's alone.
    #[error("the session file cannot be restricted to its owner")]
    Restrict(#[source] std::io::Error),
    /// It holds tables that this release does not know.
    #[error("the session file was written by a newer release")]
    Newer,
    /// The task that wrote it ended early.
    #[error("the write did not finish")]
    Interrupted,
}

/// The open file.
#[derive(Debug)]
pub(super) struct SessionFile {
    pool: SqlitePool,
}

/// What a file holds when it is opened.
pub(super) struct Contents {
    pub(super) signing_key: [u8; 32],
    pub(super) sessions: Vec<Session>,
}

impl SessionFile {
    /// Opens the file, makes it if there is none, drops sessions that have run out, and reads the
    /// rest. A session that cannot be read is left out: its client connects again.
    pub(super) async fn open(
        path: &Path,
        fresh_key: [u8; 32],
        now: Timestamp,
    ) -> Result<(Self, Contents), SessionFileError> {
        let options = SqliteConnectOptions::new()
            .filename(path)
            .create_if_missing(true)
            .journal_mode(SqliteJournalMode::Wal)
            // A revocation that was answered survives a power cut.
            .synchronous(SqliteSynchronous::Full)
            .busy_timeout(Duration::from_secs(5));
        let pool = SqlitePoolOptions::new().max_connections(1).connect_with(options).await?;
        restrict(path).map_err(SessionFileError::Restrict)?;
        migrate(&pool).await?;
        sqlx::query("INSERT OR IGNORE INTO signing_key (one, secret) VALUES (1, ?)")
            .bind(fresh_key.as_slice())
            .execute(&pool)
            .await?;
        let secret: Vec<u8> =
            sqlx::query_scalar("SELECT secret FROM signing_key").fetch_one(&pool).await?;
        let signing_key = secret
            .try_into()
            .map_err(|_| sqlx::Error::Decode("the signing key has not 32 bytes".into()))?;
        sqlx::query("DELETE FROM sessions WHERE expires_at <= ?")
            .bind(stored(now))
            .execute(&pool)
            .await?;
        let rows = sqlx::query(
            "SELECT sequence, id, subject, scopes, method, key_thumbprint, label, issued_at, \
             expires_at, revoked_at, last_connected_at FROM sessions ORDER BY sequence",
        )
        .fetch_all(&pool)
        .await?;
        let mut sessions = Vec::with_capacity(rows.len());
        for row in rows {
            match read(&row)? {
                Some(session) => sessions.push(session),
                None => tracing::warn!("a session cannot be read and is left out"),
            }
        }
        Ok((Self { pool }, Contents { signing_key, sessions }))
    }

    /// Writes all of it or nothing.
    ///
    /// # Errors
    /// [`Denial::GrantUsed`] when a grant among them was used before; else when SQLite refuses.
    pub(super) async fn write(
        &self,
        writes: &[Write],
        now: Timestamp,
    ) -> Result<(), CredentialError> {
        if writes.is_empty() {
            return Ok(());
        }
        self.write_all(writes, now).await.map_err(SessionFileError::Sqlite)?.map_err(Into::into)
    }

    async fn write_all(
        &self,
        writes: &[Write],
        now: Timestamp,
    ) -> Result<Result<(), Denial>, sqlx::Error> {
        let mut transaction = self.pool.begin_with("BEGIN IMMEDIATE").await?;
        for write in writes {
            let query = match write {
                Write::Insert(session) => insert(session),
                Write::Revoke { id, at } => sqlx::query(
                    "UPDATE sessions SET revoked_at = min(coalesce(revoked_at, ?1), ?1) \
                     WHERE id = ?2",
                )
                .bind(stored(*at))
                .bind(id.to_string()),
                Write::Extend { id, expires_at } => {
                    sqlx::query("UPDATE sessions SET expires_at = max(expires_at, ?) WHERE id = ?")
                        .bind(stored(*expires_at))
                        .bind(id.to_string())
                }
                Write::Connected { id, at } => {
                    sqlx::query("UPDATE sessions SET last_connected_at = ? WHERE id = ?")
                        .bind(stored(*at))
                        .bind(id.to_string())
                }
                Write::Forget { id } => {
                    sqlx::query("DELETE FROM sessions WHERE id = ?").bind(id.to_string())
                }
                Write::UseGrant { id, remembered_until } => sqlx::query(
                    "INSERT OR IGNORE INTO used_grants (id, remembered_until) VALUES (?, ?)",
                )
                .bind(id.to_string())
                .bind(stored(*remembered_until)),
            };
            let done = query.execute(&mut *transaction).await?;
            if matches!(write, Write::UseGrant { .. }) && done.rows_affected() == 0 {
                transaction.rollback().await?;
                return Ok(Err(Denial::GrantUsed));
            }
            if matches!(write, Write::Insert(_)) {
                // Room is made where room is taken.
                sqlx::query("DELETE FROM sessions WHERE expires_at <= ?")
                    .bind(stored(now))
                    .execute(&mut *transaction)
                    .await?;
                sqlx::query("DELETE FROM used_grants WHERE remembered_until <= ?")
                    .bind(stored(now))
                    .execute(&mut *transaction)
                    .await?;
            }
        }
        transaction.commit().await?;
        Ok(Ok(()))
    }

    /// Closes the file, so that it is whole.
    pub(super) async fn close(&self) {
        self.pool.close().await;
    }
}

type Query<'q> = sqlx::query::Query<'q, sqlx::Sqlite, sqlx::sqlite::SqliteArguments>;

fn insert(session: &Session) -> Query<'_> {
    sqlx::query(
        "INSERT INTO sessions (sequence, id, subject, scopes, method, key_thumbprint, label, \
         issued_at, expires_at, revoked_at, last_connected_at) \
         VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
    )
    .bind(session.sequence.cast_signed())
    .bind(session.id.to_string())
    .bind(session.subject.as_str())
    .bind(session.scopes.to_string())
    .bind(session.method.as_str())
    .bind(session.key.to_string())
    .bind(&session.label)
    .bind(stored(session.issued_at))
    .bind(stored(session.expires_at))
    .bind(session.revoked_at.map(stored))
    .bind(session.last_connected_at.map(stored))
}

fn read(row: &SqliteRow) -> Result<Option<Session>, sqlx::Error> {
    let sequence: i64 = row.try_get("sequence")?;
    let id: String = row.try_get("id")?;
    let subject: String = row.try_get("subject")?;
    let scopes: String = row.try_get("scopes")?;
    let method: String = row.try_get("method")?;
    let key: String = row.try_get("key_thumbprint")?;
    let moment = |column: &str| row.try_get(column).map(loaded);
    let maybe = |column: &str| row.try_get(column).map(|at: Option<i64>| at.map(loaded));
    let method = match method.as_str() {
        "grant" => Some(SessionMethod::Grant),
        "pairing" => Some(SessionMethod::Pairing),
        _ => None,
    };
    let (Ok(id), Ok(subject), Ok(scopes), Some(method), Ok(key)) =
        (id.parse(), subject.parse(), scopes.parse(), method, key.parse())
    else {
        return Ok(None);
    };
    Ok(Some(Session {
        id,
        sequence: sequence.cast_unsigned(),
        subject,
        scopes,
        method,
        key,
        label: row.try_get("label")?,
        issued_at: moment("issued_at")?,
        expires_at: moment("expires_at")?,
        revoked_at: maybe("revoked_at")?,
        last_connected_at: maybe("last_connected_at")?,
    }))
}

/// SQLite's integers are signed; whatever lies beyond them is the end of time.
fn stored(at: Timestamp) -> i64 {
    i64::try_from(at.0).unwrap_or(i64::MAX)
}

fn loaded(at: i64) -> Timestamp {
    Timestamp(u64::try_from(at).unwrap_or_default())
}

/// The file holds the key that signs tokens: it is for its owner alone.
fn restrict(path: &Path) -> std::io::Result<()> {
    use std::os::unix::fs::PermissionsExt as _;
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o600))
}

async fn migrate(pool: &SqlitePool) -> Result<(), SessionFileError> {
    let mut transaction = pool.begin_with("BEGIN IMMEDIATE").await?;
    let done: i64 = sqlx::query_scalar("PRAGMA user_version").fetch_one(&mut *transaction).await?;
    let done = usize::try_from(done).map_err(|_| SessionFileError::Newer)?;
    if done > MIGRATIONS.len() {
        return Err(SessionFileError::Newer);
    }
    for migration in &MIGRATIONS[done..] {
        sqlx::raw_sql(*migration).execute(&mut *transaction).await?;
    }
    let version = MIGRATIONS.len();
    sqlx::raw_sql(sqlx::AssertSqlSafe(format!("PRAGMA user_version = {version}")))
        .execute(&mut *transaction)
        .await?;
    Ok(transaction.commit().await?)
}
