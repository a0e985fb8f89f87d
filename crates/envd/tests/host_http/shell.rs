//! The list: conditional reads and what is left out.

use std::collections::HashSet;

use wakeful_envd::thread::command::Command;
use wakeful_wire::rpc::{Counts, RowCursor, Rows, ShellSnapshot, ThreadId};

use crate::fixture::{Member, World};

#[tokio::test]
async fn an_unchanged_list_costs_a_few_bytes_and_a_changed_one_is_answered() {
    let world = World::new().await;
    let member = world.member("read").await;
    let thread = world.thread("first").await;
    let first = world.get(&member, "/shell").await;
    let tag = first.header("etag").unwrap().to_owned();
    assert_eq!(first.read::<ShellSnapshot>().rows.len(), 1);

    let asking = world.signed(&member, "GET", "/shell").header("if-none-match", &tag);
    let unchanged = world.send(&asking).await;
    assert_eq!((unchanged.status, unchanged.header("etag")), (304, Some(tag.as_str())));
    assert!(unchanged.body.is_empty());
    assert!(unchanged.head_len < 200, "{} bytes: {unchanged:?}", unchanged.head_len);

    let weak = world.signed(&member, "GET", "/shell").header("if-none-match", format!("W/{tag}"));
    assert_eq!(world.send(&weak).await.status, 304, "a proxy may have weakened the tag");

    let title = "second".to_owned();
    world.threads.command(Command::Rename { thread, title }).await.unwrap();
    let asking = world.signed(&member, "GET", "/shell").header("if-none-match", &tag);
    let changed = world.send(&asking).await;
    assert_ne!(changed.header("etag"), Some(tag.as_str()));
    let snapshot: ShellSnapshot = changed.read();
    assert_eq!(snapshot.rows[0].title.as_deref(), Some("second"));
}

#[tokio::test]
async fn a_tag_stands_only_for_the_rows_that_it_was_given_with() {
    let world = World::new().await;
    let member = world.member("read").await;
    let parent = world.thread("parent").await;
    world.child(parent).await;
    let all = world.get(&member, "/shell").await;
    assert_eq!(all.read::<ShellSnapshot>().rows.len(), 2);
    let tag = all.header("etag").unwrap();
    let target = "/shell?families=true&older_settled=true";
    let asking = world.signed(&member, "GET", target).header("if-none-match", tag);
    let fewer = world.send(&asking).await;
    let snapshot: ShellSnapshot = fewer.read();
    assert_eq!(snapshot.rows.len(), 1);
    assert!(snapshot.omitted.families && snapshot.older_settled.is_some());
    for garbage in ["*", "\"x\"", "\"0.0.a\"", "\"ffff.1.a\"", ","] {
        let asking = world.signed(&member, "GET", "/shell").header("if-none-match", garbage);
        assert_eq!(world.send(&asking).await.status, 200, "{garbage}");
    }
}

#[tokio::test]
async fn paging_walks_all_settled_and_all_archived_threads_once() {
    let world = World::new().await;
    let member = world.member("read").await;
    let mut settled = HashSet::new();
    let mut archived = HashSet::new();
    for n in 0..23 {
        let thread = world.thread(&format!("thread {n}")).await;
        // The clock stands: many have one moment, and only the thread tells them apart.
        if n % 3 == 0 {
            world.threads.command(Command::Archive { thread }).await.unwrap();
            archived.insert(thread);
        } else {
            let command = Command::Settle { thread, settled: true };
            world.threads.command(command).await.unwrap();
            settled.insert(thread);
        }
        if n % 5 == 0 {
            world.clock.advance(std::time::Duration::from_millis(10));
        }
    }
    assert_eq!(walk(&world, &member, "/shell/settled", 4).await, settled);
    assert_eq!(walk(&world, &member, "/shell/archived", 3).await, archived);
    let counts: Counts = world.get(&member, "/shell/counts").await.read();
    assert_eq!(counts.older_settled.cut, None, "fewer than a snapshot keeps");
}

async fn walk(world: &World, member: &Member, path: &str, limit: usize) -> HashSet<ThreadId> {
    let mut seen = HashSet::new();
    let mut next: Option<RowCursor> = None;
    loop {
        let below = next
            .map_or_else(String::new, |next| format!("&at={}&thread={}", next.at.0, next.thread));
        let page: Rows = world.get(member, format!("{path}?limit={limit}{below}")).await.read();
        assert!(page.rows.len() <= limit);
        for row in &page.rows {
            assert!(seen.insert(row.id), "a row came twice");
        }
        next = page.next;
        if next.is_none() {
            return seen;
        }
    }
}

#[tokio::test]
async fn a_page_has_bounds_and_whole_beginnings() {
    let world = World::new().await;
    let member = world.member("read").await;
    for _ in 0..3 {
        let thread = world.thread("x").await;
        world.threads.command(Command::Settle { thread, settled: true }).await.unwrap();
    }
    let none: Rows = world.get(&member, "/shell/settled?limit=0").await.read();
    assert_eq!(none.rows.len(), 1, "a page holds at least one row");
    let most: Rows = world.get(&member, "/shell/settled?limit=1000000").await.read();
    assert_eq!(most.rows.len(), 3);
    for bad in ["at=5", "limit=-1", "limit=x", "at=x&thread=y"] {
        let answer = world.get(&member, format!("/shell/settled?{bad}")).await;
        assert_eq!(answer.status, 400, "{bad}");
    }
}
