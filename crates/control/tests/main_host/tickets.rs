//! From the main host to a surface's own host: single-use tickets.

use std::time::Duration;

use http::StatusCode;
use serde_json::json;
use wakeful_wire::gate::Credential;

use crate::support::{Answer, Call, ORIGIN, User, World};

fn host(user: &User) -> String {
    format!("{}-dev.apps.wakeful.localhost", user.project)
}

fn encode(text: &str) -> String {
    text.replace(':', "%3A").replace('/', "%2F").replace('?', "%3F").replace('&', "%26")
}

/// What the surface's host sends a browser to, with this nonce.
fn ask(user: &User, path: &str, nonce: &str) -> Call {
    let to = encode(&format!("http://{}:7878{path}", host(user)));
    Call::get(&format!("/surface-ticket?to={to}&nonce={nonce}")).page()
}

/// The ticket in an answer's address.
fn ticket(answer: &Answer, user: &User, to: &str) -> String {
    assert_eq!(answer.status, StatusCode::SEE_OTHER, "{answer:?}");
    let start = format!("http://{}:7878/.wakeful/ticket?ticket=", host(user));
    let rest = answer.location().strip_prefix(&start).unwrap_or_else(|| panic!("{answer:?}"));
    let (ticket, rest) = rest.split_once("&to=").unwrap();
    assert_eq!(rest, to);
    assert_eq!(answer.header("cache-control"), "no-store");
    ticket.to_owned()
}

async fn admits(world: &World, cookie: &str, host: &str) -> bool {
    let credential = Credential::Surface { value: cookie.into(), host: host.into() };
    world.accounts.authenticate(&credential).await.unwrap().is_some()
}

#[tokio::test]
async fn a_signed_in_browser_is_sent_back_with_a_ticket_for_its_host() {
    let world = World::new().await;
    let alice = world.user("alice").await;
    let cookie = world.cookie(&alice).await;
    let answer = world.send(ask(&alice, "/a?b=c", "nonce").cookie(&cookie)).await;
    let ticket = ticket(&answer, &alice, "%2Fa%3Fb%3Dc");
    let host = host(&alice);
    let grant = world.accounts.redeem(&ticket, "nonce", &host).await.unwrap().unwrap();
    assert!(admits(&world, &grant.cookie, &host).await);
    assert!(world.accounts.redeem(&ticket, "nonce", &host).await.unwrap().is_none());
    // It is a cookie of that host: the main host knows nothing of it.
    world.send(Call::get("/api/me").cookie(&grant.cookie)).await.refused(401, "unauthenticated");
}

#[tokio::test]
async fn whoever_is_not_signed_in_signs_in_first_and_comes_back() {
    let world = World::new().await;
    let alice = world.user("alice").await;
    let answer = world.send(ask(&alice, "/", "nonce")).await;
    assert_eq!(answer.status, StatusCode::SEE_OTHER);
    let next = answer.location().strip_prefix("/login?next=").unwrap();
    assert!(next.starts_with("%2Fsurface-ticket%3Fto%3D"), "{next}");
    let page = world.send(Call::get(answer.location()).page()).await;
    assert_eq!(page.status, StatusCode::OK);
    let form_action = "form-action 'self' http://*.wakeful.localhost:7878;";
    assert!(page.header("content-security-policy").contains(form_action));
    assert!(page.text().contains("name=\"next\" value=\"/surface-ticket?to="), "{}", page.text());
}

#[tokio::test]
async fn a_ticket_dies_with_another_host_another_browser_and_after_a_minute() {
    let world = World::new().await;
    let alice = world.user("alice").await;
    let cookie = world.cookie(&alice).await;
    let fresh = async || {
        let answer = world.send(ask(&alice, "/", "nonce").cookie(&cookie)).await;
        ticket(&answer, &alice, "%2F")
    };
    let host = host(&alice);
    let redeem = async |ticket: &str, nonce: &str, host: &str| {
        world.accounts.redeem(ticket, nonce, host).await.unwrap().is_some()
    };
    let bare = format!("{}.apps.wakeful.localhost", alice.project);
    assert!(!redeem(&fresh().await, "nonce", &bare).await, "another host");
    assert!(!redeem(&fresh().await, "guess", &host).await, "another browser");
    let old = fresh().await;
    world.advance(Duration::from_secs(61));
    assert!(!redeem(&old, "nonce", &host).await, "too late");
    assert!(redeem(&fresh().await, "nonce", &host).await);
}

#[tokio::test]
async fn signing_out_ends_what_was_given_for_the_session() {
    let world = World::new().await;
    let alice = world.user("alice").await;
    let cookie = world.cookie(&alice).await;
    let mut tickets = Vec::new();
    for _ in 0..2 {
        let answer = world.send(ask(&alice, "/", "nonce").cookie(&cookie)).await;
        tickets.push(ticket(&answer, &alice, "%2F"));
    }
    let host = host(&alice);
    let grant = world.accounts.redeem(&tickets[0], "nonce", &host).await.unwrap().unwrap();
    let mut signed_out = world.accounts.signed_out();
    world.send(Call::post("/logout").cookie(&cookie).origin(ORIGIN).form(&[])).await;
    assert_eq!(signed_out.recv().await.unwrap().as_str(), "alice", "gateways are told");
    assert!(!admits(&world, &grant.cookie, &host).await);
    assert!(world.accounts.redeem(&tickets[1], "nonce", &host).await.unwrap().is_none());
}

#[tokio::test]
async fn nobody_gets_a_ticket_for_what_is_not_theirs() {
    let world = World::new().await;
    let alice = world.user("alice").await;
    let bob = world.user("bob").await;
    let cookie = world.cookie(&bob).await;
    let answer = world.send(ask(&alice, "/", "nonce").cookie(&cookie)).await;
    assert_eq!(answer.status, StatusCode::NOT_FOUND);
    for to in ["http://evil.example/", "http://wakeful.localhost:7878/", "javascript:alert(1)"] {
        let path = format!("/surface-ticket?to={}&nonce=n", encode(to));
        let answer = world.send(Call::get(&path).cookie(&cookie)).await;
        answer.refused(400, "bad_request");
    }
    // A token is a program's: it needs no cookie.
    let to = encode(&format!("http://{}:7878/", host(&bob)));
    let path = format!("/surface-ticket?to={to}&nonce=n");
    world.send(bob.get(&path)).await.refused(400, "bad_request");
    let empty = format!("/surface-ticket?to={to}&nonce=");
    world.send(Call::get(&empty).cookie(&cookie)).await.refused(400, "invalid");
    assert_eq!(world.phase(&alice, "ready").await["leases"], json!([]));
}
