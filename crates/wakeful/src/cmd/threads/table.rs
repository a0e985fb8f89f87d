//! The list of one host as a table.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use wakeful_wire::{
    Timestamp,
    rpc::{ShellRow, ThreadId},
};

use super::{
    super::short,
    state::{ago, state},
};
use crate::output;

/// The most characters of a title that are shown.
const TITLE_MAX: usize = 56;

/// The table and, where some of the `settled` threads are not among the rows, a line that says how
/// many. Subagents stand indented below the thread that they belong to.
pub(super) fn table(rows: &[Arc<ShellRow>], settled: u64, now: Timestamp) -> String {
    let length = short::length(rows.iter().map(|row| row.id));
    let cells: Vec<[String; 5]> = arranged(rows)
        .into_iter()
        .map(|(depth, row)| {
            [
                short::id(row.id, length),
                format!("{}{}", "  ".repeat(depth), title(row)),
                row.agent.clone(),
                state(row, now),
                ago(row.active_at, now),
            ]
        })
        .collect();
    let mut text = output::table(["THREAD", "TITLE", "AGENT", "STATE", "ACTIVE"], &cells);
    if cells.is_empty() {
        text.push_str("no threads\n");
    }
    match not_shown(rows, settled) {
        0 => {}
        1 => text.push_str("1 older settled thread is not shown (--settled lists it)\n"),
        many => text.push_str(&format!(
            "{many} older settled threads are not shown (--settled lists them)\n"
        )),
    }
    text
}

pub(super) fn title(row: &ShellRow) -> String {
    let title = row.title.as_deref().map(str::trim).filter(|title| !title.is_empty());
    let title = title.unwrap_or("untitled");
    if title.chars().count() <= TITLE_MAX {
        return title.to_owned();
    }
    let kept: String = title.chars().take(TITLE_MAX - 1).collect();
    format!("{}…", kept.trim_end())
}

/// How many settled threads are not among the rows.
fn not_shown(rows: &[Arc<ShellRow>], settled: u64) -> u64 {
    let kept = rows.iter().filter(|row| row.parent.is_none() && row.settled.is_some());
    settled.saturating_sub(kept.count() as u64)
}

/// Rows in the order in which they are shown, each with its depth: what is put aside last, pinned
/// first, then whatever was active last; subagents below their thread, in the order of their making.
fn arranged(rows: &[Arc<ShellRow>]) -> Vec<(usize, &ShellRow)> {
    let known: BTreeSet<ThreadId> = rows.iter().map(|row| row.id).collect();
    let mut children: BTreeMap<ThreadId, Vec<&ShellRow>> = BTreeMap::new();
    let mut tops: Vec<&ShellRow> = Vec::new();
    for row in rows {
        match row.parent.filter(|parent| known.contains(parent) && *parent != row.id) {
            Some(parent) => children.entry(parent).or_default().push(row),
            None => tops.push(row),
        }
    }
    tops.sort_by_key(|row| {
        let aside = row.settled.is_some() || row.snoozed_until.is_some();
        (aside && !row.is_busy(), !row.pinned, std::cmp::Reverse(row.active_at), row.id)
    });
    for below in children.values_mut() {
        below.sort_by_key(|row| std::cmp::Reverse((row.created_at, row.id)));
    }
    let mut arranged = Vec::with_capacity(rows.len());
    let mut left: Vec<(usize, &ShellRow)> = tops.into_iter().rev().map(|row| (0, row)).collect();
    while let Some((depth, row)) = left.pop() {
        arranged.push((depth, row));
        // Taken out: whatever a host says, no row is shown twice.
        let below = children.remove(&row.id).unwrap_or_default();
        left.extend(below.into_iter().map(|row| (depth + 1, row)));
    }
    // Rows that name each other as parents are below no top.
    arranged.extend(children.into_values().flatten().map(|row| (0, row)));
    arranged
}

#[cfg(test)]
mod tests {
    use wakeful_wire::rpc::Settled;

    use super::{
        super::tests::{NOW, id, row},
        *,
    };

    fn shown(rows: Vec<ShellRow>) -> Vec<(usize, ThreadId)> {
        let rows: Vec<_> = rows.into_iter().map(Arc::new).collect();
        arranged(&rows).into_iter().map(|(depth, row)| (depth, row.id)).collect()
    }

    #[test]
    fn subagents_stand_below_their_thread() {
        let mut old = row(1);
        old.active_at = Timestamp(1);
        let mut child = row(2);
        (child.parent, child.created_at) = (Some(id(1)), Timestamp(5));
        let mut younger = row(3);
        (younger.parent, younger.created_at) = (Some(id(1)), Timestamp(6));
        let mut grandchild = row(4);
        grandchild.parent = Some(id(2));
        let mut orphan = row(5);
        orphan.parent = Some(id(99));
        orphan.active_at = Timestamp(9);
        let rows = vec![grandchild, younger, child, old, orphan];
        let expected = [(0, 5), (0, 1), (1, 2), (2, 4), (1, 3)];
        assert_eq!(shown(rows), expected.map(|(depth, number)| (depth, id(number))));
    }

    #[test]
    fn pinned_threads_come_first_and_those_put_aside_last_unless_they_are_busy() {
        let settled = Some(Settled { at: Timestamp(1), by: Default::default() });
        let mut aside = row(1);
        (aside.settled, aside.active_at) = (settled, Timestamp(100));
        let mut busy = row(2);
        (busy.settled, busy.queued, busy.active_at) = (settled, 1, Timestamp(50));
        let mut pinned = row(3);
        (pinned.pinned, pinned.active_at) = (true, Timestamp(1));
        let mut plain = row(4);
        plain.active_at = Timestamp(60);
        let order = [3, 4, 2, 1].map(|number| (0, id(number)));
        assert_eq!(shown(vec![aside, busy, pinned, plain]), order);
    }

    #[test]
    fn threads_that_are_each_others_parents_are_shown_once() {
        let mut one = row(1);
        one.parent = Some(id(2));
        let mut two = row(2);
        two.parent = Some(id(1));
        let mut own = row(3);
        own.parent = Some(id(3));
        assert_eq!(shown(vec![one, two, own]).len(), 3);
    }

    #[test]
    fn a_list_says_what_it_leaves_out() {
        let mut kept = row(1);
        kept.settled = Some(Settled { at: Timestamp(9), by: Default::default() });
        kept.title = Some(format!("{}\u{1b}[2J", "long ".repeat(40)));
        let rows = [Arc::new(kept), Arc::new(row(2))];
        let text = table(&rows, 4, NOW);
        assert!(text.contains("\n3 older settled threads are not shown"), "{text}");
        assert!(text.contains("untitled") && text.contains('…') && !text.contains('\u{1b}'));
        assert!(!table(&rows, 1, NOW).contains("not shown"));
        assert_eq!(table(&[], 0, NOW), "no threads\n");
    }
}
