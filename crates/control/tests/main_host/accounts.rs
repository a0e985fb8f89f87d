//! Signing up, in and out, by form and by JSON.

use std::time::Duration;

use http::{Method, StatusCode};
use serde_json::json;
use wakeful_control::{accounts::LimitSettings, api::ApiSettings};

use crate::support::{Call, ORIGIN, PASSWORD, World};

#[tokio::test]
async fn a_form_signs_up_in_leads_to_the_environment_and_wakes_it() {
    let world = World::new().await;
    let form = [("user", "alice"), ("password", PASSWORD)];
    let answer = world.send(Call::post("/users").page().origin(ORIGIN).form(&form)).await;
    assert_eq!(answer.status, StatusCode::SEE_OTHER, "{answer:?}");
    assert_eq!(answer.location(), "/u/alice/");
    let set = answer.header("set-cookie");
    for part in ["HttpOnly", "SameSite=Lax", "Path=/", "Max-Age=2592000"] {
        assert!(set.contains(part), "{set}");
    }
    let cookie = answer.session().unwrap();
    let me = world.send(Call::get("/api/me").cookie(&cookie)).await;
    assert_eq!(me.json()["user"], "alice");
    assert_eq!(me.json()["by"], "cookie");
    let projects = world.send(Call::get("/api/projects").cookie(&cookie)).await.json();
    assert_eq!(projects[0]["template"], "demo");
    assert_eq!(projects[0]["environments"][0]["slug"], "dev");
    assert_ne!(projects[0]["environments"][0]["phase"], "suspended", "sign-up wakes it");
    assert_eq!(projects[0]["environments"][0]["id"], projects[0]["id"]);
}

#[tokio::test]
async fn json_signs_up_with_a_token_that_is_shown_once() {
    let world = World::new().await;
    world.driver.hold_creates(true);
    let answer = world.send(Call::post("/users").json(&json!({ "user": "robot" }))).await;
    assert_eq!(answer.status, StatusCode::ACCEPTED, "{answer:?}");
    let body = answer.json();
    let token = body["token"].as_str().unwrap();
    assert!(token.starts_with("wk_"));
    assert_eq!(body["project"]["environments"][0]["phase"], "starting");
    let bearer = format!("Bearer {token}");
    for (name, value) in [("authorization", bearer.as_str()), ("x-wakeful-token", token)] {
        let me = world.send(Call::get("/api/me").header(name, value)).await;
        assert_eq!(me.json()["user"], "robot", "{name}");
        assert_eq!(me.json()["has_password"], false);
    }
    let tokens = world.send(Call::get("/api/tokens").header("x-wakeful-token", token)).await;
    assert!(!tokens.text().contains(token));
    world
        .send(Call::post("/users").json(&json!({ "user": "robot" })))
        .await
        .refused(409, "conflict");
    world.driver.hold_creates(false);
}

#[tokio::test]
async fn what_cannot_be_signed_up_is_said_beside_the_form_or_by_code() {
    let world = World::new().await;
    world.user("taken").await;
    let table = [
        ("Alice", PASSWORD, 400, "lower-case"),
        ("", PASSWORD, 400, "empty"),
        ("alice", "short", 400, "at least 8"),
        ("taken", PASSWORD, 409, "taken"),
    ];
    for (user, password, status, words) in table {
        let form = [("user", user), ("password", password)];
        let answer = world.send(Call::post("/users").page().origin(ORIGIN).form(&form)).await;
        assert_eq!(answer.status.as_u16(), status, "{user}");
        assert!(answer.text().contains(words), "{user}: {}", answer.text());
        assert!(answer.text().contains(&format!("value=\"{user}\"")), "what was typed is kept");
        assert!(!answer.text().contains(password), "but never a password");
        assert!(answer.session().is_none());
    }
    let colour = json!({ "user": "alice", "colour": "red" });
    let answer = world.send(Call::post("/users").json(&colour)).await;
    answer.refused(400, "invalid");
    assert_eq!(answer.json()["field"], "colour");
    let answer = world.send(Call::post("/users").json(&json!({ "user": "Bob" }))).await;
    answer.refused(400, "invalid");
    let answer = world.send(Call::post("/users").body("user=alice")).await;
    answer.refused(415, "unsupported_media_type");
    let big = json!({ "user": "alice", "password": "x".repeat(70_000) });
    world.send(Call::post("/users").json(&big)).await.refused(413, "too_large");
    let broken = Call::post("/users").header("content-type", "application/json").body("{");
    world.send(broken).await.refused(400, "bad_request");
}

#[tokio::test]
async fn a_name_whose_project_could_not_be_made_can_be_taken_again() {
    let world = World::new().await;
    // A file stands where the directory of workspaces must be.
    let user = world.user("first").await;
    let root = world.workspace(&user).parent().unwrap().to_owned();
    let aside = root.with_extension("aside");
    std::fs::rename(&root, &aside).unwrap();
    std::fs::write(&root, "in the way").unwrap();
    let answer = world.send(Call::post("/users").json(&json!({ "user": "alice" }))).await;
    answer.refused(500, "internal");
    assert!(!answer.text().contains("in the way") && !answer.text().contains("workspaces"));
    std::fs::remove_file(&root).unwrap();
    std::fs::rename(&aside, &root).unwrap();
    let answer = world.send(Call::post("/users").json(&json!({ "user": "alice" }))).await;
    assert!(answer.status.is_success(), "{answer:?}");
    let token = answer.json()["token"].as_str().unwrap().to_owned();
    let projects = world.send(Call::get("/api/projects").header("x-wakeful-token", &token)).await;
    assert_eq!(projects.json().as_array().unwrap().len(), 1, "nothing is left of the first try");
}

#[tokio::test]
async fn signing_in_by_form_leads_on_within_the_main_host() {
    let world = World::new().await;
    let user = world.user("alice").await;
    let table = [
        ("/account", "/account"),
        ("/surface-ticket?to=x&nonce=y", "/surface-ticket?to=x&nonce=y"),
        ("//evil.example/", "/projects"),
        ("http://evil.example/", "/projects"),
        ("", "/projects"),
    ];
    for (next, to) in table {
        let form = [("user", "alice"), ("password", PASSWORD), ("next", next)];
        let answer = world.send(Call::post("/login").page().origin(ORIGIN).form(&form)).await;
        assert_eq!(answer.status, StatusCode::SEE_OTHER);
        assert_eq!(answer.location(), to);
    }
    let by_token = [("user", "alice"), ("password", ""), ("token", user.token.as_str())];
    let answer = world.send(Call::post("/login").page().origin(ORIGIN).form(&by_token)).await;
    assert_eq!(answer.status, StatusCode::SEE_OTHER);
}

#[tokio::test]
async fn signing_in_by_json_makes_a_token_of_a_password_and_keeps_a_token() {
    let world = World::new().await;
    let user = world.user("alice").await;
    let by_password = json!({ "user": "alice", "password": PASSWORD });
    let answer = world.send(Call::post("/login").json(&by_password)).await;
    assert_eq!(answer.status, StatusCode::OK);
    let token = answer.json()["token"].as_str().unwrap().to_owned();
    assert_ne!(token, user.token);
    assert_eq!(answer.json()["project"]["id"], user.project.as_str());
    let by_token = json!({ "user": "alice", "token": token });
    let answer = world.send(Call::post("/login").json(&by_token)).await;
    assert_eq!(answer.status, StatusCode::OK);
    assert!(answer.json().get("token").is_none());
    for wrong in [
        json!({ "user": "alice", "password": "wrong horse" }),
        json!({ "user": "nobody", "password": PASSWORD }),
        json!({ "user": "alice", "token": "wk_wrong" }),
        json!({ "user": "nobody", "token": token }),
    ] {
        world.send(Call::post("/login").json(&wrong)).await.refused(401, "bad_credentials");
    }
    let both = json!({ "user": "alice", "token": token, "password": PASSWORD });
    world.send(Call::post("/login").json(&both)).await.refused(400, "invalid");
    world
        .send(Call::post("/login").json(&json!({ "user": "alice" })))
        .await
        .refused(400, "invalid");
}

#[tokio::test]
async fn wrong_passwords_are_slowed_with_a_time_to_wait() {
    let world = World::new().await;
    let user = world.user("alice").await;
    let call = |password: &str| {
        let body = json!({ "user": "alice", "password": password });
        Call::post("/login").from("192.0.2.1").json(&body)
    };
    for _ in 0..8 {
        world.send(call("wrong horse")).await.refused(401, "bad_credentials");
    }
    let answer = world.send(call(PASSWORD)).await;
    answer.refused(429, "too_many_requests");
    let wait: u64 = answer.header("retry-after").parse().unwrap();
    let form = [("user", "alice"), ("password", PASSWORD)];
    let page = Call::post("/login").from("192.0.2.1").page().origin(ORIGIN).form(&form);
    let page = world.send(page).await;
    assert_eq!(page.status, StatusCode::TOO_MANY_REQUESTS);
    assert!(
        page.text().contains("Too many tries") && page.header("retry-after") == wait.to_string()
    );
    // A token is not slowed with it, and neither is the owner where they signed in before.
    let by_token = json!({ "user": "alice", "token": user.token });
    assert_eq!(world.send(Call::post("/login").json(&by_token)).await.status, StatusCode::OK);
    world.advance(Duration::from_secs(wait));
    assert_eq!(world.send(call(PASSWORD)).await.status, StatusCode::OK);
}

#[tokio::test]
async fn sign_ups_of_one_address_are_bounded() {
    let limits = LimitSettings { sign_ups_per_hour: 2, ..LimitSettings::default() };
    let world = World::with(ApiSettings::default(), limits).await;
    let sign_up =
        |name: &str, from: &str| Call::post("/users").from(from).json(&json!({ "user": name }));
    for name in ["a", "b"] {
        assert!(world.send(sign_up(name, "192.0.2.1")).await.status.is_success());
    }
    let answer = world.send(sign_up("c", "192.0.2.1")).await;
    answer.refused(429, "too_many_requests");
    assert_eq!(answer.header("retry-after"), "1800");
    assert!(world.send(sign_up("c", "192.0.2.2")).await.status.is_success());
}

#[tokio::test]
async fn signing_out_ends_the_session_and_takes_the_cookie_back() {
    let world = World::new().await;
    let user = world.user("alice").await;
    let (here, there) = (world.cookie(&user).await, world.cookie(&user).await);
    let out = Call::post("/logout").cookie(&here).origin(ORIGIN).form(&[]);
    let answer = world.send(out).await;
    assert_eq!(answer.status, StatusCode::SEE_OTHER);
    assert_eq!(answer.location(), "/login");
    assert!(answer.header("set-cookie").contains("Max-Age=0"));
    world.send(Call::get("/api/me").cookie(&here)).await.refused(401, "unauthenticated");
    assert_eq!(world.send(Call::get("/api/me").cookie(&there)).await.status, StatusCode::OK);
    // Once more is as wanted.
    let again = Call::post("/logout").cookie(&here).origin(ORIGIN).form(&[]);
    assert_eq!(world.send(again).await.status, StatusCode::SEE_OTHER);
    let all = user.post("/logout").json(&json!({ "everywhere": true }));
    assert_eq!(world.send(all).await.status, StatusCode::NO_CONTENT);
    world.send(Call::get("/api/me").cookie(&there)).await.refused(401, "unauthenticated");
    assert_eq!(world.send(user.get("/api/me")).await.status, StatusCode::OK, "tokens stay");
}

#[tokio::test]
async fn of_several_cookies_the_valid_one_wins() {
    let world = World::new().await;
    let user = world.user("alice").await;
    let valid = world.cookie(&user).await;
    let stale = "x".repeat(43);
    for (first, second) in [(&stale, &valid), (&valid, &stale)] {
        let text = format!("wakeful_session={first}; other=1; wakeful_session={second}");
        let answer = world.send(Call::get("/api/me").header("cookie", &text)).await;
        assert_eq!(answer.status, StatusCode::OK);
    }
    let split = Call::get("/api/me").cookie(&stale).cookie(&valid);
    assert_eq!(world.send(split).await.status, StatusCode::OK);
    let stale = world.send(Call::get("/projects").page().cookie(&stale)).await;
    assert_eq!(stale.location(), "/login?next=%2Fprojects");
    assert!(stale.header("set-cookie").contains("Max-Age=0"), "a stale copy is taken back");
}

#[tokio::test]
async fn a_wrong_token_is_refused_whatever_cookie_comes_with_it() {
    let world = World::new().await;
    let user = world.user("alice").await;
    let cookie = world.cookie(&user).await;
    let call = Call::get("/api/me").cookie(&cookie).header("authorization", "Bearer wk_wrong");
    let answer = world.send(call).await;
    answer.refused(401, "unauthenticated");
    assert_eq!(answer.header("www-authenticate"), "Bearer realm=\"wakeful\"");
    // A bearer token of another system says nothing about who calls.
    let call = Call::get("/api/me").cookie(&cookie).header("authorization", "Bearer other");
    assert_eq!(world.send(call).await.status, StatusCode::OK);
}

#[tokio::test]
async fn tokens_are_made_listed_and_revoked() {
    let world = World::new().await;
    let user = world.user("alice").await;
    let other = world.user("bob").await;
    let made = world.send(user.post("/api/tokens").json(&json!({ "name": "laptop" }))).await;
    assert_eq!(made.status, StatusCode::CREATED);
    let made = made.json();
    let text = made["token"].as_str().unwrap();
    let list = world.send(user.get("/api/tokens")).await;
    assert!(list.text().contains("laptop") && !list.text().contains(text));
    let path = format!("/api/tokens/{}", made["id"].as_str().unwrap());
    world.send(other.call(Method::DELETE, &path)).await.refused(404, "not_found");
    assert_eq!(world.send(user.call(Method::DELETE, &path)).await.status, StatusCode::NO_CONTENT);
    world
        .send(Call::get("/api/me").header("x-wakeful-token", text))
        .await
        .refused(401, "unauthenticated");
    world
        .send(user.post("/api/tokens").json(&json!({ "name": " " })))
        .await
        .refused(400, "invalid");
}

#[tokio::test]
async fn a_password_is_changed_by_whoever_knows_the_present_one() {
    let world = World::new().await;
    let user = world.user("alice").await;
    let cookie = world.cookie(&user).await;
    let change = |current: &str, new: &str| {
        let body = json!({ "current": current, "new": new });
        user.call(Method::PUT, "/api/me/password").json(&body)
    };
    world.send(change("wrong horse", "battery staple")).await.refused(401, "bad_credentials");
    world.send(change(PASSWORD, "short")).await.refused(400, "invalid");
    assert_eq!(world.send(change(PASSWORD, "battery staple")).await.status, StatusCode::NO_CONTENT);
    world.send(Call::get("/api/me").cookie(&cookie)).await.refused(401, "unauthenticated");
    let old = json!({ "user": "alice", "password": PASSWORD });
    world.send(Call::post("/login").json(&old)).await.refused(401, "bad_credentials");
    let new = json!({ "user": "alice", "password": "battery staple" });
    assert_eq!(world.send(Call::post("/login").json(&new)).await.status, StatusCode::OK);
}
