//! One shelf of the settled threads of several hosts.
//!
//! Each host's rows are known down to its frontier. Below the newest frontier of those hosts that
//! can still load, the *line*, a row of such a host could yet appear between two others, so the
//! shelf ends there: what is listed is always the beginning of what the whole would be, however fast
//! which page comes. A host that has no list of this session, whose page failed, or that has nothing
//! more, holds no one back (seed, The Settled count).
//!
//! The line holds for every row of the shelf, also for one that its host's list brought: it is
//! *newer* on its own host than what that host left out, but may be older than what another left
//! out.

use std::{cmp::Reverse, sync::Arc};

use wakeful_wire::rpc::{RowCursor, ShellRow};

use super::pages::place;

/// What one host has for the shelf.
#[derive(Debug, Clone)]
pub struct HostRows<H> {
    /// The host.
    pub host: H,
    /// [`SettledThreads::holds_at`](super::SettledThreads::holds_at).
    pub holds_at: Option<RowCursor>,
    /// [`SettledThreads::rows`](super::SettledThreads::rows).
    pub rows: Vec<Arc<ShellRow>>,
}

/// The settled threads of several hosts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Shelf<H> {
    /// What is listed, newest first.
    pub rows: Vec<(H, Arc<ShellRow>)>,
    /// Where the list ends for now. Absent: all that can be loaded is listed.
    pub line: Option<RowCursor>,
    /// The hosts whose next page lets the list go on.
    pub next: Vec<H>,
    /// Whether rows are here that wait for the line.
    pub waiting: bool,
}

/// The newest frontier among hosts that can still load.
#[must_use]
pub fn line(frontiers: impl IntoIterator<Item = Option<RowCursor>>) -> Option<RowCursor> {
    frontiers.into_iter().flatten().max()
}

/// Whether a row may be listed. A frontier is the place of a row that is known itself, so a row at
/// the line is above what is not.
#[must_use]
pub fn is_above(row: RowCursor, line: Option<RowCursor>) -> bool {
    line.is_none_or(|line| row >= line)
}

/// Lists the settled threads of all hosts as one.
#[must_use]
pub fn shelf<H: Clone + Ord>(hosts: impl IntoIterator<Item = HostRows<H>>) -> Shelf<H> {
    let hosts: Vec<_> = hosts.into_iter().collect();
    let line = line(hosts.iter().map(|host| host.holds_at));
    let next: Vec<_> = hosts
        .iter()
        .filter(|host| line.is_some() && host.holds_at == line)
        .map(|host| host.host.clone())
        .collect();
    let mut rows: Vec<_> = hosts
        .into_iter()
        .flat_map(|HostRows { host, rows, .. }| {
            rows.into_iter().filter_map(move |row| Some((place(&row)?, host.clone(), row)))
        })
        .collect();
    let many = rows.len();
    rows.retain(|(place, _, _)| is_above(*place, line));
    rows.sort_by(|one, other| Reverse((one.0, &one.1)).cmp(&Reverse((other.0, &other.1))));
    let waiting = rows.len() < many;
    let rows = rows.into_iter().map(|(_, host, row)| (host, row)).collect();
    Shelf { rows, line, next, waiting }
}
