//! The read over HTTP, and when the subscription begins.

use std::time::Duration;

use wakeful_wire::rpc::{Omissions, ShellItem, ShellSnapshot};

use super::super::{bench::*, *};
use crate::{DataStatus, FailureReason};

const SECOND: Duration = Duration::from_secs(1);

#[test]
fn a_list_may_be_read_as_soon_as_a_connection_is_prepared() {
    let mut bench = Bench::new(None);
    assert_eq!(bench.status(), DataStatus::Empty);
    bench.prepare();
    let wanted = bench.wanted();
    assert_eq!(wanted, [Action::Fetch { id: FetchId(1), omit: NONE, etag: None }]);
    assert_eq!(bench.status(), DataStatus::Synchronizing);
    bench.shell.handle_fetched(bench.now, FetchId(1), fetched(snapshot(1, 5, &[(1, 5)]), None));
    assert_eq!(bench.rows(), [(1, 5)], "it is shown at once");
    assert_eq!(bench.status(), DataStatus::Synchronizing, "and not taken for live");
    assert_eq!((bench.generation(), bench.shell.state().verified), (0, false));
    assert_eq!(bench.wanted(), [], "there is no session to subscribe on");
}

#[test]
fn rows_that_the_hello_confirms_are_resumed_from() {
    let mut bench = Bench::new(None);
    bench.prepare();
    let id = bench.fetch().unwrap();
    bench.shell.handle_fetched(bench.now, id, fetched(snapshot(1, 5, &[(1, 5)]), None));
    bench.connect(cursor(1, 6));
    assert_eq!(bench.wanted(), [Action::Subscribe]);
    assert_eq!(bench.asks_from(), Some(cursor(1, 5)));
    assert_eq!((bench.generation(), bench.shell.state().verified), (1, true));
    bench.item(resumed(1, 5));
    bench.item(changes(6, &[2], &[]));
    bench.item(marker(1, 6));
    assert_eq!(bench.rows(), [(1, 5), (2, 6)]);
    assert_eq!((bench.status(), bench.generation()), (DataStatus::Live, 1), "one list, one number");
}

/// Reads early, for what is stored of `build`, and gets `answer`; then the hello says `RELEASE`.
fn read_early(build: &str, stored: Omissions, answer: ShellSnapshot) -> Bench {
    let rows = ShellSnapshot { omitted: stored, ..snapshot(1, 3, &[(9, 3)]) };
    let cached = CachedShell { build: build.to_owned(), ..cached(rows, Some("tag")) };
    let mut bench = Bench::of(Shell::new(FAMILIES, false));
    bench.shell.handle_cached(bench.now, Some(cached));
    bench.prepare();
    let id = bench.fetch().unwrap();
    bench.shell.handle_fetched(bench.now, id, fetched(answer, None));
    bench.connect(cursor(1, 6));
    bench
}

#[test]
fn rows_for_another_release_or_with_other_rows_left_out_are_replaced_and_never_resumed_from() {
    let answer = |omitted| ShellSnapshot { omitted, ..snapshot(1, 5, &[(1, 5)]) };
    let table = [
        ("the guess was right", RELEASE, FAMILIES, answer(FAMILIES), true),
        ("another release", "0.9.0", FAMILIES, answer(FAMILIES), false),
        ("other rows left out", RELEASE, NONE, answer(NONE), false),
        ("not what was asked for", RELEASE, FAMILIES, answer(NONE), false),
    ];
    for (name, build, stored, answer, resumes) in table {
        let mut bench = read_early(build, stored, answer);
        assert_eq!(bench.wanted(), [Action::Subscribe], "{name}");
        assert_eq!(bench.asks_from().is_some(), resumes, "{name}");
        assert_eq!(bench.generation(), u64::from(resumes), "{name}");
        assert_eq!(bench.rows(), [(1, 5)], "{name}: shown until it is replaced");
        let whole = ShellSnapshot { omitted: FAMILIES, ..snapshot(1, 6, &[(2, 6)]) };
        bench.item(ShellItem::Snapshot { snapshot: whole });
        assert_eq!(bench.rows(), [(2, 6)], "{name}");
    }
}

#[test]
fn only_the_same_start_of_the_host_confirms_rows_that_were_read_early() {
    for (epoch, resumes) in [(1, true), (2, false)] {
        let mut bench = Bench::new(None);
        bench.prepare();
        let id = bench.fetch().unwrap();
        bench.shell.handle_fetched(bench.now, id, fetched(snapshot(1, 5, &[(1, 5)]), None));
        bench.connect(cursor(epoch, 6));
        assert_eq!(bench.wanted(), [Action::Subscribe]);
        assert_eq!(bench.asks_from().is_some(), resumes, "start {epoch}");
    }
}

#[test]
fn a_read_whose_answer_would_be_replaced_is_ended_at_the_hello() {
    let mut bench = Bench::of(Shell::new(FAMILIES, false));
    bench.capabilities.0.clear();
    bench.prepare();
    let id = bench.fetch().unwrap();
    bench.connect(cursor(1, 6));
    assert_eq!(bench.wanted(), [Action::CancelFetch { id }, Action::Subscribe]);
    let input = bench.shell.subscription_input();
    assert_eq!(input, ShellSubscribe { cursor: None, omit: NONE }, "as far as the host can");
}

#[test]
fn the_subscription_waits_for_the_answer_if_nothing_can_be_resumed() {
    let mut bench = Bench::new(None);
    bench.prepare();
    let id = bench.fetch().unwrap();
    bench.connect(cursor(1, 6));
    assert_eq!(bench.pass(SECOND * 30), [], "also longer than rows would be waited for");
    bench.shell.handle_timeout(bench.now);
    assert_eq!(bench.wanted(), []);
    bench.shell.handle_fetched(bench.now, id, fetched(snapshot(1, 5, &[(1, 5)]), None));
    assert_eq!(bench.wanted(), [Action::Subscribe]);
    assert_eq!(bench.asks_from(), Some(cursor(1, 5)));
}

#[test]
fn a_read_that_never_ends_gives_way_to_the_socket() {
    let mut bench = Bench::new(None);
    bench.connect(cursor(1, 6));
    let id = bench.fetch().unwrap();
    let wanted = bench.pass(SECOND * 100);
    let at = u64::try_from(FETCH_PATIENCE.as_millis()).unwrap();
    assert_eq!(wanted, [(at, Action::CancelFetch { id }), (at, Action::Subscribe)]);
    assert_eq!(bench.asks_from(), None);
}

#[test]
fn a_failed_read_lets_the_host_send_the_list_over_the_socket() {
    for early in [true, false] {
        let mut bench = Bench::new(None);
        if early {
            bench.prepare();
        } else {
            bench.connect(cursor(1, 6));
        }
        let id = bench.fetch().unwrap();
        bench.shell.handle_fetched(bench.now, id, Err(failure(FailureReason::Authentication)));
        if early {
            assert_eq!(bench.wanted(), []);
            bench.connect(cursor(1, 6));
        }
        assert_eq!(bench.wanted(), [Action::Subscribe], "early: {early}");
        assert_eq!(bench.asks_from(), None);
        assert_eq!(bench.shell.state().error, None, "it is no error of the list");
        assert_eq!(bench.status(), DataStatus::Synchronizing);
    }
}

#[test]
fn a_read_that_hangs_is_ended_three_seconds_after_the_socket_if_rows_can_be_resumed() {
    let rows = snapshot(1, 5, &[(1, 5)]);
    let mut bench = Bench::new(Some(cached(rows, Some("tag"))));
    bench.prepare();
    let id = FetchId(1);
    let etag = Some("tag".to_owned());
    assert_eq!(bench.wanted(), [Action::Fetch { id, omit: NONE, etag }]);
    assert_eq!(bench.pass(SECOND * 20), [], "the socket is not ready");
    bench.connect(cursor(1, 9));
    let wanted = bench.pass(SECOND * 20);
    assert_eq!(wanted, [(3_000, Action::CancelFetch { id }), (3_000, Action::Subscribe)]);
    assert_eq!(bench.asks_from(), Some(cursor(1, 5)));
}

#[test]
fn an_answer_that_comes_after_its_read_was_ended_changes_nothing() {
    let rows = snapshot(1, 5, &[(1, 5)]);
    let mut bench = Bench::new(Some(cached(rows, Some("tag"))));
    bench.prepare();
    let id = bench.fetch().unwrap();
    bench.connect(cursor(1, 9));
    bench.pass(SECOND * 4);
    bench.item(resumed(1, 5));
    bench.item(changes(9, &[2], &[1]));
    bench.item(marker(1, 9));
    let before = bench.shell.state().clone();
    bench.wanted();
    let late = snapshot(1, 8, &[(1, 5), (3, 8)]);
    bench.shell.handle_fetched(bench.now, id, fetched(late, None));
    assert_eq!(bench.shell.state(), &before);
    assert_eq!(bench.wanted(), []);
    assert_eq!(bench.rows(), [(2, 9)]);
}

#[test]
fn an_answer_that_is_in_time_is_taken_and_the_subscription_goes_on_from_it() {
    let rows = snapshot(1, 5, &[(1, 5)]);
    let mut bench = Bench::new(Some(cached(rows, Some("tag"))));
    bench.prepare();
    let id = bench.fetch().unwrap();
    bench.connect(cursor(1, 9));
    bench.pass(SECOND * 2);
    bench.shell.handle_fetched(bench.now, id, fetched(snapshot(1, 8, &[(1, 8)]), Some("new")));
    assert_eq!(bench.wanted(), [Action::Subscribe]);
    assert_eq!(bench.asks_from(), Some(cursor(1, 8)));
    assert_eq!(bench.generation(), 1);
}

#[test]
fn an_unchanged_list_costs_a_tag_and_counts_as_the_hosts() {
    let rows = snapshot(1, 5, &[(1, 5)]);
    let mut bench = Bench::new(Some(cached(rows, Some("tag"))));
    bench.prepare();
    let id = bench.fetch().unwrap();
    bench.shell.handle_fetched(bench.now, id, Ok(Fetched::NotModified));
    assert_eq!(bench.generation(), 0, "the hello has not confirmed it");
    bench.connect(cursor(1, 9));
    assert_eq!(bench.wanted(), [Action::Subscribe]);
    assert_eq!(bench.asks_from(), Some(cursor(1, 5)));
    assert_eq!((bench.generation(), bench.shell.state().verified), (1, true));
    bench.item(resumed(1, 5));
    bench.item(marker(1, 9));
    assert_eq!((bench.status(), bench.generation()), (DataStatus::Live, 1));
}

#[test]
fn unchanged_is_no_answer_to_a_read_without_a_tag() {
    let mut bench = Bench::new(None);
    bench.connect(cursor(1, 9));
    let id = bench.fetch().unwrap();
    bench.shell.handle_fetched(bench.now, id, Ok(Fetched::NotModified));
    assert_eq!(bench.wanted(), [Action::Subscribe]);
    assert_eq!((bench.asks_from(), bench.generation()), (None, 0));

    let mut bench = Bench::new(None);
    bench.prepare();
    let id = bench.fetch().unwrap();
    bench.shell.handle_fetched(bench.now, id, fetched(snapshot(1, 5, &[(1, 5)]), None));
    bench.shell.handle_unprepared(bench.now);
    bench.prepare();
    let id = bench.fetch().unwrap();
    bench.shell.handle_fetched(bench.now, id, Ok(Fetched::NotModified));
    bench.connect(cursor(1, 9));
    assert_eq!(bench.asks_from(), None, "no session confirmed the rows that are shown");
}

#[test]
fn what_is_stored_is_waited_for_a_moment_before_the_whole_list_is_read() {
    let mut bench = Bench::unread();
    bench.prepare();
    assert_eq!(bench.wanted(), []);
    bench.now = bench.now.after(CACHE_PATIENCE / 2);
    bench.shell.handle_cached(bench.now, Some(cached(snapshot(1, 5, &[(1, 5)]), None)));
    assert_eq!(bench.wanted(), [], "the session will resume from it");
    assert_eq!(bench.rows(), [(1, 5)]);

    let mut bench = Bench::unread();
    bench.connect(cursor(1, 9));
    let wanted = bench.pass(SECOND);
    let read = Action::Fetch { id: FetchId(1), omit: NONE, etag: None };
    assert_eq!(wanted, [(500, read)], "but not for long");
}

#[test]
fn a_client_that_stores_nothing_waits_for_nothing_stored() {
    let mut bench = Bench::of(Shell::new(NONE, false));
    bench.prepare();
    assert!(bench.fetch().is_some());
}

#[test]
fn an_attempt_that_is_given_up_ends_its_read() {
    let mut bench = Bench::new(None);
    bench.prepare();
    let id = bench.fetch().unwrap();
    bench.shell.handle_unprepared(bench.now);
    assert_eq!(bench.wanted(), [Action::CancelFetch { id }]);
    assert_eq!(bench.status(), DataStatus::Empty);
    bench.prepare();
    assert_eq!(bench.fetch(), Some(FetchId(2)), "the next one makes its own");
    bench.shell.handle_fetched(bench.now, id, fetched(snapshot(1, 5, &[(1, 5)]), None));
    assert_eq!(bench.rows(), [], "and does not take the answer to the other");
    bench.shell.handle_fetched(bench.now, FetchId(2), Err(failure(FailureReason::Network)));
    bench.prepare();
    assert_eq!(bench.fetch(), Some(FetchId(3)), "so does one whose end was not told");
}

#[test]
fn a_session_that_goes_while_it_loads_ends_its_read() {
    let mut bench = Bench::new(None);
    bench.connect(cursor(1, 9));
    let id = bench.fetch().unwrap();
    bench.disconnect();
    assert_eq!(bench.wanted(), [Action::CancelFetch { id }]);
    bench.shell.handle_fetched(bench.now, id, fetched(snapshot(1, 5, &[(1, 5)]), None));
    assert_eq!(bench.rows(), [], "its answer is of the past");
}
