//! HTTP, byte for byte (`cases.md`, C01, C02, C04, C05, C08, C31, C32, C49).

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering::SeqCst},
    },
    time::Duration,
};

use crate::support::{
    Served,
    client::{Client, ask, ask_raw, basic, request},
    control::{ALICE_SESSION, Control, env},
    raw::{Raw, ok},
    soon, until,
};

/// Alice's, in the header that no program wants for itself.
pub(crate) const TOKEN: &str = "X-Wakeful-Token: wk_alice0000000000000000000000000";

fn served(raw: &Raw) -> Served {
    Served::start(Control::ready(1, &raw.upstream()))
}

fn agent(path: &str) -> String {
    format!("/api/proxy/{}{path}", env(1))
}

#[tokio::test]
async fn a_request_is_served_by_its_surface_on_path_and_host() {
    let raw = Raw::ok().await;
    let served = served(&raw);
    let answer = ask(served.address, "GET /", &served.app(env(1)), &[TOKEN]).await;
    assert_eq!((answer.status, answer.text().as_str()), (200, "ok"), "{}", answer.head);
    let answer =
        ask(served.address, &format!("GET {}", agent("/")), &served.main(), &[TOKEN]).await;
    assert_eq!((answer.status, answer.text().as_str()), (200, "ok"), "{}", answer.head);
    let answer = ask(served.address, "GET /u/alice/x", &served.main(), &[TOKEN]).await;
    assert_eq!(answer.status, 200, "{}", answer.head);
    assert!(raw.text().contains("GET /x HTTP/1.1\r\n"));
    served.stop().await;
}

#[tokio::test]
async fn the_main_host_gets_what_is_its_own_with_the_peers_address() {
    let raw = Raw::ok().await;
    let served = served(&raw);
    let answer = ask(served.address, "GET /healthz?x=1", &served.main(), &[]).await;
    assert_eq!(answer.text(), "main GET /healthz?x=1 peer=true");
    let answer = ask(served.address, "GET /users", "127.0.0.1:1", &[]).await;
    assert_eq!(answer.text(), "main GET /users peer=true");
    assert_eq!(raw.connections(), 0);
}

/// C01: whatever the framing, the upstream sees one request with one framing, or none.
#[tokio::test]
async fn two_framings_never_reach_the_surface() {
    let rows = [
        ("Content-Length: 6\r\nTransfer-Encoding: chunked\r\n", "0\r\n\r\nG"),
        ("Transfer-Encoding: chunked\r\nContent-Length: 6\r\n", "0\r\n\r\nG"),
        ("Transfer-Encoding: chunked\t\r\n", "0\r\n\r\nG"),
        ("Transfer-Encoding: xchunked\r\n", "0\r\n\r\nG"),
        ("Transfer-Encoding: chunked, identity\r\n", "0\r\n\r\nG"),
        ("Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n", "0\r\n\r\nG"),
        ("Transfer-Encoding: identity\r\nTransfer-Encoding: chunked\r\n", "0\r\n\r\nG"),
        ("Content-Length: 6\r\nContent-Length: 7\r\n", "0\r\n\r\nGG"),
        ("Content-Length: 6\r\nContent-Length: 6\r\n", "0\r\n\r\nG"),
        ("Content-Length: +6\r\n", "0\r\n\r\nG"),
        ("Content-Length : 6\r\n", "0\r\n\r\nG"),
        ("Content-Length: 6, 6\r\n", "0\r\n\r\nG"),
        ("Transfer-Encoding: chunked\r\n", "0x5\r\nhello\r\n0\r\n\r\nG"),
        ("Transfer-Encoding: chunked\r\n", "FFFFFFFFFFFFFFFF1\r\nhello\r\n0\r\n\r\nG"),
        ("Content-Length: 6\nTransfer-Encoding: chunked\r\n", "0\r\n\r\nG"),
    ];
    for (headers, body) in rows {
        let raw = Raw::ok().await;
        let served = served(&raw);
        let bytes = format!(
            "POST /x HTTP/1.1\r\nHost: {}\r\n{TOKEN}\r\n{headers}\r\n{body}",
            served.app(env(1))
        );
        let mut client = Client::connect(served.address).await;
        client.send(&bytes).await;
        let answer = client.answer_to("POST").await;
        let status = answer.as_ref().map_or(0, |answer| answer.status);
        // However it was answered, nothing behind it is taken for a request.
        client.stream.write_all_ok(b"ET /smuggled HTTP/1.1\r\nHost: x\r\n\r\n").await;
        let _ = tokio::io::AsyncWriteExt::shutdown(&mut client.stream).await;
        while client.more().await {}
        let seen = raw.text();
        let both = seen.to_ascii_lowercase().contains("content-length")
            && seen.to_ascii_lowercase().contains("transfer-encoding");
        assert!(!both, "{headers:?}: {seen}");
        assert!(!seen.contains("smuggled"), "{headers:?}: {seen}");
        assert!(seen.matches("HTTP/1.1\r\n").count() <= 1, "{headers:?}: {seen}");
        assert!(matches!(status, 400 | 0 | 200 | 502), "{headers:?}: {status}");
        assert!(status != 200 || !headers.contains("xchunked"), "{headers:?}");
    }
}

/// C01: a surface's faulty answer is a 502, and its connection is not used again.
#[tokio::test]
async fn a_surfaces_faulty_framing_is_a_502() {
    let rows = [
        "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 7\r\n\r\nhello",
        "HTTP/1.1 200 OK\r\nContent-Length: +5\r\n\r\nhello",
        "HTTP/1.1 200 OK\r\nContent-Length : 5\r\n\r\nhello",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: xchunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked, identity\r\n\r\n5\r\nhello\r\n0\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: x\r\n\r\nhello",
        "SSH-2.0-OpenSSH_9.2\r\n",
        "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n",
    ];
    for row in rows {
        let raw = Raw::answering(move |_| row.as_bytes().to_vec()).await;
        let served = served(&raw);
        let host = served.app(env(1));
        for round in 1..=2 {
            let answer = ask(served.address, "GET /", &host, &[TOKEN]).await;
            assert_eq!(answer.status, 502, "{row:?}: {}", answer.text());
            assert_eq!(answer.code(), "upstream_failed");
            assert_eq!(raw.connections(), round, "{row:?}");
        }
        assert!(!served.control.failures().is_empty(), "{row:?}");
    }
}

/// C01: both framings in an answer are at most one to the client, and the connection is closed.
#[tokio::test]
async fn two_framings_in_an_answer_are_never_handed_on() {
    for row in [
        "HTTP/1.1 200 OK\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nContent-Length: 3\r\n\r\n5\r\nhello\r\n0\r\n\r\n",
    ] {
        let raw = Raw::answering(move |_| row.as_bytes().to_vec()).await;
        let served = served(&raw);
        let answer = ask(served.address, "GET /", &served.app(env(1)), &[TOKEN]).await;
        let framings = answer.all("content-length").len() + answer.all("transfer-encoding").len();
        assert_eq!(framings, 1, "{}", answer.head);
        assert!(answer.status == 502 || answer.text() == "hello", "{answer:?}");
    }
}

/// C02: the target arrives byte for byte, with method and body.
#[tokio::test]
async fn a_target_arrives_as_it_was_sent() {
    let long = format!("/{}", "a".repeat(7 << 10));
    let rows = [
        "/a%2520b",
        "/a%2Fb/c",
        "/x//y",
        "//graphql",
        "/@scope/pkg;v=1",
        "/%E2%9C%93",
        "/p?q=a%20b+c&r=%26&flag&empty=&z=%zz",
        "/?",
        "/p?next=//h/p?x%23",
        "/plugins/??@scope/a/client.js,@scope/b/client.js&rev=1",
        "/%252e%252e/e2/s",
        &long,
    ];
    let last = Arc::new(parking_lot::Mutex::new(None));
    let raw = Raw::answering({
        let last = Arc::clone(&last);
        move |request| {
            *last.lock() = Some(request.clone());
            ok("ok")
        }
    })
    .await;
    let served = served(&raw);
    let body = "b".repeat(2 << 10);
    for row in rows {
        for (host, target) in [(served.app(env(1)), row.to_owned()), (served.main(), agent(row))] {
            let bytes = format!(
                "POST {target} HTTP/1.1\r\nHost: {host}\r\n{TOKEN}\r\nContent-Length: {}\r\n\r\n{body}",
                body.len()
            );
            let answer = ask_raw(served.address, bytes).await;
            assert_eq!(answer.status, 200, "{row}: {}", answer.text());
            let seen = last.lock().take().unwrap();
            assert_eq!((seen.method(), seen.target()), ("POST", row));
            assert_eq!(seen.body, body.as_bytes());
        }
    }
    assert_eq!(raw.requests(), 2 * rows.len());
}

/// C04: what ends at a hop ends there, and what the gateway states cannot be taken away.
#[tokio::test]
async fn fields_of_a_connection_end_with_it() {
    let raw = Raw::answering(|_| {
        b"HTTP/1.1 200 OK\r\nConnection: X-Internal\r\nX-Internal: 1\r\nKeep-Alive: max=3\r\n\
          X-Kept: 1\r\nContent-Length: 2\r\n\r\nok"
            .to_vec()
    })
    .await;
    let served = served(&raw);
    let host = served.app(env(1));
    let answer = ask(
        served.address,
        "GET /",
        &host,
        &[
            TOKEN,
            "Connection: close, X-Forwarded-User, Cookie, Host, X-Secret,, X-FORWARDED-FOR",
            "Connection: x-second",
            "X-Secret: 1",
            "X-Second: 1",
            "Keep-Alive: timeout=5",
            "TE: trailers, deflate",
            "Proxy-Authorization: Basic eA==",
            "Proxy-Connection: keep-alive",
            "Upgrade: h2c",
            "HTTP2-Settings: AAAA",
            "X-Kept: 1",
        ],
    )
    .await;
    let seen = raw.text().to_ascii_lowercase();
    for gone in [
        "x-secret",
        "x-second",
        "keep-alive",
        "\r\nte:",
        "proxy-",
        "upgrade",
        "http2-settings",
        "wk_alice",
        "x-wakeful-token",
    ] {
        assert!(!seen.contains(gone), "{gone} in {seen}");
    }
    for kept in ["x-kept: 1", "x-forwarded-for: 127.0.0.1", &format!("host: {host}")] {
        assert!(seen.contains(kept), "{kept} not in {seen}");
    }
    assert_eq!(answer.header("x-kept"), Some("1"));
    for gone in ["x-internal", "keep-alive"] {
        assert_eq!(answer.header(gone), None, "{}", answer.head);
    }
    // The client's `close` is not the upstream connection's.
    let answer = ask(served.address, "GET /", &host, &[TOKEN]).await;
    assert_eq!(answer.status, 200);
    assert_eq!(raw.connections(), 1);
}

/// C05: a redirect lands under the prefix exactly once.
#[tokio::test]
async fn a_redirect_stays_under_its_prefix() {
    let location = Arc::new(parking_lot::Mutex::new(String::new()));
    let raw = Raw::answering({
        let location = Arc::clone(&location);
        move |_| {
            format!(
                "HTTP/1.1 302 Found\r\nLocation: {}\r\nContent-Length: 0\r\n\r\n",
                location.lock()
            )
            .into_bytes()
        }
    })
    .await;
    let served = served(&raw);
    let prefix = agent("");
    let rows = [
        ("/login".to_owned(), format!("{prefix}/login")),
        ("login".to_owned(), "login".to_owned()),
        ("../c".to_owned(), "../c".to_owned()),
        ("?p=2".to_owned(), "?p=2".to_owned()),
        (format!("{prefix}/login"), format!("{prefix}/login")),
        (format!("http://{}/next", raw.address), format!("{prefix}/next")),
        ("https://other.example/".to_owned(), "https://other.example/".to_owned()),
        ("//cdn.example/x".to_owned(), "//cdn.example/x".to_owned()),
    ];
    for (sent, expected) in rows {
        location.lock().clone_from(&sent);
        let line = format!("GET {}", agent("/a/b?x=1"));
        let answer = ask(served.address, &line, &served.main(), &[TOKEN]).await;
        assert_eq!(answer.status, 302);
        let seen = answer.header("location").unwrap();
        let seen = seen.strip_prefix(&served.hosts.main_origin()).unwrap_or(seen);
        assert_eq!(seen, expected, "{sent}");
    }
    for method in ["GET", "POST"] {
        let line = format!("{method} {}?x=1", agent(""));
        let answer = ask(served.address, &line, &served.main(), &[TOKEN]).await;
        assert_eq!(answer.status, 308);
        assert_eq!(answer.header("location"), Some(agent("/?x=1").as_str()));
    }
}

/// C08 (a): a kept connection that its peer has closed costs nobody a request.
#[tokio::test]
async fn a_get_that_meets_a_closed_connection_is_sent_again() {
    // Closes each connection right after its second request has come, unanswered, as a server
    // does whose idle timeout runs out at that very moment.
    let raw = Raw::start(|mut conn| async move {
        if conn.request().await.is_some() {
            conn.send(&ok("one")).await;
            if conn.index % 2 == 0 {
                let _ = conn.more().await;
            }
        }
    })
    .await;
    let served = served(&raw);
    let host = served.app(env(1));
    for _ in 0..20 {
        let mut client = Client::connect(served.address).await;
        client.send(request("GET /", &host, &[TOKEN])).await;
        assert_eq!(client.answer_to("GET").await.unwrap().status, 200);
        tokio::time::sleep(Duration::from_millis(5)).await;
        client.send(request("GET /", &host, &[TOKEN])).await;
        let answer = client.answer_to("GET").await.unwrap();
        assert_eq!(answer.status, 200, "{}", answer.text());
    }
}

/// C08 (b), (c): a POST arrives once, or not at all.
#[tokio::test]
async fn a_post_is_never_sent_twice() {
    let arrived = Arc::new(AtomicUsize::new(0));
    let raw = Raw::start({
        let arrived = Arc::clone(&arrived);
        move |mut conn| {
            let arrived = Arc::clone(&arrived);
            async move {
                if conn.request().await.is_some() {
                    arrived.fetch_add(1, SeqCst);
                    conn.send(&ok("one")).await;
                }
                // And closes.
            }
        }
    })
    .await;
    let served = served(&raw);
    let host = served.app(env(1));
    for size in [1 << 10, 1 << 20] {
        for _ in 0..20 {
            let before = arrived.load(SeqCst);
            let body = "x".repeat(size);
            let bytes = format!(
                "POST / HTTP/1.1\r\nHost: {host}\r\n{TOKEN}\r\nContent-Length: {size}\r\n\r\n{body}"
            );
            let answer = ask_raw(served.address, bytes).await;
            let after = arrived.load(SeqCst) - before;
            match answer.status {
                200 => assert_eq!(after, 1),
                502 => assert!(after <= 1, "{after}"),
                status => panic!("{status}"),
            }
        }
    }
}

/// C08 (d), (e): what may have been done, or was answered in part, is not done again.
#[tokio::test]
async fn a_request_that_may_have_been_done_is_a_502() {
    let rows: [(&str, &'static [u8]); 3] =
        [("POST", b""), ("GET", b"HTTP/1.1 200 OK\r\nContent-"), ("PUT", b"HTTP/1.1 200 OK\r\n")];
    for (method, part) in rows {
        let arrived = Arc::new(AtomicUsize::new(0));
        let raw = Raw::start({
            let arrived = Arc::clone(&arrived);
            move |mut conn| {
                let arrived = Arc::clone(&arrived);
                async move {
                    while let Some(request) = conn.request().await {
                        if request.target() == "/first" {
                            conn.send(&ok("")).await;
                            continue;
                        }
                        arrived.fetch_add(1, SeqCst);
                        conn.send(part).await;
                        if !part.is_empty() {
                            tokio::time::sleep(Duration::from_millis(20)).await;
                        }
                        return conn.reset();
                    }
                }
            }
        })
        .await;
        let served = served(&raw);
        let host = served.app(env(1));
        // Once on a kept connection, where a retry would be tempting, and once on a new one.
        for _ in 0..2 {
            arrived.store(0, SeqCst);
            let first = ask(served.address, "GET /first", &host, &[TOKEN]).await;
            assert_eq!(first.status, 200);
            tokio::time::sleep(Duration::from_millis(5)).await;
            let answer = ask(
                served.address,
                &format!("{method} /second"),
                &host,
                &[TOKEN, "Content-Length: 0"],
            )
            .await;
            assert_eq!(answer.status, 502, "{method}");
            assert_eq!(arrived.load(SeqCst), 1, "{method}");
        }
    }
}

#[tokio::test]
async fn an_apps_own_error_stays_its_own() {
    let raw =
        Raw::answering(|_| b"HTTP/1.1 404 Not Found\r\nContent-Length: 4\r\n\r\nmine".to_vec())
            .await;
    let served = served(&raw);
    let answer = ask(served.address, "GET /", &served.app(env(1)), &[TOKEN]).await;
    assert_eq!((answer.status, answer.text().as_str()), (404, "mine"));
    assert!(served.control.failures().is_empty());
}

/// C31: nobody states who they are but the gateway, and no program speaks for the whole site.
#[tokio::test]
async fn identity_is_the_gateways_to_state() {
    let raw = Raw::answering(|_| {
        b"HTTP/1.1 200 OK\r\nSet-Cookie: wakeful_session=evil; Path=/\r\n\
          Set-Cookie: a=1; Domain=wakeful.localhost\r\nSet-Cookie: ok=1; Path=/\r\n\
          Clear-Site-Data: \"cookies\"\r\nContent-Length: 2\r\n\r\nok"
            .to_vec()
    })
    .await;
    let served = served(&raw);
    let answer = ask(
        served.address,
        &format!("GET {}", agent("/x")),
        &served.main(),
        &[
            TOKEN,
            "X-Forwarded-User: admin",
            "x-forwarded-USER: admin",
            "X_Forwarded_User: admin",
            "X-Wakeful-User: admin",
            "X-Forwarded-For: 10.0.0.1",
            "Forwarded: for=10.0.0.1",
            "X-Forwarded-Proto: https",
            "X-Original-Method: OPTIONS",
            "Cookie: wakeful_session=secret; mine=1",
        ],
    )
    .await;
    // A cookie that stands for nobody beside a good token changes nothing.
    assert_eq!(answer.status, 200, "{}", answer.text());
    let seen = raw.text().to_ascii_lowercase();
    for gone in ["admin", "10.0.0.1", "https", "options", "secret", "wk_alice"] {
        assert!(!seen.contains(gone), "{gone} in {seen}");
    }
    for (name, value) in [
        ("x-forwarded-for", "127.0.0.1"),
        ("x-forwarded-proto", "http"),
        ("x-wakeful-user", "alice"),
    ] {
        let line = format!("\r\n{name}: {value}\r\n");
        assert_eq!(seen.matches(&line).count(), 1, "{line:?} in {seen}");
    }
    assert!(seen.contains("cookie: mine=1\r\n"), "{seen}");
    let set = answer.all("set-cookie").join("\n");
    assert!(!set.contains("evil") && !set.to_ascii_lowercase().contains("domain"), "{set}");
    assert!(answer.header("clear-site-data").is_none());
}

/// C32: nobody walks out of their own prefix, and the other environment hears nothing of it.
#[tokio::test]
async fn nobody_walks_out_of_a_prefix() {
    let (mine, other) = (Raw::ok().await, Raw::ok().await);
    let control = Control::ready(1, &mine.upstream());
    control.add(2, "bob", wakeful_wire::gate::GateState::Ready, &other.upstream());
    let served = Served::start(control);
    let e2 = format!("/api/proxy/{}", env(2));
    for row in [
        agent(&format!("/../{}/s", env(2))),
        agent(&format!("/%2e%2e/{}/s", env(2))),
        agent(&format!("/..%2f{}/s", env(2))),
        agent(&format!("/.%2e%5c{}/s", env(2))),
        agent(&format!(";x/../{}/s", env(2))),
        agent(&format!("\\..\\{}\\s", env(2))),
        agent("/a%00b"),
    ] {
        for upgrade in [&[TOKEN][..], &[TOKEN, "Connection: Upgrade", "Upgrade: x"]] {
            let answer = ask(served.address, &format!("GET {row}"), &served.main(), upgrade).await;
            assert_eq!(answer.status, 400, "{row}");
        }
    }
    let rows = [
        (format!("GET {e2}/s"), served.main(), 404),
        (format!("GET http://{}{e2}/s", served.main()), served.main(), 404),
        (format!("GET /api/proxy/{}/s", env(2).to_string().to_uppercase()), served.main(), 404),
        ("GET /s".to_owned(), served.app(env(2)), 404),
        ("GET /s".to_owned(), served.app(env(2)).to_uppercase(), 404),
        ("GET /s".to_owned(), format!("{}-dev.apps.wakeful.localhost.", env(2)), 404),
        ("GET /s".to_owned(), format!("{}.apps.wakeful.localhost.evil.example", env(1)), 421),
        ("GET /s".to_owned(), "evil.example".to_owned(), 421),
        ("GET /s".to_owned(), "[::1]:8080".to_owned(), 200),
        ("GET /s".to_owned(), String::new(), 400),
    ];
    for (line, host, status) in rows {
        let answer = ask(served.address, &line, &host, &[TOKEN]).await;
        assert_eq!(answer.status, status, "{line} {host}");
    }
    for bytes in [
        format!("GET /s HTTP/1.1\r\n{TOKEN}\r\n\r\n"),
        format!("GET /s HTTP/1.1\r\nHost: {0}\r\nHost: {0}\r\n{TOKEN}\r\n\r\n", served.app(env(1))),
    ] {
        assert_eq!(ask_raw(served.address, bytes).await.status, 400);
    }
    // The same host with a port, upper case and a trailing dot is still one's own.
    for host in [
        format!("{}-dev.apps.wakeful.localhost:1", env(1)),
        format!("{}-dev.apps.wakeful.localhost.", env(1)),
        format!("{}-DEV.apps.WAKEFUL.localhost", env(1)),
    ] {
        assert_eq!(ask(served.address, "GET /s", &host, &[TOKEN]).await.status, 200, "{host}");
    }
    assert_eq!(other.connections(), 0);
    assert_eq!(served.control.ensures_of(2), 0, "and it is not woken");
}

/// C49 (a), (j): a refusal invites no body; (f): a surface's early refusal arrives.
#[tokio::test]
async fn an_early_answer_arrives_and_invites_nothing() {
    let raw = Raw::start(|mut conn| async move {
        let Some(head) = conn.head().await else { return };
        let status = if head.starts_with("PUT /413") { "413 Too Large" } else { "401 No" };
        conn.send(format!("HTTP/1.1 {status}\r\nContent-Length: 5\r\n\r\nearly").as_bytes()).await;
    })
    .await;
    let served = served(&raw);
    let host = served.app(env(1));
    let size = 11 << 20;
    // Nobody is signed in: no 100, no byte taken, and nobody woken.
    let expecting = format!(
        "PUT /x HTTP/1.1\r\nHost: {host}\r\nExpect: 100-continue\r\nContent-Length: {size}\r\n\r\n"
    );
    let answer = ask_raw(served.address, &expecting).await;
    assert_eq!(answer.status, 401);
    assert!(served.control.ensures().is_empty());
    // The surface's own refusals, and the gateway's, which reads no body at all.
    for (path, token, status) in [("413", TOKEN, 413), ("401", TOKEN, 401), ("", "X-No: 1", 401)] {
        for _ in 0..5 {
            // A client that reads only after it has written everything.
            let mut client = Client::connect(served.address).await;
            client
                .send(format!(
                    "PUT /{path} HTTP/1.1\r\nHost: {host}\r\n{token}\r\nContent-Length: {size}\r\n\r\n"
                ))
                .await;
            let chunk = vec![b'x'; 1 << 20];
            for _ in 0..11 {
                client.stream.write_all_ok(&chunk).await;
            }
            let answer = client.answer_to("PUT").await.expect("the answer is not lost in a reset");
            assert_eq!(answer.status, status);
            assert_eq!(answer.text() == "early", token == TOKEN);
            // The connection may go on or end, but not by a reset.
            tokio::io::AsyncWriteExt::shutdown(&mut client.stream).await.unwrap();
            let end = soon(tokio::io::AsyncReadExt::read(&mut client.stream, &mut [0; 1])).await;
            assert_eq!(end.unwrap(), 0);
        }
    }
}

/// C49 (a), (d), (h): 100 comes when the surface can take the body, and never to HTTP/1.0.
#[tokio::test]
async fn a_body_is_invited_when_the_surface_is_there() {
    let raw = Raw::answering(|request| ok(&request.body.len().to_string())).await;
    let served = served(&raw);
    let host = served.app(env(1));
    let mut client = Client::connect(served.address).await;
    let head = |version: &str| {
        format!(
            "PUT / HTTP/{version}\r\nHost: {host}\r\n{TOKEN}\r\nExpect: 100-continue\r\n\
             Content-Length: 10\r\n\r\n"
        )
    };
    client.send(head("1.1")).await;
    assert_eq!(client.answer_to("PUT").await.unwrap().status, 100);
    client.send("0123456789").await;
    assert_eq!(client.answer_to("PUT").await.unwrap().text(), "10");
    let mut client = Client::connect(served.address).await;
    client.send(head("1.0") + "0123456789").await;
    assert_eq!(client.answer_to("PUT").await.unwrap().status, 200);
    assert!(!raw.text().to_ascii_lowercase().contains("expect"));
}

#[tokio::test]
async fn an_expectation_that_is_unknown_is_ignored() {
    let raw = Raw::answering(|request| ok(&request.body.len().to_string())).await;
    let served = served(&raw);
    let headers = [TOKEN, "Expect: foo", "Content-Length: 0"];
    let answer = ask(served.address, "PUT /", &served.app(env(1)), &headers).await;
    assert_eq!((answer.status, answer.text().as_str()), (200, "0"));
}

#[tokio::test]
async fn requests_sent_at_once_are_answered_in_their_order() {
    let raw = Raw::answering(|request| ok(request.target())).await;
    let served = served(&raw);
    let host = served.app(env(1));
    let mut client = Client::connect(served.address).await;
    let all: String = (0..10).map(|n| request(&format!("GET /{n}"), &host, &[TOKEN])).collect();
    client.send(all).await;
    for n in 0..10 {
        assert_eq!(client.answer_to("GET").await.unwrap().text(), format!("/{n}"));
    }
}

/// C28: 14 KB of cookies pass, 40 KB get 431 and not a reset.
#[tokio::test]
async fn heads_are_bounded_and_the_bound_is_told() {
    let raw = Raw::ok().await;
    let served = served(&raw);
    let host = served.app(env(1));
    let cookie = |size: usize| format!("Cookie: x={}", "c".repeat(size));
    let answer = ask(served.address, "GET /", &host, &[TOKEN, &cookie(14 << 10)]).await;
    assert_eq!(answer.status, 200);
    for size in [40 << 10, 300 << 10] {
        let answer = ask(served.address, "GET /", &host, &[TOKEN, &cookie(size)]).await;
        assert_eq!(answer.status, 431, "{size}");
    }
}

#[tokio::test]
async fn answers_without_a_body_have_none() {
    let raw = Raw::answering(|request| match request.target() {
        "/204" => b"HTTP/1.1 204 No Content\r\n\r\n".to_vec(),
        "/304" => b"HTTP/1.1 304 Not Modified\r\nETag: \"x\"\r\n\r\n".to_vec(),
        "/304-length" => b"HTTP/1.1 304 Not Modified\r\nContent-Length: 10\r\n\r\n".to_vec(),
        _ => b"HTTP/1.1 200 OK\r\nContent-Length: 1234\r\n\r\n".to_vec(),
    })
    .await;
    let served = served(&raw);
    let host = served.app(env(1));
    let mut client = Client::connect(served.address).await;
    for (line, status, length) in [
        ("GET /204", 204, None),
        ("GET /304", 304, None),
        ("GET /304-length", 304, None),
        ("HEAD /", 200, Some("1234")),
    ] {
        client.send(request(line, &host, &[TOKEN])).await;
        let answer = client.answer_to(line.split(' ').next().unwrap()).await.unwrap();
        assert_eq!(answer.status, status);
        assert_eq!(answer.header("content-length"), length, "{line}");
        assert_eq!(answer.header("transfer-encoding"), None, "{line}");
    }
    assert_eq!(raw.connections(), 1, "and the one connection is kept");
}

#[tokio::test]
async fn interim_answers_are_dropped_and_the_final_one_arrives() {
    let raw = Raw::answering(|_| {
        let mut bytes = b"HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n".to_vec();
        bytes.extend_from_slice(b"HTTP/1.1 100 Continue\r\n\r\n");
        bytes.extend(ok("final"));
        bytes
    })
    .await;
    let served = served(&raw);
    let answer = ask(served.address, "GET /", &served.app(env(1)), &[TOKEN]).await;
    assert_eq!((answer.status, answer.text().as_str()), (200, "final"));
}

#[tokio::test]
async fn the_basic_auth_of_an_environment_is_injected_and_the_visitors_is_not_passed() {
    let raw = Raw::ok().await;
    let control = Control::ready(1, &raw.upstream());
    control.change(1, |env| {
        for upstream in env.upstreams.values_mut() {
            *upstream = wakeful_wire::gate::Upstream::Tcp {
                address: raw.address,
                basic: Some("opencode:random".to_owned()),
            };
        }
    });
    let served = Served::start(control);
    let visitor = format!("Authorization: {}", basic("u:p"));
    let line = format!("GET {}", agent("/"));
    ask(served.address, &line, &served.main(), &[TOKEN, &visitor]).await;
    let seen = raw.text();
    assert!(seen.contains(&format!("uthorization: {}\r\n", basic("opencode:random"))), "{seen}");
    assert!(!seen.contains(&basic("u:p")));
}

#[tokio::test]
async fn a_page_of_a_path_route_leads_to_the_surfaces_own_host() {
    let raw = Raw::ok().await;
    let served = served(&raw);
    let cookie = format!("Cookie: wakeful_session={ALICE_SESSION}");
    let page = ["Sec-Fetch-Mode: navigate", "Sec-Fetch-Site: none", &cookie];
    let line = format!("GET {}", agent("/a?b=1"));
    let answer = ask(served.address, &line, &served.main(), &page).await;
    assert_eq!(answer.status, 307, "{}", answer.text());
    let expected = format!("http://{}/a?b=1", served.on(env(1), "agent"));
    assert_eq!(answer.header("location"), Some(expected.as_str()));
    assert_eq!(raw.connections(), 0);
    let own = ["Sec-Fetch-Site: same-origin", "Sec-Fetch-Mode: cors", &cookie];
    let answer = ask(served.address, &line, &served.main(), &own).await;
    assert_eq!(answer.status, 200);
    assert_eq!(answer.header("content-security-policy"), Some("sandbox"));
    assert_eq!(answer.header("x-content-type-options"), Some("nosniff"));
}

#[tokio::test]
async fn many_requests_share_few_connections() {
    let raw = Raw::ok().await;
    let served = served(&raw);
    let mut client = Client::connect(served.address).await;
    let host = served.app(env(1));
    let start = tokio::time::Instant::now();
    for _ in 0..200 {
        client.send(request("GET /", &host, &[TOKEN])).await;
        assert_eq!(client.answer_to("GET").await.unwrap().status, 200);
    }
    assert!(raw.connections() <= 2, "{}", raw.connections());
    // One answer is good for five seconds.
    let asked = served.control.ensures().len() as u64;
    let seconds = start.elapsed().as_secs();
    assert!((1..=1 + seconds / 5).contains(&asked), "{asked} in {seconds} s");
    assert_eq!(served.control.authenticated(), 1);
    assert_eq!(served.metric("wakeful_ensure_calls_total"), asked);
    until("all are counted", || served.metric(r#"wakeful_requests_total{class="2xx"}"#) == 200)
        .await;
}

#[tokio::test]
async fn an_idle_client_is_let_go_and_a_slow_head_is_not_waited_for() {
    let raw = Raw::ok().await;
    let served = Served::with(Control::ready(1, &raw.upstream()), |config| {
        // Long enough for somebody who is not slow on a slow machine.
        config.client.head_timeout = Duration::from_secs(2);
        config.client.idle_timeout = Duration::from_secs(2);
    });
    let mut slow = Client::connect(served.address).await;
    slow.send("GET / HTTP/1.1\r\nHost: x").await;
    assert!(soon(slow.ended()).await);
    let mut idle = Client::connect(served.address).await;
    idle.send(request("GET /", &served.app(env(1)), &[TOKEN])).await;
    assert_eq!(idle.answer_to("GET").await.unwrap().status, 200);
    assert!(soon(idle.ended()).await);
}

#[tokio::test]
async fn an_answer_may_take_longer_than_any_timeout_of_a_head() {
    let (go, wait) = tokio::sync::watch::channel(false);
    let raw = Raw::start(move |mut conn| {
        let mut wait = wait.clone();
        async move {
            conn.request().await;
            wait.wait_for(|go| *go).await.unwrap();
            conn.send(&ok("late")).await;
        }
    })
    .await;
    let served = Served::with(Control::ready(1, &raw.upstream()), |config| {
        config.client.head_timeout = Duration::from_secs(1);
        config.client.idle_timeout = Duration::from_secs(1);
    });
    let mut client = Client::connect(served.address).await;
    client.send(request("GET /", &served.app(env(1)), &[TOKEN])).await;
    until("it is in flight", || raw.requests() == 1).await;
    // Those who came after it are let go by either timeout.
    let mut slow = Client::connect(served.address).await;
    slow.send("GET / HTTP/1.1\r\nHost: x").await;
    let mut idle = Client::connect(served.address).await;
    assert!(soon(slow.ended()).await && soon(idle.ended()).await);
    go.send(true).unwrap();
    assert_eq!(client.answer_to("GET").await.unwrap().text(), "late");
}

#[tokio::test]
async fn an_aborted_upload_never_looks_complete() {
    let ends = Arc::new(parking_lot::Mutex::new(Vec::new()));
    let raw = Raw::start({
        let ends = Arc::clone(&ends);
        move |mut conn| {
            let ends = Arc::clone(&ends);
            async move {
                let end = loop {
                    match conn.more_or_error().await {
                        Ok(true) => {}
                        Ok(false) => break "end",
                        Err(_) => break "reset",
                    }
                };
                ends.lock().push((end, conn.index));
            }
        }
    })
    .await;
    let served = served(&raw);
    let host = served.app(env(1));
    for framing in ["Content-Length: 1000000", "Transfer-Encoding: chunked"] {
        let seen = ends.lock().len();
        let mut client = Client::connect(served.address).await;
        client
            .send(format!("PUT /up HTTP/1.1\r\nHost: {host}\r\n{TOKEN}\r\n{framing}\r\n\r\n"))
            .await;
        client.send("5\r\nhello\r\n").await;
        until("the beginning arrives", || {
            raw.bytes().last().is_some_and(|b| b.ends_with(b"hello\r\n"))
        })
        .await;
        drop(client);
        until("the end is seen", || ends.lock().len() > seen).await;
        let (end, index) = ends.lock()[seen];
        assert_eq!(end, "reset", "{framing}");
        assert!(!raw.bytes()[index].ends_with(b"0\r\n\r\n"));
    }
    until("both are counted as left", || {
        served.metric(r#"wakeful_requests_total{class="499"}"#) == 2
    })
    .await;
    assert!(served.control.failures().is_empty(), "a client that leaves is no failure");
}

#[tokio::test]
async fn an_upload_of_many_megabytes_streams_through() {
    let raw = Raw::answering(|request| {
        let sum: u64 = request.body.iter().map(|byte| u64::from(*byte)).sum();
        ok(&format!("{} {sum}", request.body.len()))
    })
    .await;
    let served = served(&raw);
    let size = 20 << 20;
    let body: Vec<u8> = (0..size).map(|n| u8::try_from(n % 251).unwrap()).collect();
    let sum: u64 = body.iter().map(|byte| u64::from(*byte)).sum();
    let mut client = Client::connect(served.address).await;
    let host = served.app(env(1));
    client
        .send(format!(
            "PUT / HTTP/1.1\r\nHost: {host}\r\n{TOKEN}\r\nContent-Length: {size}\r\n\r\n"
        ))
        .await;
    client.send(&body).await;
    assert_eq!(client.answer_to("PUT").await.unwrap().text(), format!("{size} {sum}"));
}

#[tokio::test]
async fn both_loopback_addresses_and_several_cores_are_served() {
    let raw = Raw::ok().await;
    for threads in [wakeful_gateway::Threads::PerCore(3), wakeful_gateway::Threads::Shared(2)] {
        let served = Served::with(Control::ready(1, &raw.upstream()), |config| {
            config.threads = threads;
        });
        let host = served.app(env(1));
        let all = (0..50).map(|_| ask(served.address, "GET /", &host, &[TOKEN]));
        for answer in futures::future::join_all(all).await {
            assert_eq!(answer.status, 200);
        }
        served.stop().await;
    }
    let listeners =
        wakeful_gateway::listen(&["127.0.0.1:0".parse().unwrap(), "[::1]:0".parse().unwrap()]);
    assert_eq!(listeners.unwrap().len(), 2);
}

#[tokio::test]
async fn a_stop_lets_answers_under_way_finish_and_takes_no_more() {
    let raw = Raw::start(|mut conn| async move {
        conn.request().await;
        conn.send(b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n01234").await;
        tokio::time::sleep(Duration::from_millis(300)).await;
        conn.send(b"56789").await;
        let _ = conn.more().await;
    })
    .await;
    let served = Served::with(Control::ready(1, &raw.upstream()), |config| {
        // Whatever waits for the end of the drain fails this test.
        config.client.drain_timeout = Duration::from_secs(600);
    });
    let mut client = Client::connect(served.address).await;
    client.send(request("GET /", &served.app(env(1)), &[TOKEN])).await;
    let head = client.head().await.unwrap();
    assert!(head.contains(" 200 "));
    let mut idle = Client::connect(served.address).await;
    idle.send(request("GET /healthz", &served.main(), &[])).await;
    assert!(idle.answer_to("GET").await.is_some());
    served.shut_down();
    assert_eq!(client.exactly(10).await.unwrap(), b"0123456789");
    assert!(client.ended().await && idle.ended().await);
    served.stop().await;
}

#[tokio::test]
async fn a_stop_ends_the_main_hosts_event_streams_between_two_events() {
    let raw = Raw::start(|_| async {}).await;
    let served = Served::with(Control::ready(1, &raw.upstream()), |config| {
        config.client.drain_timeout = Duration::from_secs(600);
    });
    let mut client = Client::connect(served.address).await;
    client.send(request("GET /api/events", &served.main(), &[])).await;
    client.head().await.unwrap();
    assert_eq!(client.exactly(16).await.unwrap(), b"B\r\ndata: one\n\n\r\n");
    served.shut_down();
    assert_eq!(client.exactly(5).await.unwrap(), b"0\r\n\r\n", "it looks whole");
    assert!(client.ended().await);
    served.stop().await;
}

/// Writes what a peer may have stopped to take.
trait WriteAllOk {
    async fn write_all_ok(&mut self, bytes: &[u8]);
}

impl WriteAllOk for tokio::net::TcpStream {
    async fn write_all_ok(&mut self, bytes: &[u8]) {
        let _ = tokio::io::AsyncWriteExt::write_all(self, bytes).await;
    }
}
