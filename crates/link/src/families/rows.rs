//! The rows that the list holds, and what changes in them.

use std::{collections::BTreeMap, sync::Arc};

use wakeful_wire::rpc::{Seq, ShellRow, ThreadId};

/// The rows of one host's list.
pub type ShellRows = BTreeMap<ThreadId, Arc<ShellRow>>;

/// How the list came to its present generation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Basis {
    /// By a snapshot of the host, which replaced every row. What was read on demand before it may
    /// have missed changes.
    Snapshot,
    /// By a resume that the host verified: whatever changes is told, so what was read before holds.
    Resumed,
}

/// One `changes` item of a shell subscription, before the list takes it in.
#[derive(Debug, Clone, Copy)]
pub struct ChangedRows<'a> {
    /// Where the list is before it. An item that is not newer than this repeats what is known.
    pub from: Seq,
    /// Where it is afterwards.
    pub seq: Seq,
    /// Rows as they are now.
    pub rows: &'a [Arc<ShellRow>],
    /// Threads that were archived or deleted.
    pub removed: &'a [ThreadId],
}

impl ChangedRows<'_> {
    /// Whether it is of the past.
    #[must_use]
    pub fn is_repeated(&self) -> bool {
        self.seq <= self.from
    }
}

/// Most removals that are remembered while reads are under way. At more, answers that are older
/// than the newest forgotten removal are treated as not usable.
pub const REMOVALS_MAX: usize = 1_024;

/// Threads that left the list while reads are under way. An answer that was made before a thread
/// left, and arrives after the list said so, must not bring it back.
#[derive(Debug, Clone, Default)]
pub(crate) struct Removals {
    at: BTreeMap<ThreadId, Seq>,
    floor: Seq,
}

impl Removals {
    /// Takes note.
    pub(crate) fn note(&mut self, removed: &[ThreadId], seq: Seq) {
        for id in removed {
            self.at.insert(*id, seq);
        }
        if self.at.len() > REMOVALS_MAX {
            self.floor = self.at.values().copied().fold(self.floor, Seq::max);
            self.at.clear();
        }
    }

    /// Forgets all, because no answer is awaited.
    pub(crate) fn clear(&mut self) {
        *self = Self::default();
    }

    /// Whether an answer at `seq` can still be told apart from what left since.
    pub(crate) fn can_judge(&self, seq: Seq) -> bool {
        seq >= self.floor
    }

    /// Whether a thread left after an answer at `seq` was made.
    pub(crate) fn since(&self, thread: ThreadId, seq: Seq) -> bool {
        self.at.get(&thread).is_some_and(|removed| *removed > seq)
    }
}
