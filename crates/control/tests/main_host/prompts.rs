//! Prompts that are kept for environments, by the API.

use http::{Method, StatusCode};
use serde_json::{Value, json};
use wakeful_lifecycle::port::DeliverError;

use crate::support::{Call, ORIGIN, User, World};

const CLIENT: &str = "0199f0a0-7b5c-7c3e-9d2f-000000000001";

fn path(user: &User) -> String {
    format!("/api/environments/{}/prompts", user.project)
}

fn one(user: &User, client: &str) -> String {
    format!("{}/{client}", path(user))
}

fn prompt(text: &str) -> Value {
    json!({ "client": CLIENT, "text": text, "agent": "shell" })
}

#[tokio::test]
async fn a_prompt_is_kept_delivered_and_listed_and_known_when_it_comes_again() {
    let world = World::new().await;
    let alice = world.user("alice").await;
    world.send(alice.post(&format!("/api/environments/{}/suspend", alice.project))).await;
    world.phase(&alice, "suspended").await;
    let answer = world.send(alice.post(&path(&alice)).json(&prompt("ls"))).await;
    assert_eq!(answer.status, StatusCode::ACCEPTED, "{answer:?}");
    let kept = answer.json();
    assert_eq!((&kept["client"], &kept["state"]), (&json!(CLIENT), &json!("waiting")));
    let answer = world.send(alice.get(&format!("{}?wait=30", one(&alice, CLIENT)))).await;
    assert_eq!(answer.status, StatusCode::OK);
    let delivered = answer.json();
    assert_eq!((&delivered["state"], &delivered["phase"]), (&json!("delivered"), &json!("ready")));
    assert_eq!((&delivered["seq"], &delivered["thread"]), (&json!(1), &kept["thread"]));
    let answer = world.send(alice.post(&path(&alice)).json(&prompt("ls"))).await;
    assert_eq!((answer.status, answer.json()), (StatusCode::OK, delivered.clone()));
    world.send(alice.post(&path(&alice)).json(&prompt("rm"))).await.refused(409, "conflict");
    let list = world.send(alice.get(&path(&alice))).await.json();
    assert_eq!(list, json!({ "prompts": [delivered] }));
    let remove = alice.call(Method::DELETE, &one(&alice, CLIENT));
    world.send(remove).await.refused(409, "wrong_phase");
}

#[tokio::test]
async fn a_prompt_that_waits_is_taken_back() {
    let world = World::new().await;
    let alice = world.user("alice").await;
    world.driver.slow_starts(true);
    world.send(alice.post(&format!("/api/environments/{}/suspend", alice.project))).await;
    world.phase(&alice, "suspended").await;
    world.send(alice.post(&path(&alice)).json(&prompt("ls"))).await;
    let waiting = world.send(alice.get(&one(&alice, CLIENT))).await.json();
    assert_eq!(waiting["state"], "waiting");
    let remove = || alice.call(Method::DELETE, &one(&alice, CLIENT));
    assert_eq!(world.send(remove()).await.status, StatusCode::NO_CONTENT);
    world.send(remove()).await.refused(404, "not_found");
    world.send(alice.get(&one(&alice, CLIENT))).await.refused(404, "not_found");
}

#[tokio::test]
async fn prompts_are_their_owners_alone() {
    let world = World::new().await;
    let alice = world.user("alice").await;
    let bob = world.user("bob").await;
    world.driver.refuse_deliveries(Some(DeliverError::Later("busy".into())));
    world.send(alice.post(&path(&alice)).json(&prompt("ls"))).await;
    world.send(bob.post(&path(&alice)).json(&prompt("ls"))).await.refused(404, "not_found");
    let calls = [
        bob.get(&path(&alice)),
        bob.get(&one(&alice, CLIENT)),
        bob.call(Method::DELETE, &one(&alice, CLIENT)),
        alice.get(&one(&alice, "nonsense")),
    ];
    for call in calls {
        world.send(call).await.refused(404, "not_found");
    }
    let call = Call::post(&path(&alice)).json(&prompt("ls"));
    world.send(call).await.refused(401, "unauthenticated");
    // A browser's session counts from the main host's own pages alone.
    let cookie = world.cookie(&alice).await;
    let from = |origin: &str| {
        let call = Call::post(&path(&alice)).cookie(&cookie).origin(origin);
        call.json(&prompt("ls"))
    };
    world.send(from("http://evil.example")).await.refused(403, "cross_origin");
    assert_eq!(world.send(from(ORIGIN)).await.status, StatusCode::OK);
}

#[tokio::test]
async fn what_cannot_be_a_prompt_is_refused() {
    let world = World::new().await;
    let alice = world.user("alice").await;
    let send = async |body: &Value| world.send(alice.post(&path(&alice)).json(body)).await;
    let table = [
        (json!({ "client": CLIENT }), "text"),
        (json!({ "client": CLIENT, "text": " " }), "text"),
        (json!({ "client": CLIENT, "text": "x", "colour": 1 }), "colour"),
    ];
    for (body, field) in table {
        let answer = send(&body).await;
        answer.refused(400, "invalid");
        assert_eq!(answer.json()["field"], field, "{body}");
    }
    send(&json!({ "client": "1", "text": "x" })).await.refused(400, "invalid");
    send(&prompt(&"x".repeat(128 * 1024 + 1))).await.refused(413, "too_large");
    // Within the bound of a text, but not within the line that carries it.
    send(&prompt(&"\u{1}".repeat(100_000))).await.refused(413, "too_large");
    let longest = send(&prompt(&"ä".repeat(64 * 1024))).await;
    assert_eq!(longest.status, StatusCode::ACCEPTED);
    let answer = world.send(alice.get(&format!("{}?wait=x", one(&alice, CLIENT)))).await;
    answer.refused(400, "bad_request");
}

#[tokio::test]
async fn too_many_that_wait_are_refused_for_now() {
    let world = World::new().await;
    let alice = world.user("alice").await;
    world.driver.refuse_deliveries(Some(DeliverError::Later("busy".into())));
    let numbered = |number: u32| {
        let client = format!("0199f0a0-7b5c-7c3e-9d2f-{number:012x}");
        json!({ "client": client, "text": "ls" })
    };
    for number in 1..=100 {
        let answer = world.send(alice.post(&path(&alice)).json(&numbered(number))).await;
        assert_eq!(answer.status, StatusCode::ACCEPTED, "{number}");
    }
    let full = world.send(alice.post(&path(&alice)).json(&numbered(101))).await;
    full.refused(429, "too_many_requests");
    assert!(full.json()["retry"].as_bool().unwrap() && !full.header("retry-after").is_empty());
}
