//! Threads that hold the words that somebody searches for.

use std::{collections::VecDeque, sync::Arc};

use wakeful_wire::rpc::{FoundText, SearchAnswer, ShellRow, ThreadId};

use super::{
    read::ReadId,
    rows::{Removals, ShellRows},
};
use crate::Failure;

/// Most rows of searches that are kept, those of the latest among them. At more, the oldest go.
pub const SEARCH_ROWS_MAX: usize = 500;
/// Most threads of one search.
pub const SEARCH_LIMIT_MAX: usize = 100;
/// Longest search text in bytes; a longer one is cut, since what a host compares is words and the
/// first ones find the thread.
pub const SEARCH_TEXT_MAX: usize = 512;

/// How far a search is.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum SearchState {
    /// Nobody searches.
    #[default]
    Idle,
    /// It waits for the list, or for the answer.
    Searching,
    /// Here is what was found.
    Done,
    /// It failed. Asking again tries again.
    Failed(Failure),
}

/// The latest search, and rows of earlier ones.
#[derive(Debug, Clone, Default)]
pub struct Search {
    pub(super) q: String,
    pub(super) limit: usize,
    pub(super) state: SearchState,
    pub(super) reading: Option<ReadId>,
    threads: Vec<ThreadId>,
    found: Vec<FoundText>,
    rows: ShellRows,
    /// Those with a row, oldest first.
    order: VecDeque<ThreadId>,
}

impl Search {
    /// The words.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.q
    }

    /// How far it is.
    #[must_use]
    pub const fn state(&self) -> &SearchState {
        &self.state
    }

    /// The threads that were found, best first. They may be in the archive.
    #[must_use]
    pub fn threads(&self) -> &[ThreadId] {
        &self.threads
    }

    /// Where in their texts the words are.
    #[must_use]
    pub fn found(&self) -> &[FoundText] {
        &self.found
    }

    /// A row that a search brought.
    #[must_use]
    pub fn row(&self, thread: ThreadId) -> Option<&Arc<ShellRow>> {
        self.rows.get(&thread)
    }

    pub(super) fn begin(&mut self, q: &str, limit: usize) {
        let end = q.floor_char_boundary(SEARCH_TEXT_MAX.min(q.len()));
        q[..end].clone_into(&mut self.q);
        self.limit = limit.clamp(1, SEARCH_LIMIT_MAX);
        self.state = SearchState::Searching;
        self.threads.clear();
        self.found.clear();
    }

    pub(super) fn end(&mut self) {
        self.state = SearchState::Idle;
        self.q.clear();
        self.threads.clear();
        self.found.clear();
    }

    pub(super) fn handle_found(&mut self, answer: SearchAnswer, removals: &Removals) {
        let SearchAnswer { seq, rows, mut found } = answer;
        self.state = SearchState::Done;
        self.threads.clear();
        for row in rows.into_iter().take(SEARCH_LIMIT_MAX) {
            if removals.since(row.id, seq) {
                continue;
            }
            self.threads.push(row.id);
            if self.rows.insert(row.id, Arc::clone(&row)).is_some() {
                self.order.retain(|held| *held != row.id);
            }
            self.order.push_back(row.id);
        }
        while self.order.len() > SEARCH_ROWS_MAX {
            if let Some(oldest) = self.order.pop_front() {
                self.rows.remove(&oldest);
            }
        }
        found.retain(|found| self.threads.contains(&found.thread));
        self.found = found;
    }

    pub(super) fn handle_removed(&mut self, thread: ThreadId) {
        if self.rows.remove(&thread).is_some() {
            self.order.retain(|held| *held != thread);
            self.threads.retain(|held| *held != thread);
            self.found.retain(|found| found.thread != thread);
        }
    }

    pub(super) fn handle_changed(&mut self, row: &Arc<ShellRow>) {
        if let Some(held) = self.rows.get_mut(&row.id) {
            *held = Arc::clone(row);
        }
    }
}
