//! The way of a paired host: its refresh token.

use super::*;

#[test]
fn a_refresh_token_brings_an_access_token() {
    let mut bench = Bench::new(pairing("r1"));
    let caller = bench.ask(false);
    let (renewal, credential) = bench.exchanging();
    assert_eq!(credential, Credential::Refresh(Secret::new("r1")));
    bench.exchanged(renewal, &token("one", 3_600));
    assert_eq!(bench.answer(caller).unwrap().token.reveal(), "one");
}

#[test]
fn a_newer_refresh_token_is_stored_before_anything_is_used() {
    let mut bench = Bench::new(pairing("r1"));
    let caller = bench.ask(false);
    let (renewal, _) = bench.exchanging();
    bench.exchanged(renewal, &rotated("one", "r2"));
    let (renewal, stored) = bench.storing();
    assert_eq!(stored.reveal(), "r2");
    let received = bench.now;
    bench.pass(Duration::from_secs(5));
    bench.stored(renewal, Ok(()));
    let access = bench.answer(caller).unwrap();
    assert_eq!(access.until, received.after(HOUR), "storing takes nothing of its life away");
    bench.machine.reject(access.id);
    bench.ask(false);
    let (_, credential) = bench.exchanging();
    assert_eq!(credential, Credential::Refresh(Secret::new("r2")));
}

#[test]
fn the_same_refresh_token_is_not_stored_again() {
    let mut bench = Bench::new(pairing("r1"));
    let caller = bench.ask(false);
    let (renewal, _) = bench.exchanging();
    bench.exchanged(renewal, &rotated("one", "r1"));
    assert!(bench.answer(caller).is_ok());
}

#[test]
fn a_refresh_token_that_could_not_be_stored_is_stored_before_the_next_renewal() {
    let mut bench = Bench::new(pairing("r1"));
    let caller = bench.ask(false);
    let (renewal, _) = bench.exchanging();
    bench.exchanged(renewal, &rotated("one", "r2"));
    let (renewal, _) = bench.storing();
    bench.stored(renewal, Err(Failure::new(FailureReason::Configuration, "The disk is full.")));
    assert_eq!(bench.refusal(caller), FailureReason::Configuration);

    let caller = bench.ask(false);
    let (renewal, stored) = bench.storing();
    assert_eq!(stored.reveal(), "r2");
    bench.stored(renewal, Ok(()));
    let (renewal, credential) = bench.exchanging();
    assert_eq!(credential, Credential::Refresh(Secret::new("r2")));
    bench.exchanged(renewal, &rotated("two", "r2"));
    assert_eq!(bench.answer(caller).unwrap().token.reveal(), "two");
}

#[test]
fn a_refresh_token_that_is_gone_means_to_pair_again() {
    let unknown = json!({"error": "invalid_grant", "error_description": "No.", "reason": "newer"});
    let mut table: Vec<_> = [
        Denial::SessionRevoked,
        Denial::SessionUnknown,
        Denial::SessionExpired,
        Denial::TokenSignature,
        Denial::TokenMalformed,
        Denial::TokenKey,
    ]
    .map(|denial| denied(400, denial))
    .into();
    table.push(json_of(400, &unknown));
    for reply in table {
        let mut bench = Bench::new(pairing("r1"));
        let caller = bench.ask(false);
        let (renewal, _) = bench.exchanging();
        bench.exchanged(renewal, &reply);
        let failure = bench.answer(caller).unwrap_err();
        assert_eq!(failure.reason, FailureReason::Authentication, "{reply:?}");
        assert!(failure.detail.contains("pair again"), "{}", failure.detail);
    }
}

#[test]
fn a_host_in_trouble_does_not_mean_to_pair_again() {
    let trouble = json!({"error": "server_error", "error_description": "It cannot store."});
    let table = [
        (json_of(500, &trouble), FailureReason::Remote),
        (denied(429, Denial::ProofsFull), FailureReason::Overloaded),
        (answered(502, "text/html", "<h1>Bad gateway</h1>"), FailureReason::Platform),
        (Reply::Unreachable("No connection.".to_owned()), FailureReason::Network),
        (Reply::TimedOut, FailureReason::Timeout),
        (Reply::Unproven("The key cannot be read.".to_owned()), FailureReason::Configuration),
    ];
    for (reply, reason) in table {
        let mut bench = Bench::new(pairing("r1"));
        let caller = bench.ask(false);
        let (renewal, _) = bench.exchanging();
        bench.exchanged(renewal, &reply);
        assert_eq!(bench.refusal(caller), reason, "{reply:?}");
    }
}

#[test]
fn a_refused_proof_is_made_anew_once_and_may_be_the_clocks_doing() {
    let mut bench = Bench::new(pairing("r1"));
    let caller = bench.ask(false);
    let (renewal, _) = bench.exchanging();
    let body = json!({"error": "invalid_dpop_proof", "error_description": "The proof is wrong."});
    bench.exchanged(renewal, &json_of(400, &body));
    let (renewal, credential) = bench.exchanging();
    assert_eq!(credential, Credential::Refresh(Secret::new("r1")));
    bench.exchanged(renewal, &json_of(400, &body));
    let failure = bench.answer(caller).unwrap_err();
    assert_eq!(failure.reason, FailureReason::Configuration);
    assert!(failure.detail.contains("clock skew"), "{}", failure.detail);
}

#[test]
fn removal_forgets_the_stored_token_also_one_that_is_just_being_stored() {
    let mut bench = Bench::new(pairing("r1"));
    let caller = bench.ask(false);
    let (renewal, _) = bench.exchanging();
    bench.exchanged(renewal, &rotated("one", "r2"));
    bench.storing();
    bench.machine.sign_out();
    let actions = bench.actions();
    assert_eq!(actions.first(), Some(&Action::Cancel { renewal }));
    assert_eq!(actions.last(), Some(&Action::Forget));
    let told = |action: &Action| matches!(action, Action::Answer { caller: told, answer: Err(_) } if *told == caller);
    assert!(actions.iter().any(told));
    bench.stored(renewal, Ok(()));
    assert_eq!(bench.actions(), []);
    assert!(matches!(bench.access(Need::default()), Asked::Refused(_)));
}

#[test]
fn a_store_that_was_not_begun_does_not_happen_after_removal() {
    let mut bench = Bench::new(pairing("r1"));
    bench.ask(false);
    let (renewal, _) = bench.exchanging();
    bench.exchanged(renewal, &rotated("one", "r2"));
    bench.machine.sign_out();
    let stores = |action: &Action| matches!(action, Action::Store { .. });
    assert!(!bench.actions().iter().any(stores));
}

#[test]
fn pairing_anew_goes_on_with_the_new_refresh_token() {
    let mut bench = Bench::new(pairing("r1"));
    bench.ask(false);
    bench.exchanging();
    bench.machine.enter(pairing("r9"));
    let forgets = |action: &Action| matches!(action, Action::Forget);
    assert!(!bench.actions().iter().any(forgets), "the new one is stored already");
    bench.ask(false);
    let (_, credential) = bench.exchanging();
    assert_eq!(credential, Credential::Refresh(Secret::new("r9")));
}
