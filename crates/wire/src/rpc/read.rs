//! What a host answers to reads over HTTP.
//!
//! | request below the host's address | answer |
//! |---|---|
//! | `GET shell?families=true&older_settled=true` | [`ShellSnapshot`](super::ShellSnapshot), with an `ETag`; 304 while the list is what the tag stood for |
//! | `GET shell/counts` | [`Counts`] |
//! | `GET shell/settled`, `GET shell/archived`, each `?at=…&thread=…&limit=…` | [`Rows`] |
//! | `GET search?q=…&limit=…` | [`SearchAnswer`] |
//! | `GET threads/{id}?turns=…` | [`ThreadAnswer`] |
//! | `GET threads/{id}/page?created=…&segment=…&item=…&turns=…` | [`Page`](super::Page) |
//! | `GET threads/{id}/family` | [`Rows`] |
//! | `GET sessions` | [`SessionList`] |

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::{Cursor, Detail, OlderSettled, Seq, ShellRow, ThreadId};
use crate::{
    Timestamp,
    host::{SessionEvent, SessionView},
};

/// Where a page of rows goes on: below this moment and thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct RowCursor {
    /// When the row above was settled or archived.
    pub at: Timestamp,
    /// Its thread.
    pub thread: ThreadId,
}

/// Rows that were read on demand, newest first.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Rows {
    /// What they are at: a client orders them by it against what it hears from the stream.
    pub seq: Seq,
    /// The rows.
    pub rows: Vec<Arc<ShellRow>>,
    /// Where to go on; absent: there are no more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<RowCursor>,
}

/// How many settled threads are below what a snapshot keeps.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Counts {
    /// What they are at.
    pub seq: Seq,
    /// The cut and the counts.
    pub older_settled: OlderSettled,
}

/// A thread with its newest page.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ThreadAnswer {
    /// A subscription can begin with this.
    pub cursor: Cursor,
    /// The thread.
    pub detail: Detail,
}

/// Threads that hold the words that were searched for: titles first, then texts, newest first.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SearchAnswer {
    /// What the rows are at.
    pub seq: Seq,
    /// The threads' rows.
    pub rows: Vec<Arc<ShellRow>>,
    /// Where in their texts the words are.
    pub found: Vec<FoundText>,
}

/// Words in a thread's text.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct FoundText {
    /// The thread.
    pub thread: ThreadId,
    /// The newest segment of it that holds them.
    pub segment: u32,
    /// The words among their neighbours.
    pub excerpt: String,
}

/// Every listed session.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SessionList {
    /// The sessions, oldest first.
    pub sessions: Vec<SessionView>,
}

/// One item of a subscription of sessions. The first is `snapshot`; another may come later, when the
/// client has fallen too far behind.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(
    feature = "schema",
    derive(schemars::JsonSchema),
    schemars(transform = crate::schema::open)
)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum SessionItem {
    /// Every listed session.
    Snapshot {
        /// The sessions.
        sessions: Vec<SessionView>,
    },
    /// What changed.
    Change {
        /// The change.
        change: SessionEvent,
    },
    /// Something that a newer host knows; skipped.
    #[serde(other)]
    Unknown,
}
