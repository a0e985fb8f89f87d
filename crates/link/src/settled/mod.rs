//! Settled threads of one host: how many there are, and the older ones page by page.
//!
//! A list that leaves older settled threads out names a *cut*: those that were settled before it are
//! older, and the host counts them. The older ones come page by page from the cut downwards. How far
//! a host's pages reach is its *frontier*; how the frontiers of several hosts let one shelf be
//! listed is in [`frontier`].
//!
//! # While the list and the counts are apart
//!
//! Counts are read when the list says that they may have moved, and the answer may know more than
//! the list does yet. In between the sum can be off by what is on its way. It is right again once
//! the list has what the answer knew; no order of the two leaves it wrong.

use std::{
    collections::{BTreeMap, VecDeque},
    sync::Arc,
};

use wakeful_wire::rpc::{Counts, OlderSettled, RowCursor, Seq, ShellRow, ThreadId};

use crate::{
    Failure, Instant,
    families::{
        Basis, ChangedRows, Read, ReadAnswer, ReadId, ReadWhat, Removals, ShellRows, mismatch,
    },
};

pub mod frontier;

mod counts;
mod pages;

#[cfg(test)]
#[cfg(not(target_arch = "wasm32"))]
mod properties;
#[cfg(test)]
mod tests;

pub use counts::{COUNTS_SPACING, by_project, count, is_below, is_settled};
pub use pages::{PAGE_ROWS, PAGE_ROWS_MAX, PageState, place};

use counts::Counting;
use pages::Pages;

/// What is to be done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Action {
    /// Make this read, and give the answer to [`SettledThreads::handle_read`].
    Read(Read),
    /// The answer of this read is not wanted any more.
    Cancel(ReadId),
    /// The count, the rows or the state of the pages changed.
    Changed,
}

/// The settled threads of one host.
#[derive(Debug, Clone, Default)]
pub struct SettledThreads {
    generation: u64,
    last_read: ReadId,
    counting: Counting,
    pages: Pages,
    /// Somebody wants one more page, and has no answer yet.
    asked: bool,
    /// Noted while a page is on its way.
    removals: Removals,
    actions: VecDeque<Action>,
}

impl SettledThreads {
    /// No list yet.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// The list's generation; 0 while this session has no authoritative list. `seq` is what the list
    /// is at, and `older` what it says that it left out of the settled threads. Reads wait for a
    /// list, and an answer for another generation is dropped.
    pub fn handle_generation(
        &mut self,
        now: Instant,
        generation: u64,
        basis: Basis,
        seq: Seq,
        older: Option<&OlderSettled>,
    ) {
        if generation == self.generation {
            return;
        }
        self.generation = generation;
        self.cancel(self.counting.reading());
        self.cancel(self.pages.reading());
        self.removals.clear();
        let cut = older.and_then(|older| older.cut);
        match basis {
            Basis::Snapshot | Basis::Resumed if generation == 0 => {
                self.counting.handle_dropped();
                self.pages.handle_closed();
            }
            Basis::Snapshot => {
                self.counting.handle_snapshot(seq, older);
                self.pages.handle_snapshot(cut);
            }
            Basis::Resumed => {
                self.counting.handle_resumed(seq, older);
                self.pages.handle_resumed(cut);
            }
        }
        self.changed();
        self.advance(now);
    }

    fn cancel(&mut self, read: Option<ReadId>) {
        self.actions.extend(read.map(Action::Cancel));
    }

    /// Rows changed. `held` are the list's rows *before* it takes them in.
    pub fn handle_changes(&mut self, now: Instant, held: &ShellRows, changes: ChangedRows<'_>) {
        if changes.is_repeated() {
            return;
        }
        if self.pages.reading().is_some() {
            self.removals.note(changes.removed, changes.seq);
        }
        self.counting.handle_changes(held, changes);
        self.pages.handle_changes(changes);
        self.changed();
        self.advance(now);
    }

    /// A person wants more older threads, or the page that failed once more. Waits for a list; while
    /// a page is on its way, nothing more is asked for.
    pub fn load_more(&mut self, now: Instant) {
        self.asked = true;
        self.advance(now);
    }

    /// The answer of a read, with the generation that it was made in.
    pub fn handle_read(
        &mut self,
        now: Instant,
        id: ReadId,
        generation: u64,
        answer: Result<ReadAnswer, Failure>,
    ) {
        if generation != self.generation {
            return;
        }
        if self.counting.reading() == Some(id) {
            let answer = answer.and_then(|answer| match answer {
                ReadAnswer::Counts(counts) => Ok(counts),
                ReadAnswer::Rows(_) | ReadAnswer::Gone | ReadAnswer::Found(_) => Err(mismatch()),
            });
            self.counting.handle_answer(now, answer);
        } else if self.pages.reading() == Some(id) {
            let answer = answer.and_then(|answer| match answer {
                ReadAnswer::Rows(rows) => Ok(rows),
                ReadAnswer::Counts(_) | ReadAnswer::Gone | ReadAnswer::Found(_) => Err(mismatch()),
            });
            if answer.as_ref().is_ok_and(|page| !self.removals.can_judge(page.seq)) {
                self.pages.handle_unusable();
            } else {
                self.asked = false;
                self.pages.handle_page(answer, &self.removals);
            }
            self.removals.clear();
        } else {
            return;
        }
        self.changed();
        self.advance(now);
    }

    /// How many threads are settled, the host's older ones among them.
    #[must_use]
    pub fn count(&self, shell: &ShellRows) -> u64 {
        count(self.local(shell).map(Arc::as_ref), self.older())
    }

    /// The same by project.
    #[must_use]
    pub fn by_project(&self, shell: &ShellRows) -> BTreeMap<String, u64> {
        by_project(self.local(shell).map(Arc::as_ref), self.older())
    }

    /// Settled threads that are here, newest first: the list's, and those of the pages behind them.
    #[must_use]
    pub fn rows(&self, shell: &ShellRows) -> Vec<Arc<ShellRow>> {
        let mut rows: Vec<_> = self.local(shell).cloned().collect();
        rows.sort_unstable_by_key(|row| std::cmp::Reverse(place(row)));
        rows
    }

    fn local<'a>(&'a self, shell: &'a ShellRows) -> impl Iterator<Item = &'a Arc<ShellRow>> {
        shell.values().filter(|row| is_settled(row)).chain(self.pages.behind(shell))
    }

    /// The row of a thread, if a page brought it. The list's row, if there is one, counts instead.
    #[must_use]
    pub fn row(&self, thread: ThreadId) -> Option<&Arc<ShellRow>> {
        self.pages.row(thread)
    }

    /// What is known of the settled threads below the cut, with what that is at. Whoever saves the
    /// list saves this with it.
    #[must_use]
    pub const fn counts(&self) -> Option<&Counts> {
        self.counting.known()
    }

    /// Why the counts could not be read.
    #[must_use]
    pub const fn counts_failure(&self) -> Option<&Failure> {
        self.counting.failure()
    }

    fn older(&self) -> &OlderSettled {
        static NONE: OlderSettled = OlderSettled { cut: None, counts: BTreeMap::new() };
        self.counting.known().map_or(&NONE, |known| &known.older_settled)
    }

    /// How far the pages are.
    #[must_use]
    pub const fn pages(&self) -> &PageState {
        self.pages.state()
    }

    /// The frontier: every settled thread at or above it is here. Absent: nothing was left out, or
    /// there is no list yet.
    #[must_use]
    pub const fn frontier(&self) -> Option<RowCursor> {
        self.pages.frontier()
    }

    /// The frontier, if this host holds the shelf back: if it has a list of this session and can
    /// still load what is below.
    #[must_use]
    pub fn holds_at(&self) -> Option<RowCursor> {
        self.pages.holds_at()
    }

    fn advance(&mut self, now: Instant) {
        if self.generation == 0 {
            return;
        }
        if self.counting.wants_read(now) {
            let read = self.read(ReadWhat::Counts);
            self.counting.handle_begun(now, read);
        }
        if self.asked && self.pages.reading().is_none() {
            match self.pages.next() {
                Some(below) => {
                    let read = self.read(ReadWhat::Settled { below, limit: PAGE_ROWS });
                    self.pages.handle_begun(read);
                    self.changed();
                }
                None => self.asked = false,
            }
        }
    }

    fn read(&mut self, what: ReadWhat) -> ReadId {
        let id = ReadId::next(&mut self.last_read);
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
        self.counting.poll_timeout().filter(|_| self.generation > 0)
    }

    /// What to do next.
    pub fn poll_action(&mut self) -> Option<Action> {
        self.actions.pop_front()
    }
}
