//! The file of the cache.

use std::{
    fs, io,
    os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _},
    path::Path,
    time::Duration,
};

use anyhow::Context as _;
use sqlx::{
    SqlitePool,
    sqlite::{SqliteConnectOptions, SqliteJournalMode, SqlitePoolOptions, SqliteSynchronous},
};

/// Each migration brings the schema from its place in this list to the next; never changed once
/// released, only added to. The file's `user_version` says how many have run.
const MIGRATIONS: &[&str] = &[
    include_str!("../../migrations/0001_cache.sql"),
    include_str!("../../migrations/0002_confirmed.sql"),
];

/// How long a write waits for another program's.
const BUSY_TIME: Duration = Duration::from_secs(5);

const NAME: &str = "cache.sqlite3";

/// Opens the file in a directory, and begins a new one where it cannot be used.
pub(super) async fn open(directory: &Path) -> anyhow::Result<SqlitePool> {
    let file = directory.join(NAME);
    let unusable = || format!("{} cannot be used", file.display());
    private(directory, &file).with_context(unusable)?;
    match usable(&file).await {
        Ok(pool) => Ok(pool),
        Err(error) => {
            tracing::warn!(%error, file = %file.display(), "the cache is begun anew");
            put_aside(directory).with_context(unusable)?;
            private(directory, &file).with_context(unusable)?;
            usable(&file).await.with_context(unusable)
        }
    }
}

/// A directory and a file that only their owner may read, also where the file is there already.
fn private(directory: &Path, file: &Path) -> io::Result<()> {
    use fs::Permissions;
    use std::os::unix::fs::PermissionsExt as _;

    fs::DirBuilder::new().recursive(true).mode(0o700).create(directory)?;
    fs::OpenOptions::new().create(true).truncate(false).write(true).mode(0o600).open(file)?;
    fs::set_permissions(file, Permissions::from_mode(0o600))
}

/// Renames the file and what belongs to it, over whatever was put aside before.
fn put_aside(directory: &Path) -> io::Result<()> {
    for ending in ["", "-wal", "-shm"] {
        let from = directory.join(format!("{NAME}{ending}"));
        match fs::rename(&from, directory.join(format!("{NAME}.bad{ending}"))) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            Ok(()) | Err(_) => {}
        }
    }
    Ok(())
}

async fn usable(file: &Path) -> anyhow::Result<SqlitePool> {
    let options = SqliteConnectOptions::new()
        .filename(file)
        .journal_mode(SqliteJournalMode::Wal)
        // A copy that a power cut takes is loaded anew.
        .synchronous(SqliteSynchronous::Normal)
        .busy_timeout(BUSY_TIME);
    let pool = SqlitePoolOptions::new().max_connections(2).connect_with(options).await?;
    match migrate(&pool).await {
        Ok(()) => Ok(pool),
        Err(error) => {
            pool.close().await;
            Err(error)
        }
    }
}

async fn migrate(pool: &SqlitePool) -> anyhow::Result<()> {
    let mut transaction = pool.begin_with("BEGIN IMMEDIATE").await?;
    let done: i64 = sqlx::query_scalar("PRAGMA user_version").fetch_one(&mut *transaction).await?;
    let done = usize::try_from(done).unwrap_or(usize::MAX);
    let missing = MIGRATIONS.get(done..).context("it is of a newer release")?;
    for migration in missing {
        sqlx::raw_sql(*migration).execute(&mut *transaction).await?;
    }
    let version = MIGRATIONS.len();
    sqlx::query(sqlx::AssertSqlSafe(format!("PRAGMA user_version = {version}")))
        .execute(&mut *transaction)
        .await?;
    transaction.commit().await?;
    // A broken page may be found only when it is read.
    let sound: String = sqlx::query_scalar("PRAGMA quick_check(1)").fetch_one(pool).await?;
    anyhow::ensure!(sound == "ok", "{sound}");
    Ok(())
}
