//! Going to sleep for real: the two clocks, what holds, and what does not wake.

use std::{thread, time::Duration};

use wakeful_wire::{
    Phase,
    api::{AwakeBecause, Explain},
    gate::LeaseKind,
};

use crate::support::{Browser, Frame, Platform, Setup, Socket, User, stays, until};

/// A platform on which everything falls asleep almost at once. Nothing here waits until somebody is
/// ready and comes then: by that time it may sleep. Whoever comes at once is held and served.
fn sleepy() -> Setup {
    Setup { idle_agent: "2s", idle_app: "2s", ..Setup::default() }
}

/// Longer than both clocks and everything that is cached.
const LONG: Duration = Duration::from_millis(3_500);

fn phase(platform: &Platform, user: &User) -> Phase {
    platform.environment(user, user.env).phase
}

/// What is open, as the explanation says it.
fn leases(explained: &Explain) -> impl Iterator<Item = LeaseKind> {
    explained.awake_because.iter().filter_map(|because| match because {
        AwakeBecause::Lease { what, .. } => Some(*what),
        AwakeBecause::Clock { .. } => None,
    })
}

/// While something is open the environment stays awake past its clocks, and says why.
fn it_holds(platform: &Platform, user: &User, kind: LeaseKind) {
    until("the explanation names it", || {
        leases(&platform.explain(user)).any(|what| what == kind).then_some(())
    });
    let sandbox = platform.environment(user, user.env).sandbox;
    stays("awake", LONG, || {
        let environment = platform.environment(user, user.env);
        environment.phase == Phase::Ready && environment.sandbox == sandbox
    });
    // What is open is reported again and again, and a report that is late lapses for a moment.
    until("the explanation names it still, and no end", || {
        let explained = platform.explain(user);
        assert_eq!(explained.phase, Phase::Ready, "{explained:?}");
        let holds = explained.sleeps_in_ms.is_none();
        (holds && leases(&explained).any(|what| what == kind)).then_some(())
    });
    assert_eq!(platform.environment(user, user.env).sandbox, sandbox);
}

#[test]
fn an_idle_environment_falls_asleep_leaves_nothing_and_wakes_on_the_next_byte() {
    let platform = sleepy().up();
    let user = platform.sign_up("ada");
    platform.app(&user, "PUT", "/file/notes.txt").body("kept").send().expect(201);
    // The request holds until its end has been counted; from then on only clocks do.
    let left = until("it says when it will sleep", || {
        let explained = platform.explain(&user);
        if explained.phase == Phase::Ready { explained.sleeps_in_ms } else { Some(0) }
    });
    assert!(left <= 2_000, "{left}");
    let asleep = platform.await_phase(&user, user.env, Phase::Suspended);
    assert_eq!(asleep.sandbox, None);
    assert_eq!(platform.processes(), []);
    assert_eq!(platform.metric("wakeful_suspends_total{reason=\"idle\"}"), 1);
    let answer = platform.app(&user, "GET", "/file/notes.txt").send();
    assert_eq!(answer.expect(200).text(), "kept");
    assert_eq!(platform.metric("wakeful_sandbox_starts_total"), 2);
    platform.await_phase(&user, user.env, Phase::Suspended);
}

#[test]
fn visits_of_the_app_and_of_the_agent_feed_a_clock_each() {
    let platform = Setup { surfaces: vec![("agent", "")], ..Setup::default() }.up();
    let user = platform.sign_up_ready("ada");
    let clocks = || platform.environment(&user, user.env).clocks;
    // What was admitted from a cache reaches its clock a little later.
    let settled = || {
        until("both clocks only run out", || {
            let before = clocks();
            stays("awake", Duration::from_millis(400), || phase(&platform, &user) == Phase::Ready);
            let now = clocks();
            let runs_out =
                now.app.expires_in_ms < before.app.expires_in_ms || before.app.expires_in_ms == 0;
            (runs_out && now.agent.expires_in_ms < before.agent.expires_in_ms).then_some(now)
        })
    };
    let agent_path = format!("/api/proxy/{}/hit", user.env);
    for _ in 0..2 {
        // What is late of the visit before looks like a touch of this one: then it is made again.
        until("a visit of the app feeds the app's clock alone", || {
            let before = settled();
            platform.app(&user, "GET", "/hit").send().expect(200);
            let now = until("a visit of the app feeds the app's clock", || {
                let now = clocks();
                (now.app.expires_in_ms > before.app.expires_in_ms).then_some(now)
            });
            (now.agent.expires_in_ms < before.agent.expires_in_ms).then_some(())
        });
        until("a visit of the agent feeds the agent's clock alone", || {
            let before = settled();
            platform.call(&user, "GET", &agent_path).send().expect(200);
            let now = until("a visit of the agent feeds the agent's clock", || {
                let now = clocks();
                (now.agent.expires_in_ms > before.agent.expires_in_ms).then_some(now)
            });
            (now.app.expires_in_ms < before.app.expires_in_ms).then_some(())
        });
    }
}

#[test]
fn it_sleeps_only_when_both_clocks_have_run_out() {
    let setup = Setup { idle_agent: "1s", idle_app: "6s", ..Setup::default() };
    let platform = setup.up();
    let user = platform.sign_up("ada");
    platform.app(&user, "GET", "/hit").send().expect(200);
    // The agent's clock runs out first. The app's alone keeps it awake, and it says so.
    until("only the app's clock runs", || {
        let explained = platform.explain(&user);
        assert_eq!(explained.phase, Phase::Ready, "{explained:?}");
        let [AwakeBecause::Clock { surface, .. }] = explained.awake_because.as_slice() else {
            return None;
        };
        assert_eq!(surface, "app");
        Some(())
    });
    platform.await_phase(&user, user.env, Phase::Suspended);
}

#[test]
fn an_open_socket_holds_and_it_sleeps_after_the_last_has_closed() {
    let platform = sleepy().up();
    let user = platform.sign_up("ada");
    let mut socket = Socket::open(platform.app(&user, "GET", "/socket")).unwrap();
    let other = Socket::open(platform.app(&user, "GET", "/socket")).unwrap();
    socket.echo("one");
    it_holds(&platform, &user, LeaseKind::Socket);
    drop(other);
    it_holds(&platform, &user, LeaseKind::Socket);
    socket.echo("two");
    drop(socket);
    platform.await_phase(&user, user.env, Phase::Suspended);
}

#[test]
fn an_event_stream_holds_until_it_ends() {
    let platform = sleepy().up();
    let user = platform.sign_up("ada");
    let mut stream = platform.app(&user, "GET", "/events/end").open().unwrap();
    let mut answer = stream.head().unwrap();
    stream.chunks_until(&mut answer, "data: open");
    it_holds(&platform, &user, LeaseKind::Stream);
    platform.release(user.env, "end");
    stream.rest(&mut answer);
    assert!(answer.complete && answer.text().ends_with("data: end\n\n"), "{answer:?}");
    platform.await_phase(&user, user.env, Phase::Suspended);
}

#[test]
fn a_request_in_flight_holds_until_it_is_answered() {
    let platform = sleepy().up();
    let user = platform.sign_up("ada");
    let request = platform.app(&user, "GET", "/hold/go").open().unwrap();
    platform.await_file(user.env, "go.begun");
    it_holds(&platform, &user, LeaseKind::Request);
    platform.release(user.env, "go");
    assert_eq!(request.finish().expect(200).text(), "released");
    platform.await_phase(&user, user.env, Phase::Suspended);
}

#[test]
fn a_client_that_leaves_holds_nothing_any_more() {
    let platform = sleepy().up();
    let user = platform.sign_up("ada");
    let request = platform.app(&user, "GET", "/hold/never").open().unwrap();
    platform.await_file(user.env, "never.begun");
    it_holds(&platform, &user, LeaseKind::Request);
    drop(request);
    platform.await_phase(&user, user.env, Phase::Suspended);
    assert_eq!(platform.metric("wakeful_leases"), 0);
}

#[test]
fn whoever_comes_just_when_it_falls_asleep_is_served() {
    const VISITS: u64 = 8;
    // More than a second: who waits looks once a second, and must find it ready then.
    let setup = Setup { idle_agent: "1500ms", idle_app: "1500ms", ..Setup::default() };
    let platform = setup.up();
    thread::scope(|scope| {
        for name in ["ada", "bob", "eve", "joe"] {
            let platform = &platform;
            scope.spawn(move || {
                let user = platform.sign_up(name);
                platform.app(&user, "GET", "/hit").send().expect(200);
                for visit in 0..VISITS {
                    // Around the moment at which both clocks have run out.
                    let left = until("only its clocks run", || {
                        let explained = platform.explain(&user);
                        let sleeps = explained.phase != Phase::Ready;
                        if sleeps { Some(0) } else { explained.sleeps_in_ms }
                    });
                    let pause = Duration::from_millis((left + visit * 97 % 340).saturating_sub(20));
                    stays("there", pause, || true);
                    if visit % 3 == 2 {
                        let ask = platform.app(&user, "GET", "/socket");
                        Socket::open(ask).unwrap().echo("served");
                    } else {
                        platform.app(&user, "POST", "/hit").send().expect(200);
                    }
                }
            });
        }
    });
    let suspends = platform.metric("wakeful_suspends_total{reason=\"idle\"}");
    assert!(suspends > VISITS / 2, "it fell asleep only {suspends} times");
    assert_eq!(platform.metric("wakeful_upstream_failures_total"), 0);
}

#[test]
fn what_shows_no_intent_is_told_that_it_sleeps_and_wakes_nothing() {
    let setup = Setup { surfaces: vec![("agent", "background = ['/poll*']")], ..Setup::default() };
    let platform = setup.up();
    let user = platform.sign_up_asleep("ada");
    let starts = platform.metric("wakeful_sandbox_starts_total");
    let app = platform.host(user.env, "app");
    let agent = format!("/api/proxy/{}", user.env);
    let asks = [
        platform.app(&user, "HEAD", "/hit"),
        platform.app(&user, "OPTIONS", "/hit"),
        platform.ask_at(&app, "GET", "/hit").token(&user.token).header("Wakeful-Intent", "none"),
        platform.call(&user, "HEAD", &format!("{agent}/hit")),
    ];
    for ask in asks {
        let shown = format!("{ask:?}");
        let answer = ask.send();
        assert_eq!(answer.status, 503, "{shown}: {}", answer.text());
        assert_eq!(answer.header("wakeful-phase"), Some("suspended"), "{shown}");
        assert!(answer.header("retry-after").is_some(), "{shown}");
    }
    assert_eq!(phase(&platform, &user), Phase::Suspended);
    assert_eq!(platform.metric("wakeful_sandbox_starts_total"), starts);
}

#[test]
fn a_page_that_was_left_open_wakes_nothing_by_its_polls() {
    let setup = Setup { surfaces: vec![("agent", "background = ['/poll*']")], ..Setup::default() };
    let platform = setup.up();
    let mut browser = Browser::new(&platform);
    let user = browser.sign_up("ada");
    let page = format!("http://{}/", platform.host(user.env, "agent"));
    browser.load_woken(&page).answer.expect(200);
    platform.suspend(&user);
    let answer = browser.script("GET", &format!("{page}poll/1")).send().expect(503);
    assert_eq!(answer.header("wakeful-phase"), Some("suspended"));
    // A socket of the page is told by its close code, which a refused upgrade could not tell.
    let ask = browser.ask("GET", &format!("{page}poll/socket"));
    let mut socket = Socket::open(ask.header("Origin", page.trim_end_matches('/'))).unwrap();
    let closed = socket.receive().unwrap();
    assert!(matches!(closed, Frame::Close(4503, _)), "{closed:?}");
    assert_eq!(phase(&platform, &user), Phase::Suspended);
    browser.load_woken(&page).answer.expect(200);
    assert_eq!(phase(&platform, &user), Phase::Ready);
}
