//! What views read.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use wakeful_wire::rpc::{ShellRow, ThreadId};

use super::{
    Families, Search, ShellRows,
    family::{Family, Load},
};
use crate::{DataStatus, Failure};

/// A family as a view shows it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FamilyView {
    /// The rows of all its threads that are known, newest thread first.
    pub rows: Vec<Arc<ShellRow>>,
    /// How current that is. Live: every active thread of the family is there.
    pub status: DataStatus,
    /// Why it could not be read.
    pub failure: Option<Failure>,
}

impl Families {
    /// The row of a thread: the list's, else one that was read on demand. A row that was read before
    /// the list was last replaced may be out of date.
    #[must_use]
    pub fn row<'a>(&'a self, shell: &'a ShellRows, thread: ThreadId) -> Option<&'a Arc<ShellRow>> {
        let read = || self.families.values().find_map(|family| family.row(thread));
        shell.get(&thread).or_else(read).or_else(|| self.search.row(thread))
    }

    /// The rows of all families that the list does not have, each once.
    #[must_use]
    pub fn behind(&self, shell: &ShellRows) -> Vec<Arc<ShellRow>> {
        let mut seen = BTreeSet::new();
        let rows = self.families.values().flat_map(Family::rows);
        rows.filter(|row| !shell.contains_key(&row.id) && seen.insert(row.id)).cloned().collect()
    }

    /// The family of a thread.
    #[must_use]
    pub fn family(&self, shell: &ShellRows, thread: ThreadId) -> FamilyView {
        let key = self.key(shell, thread);
        let family = self.families.get(&key);
        let root = family.and_then(|family| family.rows().next()).map_or(key, |row| row.root);
        let mut rows: BTreeMap<_, _> = family
            .into_iter()
            .flat_map(Family::rows)
            .map(|row| (row.id, Arc::clone(row)))
            .collect();
        for (id, row) in shell.iter().filter(|(_, row)| row.root == root) {
            rows.insert(*id, Arc::clone(row));
        }
        let mut rows: Vec<_> = rows.into_values().collect();
        rows.sort_unstable_by_key(|row| std::cmp::Reverse((row.created_at, row.id)));
        let resting = if rows.is_empty() { DataStatus::Empty } else { DataStatus::Cached };
        let (status, failure) = match family.map(|family| (&family.load, family.whole)) {
            None | Some((Load::Wanted, _)) => (resting, None),
            Some((Load::Reading(_), _)) => (DataStatus::Synchronizing, None),
            Some((Load::Loaded, true)) if self.generation > 0 => (DataStatus::Live, None),
            Some((Load::Loaded, _)) => (resting, None),
            Some((Load::Failed(failure), _)) => (resting, Some(failure.clone())),
        };
        FamilyView { rows, status, failure }
    }

    /// The latest search.
    #[must_use]
    pub const fn searched(&self) -> &Search {
        &self.search
    }

    pub(super) fn key(&self, shell: &ShellRows, thread: ThreadId) -> ThreadId {
        if self.families.contains_key(&thread) {
            return thread;
        }
        self.row(shell, thread).map_or(thread, |row| row.root)
    }
}
