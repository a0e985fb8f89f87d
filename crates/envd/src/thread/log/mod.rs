//! The log on the workspace: SQLite, one writer, append-only.
//!
//! - **Durable means synced.** Every commit is followed by a sync before it is answered
//!   (`synchronous = FULL` in WAL mode). What makes streaming cheap is that many small events share
//!   a commit, never that a commit is not waited for.
//! - **A torn write is absent.** Events of one decision are in one transaction; a crash leaves all
//!   of them or none.
//! - **One writer.** The lock file is held for as long as the log is open, so two daemons never
//!   write one log.
//! - **Everything but `events` and `prompts` is derived** and can be made again: saved threads, so
//!   that opening reads only what came after the checkpoint; segments, so that a page costs what it
//!   shows; words, for searching. They are written when nothing waits, and reading is right at
//!   every moment between.
//! - **A deleted thread's events go**, in small steps. What stays is its creation, without its
//!   title, and its deletion, from which alone its state derives.

mod load;
mod page;
mod read;
mod tidy;
mod write;

use std::{
    fs::{File, OpenOptions},
    io,
    os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _},
    path::{Path, PathBuf},
    time::Duration,
};

use parking_lot::Mutex;
use rustix::fs::FlockOperation;
use sqlx::{
    SqlitePool,
    sqlite::{SqliteConnectOptions, SqliteJournalMode, SqlitePoolOptions, SqliteSynchronous},
};
use wakeful_wire::rpc::{Seq, ThreadId};

pub use load::Loaded;
pub use page::PageLimits;
pub(crate) use read::FRAME_WEIGHT;
pub use read::{Found, Gap};
pub(crate) use tidy::saved;
pub(crate) use write::Row;

/// Each migration brings the schema from its place in this list to the next.
const MIGRATIONS: &[&str] = &[include_str!("schema.sql")];

/// Raised when the rules by which saved threads are derived change: then they are derived anew.
const REDUCER: i64 = 1;

/// How many readers at once.
const READERS: u32 = 3;

/// The directory of the workspace in which the log is.
pub const DIRECTORY: &str = ".wakeful";
/// The log's file name.
pub const FILE: &str = "threads.db";

/// Why the log cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum LogError {
    /// Another process has it open.
    #[error("another process has the thread log open")]
    Held,
    /// It was written by a newer release.
    #[error("the thread log was written by a newer release of Wakeful")]
    Newer,
    /// Its directory or lock file cannot be used.
    #[error("the directory of the thread log cannot be used")]
    Directory(#[source] io::Error),
    /// The database failed.
    #[error("the thread log cannot be read or written")]
    Database(#[from] sqlx::Error),
    /// A derived value cannot be read or written.
    #[error("the thread log holds something unreadable")]
    Value(#[from] serde_json::Error),
}

/// The log of one host.
#[derive(Debug)]
pub struct Log {
    writer: SqlitePool,
    reader: SqlitePool,
    path: PathBuf,
    lock: Mutex<Option<File>>,
}

impl Log {
    /// Opens the log of a workspace, makes it if there is none, and brings its schema up to date.
    ///
    /// # Errors
    /// If another process has it open, a newer release wrote it, or it cannot be used.
    pub async fn open(workspace: &Path) -> Result<Self, LogError> {
        let directory = workspace.join(DIRECTORY);
        std::fs::DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(&directory)
            .map_err(LogError::Directory)?;
        let lock = lock(&directory.join("threads.lock"))?;
        let path = directory.join(FILE);
        let options = SqliteConnectOptions::new()
            .filename(&path)
            .create_if_missing(true)
            .journal_mode(SqliteJournalMode::Wal)
            .synchronous(SqliteSynchronous::Full)
            .busy_timeout(Duration::from_secs(2));
        let writer =
            SqlitePoolOptions::new().max_connections(1).connect_with(options.clone()).await?;
        migrate(&writer).await?;
        let reader = SqlitePoolOptions::new()
            .max_connections(READERS)
            .connect_with(options.read_only(true))
            .await?;
        Ok(Self { writer, reader, path, lock: Mutex::new(Some(lock)) })
    }

    /// Where it is.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Closes every connection, so that the file is whole, and gives the lock back.
    pub async fn close(&self) {
        self.reader.close().await;
        self.writer.close().await;
        self.lock.lock().take();
    }
}

fn lock(path: &Path) -> Result<File, LogError> {
    let file = OpenOptions::new()
        .create(true)
        .truncate(false)
        .write(true)
        .mode(0o600)
        .open(path)
        .map_err(LogError::Directory)?;
    match rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => Ok(file),
        Err(rustix::io::Errno::WOULDBLOCK) => Err(LogError::Held),
        Err(error) => Err(LogError::Directory(error.into())),
    }
}

async fn migrate(writer: &SqlitePool) -> Result<(), LogError> {
    let mut transaction = writer.begin_with("BEGIN IMMEDIATE").await?;
    let done: i64 = sqlx::query_scalar("PRAGMA user_version").fetch_one(&mut *transaction).await?;
    let done = usize::try_from(done).unwrap_or(usize::MAX);
    if done > MIGRATIONS.len() {
        return Err(LogError::Newer);
    }
    for migration in MIGRATIONS.iter().skip(done) {
        sqlx::raw_sql(*migration).execute(&mut *transaction).await?;
    }
    let version = MIGRATIONS.len();
    sqlx::raw_sql(sqlx::AssertSqlSafe(format!("PRAGMA user_version = {version}")))
        .execute(&mut *transaction)
        .await?;
    transaction.commit().await?;
    Ok(())
}

/// A number as it is stored. Sequences and times are far below 2^63.
fn number(value: u64) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}

fn stored(seq: Seq) -> i64 {
    number(seq.0)
}

fn seq(value: i64) -> Seq {
    Seq(u64::try_from(value).unwrap_or_default())
}

fn key(id: ThreadId) -> Vec<u8> {
    id.uuid().as_bytes().to_vec()
}

fn thread(key: &[u8]) -> Option<ThreadId> {
    uuid::Uuid::from_slice(key).ok().map(ThreadId::from_uuid)
}
