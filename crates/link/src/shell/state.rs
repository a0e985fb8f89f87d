//! What is published of one host's list.

use wakeful_wire::rpc::Cursor;

use super::ShellList;
use crate::{DataStatus, Failure};

/// One host's list as views see it. Independent of the connection's state: a list can be out of date
/// on a healthy connection, and then says why.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ShellState {
    /// The rows; none if there never were any. They stay when the connection goes.
    pub list: Option<ShellList>,
    /// How current they are.
    pub status: DataStatus,
    /// Why they are not being brought up to date although the connection is healthy. Says nothing
    /// of the connection, and no new connection is to be expected from it.
    pub error: Option<Failure>,
    /// One more with each list that the host sent or confirmed: 0 before the first. What is read on
    /// demand waits for the first and is keyed by it.
    pub generation: u64,
    /// Whether the present session has sent or confirmed the rows. False between sessions, while
    /// [`Self::generation`] stays.
    pub verified: bool,
}

impl ShellState {
    /// What the rows are at.
    #[must_use]
    pub fn cursor(&self) -> Option<Cursor> {
        self.list.as_ref().map(ShellList::cursor)
    }
}
