//! What is stored, and when.

use std::time::Duration;

use wakeful_wire::rpc::ShellItem;

use super::super::{bench::*, *};
use crate::DataStatus;

const SECOND: Duration = Duration::from_secs(1);

/// Lets time pass. Returns when what was stored, by its rows.
fn saves(bench: &mut Bench, time: Duration) -> Vec<(u64, usize)> {
    let save = |(after, action)| match action {
        Action::Save(cached) => Some((after, cached.snapshot.rows.len())),
        Action::Fetch { .. }
        | Action::CancelFetch { .. }
        | Action::Subscribe
        | Action::Unsubscribe
        | Action::Resubscribe
        | Action::Changed => None,
    };
    bench.pass(time).into_iter().filter_map(save).collect()
}

#[test]
fn a_list_is_stored_a_moment_after_a_change_and_then_ten_seconds_apart() {
    let mut bench = Bench::storing(None).and_live(snapshot(1, 5, &[(1, 5)]));
    assert_eq!(saves(&mut bench, SECOND), [(500, 1)]);
    bench.saved();
    bench.item(changes(6, &[2], &[]));
    assert_eq!(saves(&mut bench, SECOND * 5), []);
    bench.item(changes(7, &[3], &[]));
    assert_eq!(saves(&mut bench, SECOND * 5), [(4_500, 3)]);
    bench.saved();
    assert_eq!(saves(&mut bench, SECOND * 60), [], "nothing has changed");
}

#[test]
fn rows_are_stored_with_their_place_and_all_that_says_whether_they_are_a_base() {
    let mut bench = Bench::storing(None);
    bench.connect(cursor(1, 5));
    let id = bench.fetch().unwrap();
    let whole = snapshot(1, 5, &[(2, 5), (1, 4)]);
    bench.shell.handle_fetched(bench.now, id, fetched(whole.clone(), Some("tag")));
    let stored = bench.pass(SECOND).into_iter().find_map(|(_, action)| match action {
        Action::Save(stored) => Some(*stored),
        Action::Fetch { .. }
        | Action::CancelFetch { .. }
        | Action::Subscribe
        | Action::Unsubscribe
        | Action::Resubscribe
        | Action::Changed => None,
    });
    let stored = stored.unwrap();
    assert_eq!(stored, cached(whole, Some("tag")));
    let text = serde_json::to_string(&stored).unwrap();
    assert_eq!(serde_json::from_str::<CachedShell>(&text).unwrap(), stored);
    bench.saved();

    bench.item(resumed(1, 5));
    bench.item(changes(6, &[3], &[]));
    let wanted = bench.pass(SECOND * 20);
    let [(_, Action::Save(stored))] = wanted.as_slice() else { panic!("{wanted:?}") };
    assert_eq!(stored.etag, None, "the tag stands for other rows");
    assert_eq!(stored.snapshot.cursor, cursor(1, 6));
}

#[test]
fn a_list_is_stored_at_once_when_its_session_or_the_client_ends() {
    for finish in [false, true] {
        let mut bench = Bench::storing(None).and_live(snapshot(1, 5, &[(1, 5)]));
        saves(&mut bench, SECOND);
        bench.saved();
        bench.item(changes(6, &[2], &[]));
        assert!(!bench.shell.is_stored());
        if finish {
            bench.shell.finish(bench.now);
        } else {
            bench.disconnect();
        }
        assert_eq!(saves(&mut bench, Duration::ZERO), [(0, 2)], "finish: {finish}");
        assert!(!bench.shell.is_stored(), "it is on its way");
        bench.saved();
        assert!(bench.shell.is_stored());
        assert_eq!(saves(&mut bench, SECOND * 60), [], "finish: {finish}");
    }
}

#[test]
fn one_save_runs_at_a_time_and_what_came_meanwhile_follows_it() {
    let mut bench = Bench::storing(None).and_live(snapshot(1, 5, &[(1, 5)]));
    saves(&mut bench, SECOND);
    bench.item(changes(6, &[2], &[]));
    assert_eq!(saves(&mut bench, SECOND * 60), [], "the first still runs");
    bench.shell.finish(bench.now);
    assert_eq!(saves(&mut bench, SECOND * 60), []);
    bench.saved();
    assert_eq!(saves(&mut bench, Duration::ZERO), [(0, 2)]);
}

#[test]
fn what_is_stored_already_is_not_stored_again() {
    let rows = snapshot(1, 5, &[(1, 5)]);
    let mut bench = Bench::storing(Some(cached(rows.clone(), None)));
    bench.connect(cursor(1, 9));
    bench.item(resumed(1, 5));
    bench.item(marker(1, 9));
    bench.item(ShellItem::Unknown);
    assert_eq!(saves(&mut bench, SECOND * 60), [], "only the place has moved on");
    bench.disconnect();
    assert_eq!(saves(&mut bench, SECOND * 60), []);

    let mut bench = Bench::storing(Some(cached(rows.clone(), None)));
    bench.connect(cursor(1, 5));
    bench.item(ShellItem::Snapshot { snapshot: rows });
    assert_eq!(saves(&mut bench, SECOND * 60), [], "the same list came");
    bench.item(ShellItem::Snapshot { snapshot: snapshot(2, 5, &[(1, 5)]) });
    assert_eq!(saves(&mut bench, SECOND * 60), [(500, 1)], "its place is another");
}

#[test]
fn rows_that_no_session_confirmed_are_not_stored() {
    let mut bench = Bench::storing(None);
    bench.prepare();
    let id = bench.fetch().unwrap();
    bench.shell.handle_fetched(bench.now, id, fetched(snapshot(1, 5, &[(1, 5)]), None));
    assert_eq!(saves(&mut bench, SECOND * 60), []);
    bench.shell.handle_unprepared(bench.now);
    bench.shell.finish(bench.now);
    assert_eq!(saves(&mut bench, SECOND * 60), []);
    assert!(bench.shell.is_stored());
}

#[test]
fn nothing_is_stored_after_the_host_was_removed() {
    let mut bench = Bench::storing(None).and_live(snapshot(1, 5, &[(1, 5)]));
    bench.item(changes(6, &[2], &[]));
    bench.shell.handle_removed(bench.now);
    assert_eq!(bench.wanted(), [Action::Unsubscribe]);
    assert_eq!((bench.rows(), bench.status()), (vec![], DataStatus::Empty));
    bench.shell.handle_saved(bench.now);
    bench.shell.finish(bench.now);
    bench.prepare();
    bench.connect(cursor(1, 9));
    bench.item(ShellItem::Snapshot { snapshot: snapshot(1, 9, &[(1, 9)]) });
    bench.shell.handle_cached(bench.now, Some(cached(snapshot(1, 5, &[(1, 5)]), None)));
    assert_eq!(saves(&mut bench, SECOND * 60), []);
    assert_eq!(bench.rows(), []);
    assert_eq!(bench.shell.poll_timeout(), None);
}

#[test]
fn a_client_that_stores_nothing_saves_nothing() {
    let mut bench = Bench::new(None);
    bench.connect(cursor(1, 5));
    let id = bench.fetch().unwrap();
    bench.shell.handle_fetched(bench.now, id, fetched(snapshot(1, 5, &[(1, 5)]), None));
    bench.disconnect();
    assert_eq!(saves(&mut bench, SECOND * 60), []);
}

#[test]
fn what_was_stored_in_the_middle_of_a_replay_is_stored_again_at_its_end() {
    let mut bench = Bench::storing(Some(cached(snapshot(1, 5, &[(1, 5)]), None)));
    bench.connect(cursor(1, 20));
    bench.item(resumed(1, 5));
    bench.item(changes(8, &[2], &[]));
    assert_eq!(saves(&mut bench, SECOND), [(500, 2)]);
    bench.saved();
    bench.item(marker(1, 20));
    let wanted = bench.pass(SECOND * 20);
    let [(9_500, Action::Save(stored))] = wanted.as_slice() else { panic!("{wanted:?}") };
    assert!(!stored.partial);
}
