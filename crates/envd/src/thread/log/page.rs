//! Reading a thread's content.

use futures::TryStreamExt as _;
use sqlx::{Row as _, Sqlite, Transaction};
use wakeful_wire::rpc::{Detail, Page, PageCursor, Segment, Seq, ThreadId};

use super::{Log, LogError, key, read::recorded, seq, stored};
use crate::thread::{
    limits::{FIRST_PAGE_TURNS, PAGE_BYTES_MAX, PAGE_TURNS, PAGE_TURNS_MAX},
    state::Entry,
};

/// How much a page may hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PageLimits {
    /// Turns.
    pub turns: usize,
    /// Bytes, as JSON; one item may exceed it.
    pub bytes: usize,
}

impl PageLimits {
    /// The page that a snapshot brings.
    pub const FIRST: Self = Self { turns: FIRST_PAGE_TURNS, bytes: PAGE_BYTES_MAX };
    /// A further page.
    pub const FURTHER: Self = Self { turns: PAGE_TURNS, bytes: PAGE_BYTES_MAX };

    /// As many turns as were asked for, within bounds.
    #[must_use]
    pub fn turns(turns: usize) -> Self {
        Self { turns: turns.clamp(1, PAGE_TURNS_MAX), bytes: PAGE_BYTES_MAX }
    }
}

/// One row of `segments`.
#[derive(Debug)]
pub(super) struct Stored {
    pub(super) id: i64,
    pub(super) number: u32,
    first: Seq,
    through: Seq,
    body: Option<String>,
}

impl Log {
    /// A thread with its newest page, at one sequence. `entry` is the thread as it was at some
    /// moment before; what the log holds beyond it is applied. Nothing if the thread is gone.
    ///
    /// # Errors
    /// If the database fails.
    pub async fn detail(
        &self,
        entry: &Entry,
        limits: PageLimits,
    ) -> Result<Option<Detail>, LogError> {
        let mut read = self.reader.begin().await?;
        let mut thread = entry.thread.clone();
        {
            let mut rows = sqlx::query(
                "SELECT seq, at, thread, body FROM events WHERE thread = ? AND seq > ? ORDER BY seq",
            )
            .bind(key(thread.id))
            .bind(stored(thread.seq))
            .fetch(&mut *read);
            while let Some(row) = rows.try_next().await? {
                thread.apply(&recorded(&row)?.event);
            }
        }
        if thread.deleted {
            return Ok(None);
        }
        let mut page = page_in(&mut read, thread.id, thread.created, None, limits).await?;
        page.seq = thread.seq;
        Ok(Some(Detail::new(thread, page)))
    }

    /// The page of a thread before a cursor; nothing if the cursor is of an earlier thread of the
    /// same id, or the thread is gone.
    ///
    /// # Errors
    /// If the database fails.
    pub async fn page(
        &self,
        id: ThreadId,
        before: PageCursor,
        limits: PageLimits,
    ) -> Result<Option<Page>, LogError> {
        let mut read = self.reader.begin().await?;
        let created: Option<i64> =
            sqlx::query_scalar("SELECT first FROM segments WHERE thread = ? AND number = 0")
                .bind(key(id))
                .fetch_optional(&mut *read)
                .await?;
        if created.map(seq) != Some(before.created) {
            return Ok(None);
        }
        let newest: Option<i64> =
            sqlx::query_scalar("SELECT max(seq) FROM events WHERE thread = ?")
                .bind(key(id))
                .fetch_one(&mut *read)
                .await?;
        let mut page = page_in(&mut read, id, before.created, Some(before), limits).await?;
        page.seq = newest.map(seq).unwrap_or_default();
        Ok(Some(page))
    }
}

async fn page_in(
    read: &mut Transaction<'static, Sqlite>,
    id: ThreadId,
    created: Seq,
    before: Option<PageCursor>,
    limits: PageLimits,
) -> Result<Page, LogError> {
    let top = match before {
        None => u32::MAX,
        // Nothing of that segment is before its first item.
        Some(PageCursor { segment, item: 0, .. }) => match segment.checked_sub(1) {
            Some(top) => top,
            None => return Ok(Page::default()),
        },
        Some(before) => before.segment,
    };
    // One segment beyond tells whether there is more.
    let many = limits.turns.saturating_add(1);
    let rows = segments(read, id, top, many).await?;
    let mut page = Page::default();
    let mut bytes = 0_usize;
    for (place, row) in rows.iter().enumerate() {
        if place >= limits.turns || bytes >= limits.bytes {
            page.before = Some(PageCursor { created, segment: row.number + 1, item: 0 });
            break;
        }
        let mut segment = whole(read, id, row).await?;
        if let Some(before) = before.filter(|before| before.segment == row.number) {
            segment.items.truncate(usize::try_from(before.item).unwrap_or(usize::MAX));
        }
        let first = first_that_fits(&segment, &mut bytes, limits.bytes)?;
        segment.skip_to(first);
        page.segments.push(segment);
        if first > 0 {
            page.before = Some(PageCursor { created, segment: row.number, item: first });
            break;
        }
    }
    page.segments.reverse();
    Ok(page)
}

/// The first item of a segment's end that fits into what is left of a page.
fn first_that_fits(segment: &Segment, bytes: &mut usize, max: usize) -> Result<u32, LogError> {
    for (place, item) in segment.items.iter().enumerate().rev() {
        if *bytes >= max {
            return Ok(u32::try_from(place + 1).unwrap_or(u32::MAX));
        }
        *bytes += serde_json::to_string(item)?.len();
    }
    Ok(0)
}

/// Rows of segments from number `top` downwards.
pub(super) async fn segments(
    read: &mut Transaction<'static, Sqlite>,
    id: ThreadId,
    top: u32,
    limit: usize,
) -> Result<Vec<Stored>, LogError> {
    let rows = sqlx::query(
        "SELECT id, number, first, through, body FROM segments WHERE thread = ? AND number <= ? \
         ORDER BY number DESC LIMIT ?",
    )
    .bind(key(id))
    .bind(top)
    .bind(i64::try_from(limit).unwrap_or(i64::MAX))
    .fetch_all(&mut **read)
    .await?;
    let stored = |row: &sqlx::sqlite::SqliteRow| -> Result<Stored, sqlx::Error> {
        Ok(Stored {
            id: row.try_get("id")?,
            number: row.try_get("number")?,
            first: seq(row.try_get("first")?),
            through: seq(row.try_get("through")?),
            body: row.try_get("body")?,
        })
    };
    Ok(rows.iter().map(stored).collect::<Result<_, _>>()?)
}

/// A segment with everything that the log holds of it.
pub(super) async fn whole(
    read: &mut Transaction<'static, Sqlite>,
    id: ThreadId,
    row: &Stored,
) -> Result<Segment, LogError> {
    let saved = row.body.as_deref().and_then(|body| serde_json::from_str(body).ok());
    let (mut segment, after) = match saved {
        Some(segment) => (segment, row.through),
        None => (Segment::new(row.number), Seq(row.first.0.saturating_sub(1))),
    };
    let end: Option<i64> =
        sqlx::query_scalar("SELECT first FROM segments WHERE thread = ? AND number = ?")
            .bind(key(id))
            .bind(row.number + 1)
            .fetch_optional(&mut **read)
            .await?;
    let mut rows = sqlx::query(
        "SELECT seq, at, thread, body FROM events WHERE thread = ? AND seq > ? AND seq < ? ORDER \
         BY seq",
    )
    .bind(key(id))
    .bind(stored(after))
    .bind(end.unwrap_or(i64::MAX))
    .fetch(&mut **read);
    while let Some(row) = rows.try_next().await? {
        segment.apply(&recorded(&row)?.event);
    }
    Ok(segment)
}
