//! Kept prompts in the database.

use sqlx::{Row as _, sqlite::SqliteRow};
use wakeful_lifecycle::port::StoreError;
use wakeful_wire::{
    EnvId, Problem, Timestamp,
    api::PromptState,
    rpc::{ClientId, Seq, ThreadId},
};

use super::admit::Admitted;
use crate::store::{Database, database::failed};

/// The most prompts that wait for one environment. More are refused.
pub const WAITING_MAX: u32 = 100;

/// The most prompts that are kept and remembered for one environment. At more, the oldest that is
/// settled is forgotten.
pub const ROWS_MAX: u32 = 1_000;

/// A kept prompt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Row {
    /// Its place in the order of acceptance.
    pub(super) seq: i64,
    /// The prompt.
    pub(super) client: ClientId,
    /// Its thread.
    pub(super) thread: ThreadId,
    /// What became of it.
    pub(super) state: PromptState,
    /// When it was accepted.
    pub(super) created_at: Timestamp,
    /// The event that took it.
    pub(super) taken: Option<Seq>,
    /// Why it was refused.
    pub(super) problem: Option<Problem>,
}

/// What came of keeping a prompt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Kept {
    /// It is kept now.
    Now(Row),
    /// It was kept before.
    Before(Row),
    /// Another prompt has its id.
    Another,
    /// Too many wait.
    Full,
    /// The environment has been deleted.
    NoEnvironment,
}

/// How a prompt was settled.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Settled {
    /// The host took it with this event.
    Delivered(Seq),
    /// The host refused it.
    Refused(Problem),
}

const ROW: &str = "SELECT seq, client, thread, state, created_at, taken, problem, digest \
                   FROM prompts WHERE env = ?";

fn row(row: &SqliteRow) -> Result<Row, StoreError> {
    let text = |column: &str| row.try_get::<String, _>(column).map_err(failed);
    let created_at: i64 = row.try_get("created_at").map_err(failed)?;
    let taken: Option<i64> = row.try_get("taken").map_err(failed)?;
    let problem: Option<String> = row.try_get("problem").map_err(failed)?;
    Ok(Row {
        seq: row.try_get("seq").map_err(failed)?,
        client: text("client")?.parse().map_err(failed)?,
        thread: text("thread")?.parse().map_err(failed)?,
        state: match text("state")?.as_str() {
            "waiting" => PromptState::Waiting,
            "delivered" => PromptState::Delivered,
            "refused" => PromptState::Refused,
            _ => PromptState::Other,
        },
        created_at: Timestamp(created_at.cast_unsigned()),
        taken: taken.map(|seq| Seq(seq.cast_unsigned())),
        problem: problem.map(|text| serde_json::from_str(&text)).transpose().map_err(failed)?,
    })
}

/// The table of kept prompts.
#[derive(Debug, Clone)]
pub(super) struct PromptStore {
    database: Database,
}

impl PromptStore {
    pub(super) const fn new(database: Database) -> Self {
        Self { database }
    }

    /// Keeps a prompt, durably, unless it is kept already.
    pub(super) async fn keep(
        &self,
        env: EnvId,
        client: ClientId,
        prompt: &Admitted,
        now: Timestamp,
    ) -> Result<Kept, StoreError> {
        let mut transaction = self.database.write().await?;
        let before = sqlx::query(sqlx::AssertSqlSafe(format!("{ROW} AND client = ?")))
            .bind(env.to_string())
            .bind(client.to_string())
            .fetch_optional(&mut *transaction)
            .await
            .map_err(failed)?;
        if let Some(before) = before {
            let digest: Vec<u8> = before.try_get("digest").map_err(failed)?;
            let same = digest == prompt.digest;
            return if same { row(&before).map(Kept::Before) } else { Ok(Kept::Another) };
        }
        let (known, all, waiting): (bool, i64, i64) = sqlx::query_as(
            "SELECT EXISTS (SELECT 1 FROM environments WHERE id = ?1), \
             (SELECT count(*) FROM prompts WHERE env = ?1), \
             (SELECT count(*) FROM prompts WHERE env = ?1 AND state = 'waiting')",
        )
        .bind(env.to_string())
        .fetch_one(&mut *transaction)
        .await
        .map_err(failed)?;
        if !known {
            return Ok(Kept::NoEnvironment);
        }
        if waiting >= i64::from(WAITING_MAX) {
            return Ok(Kept::Full);
        }
        sqlx::query(
            "DELETE FROM prompts WHERE seq IN (SELECT seq FROM prompts WHERE env = ? \
             AND state != 'waiting' ORDER BY seq LIMIT ?)",
        )
        .bind(env.to_string())
        .bind((all + 1 - i64::from(ROWS_MAX)).max(0))
        .execute(&mut *transaction)
        .await
        .map_err(failed)?;
        let seq: i64 = sqlx::query_scalar(
            "INSERT INTO prompts (env, client, thread, digest, call, state, created_at) \
             VALUES (?, ?, ?, ?, ?, 'waiting', ?) RETURNING seq",
        )
        .bind(env.to_string())
        .bind(client.to_string())
        .bind(prompt.thread.to_string())
        .bind(&prompt.digest)
        .bind(&prompt.call)
        .bind(now.0.cast_signed())
        .fetch_one(&mut *transaction)
        .await
        .map_err(failed)?;
        transaction.commit().await.map_err(failed)?;
        Ok(Kept::Now(Row {
            seq,
            client,
            thread: prompt.thread,
            state: PromptState::Waiting,
            created_at: now,
            taken: None,
            problem: None,
        }))
    }

    /// A prompt, with the digest of what was asked.
    pub(super) async fn find(
        &self,
        env: EnvId,
        client: ClientId,
    ) -> Result<Option<(Row, Vec<u8>)>, StoreError> {
        let found = sqlx::query(sqlx::AssertSqlSafe(format!("{ROW} AND client = ?")))
            .bind(env.to_string())
            .bind(client.to_string())
            .fetch_optional(self.database.reader())
            .await
            .map_err(failed)?;
        let Some(found) = found else { return Ok(None) };
        Ok(Some((row(&found)?, found.try_get("digest").map_err(failed)?)))
    }

    /// An environment's prompts, oldest first.
    pub(super) async fn list(&self, env: EnvId) -> Result<Vec<Row>, StoreError> {
        let rows = sqlx::query(sqlx::AssertSqlSafe(format!("{ROW} ORDER BY seq")))
            .bind(env.to_string())
            .fetch_all(self.database.reader())
            .await
            .map_err(failed)?;
        rows.iter().map(row).collect()
    }

    /// Removes a prompt that waits. False when there is none such.
    pub(super) async fn withdraw(&self, env: EnvId, client: ClientId) -> Result<bool, StoreError> {
        let removed =
            sqlx::query("DELETE FROM prompts WHERE env = ? AND client = ? AND state = 'waiting'")
                .bind(env.to_string())
                .bind(client.to_string())
                .execute(self.database.writer())
                .await
                .map_err(failed)?;
        Ok(removed.rows_affected() > 0)
    }

    /// The first prompt that waits for an environment.
    pub(super) async fn head(&self, env: EnvId) -> Result<Option<(i64, ClientId)>, StoreError> {
        let found: Option<(i64, String)> = sqlx::query_as(
            "SELECT seq, client FROM prompts WHERE env = ? AND state = 'waiting' \
             ORDER BY seq LIMIT 1",
        )
        .bind(env.to_string())
        .fetch_optional(self.database.reader())
        .await
        .map_err(failed)?;
        let Some((seq, client)) = found else { return Ok(None) };
        Ok(Some((seq, client.parse().map_err(failed)?)))
    }

    /// The call of a prompt, while it waits.
    pub(super) async fn call(&self, seq: i64) -> Result<Option<String>, StoreError> {
        let call: Option<Option<String>> =
            sqlx::query_scalar("SELECT call FROM prompts WHERE seq = ? AND state = 'waiting'")
                .bind(seq)
                .fetch_optional(self.database.reader())
                .await
                .map_err(failed)?;
        Ok(call.flatten())
    }

    /// Writes what became of a prompt that waited. What it said is not kept any longer.
    pub(super) async fn settle(
        &self,
        seq: i64,
        settled: &Settled,
        now: Timestamp,
    ) -> Result<(), StoreError> {
        let (state, taken, problem) = match settled {
            Settled::Delivered(seq) => ("delivered", Some(seq.0.cast_signed()), None),
            Settled::Refused(problem) => {
                ("refused", None, Some(serde_json::to_string(problem).map_err(failed)?))
            }
        };
        sqlx::query(
            "UPDATE prompts SET state = ?, taken = ?, problem = ?, settled_at = ?, call = NULL \
             WHERE seq = ? AND state = 'waiting'",
        )
        .bind(state)
        .bind(taken)
        .bind(problem)
        .bind(now.0.cast_signed())
        .bind(seq)
        .execute(self.database.writer())
        .await
        .map_err(failed)?;
        Ok(())
    }

    /// Every environment for which prompts wait.
    pub(super) async fn environments(&self) -> Result<Vec<EnvId>, StoreError> {
        let found: Vec<String> =
            sqlx::query_scalar("SELECT DISTINCT env FROM prompts WHERE state = 'waiting'")
                .fetch_all(self.database.reader())
                .await
                .map_err(failed)?;
        found.iter().map(|text| text.parse().map_err(failed)).collect()
    }

    /// Forgets what was settled before this moment.
    pub(super) async fn forget(&self, before: Timestamp) -> Result<u64, StoreError> {
        let removed =
            sqlx::query("DELETE FROM prompts WHERE settled_at IS NOT NULL AND settled_at < ?")
                .bind(before.0.cast_signed())
                .execute(self.database.writer())
                .await
                .map_err(failed)?;
        Ok(removed.rows_affected())
    }
}
