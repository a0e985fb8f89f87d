//! Environments that fall asleep under a client, and wake for it or for somebody else.

use std::time::Duration;

use wakeful_link::{ConnectionPhase, DataStatus};
use wakeful_wire::{HostId, Phase, host::HOST_HEADER};

use super::desk::Desk;
use crate::support::{Platform, Setup, User, stays, until};

/// How many requests for the environment server the gateway has told of.
fn visits(platform: &Platform) -> usize {
    platform.log().lines().filter(|line| line.contains("surface=\"host\"")).count()
}

/// Nothing is asked of an environment that sleeps, and it sleeps on.
fn nobody_disturbs(platform: &Platform, user: &User, what: impl Fn() -> bool) {
    let starts = platform.metric("wakeful_sandbox_starts_total");
    let visits_before = visits(platform);
    stays("asleep", Duration::from_secs(6), || {
        what() && platform.environment(user, user.env).phase == Phase::Suspended
    });
    assert_eq!(visits(platform), visits_before, "a sleeping host was asked something");
    assert_eq!(platform.metric("wakeful_sandbox_starts_total"), starts);
}

#[test]
fn a_client_lets_its_environment_sleep_and_wakes_it_when_a_person_needs_it() {
    let platform = Setup::default().up();
    let user = platform.sign_up_ready("ada");
    let host = HostId::from(user.env);
    let desk = Desk::new();
    let client = desk.start(&platform, "ada", &user);
    assert_eq!(client.live(host).generation, 1);
    assert!(visits(&platform) > 0, "the gateway tells of a client's visits");
    let thread = client.thread(host);
    client.run(host, thread, "echo before");
    until("the first line", || (client.lines(host, thread) == ["before"]).then_some(()));

    // It sleeps although the client is there, and the client asks nothing of it.
    platform.suspend(&user);
    let asleep = client.phase(host, ConnectionPhase::Asleep);
    assert_eq!((asleep.retry_at, asleep.stage), (None, None));
    nobody_disturbs(&platform, &user, || client.is(host, ConnectionPhase::Asleep));
    client.with(|link, _| {
        assert!(link.row(host, thread).is_some(), "what is known of it stays");
        assert_eq!(link.shell(host).unwrap().status, DataStatus::Cached);
        let environment = link.connection(host).unwrap().environment;
        assert_eq!(environment, Some(Phase::Suspended));
    });
    assert_eq!(client.lines(host, thread), ["before"]);

    // A person needs it: the same thread goes on where it was.
    assert!(client.with(|link, now| link.intend(now, host)));
    let awake = client.live(host);
    assert_eq!((awake.phase, awake.generation), (ConnectionPhase::Connected, 2));
    assert_eq!(platform.environment(&user, user.env).phase, Phase::Ready);
    until("the thread is live", || {
        client.detail(host, thread).filter(|(_, status)| *status == DataStatus::Live)
    });
    client.run(host, thread, "echo after");
    until("both lines", || (client.lines(host, thread) == ["before", "after"]).then_some(()));

    // Somebody else wakes it: the client hears of it from the platform.
    platform.suspend(&user);
    client.phase(host, ConnectionPhase::Asleep);
    platform.wake(&user);
    assert_eq!(client.live(host).generation, 3);
    client.close();
}

#[test]
fn a_client_that_starts_while_its_environment_sleeps_shows_what_it_knew_and_wakes_nothing() {
    let platform = Setup::default().up();
    let user = platform.sign_up_ready("ada");
    let host = HostId::from(user.env);
    let desk = Desk::new();
    let first = desk.start(&platform, "ada", &user);
    first.live(host);
    let thread = first.thread(host);
    first.close();
    platform.suspend(&user);

    let again = desk.start(&platform, "ada", &user);
    again.phase(host, ConnectionPhase::Asleep);
    until("its row from the cache", || again.with(|link, _| link.row(host, thread).map(drop)));
    nobody_disturbs(&platform, &user, || again.is(host, ConnectionPhase::Asleep));
    assert_eq!(again.connection(host).unwrap().generation, 0);
    again.close();
}

#[test]
fn a_refusal_of_the_host_is_told_from_one_of_the_gateway() {
    let platform = Setup::default().up();
    let user = platform.sign_up_ready("ada");
    let sessions = format!("/api/host/{}/sessions", user.env);
    let refused = platform.call(&user, "GET", &sessions).send();
    assert!((400..500).contains(&refused.status), "{} {}", refused.status, refused.text());
    assert_eq!(refused.header(HOST_HEADER), Some(user.env.to_string().as_str()));
    let nobody = platform.ask("GET", &sessions).send().expect(401);
    assert_eq!(nobody.header(HOST_HEADER), None);
}
