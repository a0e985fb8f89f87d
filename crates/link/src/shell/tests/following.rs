//! What the subscription does to the list.

use std::time::Duration;

use wakeful_wire::rpc::ShellItem;

use super::super::{bench::*, *};
use crate::{DataStatus, FailureReason};

const SECOND: Duration = Duration::from_secs(1);

/// A session that waits for the first item, going on from one stored row at 5.
fn subscribed(marks: bool) -> Bench {
    let mut bench = Bench::new(Some(cached(snapshot(1, 5, &[(1, 5)]), None)));
    if !marks {
        bench = bench.without_marker();
    }
    bench.connect(cursor(1, 9));
    assert_eq!(bench.wanted(), [Action::Subscribe]);
    bench
}

#[test]
fn a_list_is_live_only_after_the_marker() {
    for first in [resumed(1, 5), ShellItem::Snapshot { snapshot: snapshot(1, 8, &[(1, 5)]) }] {
        let mut bench = subscribed(true);
        for item in [first.clone(), changes(9, &[2], &[])] {
            bench.item(item);
            assert_eq!(bench.status(), DataStatus::Synchronizing, "{first:?}");
        }
        bench.item(marker(1, 9));
        assert_eq!(bench.status(), DataStatus::Live, "{first:?}");
        bench.item(changes(12, &[3], &[]));
        assert_eq!(bench.status(), DataStatus::Live, "and stays so");
    }
}

#[test]
fn a_list_of_a_host_without_marker_is_live_at_once() {
    for (first, at) in [
        (resumed(1, 5), cursor(1, 5)),
        (ShellItem::Snapshot { snapshot: snapshot(1, 8, &[(1, 5)]) }, cursor(1, 8)),
    ] {
        let mut bench = subscribed(false);
        bench.item(first.clone());
        assert_eq!((bench.status(), bench.generation()), (DataStatus::Live, 1), "{first:?}");
        assert_eq!(bench.shell.state().cursor(), Some(at));
    }
}

#[test]
fn changes_that_are_not_newer_than_what_is_held_are_ignored() {
    let mut bench = Bench::live(snapshot(1, 5, &[(1, 5)]));
    for seq in [4, 5] {
        bench.item(changes(seq, &[2], &[1]));
        assert_eq!((bench.rows(), bench.writes()), (vec![(1, 5)], 0), "{seq}");
    }
    bench.item(changes(6, &[2], &[1]));
    assert_eq!(bench.rows(), [(2, 6)]);
}

#[test]
fn items_that_come_together_are_one_change() {
    let mut bench = subscribed(true);
    bench.writes();
    let many = [resumed(1, 5), changes(7, &[2, 3], &[1]), changes(9, &[4], &[]), marker(1, 9)];
    bench.shell.handle_items(bench.now, many);
    assert_eq!(bench.writes(), 1);
    assert_eq!(bench.rows(), [(2, 7), (3, 7), (4, 9)]);
    bench.item(changes(11, &[2, 3, 4, 5], &[]));
    assert_eq!(bench.writes(), 1);
}

#[test]
fn what_changes_nothing_is_no_change() {
    let mut bench = Bench::live(snapshot(1, 5, &[(1, 5)]));
    bench.item(ShellItem::Unknown);
    bench.item(marker(1, 5));
    bench.shell.handle_head(bench.now, cursor(1, 5));
    bench.shell.handle_timeout(bench.now);
    bench.shell.handle_prepared(bench.now);
    assert_eq!(bench.writes(), 0);
    bench.item(resumed(1, 5));
    bench.item(marker(1, 5));
    assert_eq!(bench.writes(), 0, "a look that finds nothing");
    bench.item(resumed(2, 5));
    assert_eq!(bench.writes(), 1, "another start has confirmed the place");
}

#[test]
fn items_before_the_first_one_of_a_subscription_are_of_an_older_one() {
    let mut bench = Bench::live(snapshot(1, 5, &[(1, 5)]));
    bench.connect(cursor(1, 9));
    bench.wanted();
    bench.item(changes(9, &[2], &[]));
    bench.item(marker(1, 9));
    assert_eq!((bench.rows(), bench.status()), (vec![(1, 5)], DataStatus::Synchronizing));
    bench.disconnect();
    bench.item(ShellItem::Snapshot { snapshot: snapshot(1, 9, &[]) });
    assert_eq!(bench.rows(), [(1, 5)], "there is no session");
}

#[test]
fn a_subscription_that_fails_is_no_connection_that_does() {
    let mut bench = Bench::live(snapshot(1, 5, &[(1, 5)]));
    bench.shell.handle_subscription_failed(bench.now, failure(FailureReason::Remote));
    let state = bench.shell.state();
    assert_eq!(
        (state.status, &state.error),
        (DataStatus::Cached, &Some(failure(FailureReason::Remote)))
    );
    assert_eq!(bench.rows(), [(1, 5)]);
    assert_eq!(bench.wanted(), [], "the boundary tries again, and nobody reconnects");
    bench.shell.handle_started(bench.now);
    assert_eq!(bench.status(), DataStatus::Cached, "nothing has come yet");
    assert_eq!(bench.asks_from(), Some(cursor(1, 5)));
    bench.item(resumed(1, 5));
    assert_eq!((bench.status(), &bench.shell.state().error), (DataStatus::Synchronizing, &None));
    bench.item(marker(1, 5));
    assert_eq!(bench.status(), DataStatus::Live);
}

#[test]
fn a_failure_is_forgotten_with_its_session() {
    let mut bench = subscribed(true);
    bench.shell.handle_subscription_failed(bench.now, failure(FailureReason::Remote));
    bench.disconnect();
    assert_eq!((bench.status(), &bench.shell.state().error), (DataStatus::Cached, &None));
    bench.connect(cursor(1, 9));
    assert_eq!(bench.status(), DataStatus::Synchronizing);
}

#[test]
fn a_host_that_cannot_go_on_from_held_rows_is_asked_for_the_list() {
    for (reason, gives_up) in [(FailureReason::Remote, true), (FailureReason::Overloaded, false)] {
        let mut bench = subscribed(true);
        for _ in 0..RESUMES_MAX {
            assert!(bench.asks_from().is_some(), "{reason}");
            bench.shell.handle_subscription_failed(bench.now, failure(reason));
        }
        assert_eq!(bench.asks_from().is_none(), gives_up, "{reason}");
        bench.item(ShellItem::Snapshot { snapshot: snapshot(1, 9, &[(1, 5)]) });
        assert_eq!(bench.asks_from(), Some(cursor(1, 9)), "{reason}");
    }
}

#[test]
fn a_subscription_that_is_over_is_made_anew_later_from_the_same_rows() {
    let mut bench = subscribed(true);
    for seconds in [1, 2, 4] {
        bench.shell.handle_subscription_ended(bench.now, failure(FailureReason::Overloaded));
        assert_eq!(bench.status(), DataStatus::Cached);
        assert!(bench.shell.state().error.is_some());
        let wanted = bench.pass(REST_MOST);
        assert_eq!(wanted, [(seconds * 1_000, Action::Subscribe)], "there is none to be closed");
        assert_eq!(bench.asks_from(), Some(cursor(1, 5)));
    }
    bench.shell.handle_subscription_ended(bench.now, failure(FailureReason::Overloaded));
    bench.disconnect();
    assert_eq!(bench.pass(REST_MOST), [], "nor with the session");
}

#[test]
fn an_item_that_cannot_be_read_is_answered_by_the_whole_list_ever_later() {
    let mut bench = subscribed(true);
    bench.item(resumed(1, 5));
    let mut rests = Vec::new();
    for _ in 0..12 {
        bench.shell.handle_defect(bench.now, failure(FailureReason::Remote));
        assert_eq!(bench.wanted(), [Action::Unsubscribe]);
        assert_eq!(bench.status(), DataStatus::Cached);
        let wanted = bench.pass(REST_MOST);
        let [(after, Action::Subscribe)] = wanted.as_slice() else { panic!("{wanted:?}") };
        rests.push(after / 1_000);
        assert_eq!(bench.asks_from(), None);
        bench.item(ShellItem::Snapshot { snapshot: snapshot(1, 9, &[]) });
        bench.item(marker(1, 9));
    }
    assert_eq!(rests, [1, 2, 4, 8, 16, 32, 64, 128, 256, 300, 300, 300]);
    bench.item(changes(10, &[1], &[]));
    bench.shell.handle_defect(bench.now, failure(FailureReason::Remote));
    bench.wanted();
    let wanted = bench.pass(SECOND);
    assert_eq!(wanted, [(1_000, Action::Subscribe)], "changes that were read begin it anew");
}

#[test]
fn a_list_of_another_start_than_its_marker_is_not_trusted() {
    let mut bench = subscribed(true);
    bench.item(resumed(1, 5));
    bench.item(marker(2, 9));
    assert_eq!(bench.wanted(), [Action::Unsubscribe]);
    assert_eq!(bench.shell.state().cursor(), Some(cursor(1, 5)));
    assert_eq!(bench.generation(), 0);
}

#[test]
fn a_client_that_fell_behind_gets_the_list_in_the_middle() {
    let mut bench = Bench::live(snapshot(1, 5, &[(1, 5)]));
    bench.item(ShellItem::Snapshot { snapshot: snapshot(1, 2_000, &[(7, 1_999)]) });
    assert_eq!((bench.rows(), bench.status()), (vec![(7, 1_999)], DataStatus::Synchronizing));
    assert_eq!(bench.generation(), 2, "what was read on demand is of the past");
    bench.item(marker(1, 2_001));
    assert_eq!((bench.status(), bench.generation()), (DataStatus::Live, 2));
}
