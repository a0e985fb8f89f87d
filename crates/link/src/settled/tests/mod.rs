use std::{collections::BTreeMap, sync::Arc};

use wakeful_wire::{
    Timestamp,
    rpc::{Counts, OlderSettled, RowCursor, Rows, Seq, ShellRow, ThreadId},
};

use super::*;
use crate::{
    FailureReason,
    families::sample::{apply, thread},
};

mod counting;
mod paging;
mod shelf;

const START: Instant = Instant(0);

/// What a host says that it left out.
fn older(cut: u64, many: u32) -> OlderSettled {
    OlderSettled {
        cut: Some(Timestamp(cut)),
        counts: BTreeMap::from([("kitchen".to_owned(), many)]),
    }
}

/// One host's list and settled threads, driven by hand.
#[derive(Default)]
struct Desk {
    now: Instant,
    settled: SettledThreads,
    shell: ShellRows,
    seq: u64,
}

impl Desk {
    /// A list of generation 1 at 10, which left threads out that were settled before 100.
    fn opened(shell: ShellRows, many: u32) -> Self {
        let mut desk = Self { shell, seq: 10, ..Self::default() };
        desk.generation(1, Basis::Snapshot, Some(&older(100, many)));
        desk
    }

    fn generation(&mut self, generation: u64, basis: Basis, older: Option<&OlderSettled>) {
        self.settled.handle_generation(self.now, generation, basis, Seq(self.seq), older);
    }

    fn changes(&mut self, rows: impl IntoIterator<Item = ShellRow>, removed: &[u64]) {
        let rows: Vec<_> = rows.into_iter().map(Arc::new).collect();
        let removed: Vec<_> = removed.iter().copied().map(thread).collect();
        let seq = rows.iter().map(|row| row.seq.0).max().unwrap_or(0).max(self.seq + 1);
        let changes =
            ChangedRows { from: Seq(self.seq), seq: Seq(seq), rows: &rows, removed: &removed };
        self.settled.handle_changes(self.now, &self.shell, changes);
        apply(&mut self.shell, changes);
        self.seq = seq;
    }

    fn actions(&mut self) -> Vec<Action> {
        std::iter::from_fn(|| self.settled.poll_action()).collect()
    }

    fn reads(&mut self) -> Vec<Read> {
        self.actions()
            .into_iter()
            .filter_map(|action| match action {
                Action::Read(read) => Some(read),
                Action::Cancel(_) | Action::Changed => None,
            })
            .collect()
    }

    fn one_read(&mut self) -> Read {
        let mut reads = self.reads();
        assert_eq!(reads.len(), 1, "{reads:?}");
        reads.remove(0)
    }

    /// Waits until the machine wants to be called.
    fn wait(&mut self) {
        self.now = self.settled.poll_timeout().unwrap();
        self.settled.handle_timeout(self.now);
    }

    fn answer(&mut self, read: &Read, answer: ReadAnswer) {
        self.settled.handle_read(self.now, read.id, read.generation, Ok(answer));
    }

    fn counts(&mut self, read: &Read, seq: u64, older_settled: OlderSettled) {
        assert_eq!(read.what, ReadWhat::Counts);
        self.answer(read, ReadAnswer::Counts(Counts { seq: Seq(seq), older_settled }));
    }

    fn page(&mut self, read: &Read, seq: u64, rows: Vec<ShellRow>, next: Option<(u64, u64)>) {
        let rows = rows.into_iter().map(Arc::new).collect();
        let next = next.map(|(at, number)| cursor(at, number));
        self.answer(read, ReadAnswer::Rows(Rows { seq: Seq(seq), rows, next }));
    }

    fn fail(&mut self, read: &Read, reason: FailureReason) {
        let failure = Failure::new(reason, "it did not work");
        self.settled.handle_read(self.now, read.id, read.generation, Err(failure));
    }

    fn count(&self) -> u64 {
        self.settled.count(&self.shell)
    }

    fn listed(&self) -> Vec<u64> {
        numbers(self.settled.rows(&self.shell).iter().map(|row| row.id))
    }
}

fn cursor(at: u64, number: u64) -> RowCursor {
    RowCursor { at: Timestamp(at), thread: thread(number) }
}

fn numbers(threads: impl IntoIterator<Item = ThreadId>) -> Vec<u64> {
    let number = |thread: ThreadId| u64::try_from(thread.uuid().as_u128()).unwrap();
    threads.into_iter().map(number).collect()
}
