//! Reaching a host from elsewhere, and what outlives it.

use rustix::process::Signal;
use serde_json::json;
use wakeful_wire::host::Descriptor;

use crate::fixture::{Ground, asked};

#[test]
fn it_says_who_it_is_and_that_it_can_be_paired_with() {
    let host = Ground::new().start();
    let (status, body) = host.client().get("/descriptor");
    assert_eq!(status, 200, "{body}");
    let descriptor: Descriptor = serde_json::from_value(body).unwrap();
    assert_eq!((descriptor.label.as_str(), descriptor.environment), ("Lab", None));
    assert!(descriptor.capabilities.has("pairing") && !descriptor.capabilities.has("grants"));
}

#[test]
fn the_printed_code_pairs_one_client_once() {
    let host = Ground::new().start();
    let client = host.client();
    let (status, wrong) = client.pair("2222-2222");
    assert_eq!((status, &wrong["reason"]), (400, &json!("pairing_wrong")), "{wrong}");
    let (status, token) = client.pair(&host.code);
    assert_eq!((status, &token["token_type"]), (200, &json!("DPoP")), "{token}");
    assert!(token["refresh_token"].is_string());
    let (status, again) = host.client().pair(&host.code);
    assert_eq!((status, &again["reason"]), (400, &json!("pairing_wrong")), "{again}");
}

#[test]
fn a_paired_client_has_work_done_in_the_workspace() {
    let host = Ground::new().start();
    let client = host.client();
    let (_, token) = client.pair(&host.code);
    let (mut socket, hello) = client.socket(token["access_token"].as_str().unwrap());
    let agents = &hello["config"]["agents"];
    assert_eq!(agents[0]["name"], "fake", "{hello}");
    assert_eq!(agents[1]["name"], "shell", "{hello}");
    let id = || uuid::Uuid::new_v4().to_string();
    let part = json!({ "type": "text", "text": "pwd > where" });
    let prompt = json!({ "client": id(), "parts": [part] });
    let params = json!({ "thread": id(), "prompt": prompt });
    socket.send(&json!({
        "type": "request", "id": 1, "method": "thread.create", "params": params,
    }));
    let answer = socket.frame_when(|frame| frame["id"] == 1);
    assert_eq!(answer["type"], "response", "{answer}");
    let workspace = host.ground().workspace();
    let until = std::time::Instant::now() + std::time::Duration::from_secs(60);
    loop {
        let text = std::fs::read_to_string(workspace.join("where")).unwrap_or_default();
        if text.ends_with('\n') {
            assert_eq!(text.trim_end(), workspace.to_str().unwrap());
            break;
        }
        assert!(std::time::Instant::now() < until, "the command did not run");
        let pause = rustix::time::Timespec { tv_sec: 0, tv_nsec: 5_000_000 };
        let _interrupted = rustix::thread::nanosleep(&pause);
    }
}

#[test]
fn an_end_tells_its_clients_and_leaves_nothing_in_the_way_of_the_next_start() {
    for signal in [Signal::TERM, Signal::INT] {
        let ground = Ground::new();
        let mut host = ground.start();
        let client = host.client();
        let (_, token) = client.pair(&host.code);
        let (socket, _) = client.socket(token["access_token"].as_str().unwrap());
        host.signal(signal);
        assert_eq!(socket.closed().0, 1001);
        assert_eq!(host.wait_end(), Some(0));
        assert!(asked(ground.local().status()).is_err());
        ground.start();
    }
}

#[test]
fn a_restart_keeps_the_hosts_id_and_its_sessions() {
    let ground = Ground::new();
    let mut first = ground.start();
    let client = first.client();
    let (_, token) = client.pair(&first.code);
    let (_, descriptor) = client.get("/descriptor");
    // Killed: nothing of this is only written at an orderly end.
    first.signal(Signal::KILL);
    first.wait_end();

    let address = first.address;
    let second = ground.start_on(&address.to_string());
    let (_, again) = client.get("/descriptor");
    assert_eq!(descriptor["id"], again["id"]);
    let (status, ticket) = client.ticket(token["access_token"].as_str().unwrap());
    assert_eq!(status, 200, "{ticket}");
    let refresh = json!({ "grant_type": "refresh_token", "refresh_token": token["refresh_token"] });
    let (status, renewed) = client.token(&refresh);
    assert_eq!((status, &renewed["session"]), (200, &token["session"]), "{renewed}");
    let (status, stale) = client.pair(&first.code);
    assert_eq!(status, 400, "a code of an earlier start is none: {stale}");
    drop(second);
}
