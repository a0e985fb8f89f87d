use super::*;

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
    steady.handle_host(at(8.0), host(1), connected("half of it"));
    let replaced = Seen { session: 2, ..connected("half of it") };
    steady.handle_host(at(9.0), host(1), replaced);
    assert_eq!(steady.poll_timeout(), Some(at(13.0)), "nothing extends it");
    steady.handle_timeout(at(12.999));
    assert_eq!(shown(&steady, 1), "cached");
    steady.handle_timeout(at(13.0));
    assert_eq!(shown(&steady, 1), "half of it");
    assert!(steady.may_move(host(1)));
    steady.handle_host(at(14.0), host(1), Seen { session: 2, ..connected("more of it") });
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
