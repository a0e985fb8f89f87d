//! The list over a socket: where it resumes, where it begins anew, and when the marker comes.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

use futures::future::join_all;
use serde_json::{Value, json};
use wakeful_envd::thread::command::{Command, Create};
use wakeful_wire::rpc::{Cursor, Epoch, Seq, ServerFrame, ShellItem, ShellSnapshot, ThreadId};

use crate::{
    client::PATIENCE,
    door::{enter, socket},
    fixture::World,
};

/// So many changes at most are sent after a cursor.
const GAP: usize = 1_000;

/// Makes so many threads at once.
async fn make(world: &World, many: usize) {
    let create = |_| {
        let create = Create { agent: "shell".to_owned(), ..Create::default() };
        world.threads.command(Command::Create(create))
    };
    for made in join_all((0..many).map(create)).await {
        made.unwrap();
    }
}

#[tokio::test]
async fn a_list_resumes_within_a_thousand_changes_and_begins_anew_beyond() {
    let world = World::new().await;
    let member = enter(&world, 1, "read").await;
    let (mut client, _) = socket(&world, &member).await;
    make(&world, 1).await;
    let early = world.threads.cursor();
    make(&world, 1).await;
    let near = world.threads.cursor();
    make(&world, GAP).await;
    let head = world.threads.cursor();
    let ahead = Cursor { seq: head.seq.next(), ..head };
    let foreign = Cursor { epoch: Epoch(u64::MAX / 2), ..near };
    let table = [
        ("at the head", head, Some(0)),
        ("a thousand behind", near, Some(GAP)),
        ("one more behind", early, None),
        ("ahead of the head", ahead, None),
        ("of another log", foreign, None),
    ];
    for (id, (what, cursor, resumed)) in (1..).zip(table) {
        client.request(id, "shell.subscribe", json!({ "cursor": cursor })).await;
        let mut first = true;
        let mut rows = 0;
        let synchronized = loop {
            let (of, item) = client.item().await;
            assert_eq!(of, id);
            match serde_json::from_value(item).unwrap() {
                ShellItem::Resumed { cursor: at } => {
                    assert!(first && resumed.is_some(), "{what}");
                    assert_eq!(at.seq, cursor.seq);
                }
                ShellItem::Snapshot { snapshot } => {
                    assert!(first && resumed.is_none(), "{what}");
                    // It replaces what is held even where it is lower.
                    assert_eq!((snapshot.cursor, snapshot.rows.len()), (head, GAP + 2));
                }
                ShellItem::Changes { rows: more, .. } => rows += more.len(),
                ShellItem::Synchronized { cursor } => break cursor,
                other => panic!("{what}: {other:?}"),
            }
            first = false;
        };
        assert_eq!((synchronized, rows), (head, resumed.unwrap_or(0)), "{what}");
        client.send(json!({ "type": "cancel", "id": id })).await;
        while !matches!(client.frame().await, ServerFrame::End { .. }) {}
    }
}

/// What comes before the marker is bounded by what had happened when the client subscribed, or no
/// marker would come here; and none of what happens meanwhile is lost.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_resume_on_a_host_that_never_rests_reaches_its_marker_and_loses_nothing() {
    let world = Arc::new(World::new().await);
    let member = enter(&world, 1, "read").await;
    let (mut client, _) = socket(&world, &member).await;
    make(&world, 1).await;
    let cursor = world.threads.cursor();
    make(&world, 500).await;
    let done = Arc::new(AtomicBool::new(false));
    let busy = tokio::spawn({
        let (world, done) = (Arc::clone(&world), Arc::clone(&done));
        async move {
            while !done.load(Ordering::SeqCst) {
                make(&world, 2).await;
            }
            world.threads.cursor().seq
        }
    });
    client.request(1, "shell.subscribe", json!({ "cursor": cursor })).await;
    let mut rows: Vec<ThreadId> = Vec::new();
    let mut at = Seq::ZERO;
    let mut markers = 0;
    let mut end = None;
    let mut busy = Some(busy);
    while end.is_none_or(|end| at < end) {
        match serde_json::from_value(client.item().await.1).unwrap() {
            ShellItem::Resumed { .. } => {}
            ShellItem::Changes { seq, rows: more, .. } => {
                assert!(seq > at, "nothing twice");
                at = seq;
                rows.extend(more.iter().map(|row| row.id));
            }
            ShellItem::Synchronized { cursor } => {
                assert!(cursor.seq >= at);
                markers += 1;
                assert!(rows.len() >= 500, "the marker came before what had happened");
                done.store(true, Ordering::SeqCst);
                let busy = busy.take().expect("one marker");
                end = Some(tokio::time::timeout(PATIENCE, busy).await.unwrap().unwrap());
            }
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(markers, 1);
    rows.sort_unstable();
    rows.dedup();
    let all: ShellSnapshot = world.get(&member, "/shell").await.read();
    assert_eq!(rows.len() + 1, all.rows.len(), "all but the one that was held before");
}

#[tokio::test]
async fn a_list_from_a_read_is_resumed_by_the_subscription_without_a_second_copy() {
    let world = World::new().await;
    let member = enter(&world, 1, "read").await;
    let (mut client, _) = socket(&world, &member).await;
    make(&world, 30).await;
    for query in ["", "families=true", "older_settled=true", "families=true&older_settled=true"] {
        let read: Value = world.get(&member, format!("/shell?{query}")).await.read();
        let omit = read["omitted"].clone();
        assert_eq!(
            omit["families"],
            query.contains("families"),
            "the answer says what it left out"
        );
        assert_eq!(omit["older_settled"], query.contains("older"));
        let params = json!({ "cursor": read["cursor"], "omit": omit });
        client.request(1, "shell.subscribe", params).await;
        assert_eq!(client.item().await.1["type"], "resumed");
        let (_, marker) = client.item().await;
        assert_eq!((&marker["type"], &marker["cursor"]), (&json!("synchronized"), &read["cursor"]));
        client.send(json!({ "type": "cancel", "id": 1 })).await;
        while !matches!(client.frame().await, ServerFrame::End { .. }) {}
    }
}
