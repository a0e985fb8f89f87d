//! What a connection may do, and how it ends.

use std::time::Duration;

use tokio::time::Instant;
use wakeful_envd::host::Farewell;

use crate::{
    fixture::World,
    upgrade::{closed, open, open_in_page, refusal},
};

#[tokio::test]
async fn one_connection_carries_many_requests_in_their_order() {
    let world = World::new().await;
    let member = world.member("read").await;
    let mut line = world.line();
    let paths = ["/descriptor", "/nowhere", "/shell", "/shell/counts"];
    for (path, status) in paths.iter().zip([200, 404, 200, 200]) {
        assert_eq!(line.ask(&world.signed(&member, "GET", *path)).await.status, status, "{path}");
    }
    // Sent at once, they are answered one after the other.
    line.send(
        b"GET /nowhere HTTP/1.1\r\nhost: x\r\n\r\nGET /descriptor HTTP/1.1\r\nhost: x\r\n\r\n",
    )
    .await;
    assert_eq!(line.answer(false).await.unwrap().status, 404);
    assert_eq!(line.answer(false).await.unwrap().status, 200);
}

#[tokio::test]
async fn a_head_request_gets_the_head_alone() {
    let world = World::new().await;
    let member = world.member("read").await;
    let mut line = world.line();
    let whole = world.get(&member, "/shell").await;
    let head = line.ask(&world.signed(&member, "HEAD", "/shell")).await;
    assert_eq!((head.status, head.header("etag")), (200, whole.header("etag")));
    let length = whole.body.len().to_string();
    assert_eq!(head.header("content-length"), Some(length.as_str()));
    // Nothing of a body stands before the next answer.
    assert_eq!(line.ask(&world.asking("GET", "/descriptor")).await.status, 200);
    let socket = line.ask(&world.asking("HEAD", "/rpc")).await;
    assert_eq!((socket.status, socket.header("allow")), (405, Some("GET")));
}

#[tokio::test]
async fn who_sends_a_head_too_slowly_is_cut() {
    let world = World::new().await;
    let mut line = world.line();
    tokio::time::pause();
    line.send(b"GET /descriptor HTTP/1.1\r\nhost: x\r\n").await;
    let begun = Instant::now();
    assert!(line.is_over().await);
    assert!(begun.elapsed() >= Duration::from_secs(9), "{:?}", begun.elapsed());
    assert!(begun.elapsed() < Duration::from_secs(30), "{:?}", begun.elapsed());
}

#[tokio::test]
async fn who_sends_a_body_too_slowly_is_told_and_cut() {
    let world = World::new().await;
    let mut line = world.line();
    tokio::time::pause();
    let head = format!(
        "POST /oauth/token HTTP/1.1\r\nhost: x\r\nwakeful-public-address: {}\r\n\
         content-type: application/json\r\ncontent-length: 100\r\n\r\n{{",
        world.base
    );
    line.send(head.as_bytes()).await;
    let answer = line.answer(false).await.unwrap();
    assert_eq!((answer.status, answer.header("connection")), (400, Some("close")));
    assert!(line.is_over().await);
}

#[tokio::test]
async fn too_many_header_fields_are_refused() {
    let world = World::new().await;
    let mut asking = world.asking("GET", "/descriptor");
    for n in 0..70 {
        asking = asking.header(&format!("x-field-{n}"), "1");
    }
    assert_eq!(world.send(&asking).await.status, 431);
}

#[tokio::test]
async fn a_host_that_ends_refuses_requests_and_then_ends_its_connections() {
    let world = World::new().await;
    let member = world.member("read").await;
    let mut line = world.line();
    assert_eq!(line.ask(&world.asking("GET", "/descriptor")).await.status, 200);
    let mut idle = world.line();
    assert_eq!(idle.ask(&world.asking("GET", "/descriptor")).await.status, 200);
    // A socket that does not take its close frame keeps the end waiting for a moment.
    let socket = open(&world, &world.ticket(&member).await).await.unwrap();
    let (late, in_page) = (world.ticket(&member).await, world.ticket(&member).await);
    // From here on time passes only when nobody has anything to do.
    tokio::time::pause();
    let host = world.host.clone();
    let closing = tokio::spawn(async move { host.close(Farewell::SUSPENDING).await });
    tokio::task::yield_now().await;
    let refused = line.ask(&world.signed(&member, "GET", "/shell")).await;
    assert_eq!((refused.status, refused.value()["code"].as_str()), (503, Some("asleep")));
    assert!(refused.header("retry-after").is_some());
    assert_eq!(refusal(open(&world, &late).await), (503, "asleep".to_owned()));
    let page = open_in_page(&world, &in_page).await;
    assert_eq!(closed(page).await, (4503, "suspending".to_owned()));
    closing.await.unwrap();
    assert!(idle.is_over().await);
    drop(socket);
}

#[tokio::test]
async fn a_panic_costs_one_request() {
    let world = World::new().await;
    let member = world.member("read").await;
    let mut line = world.line();
    world.clock.fail_once();
    let failed = line.ask(&world.signed(&member, "GET", "/shell")).await;
    assert_eq!((failed.status, failed.value()["code"].as_str()), (500, Some("internal")));
    assert_eq!(line.ask(&world.signed(&member, "GET", "/shell")).await.status, 200);
}
