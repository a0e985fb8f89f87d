//! The last minute of a live socket's session.

use super::*;

const MINUTE: Duration = Duration::from_secs(60);

/// A socket lives on the token that is held.
fn live() -> (Bench, Access) {
    let (mut bench, access) = Bench::holding();
    bench.machine.handle_live(bench.now, Some(access.until));
    (bench, access)
}

/// Jumps to the next deadline.
fn jump(bench: &mut Bench) {
    let next = bench.machine.poll_timeout().expect("something is due");
    bench.pass(bench.now.until(next));
}

#[test]
fn a_live_sockets_session_is_renewed_within_its_last_minute_and_not_before() {
    for seed in 0..50 {
        let mut bench = Bench::new(environment(None));
        bench.machine = Authorization::new(Some(environment(None)), Chance::seeded(seed));
        let access = bench.obtain("one", 3_600);
        bench.machine.handle_live(bench.now, Some(access.until));
        bench.pass(HOUR - MINUTE - Duration::from_millis(1));
        assert_eq!(bench.actions(), []);
        jump(&mut bench);
        let (_, wake) = bench.granting();
        assert!(!wake);
        let left = bench.now.until(access.until);
        assert!(left <= MINUTE && left >= Duration::from_secs(40), "{left:?}");
    }
}

#[test]
fn the_sockets_of_a_restarted_host_are_not_all_renewed_at_once() {
    let due = |seed| {
        let mut machine = Authorization::new(Some(environment(None)), Chance::seeded(seed));
        machine.handle_live(Instant(0), Some(Instant(3_600_000)));
        machine.poll_timeout()
    };
    assert_ne!(due(1), due(2));
    assert_eq!(due(1), due(1));
}

#[test]
fn a_renewal_that_works_is_the_only_one_and_leads_to_the_next_hour() {
    let (mut bench, first) = live();
    jump(&mut bench);
    bench.renew(&token("two", 3_600));
    let Action::Renewed { access } = bench.only() else { panic!("the newer token is told") };
    assert_ne!(access.id, first.id);
    assert_eq!(access.until, bench.now.after(HOUR));
    bench.pass(bench.now.until(first.until) + MINUTE);
    assert_eq!(bench.actions(), [], "past the first session's end");
    jump(&mut bench);
    assert!(bench.now.until(access.until) <= MINUTE);
    bench.granting();
}

#[test]
fn a_renewal_that_fails_is_tried_again_with_some_distance_and_never_after_the_end() {
    let (mut bench, access) = live();
    let mut tries = 0;
    let mut last = None;
    while bench.machine.poll_timeout().is_some() {
        jump(&mut bench);
        let (renewal, _) = bench.granting();
        assert!(bench.now < access.until);
        if let Some(last) = last {
            assert!(bench.now.since(last) >= RENEWAL_SPACING);
        }
        last = Some(bench.now);
        bench.granted(renewal, &problem(Code::Internal));
        assert_eq!(bench.actions(), [], "the socket is left alone");
        tries += 1;
    }
    assert!((4..=6).contains(&tries), "{tries}");
    bench.pass(HOUR);
    assert_eq!(bench.actions(), []);
}

#[test]
fn a_second_try_within_the_minute_saves_the_session() {
    let (mut bench, _) = live();
    jump(&mut bench);
    let (renewal, _) = bench.granting();
    bench.granted(renewal, &Reply::TimedOut);
    jump(&mut bench);
    bench.renew(&token("two", 3_600));
    assert!(matches!(bench.only(), Action::Renewed { .. }));
}

#[test]
fn whoever_renews_renews_for_the_socket_too() {
    let (mut bench, first) = live();
    bench.pass(Duration::from_secs(600));
    let Asked::Waiting(caller) = bench.access(Need { wake: false, rejected: Some(first.id) })
    else {
        panic!("a refused token is replaced")
    };
    bench.renew(&token("two", 3_600));
    let actions = bench.actions();
    let [Action::Renewed { .. }, Action::Answer { caller: told, answer: Ok(_) }] =
        actions.as_slice()
    else {
        panic!("{actions:?}")
    };
    assert_eq!(*told, caller);
    bench.pass(bench.now.until(first.until));
    assert_eq!(bench.actions(), []);
}

#[test]
fn who_asks_in_the_last_minute_joins_the_sockets_renewal() {
    let (mut bench, _) = live();
    jump(&mut bench);
    let (renewal, _) = bench.granting();
    let caller = bench.ask(false);
    assert_eq!(bench.actions(), []);
    bench.granted(renewal, &grant());
    bench.exchanging();
    bench.exchanged(renewal, &token("two", 3_600));
    let actions = bench.actions();
    assert_eq!(actions.len(), 2);
    let told = |action: &Action| matches!(action, Action::Answer { caller: told, answer: Ok(_) } if *told == caller);
    assert!(actions.iter().any(told));
}

#[test]
fn a_failed_renewal_of_a_request_is_that_requests_alone() {
    let (mut bench, first) = live();
    let due = bench.machine.poll_timeout();
    let Asked::Waiting(caller) = bench.access(Need { wake: false, rejected: Some(first.id) })
    else {
        panic!("a refused token is replaced")
    };
    let (renewal, _) = bench.granting();
    bench.granted(renewal, &Reply::TimedOut);
    assert_eq!(bench.refusal(caller), FailureReason::Timeout);
    assert_eq!(bench.machine.poll_timeout(), due, "the socket's own renewal is where it was");
}

#[test]
fn a_request_over_http_two_hours_later_asks_for_no_ticket_and_no_socket() {
    let (mut bench, _) = Bench::holding();
    bench.pass(2 * HOUR);
    let caller = bench.ask(false);
    let (renewal, _) = bench.granting();
    bench.granted(renewal, &grant());
    bench.exchanging();
    bench.exchanged(renewal, &token("two", 3_600));
    // Everything else that a shell could be told would be in the way of these.
    assert!(bench.answer(caller).is_ok());
}

#[test]
fn a_socket_that_is_gone_needs_no_renewal() {
    let (mut bench, _) = live();
    bench.machine.handle_live(bench.now, None);
    assert_eq!(bench.machine.poll_timeout(), None);
    let (mut bench, _) = live();
    bench.machine.sign_out();
    assert_eq!(bench.machine.poll_timeout(), None);
    bench.machine.handle_live(bench.now, Some(bench.now.after(HOUR)));
    assert_eq!(bench.machine.poll_timeout(), None, "nobody is signed in");
}

#[test]
fn the_same_end_said_twice_changes_nothing() {
    let (mut bench, access) = live();
    let due = bench.machine.poll_timeout();
    bench.machine.handle_live(bench.now, Some(access.until));
    assert_eq!(bench.machine.poll_timeout(), due);
}

#[test]
fn tokens_that_live_less_than_a_minute_are_not_renewed_without_pause() {
    let mut bench = Bench::new(environment(None));
    let access = bench.obtain("one", 30);
    bench.machine.handle_live(bench.now, Some(access.until));
    let mut last = None;
    for _ in 0..5 {
        jump(&mut bench);
        if let Some(last) = last {
            assert_eq!(bench.now.since(last), RENEWAL_SPACING);
        }
        last = Some(bench.now);
        bench.renew(&token("more", 30));
        bench.only();
    }
}

#[test]
fn a_paired_hosts_socket_renews_by_its_refresh_token() {
    let mut bench = Bench::new(pairing("r1"));
    let caller = bench.ask(false);
    let (renewal, _) = bench.exchanging();
    bench.exchanged(renewal, &token("one", 3_600));
    let access = bench.answer(caller).unwrap();
    bench.machine.handle_live(bench.now, Some(access.until));
    jump(&mut bench);
    let (renewal, _) = bench.exchanging();
    bench.exchanged(renewal, &token("two", 3_600));
    assert!(matches!(bench.only(), Action::Renewed { .. }));
}
