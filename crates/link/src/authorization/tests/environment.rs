//! The way of an environment: a grant, then its exchange.

use super::*;

#[test]
fn an_expired_token_is_replaced_by_a_grant_and_its_exchange() {
    let (mut bench, _) = Bench::holding();
    bench.pass(2 * HOUR);
    let caller = bench.ask(true);
    let (renewal, wake) = bench.granting();
    assert!(wake);
    bench.granted(renewal, &grant());
    let Action::Exchange { renewal, credential, address, wake } = bench.only() else {
        panic!("the grant is exchanged")
    };
    assert_eq!((address.as_str(), wake), (ADDRESS, true));
    assert!(matches!(credential, Credential::Grant(grant) if grant.reveal().starts_with("wkg1.")));
    bench.exchanged(renewal, &token("two", 3_600));
    let access = bench.answer(caller).unwrap();
    assert_eq!((access.address.as_str(), access.token.reveal()), (ADDRESS, "two"));
}

#[test]
fn who_does_not_wake_is_told_that_it_sleeps() {
    let mut bench = Bench::new(environment(None));
    let caller = bench.ask(false);
    let (renewal, wake) = bench.granting();
    assert!(!wake);
    bench.granted(renewal, &asleep());
    let failure = bench.answer(caller).unwrap_err();
    assert_eq!((failure.reason, failure.phase), (FailureReason::Asleep, Some(Phase::Suspended)));
}

#[test]
fn who_wakes_joins_a_renewal_that_does_not_and_has_its_own_if_that_finds_it_asleep() {
    let mut bench = Bench::new(environment(None));
    let unwaking = bench.ask(false);
    let (renewal, _) = bench.granting();
    let waking = bench.ask(true);
    assert_eq!(bench.actions(), []);
    bench.granted(renewal, &asleep());
    let actions = bench.actions();
    let [Action::Answer { caller, answer: Err(failure) }, Action::Grant { renewal, wake: true }] =
        actions.as_slice()
    else {
        panic!("{actions:?}")
    };
    assert_eq!((*caller, failure.reason), (unwaking, FailureReason::Asleep));
    bench.granted(*renewal, &grant());
    let (renewal, _) = bench.exchanging();
    bench.exchanged(renewal, &token("one", 3_600));
    assert!(bench.answer(waking).is_ok());
}

#[test]
fn a_waking_renewal_that_finds_it_asleep_is_not_repeated() {
    let mut bench = Bench::new(environment(None));
    let caller = bench.ask(true);
    let (renewal, _) = bench.granting();
    bench.granted(renewal, &asleep());
    assert_eq!(bench.refusal(caller), FailureReason::Asleep);
}

#[test]
fn nothing_is_woken_for_somebody_who_has_left() {
    let mut bench = Bench::new(environment(None));
    let unwaking = bench.ask(false);
    let (renewal, _) = bench.granting();
    let waking = bench.ask(true);
    bench.machine.cancel(waking);
    bench.granted(renewal, &asleep());
    assert_eq!(bench.refusal(unwaking), FailureReason::Asleep);
}

#[test]
fn another_failure_of_an_unwaking_renewal_reaches_who_wakes_too() {
    let mut bench = Bench::new(environment(None));
    bench.ask(false);
    let (renewal, _) = bench.granting();
    bench.ask(true);
    bench.granted(renewal, &problem(Code::EnvironmentDisabled));
    assert_eq!(bench.answers().len(), 2);
}

#[test]
fn the_platforms_401_asks_for_a_sign_in() {
    let mut bench = Bench::new(environment(None));
    let caller = bench.ask(false);
    let (renewal, _) = bench.granting();
    bench.granted(renewal, &problem(Code::Unauthenticated));
    let failure = bench.answer(caller).unwrap_err();
    assert_eq!(failure.reason, FailureReason::Authentication);
    assert!(failure.detail.contains("Sign in"), "{}", failure.detail);
}

#[test]
fn a_grant_that_the_host_does_not_take_is_replaced_once() {
    let table = [
        (Denial::GrantSignature, FailureReason::Remote),
        (Denial::GrantUsed, FailureReason::Remote),
        (Denial::GrantExpired, FailureReason::Remote),
        (Denial::GrantEarly, FailureReason::Remote),
        (Denial::ProofReplayed, FailureReason::Remote),
        (Denial::ProofLate, FailureReason::Configuration),
        (Denial::NonceRequired, FailureReason::Configuration),
    ];
    for (denial, reason) in table {
        let mut bench = Bench::new(environment(None));
        let caller = bench.ask(true);
        bench.renew(&denied(400, denial));
        let (renewal, wake) = bench.granting();
        assert!(wake, "{denial}");
        bench.granted(renewal, &grant());
        bench.exchanging();
        bench.exchanged(renewal, &denied(400, denial));
        assert_eq!(bench.refusal(caller), reason, "{denial}");
        // And the other way: the second one does.
        bench.ask(true);
        bench.renew(&denied(400, denial));
        bench.renew(&token("one", 3_600));
        assert_eq!(bench.answers().len(), 1, "{denial}");
    }
}

#[test]
fn a_refusal_that_no_other_grant_avoids_ends_the_renewal() {
    let table = [
        (400, Denial::GrantAudience, FailureReason::Configuration),
        (400, Denial::GrantUnsupported, FailureReason::Configuration),
        (400, Denial::GrantScope, FailureReason::Permission),
        (400, Denial::GrantMalformed, FailureReason::Unsupported),
        (400, Denial::ProofAlgorithm, FailureReason::Unsupported),
        (429, Denial::ProofsFull, FailureReason::Overloaded),
        (503, Denial::SessionsFull, FailureReason::Overloaded),
    ];
    for (status, denial, reason) in table {
        let mut bench = Bench::new(environment(None));
        let caller = bench.ask(true);
        bench.renew(&denied(status, denial));
        assert_eq!(bench.refusal(caller), reason, "{denial}");
    }
}

#[test]
fn a_refresh_token_that_a_grant_brings_is_not_kept() {
    let mut bench = Bench::new(environment(None));
    let caller = bench.ask(false);
    bench.renew(&rotated("one", "unwanted"));
    assert!(bench.answer(caller).is_ok());
}

#[test]
fn a_grant_or_token_that_cannot_be_used_is_refused() {
    let grants = [
        json!({"grant": "", "expires_in": 60, "address": ADDRESS}),
        json!({"grant": "a b", "expires_in": 60, "address": ADDRESS}),
        json!({"grant": "g".repeat(8_193), "expires_in": 60, "address": ADDRESS}),
        json!({"grant": "g", "expires_in": 60, "address": "javascript:alert(1)"}),
        json!({"grant": "g", "expires_in": 60, "address": "https://"}),
    ];
    for body in grants {
        let mut bench = Bench::new(environment(None));
        let caller = bench.ask(false);
        let (renewal, _) = bench.granting();
        bench.granted(renewal, &json_of(201, &body));
        assert_eq!(bench.refusal(caller), FailureReason::Platform, "{body}");
    }
    let mut bearer = token_body("one", 3_600);
    bearer["token_type"] = "Bearer".into();
    let tokens = [
        (token_body("", 3_600), FailureReason::Remote),
        (token_body("a\r\nb", 3_600), FailureReason::Remote),
        (token_body("one", 0), FailureReason::Remote),
        (bearer, FailureReason::Unsupported),
    ];
    for (body, reason) in tokens {
        let mut bench = Bench::new(environment(None));
        let caller = bench.ask(false);
        bench.renew(&json_of(200, &body));
        assert_eq!(bench.refusal(caller), reason, "{body}");
    }
}
