//! Phase changes as they happen.

use http::{Method, StatusCode};
use serde_json::json;

use crate::support::{Call, World};

#[tokio::test]
async fn a_stream_begins_with_the_present_state_and_tells_each_change() {
    let world = World::new().await;
    let alice = world.user("alice").await;
    let bob = world.user("bob").await;
    world.phase(&alice, "ready").await;
    let mut stream = world.open(alice.get("/api/events")).await;
    assert_eq!(stream.status, StatusCode::OK);
    assert_eq!(stream.headers["content-type"], "text/event-stream");
    assert_eq!(stream.headers["x-accel-buffering"], "no");
    assert!(stream.until("\"phase\":\"ready\"").await);
    assert!(stream.seen.starts_with("event: environment\ndata: {"), "{}", stream.seen);
    assert!(stream.until("\n\n:\n\n").await, "a comment comes when nothing else does");
    world.send(bob.post(&format!("/api/environments/{}/suspend", bob.project))).await;
    world.send(alice.post(&format!("/api/environments/{}/suspend", alice.project))).await;
    assert!(stream.until("\"phase\":\"suspended\"").await);
    assert!(!stream.seen.contains(&bob.project), "nothing of anybody else");
}

#[tokio::test]
async fn a_projects_stream_is_about_that_project_alone() {
    let world = World::new().await;
    let alice = world.user("alice").await;
    let body = json!({ "title": "Other" });
    let other = world.send(alice.post("/api/projects").json(&body)).await.json();
    let other = other["id"].as_str().unwrap();
    let mut stream = world.open(alice.get(&format!("/api/projects/{other}/events"))).await;
    assert!(stream.until("\"phase\":\"suspended\"").await);
    world.send(alice.post(&format!("/api/environments/{}/suspend", alice.project))).await;
    world.phase(&alice, "suspended").await;
    world.send(alice.post(&format!("/api/environments/{other}/wake"))).await;
    assert!(stream.until("\"phase\":\"ready\"").await);
    assert!(!stream.seen.contains(&alice.project));
    world.send(alice.call(Method::DELETE, &format!("/api/projects/{other}"))).await;
    assert!(stream.until("\"phase\":\"deleted\"").await);
}

#[tokio::test]
async fn a_stream_ends_when_whoever_opened_it_is_signed_out() {
    let world = World::new().await;
    let alice = world.user("alice").await;
    let cookie = world.cookie(&alice).await;
    let mut by_cookie = world.open(Call::get("/api/events").cookie(&cookie)).await;
    let mut by_token = world.open(alice.get("/api/events")).await;
    assert!(by_cookie.until("environment").await && by_token.until("environment").await);
    world.send(alice.post("/logout").json(&json!({ "everywhere": true }))).await;
    by_cookie.ended().await;
    let seen = by_token.seen.len();
    world.send(alice.post(&format!("/api/environments/{}/suspend", alice.project))).await;
    assert!(by_token.until("\"phase\":\"suspended\"").await && by_token.seen.len() > seen);
}

#[tokio::test]
async fn a_user_has_so_many_streams_and_no_more() {
    let world = World::new().await;
    let alice = world.user("alice").await;
    let bob = world.user("bob").await;
    let first = world.open(alice.get("/api/events")).await;
    let _second = world.open(alice.get("/api/events")).await;
    let answer = world.send(alice.get("/api/events")).await;
    answer.refused(429, "too_many_requests");
    assert!(!answer.header("retry-after").is_empty());
    assert_eq!(world.open(bob.get("/api/events")).await.status, StatusCode::OK);
    drop(first);
    assert_eq!(world.open(alice.get("/api/events")).await.status, StatusCode::OK);
}
