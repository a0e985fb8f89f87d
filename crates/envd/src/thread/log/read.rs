//! Reading events, and finding words.

use futures::TryStreamExt as _;
use sqlx::{Row as _, sqlite::SqliteRow};
use wakeful_wire::{
    Timestamp,
    rpc::{Event, EventBody, Seq, ThreadId, UnknownBody},
};

use super::{Log, LogError, key, seq, stored, thread};
use crate::thread::{
    limits::{ROWS_PAGE_MAX, SEARCH_MAX},
    view::Recorded,
};

/// What an event weighs beside its body, as JSON.
pub(crate) const FRAME_WEIGHT: usize = 96;

/// How much a thread has after a position.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Gap {
    /// Events; counted no further than one beyond what was asked.
    pub events: usize,
    /// About how many bytes they are as JSON.
    pub bytes: usize,
}

/// A place where the words of a search stand.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Found {
    /// The thread.
    pub thread: ThreadId,
    /// The newest segment of it that holds them.
    pub segment: u32,
    /// The words among their neighbours.
    pub excerpt: String,
}

/// The event of a row. A body that cannot be read becomes one of unknown kind, so that one bad row
/// never closes a log.
pub(super) fn recorded(row: &SqliteRow) -> Result<Recorded, sqlx::Error> {
    let body: &str = row.try_get("body")?;
    let at: i64 = row.try_get("at")?;
    let owner: Option<&[u8]> = row.try_get("thread")?;
    let number = seq(row.try_get("seq")?);
    let weight = body.len() + FRAME_WEIGHT;
    let body = serde_json::from_str(body).unwrap_or_else(|error| {
        tracing::warn!(%number, %error, "an event of the thread log cannot be read");
        EventBody::Unknown(UnknownBody::unreadable())
    });
    let at = Timestamp(u64::try_from(at).unwrap_or_default());
    let event = Event { seq: number, at, thread: owner.and_then(thread), body };
    Ok(Recorded::new(event, weight))
}

/// Takes rows until there are `bytes`; the one that reaches them is the last.
async fn take(
    mut rows: impl futures::Stream<Item = Result<SqliteRow, sqlx::Error>> + Unpin,
    bytes: usize,
) -> Result<Vec<Recorded>, LogError> {
    let (mut found, mut sum) = (Vec::new(), 0_usize);
    while let Some(row) = rows.try_next().await? {
        let next = recorded(&row)?;
        sum = sum.saturating_add(next.weight());
        found.push(next);
        if sum >= bytes {
            break;
        }
    }
    Ok(found)
}

impl Log {
    /// The newest event.
    ///
    /// # Errors
    /// If the database fails.
    pub async fn head(&self) -> Result<Seq, LogError> {
        let head: Option<i64> =
            sqlx::query_scalar("SELECT max(seq) FROM events").fetch_one(&self.reader).await?;
        Ok(head.map(seq).unwrap_or_default())
    }

    /// Events after a position: at most `limit`, or about `bytes`, but one if there is one.
    ///
    /// # Errors
    /// If the database fails.
    pub async fn since(
        &self,
        after: Seq,
        limit: usize,
        bytes: usize,
    ) -> Result<Vec<Recorded>, LogError> {
        let rows = sqlx::query(
            "SELECT seq, at, thread, body FROM events WHERE seq > ? ORDER BY seq LIMIT ?",
        )
        .bind(stored(after))
        .bind(i64::try_from(limit).unwrap_or(i64::MAX))
        .fetch(&self.reader);
        take(rows, bytes).await
    }

    /// Events of a thread after a position: at most `limit`, or about `bytes`, but one if there is
    /// one.
    ///
    /// # Errors
    /// If the database fails.
    pub async fn thread_since(
        &self,
        id: ThreadId,
        after: Seq,
        limit: usize,
        bytes: usize,
    ) -> Result<Vec<Recorded>, LogError> {
        let rows = sqlx::query(
            "SELECT seq, at, thread, body FROM events WHERE thread = ? AND seq > ? ORDER BY seq \
             LIMIT ?",
        )
        .bind(key(id))
        .bind(stored(after))
        .bind(i64::try_from(limit).unwrap_or(i64::MAX))
        .fetch(&self.reader);
        take(rows, bytes).await
    }

    /// How much a thread has after a position, counted to one more than `limit` events.
    ///
    /// # Errors
    /// If the database fails.
    pub async fn gap(&self, id: ThreadId, after: Seq, limit: usize) -> Result<Gap, LogError> {
        let limit = i64::try_from(limit).unwrap_or(i64::MAX - 1) + 1;
        let (events, bytes): (i64, i64) = sqlx::query_as(
            "SELECT count(*), coalesce(sum(size), 0) FROM (SELECT octet_length(body) AS size FROM \
             events WHERE thread = ? AND seq > ? ORDER BY seq LIMIT ?)",
        )
        .bind(key(id))
        .bind(stored(after))
        .bind(limit)
        .fetch_one(&self.reader)
        .await?;
        let events = usize::try_from(events).unwrap_or_default();
        let bytes = usize::try_from(bytes).unwrap_or(usize::MAX);
        Ok(Gap { events, bytes: bytes.saturating_add(events * FRAME_WEIGHT) })
    }

    /// Threads whose texts hold every word, the last one as a beginning; newest place first, one
    /// place per thread, at most `limit`. A turn is found when it has ended.
    ///
    /// # Errors
    /// If the database fails.
    pub async fn search(&self, text: &str, limit: usize) -> Result<Vec<Found>, LogError> {
        let Some(query) = words(text) else { return Ok(Vec::new()) };
        let limit = limit.clamp(1, ROWS_PAGE_MAX);
        let mut rows = sqlx::query(
            "SELECT segments.thread, segments.number, snippet(words, 0, '', '', '…', 16) AS \
             excerpt FROM words JOIN segments ON segments.id = words.rowid WHERE words MATCH ? \
             ORDER BY words.rowid DESC LIMIT 1000",
        )
        .bind(query)
        .fetch(&self.reader);
        let mut found: Vec<Found> = Vec::new();
        while let Some(row) = rows.try_next().await? {
            let owner: &[u8] = row.try_get("thread")?;
            let Some(thread) = thread(owner) else { continue };
            if found.iter().any(|found| found.thread == thread) {
                continue;
            }
            let segment: i64 = row.try_get("number")?;
            let excerpt = row.try_get("excerpt")?;
            let segment = u32::try_from(segment).unwrap_or_default();
            found.push(Found { thread, segment, excerpt });
            if found.len() >= limit {
                break;
            }
        }
        Ok(found)
    }
}

/// A search text as a query: every word, the last one as a beginning. Nothing is an operator.
fn words(text: &str) -> Option<String> {
    let end = (0..=text.len().min(SEARCH_MAX)).rev().find(|at| text.is_char_boundary(*at))?;
    let mut query = String::new();
    for word in text[..end].split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()) {
        if !query.is_empty() {
            query.push(' ');
        }
        query.push('"');
        query.push_str(word);
        query.push('"');
    }
    if query.is_empty() {
        return None;
    }
    query.push('*');
    Some(query)
}

#[cfg(test)]
mod tests {
    use super::words;

    #[test]
    fn nothing_in_a_search_text_is_an_operator() {
        let table = [
            ("one two", Some("\"one\" \"two\"*")),
            ("a\" OR b*", Some("\"a\" \"OR\" \"b\"*")),
            ("  -x:^y ", Some("\"x\" \"y\"*")),
            ("\"*()", None),
            ("", None),
        ];
        for (text, query) in table {
            assert_eq!(words(text).as_deref(), query, "{text}");
        }
        assert!(words(&"é".repeat(10_000)).unwrap().len() < 1_000);
    }
}
