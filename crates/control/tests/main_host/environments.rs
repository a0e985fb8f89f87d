//! Projects and environments by the API.

use std::time::Duration;

use http::{Method, StatusCode};
use serde_json::json;

use crate::support::{Call, World};

#[tokio::test]
async fn an_environment_is_woken_put_to_sleep_and_started_anew() {
    let world = World::new().await;
    let alice = world.user("alice").await;
    let path = format!("/api/environments/{}", alice.project);
    let ready = world.phase(&alice, "ready").await;
    assert_eq!(ready["surfaces"][1]["name"], "app");
    let url = format!("http://{}-dev.apps.wakeful.localhost:7878/", alice.project);
    assert_eq!(ready["surfaces"][1]["url"], url.as_str());
    let answer = world.send(alice.post(&format!("{path}/suspend"))).await;
    assert_eq!(answer.status, StatusCode::ACCEPTED, "{answer:?}");
    let asleep = world.phase(&alice, "suspended").await;
    assert_eq!(asleep["sandbox"], json!(null));
    let answer = world.send(alice.post(&format!("{path}/wake?wait_ms=20000"))).await;
    assert_eq!(answer.status, StatusCode::OK, "{answer:?}");
    let woken = answer.json();
    assert_eq!(woken["phase"], "ready");
    assert_ne!(woken["sandbox"], ready["sandbox"]);
    let answer = world.send(alice.post(&format!("{path}/restart"))).await;
    assert!(answer.status.is_success(), "{answer:?}");
    for _ in 0..2_000 {
        let now = world.phase(&alice, "ready").await;
        if now["sandbox"] != woken["sandbox"] {
            break;
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    assert_ne!(world.phase(&alice, "ready").await["sandbox"], woken["sandbox"]);
}

#[tokio::test]
async fn a_wake_that_takes_longer_than_the_wait_is_accepted() {
    let world = World::new().await;
    let alice = world.user("alice").await;
    let path = format!("/api/environments/{}", alice.project);
    world.send(alice.post(&format!("{path}/suspend"))).await;
    world.phase(&alice, "suspended").await;
    world.driver.hold_creates(true);
    let answer = world.send(alice.post(&format!("{path}/wake?wait_ms=30"))).await;
    assert_eq!(answer.status, StatusCode::ACCEPTED);
    assert_eq!(answer.json()["phase"], "starting");
    world.driver.hold_creates(false);
    world.phase(&alice, "ready").await;
}

#[tokio::test]
async fn it_says_why_it_is_awake_and_can_be_kept_so() {
    let world = World::new().await;
    let alice = world.user("alice").await;
    let path = format!("/api/environments/{}", alice.project);
    world.phase(&alice, "ready").await;
    let explain = world.send(alice.get(&format!("{path}/explain"))).await.json();
    assert_eq!(explain["phase"], "ready");
    assert!(explain["sentence"].is_string());
    let before = explain["sleeps_in_ms"].as_u64().unwrap();
    let body = json!({ "minutes": 240 });
    let answer = world.send(alice.post(&format!("{path}/extend")).json(&body)).await;
    assert_eq!(answer.status, StatusCode::OK);
    let explain = world.send(alice.get(&format!("{path}/explain"))).await.json();
    assert!(explain["sleeps_in_ms"].as_u64().unwrap() > before, "{explain}");
    for minutes in [0, 1_441] {
        let body = json!({ "minutes": minutes });
        let answer = world.send(alice.post(&format!("{path}/extend")).json(&body)).await;
        answer.refused(400, "invalid");
        assert_eq!(answer.json()["field"], "minutes");
    }
}

#[tokio::test]
async fn projects_are_made_listed_deleted_and_restored() {
    let world = World::new().await;
    let alice = world.user("alice").await;
    let body = json!({ "title": " Shop ", "template": "demo" });
    let made = world.send(alice.post("/api/projects").json(&body)).await;
    assert_eq!(made.status, StatusCode::CREATED, "{made:?}");
    let place = made.header("location").to_owned();
    let project = made.json();
    assert_eq!(project["title"], "Shop");
    assert_eq!(project["environments"][0]["phase"], "suspended");
    assert_eq!(place, format!("/api/projects/{}", project["id"].as_str().unwrap()));
    assert_eq!(world.send(alice.get("/api/projects")).await.json().as_array().unwrap().len(), 2);
    world.send(alice.post(&format!("{place}/restore"))).await.refused(409, "wrong_phase");
    for _ in 0..2 {
        let answer = world.send(alice.call(Method::DELETE, &place)).await;
        assert_eq!(answer.status, StatusCode::ACCEPTED);
    }
    world.send(alice.get(&place)).await.refused(404, "not_found");
    let mut deleted = json!([]);
    while deleted == json!([]) {
        tokio::task::yield_now().await;
        deleted = world.send(alice.get("/api/projects?deleted=true")).await.json();
    }
    assert_eq!(deleted[0]["title"], "Shop");
    assert!(deleted[0]["keep_until"].as_u64() > deleted[0]["deleted_at"].as_u64());
    let restored = world.send(alice.post(&format!("{place}/restore"))).await;
    assert_eq!(restored.status, StatusCode::OK, "{restored:?}");
    assert_eq!(restored.json()["title"], "Shop");
    assert_eq!(world.send(alice.get("/api/projects?deleted=true")).await.json(), json!([]));
}

#[tokio::test]
async fn what_cannot_be_a_project_is_refused_by_field() {
    let world = World::new().await;
    let alice = world.user("alice").await;
    let table = [
        (json!({ "title": " " }), "title"),
        (json!({ "title": "x".repeat(121) }), "title"),
        (json!({ "title": "a\nb" }), "title"),
        (json!({}), "title"),
        (json!({ "title": "x", "template": "unknown" }), "template"),
        (json!({ "title": "x", "template": "exotic" }), "template"),
        (json!({ "title": "x", "owner": "bob" }), "owner"),
    ];
    for (body, field) in table {
        let answer = world.send(alice.post("/api/projects").json(&body)).await;
        answer.refused(400, "invalid");
        assert_eq!(answer.json()["field"], field, "{body}");
    }
    let exotic = json!({ "title": "x", "template": "exotic" });
    let answer = world.send(alice.post("/api/projects").json(&exotic)).await;
    assert!(answer.text().contains("install exotic"), "{}", answer.text());
    let templates = world.send(alice.get("/api/templates")).await.json();
    assert_eq!(templates[0]["name"], "demo");
    assert!(templates[0].get("missing").is_none());
    assert!(templates[1]["missing"].as_str().unwrap().contains("install exotic"));
}

#[tokio::test]
async fn logs_are_text_of_a_surface_that_there_is() {
    let world = World::new().await;
    let alice = world.user("alice").await;
    let path = format!("/api/environments/{}/logs", alice.project);
    let answer = world.send(alice.get(&format!("{path}?surface=app&tail=10"))).await;
    assert_eq!(answer.status, StatusCode::OK);
    assert_eq!(answer.header("content-type"), "text/plain; charset=utf-8");
    world.send(alice.get(&format!("{path}?surface=none"))).await.refused(404, "not_found");
    world.send(alice.get(&format!("{path}?colour=red"))).await.refused(400, "bad_request");
}

#[tokio::test]
async fn a_followed_log_ends_when_its_reader_is_signed_out() {
    let world = World::new().await;
    let alice = world.user("alice").await;
    let cookie = world.cookie(&alice).await;
    let path = format!("/api/environments/{}/logs?follow=true", alice.project);
    let mut following = world.open(Call::get(&path).cookie(&cookie)).await;
    assert_eq!(following.status, StatusCode::OK);
    let all = alice.post("/logout").json(&json!({ "everywhere": true }));
    world.send(all).await;
    following.ended().await;
}

#[tokio::test]
async fn health_readiness_and_metrics_are_told_to_anybody() {
    let world = World::new().await;
    world.user("alice").await;
    for path in ["/healthz", "/readyz"] {
        assert_eq!(world.send(Call::get(path)).await.status, StatusCode::OK);
    }
    let metrics = world.send(Call::get("/metrics")).await;
    assert!(metrics.text().contains("wakeful_sandbox_starts_total 1"), "{}", metrics.text());
    assert!(metrics.text().ends_with("# EOF\n"));
}

#[tokio::test]
async fn what_is_not_there_is_a_problem_for_programs_and_a_page_for_people() {
    let world = World::new().await;
    world.send(Call::get("/nothing")).await.refused(404, "not_found");
    let answer = world.send(Call::new(Method::PATCH, "/api/projects")).await;
    answer.refused(405, "method_not_allowed");
    assert!(answer.header("allow").contains("POST"), "{answer:?}");
    let page = world.send(Call::get("/nothing").page()).await;
    assert_eq!(page.status, StatusCode::NOT_FOUND);
    assert!(page.text().starts_with("<!DOCTYPE html>"));
    assert!(page.header("content-security-policy").contains("form-action 'self';"));
    // A path that is no text.
    let alice = world.user("bob").await;
    world.send(alice.get("/api/tokens/%ff")).await;
    world.send(alice.get("/api/projects/%ff")).await.refused(400, "bad_request");
}
