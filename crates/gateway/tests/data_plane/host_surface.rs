//! The environment server's own route: what reaches it, what comes back, and what it costs
//! (`design.md`, "The environment server's own route"; `cases.md`, C02, C04, C29, C31).

use std::time::Duration;

use wakeful_wire::{
    EnvId, Phase, SurfaceName,
    gate::{FailureKind, GateState},
    host::Descriptor,
};

use crate::{
    http::TOKEN,
    support::{
        Served,
        client::{Answer, Client, ask, request},
        control::{ALICE, ALICE_SESSION, BOB, Control, env},
        envd::{BASIC, Envd},
        raw::{Raw, ok, values},
        soon, until,
    },
};

pub(crate) fn served(envd: &Envd) -> Served {
    Served::start(Control::ready(1, &envd.upstream()))
}

pub(crate) fn asleep(envd: &Envd) -> Served {
    let control = Control::new();
    control.add(1, "alice", GateState::Asleep, &envd.upstream());
    Served::start(control)
}

pub(crate) fn base(env: EnvId) -> String {
    format!("/api/host/{env}")
}

pub(crate) fn cookie() -> String {
    format!("Cookie: wakeful_session={ALICE_SESSION}")
}

async fn get(served: &Served, rest: &str, headers: &[&str]) -> Answer {
    let line = format!("GET {}{rest}", base(env(1)));
    soon(ask(served.address, &line, &served.main(), headers)).await
}

/// C02.
#[tokio::test]
async fn targets_reach_it_byte_for_byte_below_the_prefix() {
    let raw = Raw::answering(|request| ok(request.target())).await;
    let envd = Envd::before(&raw);
    let served = served(&envd);
    for rest in [
        "/rpc?x=1",
        "/descriptor",
        "/",
        "/?",
        "/a%2520b//c%2Fd?q=%zz&r=a+b",
        "/threads/%E2%9C%93?before=1&before=2",
    ] {
        assert_eq!(get(&served, rest, &[TOKEN]).await.text(), rest);
    }
    for rest in ["/../x", "/%2e%2e/x", "/a%5cb", "/a%00"] {
        let answer = get(&served, rest, &[TOKEN]).await;
        assert_eq!((answer.status, answer.code().as_str()), (400, "bad_target"), "{rest}");
    }
    for method in ["GET", "POST"] {
        let line = format!("{method} {}?x=%2F", base(env(1)));
        let answer = ask(served.address, &line, &served.main(), &[TOKEN]).await;
        assert_eq!(answer.status, 308);
        let location = format!("{}/?x=%2F", base(env(1)));
        assert_eq!(answer.header("location"), Some(location.as_str()));
    }
    assert_eq!(raw.requests(), 6, "nothing else reached it");
}

/// C29.
#[tokio::test]
async fn its_own_credentials_pass_and_ours_do_not() {
    let raw = Raw::ok().await;
    let envd = Envd::before(&raw);
    let served = served(&envd);
    let (cookie, bearer) = (cookie(), format!("Authorization: Bearer {ALICE}"));
    let both = format!("{cookie}; app=1; wakeful_other=2");
    let rows: [(&[&str], &[&str], &[&str]); 6] = [
        (&[TOKEN, "Authorization: DPoP at-1", "DPoP: p-1"], &["DPoP at-1"], &["p-1"]),
        (&[&both, TOKEN, "Authorization: DPoP at-2", "DPoP: p-2"], &["DPoP at-2"], &["p-2"]),
        (&[&cookie, "Authorization: DPoP wk_x", "DPoP: p-3"], &["DPoP wk_x"], &["p-3"]),
        (&[&cookie, "Authorization: Bearer theirs"], &["Bearer theirs"], &[]),
        (&[&bearer, "DPoP: p-4", "DPoP: p-5"], &[], &["p-4", "p-5"]),
        (&[TOKEN], &[], &[]),
    ];
    for (sent, authorization, proofs) in rows {
        let before = raw.text().len();
        assert_eq!(get(&served, "/shell", sent).await.status, 200, "{sent:?}");
        let seen = raw.text()[before..].to_owned();
        assert_eq!(values(&seen, "authorization"), authorization, "{sent:?}");
        assert_eq!(values(&seen, "dpop"), proofs, "{sent:?}");
        assert!(!seen.contains(ALICE) && !seen.contains(ALICE_SESSION), "{seen}");
        assert!(!seen.to_lowercase().contains("x-wakeful-token"), "{seen}");
        assert!(!seen.contains("wakeful_other"), "{seen}");
        assert!(!seen.contains(&crate::support::client::basic(BASIC)), "{seen}");
    }
    assert!(raw.text().contains("cookie: app=1\r\n"));
    let twice = [&cookie, "Authorization: DPoP a", "Authorization: DPoP b"];
    assert_eq!(get(&served, "/shell", &twice).await.status, 400);
}

/// C31, and C04: what is named in `Connection` takes nothing of the gateway's away.
#[tokio::test]
async fn nobody_else_states_who_or_where_they_are() {
    let raw = Raw::ok().await;
    let envd = Envd::before(&raw);
    let served = served(&envd);
    let stated = format!("http://{}{}", served.main(), base(env(1)));
    let line = format!("GET {}/descriptor", base(env(1)));
    let port = served.address.port();
    for host in [served.main(), format!("127.0.0.1:{port}"), format!("LOCALHOST:{port}")] {
        let before = raw.text().len();
        let headers = [
            TOKEN,
            "Connection: wakeful-public-address, x-wakeful-user, authorization",
            "Wakeful-Public-Address: http://evil.example",
            "wakeful_public_address: http://evil.example",
            "WAKEFUL-PUBLIC_ADDRESS: http://evil.example",
            "Wakeful-Subject: evil",
            "X-Wakeful-User: evil",
            "x_wakeful_user: evil",
            "X-Forwarded-User: evil",
            "X-Forwarded-For: 203.0.113.66",
            "X-Forwarded-Host: evil.example",
            "X-Forwarded-Prefix: /evil",
            "Forwarded: host=evil.example",
            "X-Real-IP: 203.0.113.66",
        ];
        assert_eq!(ask(served.address, &line, &host, &headers).await.status, 200);
        let seen = raw.text()[before..].to_owned();
        assert!(!seen.contains("evil") && !seen.contains("203.0.113.66"), "{seen}");
        assert_eq!(values(&seen, "wakeful-public-address"), [stated.as_str()]);
        assert_eq!(values(&seen, "x-wakeful-user"), ["alice"]);
        assert_eq!(values(&seen, "x-forwarded-for"), ["127.0.0.1"]);
        assert_eq!(values(&seen, "x-forwarded-prefix"), [base(env(1)).as_str()]);
        let ours = seen.lines().filter(|line| {
            let line = line.to_lowercase().replace('_', "-");
            line.starts_with("wakeful-") || line.starts_with("x-wakeful-")
        });
        assert_eq!(ours.count(), 2, "{seen}");
    }
}

#[tokio::test]
async fn its_answers_pass_and_are_never_a_page_or_a_cookie() {
    const HEAD: &str = "WWW-Authenticate: DPoP algs=\"ES256\"\r\nDPoP-Nonce: n1\r\nETag: \"e1\"\r\n\
        Cache-Control: no-store\r\nSet-Cookie: a=1\r\nSet-Cookie: wakeful_session=evil; Path=/\r\n";
    let raw = Raw::answering(|request| match request.target() {
        "/same" => format!("HTTP/1.1 304 Not Modified\r\n{HEAD}\r\n").into_bytes(),
        "/html" => {
            let kind = "Content-Type: text/html\r\nContent-Length: 11";
            format!("HTTP/1.1 200 OK\r\n{HEAD}{kind}\r\n\r\n<p>page</p>").into_bytes()
        }
        _ => format!("HTTP/1.1 401 No\r\n{HEAD}Content-Length: 2\r\n\r\n{{}}").into_bytes(),
    })
    .await;
    let envd = Envd::before(&raw);
    let served = served(&envd);
    let cookie = cookie();
    for sent in [[TOKEN, "Accept: */*"], [&cookie, "Sec-Fetch-Site: same-origin"]] {
        // One connection for all: an answer without a body must not shift the next.
        let mut client = Client::connect(served.address).await;
        for (rest, status, body) in
            [("/shell", 401, "{}"), ("/same", 304, ""), ("/shell", 401, "{}")]
        {
            let line = format!("GET {}{rest}", base(env(1)));
            client.send(request(&line, &served.main(), &sent)).await;
            let answer = soon(client.answer_to("GET")).await.unwrap();
            assert_eq!((answer.status, answer.text().as_str()), (status, body), "{rest}");
            assert_eq!(answer.header("www-authenticate"), Some("DPoP algs=\"ES256\""));
            assert_eq!(answer.header("dpop-nonce"), Some("n1"));
            assert_eq!(answer.header("etag"), Some("\"e1\""));
            assert_eq!(answer.header("cache-control"), Some("no-store"));
            assert!(answer.all("set-cookie").is_empty(), "{}", answer.head);
            if status == 304 {
                assert!(answer.header("transfer-encoding").is_none(), "{}", answer.head);
                assert!(answer.header("content-length").is_none_or(|length| length == "0"));
            }
        }
        assert!(client.buffer.is_empty());
        let answer = get(&served, "/html", &sent).await;
        assert_eq!(answer.all("content-security-policy"), ["sandbox"]);
        assert_eq!(answer.all("x-content-type-options"), ["nosniff"]);
    }
    // A page load with the cookie stays here, and is as harmless.
    let page = [cookie.as_str(), "Sec-Fetch-Mode: navigate", "Sec-Fetch-Site: cross-site"];
    let answer = get(&served, "/html", &page).await;
    assert_eq!((answer.status, answer.header("location")), (200, None));
    assert_eq!(answer.all("content-security-policy"), ["sandbox"]);
}

#[tokio::test]
async fn only_its_owner_is_admitted() {
    let raw = Raw::ok().await;
    let envd = Envd::before(&raw);
    let served = served(&envd);
    let (cookie, bob) = (cookie(), format!("X-Wakeful-Token: {BOB}"));
    let navigate = ["Sec-Fetch-Mode: navigate", "Accept: text/html"];
    let rows: [(&[&str], u16, &str); 8] = [
        (&[], 401, "unauthenticated"),
        (&navigate, 401, "unauthenticated"),
        (&["Authorization: DPoP at", "DPoP: p"], 401, "unauthenticated"),
        (&["Cookie: wakeful_session=nobody"], 401, "unauthenticated"),
        (&[&bob], 404, "not_found"),
        (&[&bob, "Sec-Fetch-Mode: navigate"], 404, "not_found"),
        (&[&cookie, "Sec-Fetch-Site: same-site"], 403, "cross_origin"),
        (&[&cookie, "Origin: http://evil.apps.wakeful.localhost"], 403, "cross_origin"),
    ];
    for (sent, status, code) in rows {
        let answer = get(&served, "/descriptor", sent).await;
        assert_eq!((answer.status, answer.code().as_str()), (status, code), "{sent:?}");
        assert_eq!(answer.header("content-type"), Some("application/problem+json"));
    }
    let post = format!("POST {}/ticket", base(env(1)));
    let refused = ask(served.address, &post, &served.main(), &[&cookie, "Content-Length: 0"]).await;
    assert_eq!(refused.status, 403, "an unsafe method says where it comes from");
    assert_eq!(raw.connections(), 0);
    let origin = format!("Origin: http://{}", served.main());
    let length = "Content-Length: 0";
    for sent in
        [&[cookie.as_str(), "Sec-Fetch-Site: same-origin", length], &[&cookie, &origin, length]]
    {
        assert_eq!(ask(served.address, &post, &served.main(), sent).await.status, 200, "{sent:?}");
    }
}

#[tokio::test]
async fn asleep_it_answers_nothing_that_could_be_a_descriptor() {
    let raw = Raw::ok().await;
    let envd = Envd::before(&raw);
    let served = asleep(&envd);
    let cookie = cookie();
    let rows: [&[&str]; 4] = [
        &[&cookie],
        &[&cookie, "Sec-Fetch-Mode: navigate", "Accept: text/html"],
        &[&cookie, "Wakeful-Intent: none"],
        &[TOKEN, "Wakeful-Intent: none"],
    ];
    for sent in rows {
        let answer = get(&served, "/descriptor", sent).await;
        assert_eq!((answer.status, answer.code().as_str()), (503, "asleep"), "{sent:?}");
        assert_eq!(answer.header("content-type"), Some("application/problem+json"));
        assert_eq!(answer.header("wakeful-phase"), Some("suspended"));
        assert!(serde_json::from_slice::<Descriptor>(&answer.body).is_err());
    }
    let post = format!("POST {}/ticket", base(env(1)));
    let quiet = [TOKEN, "Wakeful-Intent: none", "Content-Length: 0"];
    assert_eq!(ask(served.address, &post, &served.main(), &quiet).await.status, 503);
    assert!(served.control.ensures().iter().all(|(_, request)| !request.intent));
    assert_eq!((envd.dials(), served.metric("wakeful_held_requests")), (0, 0));
}

#[tokio::test]
async fn a_stated_intent_is_held_until_it_is_ready_and_within_the_budget() {
    let raw = Raw::ok().await;
    let envd = Envd::before(&raw);
    let control = Control::new();
    control.add(1, "alice", GateState::Asleep, &envd.upstream());
    control.add(2, "alice", GateState::Asleep, &envd.upstream());
    let served = Served::with(control, |config| config.wake_budget = Duration::from_secs(2));
    let cookie = cookie();
    let sent = [cookie.as_str(), "Sec-Fetch-Site: same-origin", "Wakeful-Intent: wake"];
    let mut client = Client::connect(served.address).await;
    let line = format!("GET {}/shell", base(env(1)));
    client.send(request(&line, &served.main(), &sent)).await;
    until("it wakes", || served.control.ensures().iter().any(|(_, asked)| asked.intent)).await;
    until("it is held", || served.metric("wakeful_held_requests") == 1).await;
    served.control.become_ready(1);
    assert_eq!(soon(client.answer_to("GET")).await.unwrap().text(), "ok");
    // One that is never ready: no waking page, however it is asked for.
    let line = format!("GET {}/shell", base(env(2)));
    let page = [&sent[..], &["Sec-Fetch-Mode: navigate"]].concat();
    let answer = soon(ask(served.address, &line, &served.main(), &page)).await;
    assert_eq!((answer.status, answer.code().as_str()), (503, "starting"));
}

#[tokio::test]
async fn a_look_without_intent_passes_and_touches_no_clock() {
    let raw = Raw::ok().await;
    let envd = Envd::before(&raw);
    let served = Served::with(Control::ready(1, &envd.upstream()), |config| {
        config.keepalive_interval = Duration::from_millis(50);
    });
    let cookie = cookie();
    for sent in [[TOKEN, "Wakeful-Intent: none"], [&cookie, "Sec-Fetch-Site: same-origin"]] {
        for _ in 0..3 {
            assert_eq!(get(&served, "/shell", &sent).await.status, 200);
        }
    }
    assert!(served.control.ensures().iter().all(|(_, request)| !request.intent));
    let of_host = || {
        let mut reports = served.control.activity();
        reports.retain(|report| report.surface == SurfaceName::host());
        reports
    };
    // Long enough for several ticks.
    tokio::time::sleep(Duration::from_millis(400)).await;
    assert!(of_host().is_empty(), "{:?}", of_host());
    served.control.drain(1, false);
    until("the drain is answered", || !served.control.drained().is_empty()).await;
    assert!(served.control.drained()[0].drained, "nothing is left to be told");
    // Whoever means to use it does touch.
    served.control.become_ready(1);
    assert_eq!(get(&served, "/shell", &[TOKEN, "Wakeful-Intent: wake"]).await.status, 200);
    until("it is told", || of_host().iter().any(|report| report.touch)).await;
}

#[tokio::test]
async fn a_look_in_flight_is_waited_for_by_a_drain() {
    let (answers, go) = tokio::sync::watch::channel(false);
    let raw = Raw::start(move |mut conn| {
        let mut go = go.clone();
        async move {
            while conn.request().await.is_some() {
                go.wait_for(|go| *go).await.unwrap();
                conn.send(&ok("late")).await;
            }
        }
    })
    .await;
    let envd = Envd::before(&raw);
    let served = served(&envd);
    let mut client = Client::connect(served.address).await;
    let line = format!("GET {}/shell", base(env(1)));
    client.send(request(&line, &served.main(), &[TOKEN, "Wakeful-Intent: none"])).await;
    until("it is in flight", || raw.requests() == 1).await;
    let drained = || served.control.drained().iter().map(|a| a.drained).collect::<Vec<_>>();
    served.control.drain(1, false);
    until("the drain is refused", || drained() == [false]).await;
    served.control.drain(1, true);
    until("the forced one waits", || drained() == [false, false]).await;
    answers.send(true).unwrap();
    assert_eq!(soon(client.answer_to("GET")).await.unwrap().text(), "late");
    until("and is over", || drained() == [false, false, true]).await;
}

#[tokio::test]
async fn a_passed_unix_connection_is_kept_for_the_next_request() {
    let raw = Raw::answering(|request| ok(&String::from_utf8_lossy(&request.body))).await;
    let envd = Envd::before(&raw);
    let served = served(&envd);
    let line = format!("POST {}/ticket", base(env(1)));
    for _ in 0..5 {
        let mut client = Client::connect(served.address).await;
        client.send(request(&line, &served.main(), &[TOKEN, "Content-Length: 4"])).await;
        client.send("body").await;
        assert_eq!(soon(client.answer_to("POST")).await.unwrap().text(), "body");
    }
    assert_eq!((envd.dials(), raw.connections()), (1, 1));
    // Idle for too long, it is closed and not used again.
    until("it is closed", || raw.open() == 0).await;
    assert_eq!(get(&served, "/shell", &[TOKEN]).await.status, 200);
    assert_eq!(envd.dials(), 2);
}

#[tokio::test]
async fn a_dead_one_is_restarting_and_a_failure() {
    for warm in [false, true] {
        let raw = Raw::ok().await;
        let envd = Envd::before(&raw);
        let served = served(&envd);
        served.control.answer_failures(true);
        if warm {
            assert_eq!(get(&served, "/shell", &[TOKEN]).await.status, 200);
        }
        envd.kill();
        let answer = get(&served, "/descriptor", &[TOKEN, "Wakeful-Intent: none"]).await;
        assert_eq!((answer.status, answer.code().as_str()), (503, "restarting"), "{warm}");
        assert!(answer.header("retry-after").is_some());
        let failures = served.control.failures();
        let kind = failures[0].kind;
        // A pooled connection may have taken the request before its end was noticed.
        assert!(kind == FailureKind::Connect || warm && kind == FailureKind::BeforeHead);
        let counted = format!("wakeful_upstream_failures_total{{kind=\"{}\"}}", kind.as_str());
        assert!(served.metric(&counted) >= 1);
        assert_eq!(failures[0].surface, SurfaceName::host());
    }
}

#[tokio::test]
async fn one_that_is_deleted_or_switched_off_is_not_reached() {
    let raw = Raw::ok().await;
    let envd = Envd::before(&raw);
    let served = served(&envd);
    served.control.become_state(1, GateState::Disabled, Phase::Disabled);
    assert_eq!(get(&served, "/shell", &[TOKEN]).await.code(), "environment_disabled");
    served.control.delete(1);
    let start = tokio::time::Instant::now();
    while get(&served, "/shell", &[TOKEN]).await.status != 404 {
        assert!(start.elapsed() < Duration::from_secs(5));
    }
    assert_eq!(envd.dials(), 0);
}
