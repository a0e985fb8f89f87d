//! The control socket.

use std::{
    io::{Read, Write},
    os::unix::{fs::PermissionsExt, net::UnixStream},
};

use serde_json::json;
use wakeful_wire::sandbox::{AskKind, LINE_MAX, Refusal, Reply, SurfaceState, run_dir};

use crate::fixture::Sandbox;

fn stub() -> Sandbox {
    Sandbox::of(&[("app", json!({ "command": "exec $WAKEFUL_BIN stub" }))])
}

#[test]
fn a_passed_descriptor_is_a_connection_to_the_program() {
    let sandbox = stub();
    sandbox.wait_for("app", SurfaceState::Ready);
    let port = sandbox.status().surfaces["app"].port;
    let mut streams: Vec<_> = (0..20).map(|_| sandbox.dial("app").unwrap()).collect();
    for (number, stream) in streams.iter_mut().enumerate() {
        assert_eq!(stream.peer_addr().unwrap().port(), port);
        write!(stream, "GET /{number} HTTP/1.1\r\n\r\n").unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        assert!(answer.ends_with(&format!("GET /{number} HTTP/1.1")), "{answer}");
    }
}

#[test]
fn the_wrong_secret_gets_nothing_done() {
    let sandbox = stub();
    for secret in ["", "the secre", "the secret ", "The secret"] {
        for ask in [
            AskKind::Status,
            AskKind::Watch,
            AskKind::Dial { surface: "app".parse().unwrap() },
            AskKind::Stop { grace_ms: 0 },
        ] {
            assert_eq!(sandbox.ask_with(secret, ask), Reply::Refused(Refusal::Unauthorized));
        }
    }
    assert!(!sandbox.status().stopping);
}

#[test]
fn the_socket_is_its_users_alone() {
    let sandbox = stub();
    let socket = sandbox.run_dir().join(run_dir::SOCKET);
    assert_eq!(std::fs::metadata(socket).unwrap().permissions().mode() & 0o777, 0o600);
}

#[test]
fn nonsense_is_refused_and_an_endless_line_is_cut_off() {
    let sandbox = stub();
    let connect = || UnixStream::connect(sandbox.run_dir().join(run_dir::SOCKET)).unwrap();
    let mut stream = connect();
    stream.write_all(b"GET / HTTP/1.1\n").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    assert_eq!(serde_json::from_str::<Reply>(&answer).unwrap(), Reply::Refused(Refusal::Unknown));

    let mut stream = connect();
    let sent = stream.write_all(&vec![b'x'; LINE_MAX + 4097]);
    let mut answer = Vec::new();
    let read = stream.read_to_end(&mut answer);
    assert!(sent.is_err() || read.is_err() || answer.is_empty());
    let nobody = AskKind::Start { surface: "nobody".parse().unwrap() };
    assert_eq!(sandbox.ask(nobody), Reply::Refused(Refusal::Unknown));
}

#[test]
fn silent_connections_keep_nobody_who_knows_the_secret_waiting() {
    let sandbox = stub();
    sandbox.wait_for("app", SurfaceState::Ready);
    let connect = || UnixStream::connect(sandbox.run_dir().join(run_dir::SOCKET)).unwrap();
    let mut silent: Vec<_> = (0..200).map(|_| connect()).collect();
    assert!(sandbox.get("app", "/").contains("200 OK"));
    // The oldest was driven out; nobody waited for it to say something.
    assert_eq!(silent[0].read(&mut [0]).unwrap(), 0);
    // And whoever connects again and again is no worse.
    for _ in 0..200 {
        silent.push(connect());
    }
    assert!(sandbox.get("app", "/").contains("200 OK"));
}

#[test]
fn a_herd_with_the_secret_is_served_to_the_last() {
    let sandbox = stub();
    sandbox.wait_for("app", SurfaceState::Ready);
    std::thread::scope(|scope| {
        for _ in 0..200 {
            scope.spawn(|| assert!(sandbox.dial("app").is_ok()));
        }
    });
}

#[test]
fn a_watcher_sees_every_surface_at_once_and_then_each_change() {
    let sandbox = Sandbox::of(&[
        ("app", json!({ "command": "exec $WAKEFUL_BIN stub closed 200" })),
        ("db", json!({ "command": "exec $WAKEFUL_BIN stub", "start": "lazy" })),
    ]);
    let mut watch = sandbox.watch();
    let first = watch.next().unwrap();
    assert_eq!(first.surfaces.len(), 2);
    assert!(!first.eager_ready());
    let ready = watch.find(|status| status.eager_ready()).unwrap();
    assert_eq!(ready.surfaces["app"].state, SurfaceState::Ready);
    assert_eq!(ready.surfaces["db"].state, SurfaceState::Stopped);
    assert_eq!(ready.pid, sandbox.envd.id());
    assert_eq!(ready.sandbox, sandbox.ground.spec.sandbox);
    sandbox.ask(AskKind::Stop { grace_ms: 5000 });
    assert!(watch.any(|status| status.stopping), "a stop is a change as well");
}
