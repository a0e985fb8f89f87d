//! Events that were missed.

use std::time::Duration;

use wakeful_wire::rpc::ShellItem;

use super::super::{bench::*, *};
use crate::DataStatus;

const LONG: Duration = Duration::from_secs(600);

/// A live list at 5, and a head that says more.
fn behind(head: u64) -> Bench {
    let mut bench = Bench::live(snapshot(1, 5, &[(1, 5)]));
    bench.shell.handle_head(bench.now, cursor(1, head));
    bench
}

#[test]
fn a_missed_event_is_found_by_the_next_head_and_brought() {
    let mut bench = behind(9);
    let wanted = bench.pass(GAP_GRACE);
    assert_eq!(wanted, [(2_000, Action::Resubscribe)]);
    assert_eq!(bench.asks_from(), Some(cursor(1, 5)), "from memory, without a read");
    assert_eq!(bench.status(), DataStatus::Live, "nothing shows yet that it is not");
    bench.item(resumed(1, 5));
    bench.item(changes(8, &[2], &[1]));
    assert_eq!(bench.status(), DataStatus::Synchronizing, "now it does");
    bench.item(marker(1, 9));
    assert_eq!((bench.status(), bench.rows()), (DataStatus::Live, vec![(2, 8)]));
    assert_eq!(bench.generation(), 1, "it is the same session");
    bench.shell.handle_head(bench.now, cursor(1, 9));
    assert_eq!(bench.pass(LONG), []);
}

#[test]
fn a_head_of_events_that_change_no_row_is_looked_at_once_and_shows_nothing() {
    let mut bench = behind(9);
    assert_eq!(bench.pass(GAP_GRACE), [(2_000, Action::Resubscribe)]);
    bench.writes();
    bench.shell.handle_started(bench.now);
    bench.item(resumed(1, 5));
    bench.item(marker(1, 9));
    assert_eq!(bench.status(), DataStatus::Live);
    for head in [9, 9, 8] {
        bench.shell.handle_head(bench.now, cursor(1, head));
        assert_eq!(bench.pass(LONG), [], "{head}");
    }
}

#[test]
fn what_is_on_its_way_is_waited_for() {
    let mut bench = behind(9);
    bench.pass(GAP_GRACE / 2);
    bench.item(changes(9, &[2], &[]));
    assert_eq!(bench.pass(LONG), []);
}

#[test]
fn without_a_marker_a_head_is_looked_at_once_too() {
    let mut bench = Bench::new(Some(cached(snapshot(1, 5, &[(1, 5)]), None))).without_marker();
    bench.connect(cursor(1, 9));
    bench.wanted();
    bench.item(resumed(1, 5));
    assert_eq!(bench.pass(LONG), [(2_000, Action::Resubscribe)], "the hello's head says more");
    bench.item(resumed(1, 5));
    bench.shell.handle_head(bench.now, cursor(1, 9));
    assert_eq!(bench.pass(LONG), []);
    bench.shell.handle_head(bench.now, cursor(1, 10));
    assert_eq!(bench.pass(LONG), [(2_000, Action::Resubscribe)]);
}

#[test]
fn a_marker_below_the_head_of_the_hello_is_looked_at() {
    let mut bench = Bench::new(Some(cached(snapshot(1, 5, &[(1, 5)]), None)));
    bench.connect(cursor(1, 9));
    bench.wanted();
    bench.item(resumed(1, 5));
    assert_eq!(bench.pass(LONG), [], "everything is on its way");
    bench.item(marker(1, 5));
    assert_eq!(bench.pass(LONG), [(2_000, Action::Resubscribe)]);
}

#[test]
fn a_head_of_another_start_says_nothing() {
    let mut bench = Bench::live(snapshot(1, 5, &[(1, 5)]));
    bench.shell.handle_head(bench.now, cursor(2, 9));
    assert_eq!(bench.pass(LONG), []);

    let mut bench = Bench::new(Some(cached(snapshot(1, 5, &[(1, 5)]), None)));
    bench.connect(cursor(3, 9));
    bench.wanted();
    bench.item(resumed(2, 5));
    bench.item(marker(2, 5));
    assert_eq!(bench.pass(LONG), [], "not even the hello's");
}

#[test]
fn further_heads_during_a_look_wait_for_its_end() {
    let mut bench = behind(9);
    assert_eq!(bench.pass(GAP_GRACE), [(2_000, Action::Resubscribe)]);
    bench.shell.handle_head(bench.now, cursor(1, 12));
    assert_eq!(bench.pass(LOOK_PATIENCE / 2), []);
    bench.item(resumed(1, 5));
    assert_eq!(bench.pass(LOOK_PATIENCE / 4), []);
    bench.item(marker(1, 10));
    assert_eq!(bench.pass(LONG), [(2_000, Action::Resubscribe)]);
}

#[test]
fn a_look_that_is_not_answered_ends_the_belief_that_the_list_is_live() {
    let mut bench = behind(9);
    bench.pass(GAP_GRACE);
    bench.pass(LOOK_PATIENCE / 2);
    assert_eq!(bench.status(), DataStatus::Live);
    bench.pass(LOOK_PATIENCE);
    assert_eq!(bench.status(), DataStatus::Synchronizing);
    bench.item(resumed(1, 5));
    bench.item(marker(1, 9));
    assert_eq!(bench.status(), DataStatus::Live);
}

#[test]
fn a_look_may_be_answered_by_the_whole_list() {
    let mut bench = behind(9);
    bench.pass(GAP_GRACE);
    bench.item(ShellItem::Snapshot { snapshot: snapshot(1, 9, &[(3, 9)]) });
    assert_eq!((bench.rows(), bench.status()), (vec![(3, 9)], DataStatus::Synchronizing));
    assert_eq!(bench.generation(), 2);
}
