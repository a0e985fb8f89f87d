//! Pairing codes, which only a host of its own makes.

use std::net::{IpAddr, Ipv4Addr};

use serde_json::json;
use wakeful_wire::{
    host::{PairingAnswer, TokenResponse},
    rpc::SessionList,
};

use crate::{client::ClientKey, fixture::World};

#[tokio::test]
async fn a_code_lets_another_client_in_with_no_more_than_its_maker_has() {
    let world = World::alone().await;
    let member = world.member("read sessions").await;
    let body = json!({ "label": "phone", "scopes": "read" });
    let offered: PairingAnswer =
        world.send(&world.signed(&member, "POST", "/pairing").json(&body)).await.read();
    assert!(offered.expires_at > world.clock.now());
    let key = ClientKey::new(200);
    let redeem = |key: &ClientKey| {
        let url = format!("{}/oauth/token", world.base);
        world
            .asking("POST", "/oauth/token")
            .header("dpop", key.proof("POST", &url, None, world.clock.now()))
            .json(&json!({ "grant_type": "urn:wakeful:oauth:pairing", "code": offered.code }))
    };
    let far = IpAddr::V4(Ipv4Addr::new(203, 0, 113, 9));
    let refused = world.line_from(Some(far)).ask(&redeem(&key)).await;
    assert_eq!(refused.refusal(), (403, "pairing_peer".to_owned()));
    assert!(refused.header("www-authenticate").is_some());
    let token: TokenResponse = world.send(&redeem(&key)).await.read();
    assert_eq!(token.scope, "read".parse().unwrap());
    assert!(token.refresh_token.is_some());
    let sessions: SessionList = world.get(&member, "/sessions").await.read();
    let paired = sessions.sessions.iter().find(|known| known.id == token.session).unwrap();
    assert_eq!((paired.label.as_str(), paired.subject.as_str()), ("phone", "alice"));

    let more = json!({ "scopes": "read write" });
    let refused = world.send(&world.signed(&member, "POST", "/pairing").json(&more)).await;
    assert_eq!(refused.refusal(), (403, "scope_missing".to_owned()));
    for bad in [json!([]), json!({ "scopes": "" }), json!({ "scopes": 7 })] {
        let answer = world.send(&world.signed(&member, "POST", "/pairing").json(&bad)).await;
        assert_eq!(answer.status, 400, "{bad}");
    }
    let large = vec![b' '; 64 * 1024 + 1];
    let asking = world.signed(&member, "POST", "/pairing").body("application/json", large);
    assert_eq!(world.send(&asking).await.status, 413);
    let same: PairingAnswer = world.send(&world.signed(&member, "POST", "/pairing")).await.read();
    assert_ne!(same.code, offered.code);
}

#[tokio::test]
async fn who_may_not_see_sessions_makes_no_code() {
    let world = World::alone().await;
    let member = world.member("read write").await;
    let refused = world.send(&world.signed(&member, "POST", "/pairing")).await;
    assert_eq!(refused.refusal(), (403, "scope_missing".to_owned()));
}

#[tokio::test]
async fn a_host_of_an_environment_makes_no_code() {
    let world = World::new().await;
    let member = world.member("sessions").await;
    let refused = world.send(&world.signed(&member, "POST", "/pairing")).await;
    assert_eq!((refused.status, refused.value()["code"].as_str()), (400, Some("unsupported")));
}
