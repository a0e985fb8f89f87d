//! Lists and threads.

use std::sync::Arc;

use wakeful_link as link;
use wakeful_wire::{
    Timestamp,
    rpc::{Outcome, ShellRow},
};

use super::host::Failure;
use crate::error::words;

/// How current a list or a thread is. Apart from the connection: a list can be out of date on a
/// healthy connection, and what is cached is no sign of one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, uniffi::Enum)]
pub enum DataStatus {
    /// Nothing is known.
    Empty,
    /// Something is shown that may be out of date, and nothing is on its way.
    Cached,
    /// What is shown is being brought up to date.
    Synchronizing,
    /// What is shown is what the host has.
    Live,
    /// The thread is gone. Final.
    Deleted,
}

impl From<link::DataStatus> for DataStatus {
    fn from(status: link::DataStatus) -> Self {
        match status {
            link::DataStatus::Empty => Self::Empty,
            link::DataStatus::Cached => Self::Cached,
            link::DataStatus::Synchronizing => Self::Synchronizing,
            link::DataStatus::Live => Self::Live,
            link::DataStatus::Deleted => Self::Deleted,
        }
    }
}

/// How a turn ended.
#[derive(Debug, Clone, PartialEq, Eq, uniffi::Enum)]
pub enum TurnEnd {
    /// The agent ended it.
    Completed,
    /// A person cancelled it.
    Cancelled,
    /// It failed.
    Failed {
        /// What happened, for people.
        message: String,
    },
    /// A crash or a stop of the host cut it.
    Cut,
    /// In a way that this release does not know.
    Other,
}

impl TurnEnd {
    fn of(outcome: &Outcome) -> Self {
        match outcome {
            Outcome::Completed { .. } => Self::Completed,
            Outcome::Cancelled { .. } => Self::Cancelled,
            Outcome::Failed { message } => Self::Failed { message: words(message) },
            Outcome::Cut => Self::Cut,
            Outcome::Other => Self::Other,
        }
    }
}

/// One thread in a list. Moments are milliseconds since 1970 by the host's clock.
#[derive(Debug, Clone, PartialEq, Eq, uniffi::Record)]
pub struct ThreadRow {
    /// Its id.
    pub id: String,
    /// The thread that it is a subagent of.
    pub parent: Option<String>,
    /// The top-level thread of its family.
    pub root: String,
    /// The directory of the workspace that it works in; empty: the workspace itself.
    pub project: String,
    /// Its agent.
    pub agent: String,
    /// Its title.
    pub title: Option<String>,
    /// When it was made.
    pub created_at: u64,
    /// When somebody last did something in it.
    pub active_at: u64,
    /// Whether it is pinned.
    pub pinned: bool,
    /// Until when it is put aside.
    pub snoozed_until: Option<u64>,
    /// Since when it is put aside as done.
    pub settled_at: Option<u64>,
    /// Since when a turn runs.
    pub running_since: Option<u64>,
    /// Whether a person wants the running turn to end.
    pub cancelling: bool,
    /// How the last turn ended.
    pub last_turn: Option<TurnEnd>,
    /// How many prompts wait.
    pub queued: u32,
    /// Whether they wait for a person.
    pub held: bool,
    /// How many permissions wait for an answer.
    pub pending: u32,
    /// Whether tools run although no turn does.
    pub background: bool,
    /// The agent's mode.
    pub mode: Option<String>,
}

impl ThreadRow {
    pub(crate) fn of(row: &ShellRow) -> Self {
        let moment = |at: Timestamp| at.0;
        Self {
            id: row.id.to_string(),
            parent: row.parent.map(|parent| parent.to_string()),
            root: row.root.to_string(),
            project: row.project.clone(),
            agent: row.agent.clone(),
            title: row.title.clone(),
            created_at: row.created_at.0,
            active_at: row.active_at.0,
            pinned: row.pinned,
            snoozed_until: row.snoozed_until.map(moment),
            settled_at: row.settled.map(|settled| settled.at.0),
            running_since: row.running_since.map(moment),
            cancelling: row.cancelling,
            last_turn: row.last_outcome.as_ref().map(TurnEnd::of),
            queued: row.queued,
            held: row.held,
            pending: row.pending,
            background: row.background,
            mode: row.mode.clone(),
        }
    }
}

/// A host's list.
#[derive(Debug, Clone, PartialEq, Eq, uniffi::Record)]
pub struct ThreadList {
    /// How current it is.
    pub status: DataStatus,
    /// Why it is not being brought up to date although the connection is healthy.
    pub error: Option<Failure>,
    /// When a list that is not live was so last, in milliseconds since 1970, where that is known.
    pub live_at: Option<u64>,
    /// The rows, newest thread first. Idle subagents and older settled threads are left out: a
    /// missing row does not show that a thread is gone.
    pub rows: Vec<ThreadRow>,
    /// How many threads are settled, those among them that are left out.
    pub settled: u64,
}

impl ThreadList {
    pub(crate) fn of(
        state: &link::shell::ShellState,
        rows: &[Arc<ShellRow>],
        live_at: Option<Timestamp>,
        settled: u64,
    ) -> Self {
        Self {
            status: state.status.into(),
            error: state.error.as_ref().map(Failure::of),
            live_at: live_at.map(|at| at.0),
            rows: rows.iter().map(|row| ThreadRow::of(row)).collect(),
            settled,
        }
    }
}

/// A thread that is open.
#[derive(Debug, Clone, PartialEq, Eq, uniffi::Record)]
pub struct ThreadView {
    /// How current it is.
    pub status: DataStatus,
    /// Why it is not followed, on a connection that may be healthy.
    pub error: Option<Failure>,
    /// Whether there is older content than what is held.
    pub has_older: bool,
    /// Whether older content is on its way.
    pub loading_older: bool,
    /// Why the last load of older content failed.
    pub older_error: Option<Failure>,
    /// The thread and its content, as JSON: `Detail` of the schema in
    /// `docs/protocol/rpc.schema.json`. `thread` is its state (queue, running turn, permissions
    /// that wait), `page.segments` what its turns show, oldest first. Readers ignore fields that
    /// they do not know. Absent until something was had.
    pub detail: Option<String>,
}

impl ThreadView {
    /// Writes the content out, so not to be called under a lock.
    pub(crate) fn of(state: &link::threads::ThreadState) -> serde_json::Result<Self> {
        let detail = state.detail().map(|detail| serde_json::to_string(&**detail)).transpose()?;
        Ok(Self {
            status: state.status.into(),
            error: state.error.as_ref().map(Failure::of),
            has_older: state.page.has_more,
            loading_older: state.page.loading,
            older_error: state.page.error.as_ref().map(Failure::of),
            detail,
        })
    }
}
