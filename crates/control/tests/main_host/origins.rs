//! What other origins and other users may do: nothing.

use http::{Method, StatusCode};
use serde_json::json;

use crate::support::{Call, ORIGIN, PASSWORD, World};

const APP: &str = "http://0199f0a0-7b5c-7c3e-9d2f-6a1b2c3d4e5f-dev.apps.wakeful.localhost:7878";

#[tokio::test]
async fn signing_up_and_in_is_refused_from_any_other_origin() {
    let world = World::new().await;
    let user = world.user("alice").await;
    let form = [("user", "mallory"), ("password", PASSWORD)];
    for path in ["/users", "/login"] {
        for origin in [APP, "http://evil.example", "null", "http://wakeful.localhost"] {
            let json = json!({ "user": "mallory", "password": PASSWORD });
            let call = Call::post(path).origin(origin).json(&json);
            world.send(call).await.refused(403, "cross_origin");
            let call = Call::post(path).origin(origin).page().form(&form);
            let answer = world.send(call).await;
            assert_eq!(answer.status, StatusCode::FORBIDDEN, "{path} {origin}");
            assert!(answer.session().is_none());
        }
        let call = Call::post(path).header("sec-fetch-site", "same-site").form(&form);
        world.send(call).await.refused(403, "cross_origin");
    }
    // A program has no origin.
    let json = json!({ "user": "alice", "token": user.token });
    assert_eq!(world.send(Call::post("/login").json(&json)).await.status, StatusCode::OK);
}

#[tokio::test]
async fn a_cookie_changes_nothing_from_another_origin() {
    let world = World::new().await;
    let user = world.user("alice").await;
    let cookie = world.cookie(&user).await;
    let env = format!("/api/environments/{}", user.project);
    let changes = [
        (Method::POST, format!("{env}/suspend")),
        (Method::POST, format!("{env}/wake")),
        (Method::POST, format!("{env}/restart")),
        (Method::POST, format!("{env}/extend")),
        (Method::PUT, format!("{env}/variables/A")),
        (Method::DELETE, format!("{env}/variables/A")),
        (Method::POST, "/api/projects".into()),
        (Method::DELETE, format!("/api/projects/{}", user.project)),
        (Method::POST, format!("/api/projects/{}/restore", user.project)),
        (Method::POST, format!("/api/projects/{}/upload", user.project)),
        (Method::PUT, format!("/api/projects/{}/files/a", user.project)),
        (Method::DELETE, format!("/api/projects/{}/files/a", user.project)),
        (Method::POST, "/api/tokens".into()),
        (Method::DELETE, "/api/tokens/x".into()),
        (Method::PUT, "/api/me/password".into()),
        (Method::POST, "/logout".into()),
        (Method::POST, "/account/tokens".into()),
        (Method::POST, "/account/password".into()),
        (Method::POST, "/account/sign-out-everywhere".into()),
        (Method::POST, format!("/environments/{}/suspend", user.project)),
        (Method::POST, format!("/environments/{}/variables", user.project)),
        (Method::POST, format!("/projects/{}/delete", user.project)),
    ];
    for (method, path) in changes {
        for origin in [Some(APP), Some("http://evil.example"), Some("null"), None] {
            let mut call = Call::new(method.clone(), &path).cookie(&cookie);
            if let Some(origin) = origin {
                call = call.origin(origin);
            }
            let answer = world.send(call).await;
            assert_eq!(answer.status, StatusCode::FORBIDDEN, "{method} {path} {origin:?}");
        }
    }
    let environment = world.phase(&user, "ready").await;
    let own = Call::post(&format!("{env}/extend")).cookie(&cookie).origin(ORIGIN);
    assert_eq!(world.send(own).await.status, StatusCode::OK);
    let own = Call::post(&format!("{env}/extend"))
        .cookie(&cookie)
        .header("sec-fetch-site", "same-origin");
    assert_eq!(world.send(own).await.status, StatusCode::OK);
    assert_eq!(environment["generation"], world.phase(&user, "ready").await["generation"]);
}

#[tokio::test]
async fn what_is_somebody_elses_is_not_there() {
    let world = World::new().await;
    let alice = world.user("alice").await;
    let bob = world.user("bob").await;
    let cookie = world.cookie(&bob).await;
    let unknown = "0199f0a0-7b5c-7c3e-9d2f-6a1b2c3d4e5f";
    let paths = [
        (Method::GET, "/api/environments/{id}"),
        (Method::POST, "/api/environments/{id}/wake"),
        (Method::POST, "/api/environments/{id}/suspend"),
        (Method::POST, "/api/environments/{id}/restart"),
        (Method::POST, "/api/environments/{id}/extend"),
        (Method::GET, "/api/environments/{id}/explain"),
        (Method::GET, "/api/environments/{id}/logs"),
        (Method::GET, "/api/environments/{id}/variables"),
        (Method::DELETE, "/api/environments/{id}/variables/A"),
        (Method::GET, "/api/projects/{id}"),
        (Method::DELETE, "/api/projects/{id}"),
        (Method::POST, "/api/projects/{id}/restore"),
        (Method::GET, "/api/projects/{id}/events"),
        (Method::GET, "/api/projects/{id}/files"),
        (Method::GET, "/api/projects/{id}/files/a"),
        (Method::PUT, "/api/projects/{id}/files/a"),
        (Method::DELETE, "/api/projects/{id}/files/a"),
        (Method::POST, "/api/projects/{id}/upload"),
    ];
    for (method, path) in paths {
        let mut answers = Vec::new();
        for id in [alice.project.as_str(), unknown, "not-an-id"] {
            let answer = world.send(bob.call(method.clone(), &path.replace("{id}", id))).await;
            answer.refused(404, "not_found");
            answers.push(answer.body);
        }
        answers.dedup();
        assert_eq!(answers.len(), 1, "{method} {path} tells them apart");
    }
    let set = bob
        .call(Method::PUT, &format!("/api/environments/{}/variables/A", alice.project))
        .json(&json!({ "value": "x" }));
    world.send(set).await.refused(404, "not_found");
    for path in ["/environments/{id}", "/projects/{id}"] {
        let page = Call::get(&path.replace("{id}", &alice.project)).page().cookie(&cookie);
        let page = world.send(page).await;
        assert_eq!(page.status, StatusCode::NOT_FOUND);
        assert!(!page.text().contains("alice"));
    }
    let both = format!("/api/projects/{}/files?environmentId={}", bob.project, alice.project);
    world.send(bob.get(&both)).await.refused(404, "not_found");
    let upload = format!("/api/projects/{}/upload?environmentId={}", bob.project, alice.project);
    world.send(bob.post(&upload)).await.refused(404, "not_found");
    assert_eq!(world.phase(&alice, "ready").await["leases"], json!([]));
}

#[tokio::test]
async fn a_deleted_project_of_somebody_else_is_not_there_either() {
    let world = World::new().await;
    let alice = world.user("alice").await;
    let bob = world.user("bob").await;
    let path = format!("/api/projects/{}", alice.project);
    assert_eq!(world.send(alice.call(Method::DELETE, &path)).await.status, StatusCode::ACCEPTED);
    world.send(bob.call(Method::DELETE, &path)).await.refused(404, "not_found");
    world.send(bob.post(&format!("{path}/restore"))).await.refused(404, "not_found");
    let deleted = world.send(bob.get("/api/projects?deleted=true")).await.json();
    assert_eq!(deleted, json!([]));
}

#[tokio::test]
async fn nobody_is_told_anything_without_signing_in() {
    let world = World::new().await;
    let alice = world.user("alice").await;
    for path in [
        "/api/me".to_owned(),
        "/api/tokens".into(),
        "/api/projects".into(),
        "/api/templates".into(),
        "/api/events".into(),
        format!("/api/environments/{}", alice.project),
        format!("/api/projects/{}/files", alice.project),
    ] {
        world.send(Call::get(&path)).await.refused(401, "unauthenticated");
    }
    for (path, next) in [
        ("/projects", "%2Fprojects"),
        ("/account", "%2Faccount"),
        ("/deleted", "%2Fdeleted"),
        ("/environments/x?log=app", "%2Fenvironments%2Fx%3Flog%3Dapp"),
    ] {
        let answer = world.send(Call::get(path).page()).await;
        assert_eq!(answer.status, StatusCode::SEE_OTHER);
        assert_eq!(answer.location(), format!("/login?next={next}"));
    }
    let answer = world.send(Call::post("/projects/x/delete").page().origin(ORIGIN)).await;
    assert_eq!(answer.status, StatusCode::UNAUTHORIZED);
    assert!(answer.text().contains("Sign in"));
}
