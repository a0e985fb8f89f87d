use std::{sync::Arc, time::Duration};

use wakeful_wire::rpc::{FoundText, Rows, SearchAnswer, Seq, ShellRow};

use super::{
    sample::{child, list, row, settled, thread},
    *,
};

use crate::DataStatus;

mod absence;
mod bounds;
mod family;
mod generations;
mod search;

const START: Instant = Instant(0);

/// Families with a list of generation 1.
fn opened() -> Families {
    let mut families = Families::new();
    families.handle_generation(START, 1, Basis::Snapshot);
    drain(&mut families);
    families
}

fn drain(families: &mut Families) -> Vec<Action> {
    std::iter::from_fn(|| families.poll_action()).collect()
}

/// The reads that are to be made now.
fn reads(families: &mut Families) -> Vec<Read> {
    drain(families)
        .into_iter()
        .filter_map(|action| match action {
            Action::Read(read) => Some(read),
            Action::Cancel(_) | Action::Changed | Action::Answered { .. } => None,
        })
        .collect()
}

fn one_read(families: &mut Families) -> Read {
    let mut reads = reads(families);
    assert_eq!(reads.len(), 1, "{reads:?}");
    reads.remove(0)
}

fn answered(families: &mut Families) -> Vec<(u64, Absence)> {
    let number = |thread: ThreadId| u64::try_from(thread.uuid().as_u128()).unwrap();
    drain(families)
        .into_iter()
        .filter_map(|action| match action {
            Action::Answered { thread, absence } => Some((number(thread), absence)),
            Action::Read(_) | Action::Cancel(_) | Action::Changed => None,
        })
        .collect()
}

fn rows(seq: u64, rows: impl IntoIterator<Item = ShellRow>) -> ReadAnswer {
    ReadAnswer::Rows(Rows {
        seq: Seq(seq),
        rows: rows.into_iter().map(Arc::new).collect(),
        next: None,
    })
}

fn answer(families: &mut Families, read: &Read, answer: ReadAnswer) {
    families.handle_read(START, read.id, read.generation, Ok(answer));
}

fn fail(families: &mut Families, now: Instant, read: &Read, reason: FailureReason) {
    let failure = Failure::new(reason, "it did not work");
    families.handle_read(now, read.id, read.generation, Err(failure));
}

fn changes<'a>(
    from: u64,
    seq: u64,
    rows: &'a [Arc<ShellRow>],
    removed: &'a [ThreadId],
) -> ChangedRows<'a> {
    ChangedRows { from: Seq(from), seq: Seq(seq), rows, removed }
}

fn numbers(rows: &[Arc<ShellRow>]) -> Vec<u64> {
    rows.iter().map(|row| u64::try_from(row.id.uuid().as_u128()).unwrap()).collect()
}

fn family_read(number: u64) -> ReadWhat {
    ReadWhat::Family { thread: thread(number) }
}
