//! Bounds that take too many connections, or too long, for real processes.

use wakeful_wire::rpc::{Prompt, ThreadCreate, ThreadId};

use super::*;

/// An open host on a workspace of its own.
async fn open() -> (tempfile::TempDir, Environment) {
    let dir = tempfile::tempdir().unwrap();
    let spec = serde_json::json!({
        "env": "0199f0a0-7b5c-7c3e-9d2f-6a1b2c3d4e5f",
        "sandbox": "0199f0a0-7b5c-7c3e-9d2f-6a1b2c3d4e50",
        "secret": "the secret",
        "workspace": dir.path(),
        "run_dir": dir.path(),
        "env_vars": {},
        "basic_password": "",
        "surfaces": {},
        "isolation": { "landlock": false, "seccomp": false, "readable": [], "limits": {} },
        "stop_grace_ms": 1_000,
    });
    let spec: SandboxSpec = serde_json::from_value(spec).unwrap();
    let environment = Environment::open(&spec, Vec::new(), Journal::open(dir.path()));
    environment.opened().await.unwrap();
    (dir, environment)
}

fn a_thread() -> Call {
    let thread = ThreadId::from_uuid(uuid::Uuid::new_v4());
    let client = uuid::Uuid::new_v4().to_string().parse().unwrap();
    Call::ThreadCreate(ThreadCreate {
        thread,
        parent: None,
        project: String::new(),
        agent: None,
        title: None,
        prompt: Some(Prompt::text(client, "true")),
    })
}

#[tokio::test]
async fn a_connection_too_many_is_refused_until_another_ends() {
    let (_dir, environment) = open().await;
    let most = u32::try_from(CONNECTIONS_MAX - 1).unwrap();
    let _others = Arc::clone(&environment.0.places).try_acquire_many_owned(most).unwrap();
    let last = environment.dial().unwrap();
    assert!(matches!(environment.dial(), Err(Refusal::Connect { .. })));
    drop(last);
    // Its place is free once the host has noticed.
    let _place = environment.0.places.acquire().await.unwrap();
}

#[tokio::test]
async fn a_delivery_that_a_hold_keeps_too_long_is_to_be_sent_again() {
    let (_dir, environment) = open().await;
    assert_eq!(environment.drain(Duration::from_secs(60)), Ok(0));
    tokio::time::pause();
    let begun = Instant::now();
    let Err(Refusal::Host { problem }) = environment.deliver(a_thread()).await else {
        panic!("it was taken")
    };
    assert_eq!((problem.code, problem.retry), (Code::Overloaded, true));
    assert!(begun.elapsed() >= DELIVERY_TIME && begun.elapsed() < DELIVERY_TIME * 2);
    tokio::time::resume();
    assert_eq!(environment.drain(Duration::ZERO), Ok(0));
    assert!(environment.deliver(a_thread()).await.unwrap().changed);
}

#[tokio::test]
async fn once_it_ends_everything_is_refused_as_stopping() {
    let (_dir, environment) = open().await;
    environment.end().await;
    assert_eq!(environment.dial().unwrap_err(), Refusal::Stopping);
    assert_eq!(environment.drain(Duration::ZERO), Err(Refusal::Stopping));
    assert_eq!(environment.deliver(a_thread()).await, Err(Refusal::Stopping));
}
