//! The token endpoint and what a request must show.

use std::time::Duration;

use serde_json::json;
use wakeful_wire::host::{PUBLIC_ADDRESS_HEADER, TokenResponse};

use crate::{
    client::{Answer, Asking, ClientKey},
    fixture::World,
};

const GRANT_TYPE: &str = "urn:wakeful:oauth:grant";

fn exchange(world: &World, htu: &str) -> Asking {
    let proof = ClientKey::new(9).proof("POST", htu, None, world.clock.now());
    world.asking("POST", "/oauth/token").header("dpop", proof)
}

fn reason(answer: &Answer) -> (u16, String, String) {
    let value = answer.value();
    let text = |name: &str| value[name].as_str().unwrap_or_default().to_owned();
    (answer.status, text("error"), text("reason"))
}

fn told(status: u16, error: &str, reason: &str) -> (u16, String, String) {
    (status, error.to_owned(), reason.to_owned())
}

#[tokio::test]
async fn the_descriptor_needs_no_credentials_and_no_address() {
    let world = World::new().await;
    for path in ["/descriptor", "/.well-known/wakeful-host"] {
        let answer = world.send(&Asking::new("GET", path).header("host", "x")).await;
        assert_eq!(answer.status, 200);
        assert_eq!(answer.value()["label"], "dev");
        assert_eq!(answer.header("cache-control"), Some("no-store"));
    }
}

#[tokio::test]
async fn a_grant_is_exchanged_once_by_form_or_json() {
    let world = World::new().await;
    let url = format!("{}/oauth/token", world.base);
    let grant = world.grant("read write");
    let form =
        format!("grant_type=urn%3Awakeful%3Aoauth%3Agrant&grant={}", grant.replace('+', "%2B"));
    let media = "application/x-www-form-urlencoded";
    let answer = world.send(&exchange(&world, &url).body(media, form.clone())).await;
    assert_eq!(answer.header("cache-control"), Some("no-store"));
    let token: TokenResponse = answer.read();
    assert_eq!((token.token_type.as_str(), token.expires_in), ("DPoP", 3_600));
    assert_eq!(token.scope, "read write".parse().unwrap());
    let again = world.send(&exchange(&world, &url).body(media, form)).await;
    assert_eq!(reason(&again), told(400, "invalid_grant", "grant_used"));
    let body = json!({ "grant_type": GRANT_TYPE, "grant": world.grant("read") });
    assert_eq!(world.send(&exchange(&world, &url).json(&body)).await.status, 200);
}

#[tokio::test]
async fn a_proof_for_another_address_uses_no_grant_up() {
    let world = World::new().await;
    let url = format!("{}/oauth/token", world.base);
    let body = json!({ "grant_type": GRANT_TYPE, "grant": world.grant("read") });
    for wrong in [
        "http://gateway.internal/oauth/token".to_owned(),
        "http://wakeful.localhost:7878/oauth/token".to_owned(),
        format!("{}/ticket", world.base),
    ] {
        let answer = world.send(&exchange(&world, &wrong).json(&body)).await;
        assert_eq!(reason(&answer), told(400, "invalid_dpop_proof", "proof_url"), "{wrong}");
    }
    assert_eq!(world.send(&exchange(&world, &url).json(&body)).await.status, 200);
}

#[tokio::test]
async fn a_host_of_an_environment_is_reached_through_its_gateway_only() {
    let world = World::new().await;
    let member = world.member("read").await;
    let mut bare = world.signed(&member, "GET", "/shell");
    bare.headers.retain(|(name, _)| name != PUBLIC_ADDRESS_HEADER);
    let twice = world.signed(&member, "GET", "/shell").header(PUBLIC_ADDRESS_HEADER, &world.base);
    for asking in [bare, twice] {
        let answer = world.send(&asking).await;
        assert_eq!(answer.status, 400);
        assert!(answer.value()["detail"].as_str().unwrap().contains("gateway"));
    }
    // The same of the token endpoint, in its own shape.
    let answer = world.send(&Asking::new("POST", "/oauth/token").header("host", "x")).await;
    assert_eq!(reason(&answer), told(400, "invalid_request", ""));
}

#[tokio::test]
async fn a_credential_that_is_there_twice_is_refused() {
    let world = World::new().await;
    let member = world.member("read").await;
    let authorization = format!("DPoP {}", member.token);
    let twice = world.signed(&member, "GET", "/shell").header("authorization", authorization);
    assert_eq!(world.send(&twice).await.refusal(), (401, "token_missing".to_owned()));
    let asking = world.signed(&member, "GET", "/shell");
    let url = format!("{}/shell", world.base);
    let second = member.key.proof("GET", &url, Some(&member.token), world.clock.now());
    let answer = world.send(&asking.header("dpop", second)).await;
    assert_eq!(answer.refusal(), (401, "proof_missing".to_owned()));
}

#[tokio::test]
async fn a_proof_is_good_once_and_for_one_request() {
    let world = World::new().await;
    let member = world.member("read").await;
    let asking = world.signed(&member, "GET", "/shell?families=true");
    assert_eq!(world.send(&asking).await.status, 200);
    assert_eq!(world.send(&asking).await.refusal(), (401, "proof_replayed".to_owned()));
    let mut moved = world.signed(&member, "GET", "/shell");
    moved.target = "/shell/counts".to_owned();
    assert_eq!(world.send(&moved).await.refusal(), (401, "proof_url".to_owned()));
    let mut head = world.signed(&member, "GET", "/shell");
    head.method = "HEAD";
    assert_eq!(world.send(&head).await.status, 401);
    world.clock.advance(Duration::from_secs(3_601));
    let late = world.get(&member, "/shell").await;
    assert_eq!(late.refusal(), (401, "token_expired".to_owned()));
}

#[tokio::test]
async fn a_body_has_a_bound() {
    let world = World::new().await;
    let url = format!("{}/oauth/token", world.base);
    let large = exchange(&world, &url).body("application/json", vec![b' '; 16 * 1024 + 1]);
    let mut line = world.line();
    let answer = line.ask(&large).await;
    assert_eq!((answer.status, answer.header("connection")), (413, Some("close")));
    assert_eq!(reason(&answer), told(413, "invalid_request", ""));
    assert!(line.is_over().await);
    let fits = exchange(&world, &url).body("application/json", vec![b' '; 16 * 1024]);
    assert_eq!(world.send(&fits).await.status, 400);
}

#[tokio::test]
async fn a_session_is_revoked_and_so_are_all_others() {
    let world = World::new().await;
    let chief = world.member("read sessions").await;
    let one = world.member("read").await;
    let two = world.member("read").await;
    let target = format!("/sessions/{}", one.session);
    let refused = world.send(&world.signed(&two, "DELETE", &target)).await;
    assert_eq!(refused.refusal(), (403, "scope_missing".to_owned()));
    let revoked = world.send(&world.signed(&chief, "DELETE", &target)).await;
    assert_eq!((revoked.status, revoked.body.len()), (204, 0));
    let answer = world.get(&one, "/shell").await;
    assert_eq!(answer.refusal(), (401, "session_revoked".to_owned()));
    let again = world.send(&world.signed(&chief, "DELETE", &target)).await;
    assert_eq!(again.status, 404);
    assert_eq!(world.get(&two, "/shell").await.status, 200);
    let others = world.signed(&chief, "POST", "/sessions/revoke-others");
    assert_eq!(world.send(&others).await.status, 204);
    assert_eq!(world.get(&two, "/shell").await.status, 401);
    assert_eq!(world.get(&chief, "/shell").await.status, 200);
}
