//! Sessions that end: revoked by another client.

use wakeful_link::{ConnectionPhase, FailureReason};
use wakeful_wire::rpc::{Call, Empty};

use crate::fixture::{Desk, World};

#[tokio::test]
async fn a_revoked_client_waits_for_a_person_and_keeps_what_it_has() {
    let mut world = World::new().await;
    let host = world.client.host;
    let thread = world.client.thread().await;
    world.client.until("its row", |link, _| link.row(host, thread).map(drop)).await;
    world.server.kill();
    // A start prints another code, which the other client enters by.
    world.server.run();
    let other = Desk::pair(&world.server, &world.proxy.address()).await;
    let other = other.start().await;
    other.live().await;
    world.client.client.with(|link, now| link.retry(now, host));
    world.client.live().await;
    other.call(Call::SessionRevokeOthers(Empty {})).await.unwrap();
    let blocked = world.client.phase(ConnectionPhase::Blocked).await;
    let failure = blocked.last_failure.unwrap();
    assert_eq!(failure.reason, FailureReason::Authentication, "{failure:?}");
    assert_eq!(blocked.retry_at, None);
    let rows = world.client.client.with(|link, _| link.shell(host).unwrap().list.clone());
    assert!(rows.is_some_and(|rows| rows.row(thread).is_some()));
    assert_eq!(other.connection().unwrap().phase, ConnectionPhase::Connected);
    other.client.close().await;
    world.client.client.close().await;
}
