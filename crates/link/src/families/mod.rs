//! Rows that the list leaves out, read on demand.
//!
//! A list that leaves rows out lacks idle subagents and older settled threads. Whoever needs one
//! mounts its family: an open view of a thread, or a message that waits to be sent. A mounted family
//! holds every active thread that shares the root, so a link to an old settled thread brings it
//! back. What was read stands *behind* the list: where both have a row, the list's counts, because
//! it follows the host and the read does not.
//!
//! # What keeps a family right after its one read
//!
//! A host sends every changed row, whether the list would keep it or not, and names every thread
//! that was archived or deleted. So a family is read once for each snapshot of the list, and from
//! then on changes are enough, also over a resume. An answer that is older than a removal that was
//! heard meanwhile does not bring the thread back.
//!
//! # Absence
//!
//! That a row is missing never shows that a thread is gone. Whoever deletes data or a worktree
//! because of it asks [`Families::absence`], which asks the host, and acts on [`Absence::Gone`] alone
//! (seed, Shell snapshots can leave rows out).

use std::collections::{BTreeMap, VecDeque};

use wakeful_wire::rpc::ThreadId;

use crate::{Failure, FailureReason, Instant};

mod absence;
mod action;
mod answer;
mod family;
mod read;
mod retry;
mod rows;
mod search;
mod view;

#[cfg(test)]
pub(crate) mod sample;
#[cfg(test)]
mod tests;

pub use absence::{ABSENCES_MAX, Absence};
pub use action::{Action, MountId};
pub use family::FAMILY_ROWS_MAX;
pub use read::{Read, ReadAnswer, ReadId, ReadWhat};
pub use retry::{RETRY_FIRST, RETRY_MAX};
pub use rows::{Basis, ChangedRows, REMOVALS_MAX, ShellRows};
pub use search::{SEARCH_LIMIT_MAX, SEARCH_ROWS_MAX, SEARCH_TEXT_MAX, Search, SearchState};

pub use view::FamilyView;

pub(crate) use answer::mismatch;
pub(crate) use retry::Retry;
pub(crate) use rows::Removals;

use absence::Absences;
use action::Purpose;
use family::{Family, Load};

/// Most families that are kept, mounted ones among them. For a further one the one goes that nobody
/// has had mounted for longest; if every one is mounted, the mount is refused.
pub const FAMILIES_MAX: usize = 64;
/// Most mounts. A further one is refused.
pub const MOUNTS_MAX: usize = 1_024;
/// Most reads under way for families and absences. Further ones wait. A browser opens six
/// connections to one address, and other reads need some of them.
pub const READS_MAX: usize = 4;

/// The on-demand rows of one host.
#[derive(Debug, Clone, Default)]
pub struct Families {
    generation: u64,
    last_read: ReadId,
    last_mount: u64,
    uses: u64,
    /// Whose mount it is: the key of its family.
    mounts: BTreeMap<MountId, ThreadId>,
    /// By root; by the thread that was asked for while the root is not known.
    families: BTreeMap<ThreadId, Family>,
    absences: Absences,
    search: Search,
    reads: BTreeMap<ReadId, Purpose>,
    removals: Removals,
    actions: VecDeque<Action>,
}

impl Families {
    /// Nothing mounted, and no list yet.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Somebody needs the family of a thread from now on. `shell` is the list.
    ///
    /// # Errors
    /// `Overloaded` if there are too many mounts or mounted families.
    pub fn mount(
        &mut self,
        now: Instant,
        shell: &ShellRows,
        thread: ThreadId,
    ) -> Result<MountId, Failure> {
        if self.mounts.len() >= MOUNTS_MAX {
            return Err(overloaded("Too many views of threads are open."));
        }
        let key = self.row(shell, thread).map_or(thread, |row| row.root);
        if !self.families.contains_key(&key) {
            self.make_room()?;
        }
        let family = self.families.entry(key).or_default();
        family.mounted += 1;
        if matches!(family.load, Load::Failed(_)) {
            family.handle_dropped();
        }
        self.last_mount += 1;
        let mount = MountId(self.last_mount);
        self.mounts.insert(mount, key);
        self.advance(now);
        Ok(mount)
    }

    /// Somebody no longer needs it. The rows are kept for a return, within [`FAMILIES_MAX`].
    pub fn unmount(&mut self, mount: MountId) {
        let Some(key) = self.mounts.remove(&mount) else { return };
        let Some(family) = self.families.get_mut(&key) else { return };
        self.uses += 1;
        family.used = self.uses;
        family.mounted = family.mounted.saturating_sub(1);
        if family.mounted == 0 && family.rows().next().is_none() {
            match family.load {
                Load::Wanted | Load::Failed(_) => {
                    self.families.remove(&key);
                }
                Load::Reading(_) | Load::Loaded => {}
            }
        }
    }

    /// A person wants a family that could not be read to be read again.
    pub fn retry(&mut self, now: Instant, shell: &ShellRows, thread: ThreadId) {
        let key = self.key(shell, thread);
        if let Some(family) = self.families.get_mut(&key)
            && matches!(family.load, Load::Failed(_))
        {
            family.handle_dropped();
            self.advance(now);
        }
    }

    /// A person searches. It takes the place of the search before.
    pub fn search(&mut self, now: Instant, q: &str, limit: usize) {
        self.cancel_search();
        self.search.begin(q, limit);
        self.changed();
        self.advance(now);
    }

    /// Nobody searches any more. Rows that were found are kept, within [`SEARCH_ROWS_MAX`].
    pub fn end_search(&mut self) {
        self.cancel_search();
        self.search.end();
        self.changed();
    }

    fn cancel_search(&mut self) {
        if let Some(read) = self.search.reading.take() {
            self.reads.remove(&read);
            self.actions.push_back(Action::Cancel(read));
        }
    }

    /// The list's generation; 0 while this session has no authoritative list. Reads wait for one,
    /// and an answer for another generation is dropped.
    pub fn handle_generation(&mut self, now: Instant, generation: u64, basis: Basis) {
        if generation == self.generation {
            return;
        }
        self.generation = generation;
        for (read, purpose) in std::mem::take(&mut self.reads) {
            self.actions.push_back(Action::Cancel(read));
            if let Purpose::Absence(thread) = purpose {
                self.absences.want(thread, 0);
            }
        }
        self.search.reading = None;
        self.removals.clear();
        let replaced = generation > 0 && basis == Basis::Snapshot;
        for family in self.families.values_mut() {
            if replaced {
                family.handle_replaced();
            } else {
                family.handle_dropped();
            }
        }
        if replaced {
            self.absences.handle_replaced();
        }
        self.changed();
        self.advance(now);
    }

    /// Rows changed. To be called before the list takes them in, or after; it makes no difference.
    pub fn handle_changes(&mut self, changes: ChangedRows<'_>) {
        if changes.is_repeated() {
            return;
        }
        for row in changes.rows {
            if let Some(family) = self.families.get_mut(&row.root) {
                family.handle_changed(row);
            }
            self.search.handle_changed(row);
            self.absences.forget(row.id);
        }
        if !self.reads.is_empty() {
            self.removals.note(changes.removed, changes.seq);
        }
        for thread in changes.removed {
            for family in self.families.values_mut() {
                family.handle_removed(*thread);
            }
            self.search.handle_removed(*thread);
            self.absences.forget(*thread);
        }
        self.changed();
    }

    /// Makes room for one more family.
    fn make_room(&mut self) -> Result<(), Failure> {
        if self.families.len() < FAMILIES_MAX {
            return Ok(());
        }
        let unmounted = self.families.iter().filter(|(_, family)| family.mounted == 0);
        let oldest = unmounted.min_by_key(|(_, family)| family.used).map(|(key, _)| *key);
        let Some(oldest) = oldest.and_then(|key| self.families.remove(&key)) else {
            return Err(overloaded("Too many families of threads are open."));
        };
        if let Load::Reading(read) = oldest.load {
            self.reads.remove(&read);
            self.actions.push_back(Action::Cancel(read));
        }
        Ok(())
    }

    /// Begins the reads that are wanted and possible.
    fn advance(&mut self, now: Instant) {
        if self.generation == 0 {
            return;
        }
        if self.search.state == SearchState::Searching && self.search.reading.is_none() {
            let (q, limit) = (self.search.q.clone(), self.search.limit);
            self.search.reading = Some(self.read(Purpose::Search, ReadWhat::Search { q, limit }));
        }
        for family in self.families.values_mut() {
            if family.mounted > 0 && family.retry.is_due(now) {
                family.load = Load::Wanted;
            }
        }
        while self.reads_of_rows() < READS_MAX {
            let wanted =
                |family: &Family| family.mounted > 0 && matches!(family.load, Load::Wanted);
            let key = self.families.iter().find(|(_, family)| wanted(family)).map(|(key, _)| *key);
            if let Some(key) = key {
                let read = self.read(Purpose::Family(key), ReadWhat::Family { thread: key });
                if let Some(family) = self.families.get_mut(&key) {
                    family.load = Load::Reading(read);
                }
            } else if let Some(thread) = self.absences.next() {
                self.read(Purpose::Absence(thread), ReadWhat::Family { thread });
            } else {
                break;
            }
        }
    }

    fn reads_of_rows(&self) -> usize {
        self.reads.len() - usize::from(self.search.reading.is_some())
    }

    fn read(&mut self, purpose: Purpose, what: ReadWhat) -> ReadId {
        let id = ReadId::next(&mut self.last_read);
        self.reads.insert(id, purpose);
        self.actions.push_back(Action::Read(Read { id, generation: self.generation, what }));
        id
    }

    fn changed(&mut self) {
        if !self.actions.contains(&Action::Changed) {
            self.actions.push_back(Action::Changed);
        }
    }

    /// Time has passed.
    pub fn handle_timeout(&mut self, now: Instant) {
        self.advance(now);
    }

    /// When to call [`handle_timeout`](Self::handle_timeout) at the latest.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Instant> {
        if self.generation == 0 {
            return None;
        }
        let mounted = self.families.values().filter(|family| family.mounted > 0);
        Instant::earliest(mounted.map(|family| family.retry.at()))
    }

    /// What to do next.
    pub fn poll_action(&mut self) -> Option<Action> {
        self.actions.pop_front()
    }
}

fn overloaded(detail: &str) -> Failure {
    Failure::new(FailureReason::Overloaded, detail)
}
