//! What is published of a thread.

use std::sync::Arc;

use wakeful_wire::rpc::{Cursor, Detail, PageCursor};

use super::Held;
use crate::{DataStatus, Failure};

/// What is published of a thread that somebody looks at.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ThreadState {
    /// The thread and what it is at; nothing until something was had, and none of a deleted one.
    pub held: Option<Held>,
    /// How current that is. Apart from the connection's health.
    pub status: DataStatus,
    /// Why the thread's own subscription failed, on a connection that may be healthy. Stays until
    /// the next one has begun to deliver.
    pub error: Option<Failure>,
    /// The way to older content.
    pub page: PageState,
}

impl ThreadState {
    /// The thread and a window of its content.
    #[must_use]
    pub fn detail(&self) -> Option<&Arc<Detail>> {
        self.held.as_ref().map(|held| &held.detail)
    }

    /// What it is at.
    #[must_use]
    pub fn cursor(&self) -> Option<Cursor> {
        self.held.as_ref().map(|held| held.cursor)
    }
}

/// The way to a thread's older content.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PageState {
    /// Whether there is older content than what is held.
    pub has_more: bool,
    /// Whether a page is on its way.
    pub loading: bool,
    /// Where the next page ends.
    pub before: Option<PageCursor>,
    /// Why the last load failed. Gone with the next one.
    pub error: Option<Failure>,
}
