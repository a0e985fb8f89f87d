//! Older settled threads, page by page.

use std::{collections::BTreeMap, sync::Arc};

use wakeful_wire::{
    Timestamp,
    rpc::{RowCursor, Rows, ShellRow, ThreadId},
};

use super::counts::is_settled;
use crate::{
    Failure, FailureReason,
    families::{ChangedRows, ReadId, Removals, ShellRows},
};

/// How many rows of a page are asked for.
pub const PAGE_ROWS: usize = 50;
/// Most rows that are kept of one host's pages. At that many no further page is read: the shelf ends
/// there, and older threads are found by a search.
pub const PAGE_ROWS_MAX: usize = 5_000;

/// Where a row stands in the shelf, newest first: when it was settled, then its thread, as the host
/// pages.
#[must_use]
pub fn place(row: &ShellRow) -> Option<RowCursor> {
    let settled = row.settled.filter(|_| is_settled(row))?;
    Some(RowCursor { at: settled.at, thread: row.id })
}

/// The place that every row settled at `cut` or later is above, and every older one below.
fn below_cut(cut: Timestamp) -> RowCursor {
    RowCursor { at: cut, thread: ThreadId::from_uuid(Default::default()) }
}

/// How far the pages of a host are.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum PageState {
    /// There is no list of this session yet.
    #[default]
    Closed,
    /// There is more below.
    More,
    /// A page is on its way.
    Loading,
    /// A page could not be read. A person may try again.
    Failed(Failure),
    /// There is more below, but no room for it here.
    Full,
    /// Every settled thread is here.
    Exhausted,
}

/// The pages of one host.
#[derive(Debug, Clone, Default)]
pub(super) struct Pages {
    rows: BTreeMap<RowCursor, Arc<ShellRow>>,
    places: BTreeMap<ThreadId, RowCursor>,
    /// Every settled thread at or above it is here or in the list.
    frontier: Option<RowCursor>,
    state: PageState,
    reading: Option<ReadId>,
    /// The page on its way was asked for after one had failed.
    again: bool,
}

impl Pages {
    pub(super) const fn state(&self) -> &PageState {
        &self.state
    }

    pub(super) const fn reading(&self) -> Option<ReadId> {
        self.reading
    }

    pub(super) const fn frontier(&self) -> Option<RowCursor> {
        self.frontier
    }

    /// The frontier, if it holds the other hosts back: if rows below it can still be loaded. Not
    /// after a failure, and not while a failed page is tried again, or the shelf would shrink by
    /// the trying.
    pub(super) fn holds_at(&self) -> Option<RowCursor> {
        match &self.state {
            PageState::Loading if self.again => None,
            PageState::More | PageState::Loading | PageState::Full => self.frontier,
            PageState::Closed | PageState::Failed(_) | PageState::Exhausted => None,
        }
    }

    /// Rows of the pages that the list does not have.
    pub(super) fn behind<'a>(
        &'a self,
        shell: &'a ShellRows,
    ) -> impl Iterator<Item = &'a Arc<ShellRow>> {
        self.rows.values().rev().filter(|row| !shell.contains_key(&row.id))
    }

    pub(super) fn row(&self, thread: ThreadId) -> Option<&Arc<ShellRow>> {
        self.rows.get(self.places.get(&thread)?)
    }

    /// The list was replaced: paging begins anew below its cut.
    pub(super) fn handle_snapshot(&mut self, cut: Option<Timestamp>) {
        *self = Self {
            frontier: cut.map(below_cut),
            state: if cut.is_some() { PageState::More } else { PageState::Exhausted },
            ..Self::default()
        };
    }

    /// The list goes on from the rows that were held, and so do the pages. What failed may work now.
    pub(super) fn handle_resumed(&mut self, cut: Option<Timestamp>) {
        if self.state == PageState::Closed && self.frontier.is_none() {
            self.handle_snapshot(cut);
            return;
        }
        self.state = match std::mem::take(&mut self.state) {
            PageState::Full => PageState::Full,
            PageState::Exhausted => PageState::Exhausted,
            PageState::Closed if self.rows.len() >= PAGE_ROWS_MAX => PageState::Full,
            PageState::Closed | PageState::More | PageState::Loading | PageState::Failed(_) => {
                PageState::More
            }
        };
        self.reading = None;
    }

    /// There is no list of this session any more. Rows stay.
    pub(super) fn handle_closed(&mut self) {
        if self.state != PageState::Exhausted {
            self.state = PageState::Closed;
        }
        self.reading = None;
    }

    /// Whether a page may be asked for now, and from where on.
    pub(super) const fn next(&self) -> Option<RowCursor> {
        match self.state {
            PageState::More | PageState::Failed(_) => self.frontier,
            PageState::Closed | PageState::Loading | PageState::Full | PageState::Exhausted => None,
        }
    }

    pub(super) fn handle_begun(&mut self, read: ReadId) {
        self.again = matches!(self.state, PageState::Failed(_));
        self.state = PageState::Loading;
        self.reading = Some(read);
    }

    /// The answer came too late to be told apart from removals: the page is to be read again.
    pub(super) fn handle_unusable(&mut self) {
        self.reading = None;
        self.state = PageState::More;
    }

    pub(super) fn handle_page(&mut self, answer: Result<Rows, Failure>, removals: &Removals) {
        self.reading = None;
        self.again = false;
        let page = match answer {
            Ok(page) => page,
            Err(failure) => {
                self.state = PageState::Failed(failure);
                return;
            }
        };
        if page.next.is_some_and(|next| self.frontier.is_none_or(|frontier| next >= frontier)) {
            let detail = "The host's page of settled threads does not lead further down.";
            self.state = PageState::Failed(Failure::new(FailureReason::Remote, detail));
            return;
        }
        for row in page.rows {
            if let Some(place) = place(&row).filter(|_| !removals.since(row.id, page.seq)) {
                self.remove(row.id);
                self.places.insert(row.id, place);
                self.rows.insert(place, row);
            }
        }
        self.state = match page.next {
            None => PageState::Exhausted,
            Some(_) if self.rows.len() >= PAGE_ROWS_MAX => PageState::Full,
            Some(_) => PageState::More,
        };
        if let Some(next) = page.next {
            self.frontier = Some(next);
        }
    }

    /// The list has what changed, and what left is gone: neither is the pages' any more.
    pub(super) fn handle_changes(&mut self, changes: ChangedRows<'_>) {
        for row in changes.rows {
            self.remove(row.id);
        }
        for thread in changes.removed {
            self.remove(*thread);
        }
    }

    fn remove(&mut self, thread: ThreadId) {
        if let Some(place) = self.places.remove(&thread) {
            self.rows.remove(&place);
        }
    }
}
