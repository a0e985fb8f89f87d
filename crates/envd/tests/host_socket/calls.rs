//! Calls and their answers.

use std::{sync::atomic::Ordering, time::Duration};

use serde_json::json;
use uuid::Uuid;
use wakeful_wire::{
    Code,
    host::{Scope, Scopes},
    rpc::{CALLS_MAX, CallId, PROTOCOL, ServerFrame, Taken},
};

use crate::fixture::{NARROW, Place, WIDE, config, scopes};

#[tokio::test]
async fn hello_comes_first_and_a_changed_configuration_whole() {
    let place = Place::new().await;
    place.thread().await;
    let (id, token) = place.session(1, Scopes::all()).await;
    let (mut client, hello) = place.socket(1, &token, WIDE).await;
    assert_eq!((hello.protocol, hello.heartbeat_ms), (PROTOCOL, 60_000));
    assert_eq!((hello.session.id, hello.session.connections), (id, 1));
    assert_eq!((hello.config, hello.host.label.as_str()), (config(1), "bench"));
    assert_eq!(hello.head, place.threads.cursor());
    place.config.send_replace(config(4));
    let ServerFrame::Config { config: heard } = client.frame().await else { panic!() };
    assert_eq!(heard, config(4));
    place.config.send_replace(config(3));
    client.send(json!({ "type": "probe", "id": 1 })).await;
    assert!(matches!(client.frame().await, ServerFrame::Alive { id: CallId(1), .. }));
    assert!(client.is_quiet(), "a revision never falls");
}

#[tokio::test]
async fn what_is_not_understood_is_refused_on_its_id_and_the_socket_goes_on() {
    let place = Place::new().await;
    let mut client = place.client(WIDE).await;
    assert_eq!(client.ask(1, "thread.dance", json!({})).await, Err(Code::Unsupported));
    assert_eq!(client.ask(2, "thread.rename", json!({ "thread": 4 })).await, Err(Code::Invalid));
    client.send(json!({ "type": "dance" })).await;
    client.send(json!({ "type": "dance", "id": 3 })).await;
    assert_eq!(client.answer(3).await, Err(Code::Unsupported));
    let gone = Uuid::from_u128(9);
    assert_eq!(
        client.ask(4, "thread.subscribe", json!({ "thread": gone })).await,
        Err(Code::NotFound)
    );
    assert_eq!(client.ask(4, "activity", json!({})).await, Ok(json!({})));
    assert_eq!(place.uses.0.load(Ordering::SeqCst), 1);
}

#[tokio::test]
async fn a_command_is_carried_out_and_answered() {
    let place = Place::new().await;
    let mut client = place.client(WIDE).await;
    let thread = Uuid::from_u128(5);
    let made = client.ask(1, "thread.create", json!({ "thread": thread })).await.unwrap();
    let made: Taken = serde_json::from_value(made).unwrap();
    assert!(made.changed);
    let again = client.ask(1, "thread.create", json!({ "thread": thread })).await.unwrap();
    let again: Taken = serde_json::from_value(again).unwrap();
    assert!(!again.changed, "the same id makes one thread");
    assert_eq!(again.thread, made.thread);
}

#[tokio::test]
async fn a_held_command_delays_no_probe_and_a_second_with_its_id_harms_it_not() {
    let place = Place::new().await;
    let mut client = place.client(WIDE).await;
    assert_eq!(place.host.drain(Duration::from_secs(60), Duration::MAX), 0);
    let create = json!({ "thread": Uuid::from_u128(5) });
    client.request(1, "thread.create", create.clone()).await;
    client.send(json!({ "type": "probe", "id": 2 })).await;
    assert!(matches!(client.frame().await, ServerFrame::Alive { id: CallId(2), .. }));
    assert_eq!(client.ask(1, "activity", json!({})).await, Err(Code::Conflict));
    // Cancelled while it waits, it does not happen.
    client.request(3, "thread.create", json!({ "thread": Uuid::from_u128(6) })).await;
    client.send(json!({ "type": "cancel", "id": 3 })).await;
    assert_eq!(client.ask(3, "activity", json!({})).await, Ok(json!({})), "its id is free");
    assert_eq!(place.host.drain(Duration::ZERO, Duration::MAX), 0);
    assert!(client.answer(1).await.is_ok());
    let shell = place.threads.shell(wakeful_wire::rpc::Omissions::default(), None).unwrap();
    assert_eq!(shell.rows.len(), 1);
}

#[tokio::test]
async fn no_more_calls_are_open_than_may_be() {
    let place = Place::new().await;
    let mut client = place.client(WIDE).await;
    assert_eq!(place.host.drain(Duration::from_secs(60), Duration::MAX), 0);
    for id in 0..u32::try_from(CALLS_MAX).unwrap() {
        let thread = Uuid::from_u128(u128::from(id) + 1);
        client.request(id, "thread.create", json!({ "thread": thread })).await;
    }
    assert_eq!(client.ask(9_999, "activity", json!({})).await, Err(Code::TooManyRequests));
    assert_eq!(place.host.drain(Duration::ZERO, Duration::MAX), 0);
    for _ in 0..CALLS_MAX {
        assert!(matches!(client.frame().await, ServerFrame::Response { .. }));
    }
    assert_eq!(client.ask(9_999, "activity", json!({})).await, Ok(json!({})));
}

#[tokio::test]
async fn a_session_may_do_what_its_scopes_say() {
    let place = Place::new().await;
    let thread = place.thread().await;
    let (_, token) = place.session(1, scopes(&[Scope::Read])).await;
    let (mut client, _) = place.socket(1, &token, WIDE).await;
    let refused = [
        ("thread.pin", json!({ "thread": thread, "pinned": true })),
        ("thread.mode", json!({ "thread": thread, "mode": "fast" })),
        ("session.subscribe", json!({})),
        ("session.revoke_others", json!({})),
    ];
    for (method, params) in refused {
        assert_eq!(client.ask(1, method, params).await, Err(Code::Forbidden), "{method}");
    }
    client.request(1, "thread.subscribe", json!({ "thread": thread })).await;
    assert_eq!(client.item().await.1["type"], "snapshot");
    assert!(!place.threads.thread(thread).unwrap().pinned);
}

#[tokio::test]
async fn a_socket_that_moved_acts_as_its_newer_session() {
    let place = Place::new().await;
    let (old, token) = place.session(1, Scopes::all()).await;
    let (mut client, hello) = place.socket(1, &token, WIDE).await;
    assert_eq!(hello.session.id, old);
    let (new, _) = place.session(1, Scopes::all()).await;
    let (other, _) = place.session(2, Scopes::all()).await;
    client.request(1, "session.subscribe", json!({})).await;
    assert_eq!(client.item().await.1["type"], "snapshot");
    client.request(2, "session.revoke_others", json!({})).await;
    let (mut removed, mut answered) = (Vec::new(), false);
    while removed.len() < 2 || !answered {
        match client.frame().await {
            ServerFrame::Response { id: CallId(2), .. } => answered = true,
            ServerFrame::Item { item, .. } if item["change"]["kind"] == "removed" => {
                removed.push(item["change"]["id"].clone());
            }
            ServerFrame::Item { .. } => {}
            other => panic!("{other:?}"),
        }
    }
    assert!(removed.contains(&json!(other)) && removed.contains(&json!(old)), "{removed:?}");
    assert!(place.authority.sessions().holding(new).is_ok());
    for revoked in [old, other] {
        assert!(place.authority.sessions().holding(revoked).is_err());
    }
}

#[tokio::test]
async fn a_flood_of_probes_that_nobody_hears_answered_stops_the_reading() {
    use futures::{FutureExt as _, SinkExt as _};
    let place = Place::new().await;
    let mut client = place.client(NARROW).await;
    let probe = json!({ "type": "probe", "id": 1 }).to_string();
    let mut sent = 0_usize;
    // The answers fill one way, then the host reads no more, and the probes fill the other.
    loop {
        let mut sending = std::pin::pin!(
            client.socket.send(tokio_tungstenite::tungstenite::Message::text(probe.clone()))
        );
        let mut waits = 0;
        let took = loop {
            if sending.as_mut().now_or_never().is_some() {
                break true;
            }
            waits += 1;
            if waits > 1_000 {
                break false;
            }
            tokio::task::yield_now().await;
        };
        if !took {
            break;
        }
        sent += 1;
        assert!(sent < 2_000, "the host reads without end");
    }
    let mut answered = 0;
    while answered < sent {
        if matches!(client.frame().await, ServerFrame::Alive { .. }) {
            answered += 1;
        }
    }
}
