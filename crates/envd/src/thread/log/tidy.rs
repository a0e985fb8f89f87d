//! What is derived when there is time: saved segments and their words, checkpoints, and the removal
//! of deleted threads' events.

use serde::{Deserialize, Serialize};
use sqlx::Row as _;
use wakeful_wire::rpc::{EventBody, ItemBody, Role, Segment, Seq, ThreadId};

use super::{Log, LogError, REDUCER, key, page, read::recorded, stored, thread, write};
use crate::thread::{
    state::{Epochs, Remembered, State},
    view::View,
};

/// How many bytes of a segment's text can be found.
const WORDS_MAX: usize = 128 * 1024;

/// How many events one step of a removal takes away.
const PURGE_STEP: i64 = 500;

/// What is saved of the host itself.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct HostBody {
    #[serde(default)]
    pub(super) epochs: Epochs,
    #[serde(default)]
    pub(super) remembered: Remembered,
}

impl Log {
    /// Saves the state of the threads in `changed`, which are all that changed since the last
    /// checkpoint. State and view are at the same head, and nothing is being written.
    pub(crate) async fn checkpoint(
        &self,
        state: &State,
        changed: Vec<(ThreadId, Seq, String)>,
    ) -> Result<(), LogError> {
        let host = HostBody { epochs: state.epochs.clone(), remembered: state.remembered.clone() };
        let body = serde_json::to_string(&host)?;
        let mut transaction = self.writer.begin_with("BEGIN IMMEDIATE").await?;
        for (id, at, body) in changed {
            sqlx::query("INSERT OR REPLACE INTO threads (thread, changed, body) VALUES (?, ?, ?)")
                .bind(key(id))
                .bind(stored(at))
                .bind(body)
                .execute(&mut *transaction)
                .await?;
        }
        sqlx::query(
            "INSERT OR REPLACE INTO host (one, checkpoint, reducer, body) VALUES (1, ?, ?, ?)",
        )
        .bind(stored(state.head()))
        .bind(REDUCER)
        .bind(body)
        .execute(&mut *transaction)
        .await?;
        transaction.commit().await?;
        Ok(())
    }

    /// Saves a segment as it is by now, and its words.
    pub(crate) async fn seal(&self, id: ThreadId, number: u32) -> Result<(), LogError> {
        let mut transaction = self.writer.begin_with("BEGIN IMMEDIATE").await?;
        let rows = page::segments(&mut transaction, id, number, 1).await?;
        let Some(row) = rows.into_iter().find(|row| row.number == number) else { return Ok(()) };
        let through: Option<i64> = sqlx::query_scalar(
            "SELECT max(seq) FROM events WHERE thread = ?1 AND seq < \
                coalesce((SELECT first FROM segments WHERE thread = ?1 AND number = ?2), \
                9223372036854775807)",
        )
        .bind(key(id))
        .bind(number + 1)
        .fetch_one(&mut *transaction)
        .await?;
        let segment = page::whole(&mut transaction, id, &row).await?;
        sqlx::query("UPDATE segments SET through = ?, body = ? WHERE id = ?")
            .bind(through.unwrap_or_default())
            .bind(serde_json::to_string(&segment)?)
            .bind(row.id)
            .execute(&mut *transaction)
            .await?;
        sqlx::query("DELETE FROM words WHERE rowid = ?")
            .bind(row.id)
            .execute(&mut *transaction)
            .await?;
        sqlx::query("INSERT INTO words (rowid, text) VALUES (?, ?)")
            .bind(row.id)
            .bind(words(&segment))
            .execute(&mut *transaction)
            .await?;
        transaction.commit().await?;
        Ok(())
    }

    /// Segments that were never saved although a later one has begun: a crash came between.
    pub(crate) async fn unsealed(&self, limit: i64) -> Result<Vec<(ThreadId, u32)>, LogError> {
        let rows = sqlx::query(
            "SELECT thread, number FROM segments AS one WHERE body IS NULL AND EXISTS (SELECT 1 \
             FROM segments AS next WHERE next.thread = one.thread AND next.number = one.number + \
             1) ORDER BY id LIMIT ?",
        )
        .bind(limit)
        .fetch_all(&self.reader)
        .await?;
        let mut found = Vec::new();
        for row in rows {
            let owner: &[u8] = row.try_get("thread")?;
            if let Some(id) = thread(owner) {
                found.push((id, row.try_get("number")?));
            }
        }
        Ok(found)
    }

    /// Removes some of what deleted threads left behind. Returns whether there may be more.
    pub(crate) async fn purge(&self) -> Result<bool, LogError> {
        let mut transaction = self.writer.begin_with("BEGIN IMMEDIATE").await?;
        let next: Option<(Vec<u8>, i64)> =
            sqlx::query_as("SELECT thread, below FROM purge ORDER BY below LIMIT 1")
                .fetch_optional(&mut *transaction)
                .await?;
        let Some((owner, below)) = next else { return Ok(false) };
        let rows = sqlx::query(
            "SELECT seq, at, thread, body FROM events WHERE thread = ? AND seq < ? AND body NOT \
             LIKE '{\"kind\":\"thread_created\"%' ORDER BY seq LIMIT ?",
        )
        .bind(&owner)
        .bind(below)
        .bind(PURGE_STEP)
        .fetch_all(&mut *transaction)
        .await?;
        if rows.is_empty() {
            self.bury(&mut transaction, &owner, below).await?;
        } else {
            for row in &rows {
                let number: i64 = row.try_get("seq")?;
                sqlx::query("DELETE FROM events WHERE seq = ?")
                    .bind(number)
                    .execute(&mut *transaction)
                    .await?;
            }
        }
        transaction.commit().await?;
        Ok(true)
    }

    /// The last step of a removal: the titles of its creations, its content, and the task itself.
    async fn bury(
        &self,
        transaction: &mut sqlx::Transaction<'static, sqlx::Sqlite>,
        owner: &[u8],
        below: i64,
    ) -> Result<(), LogError> {
        let rows =
            sqlx::query("SELECT seq, at, thread, body FROM events WHERE thread = ? AND seq < ?")
                .bind(owner.to_vec())
                .bind(below)
                .fetch_all(&mut **transaction)
                .await?;
        for row in &rows {
            let number: i64 = row.try_get("seq")?;
            let mut event = recorded(row)?.event;
            if let EventBody::ThreadCreated { title, .. } = &mut event.body {
                *title = None;
                sqlx::query("UPDATE events SET body = ? WHERE seq = ?")
                    .bind(serde_json::to_string(&event.body)?)
                    .bind(number)
                    .execute(&mut **transaction)
                    .await?;
            }
        }
        // An id that was made anew has segments of its own by now.
        let anew: Option<i64> = sqlx::query_scalar(
            "SELECT 1 FROM segments WHERE thread = ? AND number = 0 AND first > ?",
        )
        .bind(owner.to_vec())
        .bind(below)
        .fetch_optional(&mut **transaction)
        .await?;
        if anew.is_none() {
            write::forget_segments(transaction, owner).await?;
        }
        sqlx::query("DELETE FROM purge WHERE thread = ? AND below = ?")
            .bind(owner.to_vec())
            .bind(below)
            .execute(&mut **transaction)
            .await?;
        Ok(())
    }
}

/// What is saved of threads at a checkpoint: those that changed, or whose row was touched, since
/// the one before; each with when its row last changed.
pub(crate) fn saved(
    state: &State,
    view: &View,
    since: Seq,
) -> Result<Vec<(ThreadId, Seq, String)>, LogError> {
    let mut rows = Vec::new();
    for (id, entry) in &state.threads {
        let at = view.shell().changed_at(*id).unwrap_or(entry.thread.seq);
        if entry.thread.seq > since || at > since {
            rows.push((*id, at, serde_json::to_string(entry.as_ref())?));
        }
    }
    Ok(rows)
}

/// What can be found of a segment: what people and agents said.
fn words(segment: &Segment) -> String {
    let mut all = String::new();
    for item in &segment.items {
        let text = match &item.body {
            ItemBody::Prompt { prompt } => prompt.plain(),
            ItemBody::Text { role: Role::Agent | Role::User, text } => text.clone(),
            ItemBody::Tool { tool } => tool.title.clone(),
            ItemBody::Text { .. }
            | ItemBody::Terminal { .. }
            | ItemBody::Plan { .. }
            | ItemBody::Notice { .. }
            | ItemBody::Permission { .. }
            | ItemBody::Unknown => continue,
        };
        if all.len() + text.len() > WORDS_MAX {
            break;
        }
        all.push_str(&text);
        all.push('\n');
    }
    all
}
