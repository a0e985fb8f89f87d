//! The gate at work: holding, herds, failures, drains (`design.md`, "Gate"; `cases.md`, C23).

use std::{
    net::{Ipv4Addr, SocketAddr},
    time::Duration,
};

use rustix::net::{AddressFamily, SocketType};
use wakeful_wire::{
    Phase,
    gate::{FailureKind, GateState, LeaseKind, Upstream},
};

use crate::{
    http::TOKEN,
    support::{
        Served,
        client::{Client, ask, request},
        control::{ALICE_SURFACE, Control, env, sandbox},
        raw::{Raw, ok},
        soon, until,
    },
};

fn asleep(raw: &Raw) -> Served {
    let control = Control::new();
    control.add(1, "alice", GateState::Asleep, &raw.upstream());
    Served::start(control)
}

#[tokio::test]
async fn a_request_with_intent_is_held_and_then_served() {
    let raw = Raw::ok().await;
    let served = asleep(&raw);
    let mut client = Client::connect(served.address).await;
    client.send(request("GET /", &served.app(env(1)), &[TOKEN])).await;
    until("it wakes the environment", || served.control.ensures_of(1) == 1).await;
    assert!(served.control.ensures()[0].1.intent);
    until("it is held", || served.metric("wakeful_held_requests") == 1).await;
    assert_eq!(raw.connections(), 0);
    served.control.become_ready(1);
    assert_eq!(soon(client.answer_to("GET")).await.unwrap().text(), "ok");
    until("nobody waits", || served.metric("wakeful_held_requests") == 0).await;
}

#[tokio::test]
async fn a_request_without_intent_gets_503_and_the_phase_at_once() {
    let raw = Raw::ok().await;
    let served = asleep(&raw);
    for line in ["HEAD /", "OPTIONS /"] {
        let answer = ask(served.address, line, &served.app(env(1)), &[TOKEN]).await;
        assert_eq!(answer.status, 503, "{line}");
        assert_eq!(answer.header("wakeful-phase"), Some("suspended"));
        assert!(answer.header("retry-after").is_some());
    }
    assert!(served.control.ensures().iter().all(|(_, request)| !request.intent));
}

#[tokio::test]
async fn a_page_load_is_held_briefly_then_gets_the_page_that_goes_on_by_itself() {
    let raw = Raw::ok().await;
    let served = asleep(&raw);
    let cookie = format!("Cookie: wakeful_surface={ALICE_SURFACE}");
    let host = served.app(env(1));
    let page = ["Sec-Fetch-Mode: navigate", "Sec-Fetch-Dest: document", &cookie];
    let answer = ask(served.address, "GET /a", &host, &page).await;
    assert_eq!(answer.status, 503);
    assert!(answer.header("content-type").unwrap().starts_with("text/html"));
    assert!(answer.text().contains("/.wakeful/status"), "{}", answer.text());
    assert_eq!(answer.header("wakeful-phase"), Some("starting"));

    let status = ask(served.address, "GET /.wakeful/status", &host, &[&cookie]).await;
    assert_eq!(status.status, 200);
    let json: serde_json::Value = serde_json::from_slice(&status.body).unwrap();
    assert_eq!((&json["phase"], &json["ready"]), (&"starting".into(), &false.into()));
    served.control.become_ready(1);
    until("the first page load is served", || served.control.ensures_of(1) > 0).await;
    let status = ask(served.address, "GET /.wakeful/status", &host, &[&cookie]).await;
    let json: serde_json::Value = serde_json::from_slice(&status.body).unwrap();
    assert_eq!(json["ready"], true, "{json}");
    assert_eq!(served.metric("wakeful_leases"), 0);
    assert_eq!(ask(served.address, "GET /a", &host, &page).await.text(), "ok");
}

#[tokio::test]
async fn the_status_neither_wakes_nor_holds_nor_counts_as_a_visit() {
    let raw = Raw::ok().await;
    let served = asleep(&raw);
    for _ in 0..3 {
        for (line, host) in [
            ("GET /.wakeful/status".to_owned(), served.app(env(1))),
            (format!("GET /api/proxy/{}/.wakeful/status", env(1)), served.main()),
        ] {
            let answer = soon(ask(served.address, &line, &host, &[TOKEN])).await;
            assert_eq!(answer.status, 200);
            let json: serde_json::Value = serde_json::from_slice(&answer.body).unwrap();
            assert_eq!(json["phase"], "suspended");
        }
    }
    assert!(served.control.ensures().iter().all(|(_, request)| !request.intent));
    assert_eq!(
        ask(served.address, "GET /.wakeful/status", &served.app(env(1)), &[]).await.status,
        401,
    );
    let other = ask(served.address, "GET /.wakeful/x", &served.app(env(1)), &[TOKEN]).await;
    assert_eq!((other.status, raw.connections()), (404, 0));
}

#[tokio::test]
async fn a_spent_budget_is_a_503_and_everybody_hears_it() {
    let raw = Raw::ok().await;
    let control = Control::new();
    control.add(1, "alice", GateState::Asleep, &raw.upstream());
    let served = Served::with(control, |config| {
        config.wake_budget = Duration::from_millis(400);
    });
    let host = served.app(env(1));
    let all = (0..20).map(|_| ask(served.address, "POST /", &host, &[TOKEN]));
    for answer in soon(futures::future::join_all(all)).await {
        assert_eq!((answer.status, answer.code().as_str()), (503, "starting"));
        assert!(answer.header("retry-after").is_some());
    }
}

/// C23: a crowd wakes an environment once, and asks for it once a second.
#[tokio::test]
async fn a_herd_asks_once_a_second_and_everybody_is_served() {
    let raw = Raw::ok().await;
    let control = Control::new();
    control.add(1, "alice", GateState::Asleep, &raw.upstream());
    let served = Served::with(control, |config| {
        config.threads = wakeful_gateway::Threads::PerCore(2);
    });
    let start = tokio::time::Instant::now();
    let mut clients = Vec::new();
    for n in 0..2000 {
        let mut client = Client::connect(served.address).await;
        let line = if n % 10 == 0 { "POST /" } else { "GET /" };
        client.send(request(line, &served.app(env(1)), &[TOKEN, "Content-Length: 0"])).await;
        clients.push((line, client));
    }
    until("all are held", || served.metric("wakeful_held_requests") == 2000).await;
    // Half of them leave; that ends nobody else's wait.
    clients.truncate(1000);
    until("leavers give their places back", || served.metric("wakeful_held_requests") == 1000)
        .await;
    // Long enough for a second and a third question.
    until("it is asked for again", || served.control.ensures_of(1) >= 3).await;
    served.control.become_ready(1);
    for (line, client) in &mut clients {
        let method = line.split(' ').next().unwrap();
        assert_eq!(soon(client.answer_to(method)).await.unwrap().text(), "ok");
    }
    let seconds = usize::try_from(start.elapsed().as_secs()).unwrap();
    let asked = served.control.ensures_of(1);
    // One at first, one more at once for news, and one each second.
    assert!(asked <= 2 + 1 + seconds, "{asked} in {seconds} s");
    assert_eq!(served.metric("wakeful_ensure_calls_total"), asked as u64);
    until("no lease is left", || served.metric("wakeful_leases") == 0).await;
}

#[tokio::test]
async fn whoever_asked_first_may_leave_without_ending_the_question() {
    let raw = Raw::ok().await;
    let served = asleep(&raw);
    served.control.hold_ensures(true);
    let host = served.app(env(1));
    let mut first = Client::connect(served.address).await;
    first.send(request("GET /", &host, &[TOKEN])).await;
    until("the question is put", || served.control.ensures_of(1) == 1).await;
    let mut second = Client::connect(served.address).await;
    second.send(request("GET /", &host, &[TOKEN])).await;
    until("both wait", || served.metric("wakeful_held_requests") == 2).await;
    drop(first);
    until("the first has left", || served.metric("wakeful_held_requests") == 1).await;
    assert_eq!(served.control.ensures_of(1), 1);
    served.control.change(1, |env| {
        (env.state, env.phase, env.on_intent) = (GateState::Ready, Phase::Ready, None);
    });
    served.control.hold_ensures(false);
    assert_eq!(soon(second.answer_to("GET")).await.unwrap().text(), "ok");
    assert_eq!(served.control.ensures_of(1), 1, "the first one's question was enough");
}

#[tokio::test]
async fn beyond_the_bound_requests_are_refused_at_once() {
    let raw = Raw::ok().await;
    let control = Control::new();
    control.add(1, "alice", GateState::Asleep, &raw.upstream());
    control.add(2, "alice", GateState::Ready, &raw.upstream());
    let served = Served::with(control, |config| config.held.per_env = 3);
    let host = served.app(env(1));
    let mut held = Vec::new();
    for _ in 0..3 {
        let mut client = Client::connect(served.address).await;
        client.send(request("GET /", &host, &[TOKEN])).await;
        held.push(client);
    }
    until("three are held", || served.metric("wakeful_held_requests") == 3).await;
    let answer = ask(served.address, "GET /", &host, &[TOKEN]).await;
    assert_eq!((answer.status, answer.code().as_str()), (503, "overloaded"));
    assert!(answer.header("retry-after").is_some());
    let other = ask(served.address, "GET /", &served.app(env(2)), &[TOKEN]).await;
    assert_eq!(other.status, 200, "another environment is not concerned");
    served.control.become_ready(1);
    for mut client in held {
        assert_eq!(client.answer_to("GET").await.unwrap().status, 200);
    }
}

#[tokio::test]
async fn every_state_has_its_status() {
    let raw = Raw::ok().await;
    let control = Control::new();
    let rows = [
        (GateState::Disabled, 423, "environment_disabled"),
        (GateState::Failed, 502, "environment_failed"),
        (GateState::SurfaceFailed, 502, "surface_failed"),
        (GateState::Gone, 404, "not_found"),
        (GateState::NotFound, 404, "not_found"),
    ];
    for (n, (state, ..)) in (10..).zip(rows) {
        control.add(n, "alice", state, &raw.upstream());
        control.change(n, |env| env.reason = Some("because".to_owned()));
    }
    let served = Served::start(control);
    for (n, (state, status, code)) in (10..).zip(rows) {
        let answer = ask(served.address, "GET /", &served.app(env(n)), &[TOKEN]).await;
        assert_eq!((answer.status, answer.code().as_str()), (status, code), "{state:?}");
        assert_eq!(answer.text().contains("because"), status != 404, "{state:?}");
        if state == GateState::Failed {
            assert_eq!(answer.header("retry-after"), Some("1"));
            assert!(answer.text().contains(r#""retry":true"#), "{}", answer.text());
        }
    }
    assert_eq!(raw.connections(), 0);
}

#[tokio::test]
async fn who_waits_for_what_is_deleted_gets_410() {
    let raw = Raw::ok().await;
    let served = asleep(&raw);
    let mut client = Client::connect(served.address).await;
    client.send(request("GET /", &served.app(env(1)), &[TOKEN])).await;
    until("it is held", || served.metric("wakeful_held_requests") == 1).await;
    until("it was told to wait", || served.control.ensures_of(1) == 1).await;
    tokio::time::sleep(Duration::from_millis(20)).await;
    served.control.become_state(1, GateState::Gone, Phase::Deleted);
    let answer = soon(client.answer_to("GET")).await.unwrap();
    assert_eq!((answer.status, answer.code().as_str()), (410, "gone"));
}

/// The rows are gone at once, and with them the generation.
#[tokio::test]
async fn a_deletion_ends_every_wait_with_410_and_is_a_404_from_then_on() {
    let raw = Raw::ok().await;
    let served = asleep(&raw);
    let host = served.app(env(1));
    let mut held = Vec::new();
    for line in ["GET /", "POST /"] {
        let mut client = Client::connect(served.address).await;
        client.send(request(line, &host, &[TOKEN, "Content-Length: 0"])).await;
        held.push((line, client));
    }
    until("both are held", || served.metric("wakeful_held_requests") == 2).await;
    served.control.become_state(1, GateState::Starting, Phase::Starting);
    served.control.delete(1);
    let start = tokio::time::Instant::now();
    for (line, client) in &mut held {
        let answer = soon(client.answer_to(line.split(' ').next().unwrap())).await.unwrap();
        assert_eq!((answer.status, answer.code().as_str()), (410, "gone"), "{line}");
        assert_eq!(answer.header("wakeful-phase"), Some("deleted"));
    }
    assert!(start.elapsed() < Duration::from_secs(10), "not the whole budget");
    let answer = soon(ask(served.address, "GET /", &host, &[TOKEN])).await;
    assert_eq!((answer.status, answer.code().as_str()), (404, "not_found"));
    assert_eq!(raw.connections(), 0);
}

/// The first answer of the control plane is the one that tells of the deletion.
#[tokio::test]
async fn who_came_before_a_deletion_gets_410_also_when_nothing_was_answered_yet() {
    let raw = Raw::ok().await;
    let served = asleep(&raw);
    served.control.hold_ensures(true);
    let mut client = Client::connect(served.address).await;
    client.send(request("GET /", &served.app(env(1)), &[TOKEN])).await;
    until("the question is put", || served.control.ensures_of(1) == 1).await;
    served.control.delete(1);
    served.control.hold_ensures(false);
    let answer = soon(client.answer_to("GET")).await.unwrap();
    assert_eq!((answer.status, answer.code().as_str()), (410, "gone"));
}

#[tokio::test]
async fn a_request_in_flight_that_fails_by_a_deletion_is_a_410() {
    let (go, wait) = tokio::sync::oneshot::channel::<()>();
    let wait = std::sync::Arc::new(parking_lot::Mutex::new(Some(wait)));
    let raw = Raw::start(move |mut conn| {
        let wait = wait.lock().take();
        async move {
            conn.request().await;
            if let Some(wait) = wait {
                wait.await.unwrap();
            }
            conn.reset();
        }
    })
    .await;
    let served = Served::start(Control::ready(1, &raw.upstream()));
    served.control.answer_failures(true);
    let host = served.app(env(1));
    let mut client = Client::connect(served.address).await;
    client.send(request("POST /", &host, &[TOKEN, "Content-Length: 0"])).await;
    until("it is in flight", || raw.requests() == 1).await;
    served.control.delete(1);
    // Once a newcomer gets 404, the gateway knows.
    let start = tokio::time::Instant::now();
    while soon(ask(served.address, "HEAD /", &host, &[TOKEN])).await.status != 404 {
        assert!(start.elapsed() < Duration::from_secs(10));
    }
    go.send(()).unwrap();
    let answer = soon(client.answer_to("POST")).await.unwrap();
    assert_eq!((answer.status, answer.code().as_str()), (410, "gone"));
}

#[tokio::test]
async fn a_deletion_forgets_the_route_at_once_and_a_restored_environment_is_served() {
    use wakeful_wire::{Generation, gate::GateEvent};

    let raw = Raw::ok().await;
    let served = Served::start(Control::ready(1, &raw.upstream()));
    let host = served.app(env(1));
    assert_eq!(ask(served.address, "GET /", &host, &[TOKEN]).await.status, 200);
    served.control.delete(1);
    let status = async || soon(ask(served.address, "GET /", &host, &[TOKEN])).await.status;
    let start = tokio::time::Instant::now();
    let mut last = 0;
    while last != 404 {
        assert!(start.elapsed() < Duration::from_secs(10), "{last}");
        last = status().await;
    }
    served.control.add(1, "alice", GateState::Ready, &raw.upstream());
    served.control.change(1, |env| env.generation = Generation(50));
    served.control.become_ready(1);
    served.control.tell(GateEvent::RouteChanged { env: env(1) });
    while last != 200 {
        assert!(start.elapsed() < Duration::from_secs(15), "{last}");
        last = status().await;
    }
}

#[tokio::test]
async fn a_control_plane_that_cannot_be_asked_is_a_503_and_is_asked_again() {
    let raw = Raw::ok().await;
    let served = Served::start(Control::ready(1, &raw.upstream()));
    let host = served.app(env(1));
    served.control.down(true);
    let answer = ask(served.address, "GET /", &host, &[TOKEN]).await;
    assert_eq!((answer.status, answer.code().as_str()), (503, "control_unavailable"));
    served.control.down(false);
    assert_eq!(ask(served.address, "GET /", &host, &[TOKEN]).await.status, 200);
    // What is cached is served while the control plane is away.
    served.control.down(true);
    assert_eq!(ask(served.address, "GET /", &host, &[TOKEN]).await.status, 200);
}

#[tokio::test]
async fn a_cached_verdict_dies_with_the_event_that_ends_it() {
    let raw = Raw::ok().await;
    let served = Served::start(Control::ready(1, &raw.upstream()));
    let host = served.app(env(1));
    assert_eq!(ask(served.address, "GET /", &host, &[TOKEN]).await.status, 200);
    served.control.become_state(1, GateState::Disabled, Phase::Disabled);
    let mut last = 0;
    let start = tokio::time::Instant::now();
    while last != 423 {
        assert!(start.elapsed() < Duration::from_secs(3), "the cache alone would keep it for 5 s");
        last = ask(served.address, "GET /", &host, &[TOKEN]).await.status;
    }
}

/// C25: a new sandbox at the same address is another one.
#[tokio::test]
async fn a_connection_to_one_sandbox_never_carries_anothers_request() {
    let raw = Raw::start(|mut conn| async move {
        while conn.request().await.is_some() {
            let index = conn.index.to_string();
            conn.send(&ok(&index)).await;
        }
    })
    .await;
    let control = Control::ready(1, &raw.upstream());
    control.add(2, "alice", GateState::Ready, &raw.upstream());
    let served = Served::start(control);
    let first = ask(served.address, "GET /", &served.app(env(1)), &[TOKEN]).await.text();
    let second = ask(served.address, "GET /", &served.app(env(2)), &[TOKEN]).await.text();
    assert_ne!(first, second, "each environment has connections of its own");
    served.control.change(1, |env| env.sandbox = sandbox(77));
    served.control.become_ready(1);
    until("the event has arrived", || {
        let before = served.control.ensures_of(1);
        before >= 1
    })
    .await;
    let start = tokio::time::Instant::now();
    loop {
        let text = ask(served.address, "GET /", &served.app(env(1)), &[TOKEN]).await.text();
        if text != first {
            break;
        }
        assert!(start.elapsed() < Duration::from_secs(3));
    }
}

#[tokio::test]
async fn a_dead_program_is_reported_and_the_request_asks_again() {
    let raw = Raw::ok().await;
    // Nobody listens there, and nobody else can.
    let taken = rustix::net::socket(AddressFamily::INET, SocketType::STREAM, None).unwrap();
    rustix::net::bind(&taken, &SocketAddr::from((Ipv4Addr::LOCALHOST, 0))).unwrap();
    let gone = SocketAddr::try_from(rustix::net::getsockname(&taken).unwrap()).unwrap();
    let control = Control::ready(1, &Upstream::Tcp { address: gone, basic: None });
    let served = Served::start(control);
    let host = served.app(env(1));
    let answer = ask(served.address, "GET /", &host, &[TOKEN]).await;
    assert_eq!((answer.status, answer.code().as_str()), (502, "upstream_failed"));
    let failures = served.control.failures();
    assert!(failures.iter().all(|failure| failure.kind == FailureKind::Connect));
    assert!(failures.len() <= 3, "{failures:?}");
    let asked = served.control.ensures_of(1);
    assert!((2..=4).contains(&asked), "nothing was sent, so the gate is asked again: {asked}");

    // The control plane knows better meanwhile: the same request is held and served.
    served.control.answer_failures(true);
    let mut client = Client::connect(served.address).await;
    let before = served.control.failures().len();
    client.send(request("POST /", &host, &[TOKEN, "Content-Length: 2"])).await;
    client.send("hi").await;
    until("it is reported", || served.control.failures().len() > before).await;
    served.control.change(1, |env| {
        env.sandbox = sandbox(2);
        for upstream in env.upstreams.values_mut() {
            *upstream = raw.upstream();
        }
    });
    served.control.become_state(1, GateState::Starting, Phase::Starting);
    tokio::time::sleep(Duration::from_millis(20)).await;
    served.control.become_ready(1);
    assert_eq!(soon(client.answer_to("POST")).await.unwrap().text(), "ok");
    assert!(raw.text().ends_with("hi"));
}

#[tokio::test]
async fn a_request_that_was_sent_to_a_sandbox_that_is_gone_is_a_503() {
    let raw = Raw::start(|mut conn| async move {
        conn.request().await;
        conn.reset();
    })
    .await;
    let served = Served::start(Control::ready(1, &raw.upstream()));
    let host = served.app(env(1));
    let answer = ask(served.address, "POST /", &host, &[TOKEN, "Content-Length: 0"]).await;
    assert_eq!((answer.status, answer.code().as_str()), (502, "upstream_failed"));
    served.control.answer_failures(true);
    served.control.change(1, |env| env.sandbox = sandbox(2));
    served.control.become_ready(1);
    let start = tokio::time::Instant::now();
    let answer = loop {
        let answer = ask(served.address, "POST /", &host, &[TOKEN, "Content-Length: 0"]).await;
        if answer.status == 503 {
            break answer;
        }
        assert!(start.elapsed() < Duration::from_secs(3));
    };
    assert_eq!(answer.code(), "restarting");
    let failures = served.control.failures();
    assert!(failures.iter().all(|failure| failure.kind == FailureKind::BeforeHead));
    assert_eq!(failures.last().unwrap().sandbox, sandbox(2));
}

#[tokio::test]
async fn an_idle_drain_is_refused_while_something_is_open() {
    let raw = Raw::start(|mut conn| async move {
        conn.request().await;
        while conn.more().await {}
    })
    .await;
    let served = Served::start(Control::ready(1, &raw.upstream()));
    let mut client = Client::connect(served.address).await;
    client.send(request("GET /slow", &served.app(env(1)), &[TOKEN])).await;
    until("it is in flight", || raw.requests() == 1).await;
    served.control.drain(1, false);
    until("it is answered", || !served.control.drained().is_empty()).await;
    let answer = served.control.drained()[0].clone();
    assert!(!answer.drained);
    assert_eq!(answer.env, env(1));
    assert_eq!(served.metric("wakeful_leases"), 1, "and nothing is cut");
}

#[tokio::test]
async fn an_idle_drain_of_what_is_idle_is_granted_and_the_next_request_wakes_it_again() {
    let raw = Raw::ok().await;
    let served = Served::with(Control::ready(1, &raw.upstream()), |config| {
        config.keepalive_interval = Duration::from_millis(50);
    });
    let host = served.app(env(1));
    assert_eq!(ask(served.address, "GET /", &host, &[TOKEN]).await.status, 200);
    until("the visit is reported", || served.control.activity().iter().any(|report| report.touch))
        .await;
    until("the drain is granted", || {
        let before = served.control.drained().len();
        if before == 0 || !served.control.drained()[before - 1].drained {
            served.control.drain(1, false);
        }
        served.control.drained().last().is_some_and(|answer| answer.drained)
    })
    .await;
    let mut client = Client::connect(served.address).await;
    client.send(request("GET /", &host, &[TOKEN])).await;
    until("it is held, not served from the cache", || served.metric("wakeful_held_requests") == 1)
        .await;
    served.control.become_ready(1);
    assert_eq!(soon(client.answer_to("GET")).await.unwrap().status, 200);
}

#[tokio::test]
async fn a_forced_drain_ends_streams_and_says_drained_when_all_is_over() {
    let raw = Raw::start(|mut conn| async move {
        conn.request().await;
        conn.send(
            b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\
              Transfer-Encoding: chunked\r\n\r\n1\r\nx\r\n",
        )
        .await;
        while conn.more().await {}
    })
    .await;
    let served = Served::start(Control::ready(1, &raw.upstream()));
    let mut client = Client::connect(served.address).await;
    client.send(request("GET /events", &served.app(env(1)), &[TOKEN])).await;
    client.head().await.unwrap();
    assert_eq!(client.chunk().await.unwrap(), b"x");
    served.control.drain(1, true);
    assert_eq!(soon(client.chunk()).await.unwrap(), b"", "it ends between two events");
    until("drained is said", || {
        served.control.drained().last().is_some_and(|answer| answer.drained)
    })
    .await;
    until("the surface sees it end", || raw.open() == 0).await;
    assert!(served.control.failures().is_empty(), "the gateway ended it, not the program");
}

#[tokio::test]
async fn visits_reach_the_clock_by_aggregates() {
    let raw = Raw::ok().await;
    let served = Served::with(Control::ready(1, &raw.upstream()), |config| {
        config.keepalive_interval = Duration::from_millis(100);
    });
    let host = served.app(env(1));
    let start = tokio::time::Instant::now();
    for _ in 0..50 {
        ask(served.address, "GET /", &host, &[TOKEN]).await;
    }
    until("they are reported", || served.control.activity().iter().any(|report| report.touch))
        .await;
    let reports = served.control.activity();
    // One each interval, however many come.
    let ticks = start.elapsed().as_millis() / 100 + 1;
    assert!(reports.len() as u128 <= ticks, "{} in {ticks} intervals", reports.len());
    assert!(reports.iter().all(|report| {
        report.kind == LeaseKind::Request && report.env == env(1) && report.expires_ms == 250
    }));
    // Nothing more is said of what has ended.
    tokio::time::sleep(Duration::from_millis(250)).await;
    let settled = served.control.activity().len();
    tokio::time::sleep(Duration::from_millis(250)).await;
    assert_eq!(served.control.activity().len(), settled);
}

#[tokio::test]
async fn lost_events_make_the_gateway_forget_what_it_knew() {
    let raw = Raw::ok().await;
    let served = Served::start(Control::ready(1, &raw.upstream()));
    let host = served.app(env(1));
    assert_eq!(ask(served.address, "GET /", &host, &[TOKEN]).await.status, 200);
    served.control.change(1, |env| (env.state, env.phase) = (GateState::Disabled, Phase::Disabled));
    // More than the channel holds, all at once.
    for n in 0..5000u128 {
        served.control.tell(wakeful_wire::gate::GateEvent::RouteChanged { env: env(1000 + n) });
    }
    let start = tokio::time::Instant::now();
    while ask(served.address, "GET /", &host, &[TOKEN]).await.status != 423 {
        assert!(start.elapsed() < Duration::from_secs(3));
    }
}

#[tokio::test]
async fn those_who_fail_together_share_one_report() {
    let raw = Raw::start(|mut conn| async move {
        conn.head().await;
        conn.send(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhello").await;
        conn.exactly(3).await;
    })
    .await;
    let served = Served::start(Control::ready(1, &raw.upstream()));
    let host = served.app(env(1));
    let all = (0..50).map(|_| {
        let address = served.address;
        let host = host.clone();
        async move {
            let mut client = Client::connect(address).await;
            let body = "Content-Length: 3";
            client.send(request("POST /", &host, &[TOKEN, body])).await;
            client.head().await.unwrap();
            client
        }
    });
    let clients = futures::future::join_all(all).await;
    let start = tokio::time::Instant::now();
    // The last bytes of each request make its script end, in the middle of its answer.
    for mut client in clients {
        client.send("end").await;
        assert_eq!(client.exactly(5).await.unwrap(), b"hello");
        assert!(client.ended().await);
    }
    until("all are counted", || {
        served.metric(r#"wakeful_upstream_failures_total{kind="mid_stream"}"#) == 50
    })
    .await;
    let reports = served.control.failures().len();
    // One is good for a second.
    let seconds = usize::try_from(start.elapsed().as_secs()).unwrap();
    assert!((1..=2 + seconds).contains(&reports), "{reports} in {seconds} s");
}

#[tokio::test]
async fn a_held_upload_whose_client_leaves_gives_its_place_back() {
    let raw = Raw::ok().await;
    let served = asleep(&raw);
    let mut client = Client::connect(served.address).await;
    let length = "Content-Length: 10485760";
    client.send(request("POST /", &served.app(env(1)), &[TOKEN, length])).await;
    client.send(vec![b'x'; 100_000]).await;
    until("it is held", || served.metric("wakeful_held_requests") == 1).await;
    drop(client);
    until("its place is free", || served.metric("wakeful_held_requests") == 0).await;
    assert_eq!(raw.connections(), 0);
}

/// The whole way through `envd`: a surface that is on its way is waited for, and the connection
/// comes by descriptor.
#[tokio::test]
async fn a_surface_behind_envd_is_reached_by_a_passed_connection() {
    use std::{
        io::{BufRead, BufReader, IoSlice, Write},
        os::fd::AsFd,
        sync::{
            Arc,
            atomic::{AtomicUsize, Ordering::SeqCst},
        },
    };

    use wakeful_wire::sandbox::{Ask, AskKind, Refusal, Reply};

    let raw = Raw::ok().await;
    let address = raw.address;
    let dir = tempfile::tempdir().unwrap();
    let socket = dir.path().join("envd.sock");
    let listener = std::os::unix::net::UnixListener::bind(&socket).unwrap();
    let dials = Arc::new(AtomicUsize::new(0));
    std::thread::spawn({
        let dials = Arc::clone(&dials);
        move || {
            for stream in listener.incoming() {
                let mut stream = stream.unwrap();
                let mut line = String::new();
                BufReader::new(&stream).read_line(&mut line).unwrap();
                let ask: Ask = serde_json::from_str(&line).unwrap();
                assert_eq!(ask.secret, "s3cret");
                assert!(matches!(ask.ask, AskKind::Dial { .. }));
                if dials.fetch_add(1, SeqCst) == 0 {
                    let refusal = Reply::Refused(Refusal::NotReady);
                    writeln!(stream, "{}", serde_json::to_string(&refusal).unwrap()).unwrap();
                    continue;
                }
                let connected = std::net::TcpStream::connect(address).unwrap();
                let mut line = serde_json::to_vec(&Reply::Done).unwrap();
                line.push(b'\n');
                let passed = [connected.as_fd()];
                let mut space =
                    [std::mem::MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
                let mut ancillary = rustix::net::SendAncillaryBuffer::new(&mut space);
                assert!(ancillary.push(rustix::net::SendAncillaryMessage::ScmRights(&passed)));
                rustix::net::sendmsg(
                    &stream,
                    &[IoSlice::new(&line)],
                    &mut ancillary,
                    rustix::net::SendFlags::empty(),
                )
                .unwrap();
            }
        }
    });
    let control = Control::ready(
        1,
        &Upstream::Broker {
            socket,
            secret: "s3cret".to_owned(),
            authority: "127.0.0.1:4711".to_owned(),
            basic: None,
        },
    );
    control.declare(1, "app", serde_json::json!({ "host": "upstream" }));
    let served = Served::start(control);
    let host = served.app(env(1));
    for _ in 0..5 {
        let answer = soon(ask(served.address, "GET /", &host, &[TOKEN])).await;
        assert_eq!(answer.text(), "ok", "{}", answer.head);
    }
    assert_eq!(dials.load(SeqCst), 2, "one refusal, one connection for all five");
    assert!(raw.text().contains("host: 127.0.0.1:4711\r\n"));
    assert!(served.control.failures().is_empty(), "not ready yet is no failure");
}
