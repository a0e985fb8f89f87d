//! How sockets end.

use std::time::Duration;

use futures::SinkExt as _;
use serde_json::json;
use tokio::io::AsyncReadExt as _;
use tokio_tungstenite::tungstenite::{
    Message,
    protocol::{CloseFrame, frame::coding::CloseCode},
};
use wakeful_envd::{host::Farewell, thread::view::FeedLimits};
use wakeful_wire::{
    host::Scopes,
    rpc::{CLIENT_FRAME_MAX, Seq, ServerFrame},
};

use crate::fixture::{Held, NARROW, PATIENCE, Place, WIDE};

/// Waits until the host holds no socket of a session any more.
async fn is_gone(place: &Place) {
    let gone = async {
        while place.authority.sessions().list().iter().any(|session| session.connections > 0) {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(PATIENCE, gone).await.expect("the socket still counts");
}

#[tokio::test]
async fn what_cannot_be_answered_closes_with_its_code() {
    let table = [
        (Message::text("{"), 1007),
        (Message::text("[1]"), 1008),
        (Message::binary(vec![1, 2]), 1003),
    ];
    let place = Place::new().await;
    for (message, expected) in table {
        let mut client = place.client(WIDE).await;
        client.socket.send(message).await.unwrap();
        let (code, reason, _) = client.closed().await;
        assert_eq!(code, expected);
        assert!(!reason.is_empty());
        is_gone(&place).await;
    }
}

#[tokio::test]
async fn a_frame_at_the_bound_is_taken_and_a_longer_one_closes() {
    let place = Place::new().await;
    let mut client = place.client(4 * CLIENT_FRAME_MAX).await;
    let frame = |bytes: usize| {
        let start = r#"{"type":"probe","id":1,"x":""#;
        format!("{start}{}\"}}", "x".repeat(bytes - start.len() - 2))
    };
    client.send_text(&frame(CLIENT_FRAME_MAX)).await;
    assert!(matches!(client.frame().await, ServerFrame::Alive { .. }));
    client.send_text(&frame(CLIENT_FRAME_MAX + 1)).await;
    assert_eq!(client.closed().await.0, 1009);
    is_gone(&place).await;
}

#[tokio::test]
async fn a_client_that_closes_gets_its_close_back() {
    let place = Place::new().await;
    let mut client = place.client(WIDE).await;
    let frame = CloseFrame { code: CloseCode::Normal, reason: "bye".into() };
    client.socket.send(Message::Close(Some(frame))).await.unwrap();
    assert_eq!(client.closed().await.0, 1000);
    is_gone(&place).await;
    let client = place.client(WIDE).await;
    drop(client);
    is_gone(&place).await;
}

#[tokio::test]
async fn a_revoked_session_closes_its_sockets() {
    let place = Place::new().await;
    let (id, token) = place.session(1, Scopes::all()).await;
    let (mut client, _) = place.socket(1, &token, WIDE).await;
    assert!(place.authority.sessions().revoke(id).await.unwrap());
    let (code, reason, _) = client.closed().await;
    assert_eq!((code, reason.as_str()), (4411, "session_revoked"));
    is_gone(&place).await;
}

#[tokio::test]
async fn who_revokes_their_own_session_is_answered_first() {
    let place = Place::new().await;
    for _ in 0..20 {
        let (id, token) = place.session(1, Scopes::all()).await;
        let (mut client, _) = place.socket(1, &token, WIDE).await;
        let answer = client.ask(1, "session.revoke", json!({ "session": id })).await;
        assert_eq!(answer, Ok(json!({})));
        assert_eq!(client.closed().await.0, 4411);
    }
}

#[tokio::test]
async fn a_session_that_ran_out_closes_its_sockets() {
    let place = Place::new().await;
    let mut client = place.client(WIDE).await;
    place.advance(Duration::from_secs(400 * 24 * 3600));
    place.authority.sessions().tick();
    let (code, reason, _) = client.closed().await;
    assert_eq!((code, reason.as_str()), (4412, "session_expired"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_farewell_overtakes_a_flood() {
    let place = Place::new().await;
    let thread = place.thread().await;
    let mut client = place.client(NARROW).await;
    client.request(1, "thread.subscribe", json!({ "thread": thread })).await;
    let mut held = Held::default();
    held.follow(&mut client, Seq::ZERO).await;
    for _ in 0..10 {
        place.say(thread, &"x".repeat(200), 100).await;
    }
    let host = place.host.clone();
    let closing = tokio::spawn(async move { host.close(Farewell::SUSPENDING).await });
    let (code, reason, frames) = client.closed().await;
    assert_eq!((code, reason.as_str()), (4503, "suspending"));
    assert!(frames <= 3, "{frames} frames were sent first");
    tokio::time::timeout(PATIENCE, closing).await.unwrap().unwrap();
    is_gone(&place).await;
}

#[tokio::test]
async fn a_host_ends_in_time_although_a_client_takes_nothing() {
    let place = Place::new().await;
    let thread = place.thread().await;
    let mut client = place.client(NARROW).await;
    client.request(1, "thread.subscribe", json!({ "thread": thread })).await;
    let mut held = Held::default();
    held.follow(&mut client, Seq::ZERO).await;
    place.say(thread, &"x".repeat(2_000), 100).await;
    tokio::time::timeout(PATIENCE, place.host.close(Farewell::GOING_AWAY)).await.unwrap();
    is_gone(&place).await;
}

#[tokio::test]
async fn a_silent_client_is_closed_and_one_that_answers_pings_is_not() {
    let place = Place::with(Duration::from_millis(600), FeedLimits::default()).await;
    let silent = place.client(WIDE).await;
    let mut listening = place.client(WIDE).await;
    let mut beats = 0;
    // Silence is told after three.
    while beats < 5 {
        match listening.frame().await {
            ServerFrame::Heartbeat { head } => {
                assert_eq!(head, place.threads.cursor());
                beats += 1;
            }
            other => panic!("{other:?}"),
        }
    }
    // It was never polled, so nothing answered the pings. What it was sent is read as bytes: reading
    // frames would answer them now.
    let mut bytes = Vec::new();
    let mut sent = silent.socket.into_inner();
    tokio::time::timeout(PATIENCE, sent.read_to_end(&mut bytes)).await.unwrap().unwrap();
    let close = [&[0x88, 8, 0x03, 0xe9], b"silent".as_slice()].concat();
    assert!(bytes.ends_with(&close), "{:?}", String::from_utf8_lossy(&bytes));
}
