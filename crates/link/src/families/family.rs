//! One family of threads that somebody needs.

use std::{collections::BTreeMap, sync::Arc};

use wakeful_wire::rpc::{Rows, Seq, ShellRow, ThreadId};

use super::{
    read::ReadId,
    retry::Retry,
    rows::{Removals, ShellRows},
};
use crate::Failure;

/// Most rows that are kept of one family. Of a larger one the first ones of the answer (the newest)
/// are kept, and the family says that it is not whole.
pub const FAMILY_ROWS_MAX: usize = 2_000;

/// How far a family's read is.
#[derive(Debug, Clone, Default)]
pub(super) enum Load {
    /// To be read as soon as somebody has it mounted and reads are possible.
    #[default]
    Wanted,
    /// Being read.
    Reading(ReadId),
    /// Read; changes keep it right.
    Loaded,
    /// The read failed.
    Failed(Failure),
}

/// One family.
#[derive(Debug, Clone, Default)]
pub(super) struct Family {
    /// Rows that were read or have changed in this generation of the list.
    members: ShellRows,
    /// Rows from before: shown until the family is read again, evidence of nothing.
    stale: ShellRows,
    /// What the rows were read at.
    seq: Seq,
    /// Whether every row is kept.
    pub(super) whole: bool,
    pub(super) load: Load,
    pub(super) retry: Retry,
    /// How many have it mounted.
    pub(super) mounted: usize,
    /// When it was last of use, counted, so that the oldest goes first.
    pub(super) used: u64,
}

impl Family {
    /// A row that belongs to the present generation.
    pub(super) fn member(&self, thread: ThreadId) -> Option<&Arc<ShellRow>> {
        self.members.get(&thread)
    }

    /// A row, also one from before.
    pub(super) fn row(&self, thread: ThreadId) -> Option<&Arc<ShellRow>> {
        self.members.get(&thread).or_else(|| self.stale.get(&thread))
    }

    /// Every row, those from before behind the others.
    pub(super) fn rows(&self) -> impl Iterator<Item = &Arc<ShellRow>> {
        let stale = self.stale.iter().filter(|(id, _)| !self.members.contains_key(id));
        self.members.values().chain(stale.map(|(_, row)| row))
    }

    /// The host's answer. One that is older than what is held changes no row.
    pub(super) fn handle_rows(&mut self, answer: &Rows, removals: &Removals) {
        self.load = Load::Loaded;
        self.retry.clear();
        if answer.seq < self.seq {
            return;
        }
        self.seq = answer.seq;
        self.stale.clear();
        self.whole = answer.rows.len() <= FAMILY_ROWS_MAX;
        let mut members: BTreeMap<_, _> = answer
            .rows
            .iter()
            .take(FAMILY_ROWS_MAX)
            .filter(|row| !removals.since(row.id, answer.seq))
            .map(|row| (row.id, Arc::clone(row)))
            .collect();
        // What changed while the answer was on its way is newer than it.
        for (id, row) in std::mem::take(&mut self.members) {
            if row.seq > answer.seq {
                members.insert(id, row);
            }
        }
        self.members = members;
    }

    /// A row of the family as it is now. Kept here too, so that the family stays whole when the list
    /// is replaced by one that leaves the row out.
    pub(super) fn handle_changed(&mut self, row: &Arc<ShellRow>) {
        let known = self.members.contains_key(&row.id);
        if known || self.members.len() < FAMILY_ROWS_MAX {
            self.members.insert(row.id, Arc::clone(row));
            self.stale.remove(&row.id);
        } else {
            self.whole = false;
        }
    }

    pub(super) fn handle_removed(&mut self, thread: ThreadId) {
        self.members.remove(&thread);
        self.stale.remove(&thread);
    }

    /// The list was replaced: rows are shown on, and have to be read again.
    pub(super) fn handle_replaced(&mut self) {
        self.stale.append(&mut self.members);
        self.seq = Seq::ZERO;
        self.whole = false;
        self.load = Load::Wanted;
        self.retry.clear();
    }

    /// No answer will come for the read under way, or the failure is of the past.
    pub(super) fn handle_dropped(&mut self) {
        match self.load {
            Load::Reading(_) | Load::Failed(_) => {
                self.load = Load::Wanted;
                self.retry.clear();
            }
            Load::Wanted | Load::Loaded => {}
        }
    }

    /// Takes over from another entry of the same family.
    pub(super) fn absorb(&mut self, other: Self) {
        self.mounted += other.mounted;
        self.used = self.used.max(other.used);
    }
}
