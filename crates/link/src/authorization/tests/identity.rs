//! Sign-out, and answers that are for somebody else.

use super::*;

#[test]
fn a_sign_out_at_any_step_returns_and_holds_nothing() {
    for steps in 0..3 {
        let mut bench = Bench::new(environment(Some("alice")));
        let caller = bench.ask(true);
        let (renewal, _) = bench.granting();
        if steps > 0 {
            bench.granted(renewal, &grant());
            bench.exchanging();
        }
        if steps > 1 {
            // Answered, and the answer not yet fetched.
            bench.exchanged(renewal, &token("one", 3_600));
        }
        bench.machine.sign_out();
        for action in bench.actions() {
            if let Action::Answer { caller: told, answer } = action {
                assert_eq!(told, caller);
                assert_eq!(answer.unwrap_err().reason, FailureReason::Authentication);
            } else {
                assert_eq!(action, Action::Cancel { renewal });
            }
        }
        bench.granted(renewal, &grant());
        bench.exchanged(renewal, &token("one", 3_600));
        assert_eq!(bench.actions(), [], "step {steps}");
        let Asked::Refused(failure) = bench.access(Need::default()) else { panic!("a token") };
        assert_eq!(failure.reason, FailureReason::Authentication);
        assert_eq!(bench.actions(), [], "nobody asks as nobody");
    }
}

#[test]
fn a_token_of_another_account_or_key_is_not_used() {
    let other_key = Entry { key: "key-b".to_owned(), ..environment(Some("alice")) };
    for entry in [environment(Some("bob")), other_key] {
        let (mut bench, first) = Bench::holding();
        bench.machine.enter(entry);
        bench.ask(false);
        let (renewal, _) = bench.granting();
        let ticket = bench.machine.handle_ticket(&first, &json_of(200, &ticket_body()));
        assert!(matches!(ticket, Ticket::Failed(_)), "a ticket of the past: {ticket:?}");
        assert!(renewal > RenewalId(0));
    }
}

fn ticket_body() -> Value {
    json!({"ticket": "t", "expires_in": 300})
}

#[test]
fn the_same_sign_in_changes_nothing() {
    let (mut bench, first) = Bench::holding();
    bench.machine.enter(environment(Some("alice")));
    assert_eq!(bench.held().id, first.id);
}

#[test]
fn a_renewal_of_the_account_before_changes_nothing() {
    let mut bench = Bench::new(environment(Some("alice")));
    bench.ask(false);
    let (old, _) = bench.granting();
    bench.machine.enter(environment(Some("bob")));
    bench.actions();
    let caller = bench.ask(false);
    let (new, _) = bench.granting();
    bench.granted(old, &grant());
    assert_eq!(bench.actions(), []);
    bench.granted(new, &grant_for("bob", 1));
    bench.exchanging();
    bench.exchanged(new, &token("bobs", 3_600));
    assert_eq!(bench.answer(caller).unwrap().token.reveal(), "bobs");
}

#[test]
fn a_grant_for_somebody_else_is_not_exchanged() {
    // Told at sign-in, or known from the first grant.
    for account in [Some("alice"), None] {
        for (subject, env) in [("bob", 1), ("alice", 2)] {
            let mut bench = Bench::new(environment(account));
            let first = bench.obtain("one", 3_600);
            bench.machine.reject(first.id);
            let caller = bench.ask(false);
            let (renewal, _) = bench.granting();
            bench.granted(renewal, &grant_for(subject, env));
            assert_eq!(bench.refusal(caller), FailureReason::Authentication, "{subject} {env}");
        }
    }
    let mut bench = Bench::new(environment(Some("alice")));
    let caller = bench.ask(false);
    let (renewal, _) = bench.granting();
    bench.granted(renewal, &grant_for("bob", 1));
    assert_eq!(bench.refusal(caller), FailureReason::Authentication, "also the first");
}

#[test]
fn a_grant_of_a_newer_form_is_left_to_the_host() {
    let mut bench = Bench::new(environment(Some("alice")));
    bench.ask(false);
    let (renewal, _) = bench.granting();
    let body = json!({"grant": "wkg2.opaque", "expires_in": 60, "address": ADDRESS});
    bench.granted(renewal, &json_of(201, &body));
    let (_, credential) = bench.exchanging();
    assert_eq!(credential, Credential::Grant(Secret::new("wkg2.opaque")));
}

#[test]
fn a_token_of_another_pairing_is_refused() {
    let mut bench = Bench::new(pairing("r1"));
    let caller = bench.ask(false);
    let (renewal, _) = bench.exchanging();
    bench.exchanged(renewal, &token("one", 3_600));
    let access = bench.answer(caller).unwrap();
    bench.machine.reject(access.id);
    let caller = bench.ask(false);
    let (renewal, _) = bench.exchanging();
    let mut body = token_body("two", 3_600);
    body["session"] = json!(session(2));
    bench.exchanged(renewal, &json_of(200, &body));
    assert_eq!(bench.refusal(caller), FailureReason::Authentication);
}

#[test]
fn the_sessions_of_grants_may_differ() {
    let (mut bench, first) = Bench::holding();
    bench.machine.reject(first.id);
    let caller = bench.ask(false);
    let mut body = token_body("two", 3_600);
    body["session"] = json!(session(2));
    bench.renew(&json_of(200, &body));
    assert!(bench.answer(caller).is_ok());
}

#[test]
fn a_socket_of_somebody_elses_session_is_refused_and_its_token_thrown_away() {
    let (mut bench, _) = Bench::holding();
    assert_eq!(bench.machine.handle_session(&view("alice", 1)), Ok(()));
    assert_eq!(bench.machine.handle_session(&view("alice", 2)), Ok(()), "grants renew sessions");
    bench.held();
    let refused = bench.machine.handle_session(&view("bob", 1)).unwrap_err();
    assert_eq!(refused.reason, FailureReason::Authentication);
    bench.ask(false);

    let mut bench = Bench::new(pairing("r1"));
    assert_eq!(bench.machine.handle_session(&view("owner", 1)), Ok(()));
    assert!(bench.machine.handle_session(&view("owner", 2)).is_err(), "another pairing");
    assert!(bench.machine.handle_session(&view("other", 1)).is_err(), "another account");
    bench.machine.sign_out();
    assert!(bench.machine.handle_session(&view("owner", 1)).is_err(), "nobody is signed in");
}
