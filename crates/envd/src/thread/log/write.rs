//! Adding events.

use sqlx::{QueryBuilder, Sqlite, Transaction};
use wakeful_wire::rpc::{Event, EventBody};

use super::{Log, LogError, key, number, stored};

/// How many rows one statement adds.
const ROWS: usize = 128;

/// An event ready to be written.
#[derive(Debug)]
pub(crate) struct Row<'a> {
    pub(crate) event: &'a Event,
    pub(crate) body: &'a str,
}

impl Log {
    /// Adds events, all or none. When this returns, they survive a power cut.
    ///
    /// # Errors
    /// If the database fails. Whether the events are in the log is then unknown; reading it tells.
    pub(crate) async fn commit(&self, rows: &[Row<'_>]) -> Result<(), LogError> {
        let mut transaction = self.writer.begin_with("BEGIN IMMEDIATE").await?;
        for some in rows.chunks(ROWS) {
            let mut insert =
                QueryBuilder::<Sqlite>::new("INSERT INTO events (seq, at, thread, body) ");
            insert.push_values(some, |mut row, Row { event, body }| {
                row.push_bind(stored(event.seq))
                    .push_bind(number(event.at.0))
                    .push_bind(event.thread.map(key))
                    .push_bind(*body);
            });
            insert.build().execute(&mut *transaction).await?;
        }
        for Row { event, .. } in rows {
            index(&mut transaction, event).await?;
        }
        transaction.commit().await?;
        Ok(())
    }
}

/// Keeps what is found by other ways than an event's number.
async fn index(
    transaction: &mut Transaction<'static, Sqlite>,
    event: &Event,
) -> Result<(), LogError> {
    let Some(thread) = event.thread.map(key) else { return Ok(()) };
    let at = stored(event.seq);
    if let EventBody::PromptQueued { prompt } = &event.body {
        sqlx::query("INSERT OR IGNORE INTO prompts (client, thread, seq) VALUES (?, ?, ?)")
            .bind(prompt.client.uuid().as_bytes().to_vec())
            .bind(thread)
            .bind(at)
            .execute(&mut **transaction)
            .await?;
    } else if let EventBody::TurnStarted { segment, .. } = &event.body {
        sqlx::query("INSERT OR REPLACE INTO segments (thread, number, first) VALUES (?, ?, ?)")
            .bind(thread)
            .bind(*segment)
            .bind(at)
            .execute(&mut **transaction)
            .await?;
    } else if matches!(event.body, EventBody::ThreadCreated { .. }) {
        forget_segments(transaction, &thread).await?;
        sqlx::query("INSERT INTO segments (thread, number, first) VALUES (?, 0, ?)")
            .bind(thread)
            .bind(at)
            .execute(&mut **transaction)
            .await?;
    } else if matches!(event.body, EventBody::Deleted {}) {
        sqlx::query("INSERT OR REPLACE INTO purge (thread, below) VALUES (?, ?)")
            .bind(thread)
            .bind(at)
            .execute(&mut **transaction)
            .await?;
    }
    Ok(())
}

/// Removes what was derived of a thread's content.
pub(super) async fn forget_segments(
    transaction: &mut Transaction<'static, Sqlite>,
    thread: &[u8],
) -> Result<(), LogError> {
    sqlx::query(
        "DELETE FROM words WHERE rowid IN (SELECT id FROM segments WHERE thread = ? AND body IS \
         NOT NULL)",
    )
    .bind(thread.to_vec())
    .execute(&mut **transaction)
    .await?;
    sqlx::query("DELETE FROM segments WHERE thread = ?")
        .bind(thread.to_vec())
        .execute(&mut **transaction)
        .await?;
    Ok(())
}
