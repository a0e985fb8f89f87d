//! What a subscription delivers.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::{Cursor, Detail, Event, Seq, ShellRow, ShellSnapshot, ThreadId};

/// One item of a shell subscription. The first is `snapshot` or `resumed`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(
    feature = "schema",
    derive(schemars::JsonSchema),
    schemars(transform = crate::schema::open)
)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum ShellItem {
    /// Replaces every row, even where its sequence is lower than what the client holds. May also
    /// come later, when the client has fallen too far behind.
    Snapshot {
        /// The list.
        snapshot: ShellSnapshot,
    },
    /// The client's cursor was accepted: what it holds is right, and changes follow.
    Resumed {
        /// The cursor from which changes follow, in the host's present epoch.
        cursor: Cursor,
    },
    /// Rows as they are now and threads that left the list. One value, applied as one: afterwards
    /// the client is at `seq`.
    Changes {
        /// Where the client is afterwards.
        seq: Seq,
        /// Rows to put in, whether the client knew them or not.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        rows: Vec<Arc<ShellRow>>,
        /// Threads that were archived or deleted, whether the client knew them or not.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        removed: Vec<ThreadId>,
    },
    /// Everything that had happened while the list was loaded has been delivered. Comes once per
    /// snapshot or resume.
    Synchronized {
        /// Where the client is.
        cursor: Cursor,
    },
    /// Something that a newer host knows; skipped.
    #[serde(other)]
    Unknown,
}

/// One item of a thread subscription. The first is `snapshot` or `resumed`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(
    feature = "schema",
    derive(schemars::JsonSchema),
    schemars(transform = crate::schema::open)
)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum ThreadItem {
    /// Replaces all that the client holds of the thread. May also come later, when the client has
    /// fallen too far behind, or when the thread's id was made anew.
    Snapshot {
        /// What it is at.
        cursor: Cursor,
        /// The thread.
        detail: Box<Detail>,
    },
    /// The client's cursor was accepted: what it holds is right, and events follow.
    Resumed {
        /// The cursor from which events follow, in the host's present epoch.
        cursor: Cursor,
    },
    /// Events of the thread, in order.
    Events {
        /// The events; each newer than the one before.
        events: Vec<Event>,
    },
    /// Everything that had happened while the thread was loaded has been delivered. Comes once per
    /// snapshot or resume.
    Synchronized {
        /// Where the client is.
        cursor: Cursor,
    },
    /// The thread is gone; the subscription ends.
    Deleted {
        /// The event that says so.
        seq: Seq,
    },
    /// Something that a newer host knows; skipped.
    #[serde(other)]
    Unknown,
}
