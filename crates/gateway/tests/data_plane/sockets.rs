//! WebSockets (`cases.md`, C10, C11, C13, C14) and how they are refused.

use std::time::Duration;

use tokio::io::AsyncWriteExt;
use wakeful_wire::{
    Phase,
    gate::{FailureKind, GateState, LeaseKind},
};

use crate::{
    http::TOKEN,
    support::{
        Served,
        client::{ACCEPT, Answer, Client, close_of, handshake, masked, switching, unmasked},
        control::{ALICE_SURFACE, Control, env},
        raw::Raw,
        soon, until,
    },
};

fn served(raw: &Raw) -> Served {
    Served::start(Control::ready(1, &raw.upstream()))
}

/// Answers a handshake with its own frame in the same segment, and echoes what comes.
async fn echo() -> Raw {
    Raw::start(|mut conn| async move {
        if conn.head().await.is_none() {
            return;
        }
        let mut bytes = switching(&[]).into_bytes();
        bytes.extend(unmasked("first"));
        conn.send(&bytes).await;
        let mut seen = 0;
        loop {
            let fresh = conn.pending()[seen..].to_vec();
            seen += fresh.len();
            // Frames of this test are short and masked with zeroes.
            let mut rest = &fresh[..];
            while rest.len() >= 6 {
                let length = usize::from(rest[1] & 0x7f);
                let text = std::str::from_utf8(&rest[6..6 + length]).unwrap().to_owned();
                conn.send(&unmasked(&text)).await;
                rest = &rest[6 + length..];
            }
            if !conn.more().await {
                return;
            }
        }
    })
    .await
}

async fn upgrade(served: &Served, headers: &[&str]) -> (Client, Answer) {
    let mut client = Client::connect(served.address).await;
    let mut all = vec![TOKEN];
    all.extend_from_slice(headers);
    client.send(handshake("/ws", &served.app(env(1)), &all)).await;
    let answer = client.answer_to("GET").await.unwrap();
    (client, answer)
}

/// C10: the endpoint answers the handshake, and nobody else.
#[tokio::test]
async fn the_surface_chooses_subprotocol_and_extensions() {
    let offers = [
        &["Sec-WebSocket-Protocol: v2.bin, v1.json, token.abc123"][..],
        &[
            "Sec-WebSocket-Protocol: v2.bin",
            "Sec-WebSocket-Protocol: v1.json",
            "Sec-WebSocket-Protocol: token.abc123",
        ],
    ];
    let extensions = "Sec-WebSocket-Extensions: permessage-deflate; client_max_window_bits";
    for offer in offers {
        for (chosen, status) in [
            (&["Sec-WebSocket-Protocol: v1.json"][..], 101),
            (&[], 101),
            (&["Sec-WebSocket-Protocol: never.offered"], 502),
            (&["Sec-WebSocket-Extensions: permessage-deflate"], 101),
        ] {
            let raw = Raw::start(move |mut conn| async move {
                conn.head().await;
                conn.send(switching(chosen).as_bytes()).await;
                while conn.more().await {}
            })
            .await;
            let served = served(&raw);
            let mut headers = offer.to_vec();
            headers.push(extensions);
            let (_client, answer) = upgrade(&served, &headers).await;
            assert_eq!(answer.status, status, "{chosen:?}: {}", answer.head);
            if status == 101 {
                assert_eq!(answer.header("sec-websocket-accept"), Some(ACCEPT));
                for name in ["sec-websocket-protocol", "sec-websocket-extensions"] {
                    let expected = chosen.iter().find_map(|line| {
                        let (have, value) = line.split_once(": ")?;
                        have.eq_ignore_ascii_case(name).then_some(value)
                    });
                    assert_eq!(answer.header(name), expected);
                }
            } else {
                assert_eq!(served.control.failures()[0].kind, FailureKind::Handshake);
            }
            // The offer arrived complete and in order.
            let seen = raw.text();
            let offered = crate::support::raw::values(&seen, "sec-websocket-protocol").join(", ");
            assert_eq!(offered, "v2.bin, v1.json, token.abc123");
            assert!(seen.contains("permessage-deflate; client_max_window_bits"));
        }
    }
}

/// C10 (c), (e): another answer than 101 is the surface's own, and nothing is said before it.
#[tokio::test]
async fn a_refusal_of_the_surface_is_passed_on_unchanged() {
    let (go, wait) = tokio::sync::oneshot::channel::<()>();
    let wait = std::sync::Arc::new(parking_lot::Mutex::new(Some(wait)));
    let raw = Raw::start(move |mut conn| {
        let wait = wait.lock().take();
        async move {
            conn.head().await;
            if let Some(wait) = wait {
                wait.await.unwrap();
            }
            conn.send(b"HTTP/1.1 403 Forbidden\r\nX-Mine: 1\r\nContent-Length: 4\r\n\r\nmine")
                .await;
            while conn.more().await {}
        }
    })
    .await;
    let served = served(&raw);
    let mut client = Client::connect(served.address).await;
    client.send(handshake("/ws", &served.app(env(1)), &[TOKEN])).await;
    until("the handshake arrives", || raw.text().contains("\r\n\r\n")).await;
    let mut one = [0; 1];
    let early = tokio::time::timeout(Duration::from_millis(50), client.stream.peek(&mut one)).await;
    assert!(early.is_err(), "nothing is said before the surface has spoken");
    go.send(()).unwrap();
    let answer = client.answer_to("GET").await.unwrap();
    assert_eq!((answer.status, answer.text().as_str()), (403, "mine"));
    assert_eq!(answer.header("x-mine"), Some("1"));
    // A page's script learns nothing from that, so it is told by a close code.
    let origin = format!("Origin: {}", served.hosts.main_origin());
    let (mut client, answer) = upgrade(&served, &[&origin]).await;
    assert_eq!(answer.status, 101);
    while client.more().await {}
    assert_eq!(close_of(&client.buffer).0, 1011);
}

/// C11: early frames of both sides arrive, in order, every time.
#[tokio::test]
async fn a_thousand_handshakes_lose_no_early_frame() {
    let raw = echo().await;
    let served = served(&raw);
    let host = served.app(env(1));
    let round = |n: usize| {
        let (address, host) = (served.address, host.clone());
        async move {
            let mut client = Client::connect(address).await;
            let mut bytes = handshake("/ws", &host, &[TOKEN]).into_bytes();
            bytes.extend(masked(&format!("hello {n}")));
            client.send(bytes).await;
            let answer = client.answer_to("GET").await.unwrap();
            assert_eq!(answer.status, 101, "{}", answer.head);
            let mut expected = unmasked("first");
            expected.extend(unmasked(&format!("hello {n}")));
            assert_eq!(client.exactly(expected.len()).await.unwrap(), expected);
            client.send(masked("more")).await;
            assert_eq!(client.exactly(6).await.unwrap(), unmasked("more"));
        }
    };
    for n in 0..1000 {
        round(n).await;
    }
    futures::future::join_all((0..200).map(round)).await;
    until("all are let go", || served.metric("wakeful_leases") == 0 && raw.open() == 0).await;
}

/// C11: a token list is a list, and an upgrade has no body.
#[tokio::test]
async fn handshakes_are_read_as_lists_in_any_case() {
    let raw = echo().await;
    let served = served(&raw);
    let host = served.app(env(1));
    let key = "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==";
    let rows = [
        (&["Connection: keep-alive, Upgrade", "Upgrade: websocket"][..], 101),
        (&["connection: UPGRADE", "Upgrade: WebSocket"], 101),
        (&["Connection: keep-alive", "Connection: Upgrade", "Upgrade: websocket"], 101),
        (&["Connection: Upgrade", "Upgrade: websocket", "Content-Length: 0"], 101),
        (&["Connection: Upgrade", "Upgrade: websocket", "Content-Length: 5"], 400),
    ];
    for (headers, status) in rows {
        let mut all = vec![TOKEN, key, "Sec-WebSocket-Version: 13"];
        all.extend_from_slice(headers);
        let mut client = Client::connect(served.address).await;
        client.send(crate::support::client::request("GET /ws", &host, &all)).await;
        if status == 400 {
            client.send("hello").await;
        }
        let answer = client.answer_to("GET").await.unwrap();
        assert_eq!(answer.status, status, "{headers:?}");
    }
}

/// C14: one side's end of sending is not the other's.
#[tokio::test]
async fn a_half_close_loses_nothing() {
    for round in 0..100 {
        let raw = Raw::start(|mut conn| async move {
            conn.head().await;
            conn.send(switching(&[]).as_bytes()).await;
            // Reads to the client's end, and only then says its last.
            while conn.more().await {}
            tokio::time::sleep(Duration::from_millis(3)).await;
            conn.send(&[b'l'; 35]).await;
        })
        .await;
        let served = served(&raw);
        let (mut client, answer) = upgrade(&served, &[]).await;
        assert_eq!(answer.status, 101);
        client.send(masked("bye")).await;
        client.stream.shutdown().await.unwrap();
        assert_eq!(client.exactly(35).await.unwrap(), [b'l'; 35], "{round}");
        assert!(client.ended().await);
        assert!(raw.bytes()[0].ends_with(&masked("bye")));
        until("it is let go", || served.metric("wakeful_leases") == 0).await;
    }
}

/// C14, mirrored.
#[tokio::test]
async fn a_half_close_of_the_surface_loses_nothing() {
    let raw = Raw::start(|mut conn| async move {
        conn.head().await;
        conn.send(switching(&[]).as_bytes()).await;
        conn.send(&unmasked("bye")).await;
        conn.half_close().await;
        while conn.more().await {}
    })
    .await;
    let served = served(&raw);
    let (mut client, _) = upgrade(&served, &[]).await;
    assert_eq!(client.exactly(5).await.unwrap(), unmasked("bye"));
    assert!(client.ended().await);
    tokio::time::sleep(Duration::from_millis(5)).await;
    client.send([b'l'; 35]).await;
    until("the last bytes arrive", || raw.bytes()[0].ends_with(&[b'l'; 35])).await;
    drop(client);
    until("it is let go", || raw.open() == 0 && served.metric("wakeful_leases") == 0).await;
}

/// C13: there is no limit to a message, and no memory for it.
#[tokio::test]
async fn big_messages_pass_both_ways() {
    let size = 17usize << 20;
    let raw = Raw::start(move |mut conn| async move {
        conn.head().await;
        conn.send(switching(&[]).as_bytes()).await;
        let message = conn.exactly(14 + size).await.unwrap();
        let mut back = vec![0x82, 127];
        back.extend_from_slice(&(size as u64).to_be_bytes());
        back.extend_from_slice(&message[14..]);
        conn.send(&back).await;
        while conn.more().await {}
    })
    .await;
    let served = served(&raw);
    let (mut client, _) = upgrade(&served, &[]).await;
    let mut frame = vec![0x82, 0xff];
    frame.extend_from_slice(&(size as u64).to_be_bytes());
    frame.extend_from_slice(&[0; 4]);
    frame.extend((0..size).map(|n| u8::try_from(n % 251).unwrap()));
    client.send(&frame).await;
    let back = client.exactly(10 + size).await.unwrap();
    assert!(back[10..] == frame[14..]);
}

#[tokio::test]
async fn a_socket_holds_its_environment_while_it_is_open() {
    let raw = echo().await;
    let served = served(&raw);
    let (client, _) = upgrade(&served, &[]).await;
    until("the first socket is reported", || {
        served
            .control
            .activity()
            .iter()
            .any(|report| report.kind == LeaseKind::Socket && report.count == 1 && report.touch)
    })
    .await;
    assert_eq!(served.metric("wakeful_leases"), 1);
    drop(client);
    until("it is given back", || served.metric("wakeful_leases") == 0 && raw.open() == 0).await;
    until("its end is reported, long before the tick", || {
        served.control.activity().last().is_some_and(|report| {
            report.kind == LeaseKind::Socket && report.count == 0 && report.touch
        })
    })
    .await;
}

#[tokio::test]
async fn a_surface_that_ends_a_handshake_without_an_answer_is_a_502_or_1011() {
    let raw = Raw::start(|mut conn| async move {
        conn.head().await;
    })
    .await;
    let served = served(&raw);
    let (_, answer) = upgrade(&served, &[]).await;
    assert_eq!((answer.status, answer.code().as_str()), (502, "upstream_failed"));
    let origin = format!("Origin: {}", served.hosts.main_origin());
    let (mut client, answer) = upgrade(&served, &[&origin]).await;
    assert_eq!(answer.status, 101);
    while client.more().await {}
    assert_eq!(close_of(&client.buffer).0, 1011);
    assert!(served.control.failures().iter().all(|f| f.kind == FailureKind::Handshake));
    assert_eq!(served.metric(r#"wakeful_upstream_failures_total{kind="handshake"}"#), 2);
}

/// A program gets the plain status; a page's script a close code, with the first offered
/// subprotocol, since it reports 1006 without one.
#[tokio::test]
async fn refused_sockets_say_why() {
    let raw = echo().await;
    let control = Control::ready(1, &raw.upstream());
    let bobs = Control::ready(2, &raw.upstream());
    drop(bobs);
    control.add(2, "bob", GateState::Ready, &raw.upstream());
    for (n, state) in [
        (3, GateState::Disabled),
        (4, GateState::Failed),
        (5, GateState::SurfaceFailed),
        (6, GateState::Gone),
    ] {
        control.add(n, "alice", state, &raw.upstream());
    }
    control.add(7, "alice", GateState::Asleep, &raw.upstream());
    control.declare(7, "app", serde_json::json!({ "wake": "never" }));
    let served = Served::start(control);
    let cookie = format!("Cookie: wakeful_surface={ALICE_SURFACE}");
    let rows = [
        (1, None, 401, 4401, ""),
        (2, Some(&cookie), 404, 4404, ""),
        (9, Some(&cookie), 404, 4404, ""),
        (3, Some(&cookie), 423, 4423, "disabled"),
        (4, Some(&cookie), 502, 1011, "failed"),
        (5, Some(&cookie), 502, 1011, "ready"),
        (6, Some(&cookie), 404, 4404, ""),
        (7, Some(&cookie), 503, 4503, "suspended"),
    ];
    for (n, cookie, status, code, reason) in rows {
        let host = served.app(env(n));
        let origin = format!("Origin: http://{host}");
        let mut headers: Vec<&str> = cookie.iter().map(|cookie| cookie.as_str()).collect();
        let mut client = Client::connect(served.address).await;
        client.send(handshake("/ws", &host, &headers)).await;
        let answer = client.answer_to("GET").await.unwrap();
        assert_eq!(answer.status, status, "{n}");
        headers.push(&origin);
        headers.push("Sec-WebSocket-Protocol: one, two");
        headers.push("Sec-WebSocket-Extensions: permessage-deflate");
        let mut client = Client::connect(served.address).await;
        client.send(handshake("/ws", &host, &headers)).await;
        let answer = client.answer_to("GET").await.unwrap();
        assert_eq!(answer.status, 101, "{n}");
        assert_eq!(answer.header("sec-websocket-accept"), Some(ACCEPT));
        assert_eq!(answer.header("sec-websocket-protocol"), Some("one"));
        assert_eq!(answer.header("sec-websocket-extensions"), None);
        while client.more().await {}
        let (have, why) = close_of(&client.buffer);
        assert_eq!(have, code, "{n}");
        if !reason.is_empty() {
            assert_eq!(why, reason, "{n}");
        }
    }
    // A page of another origin.
    let cookie = format!("Cookie: wakeful_surface={ALICE_SURFACE}");
    let mut client = Client::connect(served.address).await;
    let headers = [cookie.as_str(), "Origin: https://evil.example"];
    client.send(handshake("/ws", &served.app(env(1)), &headers)).await;
    assert_eq!(client.answer_to("GET").await.unwrap().status, 101);
    while client.more().await {}
    assert_eq!(close_of(&client.buffer).0, 4403);
    // A name that the environment had once: a program is led on, a browser would follow nothing.
    let old = format!("{}-old.apps.wakeful.localhost:{}", env(1), served.address.port());
    let origin = format!("Origin: http://{old}");
    let mut client = Client::connect(served.address).await;
    client.send(handshake("/ws", &old, &[&cookie, &origin])).await;
    assert_eq!(client.answer_to("GET").await.unwrap().status, 101);
    while client.more().await {}
    assert_eq!(close_of(&client.buffer).0, 4404);
    let mut client = Client::connect(served.address).await;
    client.send(handshake("/ws", &old, &[TOKEN])).await;
    assert_eq!(client.answer_to("GET").await.unwrap().status, 308);
    assert_eq!(raw.connections(), 0, "and nothing reached a surface");
}

#[tokio::test]
async fn a_socket_with_intent_is_held_until_its_environment_is_ready() {
    let raw = echo().await;
    let control = Control::new();
    control.add(1, "alice", GateState::Asleep, &raw.upstream());
    let served = Served::start(control);
    let mut client = Client::connect(served.address).await;
    client.send(handshake("/ws", &served.app(env(1)), &[TOKEN])).await;
    until("it is asked for", || served.control.ensures_of(1) == 1).await;
    served.control.become_ready(1);
    assert_eq!(client.answer_to("GET").await.unwrap().status, 101);
    assert_eq!(client.exactly(7).await.unwrap(), unmasked("first"));
}

#[tokio::test]
async fn a_forced_drain_closes_sockets_with_4503_behind_a_whole_frame() {
    let raw = Raw::start(|mut conn| async move {
        conn.head().await;
        conn.send(switching(&[]).as_bytes()).await;
        conn.send(&unmasked("whole")).await;
        while conn.more().await {}
    })
    .await;
    let served = served(&raw);
    let (mut client, _) = upgrade(&served, &[]).await;
    assert_eq!(client.exactly(7).await.unwrap(), unmasked("whole"));
    until("it is counted", || served.metric("wakeful_leases") == 1).await;
    served.control.drain(1, true);
    while client.more().await {}
    assert_eq!(close_of(&client.buffer), (4503, Phase::Suspending.as_str().to_owned()));
    drop(client);
    until("the surface sees it end", || raw.open() == 0).await;
    until("drained is said in the end", || {
        served.control.drained().last().is_some_and(|answer| answer.drained)
    })
    .await;
    assert!(!served.control.drained()[0].drained, "and not before");
}

#[tokio::test]
async fn a_close_frame_is_put_between_two_frames_and_never_into_one() {
    let (go, wait) = tokio::sync::oneshot::channel::<()>();
    let wait = std::sync::Arc::new(parking_lot::Mutex::new(Some(wait)));
    let frame = unmasked(&"f".repeat(100));
    let raw = Raw::start({
        let frame = frame.clone();
        move |mut conn| {
            let (wait, frame) = (wait.lock().take().unwrap(), frame.clone());
            async move {
                conn.head().await;
                conn.send(switching(&[]).as_bytes()).await;
                conn.send(&frame[..10]).await;
                wait.await.unwrap();
                let mut rest = frame[10..].to_vec();
                rest.extend(unmasked("too late"));
                conn.send(&rest).await;
                while conn.more().await {}
            }
        }
    })
    .await;
    let served = served(&raw);
    let (mut client, _) = upgrade(&served, &[]).await;
    assert_eq!(client.exactly(10).await.unwrap(), frame[..10]);
    served.control.drain(1, true);
    until("the drain is heard", || !served.control.drained().is_empty()).await;
    go.send(()).unwrap();
    assert_eq!(client.exactly(frame.len() - 10).await.unwrap(), frame[10..]);
    while client.more().await {}
    assert_eq!(close_of(&client.buffer).0, 4503);
    assert_eq!(client.buffer.len(), 2 + usize::from(client.buffer[1]), "and nothing follows");
}

#[tokio::test]
async fn a_stop_tells_sockets_that_the_gateway_restarts() {
    let raw = echo().await;
    let served = served(&raw);
    let (mut client, _) = upgrade(&served, &[]).await;
    assert_eq!(client.exactly(7).await.unwrap(), unmasked("first"));
    served.shut_down();
    while client.more().await {}
    assert_eq!(close_of(&client.buffer).0, 1012);
    drop(client);
    served.stop().await;
}

#[tokio::test]
async fn a_surface_that_dies_is_told_to_the_client_and_reported() {
    let raw = Raw::start(|mut conn| async move {
        conn.head().await;
        conn.send(switching(&[]).as_bytes()).await;
        conn.more().await;
        conn.reset();
    })
    .await;
    let served = served(&raw);
    let (mut client, _) = upgrade(&served, &[]).await;
    client.send(masked("die")).await;
    while soon(client.more()).await {}
    assert_eq!(close_of(&client.buffer).0, 1011);
    until("it is reported", || served.control.failures().len() == 1).await;
    assert_eq!(served.control.failures()[0].kind, FailureKind::MidStream);
}
