//! Who waits for a start, how many may, and what they get when it ends otherwise (`cases.md`, C22
//! and C23).

use std::{
    thread,
    time::{Duration, Instant},
};

use serde_json::Value;
use wakeful_wire::Phase;

use crate::support::{Answer, Exchange, Platform, Setup, User, stays, until};

/// A platform whose program starts when a test says so.
fn gated() -> Setup {
    Setup { variables: vec![("START_GATE", "go")], ..Setup::default() }
}

/// A request that is held.
fn waiter(platform: &Platform, user: &User) -> Exchange {
    let held = platform.metric("wakeful_held_requests");
    let request = platform.app(user, "GET", "/hit").open().unwrap();
    until("it is held", || (platform.metric("wakeful_held_requests") > held).then_some(()));
    request
}

/// The answer to a request that was held, and how long it took from now.
fn answered(request: Exchange) -> (Answer, Duration) {
    let begun = Instant::now();
    (request.finish(), begun.elapsed())
}

/// Two seconds, and what a busy machine adds.
const SOON: Duration = Duration::from_secs(5);

#[test]
fn a_deletion_during_a_start_answers_who_waits_and_leaves_nothing() {
    let platform = gated().up();
    let user = platform.sign_up("ada");
    let request = waiter(&platform, &user);
    let project = format!("/api/projects/{}", user.env);
    // Twice at once.
    thread::scope(|scope| {
        let delete = || platform.call(&user, "DELETE", &project).send();
        let (one, two) = (scope.spawn(delete), scope.spawn(delete));
        one.join().unwrap().expect(202);
        two.join().unwrap().expect(202);
    });
    let (answer, took) = answered(request);
    assert!(took < SOON, "{took:?}");
    assert_eq!(answer.expect(410).code(), "gone");
    // What it was waiting for comes too late and changes nothing.
    platform.release(user.env, "go");
    until("no process is left", || platform.processes().is_empty().then_some(()));
    platform.app(&user, "GET", "/hit").send().expect(404);
    platform.call(&user, "DELETE", &project).send().expect(202);
    // What is made anew is another, with nothing in it.
    let again = platform.create_project(&user, "again", "program");
    let env = again.environments[0].id;
    assert_ne!(env, user.env);
    let files = std::fs::read_dir(platform.workspace(env)).unwrap().count();
    assert_eq!(files, 0);
    assert_eq!(platform.metric("wakeful_sandbox_starts_total"), 1);
}

#[test]
fn a_stop_during_a_start_answers_who_waits_and_the_next_visit_starts_afresh() {
    let platform = gated().up();
    let user = platform.sign_up("ada");
    let request = waiter(&platform, &user);
    platform.order(&user, "suspend");
    let (answer, took) = answered(request);
    assert!(took < SOON, "{took:?}");
    assert_eq!(answer.status, 503, "{}", answer.text());
    platform.await_phase(&user, user.env, Phase::Suspended);
    until("no process is left", || platform.processes().is_empty().then_some(()));
    // A stop of what is stopped is accepted too.
    platform.order(&user, "suspend");
    platform.release(user.env, "go");
    platform.app(&user, "GET", "/hit").send().expect(200);
    assert_eq!(platform.metric("wakeful_sandbox_starts_total"), 2);
}

#[test]
fn a_deletion_after_a_crash_during_a_start_leaves_nothing() {
    let platform = gated().up();
    let user = platform.sign_up("ada");
    until("the program runs", || (platform.processes().len() > 1).then_some(()));
    platform.kill_9();
    platform.start(&[]);
    platform.call(&user, "DELETE", &format!("/api/projects/{}", user.env)).send().expect(202);
    until("no process is left", || platform.processes().is_empty().then_some(()));
    platform.app(&user, "GET", "/hit").send().expect(404);
}

#[test]
fn a_request_is_held_for_the_budget_and_a_later_one_is_served() {
    let platform = Setup { wake_budget: "3s", ..gated() }.up();
    let user = platform.sign_up("ada");
    let answer = platform.app(&user, "GET", "/hit").send().expect(503);
    assert_eq!(answer.code(), "starting");
    assert_eq!(answer.header("wakeful-phase"), Some("starting"));
    assert!(answer.header("retry-after").is_some());
    platform.release(user.env, "go");
    platform.await_phase(&user, user.env, Phase::Ready);
    platform.app(&user, "GET", "/hit").send().expect(200);
    assert_eq!(platform.metric("wakeful_sandbox_starts_total"), 1);
}

#[test]
fn two_explicit_starts_at_once_are_one() {
    let platform = Setup::default().up();
    let user = platform.sign_up_asleep("ada");
    let starts = platform.metric("wakeful_sandbox_starts_total");
    let target = format!("/api/environments/{}/wake?wait_ms=30000", user.env);
    thread::scope(|scope| {
        let calls: Vec<_> =
            (0..8).map(|_| scope.spawn(|| platform.call(&user, "POST", &target).send())).collect();
        for call in calls {
            let answer = call.join().unwrap();
            assert!(matches!(answer.status, 200 | 202), "{} {}", answer.status, answer.text());
        }
    });
    platform.await_phase(&user, user.env, Phase::Ready);
    assert_eq!(platform.metric("wakeful_sandbox_starts_total"), starts + 1);
}

#[test]
fn everybody_who_waits_for_a_start_that_fails_gets_its_reason_and_nobody_tries_again() {
    // Time enough for the one at the end that does become ready.
    let start = "[start]\nattempts = 1\ntimeout = '4s'\n".to_owned();
    let platform = Setup { tables: start, ..gated() }.up();
    let user = platform.sign_up("ada");
    let answers: Vec<_> = thread::scope(|scope| {
        let asks: Vec<_> =
            (0..50).map(|_| scope.spawn(|| platform.app(&user, "GET", "/hit").send())).collect();
        asks.into_iter().map(|ask| ask.join().unwrap()).collect()
    });
    let reasons: std::collections::BTreeSet<String> = answers
        .into_iter()
        .map(|answer| {
            let problem: Value = answer.expect(502).json();
            assert_eq!(problem["code"], "environment_failed");
            problem["detail"].as_str().unwrap().to_owned()
        })
        .collect();
    assert_eq!(reasons.len(), 1, "{reasons:?}");
    assert!(reasons.first().unwrap().contains("not ready after 4 s"), "{reasons:?}");
    for _ in 0..20 {
        platform.app(&user, "GET", "/hit").send().expect(502);
    }
    assert_eq!(platform.metric("wakeful_sandbox_starts_total"), 1);
    let failed = platform.environment(&user, user.env);
    assert_eq!(failed.phase, Phase::Failed);
    let failure = failed.failure.unwrap();
    assert_eq!((failure.permanent, failure.attempts), (false, 1));
    until("no process is left", || platform.processes().is_empty().then_some(()));
    // A person may try again at once.
    platform.release(user.env, "go");
    platform.wake(&user);
    platform.app(&user, "GET", "/hit").send().expect(200);
}

#[test]
fn a_missing_program_is_a_permanent_failure_that_says_how_to_install_it() {
    let needs = "[templates.needy]\nneeds = ['no-such-program']\ninstall = 'get no-such-program'\n\
                 [templates.needy.surfaces.app]\ncommand = 'exec no-such-program'\n";
    let platform = Setup { template: "needy", tables: needs.to_owned(), ..Setup::default() }.up();
    let user = platform.sign_up("ada");
    let failed = platform.await_phase(&user, user.env, Phase::Failed);
    let failure = failed.failure.unwrap();
    assert!(failure.permanent, "{failure:?}");
    assert!(failure.reason.contains("get no-such-program"), "{failure:?}");
    let answer = platform.app(&user, "GET", "/").send().expect(502);
    assert!(answer.text().contains("get no-such-program"), "{}", answer.text());
    assert_eq!(platform.processes(), []);
}

#[test]
fn what_is_over_the_held_bound_is_refused_at_once_and_who_leaves_frees_a_place() {
    let platform = Setup { held: 3, ..gated() }.up();
    let user = platform.sign_up("ada");
    let held = || platform.metric("wakeful_held_requests");
    let mut waiting: Vec<_> = (0..3).map(|_| waiter(&platform, &user)).collect();
    let begun = Instant::now();
    let refused = platform.app(&user, "GET", "/hit").send().expect(503);
    assert_eq!(refused.code(), "overloaded");
    assert!(refused.header("retry-after").is_some());
    assert!(begun.elapsed() < SOON, "{:?}", begun.elapsed());
    assert_eq!(held(), 3);
    // An environment beside it is not disturbed.
    let other = platform.sign_up("bob");
    platform.release(other.env, "go");
    platform.app(&other, "GET", "/hit").send().expect(200);
    drop(waiting.pop());
    until("its place is free", || (held() == 2).then_some(()));
    waiting.push(waiter(&platform, &user));
    assert!(waiting.iter_mut().all(Exchange::is_silent));
    platform.release(user.env, "go");
    for request in waiting {
        request.finish().expect(200);
    }
    assert_eq!(held(), 0);
}

#[test]
fn a_lazy_surface_starts_with_its_first_visit() {
    let platform = Setup { surfaces: vec![("agent", "start = 'lazy'")], ..Setup::default() }.up();
    let user = platform.sign_up_ready("ada");
    let ready = || {
        let surfaces = platform.environment(&user, user.env).surfaces;
        surfaces.into_iter().find(|surface| surface.name.as_str() == "agent").unwrap().ready
    };
    stays("not started", Duration::from_millis(300), || !ready());
    platform.call(&user, "GET", &format!("/api/proxy/{}/hit", user.env)).send().expect(200);
    assert!(ready());
}
