//! What a ticket request says of the token it was made with.

use super::*;

fn ticket() -> Reply {
    json_of(200, &json!({"ticket": "t", "expires_in": 300}))
}

/// A token that is held, as an attempt gets it.
fn cached() -> (Bench, Access) {
    let (mut bench, _) = Bench::holding();
    let access = bench.held();
    (bench, access)
}

#[test]
fn a_held_token_and_one_ticket_request_are_all_that_an_attempt_needs() {
    let (mut bench, access) = cached();
    let taken = bench.machine.handle_ticket(&access, &ticket());
    assert!(matches!(taken, Ticket::Taken(ticket) if ticket.ticket == "t"));
    assert_eq!(bench.actions(), []);
    assert_eq!(bench.held().id, access.id);
}

#[test]
fn a_held_token_that_is_refused_is_replaced_within_the_attempt() {
    let replies = [
        problem(Code::Unauthenticated),
        answered(503, "text/plain", "no"),
        problem(Code::UpstreamFailed),
        problem(Code::Asleep),
        answered(200, "text/html", "<html>"),
        answered(302, "text/html", ""),
        json_of(200, &json!({"unexpected": true})),
    ];
    for reply in replies {
        let (mut bench, access) = cached();
        let again = bench.machine.handle_ticket(&access, &reply);
        assert_eq!(again, Ticket::Again, "{reply:?}");
        let caller = bench.ask(true);
        bench.renew(&token("two", 3_600));
        let fresh = bench.answer(caller).unwrap();
        let taken = bench.machine.handle_ticket(&fresh, &ticket());
        assert!(matches!(taken, Ticket::Taken(_)), "{reply:?}");
    }
}

#[test]
fn a_fresh_token_that_is_refused_is_thrown_away_and_the_attempt_fails() {
    let table = [
        (problem(Code::Unauthenticated), FailureReason::Authentication),
        (answered(503, "text/plain", "no"), FailureReason::Platform),
    ];
    for (reply, reason) in table {
        let (mut bench, fresh) = Bench::holding();
        let Ticket::Failed(failure) = bench.machine.handle_ticket(&fresh, &reply) else {
            panic!("an attempt renews once")
        };
        assert_eq!(failure.reason, reason);
        bench.ask(true);
    }
}

#[test]
fn silence_keeps_a_token_whether_held_or_fresh() {
    for silence in [Reply::TimedOut, Reply::Unreachable("No connection.".to_owned())] {
        let (mut bench, fresh) = Bench::holding();
        let ticket = bench.machine.handle_ticket(&fresh, &silence);
        assert!(matches!(ticket, Ticket::Failed(_)));
        let access = bench.held();
        assert_eq!(access.id, fresh.id);
        let ticket = bench.machine.handle_ticket(&access, &silence);
        assert!(matches!(ticket, Ticket::Failed(_)));
        assert_eq!(bench.held().id, fresh.id);
    }
}

#[test]
fn the_third_silence_in_a_row_asks_the_platform_again() {
    let (mut bench, access) = cached();
    let ticket = |bench: &mut Bench| bench.machine.handle_ticket(&access, &Reply::TimedOut);
    let Ticket::Failed(failure) = ticket(&mut bench) else { panic!("the first") };
    assert_eq!(failure.reason, FailureReason::Timeout);
    assert!(matches!(ticket(&mut bench), Ticket::Failed(_)), "the second");
    assert_eq!(bench.held().id, access.id);
    assert_eq!(ticket(&mut bench), Ticket::Again, "the third");
    bench.ask(true);
    bench.granting();
}

#[test]
fn a_ticket_in_between_counts_silences_anew() {
    let (mut bench, access) = cached();
    for reply in [Reply::TimedOut, Reply::TimedOut, ticket(), Reply::TimedOut, Reply::TimedOut] {
        assert_ne!(bench.machine.handle_ticket(&access, &reply), Ticket::Again);
    }
    assert_eq!(bench.machine.handle_ticket(&access, &Reply::TimedOut), Ticket::Again);
}

#[test]
fn silences_of_one_token_do_not_count_for_the_next() {
    let (mut bench, access) = cached();
    bench.machine.handle_ticket(&access, &Reply::TimedOut);
    bench.machine.handle_ticket(&access, &Reply::TimedOut);
    bench.machine.reject(access.id);
    let second = bench.obtain("two", 3_600);
    bench.machine.handle_ticket(&access, &Reply::TimedOut);
    bench.machine.handle_ticket(&second, &Reply::TimedOut);
    bench.machine.handle_ticket(&second, &Reply::TimedOut);
    assert_eq!(bench.held().id, second.id);
}

#[test]
fn a_late_refusal_keeps_the_token_that_came_since() {
    let (mut bench, old) = cached();
    bench.machine.reject(old.id);
    let new = bench.obtain("two", 3_600);
    let again = bench.machine.handle_ticket(&old, &problem(Code::Unauthenticated));
    assert_eq!(again, Ticket::Again);
    assert_eq!(bench.held().id, new.id);
}

#[test]
fn a_proof_that_cannot_be_made_is_no_fault_of_the_token() {
    let (mut bench, access) = cached();
    let reply = Reply::Unproven("The key cannot be read.".to_owned());
    let Ticket::Failed(failure) = bench.machine.handle_ticket(&access, &reply) else {
        panic!("no other token helps")
    };
    assert_eq!(failure.reason, FailureReason::Configuration);
    assert_eq!(bench.held().id, access.id);
}

#[test]
fn a_host_with_too_much_to_do_is_not_asked_for_more() {
    let (mut bench, access) = cached();
    let mut reply = problem(Code::TooManyRequests);
    if let Reply::Answered(answer) = &mut reply {
        answer.retry_after = Some(Duration::from_secs(60));
    }
    let Ticket::Failed(failure) = bench.machine.handle_ticket(&access, &reply) else {
        panic!("no other token helps")
    };
    assert_eq!(failure.reason, FailureReason::Overloaded);
    assert_eq!(failure.retry_after, Some(Duration::from_secs(60)));
    assert_eq!(bench.held().id, access.id);
}
