//! The list of sessions: what stays on it and for how long, who follows it, and what a host says
//! that cannot store.

use std::{collections::BTreeMap, time::Duration};

use serde_json::json;
use wakeful_wire::{
    Code, HostSessionId,
    host::{SessionEvent, SessionView, close},
    rpc::{SessionItem, SessionList},
};

use crate::{
    door::{LIFE, enter, narrow_socket, pair, show, socket},
    fixture::World,
};

/// The clock of the host goes only when it is told to, and this runs on one thread: nothing happens
/// between the end of the session and the list that shows it.
#[tokio::test]
async fn an_expired_session_is_listed_to_its_last_socket_and_opens_nothing() {
    let world = World::new().await;
    let watcher = pair(&world, 9, "alice", "read sessions").await;
    let member = enter(&world, 1, "read").await;
    let (mut one, _) = socket(&world, &member).await;
    let (mut two, _) = socket(&world, &member).await;
    let (mut following, _) = socket(&world, &watcher).await;
    following.request(1, "session.subscribe", json!({})).await;
    let first: SessionItem = serde_json::from_value(following.item().await.1).unwrap();
    let SessionItem::Snapshot { sessions } = first else { panic!("{first:?}") };
    let view = |sessions: &[SessionView]| {
        sessions.iter().find(|session| session.id == member.session).cloned()
    };
    let before = view(&sessions).unwrap();
    assert_eq!(before.connections, 2);

    world.clock.advance(LIFE - Duration::from_secs(5));
    let ticket = world.ticket(&member).await;
    // The watcher's access token ends as well, and is renewed in time.
    let watcher = pair(&world, 9, "alice", "read sessions").await;
    world.clock.advance(Duration::from_secs(5));
    let refused = world.get(&member, "/shell").await;
    assert_eq!(refused.refusal(), (401, "token_expired".to_owned()));
    let refused = world.authority.open_socket(&ticket).await.err();
    assert_eq!(refused, Some(wakeful_wire::host::Denial::SessionExpired), "its ticket is young");
    let list: SessionList = world.get(&watcher, "/sessions").await.read();
    assert_eq!(view(&list.sessions), Some(before), "listed as it was");

    for client in [&mut one, &mut two] {
        assert_eq!(client.closed().await, (close::SESSION_EXPIRED, "session_expired".to_owned()));
    }
    let mut counts = Vec::new();
    loop {
        let item: SessionItem = serde_json::from_value(following.item().await.1).unwrap();
        match item {
            SessionItem::Change { change: SessionEvent::Updated { session } }
                if session.id == member.session =>
            {
                counts.push(session.connections);
            }
            SessionItem::Change { change: SessionEvent::Removed { id } }
                if id == member.session =>
            {
                break;
            }
            _ => {}
        }
    }
    assert_eq!(counts, [1], "an update for the first to close, a removal for the last");
    let list: SessionList = world.get(&watcher, "/sessions").await.read();
    assert_eq!(view(&list.sessions), None);
    following.answers().await;
}

#[tokio::test]
async fn a_follower_that_lags_is_given_the_list_anew_and_ends_with_it() {
    let world = World::new().await;
    let watcher = pair(&world, 9, "alice", "read sessions").await;
    let mut following = narrow_socket(&world, &watcher, 1_024).await;
    following.request(1, "session.subscribe", json!({})).await;
    assert_eq!(following.item().await.1["type"], "snapshot");
    // Nobody reads meanwhile: more changes than are kept for a follower.
    for _ in 0..200 {
        let member = pair(&world, 1, "bob", "read").await;
        assert!(world.authority.sessions().revoke(member.session).await.unwrap());
    }
    let last = enter(&world, 2, "read").await.session;
    let mut held: BTreeMap<HostSessionId, SessionView> = BTreeMap::new();
    let (mut snapshots, mut changes) = (0, 0);
    while !held.contains_key(&last) {
        match serde_json::from_value(following.item().await.1).unwrap() {
            SessionItem::Snapshot { sessions } => {
                held = sessions.into_iter().map(|session| (session.id, session)).collect();
                snapshots += 1;
            }
            SessionItem::Change { change: SessionEvent::Updated { session } } => {
                held.insert(session.id, session);
                changes += 1;
            }
            SessionItem::Change { change: SessionEvent::Removed { id } } => {
                held.remove(&id);
                changes += 1;
            }
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(snapshots, 1);
    assert!(changes < 400, "it was sent what the snapshot holds: {changes}");
    let listed: Vec<_> = world.authority.sessions().list();
    let mut held: Vec<_> = held.into_values().collect();
    held.sort_by_key(|session| listed.iter().position(|listed| listed.id == session.id));
    assert_eq!(held, listed);
    following.answers().await;
}

#[tokio::test]
async fn what_cannot_be_stored_is_the_hosts_failure_and_nobodys_refusal() {
    let world = World::new().await;
    let chief = pair(&world, 9, "alice", "read sessions").await;
    let member = enter(&world, 1, "read").await;
    let (mut client, _) = socket(&world, &chief).await;
    let grant = world.grant("read");
    world.authority.sessions().close().await;

    let failed = show(&world, 2, &grant).await;
    assert_eq!((failed.status, failed.value()["error"].as_str()), (500, Some("server_error")));
    assert_eq!(failed.header("www-authenticate"), None, "new credentials would not help");
    let target = format!("/sessions/{}", member.session);
    let failed = world.send(&world.signed(&chief, "DELETE", target)).await;
    assert_eq!((failed.status, failed.value()["code"].as_str()), (500, Some("internal")));
    assert_eq!(failed.header("www-authenticate"), None);
    let params = json!({ "session": member.session });
    assert_eq!(client.ask(1, "session.revoke", params).await, Err(Code::Internal));

    // What could not be written did not happen, and what needs no writing goes on.
    assert_eq!(world.get(&member, "/shell").await.status, 200);
    client.answers().await;
}
