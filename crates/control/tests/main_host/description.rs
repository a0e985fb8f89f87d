//! The `OpenAPI` document and the routes say the same.

use http::{Method, StatusCode};
use serde_json::Value;
use wakeful_control::api;

use crate::support::{Call, World};

const METHODS: [&str; 5] = ["get", "put", "post", "delete", "patch"];

/// Every method and path of the document.
fn described() -> Vec<(String, String, Value)> {
    let document = serde_json::to_value(api::document()).unwrap();
    let paths = document["paths"].as_object().unwrap();
    paths
        .iter()
        .flat_map(|(path, item)| {
            METHODS.iter().filter_map(move |method| {
                let operation = item.get(method)?;
                Some(((*method).to_owned(), path.clone(), operation.clone()))
            })
        })
        .collect()
}

#[tokio::test]
async fn every_described_route_answers() {
    let world = World::new().await;
    let alice = world.user("alice").await;
    for (method, path, _) in described() {
        let real = path
            .replace("{id}", &alice.project)
            .replace("{name}", "A")
            .replace("{client}", "A")
            .replace("{path}", "a");
        let method: Method = method.to_uppercase().parse().unwrap();
        // Not signed in: a route that exists refuses for that, or needs nobody.
        let answer = world.open(Call::new(method.clone(), &real)).await;
        assert_ne!(answer.status, StatusCode::NOT_FOUND, "{method} {path}");
        assert_ne!(answer.status, StatusCode::METHOD_NOT_ALLOWED, "{method} {path}");
    }
}

#[tokio::test]
async fn every_route_is_described() {
    let world = World::new().await;
    let described = described();
    let expected = [
        "delete /api/environments/{id}/prompts/{client}",
        "delete /api/environments/{id}/variables/{name}",
        "delete /api/projects/{id}",
        "delete /api/projects/{id}/files/{path}",
        "delete /api/tokens/{id}",
        "get /api/environments/{id}",
        "get /api/environments/{id}/explain",
        "get /api/environments/{id}/logs",
        "get /api/environments/{id}/prompts",
        "get /api/environments/{id}/prompts/{client}",
        "get /api/environments/{id}/variables",
        "get /api/events",
        "get /api/me",
        "get /api/openapi.json",
        "get /api/projects",
        "get /api/projects/{id}",
        "get /api/projects/{id}/events",
        "get /api/projects/{id}/files",
        "get /api/projects/{id}/files/{path}",
        "get /api/templates",
        "get /api/tokens",
        "get /healthz",
        "get /metrics",
        "get /readyz",
        "post /api/environments/{id}/extend",
        "post /api/environments/{id}/grant",
        "post /api/environments/{id}/prompts",
        "post /api/environments/{id}/restart",
        "post /api/environments/{id}/suspend",
        "post /api/environments/{id}/wake",
        "post /api/projects",
        "post /api/projects/{id}/restore",
        "post /api/projects/{id}/upload",
        "post /api/tokens",
        "post /login",
        "post /logout",
        "post /users",
        "put /api/environments/{id}/variables/{name}",
        "put /api/me/password",
        "put /api/projects/{id}/files/{path}",
    ];
    let mut found: Vec<_> =
        described.iter().map(|(method, path, _)| format!("{method} {path}")).collect();
    found.sort();
    assert_eq!(found, expected, "a route was added or lost: say so here");
    // Below `/api`, nothing answers that is not described: every other method is refused.
    for (_, path, _) in &described {
        let real = path
            .replace("{id}", "0199f0a0-7b5c-7c3e-9d2f-6a1b2c3d4e5f")
            .replace("{name}", "A")
            .replace("{client}", "A")
            .replace("{path}", "a");
        for method in METHODS {
            let known = described.iter().any(|(m, p, _)| m == method && p == path);
            // The sign-in page stands at the address that its form is sent to.
            if known || !path.starts_with("/api") {
                continue;
            }
            let method: Method = method.to_uppercase().parse().unwrap();
            let answer = world.send(Call::new(method.clone(), &real)).await;
            assert_eq!(answer.status, StatusCode::METHOD_NOT_ALLOWED, "{method} {path}");
        }
    }
}

#[tokio::test]
async fn the_document_is_served_whole_and_its_references_resolve() {
    let world = World::new().await;
    let answer = world.send(Call::get("/api/openapi.json")).await;
    assert_eq!(answer.header("content-type"), "application/json");
    let document = answer.json();
    assert!(document["openapi"].as_str().unwrap().starts_with("3."));
    let mut references = Vec::new();
    collect(&document, &mut references);
    assert!(references.len() > 20);
    for reference in references {
        let pointer = reference.strip_prefix('#').unwrap();
        assert!(document.pointer(pointer).is_some(), "{reference} leads nowhere");
    }
    for (method, path, operation) in described() {
        assert!(operation["summary"].is_string(), "{method} {path} says nothing of itself");
        assert!(operation["responses"].get("default").is_some(), "{method} {path}");
        let declared = operation["parameters"].as_array().map_or(0, |parameters| {
            parameters.iter().filter(|parameter| parameter["in"] == "path").count()
        });
        assert_eq!(declared, path.matches('{').count(), "{method} {path}");
    }
    let problem = &document["components"]["schemas"]["Problem"]["properties"];
    assert!(problem["code"].is_object() && problem["retry"].is_object());
}

fn collect(value: &Value, references: &mut Vec<String>) {
    if let Some(text) = value.get("$ref").and_then(Value::as_str) {
        references.push(text.to_owned());
    }
    let below = value.as_object().into_iter().flat_map(serde_json::Map::values);
    for value in below.chain(value.as_array().into_iter().flatten()) {
        collect(value, references);
    }
}
