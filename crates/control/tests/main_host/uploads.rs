//! Many files at once.

use axum::body::Body;
use bytes::Bytes;
use futures::stream;
use http::StatusCode;
use serde_json::{Value, json};
use wakeful_control::{accounts::LimitSettings, api::ApiSettings};

use crate::support::{Answer, Call, User, World};

const TYPE: &str = "multipart/form-data; boundary=XX";

fn part(name: &str, content: &str) -> String {
    format!(
        "--XX\r\nContent-Disposition: form-data; name=\"{name}\"; filename=\"x\"\r\n\r\n{content}\r\n"
    )
}

fn upload(user: &User, query: &str, body: impl Into<Body>) -> Call {
    let path = format!("/api/projects/{}/upload{query}", user.project);
    user.post(&path).header("content-type", TYPE).body(body)
}

fn lines(answer: &Answer) -> Vec<Value> {
    assert_eq!(answer.header("content-type"), "application/x-ndjson", "{answer:?}");
    answer.text().lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[tokio::test]
async fn files_land_under_the_upload_folder_and_wake_nothing() {
    let world = World::new().await;
    let alice = world.user("alice").await;
    world.send(alice.post(&format!("/api/environments/{}/suspend", alice.project))).await;
    world.phase(&alice, "suspended").await;
    let starts = world.driver.creates();
    let body = [part("a.txt", "one"), part("deep/er/.env", ""), "--XX--\r\n".into()].concat();
    let answer = world.send(upload(&alice, "", body)).await;
    assert_eq!(answer.status, StatusCode::CREATED);
    assert_eq!(
        lines(&answer),
        [
            json!({ "event": "file", "path": "a.txt", "ok": true, "bytes": 3 }),
            json!({ "event": "file", "path": "deep/er/.env", "ok": true, "bytes": 0 }),
            json!({ "event": "done", "uploaded": 2, "failed": 0 }),
        ]
    );
    let root = world.workspace(&alice).join("user_uploaded_files");
    assert_eq!(std::fs::read_to_string(root.join("a.txt")).unwrap(), "one");
    assert_eq!(std::fs::read_to_string(root.join("deep/er/.env")).unwrap(), "");
    assert_eq!(world.driver.creates(), starts);
    world.phase(&alice, "suspended").await;
}

#[tokio::test]
async fn an_upload_to_a_running_environment_touches_its_agent_clock() {
    let world = World::new().await;
    let alice = world.user("alice").await;
    world.advance(std::time::Duration::from_secs(600));
    let before = world.phase(&alice, "ready").await["clocks"]["agent"]["expires_in_ms"].as_u64();
    let body = [part("a.txt", "one"), "--XX--\r\n".into()].concat();
    world.send(upload(&alice, "", body)).await;
    let after = world.phase(&alice, "ready").await;
    assert!(after["clocks"]["agent"]["expires_in_ms"].as_u64() > before);
    assert_eq!(after["clocks"]["app"]["expires_in_ms"], 0);
}

#[tokio::test]
async fn a_bad_file_does_not_stop_the_others_and_the_status_says_so() {
    let world = World::new().await;
    let alice = world.user("alice").await;
    std::fs::create_dir_all(world.workspace(&alice).join("user_uploaded_files/dir/x")).unwrap();
    let bad = ["", ".", "/abs", "../up", "a/../b", "..\\up", &"x".repeat(256), "dir"];
    for name in bad {
        let body = [part("before", "1"), part(name, "2"), part("after", "3"), "--XX--\r\n".into()];
        let answer = world.send(upload(&alice, "", body.concat())).await;
        assert_eq!(answer.status, StatusCode::MULTI_STATUS, "{name}");
        let lines = lines(&answer);
        assert_eq!(lines[1]["ok"], false, "{name}");
        assert!(lines[1]["error"].is_string(), "{name}");
        assert_eq!(lines[3], json!({ "event": "done", "uploaded": 2, "failed": 1 }));
        let alone = [part(name, "2"), "--XX--\r\n".into()].concat();
        let answer = world.send(upload(&alice, "", alone)).await;
        let expected = if name == "dir" { StatusCode::CONFLICT } else { StatusCode::BAD_REQUEST };
        assert_eq!(answer.status, expected, "{name}");
    }
    assert!(!world.workspace(&alice).join("up").exists());
    assert!(!world.workspace(&alice).parent().unwrap().join("up").exists());
}

#[tokio::test]
async fn a_summary_keeps_failures_and_the_end() {
    let world = World::new().await;
    let alice = world.user("alice").await;
    let body = [part("a", "1"), part("..", "2"), "--XX--\r\n".into()].concat();
    let call = upload(&alice, "", body).header("x-upload-events", "summary");
    let lines = lines(&world.send(call).await);
    assert_eq!(lines.len(), 2);
    assert_eq!((&lines[0]["path"], &lines[0]["ok"]), (&json!(".."), &json!(false)));
    let call = upload(&alice, "", "").header("x-upload-events", "everything");
    world.send(call).await.refused(400, "invalid");
}

#[tokio::test]
async fn with_progress_the_outcome_stands_in_the_last_line() {
    let world = World::new().await;
    let alice = world.user("alice").await;
    let head = part("slow", "").trim_end().to_owned() + "\r\n\r\n";
    let chunks = stream::unfold(0, move |n| {
        let head = head.clone();
        async move {
            let chunk = match n {
                0 => head,
                1..=3 => {
                    tokio::time::sleep(std::time::Duration::from_millis(260)).await;
                    "xxxx".to_owned()
                }
                4 => "\r\n--XX--\r\n".to_owned(),
                _ => return None,
            };
            Some((Ok::<_, std::io::Error>(Bytes::from(chunk)), n + 1))
        }
    });
    let call = upload(&alice, "", Body::from_stream(chunks)).header("x-upload-events", "progress");
    let answer = world.send(call).await;
    assert_eq!(answer.status, StatusCode::OK);
    let lines = lines(&answer);
    assert_eq!(lines[0], json!({ "event": "progress", "path": "slow", "bytes": 4 }));
    assert_eq!(lines.last().unwrap()["event"], "done");
    let ups = world.workspace(&alice).join("user_uploaded_files");
    assert_eq!(std::fs::read_to_string(ups.join("slow")).unwrap(), "x".repeat(12));
}

#[tokio::test]
async fn a_broken_transfer_leaves_no_partial_file() {
    let world = World::new().await;
    let alice = world.user("alice").await;
    let whole = [part("kept", "old"), "--XX--\r\n".into()].concat();
    world.send(upload(&alice, "", whole)).await;
    let cut = [part("first", "1"), part("kept", "half of the n")].concat();
    let cut = cut.trim_end().to_owned();
    let answer = world.send(upload(&alice, "", cut)).await;
    assert_eq!(answer.status, StatusCode::BAD_REQUEST);
    assert_eq!(lines(&answer).last().unwrap()["event"], "error");
    let ups = world.workspace(&alice).join("user_uploaded_files");
    assert_eq!(std::fs::read_to_string(ups.join("kept")).unwrap(), "old");
    assert_eq!(std::fs::read_to_string(ups.join("first")).unwrap(), "1");
    assert_eq!(std::fs::read_dir(&ups).unwrap().count(), 2);
}

#[tokio::test]
async fn an_upload_is_bounded_whether_or_not_it_states_its_length() {
    let world = World::new().await;
    let alice = world.user("alice").await;
    let unread = Body::from_stream(stream::pending::<Result<Bytes, std::io::Error>>());
    let stated = upload(&alice, "", unread).header("content-length", "1048577");
    world.send(stated).await.refused(413, "too_large");
    let body = [part("big", &"x".repeat(1 << 20)), "--XX--\r\n".into()].concat();
    let chunks = body.into_bytes().chunks(50_000).map(Bytes::copy_from_slice).collect::<Vec<_>>();
    let chunks = stream::iter(chunks.into_iter().map(Ok::<_, std::io::Error>));
    let answer = world.send(upload(&alice, "", Body::from_stream(chunks))).await;
    assert_eq!(answer.status, StatusCode::PAYLOAD_TOO_LARGE);
    assert!(!world.workspace(&alice).join("user_uploaded_files/big").exists());
    let not_multipart = alice
        .post(&format!("/api/projects/{}/upload", alice.project))
        .header("content-type", "text/plain");
    world.send(not_multipart).await.refused(415, "unsupported_media_type");
}

#[tokio::test]
async fn more_uploads_than_may_be_at_once_are_refused_and_none_is_cut() {
    let settings = ApiSettings { uploads_at_once: 1, ..ApiSettings::default() };
    let world = World::with(settings, LimitSettings::default()).await;
    let alice = world.user("alice").await;
    let (more, chunks) = tokio::sync::mpsc::channel::<&'static str>(4);
    let body = stream::unfold(chunks, async |mut chunks| {
        chunks.recv().await.map(|chunk| (Ok::<_, std::io::Error>(Bytes::from(chunk)), chunks))
    });
    let put = format!("/api/projects/{}/files/slow", alice.project);
    let slow = alice.call(http::Method::PUT, &put).body(Body::from_stream(body));
    let second = alice.call(http::Method::PUT, &put).body("second");
    let (slow, ()) = tokio::join!(world.send(slow), async {
        more.send("whole").await.unwrap();
        // Once its first bytes are taken, the only turn is.
        while more.capacity() < 4 {
            tokio::task::yield_now().await;
        }
        let mut held = world.phase(&alice, "ready").await;
        while held["leases"] == json!([]) {
            tokio::task::yield_now().await;
            held = world.phase(&alice, "ready").await;
        }
        assert_eq!(held["leases"][0]["kind"], "upload", "an upload holds it awake");
        let refused = world.send(second).await;
        refused.refused(503, "overloaded");
        assert_eq!(refused.header("retry-after"), "1");
        drop(more);
    });
    assert_eq!(slow.status, StatusCode::CREATED);
    while world.phase(&alice, "ready").await["leases"] != json!([]) {
        tokio::task::yield_now().await;
    }
    let get = world.send(alice.get(&put)).await;
    assert_eq!(get.text(), "whole");
}
