use wakeful_wire::rpc::{Cursor, Epoch, Seq};

use super::*;
use crate::{ConnectionPhase, DataStatus};

type Rows = &'static str;

/// The host with this number.
fn host(number: u128) -> HostId {
    HostId::from_uuid(uuid::Uuid::from_u128(number))
}

fn at(seconds: f64) -> Instant {
    Instant::default().after(Duration::from_secs_f64(seconds))
}

fn snapshot(seq: u64) -> Option<Cursor> {
    Some(Cursor { epoch: Epoch(1), seq: Seq(seq) })
}

/// A host that nobody connects to, with cached rows.
fn cached(rows: Rows) -> Seen<Rows> {
    Seen {
        phase: ConnectionPhase::Available,
        attempt: 0,
        session: 0,
        status: DataStatus::Cached,
        snapshot: None,
        rows: Some(rows),
    }
}

/// The same on an attempt.
fn connecting(attempt: u32, rows: Rows) -> Seen<Rows> {
    let status = DataStatus::Synchronizing;
    Seen { phase: ConnectionPhase::Connecting, attempt, status, ..cached(rows) }
}

/// The same with a session, before anything came over it.
fn connected(rows: Rows) -> Seen<Rows> {
    Seen { phase: ConnectionPhase::Connected, session: 1, ..connecting(1, rows) }
}

/// The same after the host's snapshot.
fn arrived(seq: u64, rows: Rows) -> Seen<Rows> {
    Seen { snapshot: snapshot(seq), ..connected(rows) }
}

/// The same when it is synchronized.
fn live(seq: u64, rows: Rows) -> Seen<Rows> {
    Seen { status: DataStatus::Live, ..arrived(seq, rows) }
}

fn backoff(rows: Rows) -> Seen<Rows> {
    Seen { phase: ConnectionPhase::Backoff, ..connecting(1, rows) }
}

/// Lists whose first frame is painted.
fn steady() -> Steady<Rows> {
    let mut steady = Steady::new(at(0.0));
    steady.handle_enabled(at(0.0), []);
    assert_eq!(steady.poll_action(), Some(Action::Paint));
    steady
}

/// Lists of hosts that are on their first attempts, with cached rows.
fn starting(hosts: impl IntoIterator<Item = u128>) -> Steady<Rows> {
    let mut steady = steady();
    for number in hosts {
        steady.handle_host(at(0.0), host(number), cached("cached"));
        steady.handle_host(at(0.0), host(number), connecting(1, "cached"));
    }
    while steady.poll_action().is_some() {}
    steady
}

/// The hosts that changed, each step by itself.
fn changes(steady: &mut Steady<Rows>) -> Vec<Vec<u128>> {
    let mut changes = Vec::new();
    while let Some(action) = steady.poll_action() {
        let Action::Changed(hosts) = action else { panic!("{action:?}") };
        changes.push(hosts.into_iter().map(|host| host.uuid().as_u128()).collect());
    }
    changes
}

fn shown(steady: &Steady<Rows>, number: u128) -> Rows {
    steady.shown(host(number)).copied().unwrap_or_default()
}

#[test]
fn rows_stay_from_the_first_attempt_until_the_hosts_snapshot() {
    let mut steady = starting([1]);
    let steps = [
        (connecting(1, "cached, one gone"), "cached"),
        (connected("cached, one more"), "cached"),
        (arrived(9, "fresh"), "fresh"),
        (arrived(9, "fresh, one more"), "fresh, one more"),
        (live(9, "live"), "live"),
    ];
    for (seen, expected) in steps {
        let rows = seen.rows.unwrap();
        steady.handle_host(at(1.0), host(1), seen);
        assert_eq!(shown(&steady, 1), expected);
        assert_eq!(steady.live(host(1)), Some(&rows));
    }
}

#[test]
fn a_snapshot_that_comes_before_the_socket_counts() {
    let mut steady = starting([1]);
    let early = Seen { snapshot: snapshot(9), ..connecting(1, "fresh") };
    steady.handle_host(at(0.1), host(1), early);
    assert_eq!(shown(&steady, 1), "fresh");
    steady.handle_host(at(0.2), host(1), arrived(9, "fresh, one more"));
    assert_eq!(shown(&steady, 1), "fresh, one more", "nothing is owed any more");
}

#[test]
fn a_resume_shows_its_changes_when_it_is_synchronized_and_not_one_by_one() {
    let mut steady = steady();
    steady.handle_host(at(0.0), host(1), live(9, "before"));
    steady.handle_host(at(5.0), host(1), Seen { snapshot: snapshot(9), ..backoff("before") });
    let again = |rows| Seen { session: 2, ..arrived(9, rows) };
    steady.handle_host(at(6.0), host(1), again("before"));
    steady.handle_host(at(6.1), host(1), again("half of it"));
    assert_eq!(shown(&steady, 1), "before", "the snapshot is the one of before");
    assert!(!steady.may_move(host(1)));
    steady.handle_host(at(6.2), host(1), Seen { status: DataStatus::Live, ..again("all of it") });
    assert_eq!(shown(&steady, 1), "all of it");
}

#[test]
fn a_snapshot_at_the_same_number_of_another_start_of_the_host_is_another() {
    let mut steady = steady();
    steady.handle_host(at(0.0), host(1), live(9, "before"));
    steady.handle_host(at(5.0), host(1), Seen { snapshot: snapshot(9), ..connecting(1, "before") });
    let restarted = Some(Cursor { epoch: Epoch(2), seq: Seq(9) });
    let seen = Seen { session: 2, snapshot: restarted, ..connected("after") };
    steady.handle_host(at(6.0), host(1), seen);
    assert_eq!(shown(&steady, 1), "after");
}

#[test]
fn a_new_session_without_a_gap_owes_its_rows_too() {
    let mut steady = steady();
    steady.handle_host(at(0.0), host(1), live(9, "before"));
    let replaced = |status, rows| Seen { session: 2, status, ..live(9, rows) };
    steady.handle_host(at(1.0), host(1), replaced(DataStatus::Synchronizing, "half of it"));
    assert_eq!(shown(&steady, 1), "before");
    steady.handle_host(at(1.1), host(1), replaced(DataStatus::Live, "all of it"));
    assert_eq!(shown(&steady, 1), "all of it");
}

#[test]
fn a_host_that_is_retried_is_not_waited_for() {
    let mut steady = starting([1, 2]);
    steady.handle_host(at(0.5), host(2), backoff("cached"));
    steady.handle_host(at(0.6), host(2), connecting(2, "cached"));
    steady.handle_host(at(0.7), host(1), arrived(9, "fresh"));
    assert_eq!(shown(&steady, 1), "fresh", "at once: nobody is waited for");
    let early = Seen { snapshot: snapshot(3), ..connecting(2, "early") };
    steady.handle_host(at(0.8), host(2), early);
    assert_eq!(shown(&steady, 2), "early", "nor are its own rows held");
    assert!(steady.may_move(host(2)));
}

#[test]
fn a_retry_that_connected_is_waited_for_again() {
    let mut steady = starting([1]);
    steady.handle_host(at(0.5), host(1), backoff("cached"));
    steady.handle_host(at(9.0), host(1), connecting(2, "cached"));
    steady.handle_host(at(9.5), host(1), Seen { attempt: 2, ..connected("half of it") });
    assert_eq!(shown(&steady, 1), "cached");
    steady.handle_host(at(9.6), host(1), Seen { attempt: 2, ..arrived(4, "fresh") });
    assert_eq!(shown(&steady, 1), "fresh");
}

#[test]
fn hosts_that_are_ready_within_the_window_change_together() {
    let mut steady = starting([1, 2]);
    steady.handle_host(at(1.0), host(1), arrived(9, "fresh"));
    assert_eq!(shown(&steady, 1), "cached");
    assert_eq!(steady.poll_timeout(), Some(at(3.0)));
    steady.handle_host(at(2.9), host(2), arrived(5, "fresh"));
    assert_eq!(changes(&mut steady), [[1, 2]], "one change of the list");
    assert_eq!((shown(&steady, 1), shown(&steady, 2)), ("fresh", "fresh"));
    assert_eq!(steady.poll_timeout(), None);
}

#[test]
fn the_window_is_not_extended_and_a_later_host_opens_the_next() {
    let mut steady = starting([1, 2, 3, 4]);
    steady.handle_host(at(1.0), host(1), arrived(9, "fresh"));
    steady.handle_host(at(2.5), host(2), arrived(9, "fresh"));
    steady.handle_timeout(at(2.999));
    assert_eq!(changes(&mut steady), [[0_u128; 0]; 0]);
    steady.handle_timeout(at(3.0));
    assert_eq!(changes(&mut steady), [[1, 2]]);
    assert_eq!(steady.poll_timeout(), None);
    steady.handle_host(at(7.0), host(3), arrived(9, "fresh"));
    assert_eq!(steady.poll_timeout(), Some(at(9.0)));
    assert_eq!(changes(&mut steady), [[0_u128; 0]; 0]);
    // A late call finds the window closed before it takes in what is new.
    steady.handle_host(at(20.0), host(4), arrived(9, "fresh"));
    assert_eq!((shown(&steady, 3), shown(&steady, 4)), ("fresh", "fresh"));
}

#[test]
fn a_host_that_is_ready_shows_its_newest_rows_when_the_window_closes() {
    let mut steady = starting([1, 2]);
    steady.handle_host(at(1.0), host(1), arrived(9, "fresh"));
    steady.handle_host(at(1.5), host(1), live(9, "fresher"));
    assert_eq!(shown(&steady, 1), "cached");
    assert!(!steady.may_move(host(1)));
    steady.handle_timeout(at(3.0));
    assert_eq!(shown(&steady, 1), "fresher");
}

#[test]
fn a_disconnect_ends_the_hold() {
    let phases = [
        ConnectionPhase::Available,
        ConnectionPhase::Offline,
        ConnectionPhase::Backoff,
        ConnectionPhase::Blocked,
        ConnectionPhase::Asleep,
    ];
    for phase in phases {
        let mut steady = starting([1, 2]);
        steady.handle_host(at(0.5), host(1), connected("half of it"));
        steady.handle_host(at(1.0), host(2), arrived(9, "fresh"));
        assert_eq!(changes(&mut steady), [[0_u128; 0]; 0]);
        steady.handle_host(at(1.5), host(1), Seen { phase, ..connected("half of it") });
        assert_eq!(changes(&mut steady), [[1, 2]], "{phase:?}");
        assert!(steady.may_move(host(1)));
    }
}

#[test]
fn moving_a_row_is_refused_while_rows_wait() {
    let mut steady = starting([1, 2]);
    assert!(!steady.may_move(host(1)));
    steady.handle_host(at(1.0), host(1), arrived(9, "fresh"));
    assert!(!steady.may_move(host(1)), "ready is not yet shown");
    steady.handle_timeout(at(3.0));
    assert!(steady.may_move(host(1)));
    assert!(!steady.may_move(host(2)));
    assert!(!steady.may_move(host(3)), "an unknown host has no rows");
}

#[test]
fn a_person_who_settles_a_held_row_sees_it_at_once_and_rows_follow_until_live() {
    let mut steady = starting([1, 2]);
    steady.handle_host(at(0.5), host(1), connected("half of it"));
    steady.handle_moved(at(0.6), host(1));
    assert_eq!(changes(&mut steady), [[1]]);
    assert_eq!(shown(&steady, 1), "half of it");
    assert!(steady.may_move(host(1)));
    for (seen, rows) in [(connected("settled"), "settled"), (arrived(9, "fresh"), "fresh")] {
        steady.handle_host(at(0.7), host(1), seen);
        assert_eq!(shown(&steady, 1), rows);
    }
    assert_eq!(shown(&steady, 2), "cached", "another host's rows still wait");
    steady.handle_host(at(0.8), host(1), live(9, "live"));
    steady.handle_host(at(5.0), host(1), Seen { snapshot: snapshot(9), ..connecting(1, "live") });
    steady.handle_host(at(5.1), host(1), Seen { session: 2, ..arrived(9, "half of it") });
    assert_eq!(shown(&steady, 1), "live", "once live, the next connection is held as ever");
}

#[test]
fn a_person_who_moves_a_row_of_a_ready_host_does_not_wait_for_the_window() {
    let mut steady = starting([1, 2]);
    steady.handle_host(at(1.0), host(1), live(9, "live"));
    steady.handle_moved(at(1.1), host(1));
    assert_eq!(shown(&steady, 1), "live");
    assert_eq!(steady.poll_timeout(), None, "nobody is ready any more");
    steady.handle_moved(at(1.2), host(7));
    assert_eq!(steady.shown(host(7)), None);
}

#[test]
fn a_person_who_acts_on_the_only_one_waited_for_lets_the_others_change() {
    let mut steady = starting([1, 2]);
    steady.handle_host(at(1.0), host(1), arrived(9, "fresh"));
    steady.handle_moved(at(1.1), host(2));
    assert_eq!(changes(&mut steady), [[1]]);
}

#[test]
fn what_plans_an_action_and_looks_up_one_thread_reads_the_live_rows() {
    let mut steady = starting([1, 2]);
    steady.handle_host(at(1.0), host(1), arrived(9, "with a thread that was just made"));
    assert_eq!(shown(&steady, 1), "cached");
    assert_eq!(steady.live(host(1)), Some(&"with a thread that was just made"));
    assert_eq!(steady.live(host(3)), None);
}

#[test]
fn a_snapshot_that_never_comes_holds_the_rows_for_a_bounded_time() {
    let mut steady = starting([1]);
    steady.handle_host(at(3.0), host(1), connected("half of it"));
    assert_eq!(steady.poll_timeout(), Some(at(13.0)), "since it was connected");
    steady.handle_timeout(at(12.999));
    assert_eq!(shown(&steady, 1), "cached");
    steady.handle_timeout(at(13.0));
    assert_eq!(shown(&steady, 1), "half of it");
    assert!(steady.may_move(host(1)));
    steady.handle_host(at(14.0), host(1), connected("more of it"));
    assert_eq!(shown(&steady, 1), "more of it", "not waited for again on this connection");
    assert_eq!(steady.poll_timeout(), None);
}

#[test]
fn the_first_rows_of_a_host_that_shows_nothing_are_shown() {
    let mut steady = steady();
    let empty = |phase| Seen { phase, rows: None, status: DataStatus::Empty, ..connecting(1, "") };
    steady.handle_host(at(0.0), host(1), empty(ConnectionPhase::Connecting));
    assert_eq!(steady.shown(host(1)), None);
    steady.handle_host(at(0.7), host(1), connecting(1, "cached, read late"));
    assert_eq!(shown(&steady, 1), "cached, read late");
    steady.handle_host(at(0.8), host(1), connected("changed"));
    assert_eq!(shown(&steady, 1), "cached, read late");
}

#[test]
fn a_removed_host_is_gone_at_once_and_holds_no_one() {
    let mut steady = starting([1, 2]);
    steady.handle_host(at(1.0), host(1), arrived(9, "fresh"));
    steady.handle_removed(at(1.1), host(2));
    assert_eq!(changes(&mut steady), [[1, 2]]);
    assert_eq!((steady.shown(host(2)), steady.live(host(2))), (None, None));
}

#[test]
fn the_first_frame_waits_until_every_enabled_host_has_read_its_cached_list() {
    let mut steady = Steady::<Rows>::new(at(0.0));
    steady.handle_cache_read(at(0.0), host(9));
    assert!(!steady.first_paint(at(0.1)), "it is not known yet who is enabled");
    steady.handle_enabled(at(0.1), [host(1), host(2), host(3)]);
    steady.handle_host(at(0.2), host(1), cached("one"));
    steady.handle_cache_read(at(0.2), host(1));
    steady.handle_removed(at(0.2), host(3));
    assert_eq!(changes(&mut steady), [[1]]);
    assert_eq!(steady.poll_timeout(), Some(at(0.5)));
    steady.handle_host(at(0.3), host(2), cached("two"));
    steady.handle_cache_read(at(0.3), host(2));
    assert!(steady.first_paint(at(0.3)));
    assert_eq!(steady.poll_action(), Some(Action::Changed(BTreeSet::from([host(2)]))));
    assert_eq!(steady.poll_action(), Some(Action::Paint), "after the rows");
    steady.handle_timeout(at(0.5));
    assert_eq!(steady.poll_action(), None, "once");
}

#[test]
fn the_first_frame_is_painted_at_the_bound_even_if_a_cache_hangs() {
    for enabled in [Some([host(1)]), None] {
        let mut steady = Steady::<Rows>::new(at(0.0));
        if let Some(enabled) = enabled {
            steady.handle_enabled(at(0.0), enabled);
        }
        steady.handle_timeout(at(0.499));
        assert!(!steady.first_paint(at(0.499)));
        assert_eq!(steady.poll_action(), None);
        steady.handle_timeout(at(0.5));
        assert!(steady.first_paint(at(0.5)));
        assert_eq!(steady.poll_action(), Some(Action::Paint));
        assert_eq!(steady.poll_timeout(), None);
    }
}
