//! The list of threads: every active thread's row, in what order rows changed, and which rows a
//! client that leaves some out must still have.
//!
//! # What is left out
//!
//! Under `families`, a subagent that is idle and has no subagent of its own. So a walk from any
//! busy row to its root never meets a gap. Under `older_settled`, a settled top-level thread that
//! is older than the 25th newest; not one that is as old, nor one that is pinned, snoozed or busy,
//! nor one above a subagent that is kept.
//!
//! # What changes bring
//!
//! A changed row is always sent, kept or not: a client that saw a subagent work must see it rest.
//! A row that *comes into* the kept set because of another row (the 25th went, a subagent below it
//! began to work) did not change by itself, so it is touched: it counts as changed at the event
//! that brought it in. A row that leaves the kept set is not sent. A client can so hold more rows
//! than a snapshot would give it, never fewer, and each as it is now.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    ops::Bound,
    sync::Arc,
};

use wakeful_wire::{
    Timestamp,
    rpc::{OlderSettled, Omissions, SETTLED_KEPT, Seq, ShellRow, Thread, ThreadId},
};

use super::{
    limits::{DEPTH_MAX, ROWS_PAGE_MAX, TOMBSTONES_MAX},
    state::disown,
};

/// Where a page of settled or archived threads goes on: below this moment and thread.
pub type RowKey = (Timestamp, ThreadId);

/// Rows that were read on demand, newest first.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Rows {
    /// What they are at.
    pub seq: Seq,
    /// The rows.
    pub rows: Vec<Arc<ShellRow>>,
    /// Where to go on; absent: there are no more.
    pub next: Option<RowKey>,
}

/// What changed since a cursor, as one value.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Changes {
    /// Where the reader is afterwards.
    pub seq: Seq,
    /// Rows as they are now, in the order of their change.
    pub rows: Vec<Arc<ShellRow>>,
    /// Threads that left the list.
    pub removed: Vec<ThreadId>,
    /// About how many bytes that is as JSON.
    pub bytes: usize,
}

/// The list of threads.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Shell {
    rows: HashMap<ThreadId, Arc<ShellRow>>,
    /// Rows and removed threads by when they last changed or were touched.
    changes: BTreeSet<(Seq, ThreadId)>,
    /// Removed threads that can still be told of.
    removed: HashMap<ThreadId, Seq>,
    /// The same, oldest first.
    buried: BTreeSet<(Seq, ThreadId)>,
    /// A cursor below it may have missed a removal that is no longer known.
    floor: Seq,
    children: HashMap<ThreadId, BTreeSet<ThreadId>>,
    settled: BTreeSet<RowKey>,
    archived: BTreeSet<RowKey>,
}

impl Shell {
    /// Puts back a thread that was saved, with when its row last changed.
    pub(crate) fn load(&mut self, thread: &Thread, changed: Seq) {
        self.index(None, thread);
        if thread.is_active() {
            let row = ShellRow { seq: changed, ..ShellRow::of(thread) };
            self.rows.insert(thread.id, Arc::new(row));
            self.changes.insert((changed, thread.id));
        } else {
            self.bury(thread.id, changed);
        }
    }

    /// When a thread's row last changed, for saving.
    pub(crate) fn changed_at(&self, id: ThreadId) -> Option<Seq> {
        self.rows.get(&id).map(|row| row.seq).or_else(|| self.removed.get(&id).copied())
    }

    /// Takes in what an event did to a thread. Returns the threads whose rows changed or were
    /// touched.
    pub(crate) fn apply(
        &mut self,
        before: Option<&Thread>,
        after: &Thread,
        seq: Seq,
    ) -> Vec<ThreadId> {
        let id = after.id;
        let old = self.rows.get(&id).cloned();
        let new = after.is_active().then(|| ShellRow { seq, ..ShellRow::of(after) });
        let same = match (&old, &new) {
            (Some(old), Some(new)) => ShellRow { seq: old.seq, ..new.clone() } == **old,
            (None, None) => before.is_some_and(|before| {
                (before.deleted, before.archived_at) == (after.deleted, after.archived_at)
            }),
            (Some(_), None) | (None, Some(_)) => false,
        };
        if same {
            return Vec::new();
        }
        let (was_there, was_kept) = (old.is_some(), self.is_kept(id));
        let old_cut = self.cut();
        self.index(before, after);
        if let Some(old) = &old {
            self.changes.remove(&(old.seq, id));
        }
        if let Some(gone) = self.removed.remove(&id) {
            self.changes.remove(&(gone, id));
            self.buried.remove(&(gone, id));
        }
        if let Some(row) = new {
            self.rows.insert(id, Arc::new(row));
            self.changes.insert((seq, id));
        } else {
            self.rows.remove(&id);
            self.bury(id, seq);
        }
        let mut touched = vec![id];
        let is_there = self.rows.contains_key(&id);
        if is_there && (!was_there || !was_kept && self.is_kept(id)) {
            touched.extend(self.above(after.parent));
        }
        touched.extend(self.come_in(old_cut));
        for other in touched.iter().skip(1) {
            self.touch(*other, seq);
        }
        touched
    }

    fn touch(&mut self, id: ThreadId, seq: Seq) {
        if let Some(row) = self.rows.get_mut(&id) {
            self.changes.remove(&(row.seq, id));
            Arc::make_mut(row).seq = seq;
            self.changes.insert((seq, id));
        }
    }

    /// The active threads from `parent` upwards.
    fn above(&self, parent: Option<ThreadId>) -> Vec<ThreadId> {
        let up = std::iter::successors(parent, |id| self.rows.get(id)?.parent);
        up.take(DEPTH_MAX).filter(|id| self.rows.contains_key(id)).collect()
    }

    /// Settled threads that were below the cut and no longer are.
    fn come_in(&self, old_cut: Option<Timestamp>) -> Vec<ThreadId> {
        let Some(old_cut) = old_cut else { return Vec::new() };
        let from = match self.cut() {
            Some(cut) if cut >= old_cut => return Vec::new(),
            Some(cut) => Bound::Included((cut, lowest())),
            None => Bound::Unbounded,
        };
        let range = (from, Bound::Excluded((old_cut, lowest())));
        self.settled.range(range).map(|(_, id)| *id).collect()
    }

    fn bury(&mut self, id: ThreadId, seq: Seq) {
        self.removed.insert(id, seq);
        self.changes.insert((seq, id));
        self.buried.insert((seq, id));
        if self.buried.len() > TOMBSTONES_MAX
            && let Some((seq, id)) = self.buried.pop_first()
        {
            self.removed.remove(&id);
            self.changes.remove(&(seq, id));
            self.floor = self.floor.max(seq);
        }
    }

    fn index(&mut self, before: Option<&Thread>, after: &Thread) {
        if let Some(before) = before {
            if let Some(parent) = before.parent {
                disown(&mut self.children, parent, before.id);
            }
            if let Some(settled) = before.settled {
                self.settled.remove(&(settled.at, before.id));
            }
            if let Some(at) = before.archived_at {
                self.archived.remove(&(at, before.id));
            }
        }
        if after.is_active() {
            if let Some(parent) = after.parent {
                self.children.entry(parent).or_default().insert(after.id);
            } else if let Some(settled) = after.settled {
                self.settled.insert((settled.at, after.id));
            }
        } else if let Some(at) = after.archived_at.filter(|_| !after.deleted) {
            self.archived.insert((at, after.id));
        }
    }

    /// Below which moment settled threads are older.
    fn cut(&self) -> Option<Timestamp> {
        if self.settled.len() <= SETTLED_KEPT {
            return None;
        }
        self.settled.iter().rev().nth(SETTLED_KEPT - 1).map(|(at, _)| *at)
    }

    /// Whether a row is kept when everything is left out that can be.
    fn is_kept(&self, id: ThreadId) -> bool {
        let all = Omissions { families: true, older_settled: true };
        self.rows.get(&id).is_some_and(|row| self.keeps(row, all, self.cut()))
    }

    fn keeps(&self, row: &ShellRow, omit: Omissions, cut: Option<Timestamp>) -> bool {
        if row.parent.is_some() {
            return !omit.families || row.is_busy() || self.has_children(row.id);
        }
        let older = cut.is_some_and(|cut| row.settled.is_some_and(|settled| settled.at < cut));
        let below = || {
            let mut children = self.children.get(&row.id).into_iter().flatten();
            children
                .any(|child| self.rows.get(child).is_some_and(|child| self.keeps(child, omit, cut)))
        };
        !omit.older_settled
            || !older
            || row.pinned
            || row.snoozed_until.is_some()
            || row.is_busy()
            || below()
    }

    fn has_children(&self, id: ThreadId) -> bool {
        self.children.contains_key(&id)
    }

    /// The rows of a snapshot, newest thread first, and what it says of the settled ones.
    #[must_use]
    pub fn snapshot(&self, omit: Omissions) -> (Vec<Arc<ShellRow>>, Option<OlderSettled>) {
        let cut = self.cut();
        let kept = self.rows.values().filter(|row| self.keeps(row, omit, cut));
        let mut rows: Vec<_> = kept.cloned().collect();
        rows.sort_unstable_by_key(|row| std::cmp::Reverse((row.created_at, row.id)));
        (rows, omit.older_settled.then(|| self.older_settled()))
    }

    /// The cut below which settled threads are older, and how many those are by project.
    #[must_use]
    pub fn older_settled(&self) -> OlderSettled {
        let cut = self.cut();
        let mut counts = BTreeMap::new();
        if let Some(cut) = cut {
            for (_, id) in self.settled.range(..(cut, lowest())) {
                if let Some(row) = self.rows.get(id) {
                    *counts.entry(row.project.clone()).or_default() += 1;
                }
            }
        }
        OlderSettled { cut, counts }
    }

    /// When anything last changed.
    #[must_use]
    pub fn newest(&self) -> Seq {
        self.changes.last().map_or(Seq::ZERO, |(seq, _)| *seq)
    }

    /// The first change after `seq`.
    #[must_use]
    pub fn first_after(&self, seq: Seq) -> Option<Seq> {
        self.changes.range((seq.next(), lowest())..).next().map(|(seq, _)| *seq)
    }

    /// Whether all that changed after `seq` is still known.
    #[must_use]
    pub fn reaches_back_to(&self, seq: Seq) -> bool {
        seq >= self.floor
    }

    /// What changed after `seq`: at most about `rows` rows or `bytes` bytes, but always all of one
    /// event. Nothing if nothing did.
    #[must_use]
    pub fn changes_after(&self, seq: Seq, rows: usize, bytes: usize) -> Option<Changes> {
        let mut found = Changes { seq, ..Changes::default() };
        for (at, id) in self.changes.range((seq.next(), lowest())..) {
            let many = found.rows.len() + found.removed.len();
            if *at > found.seq && (many >= rows || found.bytes >= bytes) {
                break;
            }
            found.seq = *at;
            if let Some(row) = self.rows.get(id) {
                found.bytes += weight(row);
                found.rows.push(Arc::clone(row));
            } else {
                found.bytes += 40;
                found.removed.push(*id);
            }
        }
        (found.seq > seq).then_some(found)
    }

    /// Whether more changed after `seq` than `rows` rows or `bytes` bytes.
    #[must_use]
    pub fn exceeds(&self, seq: Seq, rows: usize, bytes: usize) -> bool {
        let mut sum = 0;
        for (many, (_, id)) in self.changes.range((seq.next(), lowest())..).enumerate() {
            sum += self.rows.get(id).map_or(40, |row| weight(row));
            if many >= rows || sum > bytes {
                return true;
            }
        }
        false
    }

    /// The row of a thread.
    #[must_use]
    pub fn row(&self, id: ThreadId) -> Option<&Arc<ShellRow>> {
        self.rows.get(&id)
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

    /// All active threads that share a root with `id`.
    #[must_use]
    pub fn family(&self, root: ThreadId) -> Vec<Arc<ShellRow>> {
        let mut rows: Vec<_> = self.rows.values().filter(|row| row.root == root).cloned().collect();
        rows.sort_unstable_by_key(|row| std::cmp::Reverse((row.created_at, row.id)));
        rows
    }

    /// A page of settled top-level threads, newest first, from below `before` on.
    #[must_use]
    pub fn settled_page(
        &self,
        before: Option<RowKey>,
        limit: usize,
    ) -> (Vec<ThreadId>, Option<RowKey>) {
        page(&self.settled, before, limit)
    }

    /// A page of archived threads, newest first, from below `before` on.
    #[must_use]
    pub fn archived_page(
        &self,
        before: Option<RowKey>,
        limit: usize,
    ) -> (Vec<ThreadId>, Option<RowKey>) {
        page(&self.archived, before, limit)
    }
}

fn page(
    keys: &BTreeSet<RowKey>,
    before: Option<RowKey>,
    limit: usize,
) -> (Vec<ThreadId>, Option<RowKey>) {
    let limit = limit.clamp(1, ROWS_PAGE_MAX);
    let below = before.map_or(Bound::Unbounded, Bound::Excluded);
    let mut range = keys.range((Bound::Unbounded, below)).rev();
    let found: Vec<_> = range.by_ref().take(limit).copied().collect();
    let more = range.next().is_some();
    let next = found.last().copied().filter(|_| more);
    (found.into_iter().map(|(_, id)| id).collect(), next)
}

/// Before every thread at the same place.
fn lowest() -> ThreadId {
    ThreadId::from_uuid(uuid::Uuid::nil())
}

/// About how many bytes a row is as JSON.
fn weight(row: &ShellRow) -> usize {
    400 + row.title.as_ref().map_or(0, String::len) + row.project.len() + row.agent.len()
}
