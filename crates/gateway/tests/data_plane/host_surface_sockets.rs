//! Sockets of the environment server: their tickets, and that they hold nothing
//! (`design.md`, "Clocks" and "Sockets that are refused"; `cases.md`, C10).

use std::time::Duration;

use tokio::sync::mpsc;
use wakeful_wire::{
    Phase, SurfaceName,
    gate::{FailureKind, GateState},
};

use crate::{
    host_surface::{asleep, base, cookie, served},
    http::TOKEN,
    support::{
        Served,
        client::{Answer, Client, ask, close_of, handshake, switching, unmasked},
        control::{Control, env},
        envd::Envd,
        raw::{Raw, ok, values},
        soon, until,
    },
};

const SECRET: &str = "SECRETaaa111";
const CHOSEN: &str = "Sec-WebSocket-Protocol: wakeful.rpc.v1";

fn offer() -> String {
    format!("Sec-WebSocket-Protocol: wakeful.rpc.v1, wakeful.ticket.{SECRET}")
}

fn origin(served: &Served) -> String {
    format!("Origin: http://{}", served.main())
}

/// Opens a socket. By a program, with its intent stated, unless `headers` say more.
async fn open(served: &Served, headers: &[&str]) -> (Client, Answer) {
    let mut client = Client::connect(served.address).await;
    let target = format!("{}/rpc", base(env(1)));
    client.send(handshake(&target, &served.main(), headers)).await;
    let answer = soon(client.answer_to("GET")).await.unwrap();
    (client, answer)
}

/// The code of the only close frame that comes before the end.
async fn closed(client: &mut Client) -> (u16, String) {
    while soon(client.more()).await {}
    let said = close_of(&client.buffer);
    assert_eq!(client.buffer.len(), 2 + usize::from(client.buffer[1]), "and nothing follows");
    said
}

/// Accepts every socket, greets, and says what a test tells it to; ends when it tells no more.
async fn told() -> (Raw, mpsc::UnboundedSender<Vec<u8>>) {
    let (tell, hear) = mpsc::unbounded_channel::<Vec<u8>>();
    let hear = std::sync::Arc::new(tokio::sync::Mutex::new(hear));
    let raw = Raw::start(move |mut conn| {
        let hear = std::sync::Arc::clone(&hear);
        async move {
            conn.head().await;
            conn.send(switching(&[CHOSEN]).as_bytes()).await;
            conn.send(&unmasked("hello")).await;
            while let Some(bytes) = hear.lock().await.recv().await {
                conn.send(&bytes).await;
            }
        }
    })
    .await;
    (raw, tell)
}

async fn greeted(served: &Served, headers: &[&str]) -> Client {
    let (mut client, answer) = open(served, headers).await;
    assert_eq!(answer.status, 101, "{}", answer.head);
    assert_eq!(client.exactly(7).await.unwrap(), unmasked("hello"));
    client
}

#[tokio::test]
async fn the_whole_offer_reaches_it_and_its_choice_comes_back() {
    let (raw, _tell) = told().await;
    let envd = Envd::before(&raw);
    let served = served(&envd);
    let (origin, offer, cookie) = (origin(&served), offer(), cookie());
    for sent in [&[TOKEN, &offer][..], &[&cookie, &origin, &offer]] {
        let before = raw.text().len();
        let (_client, answer) = open(&served, sent).await;
        assert_eq!(answer.all("sec-websocket-protocol"), ["wakeful.rpc.v1"]);
        assert!(!answer.head.contains(SECRET));
        until("it has arrived", || raw.text().len() > before).await;
        let seen = raw.text()[before..].to_owned();
        let whole = format!("wakeful.rpc.v1, wakeful.ticket.{SECRET}");
        assert_eq!(values(&seen, "sec-websocket-protocol"), [whole]);
        let address = format!("http://{}{}", served.main(), base(env(1)));
        assert_eq!(values(&seen, "wakeful-public-address"), [address]);
    }
    assert_eq!(envd.dials(), 2, "each has a connection of its own");
}

#[tokio::test]
async fn a_refusal_says_why_and_never_the_ticket() {
    let raw = Raw::ok().await;
    let envd = Envd::before(&raw);
    let control = Control::new();
    control.add(1, "alice", GateState::Asleep, &envd.upstream());
    let served = Served::start(control);
    let (own, cookie) = (origin(&served), cookie());
    let swapped = format!("Sec-WebSocket-Protocol: wakeful.ticket.{SECRET}, wakeful.rpc.v1");
    let lone = format!("Sec-WebSocket-Protocol: wakeful.ticket.{SECRET}");
    let evil = "Origin: http://evil.apps.wakeful.localhost";
    let rows: [(&[&str], u16, &str); 4] = [
        (&[&cookie, &own], 4503, "suspended"),
        (&[&own], 4401, "unauthenticated"),
        (&[&cookie, evil], 4403, "cross_origin"),
        (&[&cookie, "Origin: null"], 4403, "cross_origin"),
    ];
    for (sent, code, reason) in rows {
        for (offer, echoed) in [
            (offer(), Some("wakeful.rpc.v1")),
            (swapped.clone(), Some("wakeful.rpc.v1")),
            (lone.clone(), None),
        ] {
            let (mut client, answer) = open(&served, &[sent, &[&offer]].concat()).await;
            assert_eq!((answer.status, answer.header("sec-websocket-protocol")), (101, echoed));
            assert!(!answer.head.contains(SECRET));
            assert_eq!(closed(&mut client).await, (code, reason.to_owned()), "{sent:?}");
        }
    }
    // A program gets the plain status, and no echo either.
    let (_, answer) = open(&served, &[TOKEN, "Wakeful-Intent: none", &swapped]).await;
    assert_eq!((answer.status, answer.code().as_str()), (503, "asleep"));
    assert!(!answer.head.contains(SECRET) && !answer.text().contains(SECRET));
    assert!(served.control.ensures().iter().all(|(_, request)| !request.intent));
    assert_eq!(raw.connections(), 0);
    let mut metrics = String::new();
    prometheus_client::encoding::text::encode(&mut metrics, &served.registry).unwrap();
    assert!(!metrics.contains(SECRET));
}

#[tokio::test]
async fn a_socket_with_intent_is_held_until_it_is_ready() {
    let (raw, _tell) = told().await;
    let envd = Envd::before(&raw);
    let served = asleep(&envd);
    let mut client = Client::connect(served.address).await;
    let target = format!("{}/rpc", base(env(1)));
    let sent = [TOKEN, "Wakeful-Intent: wake", &offer()];
    client.send(handshake(&target, &served.main(), &sent)).await;
    until("it is held", || served.metric("wakeful_held_requests") == 1).await;
    served.control.become_ready(1);
    assert_eq!(soon(client.answer_to("GET")).await.unwrap().status, 101);
}

/// What it says of a ticket is told to a browser by a close code, and to a program as it came.
#[tokio::test]
async fn a_ticket_that_it_refuses_is_told_as_such() {
    for (status, code) in [(401, 4401), (403, 4403), (503, 4503), (500, 1011), (426, 1011)] {
        let raw = Raw::answering(move |_| {
            format!("HTTP/1.1 {status} No\r\nContent-Length: 2\r\n\r\n{{}}").into_bytes()
        })
        .await;
        let envd = Envd::before(&raw);
        let served = served(&envd);
        let (own, cookie, offer) = (origin(&served), cookie(), offer());
        let (mut client, answer) = open(&served, &[&cookie, &own, &offer]).await;
        assert_eq!(answer.status, 101);
        assert_eq!(closed(&mut client).await.0, code, "{status}");
        let (_, answer) = open(&served, &[TOKEN, &offer]).await;
        assert_eq!((answer.status, answer.text().as_str()), (status, "{}"));
        assert!(served.control.failures().is_empty(), "a refusal is no failure");
    }
}

/// An idle suspend: nothing is held, the environment server says goodbye itself.
#[tokio::test]
async fn its_sockets_hold_nothing_and_its_own_close_frame_passes() {
    let (raw, tell) = told().await;
    let envd = Envd::before(&raw);
    let served = Served::with(Control::ready(1, &envd.upstream()), |config| {
        config.keepalive_interval = Duration::from_millis(50);
    });
    let (own, cookie, offer) = (origin(&served), cookie(), offer());
    let mut client = greeted(&served, &[&cookie, &own, &offer]).await;
    assert_eq!(served.metric("wakeful_leases"), 0);
    tokio::time::sleep(Duration::from_millis(300)).await;
    let reports = served.control.activity();
    assert!(reports.iter().all(|report| report.surface != SurfaceName::host()), "{reports:?}");
    served.control.drain(1, false);
    until("it is answered", || !served.control.drained().is_empty()).await;
    assert!(served.control.drained()[0].drained);
    // The suspend may still be given up, so the socket goes on.
    tell.send(unmasked("still")).unwrap();
    assert_eq!(client.exactly(7).await.unwrap(), unmasked("still"));
    let goodbye = [&[0x88, 12][..], &4503_u16.to_be_bytes(), b"suspending"].concat();
    tell.send(goodbye.clone()).unwrap();
    assert_eq!(soon(client.exactly(goodbye.len())).await.unwrap(), goodbye);
    // It ends, and so does the record's way: nobody adds a second one.
    drop(tell);
    served.control.become_state(1, GateState::Asleep, Phase::Suspended);
    assert!(soon(client.ended()).await);
    assert!(served.control.failures().is_empty(), "a goodbye is no failure");
}

#[tokio::test]
async fn what_is_still_open_once_it_sleeps_is_closed_from_here() {
    for phase in [Phase::Frozen, Phase::Suspended] {
        let (raw, _tell) = told().await;
        let envd = Envd::before(&raw);
        let served = served(&envd);
        let mut client = greeted(&served, &[TOKEN, &offer()]).await;
        served.control.become_state(1, GateState::Asleep, phase);
        assert_eq!(closed(&mut client).await, (4503, "suspending".to_owned()), "{phase:?}");
    }
}

#[tokio::test]
async fn a_forced_drain_closes_once_whoever_is_first() {
    let goodbye = [&[0x88, 12][..], &4503_u16.to_be_bytes(), b"suspending"].concat();
    for before in [true, false] {
        let (raw, tell) = told().await;
        let envd = Envd::before(&raw);
        let served = served(&envd);
        let mut client = greeted(&served, &[TOKEN, &offer()]).await;
        if before {
            tell.send(goodbye.clone()).unwrap();
            until("it has come", || client.stream.try_read(&mut []).is_ok()).await;
            client.more().await;
            assert_eq!(client.buffer, goodbye);
        }
        served.control.drain(1, true);
        assert_eq!(closed(&mut client).await, (4503, "suspending".to_owned()), "{before}");
    }
}

#[tokio::test]
async fn one_that_is_killed_ends_its_sockets_and_the_next_is_told_to_wait() {
    let (raw, _tell) = told().await;
    let envd = Envd::before(&raw);
    let served = served(&envd);
    served.control.answer_failures(true);
    let (own, cookie, offer) = (origin(&served), cookie(), offer());
    let browser = [cookie.as_str(), &own, &offer];
    let mut client = greeted(&served, &browser).await;
    envd.kill();
    // An end without a close frame: 1006 to a browser, or 1011 where the break was seen.
    while soon(client.more()).await {}
    assert!(client.buffer.is_empty() || close_of(&client.buffer).0 == 1011);
    let (mut client, answer) = open(&served, &browser).await;
    assert_eq!(answer.status, 101);
    // Without intent nobody is held for it.
    assert_eq!(closed(&mut client).await, (4503, "restarting".to_owned()));
    until("it is reported", || !served.control.failures().is_empty()).await;
    let failures = served.control.failures();
    assert_eq!(failures.last().unwrap().kind, FailureKind::Connect);
}

/// Requests and sockets beside each other: a kept connection never carries a socket.
#[tokio::test]
async fn a_socket_has_a_connection_of_its_own() {
    let raw = Raw::start(|mut conn| async move {
        while let Some(request) = conn.request().await {
            if request.target() == "/rpc" {
                conn.send(switching(&[]).as_bytes()).await;
                while conn.more().await {}
                return;
            }
            conn.send(&ok("ok")).await;
        }
    })
    .await;
    let envd = Envd::before(&raw);
    let served = served(&envd);
    let line = format!("GET {}/shell", base(env(1)));
    for _ in 0..2 {
        let answer = soon(ask(served.address, &line, &served.main(), &[TOKEN])).await;
        assert_eq!(answer.text(), "ok");
        let (_client, answer) = open(&served, &[TOKEN]).await;
        assert_eq!(answer.status, 101);
    }
    assert_eq!(envd.dials(), 3, "one for the reads, one for each socket");
}
