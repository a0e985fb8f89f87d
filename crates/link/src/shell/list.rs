//! The rows, together with the place in the log that they are at.

use std::{cmp::Reverse, collections::BTreeMap, sync::Arc};

use wakeful_wire::rpc::{
    Cursor, Epoch, OlderSettled, Omissions, Seq, ShellRow, ShellSnapshot, ThreadId,
};

/// How many rows are kept. Far beyond what a host lists; a bound against one that never stops. Once
/// a sixteenth more has come, the oldest threads are let go, which a missing row never says of a
/// thread anyway.
pub const ROWS_MAX: usize = 65_536;

/// What changes did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Applied {
    /// They were known.
    Nothing,
    /// Only the place moved on.
    Place,
    /// Rows came, changed or went.
    Rows,
}

/// One host's list at one place of its log. Rows and place change together.
///
/// A clone shares the rows. As long as one is held, the next change copies the map (not the rows)
/// once; otherwise a change of k among n rows costs O(k log n).
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ShellList {
    cursor: Cursor,
    omitted: Omissions,
    rows: Arc<BTreeMap<ThreadId, Arc<ShellRow>>>,
    older_settled: Option<Arc<OlderSettled>>,
}

/// The list that a host sent.
impl From<ShellSnapshot> for ShellList {
    fn from(snapshot: ShellSnapshot) -> Self {
        Self::of(snapshot)
    }
}

impl ShellList {
    pub(super) fn of(snapshot: ShellSnapshot) -> Self {
        let ShellSnapshot { cursor, omitted, rows, older_settled } = snapshot;
        let mut rows = rows.into_iter().map(|row| (row.id, row)).collect();
        trim(&mut rows, ROWS_MAX);
        Self { cursor, omitted, rows: Arc::new(rows), older_settled: older_settled.map(Arc::new) }
    }

    /// What the rows are at: everything up to it is in them.
    #[must_use]
    pub const fn cursor(&self) -> Cursor {
        self.cursor
    }

    /// Which rows the host left out.
    #[must_use]
    pub const fn omitted(&self) -> Omissions {
        self.omitted
    }

    /// What was left out of the settled threads when the snapshot was made. Changes do not update
    /// it.
    #[must_use]
    pub fn older_settled(&self) -> Option<&OlderSettled> {
        self.older_settled.as_deref()
    }

    /// The rows, by thread.
    #[must_use]
    pub fn map(&self) -> &BTreeMap<ThreadId, Arc<ShellRow>> {
        &self.rows
    }

    /// The row of a thread. None does not show that the thread is gone.
    #[must_use]
    pub fn row(&self, id: ThreadId) -> Option<&Arc<ShellRow>> {
        self.rows.get(&id)
    }

    /// Every row, by the threads' ids.
    pub fn rows(&self) -> impl ExactSizeIterator<Item = &Arc<ShellRow>> {
        self.rows.values()
    }

    /// How many rows there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// Every row, newest thread first, as a host orders them. Sorted when called.
    #[must_use]
    pub fn newest_first(&self) -> Vec<Arc<ShellRow>> {
        let mut rows: Vec<_> = self.rows.values().cloned().collect();
        rows.sort_unstable_by_key(|row| Reverse((row.created_at, row.id)));
        rows
    }

    /// The list as a host sends it.
    #[must_use]
    pub fn to_snapshot(&self) -> ShellSnapshot {
        ShellSnapshot {
            cursor: self.cursor,
            omitted: self.omitted,
            rows: self.newest_first(),
            older_settled: self.older_settled.as_deref().cloned(),
        }
    }

    /// The place was confirmed by this start of the host. Returns whether another one had.
    pub(super) fn confirm(&mut self, epoch: Epoch) -> bool {
        std::mem::replace(&mut self.cursor.epoch, epoch) != epoch
    }

    /// Everything up to `seq` is in the rows.
    pub(super) fn advance(&mut self, seq: Seq) -> Applied {
        if seq <= self.cursor.seq {
            return Applied::Nothing;
        }
        self.cursor.seq = seq;
        Applied::Place
    }

    /// Takes in what changed up to `seq`, all or nothing. What is not newer than the place was
    /// taken in before, or left out for good reason.
    pub(super) fn apply(
        &mut self,
        seq: Seq,
        rows: Vec<Arc<ShellRow>>,
        removed: &[ThreadId],
    ) -> Applied {
        let held = self.cursor.seq;
        if seq <= held {
            return Applied::Nothing;
        }
        let newer = |row: &Arc<ShellRow>| row.seq > held;
        let changes = rows.iter().any(newer) || removed.iter().any(|id| self.row(*id).is_some());
        if changes {
            let kept = Arc::make_mut(&mut self.rows);
            for id in removed {
                kept.remove(id);
            }
            kept.extend(rows.into_iter().filter(newer).map(|row| (row.id, row)));
            trim(kept, ROWS_MAX);
        }
        self.cursor.seq = seq;
        if changes { Applied::Rows } else { Applied::Place }
    }
}

/// Lets the oldest threads go where there are too many rows: seldom, and then many at once.
fn trim(rows: &mut BTreeMap<ThreadId, Arc<ShellRow>>, most: usize) {
    if rows.len() <= most + most / 16 {
        return;
    }
    let mut ages: Vec<_> = rows.values().map(|row| (row.created_at, row.id)).collect();
    let surplus = rows.len() - most;
    ages.select_nth_unstable(surplus - 1);
    for (_, id) in ages.iter().take(surplus) {
        rows.remove(id);
    }
}

#[cfg(test)]
mod tests {
    use super::{super::bench, *};

    fn list(seq: u64, rows: &[(u128, u64)]) -> ShellList {
        ShellList::of(bench::snapshot(1, seq, rows))
    }

    fn seqs(list: &ShellList) -> Vec<(u128, u64)> {
        list.rows().map(|row| (bench::number(row.id), row.seq.0)).collect()
    }

    #[test]
    fn changes_put_rows_in_and_take_removed_ones_out_as_one() {
        let mut held = list(10, &[(1, 4), (2, 9)]);
        let rows = vec![bench::row(2, 11), bench::row(3, 12)];
        assert_eq!(held.apply(Seq(12), rows, &[bench::thread(1)]), Applied::Rows);
        assert_eq!(seqs(&held), [(2, 11), (3, 12)]);
        assert_eq!(held.cursor().seq, Seq(12));
    }

    #[test]
    fn what_is_not_newer_than_the_place_is_ignored() {
        let before = list(10, &[(1, 4)]);
        for seq in [9, 10] {
            let mut held = before.clone();
            let applied = held.apply(Seq(seq), vec![bench::row(2, 3)], &[bench::thread(1)]);
            assert_eq!((applied, &held), (Applied::Nothing, &before), "changes at {seq}");
        }
        let mut held = before;
        let rows = vec![bench::row(1, 3), bench::row(2, 10)];
        assert_eq!(held.apply(Seq(11), rows, &[bench::thread(7)]), Applied::Place);
        assert_eq!(seqs(&held), [(1, 4)], "rows that come twice");
        assert_eq!(held.cursor().seq, Seq(11));
    }

    #[test]
    fn a_change_copies_the_map_only_while_somebody_holds_it() {
        let mut held = list(10, &[(1, 4)]);
        let place = Arc::as_ptr(&held.rows);
        held.apply(Seq(11), vec![bench::row(2, 11)], &[]);
        assert_eq!(Arc::as_ptr(&held.rows), place, "nobody holds it");
        let shown = held.clone();
        held.advance(Seq(12));
        assert_eq!(Arc::as_ptr(&held.rows), Arc::as_ptr(&shown.rows), "no row changed");
        held.apply(Seq(13), vec![bench::row(3, 13)], &[]);
        assert_eq!((shown.len(), held.len()), (2, 3));
        assert!(Arc::ptr_eq(&shown.rows[&bench::thread(1)], &held.rows[&bench::thread(1)]));
    }

    #[test]
    fn rows_are_ordered_as_a_host_does_it() {
        let snapshot = bench::snapshot(1, 10, &[(3, 1), (2, 9), (1, 5)]);
        assert_eq!(ShellList::of(snapshot.clone()).to_snapshot(), snapshot);
    }

    #[test]
    fn too_many_rows_let_the_oldest_threads_go() {
        let mut rows: BTreeMap<_, _> =
            (0..33).map(|n| (bench::thread(n), bench::row(n, 1))).collect();
        trim(&mut rows, 32);
        assert_eq!(rows.len(), 33, "a few more are borne");
        rows.extend((33..35).map(|n| (bench::thread(n), bench::row(n, 1))));
        trim(&mut rows, 32);
        assert_eq!(rows.len(), 32);
        assert_eq!(rows.keys().next(), Some(&bench::thread(3)), "the newest are kept");
    }
}
