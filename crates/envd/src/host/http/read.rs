//! Reads of threads, as `wakeful_wire::rpc::read` lists them.
//!
//! Every one needs [`Scope::Read`] and changes nothing; none counts as use of the host.

use axum::{
    http::{StatusCode, header},
    response::Response,
};
use serde::Deserialize;
use wakeful_wire::{
    Timestamp,
    host::Scope,
    rpc::{
        Counts, FoundText, Omissions, PageCursor, RowCursor, Rows, SearchAnswer, Seq, ThreadAnswer,
        ThreadId,
    },
};

use super::{
    admit::{Asked, invalid},
    answer::{self, Refusal},
    etag,
};
use crate::{
    host::problem,
    thread::{
        ThreadsError,
        limits::{ROWS_PAGE_MAX, SEARCH_MAX},
        log::PageLimits,
        shell,
    },
};

/// Rows of a page of which no other number was asked for.
const ROWS: usize = 50;

/// Answers `GET /shell`. A tag of `If-None-Match` that still stands is answered with 304 and
/// itself.
///
/// # Errors
/// Whatever is wrong with the request.
pub(super) fn shell(asked: &Asked) -> Result<Response, Refusal> {
    asked.session(Scope::Read)?;
    let omit: Omissions = asked.query()?;
    let held = etag::held(&asked.head.headers, omit);
    let snapshot = asked.host.parts().threads.shell(omit, held);
    let cursor = snapshot.as_ref().map(|snapshot| snapshot.cursor).or(held).unwrap_or_default();
    let mut response = snapshot.map_or_else(
        || answer::empty(StatusCode::NOT_MODIFIED),
        |snapshot| answer::json(&snapshot),
    );
    if let Some(tag) = etag::value(cursor, omit) {
        response.headers_mut().insert(header::ETAG, tag);
    }
    Ok(response)
}

/// Answers `GET /shell/counts`.
///
/// # Errors
/// Whatever is wrong with the request.
pub(super) fn counts(asked: &Asked) -> Result<Response, Refusal> {
    asked.session(Scope::Read)?;
    let (seq, older_settled) = asked.host.parts().threads.older_settled();
    Ok(answer::json(&Counts { seq, older_settled }))
}

/// Answers `GET /shell/settled`.
///
/// # Errors
/// Whatever is wrong with the request.
pub(super) fn settled(asked: &Asked) -> Result<Response, Refusal> {
    asked.session(Scope::Read)?;
    let (before, limit) = asked.query::<RowsQuery>()?.read()?;
    Ok(answer::json(&rows(asked.host.parts().threads.settled(before, limit))))
}

/// Answers `GET /shell/archived`.
///
/// # Errors
/// Whatever is wrong with the request.
pub(super) fn archived(asked: &Asked) -> Result<Response, Refusal> {
    asked.session(Scope::Read)?;
    let (before, limit) = asked.query::<RowsQuery>()?.read()?;
    Ok(answer::json(&rows(asked.host.parts().threads.archived(before, limit))))
}

/// Answers `GET /search`. Words of nothing but space find nothing.
///
/// # Errors
/// Whatever is wrong with the request.
pub(super) async fn search(asked: &Asked) -> Result<Response, Refusal> {
    asked.session(Scope::Read)?;
    let query: SearchQuery = asked.query()?;
    if query.q.len() > SEARCH_MAX {
        return Err(invalid(format!("The search text `q` may have {SEARCH_MAX} bytes.")));
    }
    let searched = asked.host.parts().threads.search(&query.q, bounded(query.limit)).await;
    let (found_rows, found) = searched.map_err(|error| problem(&error))?;
    let found = found
        .into_iter()
        .map(|found| FoundText {
            thread: found.thread,
            segment: found.segment,
            excerpt: found.excerpt,
        })
        .collect();
    Ok(answer::json(&SearchAnswer { seq: found_rows.seq, rows: found_rows.rows, found }))
}

/// Answers `GET /threads/{id}`.
///
/// # Errors
/// Whatever is wrong with the request.
pub(super) async fn thread(asked: &Asked, thread: ThreadId) -> Result<Response, Refusal> {
    asked.session(Scope::Read)?;
    let limits = page_limits(asked.query::<TurnsQuery>()?.turns, PageLimits::FIRST);
    let threads = &asked.host.parts().threads;
    // Before the thread is read: what is published in between is in the thread, and comes once more
    // to who subscribes with this cursor, who then ignores it. The other way round it would be
    // missed.
    let cursor = threads.cursor();
    let detail = threads.detail(thread, limits).await.map_err(|error| problem(&error))?;
    Ok(answer::json(&ThreadAnswer { cursor, detail }))
}

/// Answers `GET /threads/{id}/page`.
///
/// # Errors
/// Whatever is wrong with the request.
pub(super) async fn page(asked: &Asked, thread: ThreadId) -> Result<Response, Refusal> {
    asked.session(Scope::Read)?;
    let query: PageQuery = asked.query()?;
    let before = PageCursor { created: query.created, segment: query.segment, item: query.item };
    let limits = page_limits(query.turns, PageLimits::FURTHER);
    let page = asked.host.parts().threads.page(thread, before, limits).await;
    Ok(answer::json(&page.map_err(|error| problem(&error))?))
}

/// Answers `GET /threads/{id}/family`.
///
/// # Errors
/// Whatever is wrong with the request.
pub(super) fn family(asked: &Asked, thread: ThreadId) -> Result<Response, Refusal> {
    asked.session(Scope::Read)?;
    let family = asked.host.parts().threads.family(thread);
    let family = family.map_err(|refused| problem(&ThreadsError::Refused(refused)))?;
    Ok(answer::json(&rows(family)))
}

/// The beginning of a page of rows.
#[derive(Debug, Default, Deserialize)]
struct RowsQuery {
    at: Option<Timestamp>,
    thread: Option<ThreadId>,
    limit: Option<usize>,
}

impl RowsQuery {
    fn read(self) -> Result<(Option<shell::RowKey>, usize), Refusal> {
        let before = match (self.at, self.thread) {
            (Some(at), Some(thread)) => Some((at, thread)),
            (None, None) => None,
            (Some(_), None) | (None, Some(_)) => {
                return Err(invalid("Send both `at` and `thread` of the page before, or neither."));
            }
        };
        Ok((before, bounded(self.limit)))
    }
}

#[derive(Debug, Deserialize)]
struct SearchQuery {
    q: String,
    limit: Option<usize>,
}

#[derive(Debug, Deserialize)]
struct TurnsQuery {
    turns: Option<usize>,
}

#[derive(Debug, Deserialize)]
struct PageQuery {
    created: Seq,
    segment: u32,
    item: u32,
    turns: Option<usize>,
}

/// As many rows as were asked for, within bounds.
fn bounded(limit: Option<usize>) -> usize {
    limit.unwrap_or(ROWS).clamp(1, ROWS_PAGE_MAX)
}

/// As many turns as were asked for, within bounds.
fn page_limits(turns: Option<usize>, otherwise: PageLimits) -> PageLimits {
    turns.map_or(otherwise, PageLimits::turns)
}

fn rows(rows: shell::Rows) -> Rows {
    let next = rows.next.map(|(at, thread)| RowCursor { at, thread });
    Rows { seq: rows.seq, rows: rows.rows, next }
}
