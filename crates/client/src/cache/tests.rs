use std::os::unix::fs::PermissionsExt as _;

use serde_json::{Value, json};
use uuid::Uuid;

use super::*;

fn host(number: u64) -> HostId {
    HostId::from_uuid(Uuid::from_u64_pair(1, number))
}

fn thread(number: u64) -> ThreadId {
    ThreadId::from_uuid(Uuid::from_u64_pair(2, number))
}

async fn open(directory: &Path) -> Cache {
    Cache::open(directory).await.unwrap()
}

#[tokio::test]
async fn what_was_saved_is_there_in_the_next_run() {
    let directory = tempfile::tempdir().unwrap();
    let here = directory.path().join("cache");
    let cache = open(&here).await;
    assert_eq!(cache.shell::<Value>(host(1)).await.unwrap(), None);
    cache.save_shell(host(1), &json!({ "at": 1 })).await.unwrap();
    cache.save_shell(host(1), &json!({ "at": 2 })).await.unwrap();
    cache.save_thread(host(1), thread(1), &json!({ "at": 3 }), Timestamp(5)).await.unwrap();
    cache.keep_owned(host(1), "draft", &"half a sentence").await.unwrap();
    cache.close().await;
    let cache = open(&here).await;
    assert_eq!(cache.shell(host(1)).await.unwrap(), Some(json!({ "at": 2 })));
    assert_eq!(cache.shell::<Value>(host(2)).await.unwrap(), None);
    let held = cache.thread(host(1), thread(1), Timestamp(6)).await.unwrap();
    assert_eq!(held, Some(json!({ "at": 3 })));
    assert_eq!(cache.owned(host(1), "draft").await.unwrap(), Some("half a sentence".to_owned()));
    let mode = |path: &Path| path.metadata().unwrap().permissions().mode() & 0o777;
    assert_eq!((mode(&here), mode(&here.join("cache.sqlite3"))), (0o700, 0o600));
    assert_eq!(mode(&here.join("cache.sqlite3-wal")), 0o600);
}

#[tokio::test]
async fn threads_that_were_used_least_recently_go_first() {
    let directory = tempfile::tempdir().unwrap();
    let cache = open(directory.path()).await;
    for number in 0..2_000 {
        cache
            .save_thread(host(1), thread(number), &json!(number), Timestamp(number))
            .await
            .unwrap();
    }
    // The oldest is looked at again.
    assert_eq!(cache.thread(host(1), thread(0), Timestamp(9_000)).await.unwrap(), Some(json!(0)));
    cache.save_thread(host(2), thread(7), &json!("new"), Timestamp(9_001)).await.unwrap();
    let there = async |number| {
        cache.thread::<Value>(host(1), thread(number), Timestamp(9_002)).await.unwrap().is_some()
    };
    assert!(there(0).await && there(2).await);
    assert!(!there(1).await);
}

#[tokio::test]
async fn a_broken_or_newer_file_is_put_aside_and_begun_anew() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("cache.sqlite3");
    std::fs::write(&file, b"this is no database, and long enough to be taken for one".repeat(40))
        .unwrap();
    let cache = open(directory.path()).await;
    cache.save_shell(host(1), &json!(1)).await.unwrap();
    assert!(directory.path().join("cache.sqlite3.bad").exists());
    sqlx::raw_sql("PRAGMA user_version = 99").execute(&cache.pool).await.unwrap();
    cache.close().await;
    let cache = open(directory.path()).await;
    assert_eq!(cache.shell::<Value>(host(1)).await.unwrap(), None);
}

#[tokio::test]
async fn a_value_that_cannot_be_read_counts_as_not_there() {
    let directory = tempfile::tempdir().unwrap();
    let cache = open(directory.path()).await;
    cache.save_shell(host(1), &json!("text")).await.unwrap();
    assert_eq!(cache.shell::<u32>(host(1)).await.unwrap(), None);
}

#[tokio::test]
async fn two_programs_may_write_at_once() {
    let directory = tempfile::tempdir().unwrap();
    let (one, two) = (open(directory.path()).await, open(directory.path()).await);
    let write = async |cache: &Cache, from: u64| {
        for number in from..from + 50 {
            cache.save_thread(host(1), thread(number), &number, Timestamp(number)).await.unwrap();
        }
    };
    tokio::join!(write(&one, 0), write(&two, 100));
    for number in (0..50).chain(100..150) {
        assert_eq!(one.thread(host(1), thread(number), Timestamp(1)).await.unwrap(), Some(number));
    }
}

#[tokio::test]
async fn a_removal_is_remembered_until_everything_is_deleted() {
    let directory = tempfile::tempdir().unwrap();
    let cache = open(directory.path()).await;
    for number in [1, 2] {
        cache.save_shell(host(number), &json!(1)).await.unwrap();
        cache.save_thread(host(number), thread(1), &json!(1), Timestamp(1)).await.unwrap();
        cache.keep_owned(host(number), "entry", &json!("entry")).await.unwrap();
        cache.keep_owned(host(number), "draft", &json!("draft")).await.unwrap();
    }
    cache.remove_owned(host(1), "entry", true).await.unwrap();
    assert_eq!(cache.doomed().await.unwrap(), [host(1)]);
    let entries = cache.owned_by_all::<Value>("entry").await.unwrap();
    assert_eq!(entries, [(host(2), json!("entry"))]);
    assert!(cache.owned::<Value>(host(1), "draft").await.unwrap().is_some());
    cache.clear(host(1)).await.unwrap();
    assert_eq!(cache.doomed().await.unwrap(), []);
    assert_eq!(cache.owned::<Value>(host(1), "draft").await.unwrap(), None);
    assert_eq!(cache.shell::<Value>(host(1)).await.unwrap(), None);
    assert_eq!(cache.thread::<Value>(host(1), thread(1), Timestamp(1)).await.unwrap(), None);
    assert!(cache.shell::<Value>(host(2)).await.unwrap().is_some());
}
