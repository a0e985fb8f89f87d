//! A host as far as settled threads go: what it keeps in a list, what it counts, how it pages.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use wakeful_wire::{
    Timestamp,
    rpc::{By, OlderSettled, RowCursor, Rows, Seq, Settled, ShellRow, ThreadId},
};

use crate::{
    Chance,
    families::{
        ShellRows,
        sample::{row, thread},
    },
    settled::{is_settled, place},
};

/// How many of the newest settled threads a list keeps.
const KEPT: usize = 3;
/// Most rows of one page.
const PAGE: usize = 2;

/// The host.
pub(super) struct Host {
    /// Threads of several hosts have different numbers, as they have in the world.
    number: u64,
    pub(super) seq: u64,
    clock: u64,
    made: u64,
    rows: BTreeMap<ThreadId, ShellRow>,
    archived: BTreeMap<ThreadId, ShellRow>,
    /// When a thread last changed, left or was touched.
    changes: BTreeSet<(u64, ThreadId)>,
}

impl Host {
    pub(super) fn new(number: u64) -> Self {
        Self {
            number,
            seq: 0,
            clock: 1_000,
            made: 0,
            rows: BTreeMap::new(),
            archived: BTreeMap::new(),
            changes: BTreeSet::new(),
        }
    }

    fn touch(&mut self, id: ThreadId) {
        self.changes.retain(|(_, other)| *other != id);
        self.changes.insert((self.seq, id));
        if let Some(row) = self.rows.get_mut(&id) {
            row.seq = Seq(self.seq);
        }
    }

    fn any(rows: &BTreeMap<ThreadId, ShellRow>, chance: &mut Chance) -> Option<ThreadId> {
        let many = u64::try_from(rows.len()).unwrap();
        let place = usize::try_from(chance.draw().checked_rem(many)?).unwrap();
        rows.keys().nth(place).copied()
    }

    /// Something happens.
    pub(super) fn live(&mut self, chance: &mut Chance) {
        self.seq += 1 + chance.draw() % 3;
        self.clock += chance.draw() % 3;
        let cut = self.cut();
        let at = Timestamp(self.clock);
        let kind = chance.draw() % 12;
        let id = match kind {
            0 | 1 => {
                self.made += 1;
                let made = row(self.made * 10 + self.number, self.seq);
                let id = made.id;
                self.rows.insert(id, ShellRow { created_at: at, ..made });
                Some(id)
            }
            9 => Self::any(&self.archived, chance),
            _ => Self::any(&self.rows, chance),
        };
        let Some(id) = id else { return };
        match kind {
            8 => {
                if let Some(row) = self.rows.remove(&id) {
                    self.archived.insert(id, row);
                }
            }
            9 => {
                if let Some(row) = self.archived.remove(&id) {
                    self.rows.insert(id, row);
                }
            }
            10 => {
                self.rows.remove(&id);
            }
            _ => {
                let row = self.rows.get_mut(&id).unwrap();
                match kind {
                    2..=5 if row.settled.is_none() => {
                        row.settled = Some(Settled { at, by: By::Hand });
                    }
                    6 => row.settled = None,
                    7 => row.pinned = !row.pinned,
                    _ => {}
                }
            }
        }
        self.touch(id);
        // What comes into the kept set because the cut went down counts as changed.
        let came = |place: RowCursor| {
            cut.is_some_and(|old| place.at < old) && self.cut().is_none_or(|new| place.at >= new)
        };
        let came: Vec<_> = self
            .settled()
            .into_iter()
            .filter(|place| came(*place))
            .map(|place| place.thread)
            .collect();
        for id in came {
            self.touch(id);
        }
    }

    /// Places of every settled thread, newest first.
    pub(super) fn settled(&self) -> Vec<RowCursor> {
        let mut places: Vec<_> = self.rows.values().filter_map(place).collect();
        places.sort_unstable_by_key(|place| std::cmp::Reverse(*place));
        places
    }

    fn cut(&self) -> Option<Timestamp> {
        let settled = self.settled();
        settled.get(KEPT).and_then(|_| settled.get(KEPT - 1)).map(|place| place.at)
    }

    pub(super) fn older(&self) -> OlderSettled {
        let cut = self.cut();
        let older = |row: &ShellRow| row.settled.is_some_and(|settled| Some(settled.at) < cut);
        let many = self.rows.values().filter(|row| older(row)).count();
        let counts = (many > 0).then(|| ("kitchen".to_owned(), u32::try_from(many).unwrap()));
        OlderSettled { cut, counts: counts.into_iter().collect() }
    }

    pub(super) fn snapshot(&self) -> ShellRows {
        let cut = self.cut();
        let kept = |row: &ShellRow| {
            row.pinned || cut.is_none_or(|cut| row.settled.is_none_or(|settled| settled.at >= cut))
        };
        let kept = self.rows.iter().filter(|(_, row)| kept(row));
        kept.map(|(id, row)| (*id, Arc::new(row.clone()))).collect()
    }

    /// Changes after a position: rows, removed threads, and where that is; at most about `many`.
    pub(super) fn changes_after(
        &self,
        seq: u64,
        many: usize,
    ) -> Option<(u64, Vec<Arc<ShellRow>>, Vec<ThreadId>)> {
        let (mut at, mut rows, mut removed) = (seq, Vec::new(), Vec::new());
        for (changed, id) in self.changes.range((seq + 1, thread(0))..) {
            if *changed > at && rows.len() + removed.len() >= many {
                break;
            }
            at = *changed;
            match self.rows.get(id) {
                Some(row) => rows.push(Arc::new(row.clone())),
                None => removed.push(*id),
            }
        }
        (at > seq).then_some((at, rows, removed))
    }

    pub(super) fn page(&self, below: RowCursor) -> Rows {
        let mut rows: Vec<_> = self.rows.values().filter(|row| is_settled(row)).collect();
        rows.retain(|row| place(row).is_some_and(|place| place < below));
        rows.sort_unstable_by_key(|row| std::cmp::Reverse(place(row)));
        let next = rows.get(PAGE).and_then(|_| place(rows.get(PAGE - 1)?));
        let rows = rows.into_iter().take(PAGE).cloned().map(Arc::new).collect();
        Rows { seq: Seq(self.seq), rows, next }
    }
}
