//! How many threads are settled, and when the host's share of that is to be read again.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use wakeful_wire::rpc::{Counts, OlderSettled, Seq, ShellRow};

use crate::{
    Failure, Instant,
    families::{ChangedRows, ReadId, Retry, ShellRows},
};

/// How long between the beginnings of two reads of the counts. A person archives a hundred threads
/// at once: the first removal is followed by a read at once, the others by one read a second.
pub const COUNTS_SPACING: Duration = Duration::from_secs(1);

/// Whether a row is a settled top-level thread's.
#[must_use]
pub const fn is_settled(row: &ShellRow) -> bool {
    row.parent.is_none() && row.settled.is_some()
}

/// Whether a row is a settled top-level thread's below the cut.
#[must_use]
pub fn is_below(row: &ShellRow, older: &OlderSettled) -> bool {
    row.parent.is_none()
        && older.cut.is_some_and(|cut| row.settled.is_some_and(|settled| settled.at < cut))
}

/// How many threads are settled: local settled rows, minus those of them below the cut, plus the
/// host's counts. `local` are the rows that the client holds, each once, on-demand ones included or
/// not: what is below the cut is counted by the host alone, so an old thread that is opened by link,
/// or kept because it is pinned, is counted once (seed, The Settled count).
#[must_use]
pub fn count<'a>(local: impl IntoIterator<Item = &'a ShellRow>, older: &OlderSettled) -> u64 {
    by_project(local, older).values().sum()
}

/// The same by project.
#[must_use]
pub fn by_project<'a>(
    local: impl IntoIterator<Item = &'a ShellRow>,
    older: &OlderSettled,
) -> BTreeMap<String, u64> {
    let mut counts: BTreeMap<String, u64> =
        older.counts.iter().map(|(project, many)| (project.clone(), u64::from(*many))).collect();
    for row in local.into_iter().filter(|row| is_settled(row) && !is_below(row, older)) {
        if let Some(count) = counts.get_mut(&row.project) {
            *count += 1;
        } else {
            counts.insert(row.project.clone(), 1);
        }
    }
    counts
}

/// Most changes that are kept while a read is under way. At more, the counts are read once more.
const HEARD_MAX: usize = 256;

/// A change of a top-level row, or that threads left.
#[derive(Debug, Clone)]
struct Heard {
    /// Where the list was before it.
    from: Seq,
    /// Where it is afterwards.
    seq: Seq,
    /// The row that the list held, and what it became; absent if threads left.
    row: Option<(Option<Arc<ShellRow>>, Arc<ShellRow>)>,
}

impl Heard {
    /// Whether it may have moved these counts.
    fn moves(&self, Counts { seq, older_settled }: &Counts) -> bool {
        let Some(cut) = older_settled.cut.filter(|_| self.seq > *seq) else { return false };
        let Some((before, row)) = &self.row else { return true };
        let is = is_below(row, older_settled);
        row.seq > *seq
            && match before {
                // What was held is no older than the counts, so both speak of the same moment.
                Some(before) if self.from >= *seq => is_below(before, older_settled) != is,
                Some(before) => is || is_below(before, older_settled) || row.created_at < cut,
                None => is || row.created_at < cut,
            }
    }
}

/// The host's counts, and when to read them again.
///
/// # When they can have moved
///
/// Below the cut a thread appears or goes when one that was there is archived, deleted or brought
/// back, and when one is restored from the archive with the moment at which it was settled. The
/// list tells each of these: a removal, or a row that is or may have been below the cut. A thread
/// that is settled now is settled above the cut, so it moves nothing; nor does a row that was made
/// after the cut, nor one that was and is on the same side of it. What an answer already knew, by
/// the sequence that it is at, is not read again.
#[derive(Debug, Clone, Default)]
pub(super) struct Counting {
    /// What is known, and what that is at. Absent: the list leaves no settled thread out.
    known: Option<Counts>,
    /// An answer is needed that knows at least this.
    needed: Option<Seq>,
    /// The read under way, and what its answer will know at least.
    reading: Option<(ReadId, Seq)>,
    /// What was heard while a read is under way, to be judged by what its answer says.
    heard: Vec<Heard>,
    /// No read begins before.
    not_before: Option<Instant>,
    retry: Retry,
    failure: Option<Failure>,
}

impl Counting {
    pub(super) const fn known(&self) -> Option<&Counts> {
        self.known.as_ref()
    }

    pub(super) const fn failure(&self) -> Option<&Failure> {
        self.failure.as_ref()
    }

    pub(super) const fn reading(&self) -> Option<ReadId> {
        match self.reading {
            Some((read, _)) => Some(read),
            None => None,
        }
    }

    /// A snapshot says what it left out.
    pub(super) fn handle_snapshot(&mut self, seq: Seq, older: Option<&OlderSettled>) {
        let known = older.map(|older| Counts { seq, older_settled: older.clone() });
        *self = Self { known, not_before: self.not_before, ..Self::default() };
    }

    /// The list goes on from rows that were held. Counts that were held with them hold on, since
    /// what moved them is told; counts that come from a cache may be of before its last changes.
    pub(super) fn handle_resumed(&mut self, seq: Seq, older: Option<&OlderSettled>) {
        self.handle_dropped();
        if older.is_none() {
            self.handle_snapshot(seq, None);
        } else if self.known.is_none() {
            self.handle_snapshot(seq, older);
            self.needed = Some(seq).filter(|_| self.is_cut());
        }
    }

    /// No answer will come for the read under way.
    pub(super) fn handle_dropped(&mut self) {
        self.reading = None;
        self.heard.clear();
        self.retry.clear();
        self.failure = None;
    }

    /// Whether the list lacks settled threads at all.
    fn is_cut(&self) -> bool {
        self.known.as_ref().is_some_and(|known| known.older_settled.cut.is_some())
    }

    /// Rows changed; `held` are the list's rows before.
    pub(super) fn handle_changes(&mut self, held: &ShellRows, changes: ChangedRows<'_>) {
        if changes.is_repeated() {
            return;
        }
        let tops = changes.rows.iter().filter(|row| row.parent.is_none());
        let heard = tops.map(|row| Heard {
            from: changes.from,
            seq: changes.seq,
            row: Some((held.get(&row.id).cloned(), Arc::clone(row))),
        });
        let left = Heard { from: changes.from, seq: changes.seq, row: None };
        for heard in heard.chain((!changes.removed.is_empty()).then_some(left)) {
            self.judge(&heard);
            if self.reading.is_none() {
                continue;
            }
            if self.heard.len() >= HEARD_MAX {
                self.heard.clear();
                self.heard.push(Heard { row: None, ..heard });
            } else {
                self.heard.push(heard);
            }
        }
    }

    fn judge(&mut self, heard: &Heard) {
        if self.known.as_ref().is_some_and(|known| heard.moves(known)) {
            self.needed = self.needed.max(Some(heard.seq));
        }
    }

    /// Whether a read is to begin now.
    pub(super) fn wants_read(&self, now: Instant) -> bool {
        self.needed.is_some()
            && self.reading.is_none()
            && self.begins_at().is_none_or(|at| at <= now)
            && (self.failure.is_none() || self.retry.at().is_some())
    }

    fn begins_at(&self) -> Option<Instant> {
        self.not_before.max(self.retry.at())
    }

    pub(super) fn handle_begun(&mut self, now: Instant, read: ReadId) {
        self.reading = Some((read, self.needed.unwrap_or_default()));
        self.not_before = Some(now.after(COUNTS_SPACING));
    }

    pub(super) fn handle_answer(&mut self, now: Instant, answer: Result<Counts, Failure>) {
        let Some((_, knows)) = self.reading.take() else { return };
        match answer {
            Ok(counts) => {
                self.retry.clear();
                self.failure = None;
                // A read that began after the change knows it, whatever its number.
                let knows = knows.max(counts.seq);
                self.needed = self.needed.filter(|needed| *needed > knows);
                self.known = Some(counts);
                // What was heard meanwhile was judged by another cut.
                for heard in std::mem::take(&mut self.heard) {
                    self.judge(&heard);
                }
            }
            Err(failure) => {
                self.heard.clear();
                self.retry.handle_failed(now, &failure);
                self.failure = Some(failure);
            }
        }
    }

    pub(super) fn poll_timeout(&self) -> Option<Instant> {
        let waits = self.needed.is_some() && self.reading.is_none();
        let waits = waits && (self.failure.is_none() || self.retry.at().is_some());
        self.begins_at().filter(|_| waits)
    }
}
