//! Every read, who may make it, and how a thread is read while it goes on.

use serde_json::Value;
use wakeful_envd::thread::command::Command;
use wakeful_wire::rpc::{
    Applied, Page, Rows, SearchAnswer, SessionList, ThreadAnswer, ThreadId, ThreadItem,
};

use crate::{client::PATIENCE, fixture::World};

fn targets(thread: ThreadId) -> Vec<(String, &'static str)> {
    vec![
        ("/shell".to_owned(), "read"),
        ("/shell/counts".to_owned(), "read"),
        ("/shell/settled".to_owned(), "read"),
        ("/shell/archived".to_owned(), "read"),
        ("/search?q=hello".to_owned(), "read"),
        (format!("/threads/{thread}"), "read"),
        (format!("/threads/{thread}/page?created=0&segment=0&item=0"), "read"),
        (format!("/threads/{thread}/family"), "read"),
        ("/sessions".to_owned(), "sessions"),
    ]
}

#[tokio::test]
async fn every_read_needs_its_scope_and_credentials() {
    let world = World::new().await;
    let thread = world.thread("hello").await;
    let with = [world.member("read").await, world.member("sessions").await];
    for (target, scope) in targets(thread) {
        let (may, may_not) = if scope == "read" { (0, 1) } else { (1, 0) };
        let answer = world.get(&with[may], &target).await;
        // A page of another making is refused as such: it was asked for by somebody who may.
        let wanted = if target.contains("/page") { 400 } else { 200 };
        assert_eq!(answer.status, wanted, "{target}");
        assert_eq!(answer.header("cache-control"), Some("no-store"), "{target}");
        let refused = world.get(&with[may_not], &target).await;
        assert_eq!(refused.refusal(), (403, "scope_missing".to_owned()), "{target}");
        assert!(refused.header("www-authenticate").unwrap().contains("insufficient_scope"));
        let unknown = world.send(&world.asking("GET", &target)).await;
        assert_eq!(unknown.refusal(), (401, "token_missing".to_owned()), "{target}");
        assert!(unknown.header("www-authenticate").unwrap().starts_with("DPoP algs="));
        assert_eq!(unknown.header("content-type"), Some("application/problem+json"));
    }
}

#[tokio::test]
async fn a_thread_is_read_from_its_newest_page_to_its_beginning() {
    let world = World::new().await;
    let member = world.member("read").await;
    let thread = world.thread("long").await;
    for n in 0..7 {
        world.turn(thread, &format!("answer {n}")).await;
    }
    let answer: ThreadAnswer =
        world.get(&member, format!("/threads/{thread}?turns=2")).await.read();
    let mut detail = answer.detail;
    assert!(detail.page.before.is_some());
    while let Some(before) = detail.page.before {
        let (created, segment, item) = (before.created, before.segment, before.item);
        let target = format!(
            "/threads/{thread}/page?created={created}&segment={segment}&item={item}&turns=2"
        );
        let page: Page = world.get(&member, target).await.read();
        detail.prepend(before, page);
    }
    let text = serde_json::to_string(&detail).unwrap();
    for n in 0..7 {
        assert_eq!(text.matches(&format!("answer {n}")).count(), 1, "{n}");
    }
    let missing = world.get(&member, "/threads/0199f0a0-7b5c-7c3e-9d2f-6a1b2c3d4e50").await;
    assert_eq!((missing.status, missing.value()["code"].as_str()), (404, Some("not_found")));
    world.threads.command(Command::Delete { thread }).await.unwrap();
    assert_eq!(world.get(&member, format!("/threads/{thread}")).await.status, 410);
}

#[tokio::test]
async fn a_family_a_search_and_the_sessions_are_answered() {
    let world = World::new().await;
    let member = world.member("read sessions").await;
    let parent = world.thread("Needle in a title").await;
    let child = world.child(parent).await;
    world.turn(child, "there is a needle in this text").await;
    let family: Rows = world.get(&member, format!("/threads/{child}/family")).await.read();
    assert_eq!(family.rows.len(), 2);
    // Texts are indexed behind the turn's end.
    let search = async {
        loop {
            let answer = world.get(&member, "/search?q=needle&limit=10").await;
            let found: SearchAnswer = answer.read();
            if !found.found.is_empty() {
                return found;
            }
        }
    };
    let found = tokio::time::timeout(PATIENCE, search).await.expect("in time");
    assert_eq!(found.rows[0].id, parent, "titles first");
    assert_eq!(found.found[0].thread, child);
    let long = format!("/search?q={}", "a".repeat(513));
    assert_eq!(world.get(&member, long).await.status, 400);
    assert_eq!(world.get(&member, "/search").await.status, 400);
    let sessions: SessionList = world.get(&member, "/sessions").await.read();
    assert_eq!(sessions.sessions[0].id, member.session);
}

/// A subscription that begins with the answer's cursor brings what the answer lacks, whatever is
/// written while it is read.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_is_missed_between_a_read_and_the_subscription_after_it() {
    const RENAMES: usize = 150;
    let world = World::new().await;
    let member = world.member("read").await;
    let thread = world.thread("title 0").await;
    let writer = {
        let threads = world.threads.clone();
        tokio::spawn(async move {
            for n in 1..=RENAMES {
                let title = format!("title {n}");
                threads.command(Command::Rename { thread, title }).await.unwrap();
            }
        })
    };
    let mut answers: Vec<ThreadAnswer> = Vec::new();
    let mut line = world.line();
    while !writer.is_finished() || answers.is_empty() {
        let asking = world.signed(&member, "GET", format!("/threads/{thread}"));
        answers.push(line.ask(&asking).await.read());
    }
    writer.await.unwrap();
    let end = world.threads.thread(thread).unwrap();
    assert_eq!(end.title, Some(format!("title {RENAMES}")));
    for answer in answers {
        assert!(answer.cursor.seq <= answer.detail.thread.seq, "the cursor runs ahead");
        let mut detail = answer.detail;
        let mut following = world.threads.subscribe_thread(thread, Some(answer.cursor)).unwrap();
        loop {
            let delivery = following.next().await.unwrap().unwrap();
            match delivery.into_item() {
                ThreadItem::Events { events } => {
                    for event in events {
                        let newer = event.seq > detail.thread.seq;
                        assert_eq!(detail.apply(&event) == Applied::Changed, newer);
                    }
                }
                ThreadItem::Synchronized { .. } => break,
                ThreadItem::Resumed { .. } => {}
                other => panic!("a cursor of this host was not taken: {other:?}"),
            }
        }
        assert_eq!(detail.thread, end);
    }
}

#[tokio::test]
async fn other_paths_and_methods_are_refused_with_problems() {
    let world = World::new().await;
    let missing = world.send(&world.asking("GET", "/nowhere")).await;
    assert_eq!((missing.status, missing.value()["code"].as_str()), (404, Some("not_found")));
    let wrong = world.send(&world.asking("DELETE", "/shell")).await;
    assert_eq!((wrong.status, wrong.header("allow")), (405, Some("GET, HEAD")));
    let code: Value = wrong.value()["code"].clone();
    assert_eq!(code, "method_not_allowed");
    let preflight = world.asking("OPTIONS", "/shell").header("origin", "https://evil.example");
    let preflight = world.send(&preflight).await;
    assert_eq!(preflight.status, 405);
    assert!(preflight.headers.iter().all(|(name, _)| !name.starts_with("access-control-")));
}
