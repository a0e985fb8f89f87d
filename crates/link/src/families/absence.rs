//! Whether a thread that has no row is gone.

use std::collections::{BTreeMap, VecDeque};

use wakeful_wire::rpc::ThreadId;

/// Most threads that are asked about, or whose answer is remembered. At more, the oldest answer is
/// forgotten and can be asked for again; while that many are being asked about, further ones stay
/// unknown.
pub const ABSENCES_MAX: usize = 256;

/// What is known of a thread that somebody misses. Data and worktrees may be deleted on
/// [`Absence::Gone`] alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Absence {
    /// It is there.
    Known,
    /// It is in the archive, from where it can come back.
    Archived,
    /// Nobody knows yet. The host is being asked if it can be.
    Unknown,
    /// The host says that it is deleted, or never was.
    Gone,
}

/// The host's answers, and who is being asked about.
#[derive(Debug, Clone, Default)]
pub(super) struct Absences {
    /// To be asked, in order.
    wanted: VecDeque<ThreadId>,
    verdicts: BTreeMap<ThreadId, Absence>,
    /// Those with a verdict, oldest first.
    order: VecDeque<ThreadId>,
}

impl Absences {
    pub(super) fn verdict(&self, thread: ThreadId) -> Option<Absence> {
        self.verdicts.get(&thread).copied()
    }

    /// Puts a thread among those to be asked about, unless `asked` says that it is.
    pub(super) fn want(&mut self, thread: ThreadId, asked: usize) -> bool {
        if self.wanted.contains(&thread) {
            return true;
        }
        let fits = self.wanted.len() + asked < ABSENCES_MAX;
        if fits {
            self.wanted.push_back(thread);
        }
        fits
    }

    pub(super) fn next(&mut self) -> Option<ThreadId> {
        self.wanted.pop_front()
    }

    pub(super) fn decide(&mut self, thread: ThreadId, absence: Absence) {
        if self.verdicts.insert(thread, absence).is_none() {
            self.order.push_back(thread);
        }
        if self.order.len() > ABSENCES_MAX
            && let Some(oldest) = self.order.pop_front()
        {
            self.verdicts.remove(&oldest);
        }
    }

    /// The thread changed or left: what was said of it is of the past.
    pub(super) fn forget(&mut self, thread: ThreadId) {
        if self.verdicts.remove(&thread).is_some() {
            self.order.retain(|held| *held != thread);
        }
    }

    /// The list was replaced: every answer is of the past.
    pub(super) fn handle_replaced(&mut self) {
        self.verdicts.clear();
        self.order.clear();
    }
}
