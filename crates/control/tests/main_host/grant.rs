//! Grants: given to the owner of an environment that is awake, taken by its host alone.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use axum::body::Body;
use http::{Method, StatusCode};
use serde_json::{Value, json};
use wakeful_control::api::ApiSettings;
use wakeful_envd::credential::GrantGate;
use wakeful_lifecycle::StartFault;
use wakeful_wire::{
    EnvId, Timestamp,
    host::{Denial, Scopes},
};

use crate::support::{Answer, Call, ORIGIN, User, World};

fn path(user: &User) -> String {
    format!("/api/environments/{}/grant", user.project)
}

fn env(user: &User) -> EnvId {
    user.project.parse().unwrap()
}

/// The wall clock, which is not the platform's: the world's time is another.
fn wall() -> Timestamp {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    Timestamp(u64::try_from(since.as_millis()).unwrap())
}

/// The gate that the environment's sandbox of this moment has.
fn gate(world: &World, user: &User) -> GrantGate {
    let running = world.driver.running();
    let sandbox = running.iter().find(|sandbox| sandbox.env == env(user)).unwrap();
    GrantGate::new(env(user), &sandbox.secret.0)
}

async fn sleep(world: &World, user: &User) {
    world.send(user.post(&format!("/api/environments/{}/suspend", user.project))).await;
    world.phase(user, "suspended").await;
}

fn text(answer: &Answer) -> String {
    assert_eq!(answer.status, StatusCode::CREATED, "{answer:?}");
    assert_eq!(answer.header("cache-control"), "no-store");
    answer.json()["grant"].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn the_owner_gets_what_the_host_takes_and_no_other_sandbox_does() {
    let world = World::new().await;
    let alice = world.user("alice").await;
    let answer = world.send(alice.post(&path(&alice))).await;
    let first = text(&answer);
    assert_eq!(answer.json()["expires_in"], 60);
    let address = format!("{ORIGIN}/api/host/{}", alice.project);
    assert_eq!(answer.json()["address"], address.as_str());
    let grant = gate(&world, &alice).open(&first, wall()).unwrap();
    assert_eq!(grant.audience, env(&alice));
    assert_eq!(grant.subject.as_str(), "alice");
    assert_eq!(grant.scopes, Scopes::all());
    // Each is another, so that each can be taken once.
    let second = text(&world.send(alice.post(&path(&alice)).json(&json!({}))).await);
    assert_ne!(gate(&world, &alice).open(&second, wall()).unwrap().id, grant.id);
    sleep(&world, &alice).await;
    let woken = json!({ "wake": true, "scopes": "write read" });
    let third = text(&world.send(alice.post(&path(&alice)).json(&woken)).await);
    let new = gate(&world, &alice);
    assert_eq!(new.open(&third, wall()).unwrap().scopes, "read write".parse().unwrap());
    assert_eq!(new.open(&second, wall()), Err(Denial::GrantSignature));
}

#[tokio::test]
async fn nobody_else_gets_one_and_no_other_origin_asks() {
    let world = World::new().await;
    let alice = world.user("alice").await;
    let bob = world.user("bob").await;
    world.send(bob.post(&path(&alice))).await.refused(404, "not_found");
    world.send(bob.post("/api/environments/x/grant")).await.refused(404, "not_found");
    world.send(Call::post(&path(&alice))).await.refused(401, "unauthenticated");
    let cookie = world.cookie(&alice).await;
    let foreign = format!("http://{}-dev.apps.wakeful.localhost:7878", alice.project);
    for call in [Call::post(&path(&alice)), Call::post(&path(&alice)).origin(&foreign)] {
        world.send(call.cookie(&cookie)).await.refused(403, "cross_origin");
    }
    text(&world.send(Call::post(&path(&alice)).cookie(&cookie).origin(ORIGIN)).await);
    world.send(alice.call(Method::GET, &path(&alice))).await.refused(405, "method_not_allowed");
}

#[tokio::test]
async fn a_sleeper_is_woken_for_whoever_says_so_alone() {
    let world = World::new().await;
    let alice = world.user("alice").await;
    sleep(&world, &alice).await;
    let starts = world.driver.creates();
    for body in [json!({}), json!({ "wake": false })] {
        let answer = world.send(alice.post(&path(&alice)).json(&body)).await;
        answer.refused(503, "asleep");
        assert_eq!(answer.json()["phase"], "suspended");
        assert!(answer.header("retry-after").parse::<u32>().unwrap() > 0);
    }
    assert_eq!(world.driver.creates(), starts);
    text(&world.send(alice.post(&path(&alice)).json(&json!({ "wake": true }))).await);
    assert_eq!(world.driver.creates(), starts + 1);
}

#[tokio::test]
async fn a_wake_that_outlasts_the_wait_is_told_as_starting() {
    let settings = ApiSettings { grant_wait: Duration::from_millis(30), ..ApiSettings::default() };
    let world = World::with(settings, Default::default()).await;
    let alice = world.user("alice").await;
    sleep(&world, &alice).await;
    world.driver.hold_creates(true);
    let wake = json!({ "wake": true });
    for body in [&wake, &json!({})] {
        let answer = world.send(alice.post(&path(&alice)).json(body)).await;
        answer.refused(503, "starting");
        assert_eq!(answer.json()["phase"], "starting");
        assert!(answer.header("retry-after").parse::<u32>().unwrap() > 0);
    }
    world.driver.hold_creates(false);
    world.phase(&alice, "ready").await;
    text(&world.send(alice.post(&path(&alice))).await);
}

#[tokio::test]
async fn what_cannot_start_says_why() {
    let world = World::new().await;
    let alice = world.user("alice").await;
    sleep(&world, &alice).await;
    world.driver.fail_next_create(StartFault { reason: "no disk".into(), permanent: true });
    let answer = world.send(alice.post(&path(&alice)).json(&json!({ "wake": true }))).await;
    answer.refused(502, "environment_failed");
    assert_eq!(answer.json()["phase"], "failed");
    assert!(answer.json()["detail"].as_str().unwrap().contains("no disk"), "{answer:?}");
    world.send(alice.post(&path(&alice))).await.refused(502, "environment_failed");
}

#[tokio::test]
async fn what_is_no_request_for_a_grant_is_refused() {
    let world = World::new().await;
    let alice = world.user("alice").await;
    let refused = async |body: Value, field: Value| {
        let answer = world.send(alice.post(&path(&alice)).json(&body)).await;
        answer.refused(400, "invalid");
        assert_eq!(answer.json()["field"], field, "{body}");
    };
    for body in [json!([]), json!([null, true]), json!("read"), json!({ "scopes": "Read" })] {
        refused(body, json!(null)).await;
    }
    refused(json!({ "scope": "read" }), json!("scope")).await;
    for scopes in ["", "fly"] {
        refused(json!({ "scopes": scopes }), json!("scopes")).await;
    }
    let form = alice.post(&path(&alice)).body(Body::from("wake=true"));
    world.send(form).await.refused(415, "unsupported_media_type");
}
