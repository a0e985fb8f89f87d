//! A host that ends in the middle of a stream, and starts again.

use wakeful_link::{ConnectionPhase, DataStatus};
use wakeful_wire::rpc::Outcome;

use crate::fixture::{World, printed};

#[tokio::test]
async fn a_stream_goes_on_where_it_was_when_its_host_starts_again() {
    let mut world = World::new().await;
    let host = world.client.host;
    let thread = world.client.thread().await;
    world.client.client.with(|link, now| link.mount(now, host, thread)).unwrap();
    let endless = "i=0; while :; do i=$((i+1)); echo line-$i; sleep 0.02; done";
    world.client.run(thread, endless).await;
    let many = |link: &mut wakeful_link::Link, _| {
        let detail = link.thread(host, thread)?.detail()?;
        (printed(detail).len() >= 10).then_some(())
    };
    world.client.until("lines", many).await;
    world.server.kill();
    let lost = world.client.until("the loss", |link, _| {
        link.connection(host).filter(|state| state.phase != ConnectionPhase::Connected).cloned()
    });
    let lost = lost.await;
    assert!(lost.last_failure.is_some(), "{lost:?}");
    // What was read stays, and does not claim to be current.
    world.client.client.with(|link, _| {
        let state = link.thread(host, thread).unwrap();
        assert!(state.detail().is_some());
        assert_ne!(state.status, DataStatus::Live);
    });
    world.server.run();
    world.client.client.with(|link, now| link.retry(now, host));
    let ended = world.client.until("the cut turn", |link, _| {
        let state = link.thread(host, thread)?;
        let detail = state.detail().filter(|_| state.status == DataStatus::Live)?;
        detail.thread.last_turn.clone().map(|turn| (turn, detail.clone()))
    });
    let (turn, detail) = ended.await;
    assert_eq!(turn.outcome, Outcome::Cut);
    assert_eq!(world.client.generation(), 2);
    // Nothing twice, and nothing left out.
    let numbers: Vec<u32> = printed(&detail)
        .iter()
        .filter_map(|line| line.strip_prefix("line-")?.parse().ok())
        .collect();
    let expected: Vec<u32> = (1..).take(numbers.len()).collect();
    assert_eq!(numbers, expected);
    world.client.client.close().await;
}

#[tokio::test]
async fn what_was_seen_is_there_before_the_host_is_reached_again() {
    let mut world = World::new().await;
    let host = world.client.host;
    let thread = world.client.thread().await;
    world.client.until("its row", |link, _| link.row(host, thread).map(drop)).await;
    world.client.client.close().await;
    world.server.kill();
    let again = world.desk.start().await;
    again.until("its cached row", |link, _| link.row(host, thread).map(drop)).await;
    let status = again.client.with(|link, _| link.shell(host).unwrap().status);
    assert!(matches!(status, DataStatus::Cached | DataStatus::Synchronizing), "{status:?}");
    assert_ne!(again.connection().unwrap().phase, ConnectionPhase::Connected);
    world.server.run();
    again.client.with(|link, now| link.retry(now, host));
    again.live().await;
    again.client.close().await;
}
