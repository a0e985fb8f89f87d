use super::*;

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
fn a_removed_host_is_gone_at_once_and_holds_no_one() {
    let mut steady = starting([1, 2]);
    steady.handle_host(at(1.0), host(1), arrived(9, "fresh"));
    steady.handle_removed(at(1.1), host(2));
    assert_eq!(changes(&mut steady), [[1, 2]]);
    assert_eq!((steady.shown(host(2)), steady.live(host(2))), (None, None));
}
