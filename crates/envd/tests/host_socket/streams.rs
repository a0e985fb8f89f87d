//! Subscriptions.

use serde_json::json;
use tokio::time::Duration;
use wakeful_envd::thread::{command::Command, view::FeedLimits};
use wakeful_wire::{
    Code,
    rpc::{CallId, Cursor, Seq, ServerFrame, ShellItem, ThreadItem},
};

use crate::fixture::{Held, NARROW, Place, WIDE};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_happens_while_a_thread_loads_comes_before_the_marker() {
    let place = Place::new().await;
    let thread = place.thread().await;
    place.say(thread, &"word ".repeat(100), 500).await;
    let mut client = place.client(NARROW).await;
    client.request(1, "thread.subscribe", json!({ "thread": thread })).await;
    // The snapshot cannot be taken in whole before this client reads; these come meanwhile.
    let during = place.say(thread, "during", 20).await;
    let mut held = Held::default();
    held.follow(&mut client, during).await;
    assert_eq!((held.snapshots, held.synchronized), (1, 1));
    let last = place.say(thread, "after", 3).await;
    held.follow(&mut client, last).await;
    assert_eq!(held.detail.unwrap(), place.detail(thread).await);
}

#[tokio::test]
async fn a_cursor_resumes_or_gets_a_snapshot() {
    let limits = FeedLimits { gap: 50, ..FeedLimits::default() };
    let place = Place::with(Duration::from_secs(60), limits).await;
    let thread = place.thread().await;
    let early = place.threads.cursor();
    place.say(thread, "a", 60).await;
    let near = place.threads.cursor();
    let head = place.say(thread, "b", 5).await;
    let ahead = Cursor { seq: Seq(head.0 + 100), ..near };
    let mut client = place.client(WIDE).await;
    for (id, cursor, first) in
        [(1, early, "snapshot"), (2, near, "resumed"), (3, ahead, "snapshot")]
    {
        client.request(id, "thread.subscribe", json!({ "thread": thread, "cursor": cursor })).await;
        let (of, item) = client.item().await;
        assert_eq!((of, item["type"].as_str()), (id, Some(first)));
        let mut events = 0;
        let at = loop {
            match client.thread_item().await {
                ThreadItem::Events { events: more } => events += more.len(),
                ThreadItem::Synchronized { cursor } => break cursor,
                other => panic!("{other:?}"),
            }
        };
        // The replay ends at the head of the time of the subscription.
        assert_eq!(at.seq, head);
        assert_eq!(events, if first == "resumed" { 5 } else { 0 });
        client.send(json!({ "type": "cancel", "id": id })).await;
        assert!(matches!(client.frame().await, ServerFrame::End { id: CallId(of) } if of == id));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_probe_overtakes_a_thousand_events_that_nobody_has_taken() {
    let place = Place::new().await;
    let thread = place.thread().await;
    let mut client = place.client(NARROW).await;
    client.request(1, "thread.subscribe", json!({ "thread": thread })).await;
    let mut held = Held::default();
    held.follow(&mut client, Seq::ZERO).await;
    let mut last = Seq::ZERO;
    for _ in 0..10 {
        last = place.say(thread, &"x".repeat(200), 100).await;
    }
    client.send(json!({ "type": "probe", "id": 7 })).await;
    // Whatever was being written when the probe came is finished first: one frame.
    let mut before = 0;
    loop {
        match client.frame().await {
            ServerFrame::Item { item, .. } => {
                held.take(serde_json::from_value(item).unwrap());
                before += 1;
            }
            ServerFrame::Alive { id, head } => {
                assert_eq!((id, head.seq), (CallId(7), last));
                break;
            }
            other => panic!("{other:?}"),
        }
    }
    assert!(before <= 3 && held.seq() < last, "{before} items, {:?} of {last:?}", held.seq());
    held.follow(&mut client, last).await;
    assert_eq!(held.detail.unwrap(), place.detail(thread).await);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_slow_reader_gets_a_snapshot_in_the_middle_and_ends_with_the_log() {
    let limits = FeedLimits { gap: 50, ..FeedLimits::default() };
    let place = Place::with(Duration::from_secs(60), limits).await;
    let thread = place.thread().await;
    let mut client = place.client(NARROW).await;
    client.request(1, "thread.subscribe", json!({ "thread": thread })).await;
    let mut held = Held::default();
    held.follow(&mut client, Seq::ZERO).await;
    let mut last = Seq::ZERO;
    for _ in 0..40 {
        last = place.say(thread, &"x".repeat(300), 25).await;
    }
    held.follow(&mut client, last).await;
    assert!(held.snapshots >= 2, "{held:?}");
    assert!(held.events < 1_000, "it was not sent what the snapshot holds");
    assert_eq!(held.detail.unwrap(), place.detail(thread).await);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_flood_in_one_thread_does_not_starve_another() {
    let place = Place::new().await;
    let (flooded, calm) = (place.thread().await, place.thread().await);
    let mut client = place.client(NARROW).await;
    for (id, thread) in [(1, flooded), (2, calm)] {
        client.request(id, "thread.subscribe", json!({ "thread": thread })).await;
    }
    let mut markers = 0;
    while markers < 2 {
        markers += usize::from(client.item().await.1["type"] == "synchronized");
    }
    for _ in 0..8 {
        place.say(flooded, &"x".repeat(2_000), 100).await;
    }
    let said = place.say(calm, "here", 1).await;
    let last = place.say(flooded, "end", 1).await;
    let mut before = 0;
    let mut seen = Seq::ZERO;
    let mut calm_at = None;
    while seen < last {
        let (id, item) = client.item().await;
        let ThreadItem::Events { events } = serde_json::from_value(item).unwrap() else {
            panic!("no events")
        };
        let newest = events.last().unwrap().seq;
        if id == 2 {
            assert_eq!(newest, said);
            calm_at = Some(before);
        } else {
            before += 1;
            seen = newest;
        }
    }
    // The one being written, and one that was waiting already.
    assert!(calm_at.is_some_and(|at| at <= 2 && at < before), "{calm_at:?} of {before}");
}

#[tokio::test]
async fn a_cancelled_subscription_ends_and_its_id_is_free() {
    let place = Place::new().await;
    let thread = place.thread().await;
    let mut client = place.client(NARROW).await;
    client.request(1, "thread.subscribe", json!({ "thread": thread })).await;
    let mut held = Held::default();
    held.follow(&mut client, Seq::ZERO).await;
    client.request(2, "thread.subscribe", json!({ "thread": thread })).await;
    while client.item().await.1["type"] != "synchronized" {}
    // Both have an item on the way which nobody takes.
    place.say(thread, &"x".repeat(1_000), 20).await;
    client.send(json!({ "type": "cancel", "id": 1 })).await;
    client.send(json!({ "type": "cancel", "id": 2 })).await;
    let mut ended = Vec::new();
    let mut items = Vec::new();
    while ended.len() < 2 {
        match client.frame().await {
            ServerFrame::End { id } => ended.push(id.0),
            ServerFrame::Item { id, .. } => {
                assert!(!ended.contains(&id.0), "an item after the end");
                items.push(id.0);
            }
            other => panic!("{other:?}"),
        }
    }
    client.send(json!({ "type": "cancel", "id": 1 })).await;
    place.say(thread, "more", 1).await;
    assert_eq!(client.ask(1, "activity", json!({})).await, Ok(json!({})));
    client.request(2, "shell.subscribe", json!({})).await;
    let (id, item) = client.item().await;
    assert_eq!(id, 2);
    assert!(matches!(serde_json::from_value(item).unwrap(), ShellItem::Snapshot { .. }));
}

#[tokio::test]
async fn a_deleted_thread_says_so_and_its_subscription_ends() {
    let place = Place::new().await;
    let thread = place.thread().await;
    let mut client = place.client(WIDE).await;
    client.request(1, "thread.subscribe", json!({ "thread": thread })).await;
    Held::default().follow(&mut client, Seq::ZERO).await;
    place.threads.command(Command::Delete { thread }).await.unwrap();
    assert!(matches!(client.thread_item().await, ThreadItem::Deleted { .. }));
    assert!(matches!(client.frame().await, ServerFrame::End { id: CallId(1) }));
    let again = client.ask(1, "thread.subscribe", json!({ "thread": thread })).await;
    assert_eq!(again, Err(Code::Gone));
}

#[tokio::test]
async fn the_list_follows_with_rows_and_a_marker() {
    let place = Place::new().await;
    let thread = place.thread().await;
    let mut client = place.client(WIDE).await;
    client.request(1, "shell.subscribe", json!({})).await;
    let mut items = Vec::new();
    for _ in 0..2 {
        items.push(serde_json::from_value::<ShellItem>(client.item().await.1).unwrap());
    }
    assert!(matches!(&items[0], ShellItem::Snapshot { snapshot } if snapshot.rows.len() == 1));
    assert!(matches!(&items[1], ShellItem::Synchronized { .. }));
    place.threads.command(Command::Pin { thread, pinned: true }).await.unwrap();
    let item: ShellItem = serde_json::from_value(client.item().await.1).unwrap();
    assert!(matches!(&item, ShellItem::Changes { rows, .. } if rows[0].pinned));
}
