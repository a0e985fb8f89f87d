//! The list of threads.

use std::{collections::BTreeMap, sync::Arc};

use serde::{Deserialize, Serialize};

use super::{Cursor, Outcome, Seq, Settled, Thread, ThreadId};
use crate::Timestamp;

/// How many of the newest settled top-level threads a snapshot keeps under
/// [`Omissions::older_settled`].
pub const SETTLED_KEPT: usize = 25;

/// One thread in the list.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ShellRow {
    /// The thread.
    pub id: ThreadId,
    /// When this row last changed, or came into the list of somebody who leaves rows out.
    pub seq: Seq,
    /// When the thread was made.
    pub created_at: Timestamp,
    /// When somebody last did something in it.
    pub active_at: Timestamp,
    /// The thread that it is a subagent of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<ThreadId>,
    /// The top-level thread of its family.
    pub root: ThreadId,
    /// The directory of the workspace that it works in.
    pub project: String,
    /// The agent's name in the template.
    pub agent: String,
    /// Its title.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// Whether it is pinned.
    #[serde(default)]
    pub pinned: bool,
    /// Until when it is snoozed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub snoozed_until: Option<Timestamp>,
    /// Put aside as done.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub settled: Option<Settled>,
    /// Since when a turn runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub running_since: Option<Timestamp>,
    /// Whether a person wants the running turn to end.
    #[serde(default)]
    pub cancelling: bool,
    /// How the last turn ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_outcome: Option<Outcome>,
    /// How many prompts wait.
    #[serde(default)]
    pub queued: u32,
    /// Whether they wait for a person.
    #[serde(default)]
    pub held: bool,
    /// How many permissions wait for an answer.
    #[serde(default)]
    pub pending: u32,
    /// Whether tools run although no turn does.
    #[serde(default)]
    pub background: bool,
    /// The agent's mode.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mode: Option<String>,
}

impl ShellRow {
    /// The row of a thread. `seq` is left at the thread's newest event; whoever keeps the list sets
    /// it to the event that last changed the row.
    #[must_use]
    pub fn of(thread: &Thread) -> Self {
        let count = |many: usize| u32::try_from(many).unwrap_or(u32::MAX);
        Self {
            id: thread.id,
            seq: thread.seq,
            created_at: thread.created_at,
            active_at: thread.active_at,
            parent: thread.parent,
            root: thread.root,
            project: thread.project.clone(),
            agent: thread.agent.clone(),
            title: thread.title.clone(),
            pinned: thread.pinned,
            snoozed_until: thread.snoozed_until,
            settled: thread.settled,
            running_since: thread.turn.map(|turn| turn.started_at),
            cancelling: thread.turn.is_some_and(|turn| turn.cancel_requested_at.is_some()),
            last_outcome: thread.last_turn.as_ref().map(|turn| turn.outcome.clone()),
            queued: count(thread.queue.len()),
            held: thread.held,
            pending: count(thread.permissions.len()),
            background: thread.turn.is_none() && !thread.open_tools.is_empty(),
            mode: thread.mode.clone(),
        }
    }

    /// Whether it shows a run, a waiting prompt or permission, or work in the background.
    #[must_use]
    pub const fn is_busy(&self) -> bool {
        self.running_since.is_some() || self.queued > 0 || self.pending > 0 || self.background
    }
}

/// Which rows a client lets the host leave out. A snapshot is interchangeable only with one made
/// with the same.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Omissions {
    /// Idle subagent children that have no child of their own.
    #[serde(default)]
    pub families: bool,
    /// Settled top-level threads older than the newest [`SETTLED_KEPT`].
    #[serde(default)]
    pub older_settled: bool,
}

/// What a snapshot left out of the settled threads.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct OlderSettled {
    /// Threads that were settled before this moment are older. Absent: none are.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cut: Option<Timestamp>,
    /// How many settled top-level threads are older, by project, kept ones included.
    #[serde(default)]
    pub counts: BTreeMap<String, u32>,
}

/// The whole list at one moment.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ShellSnapshot {
    /// What it is at.
    pub cursor: Cursor,
    /// The rows that were left out.
    #[serde(default)]
    pub omitted: Omissions,
    /// The rows, newest thread first. Shared with whoever keeps the list.
    pub rows: Vec<Arc<ShellRow>>,
    /// What was left out of the settled threads; present if that was asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub older_settled: Option<OlderSettled>,
}
