//! Clients of an environment's host, through descriptors that it was dialled for.

use std::time::{SystemTime, UNIX_EPOCH};

use serde_json::{Value, json};
use uuid::Uuid;
use wakeful_envd::credential::GrantGate;
use wakeful_wire::{
    GrantId, Timestamp, UserName,
    host::{Scopes, grant::Grant},
    sandbox::AskKind,
    time::millis,
};

use crate::{
    client::Client,
    fixture::{Sandbox, eventually},
    host::bare,
};

/// A client as it comes through a gateway.
fn client(sandbox: &Sandbox) -> Client {
    eventually("the host", || sandbox.dial_host().ok());
    let base = format!("http://wakeful.localhost:7878/api/host/{}", sandbox.ground.spec.env);
    let dial = sandbox.host_dialler();
    Client::new(base, true, move || Box::new(dial().unwrap()))
}

/// A grant as the control plane seals it.
fn grant(sandbox: &Sandbox, secret: &str) -> Value {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    let grant = Grant::new(
        GrantId::from_uuid(Uuid::new_v4()),
        sandbox.ground.spec.env,
        UserName::new("alice").unwrap(),
        Scopes::all(),
        Timestamp(millis(now)),
    );
    let text = GrantGate::new(sandbox.ground.spec.env, secret).seal(&grant);
    json!({ "grant_type": "urn:wakeful:oauth:grant", "grant": text })
}

#[test]
fn a_grant_that_the_sandboxs_secret_sealed_opens_the_host_once() {
    let sandbox = bare();
    let client = client(&sandbox);
    let (status, forged) = client.token(&grant(&sandbox, "another secret"));
    assert_eq!((status, &forged["error"]), (400, &json!("invalid_grant")), "{forged}");
    let grant = grant(&sandbox, &sandbox.ground.spec.secret);
    let (status, token) = client.token(&grant);
    assert_eq!(status, 200, "{token}");
    assert_eq!(client.ticket(token["access_token"].as_str().unwrap()).0, 200);
    let (status, again) = client.token(&grant);
    assert_eq!((status, &again["reason"]), (400, &json!("grant_used")), "{again}");
}

#[test]
fn a_stop_closes_open_sockets_with_the_word_that_it_is_put_to_sleep() {
    let mut sandbox = bare();
    let client = client(&sandbox);
    let (_, token) = client.token(&grant(&sandbox, &sandbox.ground.spec.secret));
    let (socket, hello) = client.socket(token["access_token"].as_str().unwrap());
    assert_eq!(hello["host"]["id"], json!(sandbox.ground.spec.env), "{hello}");
    assert_eq!(client.get("/descriptor"), (200, hello["host"].clone()));
    sandbox.ask(AskKind::Stop { grace_ms: 20_000 });
    assert_eq!(socket.closed(), (4503, "suspending".to_owned()));
    assert_eq!(sandbox.wait_end(), Some(0));
}

#[test]
fn a_client_that_says_it_is_looked_at_counts_as_use() {
    let sandbox = bare();
    let client = client(&sandbox);
    let (_, token) = client.token(&grant(&sandbox, &sandbox.ground.spec.secret));
    let (mut socket, _) = client.socket(token["access_token"].as_str().unwrap());
    assert_eq!(sandbox.status().host.activity, 0, "an open socket alone is no use");
    socket.send(&json!({ "type": "request", "id": 1, "method": "activity" }));
    assert_eq!(socket.frame_when(|frame| frame["id"] == 1)["type"], "response");
    sandbox.status_when("the use", |status| status.host.activity == 1);
}
