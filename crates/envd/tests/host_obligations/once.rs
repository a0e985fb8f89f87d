//! Commands that break off, threads that are gone, and what proves who a host is.

use serde_json::json;
use uuid::Uuid;
use wakeful_envd::thread::command::Command;
use wakeful_wire::{
    Code,
    host::Descriptor,
    rpc::{ClientId, ThreadId, ThreadItem},
};

use crate::{
    client::PATIENCE,
    door::{enter, socket},
    fixture::World,
};

#[tokio::test]
async fn a_prompt_whose_answer_was_lost_is_taken_once_however_often_it_is_sent() {
    let world = World::new().await;
    let member = enter(&world, 1, "read write").await;
    let thread = world.thread("one").await;
    let prompt = json!({
        "client": ClientId::from_uuid(Uuid::from_u128(11)),
        "parts": [{ "type": "text", "text": "hello" }],
    });
    let params = json!({ "thread": thread, "prompt": prompt });
    let (mut client, _) = socket(&world, &member).await;
    client.request(1, "thread.prompt", params.clone()).await;
    let taken = async {
        while world.threads.thread(thread).is_ok_and(|held| held.turn.is_none()) {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(PATIENCE, taken).await.expect("in time");
    // It breaks off before the answer is seen, and the client does not know.
    drop(client);
    let (mut client, _) = socket(&world, &member).await;
    let second = client.ask(1, "thread.prompt", params.clone()).await.unwrap();
    let third = client.ask(2, "thread.prompt", params).await.unwrap();
    assert_eq!(second, third, "the event that took it");
    assert_eq!(second["changed"], false);
    client.request(3, "thread.subscribe", json!({ "thread": thread })).await;
    let ThreadItem::Snapshot { detail, .. } =
        serde_json::from_value(client.item().await.1).unwrap()
    else {
        panic!("not a snapshot first")
    };
    let held = detail.thread.queue.len() + usize::from(detail.thread.turn.is_some());
    assert_eq!(held, 1, "{:?}", detail.thread);
}

#[tokio::test]
async fn a_thread_that_is_gone_is_told_from_one_that_never_was() {
    let world = World::new().await;
    let member = enter(&world, 1, "read").await;
    let (mut client, _) = socket(&world, &member).await;
    let gone = world.thread("gone").await;
    world.threads.command(Command::Delete { thread: gone }).await.unwrap();
    let never = ThreadId::from_uuid(Uuid::from_u128(99));
    let table = [(gone, 410, "gone", Code::Gone), (never, 404, "not_found", Code::NotFound)];
    for (id, (thread, status, name, code)) in (1..).zip(table) {
        let answer = world.get(&member, format!("/threads/{thread}")).await;
        assert_eq!((answer.status, answer.value()["code"].as_str()), (status, Some(name)));
        let answer = client.ask(id, "thread.subscribe", json!({ "thread": thread })).await;
        assert_eq!(answer, Err(code), "{name}");
    }
    // The socket is none the worse for it.
    client.answers().await;
}

#[tokio::test]
async fn the_first_frame_proves_who_the_host_is_and_how_it_is_configured() {
    let world = World::new().await;
    let member = enter(&world, 1, "read").await;
    let descriptor = world.send(&world.asking("GET", "/descriptor")).await;
    let descriptor: Descriptor = descriptor.read();
    let (mut client, hello) = socket(&world, &member).await;
    assert_eq!(hello.host, descriptor);
    assert_eq!(hello.config.revision, 1);
    assert_eq!((hello.session.id, hello.session.connections), (member.session, 1));
    assert_eq!(hello.head, world.threads.cursor());
    client.answers().await;
}
