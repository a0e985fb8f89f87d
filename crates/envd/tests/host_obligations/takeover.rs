//! Sockets and the sessions behind them: renewal, its failure, and who takes a socket over.

use std::time::Duration;

use serde_json::json;
use wakeful_wire::{Code, HostSessionId, host::close, rpc::SessionList};

use crate::{
    door::{LIFE, enter, pair, show, socket},
    fixture::{Member, World},
};

const EXPIRED: (u16, &str) = (close::SESSION_EXPIRED, "session_expired");
const REVOKED: (u16, &str) = (close::SESSION_REVOKED, "session_revoked");

/// Sockets of each listed session.
async fn listed(world: &World, member: &Member) -> Vec<(HostSessionId, u32)> {
    let list: SessionList = world.get(member, "/sessions").await.read();
    list.sessions.iter().map(|session| (session.id, session.connections)).collect()
}

#[tokio::test]
async fn a_socket_outlives_two_hours_of_renewals_while_reads_use_the_new_token() {
    let world = World::new().await;
    let mut member = enter(&world, 1, "read write sessions").await;
    let (mut client, hello) = socket(&world, &member).await;
    assert_eq!(hello.session.id, member.session);
    client.request(1, "shell.subscribe", json!({})).await;
    while client.item().await.1["type"] != "synchronized" {}
    let mut age = Duration::ZERO;
    for round in 0..3 {
        world.clock.advance(LIFE - Duration::from_secs(30) - age);
        assert_eq!(world.get(&member, "/shell").await.status, 200, "the old one still holds");
        let renewed = enter(&world, 1, "sessions write read").await;
        assert_eq!(world.get(&renewed, "/shell").await.status, 200);
        age = Duration::from_secs(31);
        world.clock.advance(age);
        let late = world.get(&member, "/shell").await;
        assert_eq!(late.refusal(), (401, "token_expired".to_owned()));
        // A late refusal of the old token says nothing about the new one.
        assert_eq!(listed(&world, &renewed).await, [(renewed.session, 1)]);
        client.answers().await;
        // The very same subscription goes on.
        let thread = world.thread(&format!("round {round}")).await;
        let (id, item) = client.item().await;
        assert_eq!(
            (id, &item["type"], &item["rows"][0]["id"]),
            (1, &json!("changes"), &json!(thread))
        );
        member = renewed;
    }
}

#[tokio::test]
async fn a_renewal_that_fails_leaves_the_socket_until_its_session_ends() {
    let world = World::new().await;
    let grant = world.grant("read");
    let token: wakeful_wire::host::TokenResponse = show(&world, 1, &grant).await.read();
    let member = Member {
        key: crate::client::ClientKey::new(1),
        token: token.access_token,
        session: token.session,
    };
    let (mut client, _) = socket(&world, &member).await;
    world.clock.advance(LIFE - Duration::from_secs(30));
    // The grant is used and old; nothing comes of it.
    let failed = show(&world, 1, &grant).await;
    assert_eq!((failed.status, failed.value()["error"].as_str()), (400, Some("invalid_grant")));
    client.answers().await;
    assert_eq!(world.get(&member, "/shell").await.status, 200);
    world.clock.advance(Duration::from_secs(30));
    world.authority.sessions().tick();
    let (code, reason) = client.closed().await;
    assert_eq!((code, reason.as_str()), EXPIRED);
}

#[tokio::test]
async fn nobody_else_takes_a_socket_over() {
    let world = World::new().await;
    let member = enter(&world, 1, "read write").await;
    let (mut client, _) = socket(&world, &member).await;
    world.clock.advance(LIFE - Duration::from_secs(30));
    enter(&world, 2, "read write").await;
    enter(&world, 1, "read").await;
    enter(&world, 1, "read write sessions").await;
    pair(&world, 1, "bob", "read write").await;
    client.answers().await;
    world.clock.advance(Duration::from_secs(30));
    world.authority.sessions().tick();
    let (code, reason) = client.closed().await;
    assert_eq!((code, reason.as_str()), EXPIRED);
}

#[tokio::test]
async fn after_a_takeover_only_the_newer_sessions_end_ends_the_socket() {
    let world = World::new().await;
    let chief = pair(&world, 9, "alice", "read sessions").await;
    let old = enter(&world, 1, "read").await;
    let (mut client, _) = socket(&world, &old).await;
    let new = enter(&world, 1, "read").await;
    let revoke = async |member: &Member| {
        let target = format!("/sessions/{}", member.session);
        let answer = world.send(&world.signed(&chief, "DELETE", target)).await;
        assert_eq!(answer.status, 204);
    };
    assert_eq!(
        listed(&world, &chief).await,
        [(chief.session, 0), (old.session, 0), (new.session, 1)]
    );
    revoke(&old).await;
    client.answers().await;
    assert_eq!(world.get(&old, "/shell").await.refusal(), (401, "session_revoked".to_owned()));
    assert_eq!(world.get(&new, "/shell").await.status, 200);
    revoke(&new).await;
    let (code, reason) = client.closed().await;
    assert_eq!((code, reason.as_str()), REVOKED);
}

#[tokio::test]
async fn a_revoked_session_is_no_one_to_take_a_socket_over() {
    let world = World::new().await;
    let member = enter(&world, 1, "read").await;
    let (mut client, _) = socket(&world, &member).await;
    // Revocation never moves a socket, even next to a newer session of the same client.
    let other = enter(&world, 2, "read").await;
    assert!(world.authority.sessions().revoke(member.session).await.unwrap());
    let (code, reason) = client.closed().await;
    assert_eq!((code, reason.as_str()), REVOKED);
    assert_eq!(world.get(&other, "/shell").await.status, 200);
}

#[tokio::test]
async fn a_read_only_client_cannot_write_after_a_takeover_either() {
    let world = World::new().await;
    let thread = world.thread("one").await;
    let old = enter(&world, 1, "read").await;
    let (mut client, _) = socket(&world, &old).await;
    enter(&world, 1, "read").await;
    let pin = json!({ "thread": thread, "pinned": true });
    assert_eq!(client.ask(1, "thread.pin", pin).await, Err(Code::Forbidden));
}
