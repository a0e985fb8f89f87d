use wakeful_wire::rpc::{By, Settled};

use super::*;
use crate::families::sample::{child, list, row, settled};

/// Two settled above the cut of 100, one below it that is kept because it is pinned, one not settled,
/// a settled subagent.
fn kept() -> ShellRows {
    let subagent =
        ShellRow { settled: Some(Settled { at: Timestamp(160), by: By::Hand }), ..child(4, 5, 4) };
    list([
        settled(1, 200, 1),
        settled(2, 100, 2),
        ShellRow { pinned: true, ..settled(3, 50, 3) },
        subagent,
        row(5, 5),
    ])
}

#[test]
fn the_count_is_what_is_here_less_what_is_below_the_cut_plus_what_the_host_counts() {
    let none = OlderSettled::default();
    let rows = kept();
    let of = |older: &OlderSettled| count(rows.values().map(Arc::as_ref), older);
    assert_eq!(of(&none), 3, "nothing was left out");
    assert_eq!(of(&older(100, 7)), 9, "the pinned one below the cut is among the 7");
    assert_eq!(of(&older(1_000, 7)), 7);
}

#[test]
fn counts_are_told_apart_by_project() {
    let mut rows = kept();
    let other = ShellRow { project: "garden".to_owned(), ..settled(9, 300, 9) };
    rows.insert(other.id, Arc::new(other));
    let desk = Desk::opened(rows, 7);
    let counts = desk.settled.by_project(&desk.shell);
    assert_eq!(counts, BTreeMap::from([("kitchen".to_owned(), 9), ("garden".to_owned(), 1)]));
    assert_eq!(desk.count(), 10);
}

#[test]
fn an_old_thread_that_is_opened_by_link_does_not_change_the_count() {
    let mut desk = Desk::opened(kept(), 7);
    let on_demand = [settled(40, 30, 4), settled(3, 50, 3)];
    let with = desk.shell.values().map(Arc::as_ref).chain([&on_demand[0]]);
    assert_eq!(count(with, &older(100, 7)), desk.count());
    desk.settled.load_more(desk.now);
    let read = desk.one_read();
    desk.page(&read, 10, on_demand.to_vec(), None);
    assert_eq!(desk.count(), 9, "nor do the pages");
    assert_eq!(desk.listed(), [1, 2, 3, 40]);
}

#[test]
fn archiving_one_thread_costs_exactly_one_read() {
    for number in [1, 3, 5, 77] {
        let mut desk = Desk::opened(kept(), 7);
        desk.changes([], &[number]);
        let read = desk.one_read();
        desk.counts(&read, 11, older(90, 6));
        assert_eq!(desk.reads(), []);
        assert_eq!(desk.settled.poll_timeout(), None);
        desk.changes([], &[]);
        desk.settled.handle_timeout(desk.now.after(COUNTS_SPACING));
        assert_eq!(desk.reads(), []);
    }
}

#[test]
fn what_could_move_the_counts_is_followed_by_one_read_and_nothing_else_is() {
    let old = |row: ShellRow| ShellRow { created_at: Timestamp(20), ..row };
    let new = |row: ShellRow| ShellRow { created_at: Timestamp(150), ..row };
    let table = [
        ("a thread is made", new(row(50, 11)), false),
        ("a thread is settled", settled(5, 300, 11), false),
        ("a thread that was made after the cut is settled", new(settled(6, 300, 11)), false),
        ("a thread above the cut is brought back", row(1, 11), false),
        ("a thread above the cut is renamed", settled(2, 100, 11), false),
        ("the kept one below the cut is brought back", row(3, 11), true),
        ("the kept one below the cut is no longer pinned", settled(3, 50, 11), false),
        ("an older one is brought back", old(row(60, 11)), true),
        ("an older one is brought back and settled anew", old(settled(60, 300, 11)), true),
        ("an older one is pinned", old(settled(60, 40, 11)), true),
        ("one is restored from the archive", new(settled(61, 99, 11)), true),
        ("a subagent works", old(child(62, 60, 11)), false),
    ];
    for (what, changed, moves) in table {
        let mut shell = kept();
        shell.insert(thread(6), Arc::new(new(row(6, 5))));
        let mut desk = Desk::opened(shell, 7);
        desk.changes([changed], &[]);
        assert_eq!(desk.reads().len(), usize::from(moves), "{what}");
    }
}

#[test]
fn without_a_cut_nothing_is_ever_read() {
    for older in [None, Some(OlderSettled::default())] {
        let mut desk = Desk { shell: kept(), ..Desk::default() };
        desk.generation(1, Basis::Snapshot, older.as_ref());
        desk.changes([settled(70, 3, 11)], &[1]);
        assert_eq!(desk.reads(), []);
        assert_eq!(desk.count(), 3);
    }
}

#[test]
fn an_answer_that_knows_the_change_already_is_enough_and_an_older_one_is_not() {
    for (knows, more) in [(12, 0), (11, 1)] {
        let mut desk = Desk::opened(kept(), 7);
        desk.changes([], &[90]);
        let read = desk.one_read();
        desk.changes([], &[91]);
        assert_eq!(desk.reads(), [], "one read at a time");
        desk.counts(&read, knows, older(100, 6));
        if more > 0 {
            desk.wait();
        }
        assert_eq!(desk.reads().len(), more, "an answer at {knows}");
    }
}

#[test]
fn rows_that_the_counts_know_already_do_not_make_them_read_again() {
    let mut desk = Desk::opened(kept(), 7);
    desk.changes([], &[90]);
    let read = desk.one_read();
    desk.counts(&read, 20, older(100, 6));
    desk.changes([settled(60, 40, 15)], &[91]);
    assert_eq!(desk.reads(), []);
    // Behind the counts, what the list held of a row says nothing about what they counted.
    desk.changes([settled(3, 50, 25)], &[]);
    desk.wait();
    assert_eq!(desk.reads().len(), 1);
}

#[test]
fn a_hundred_removals_cost_one_read_at_once_and_then_one_a_second() {
    let mut desk = Desk::opened(kept(), 200);
    let mut reads = 0;
    for number in 0..100 {
        desk.changes([], &[1_000 + number]);
        for read in desk.reads() {
            reads += 1;
            let seq = desk.seq;
            desk.counts(&read, seq, older(100, 200 - u32::try_from(number).unwrap() - 1));
        }
    }
    assert_eq!(reads, 1);
    desk.wait();
    assert_eq!(desk.now, START.after(COUNTS_SPACING));
    let read = desk.one_read();
    let seq = desk.seq;
    desk.counts(&read, seq, older(100, 100));
    assert_eq!(desk.count(), 102);
    assert_eq!(desk.settled.poll_timeout(), None);
}

#[test]
fn a_failed_read_of_counts_is_made_again_and_keeps_what_was_known() {
    let mut desk = Desk::opened(kept(), 7);
    desk.changes([], &[90]);
    let read = desk.one_read();
    desk.fail(&read, FailureReason::Network);
    assert_eq!(desk.count(), 9);
    assert!(desk.settled.counts_failure().is_some());
    assert_eq!(desk.reads(), []);
    desk.wait();
    let read = desk.one_read();
    desk.counts(&read, 11, older(100, 6));
    assert!(desk.settled.counts_failure().is_none());
    assert_eq!(desk.count(), 8);

    desk.changes([], &[91]);
    desk.wait();
    let read = desk.one_read();
    desk.fail(&read, FailureReason::Permission);
    assert_eq!(desk.settled.poll_timeout(), None, "what is refused is not asked again");
    desk.generation(0, Basis::Resumed, None);
    desk.now = desk.now.after(COUNTS_SPACING);
    desk.generation(2, Basis::Resumed, Some(&older(100, 7)));
    assert_eq!(desk.one_read().what, ReadWhat::Counts, "a new session may");
}

#[test]
fn counts_wait_for_a_list_and_answers_for_another_are_dropped() {
    let mut desk = Desk::opened(kept(), 7);
    desk.changes([], &[90]);
    let read = desk.one_read();
    desk.generation(0, Basis::Resumed, None);
    assert!(desk.actions().contains(&Action::Cancel(read.id)));
    desk.counts(&read, 99, older(100, 1));
    assert_eq!(desk.count(), 9);
    assert_eq!(desk.settled.poll_timeout(), None);
    desk.settled.handle_timeout(Instant(60_000));
    assert_eq!(desk.reads(), []);
    desk.now = Instant(60_000);
    desk.generation(2, Basis::Resumed, Some(&older(100, 7)));
    let again = desk.one_read();
    desk.counts(&read, 99, older(100, 1));
    assert_eq!(desk.count(), 9);
    desk.counts(&again, 99, older(100, 5));
    assert_eq!(desk.count(), 7);
}

#[test]
fn a_resume_keeps_the_counts_and_a_resume_from_a_cache_reads_them_once() {
    let mut desk = Desk::opened(kept(), 7);
    desk.generation(2, Basis::Resumed, Some(&older(60, 1)));
    assert_eq!(desk.count(), 9, "what was held is newer than what the list began with");
    assert_eq!(desk.reads(), []);

    let mut desk = Desk { shell: kept(), seq: 10, ..Desk::default() };
    desk.generation(1, Basis::Resumed, Some(&older(100, 7)));
    assert_eq!(desk.count(), 9);
    let read = desk.one_read();
    desk.counts(&read, 10, older(100, 5));
    assert_eq!(desk.count(), 7);
    assert_eq!(desk.settled.counts().unwrap().seq, Seq(10));
    desk.generation(2, Basis::Snapshot, Some(&older(100, 4)));
    assert_eq!(desk.count(), 6);
    assert_eq!(desk.reads(), [], "a snapshot says them itself");
}

#[test]
fn what_is_heard_while_the_counts_are_read_is_judged_by_what_the_answer_says() {
    for (at, more) in [(11, 1), (12, 0)] {
        let mut desk = Desk::opened(kept(), 7);
        desk.changes([], &[90]);
        let read = desk.one_read();
        // Above the cut that is known, and below the one that the answer brings.
        desk.changes([row(2, 12)], &[]);
        desk.counts(&read, at, older(150, 6));
        if more > 0 {
            desk.wait();
        }
        assert_eq!(desk.reads().len(), more, "an answer at {at}");
    }
}
