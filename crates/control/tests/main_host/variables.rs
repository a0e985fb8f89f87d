//! Variables and secrets by the API.

use http::{Method, StatusCode};
use serde_json::json;

use crate::support::World;

#[tokio::test]
async fn a_secret_is_never_shown_in_full() {
    let world = World::new().await;
    let alice = world.user("alice").await;
    let path = format!("/api/environments/{}/variables", alice.project);
    let secret = "sk-0123456789abcdef";
    let set = |name: &str, body: serde_json::Value| {
        alice.call(Method::PUT, &format!("{path}/{name}")).json(&body)
    };
    let answer = world.send(set("API_KEY", json!({ "value": secret }))).await;
    assert_eq!(answer.status, StatusCode::CREATED);
    let answer = world.send(set("API_KEY", json!({ "value": secret }))).await;
    assert_eq!(answer.status, StatusCode::NO_CONTENT);
    world.send(set("GREETING", json!({ "value": "hello", "secret": false }))).await;
    let list = world.send(alice.get(&path)).await;
    assert!(!list.text().contains("0123456789"), "{}", list.text());
    let list = list.json();
    assert_eq!(list[0]["name"], "API_KEY");
    assert_eq!(list[0]["secret"], true);
    assert_eq!(list[0]["value"], "••••••••cdef");
    assert_eq!(list[1]["value"], "hello");
    let remove = alice.call(Method::DELETE, &format!("{path}/API_KEY"));
    assert_eq!(world.send(remove).await.status, StatusCode::NO_CONTENT);
    let again = alice.call(Method::DELETE, &format!("{path}/API_KEY"));
    world.send(again).await.refused(404, "not_found");
}

#[tokio::test]
async fn what_cannot_be_a_variable_is_refused_by_field() {
    let world = World::new().await;
    let alice = world.user("alice").await;
    let path = format!("/api/environments/{}/variables", alice.project);
    let value = json!({ "value": "x" });
    for name in ["PORT", "WAKEFUL_X", "1A", "A-B", "A%20B"] {
        let call = alice.call(Method::PUT, &format!("{path}/{name}")).json(&value);
        let answer = world.send(call).await;
        answer.refused(400, "invalid");
        assert_eq!(answer.json()["field"], "name", "{name}");
    }
    let table = [
        (json!({ "value": "a\u{0}b" }), "value"),
        (json!({}), "value"),
        (json!({ "value": "x", "hidden": true }), "hidden"),
    ];
    for (body, field) in table {
        let call = alice.call(Method::PUT, &format!("{path}/A")).json(&body);
        let answer = world.send(call).await;
        answer.refused(400, "invalid");
        assert_eq!(answer.json()["field"], field, "{body}");
    }
}
