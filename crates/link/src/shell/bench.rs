//! What the tests of this module tell their stories with.

use std::{sync::Arc, time::Duration};

use uuid::Uuid;
use wakeful_wire::{
    Timestamp,
    host::{Capabilities, capability},
    rpc::{Cursor, Epoch, Omissions, Seq, ShellItem, ShellRow, ShellSnapshot, ThreadId},
};

use super::{Action, CachedShell, FetchId, Fetched, Shell, cached::READER};
use crate::{DataStatus, Failure, FailureReason, Instant};

pub(super) const NONE: Omissions = Omissions { families: false, older_settled: false };
pub(super) const FAMILIES: Omissions = Omissions { families: true, older_settled: false };
pub(super) const RELEASE: &str = "1.0.0";

pub(super) const fn thread(number: u128) -> ThreadId {
    ThreadId::from_uuid(Uuid::from_u128(number))
}

pub(super) const fn number(thread: ThreadId) -> u128 {
    thread.uuid().as_u128()
}

/// The row of a thread that was made at the moment of its number.
pub(super) fn row(id: u128, seq: u64) -> Arc<ShellRow> {
    let made = Timestamp(u64::try_from(id).unwrap());
    Arc::new(ShellRow {
        id: thread(id),
        seq: Seq(seq),
        created_at: made,
        active_at: made,
        parent: None,
        root: thread(id),
        project: String::new(),
        agent: "shell".to_owned(),
        title: None,
        pinned: false,
        snoozed_until: None,
        settled: None,
        running_since: None,
        cancelling: false,
        last_outcome: None,
        queued: 0,
        held: false,
        pending: 0,
        background: false,
        mode: None,
    })
}

pub(super) const fn cursor(epoch: u64, seq: u64) -> Cursor {
    Cursor { epoch: Epoch(epoch), seq: Seq(seq) }
}

/// A list in which nothing was left out; each row by its thread's number and its sequence.
pub(super) fn snapshot(epoch: u64, seq: u64, rows: &[(u128, u64)]) -> ShellSnapshot {
    ShellSnapshot {
        cursor: cursor(epoch, seq),
        omitted: NONE,
        rows: rows.iter().map(|(id, seq)| row(*id, *seq)).collect(),
        older_settled: None,
    }
}

/// The same as it is stored by this client.
pub(super) fn cached(snapshot: ShellSnapshot, etag: Option<&str>) -> CachedShell {
    CachedShell {
        snapshot,
        build: RELEASE.to_owned(),
        reader: READER.to_owned(),
        etag: etag.map(str::to_owned),
        partial: false,
    }
}

pub(super) fn fetched(snapshot: ShellSnapshot, etag: Option<&str>) -> Result<Fetched, Failure> {
    Ok(Fetched::Snapshot { snapshot: Box::new(snapshot), etag: etag.map(str::to_owned) })
}

pub(super) fn failure(reason: FailureReason) -> Failure {
    Failure::new(reason, "it did not work")
}

pub(super) const fn resumed(epoch: u64, seq: u64) -> ShellItem {
    ShellItem::Resumed { cursor: cursor(epoch, seq) }
}

pub(super) const fn marker(epoch: u64, seq: u64) -> ShellItem {
    ShellItem::Synchronized { cursor: cursor(epoch, seq) }
}

pub(super) fn changes(seq: u64, rows: &[u128], removed: &[u128]) -> ShellItem {
    ShellItem::Changes {
        seq: Seq(seq),
        rows: rows.iter().map(|id| row(*id, seq)).collect(),
        removed: removed.iter().copied().map(thread).collect(),
    }
}

/// A list, its clock, and what it wanted that was not looked at yet.
#[derive(Debug)]
pub(super) struct Bench {
    pub(super) shell: Shell,
    pub(super) now: Instant,
    /// What the host can do.
    pub(super) capabilities: Capabilities,
}

impl Bench {
    /// A list of a client that wants every row; nothing is stored, or this is. It stores nothing
    /// itself, so that its saves are in nobody's way.
    pub(super) fn new(stored: Option<CachedShell>) -> Self {
        let mut bench = Self::of(Shell::new(NONE, false));
        bench.shell.handle_cached(bench.now, stored);
        bench
    }

    /// The same, but it stores its rows.
    pub(super) fn storing(stored: Option<CachedShell>) -> Self {
        let mut bench = Self::unread();
        bench.shell.handle_cached(bench.now, stored);
        bench
    }

    /// The same, before it is known what is stored.
    pub(super) fn unread() -> Self {
        Self::of(Shell::new(NONE, true))
    }

    pub(super) fn of(shell: Shell) -> Self {
        Self { shell, now: Instant(1_000_000), capabilities: Capabilities::and(&[]) }
    }

    /// A list that has these rows from a session that is ready and live.
    pub(super) fn live(snapshot: ShellSnapshot) -> Self {
        Self::new(None).and_live(snapshot)
    }

    /// Makes it live with these rows.
    pub(super) fn and_live(self, snapshot: ShellSnapshot) -> Self {
        let mut bench = self;
        let at = snapshot.cursor;
        bench.connect(at);
        let id = bench.fetch().unwrap();
        bench.shell.handle_fetched(bench.now, id, fetched(snapshot, None));
        bench.item(ShellItem::Resumed { cursor: at });
        bench.item(ShellItem::Synchronized { cursor: at });
        assert_eq!(bench.status(), DataStatus::Live);
        bench.wanted();
        bench
    }

    /// The same host, whose markers are not to be had.
    pub(super) fn without_marker(mut self) -> Self {
        self.capabilities.0.remove(capability::SYNCHRONIZED);
        self
    }

    /// What it wants, changes of its state left out.
    pub(super) fn wanted(&mut self) -> Vec<Action> {
        std::iter::from_fn(|| self.shell.poll_action())
            .filter(|action| *action != Action::Changed)
            .collect()
    }

    /// The read that it wants, and nothing else.
    pub(super) fn fetch(&mut self) -> Option<FetchId> {
        match self.wanted().as_slice() {
            [Action::Fetch { id, .. }] => Some(*id),
            [] => None,
            other => panic!("more than a read: {other:?}"),
        }
    }

    /// How often it says that its state has changed.
    pub(super) fn writes(&mut self) -> usize {
        std::iter::from_fn(|| self.shell.poll_action())
            .filter(|action| *action == Action::Changed)
            .count()
    }

    pub(super) fn prepare(&mut self) {
        self.shell.handle_prepared(self.now);
    }

    pub(super) fn connect(&mut self, head: Cursor) {
        self.shell.handle_connected(self.now, &self.capabilities, RELEASE, head);
    }

    pub(super) fn disconnect(&mut self) {
        self.shell.handle_disconnected(self.now);
    }

    pub(super) fn item(&mut self, item: ShellItem) {
        self.shell.handle_item(self.now, item);
    }

    pub(super) fn saved(&mut self) {
        self.shell.handle_saved(self.now);
    }

    /// Lets time pass, deadline by deadline. Returns what it wants and after how many milliseconds.
    pub(super) fn pass(&mut self, time: Duration) -> Vec<(u64, Action)> {
        let (from, until) = (self.now, self.now.after(time));
        let mut wanted: Vec<_> = self.wanted().into_iter().map(|action| (0, action)).collect();
        for _ in 0..1_000 {
            let Some(due) = self.shell.poll_timeout().filter(|due| *due <= until) else {
                self.now = until;
                return wanted;
            };
            self.now = self.now.max(due);
            self.shell.handle_timeout(self.now);
            let after = self.now.0 - from.0;
            wanted.extend(self.wanted().into_iter().map(|action| (after, action)));
        }
        panic!("a deadline that never passes: {:?}", self.shell);
    }

    pub(super) fn status(&self) -> DataStatus {
        self.shell.state().status
    }

    pub(super) fn generation(&self) -> u64 {
        self.shell.state().generation
    }

    /// Where a subscription would begin.
    pub(super) fn asks_from(&self) -> Option<Cursor> {
        self.shell.subscription_input().cursor
    }

    /// The rows that are shown: thread and sequence.
    pub(super) fn rows(&self) -> Vec<(u128, u64)> {
        let rows = self.shell.state().list.iter().flat_map(|list| list.rows());
        rows.map(|row| (number(row.id), row.seq.0)).collect()
    }
}
