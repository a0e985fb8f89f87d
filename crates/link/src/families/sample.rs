//! Rows for tests.

use std::sync::Arc;

use wakeful_wire::{
    Timestamp,
    rpc::{By, Seq, Settled, ShellRow, ThreadId},
};

use super::rows::{ChangedRows, ShellRows};

/// The thread with this number.
pub(crate) fn thread(number: u64) -> ThreadId {
    ThreadId::from_uuid(uuid::Uuid::from_u128(u128::from(number)))
}

/// A top-level thread's row, made at the moment of its number.
pub(crate) fn row(number: u64, seq: u64) -> ShellRow {
    ShellRow {
        id: thread(number),
        seq: Seq(seq),
        created_at: Timestamp(number),
        active_at: Timestamp(number),
        parent: None,
        root: thread(number),
        project: "kitchen".to_owned(),
        agent: "shell".to_owned(),
        title: None,
        pinned: false,
        snoozed_until: None,
        settled: None,
        running_since: None,
        cancelling: false,
        last_outcome: None,
        queued: 0,
        held: false,
        pending: 0,
        background: false,
        mode: None,
    }
}

/// A row of a subagent of a top-level thread.
pub(crate) fn child(number: u64, parent: u64, seq: u64) -> ShellRow {
    ShellRow { parent: Some(thread(parent)), root: thread(parent), ..row(number, seq) }
}

/// A row of a thread that was settled at a moment.
pub(crate) fn settled(number: u64, at: u64, seq: u64) -> ShellRow {
    ShellRow { settled: Some(Settled { at: Timestamp(at), by: By::Hand }), ..row(number, seq) }
}

/// A list.
pub(crate) fn list(rows: impl IntoIterator<Item = ShellRow>) -> ShellRows {
    rows.into_iter().map(|row| (row.id, Arc::new(row))).collect()
}

/// What a list becomes by changes.
pub(crate) fn apply(shell: &mut ShellRows, changes: ChangedRows<'_>) {
    for row in changes.rows {
        shell.insert(row.id, Arc::clone(row));
    }
    for thread in changes.removed {
        shell.remove(thread);
    }
}
