//! A client comes up, and what it shows is what the host has.

use wakeful_wire::rpc::Outcome;

use crate::fixture::World;

#[tokio::test]
async fn a_paired_client_sees_what_happens_on_its_host() {
    let world = World::new().await;
    let (client, host) = (&world.client, world.client.host);
    let thread = client.thread().await;
    client.until("its row", |link, _| link.row(host, thread).map(drop)).await;
    client.client.with(|link, now| link.mount(now, host, thread)).unwrap();
    client.run(thread, "echo seen").await;
    let ended = client
        .until("the end of the turn", |link, _| {
            let detail = link.thread(host, thread)?.detail()?;
            detail.thread.last_turn.clone()
        })
        .await;
    assert!(matches!(ended.outcome, Outcome::Completed { .. }), "{ended:?}");
    let text = client.client.with(|link, _| {
        let detail = link.thread(host, thread).unwrap().detail().unwrap();
        serde_json::to_string(&detail.page).unwrap()
    });
    assert!(text.contains("seen"), "{text}");
    assert_eq!(client.generation(), 1);
    client.client.close().await;
}
