//! One renewal for whoever asks meanwhile.

use super::*;

#[test]
fn a_good_token_is_given_at_once_without_a_request() {
    let (mut bench, first) = Bench::holding();
    let held = bench.held();
    assert_eq!((held.id, held.token, held.cached), (first.id, first.token, true));
    assert!(!first.cached, "it was had for the caller");
    assert_eq!(bench.actions(), []);
}

#[test]
fn a_token_with_61_seconds_left_is_used_and_one_with_60_is_renewed() {
    let (mut bench, first) = Bench::holding();
    bench.pass(HOUR - Duration::from_secs(61));
    assert_eq!(bench.held().id, first.id);
    bench.pass(Duration::from_secs(1));
    let caller = bench.ask(false);
    bench.renew(&token("two", 3_600));
    let second = bench.answer(caller).unwrap();
    assert_ne!(second.id, first.id);
    assert_eq!(second.token.reveal(), "two");
    assert_eq!(second.until, bench.now.after(HOUR), "counted from the answer's arrival");
}

#[test]
fn six_callers_share_one_renewal() {
    let mut bench = Bench::new(environment(None));
    let callers: Vec<_> = (0..6).map(|_| bench.ask(false)).collect();
    bench.renew(&token("one", 3_600));
    let answers = bench.answers();
    let served: Vec<_> = answers.iter().map(|(caller, _)| *caller).collect();
    assert_eq!(served, callers);
    let tokens: Vec<_> = answers.into_iter().map(|(_, answer)| answer.unwrap().id).collect();
    assert!(tokens.iter().all(|token| *token == tokens[0]));
}

#[test]
fn a_failure_reaches_everybody_and_the_next_call_tries_again() {
    let mut bench = Bench::new(environment(None));
    for _ in 0..3 {
        bench.ask(false);
    }
    let (renewal, _) = bench.granting();
    bench.granted(renewal, &problem(Code::Internal));
    let answers = bench.answers();
    assert_eq!(answers.len(), 3);
    for (_, answer) in answers {
        assert_eq!(answer.unwrap_err().reason, FailureReason::Remote);
    }
    bench.obtain("one", 3_600);
}

#[test]
fn a_caller_that_leaves_does_not_end_the_renewal() {
    let mut bench = Bench::new(environment(None));
    let caller = bench.ask(false);
    bench.machine.cancel(caller);
    bench.renew(&token("one", 3_600));
    assert_eq!(bench.actions(), [], "nobody is told");
    assert_eq!(bench.held().token.reveal(), "one");
}

#[test]
fn an_attempt_that_runs_out_of_time_finds_its_renewal_under_way_the_next_time() {
    let mut bench = Bench::new(environment(None));
    let first = bench.ask(true);
    let (renewal, _) = bench.granting();
    bench.pass(Duration::from_secs(15));
    bench.machine.cancel(first);
    let second = bench.ask(true);
    assert_eq!(bench.actions(), [], "no second renewal");
    bench.granted(renewal, &grant());
    let (renewal, _) = bench.exchanging();
    bench.exchanged(renewal, &token("one", 3_600));
    assert!(bench.answer(second).is_ok());
}

#[test]
fn a_renewal_ends_after_thirty_seconds_and_what_it_brings_later_is_dropped() {
    let mut bench = Bench::new(environment(None));
    let caller = bench.ask(false);
    let (renewal, _) = bench.granting();
    bench.pass(RENEWAL_LIMIT - Duration::from_millis(1));
    bench.granted(renewal, &grant());
    bench.exchanging();
    assert_eq!(bench.machine.poll_timeout(), Some(bench.now.after(Duration::from_millis(1))));
    bench.pass(Duration::from_millis(1));
    let actions = bench.actions();
    assert_eq!(actions[0], Action::Cancel { renewal });
    let Action::Answer { caller: told, answer: Err(failure) } = &actions[1] else {
        panic!("{actions:?}")
    };
    assert_eq!((*told, failure.reason), (caller, FailureReason::Timeout));
    bench.exchanged(renewal, &token("one", 3_600));
    assert_eq!(bench.actions(), []);
    let second = bench.ask(false);
    let (renewal, _) = bench.granting();
    bench.exchanged(renewal, &token("one", 3_600));
    assert_eq!(bench.actions(), [], "an answer to a step that is not awaited");
    bench.granted(renewal, &grant());
    bench.exchanging();
    bench.exchanged(renewal, &token("two", 3_600));
    assert_eq!(bench.answer(second).unwrap().token.reveal(), "two");
}

#[test]
fn one_host_does_not_wait_for_another() {
    let mut stuck = Bench::new(environment(None));
    let mut other = Bench::new(environment(None));
    stuck.ask(true);
    stuck.granting();
    assert_eq!(other.obtain("one", 3_600).token.reveal(), "one");
    assert_eq!(stuck.actions(), []);
}

#[test]
fn a_late_refusal_of_an_old_token_does_not_throw_the_new_one_away() {
    let (mut bench, first) = Bench::holding();
    let rejected = Need { wake: false, rejected: Some(first.id) };
    assert!(matches!(bench.access(rejected), Asked::Waiting(_)));
    bench.renew(&token("two", 3_600));
    bench.actions();
    let Asked::Held(second) = bench.access(rejected) else { panic!("it was thrown away") };
    assert_eq!(second.token.reveal(), "two");
    bench.machine.reject(first.id);
    assert_eq!(bench.held().id, second.id);
}

#[test]
fn a_refused_token_is_replaced() {
    let (mut bench, first) = Bench::holding();
    let Asked::Waiting(caller) = bench.access(Need { wake: false, rejected: Some(first.id) })
    else {
        panic!("the refused token is given again")
    };
    bench.renew(&token("two", 3_600));
    assert_eq!(bench.answer(caller).unwrap().token.reveal(), "two");
}

#[test]
fn who_comes_when_too_many_wait_is_refused_and_the_others_are_served() {
    let mut bench = Bench::new(environment(None));
    for _ in 0..CALLERS_MAX {
        bench.ask(false);
    }
    let Asked::Refused(failure) = bench.access(Need::default()) else { panic!("one too many") };
    assert_eq!(failure.reason, FailureReason::Overloaded);
    bench.renew(&token("one", 3_600));
    assert_eq!(bench.answers().len(), CALLERS_MAX);
}

#[test]
fn without_a_live_socket_no_time_renews_anything() {
    let (mut bench, _) = Bench::holding();
    assert_eq!(bench.machine.poll_timeout(), None);
    bench.pass(2 * HOUR);
    assert_eq!(bench.actions(), []);
}
