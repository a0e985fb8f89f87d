//! Which rows a session goes on from.

use std::time::Duration;

use wakeful_wire::rpc::{ShellItem, ShellSnapshot};

use super::super::{bench::*, *};
use crate::DataStatus;

#[test]
fn stored_rows_are_shown_and_say_that_they_may_be_out_of_date() {
    let mut bench = Bench::new(Some(cached(snapshot(1, 5, &[(1, 5)]), None)));
    assert_eq!(bench.rows(), [(1, 5)]);
    assert_eq!(bench.status(), DataStatus::Cached);
    assert_eq!((bench.generation(), bench.shell.state().verified), (0, false));
    bench.prepare();
    assert_eq!(bench.status(), DataStatus::Synchronizing);
    bench.shell.handle_unprepared(bench.now);
    assert_eq!(bench.status(), DataStatus::Cached);
}

#[test]
fn rows_stay_readable_when_the_connection_goes() {
    let mut bench = Bench::live(snapshot(1, 5, &[(1, 5)]));
    bench.disconnect();
    assert_eq!((bench.status(), bench.rows()), (DataStatus::Cached, vec![(1, 5)]));
    assert_eq!((bench.generation(), bench.shell.state().verified), (1, false));
}

#[test]
fn what_is_stored_never_replaces_what_the_host_sent() {
    let mut bench = Bench::unread();
    bench.connect(cursor(1, 9));
    bench.pass(CACHE_PATIENCE);
    bench.shell.handle_fetched(bench.now, FetchId(1), fetched(snapshot(1, 9, &[(2, 9)]), None));
    let before = bench.shell.state().clone();
    bench.shell.handle_cached(bench.now, Some(cached(snapshot(1, 12, &[(1, 5)]), None)));
    assert_eq!(bench.shell.state(), &before);
}

#[test]
fn stored_rows_that_come_late_are_shown_while_the_list_is_read() {
    let mut bench = Bench::unread();
    bench.connect(cursor(1, 9));
    bench.pass(CACHE_PATIENCE);
    bench.shell.handle_cached(bench.now, Some(cached(snapshot(1, 5, &[(1, 5)]), None)));
    assert_eq!(bench.rows(), [(1, 5)]);
    let wanted = bench.pass(Duration::from_secs(10));
    let after = |action| (2_500, action);
    let id = FetchId(1);
    assert_eq!(wanted, [after(Action::CancelFetch { id }), after(Action::Subscribe)]);
    assert_eq!(bench.asks_from(), Some(cursor(1, 5)), "and can be resumed from");
}

#[test]
fn stored_rows_are_resumed_from_only_if_they_are_what_this_session_asks_for() {
    let rows = || cached(snapshot(1, 5, &[(1, 5)]), None);
    let other_rows = ShellSnapshot { omitted: FAMILIES, ..rows().snapshot };
    let table = [
        ("the same", rows(), true),
        ("other rows left out", CachedShell { snapshot: other_rows, ..rows() }, false),
        ("another release of the host", CachedShell { build: "0.9.0".to_owned(), ..rows() }, false),
        ("another release of the client", CachedShell { reader: String::new(), ..rows() }, false),
    ];
    for (name, stored, resumes) in table {
        let mut bench = Bench::new(Some(stored));
        bench.connect(cursor(2, 9));
        let wanted = bench.wanted();
        if resumes {
            assert_eq!(wanted, [Action::Subscribe], "{name}: nothing is read over HTTP");
            assert_eq!(bench.asks_from(), Some(cursor(1, 5)), "{name}");
        } else {
            let read = Action::Fetch { id: FetchId(1), omit: NONE, etag: None };
            assert_eq!(wanted, [read], "{name}");
            assert_eq!(bench.asks_from(), None, "{name}");
        }
        assert_eq!(bench.rows(), [(1, 5)], "{name}: shown in any case");
    }
}

#[test]
fn a_resume_counts_once_the_host_has_delivered_everything() {
    let mut bench = Bench::new(Some(cached(snapshot(1, 5, &[(1, 5)]), None)));
    bench.connect(cursor(2, 9));
    bench.item(resumed(2, 5));
    assert_eq!(bench.shell.state().cursor(), Some(cursor(2, 5)), "in the host's present start");
    bench.item(changes(9, &[2], &[]));
    assert_eq!((bench.generation(), bench.status()), (0, DataStatus::Synchronizing));
    bench.item(marker(2, 11));
    assert_eq!((bench.generation(), bench.status()), (1, DataStatus::Live));
    assert!(bench.shell.state().verified);
    assert_eq!(bench.shell.state().cursor(), Some(cursor(2, 11)));
}

#[test]
fn a_reconnect_resumes_from_memory_and_reads_nothing() {
    let mut bench = Bench::live(snapshot(1, 5, &[(1, 5)]));
    bench.item(changes(7, &[2], &[]));
    bench.disconnect();
    bench.wanted();
    bench.prepare();
    assert_eq!(bench.wanted(), [], "no read");
    bench.connect(cursor(1, 9));
    assert_eq!(bench.wanted(), [Action::Subscribe]);
    assert_eq!(bench.asks_from(), Some(cursor(1, 7)));
    bench.item(resumed(1, 7));
    bench.item(marker(1, 9));
    assert_eq!((bench.generation(), bench.status()), (2, DataStatus::Live));
}

#[test]
fn another_session_begins_where_the_one_before_was_in_one_step() {
    let mut bench = Bench::live(snapshot(1, 5, &[(1, 5)]));
    bench.connect(cursor(1, 9));
    assert_eq!(bench.wanted(), [Action::Unsubscribe, Action::Subscribe]);
    assert_eq!(bench.asks_from(), Some(cursor(1, 5)));
    assert_eq!(bench.status(), DataStatus::Synchronizing);
}

#[test]
fn a_host_that_became_another_release_sends_the_list_anew() {
    let mut bench = Bench::live(snapshot(1, 5, &[(1, 5)]));
    bench.disconnect();
    bench.wanted();
    bench.shell.handle_connected(bench.now, &bench.capabilities, "1.1.0", cursor(2, 9));
    let id = bench.fetch().unwrap();
    assert_eq!(bench.asks_from(), None);
    bench.shell.handle_fetched(bench.now, id, fetched(snapshot(2, 9, &[(1, 5)]), None));
    assert_eq!(bench.asks_from(), Some(cursor(2, 9)));
    assert_eq!(bench.generation(), 2);
}

#[test]
fn a_session_never_resumes_from_rows_that_no_session_confirmed() {
    let mut bench = Bench::new(None);
    bench.prepare();
    let id = bench.fetch().unwrap();
    let answer = fetched(snapshot(1, 5, &[(1, 5)]), Some("tag"));
    bench.shell.handle_fetched(bench.now, id, answer);
    bench.shell.handle_unprepared(bench.now);
    assert_eq!((bench.status(), bench.rows()), (DataStatus::Cached, vec![(1, 5)]));
    bench.connect(cursor(1, 6));
    assert_eq!(bench.asks_from(), None);
    assert!(bench.fetch().is_some());
}

#[test]
fn attempts_that_fail_one_after_the_other_download_the_list_once() {
    let mut bench = Bench::new(None);
    bench.prepare();
    let id = bench.fetch().unwrap();
    bench.shell.handle_fetched(bench.now, id, fetched(snapshot(1, 5, &[(1, 5)]), Some("tag")));
    bench.shell.handle_unprepared(bench.now);
    bench.prepare();
    let etag = Some("tag".to_owned());
    assert_eq!(bench.wanted(), [Action::Fetch { id: FetchId(2), omit: NONE, etag }]);
    bench.shell.handle_fetched(bench.now, FetchId(2), Ok(Fetched::NotModified));
    bench.connect(cursor(1, 6));
    assert_eq!(bench.wanted(), [Action::Subscribe]);
    assert_eq!(bench.asks_from(), Some(cursor(1, 5)));
}

#[test]
fn a_list_from_the_socket_replaces_what_is_held_also_where_it_is_older() {
    let mut bench = Bench::live(snapshot(1, 50, &[(1, 50), (2, 40)]));
    bench.connect(cursor(2, 30));
    bench.item(ShellItem::Snapshot { snapshot: snapshot(2, 30, &[(2, 20)]) });
    assert_eq!(bench.rows(), [(2, 20)]);
    assert_eq!(bench.shell.state().cursor(), Some(cursor(2, 30)));
    assert_eq!((bench.generation(), bench.status()), (2, DataStatus::Synchronizing));
    bench.item(changes(31, &[3], &[]));
    assert_eq!(bench.rows(), [(2, 20), (3, 31)], "it is compared with the new list");
}

#[test]
fn a_resume_from_another_place_than_was_asked_for_is_refused() {
    let held = || Bench::live(snapshot(1, 5, &[(1, 5)]));
    let mut bench = held();
    bench.connect(cursor(1, 9));
    bench.wanted();
    bench.item(resumed(1, 6));
    assert_eq!(bench.wanted(), [Action::Unsubscribe], "something would be missing");
    assert_eq!(bench.status(), DataStatus::Cached);
    assert!(bench.shell.state().error.is_some());
    let wanted = bench.pass(Duration::from_secs(5));
    assert_eq!(wanted, [(1_000, Action::Subscribe)]);
    assert_eq!(bench.asks_from(), None);

    let mut bench = held();
    bench.connect(cursor(1, 9));
    bench.item(resumed(1, 4));
    bench.item(changes(5, &[], &[1]));
    assert_eq!(bench.rows(), [(1, 5)], "from an earlier one things come twice");
}

/// A session whose replay was interrupted in the middle.
fn interrupted() -> Bench {
    let mut bench = Bench::storing(Some(cached(snapshot(1, 5, &[(1, 5)]), None)));
    bench.connect(cursor(2, 20));
    bench.item(resumed(2, 5));
    bench.item(changes(8, &[2], &[]));
    bench.disconnect();
    bench
}

#[test]
fn an_interrupted_replay_goes_on_only_at_the_same_start_of_the_host() {
    for (epoch, resumes) in [(2, true), (3, false)] {
        let mut bench = interrupted();
        bench.connect(cursor(epoch, 20));
        assert_eq!(bench.asks_from(), resumes.then_some(cursor(2, 8)), "start {epoch}");
    }
    let mut bench = interrupted();
    bench.connect(cursor(2, 20));
    bench.item(resumed(2, 8));
    bench.item(changes(9, &[3], &[]));
    bench.item(marker(2, 20));
    bench.item(changes(21, &[4], &[]));
    bench.connect(cursor(3, 30));
    assert_eq!(bench.asks_from(), Some(cursor(2, 21)), "a finished one at any");
}

#[test]
fn an_interrupted_replay_is_stored_as_such() {
    let stored = interrupted().wanted().into_iter().find_map(|action| match action {
        Action::Save(stored) => Some(*stored),
        Action::Fetch { .. }
        | Action::CancelFetch { .. }
        | Action::Subscribe
        | Action::Unsubscribe
        | Action::Resubscribe
        | Action::Changed => None,
    });
    for (epoch, resumes) in [(2, true), (3, false)] {
        let mut bench = Bench::new(stored.clone());
        bench.connect(cursor(epoch, 20));
        assert_eq!(bench.asks_from().is_some(), resumes, "start {epoch}");
    }
}
