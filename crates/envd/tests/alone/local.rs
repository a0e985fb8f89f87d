//! What a person at the machine itself can ask.

use std::{
    io::{Read, Write},
    os::unix::{fs::PermissionsExt, net::UnixStream},
    path::PathBuf,
};

use rustix::process::Signal;
use wakeful_envd::alone::ask::{AskError, Local};
use wakeful_wire::host::{Scope, Scopes};

use crate::fixture::{Ground, Running, asked};

fn socket_of(host: &Running) -> PathBuf {
    let hosts = host.ground().state().join("hosts");
    let mut found = std::fs::read_dir(hosts).unwrap();
    found.next().unwrap().unwrap().path().join("control")
}

#[test]
fn another_code_can_be_had_at_the_machine_and_gives_what_it_says() {
    let host = Ground::new().start();
    let local = host.ground().local();
    let status = asked(local.status()).unwrap();
    assert_eq!((status.pid, status.label.as_str()), (host.pid(), "Lab"));
    assert_eq!(status.address, format!("http://{}", host.address));
    assert_eq!(status.workspace, host.ground().workspace());

    let scopes = Scopes::from_iter([Scope::Read]);
    let offered = asked(local.offer(Some("phone".to_owned()), Some(scopes))).unwrap();
    assert_eq!(offered.address, status.address);
    let (code, token) = host.client().pair(&offered.code);
    assert_eq!((code, token["scope"].as_str()), (200, Some("read")), "{token}");
    let sessions = asked(local.sessions()).unwrap();
    assert_eq!(sessions.len(), 1);
    assert_eq!((sessions[0].label.as_str(), sessions[0].subject.as_str()), ("phone", "owner"));

    let nothing = asked(local.offer(None, Some(Scopes::default())));
    assert!(matches!(nothing, Err(AskError::Refused(_))), "{nothing:?}");
}

#[test]
fn a_session_revoked_at_the_machine_is_over_at_once() {
    let host = Ground::new().start();
    let local = host.ground().local();
    let client = host.client();
    let (_, token) = client.pair(&host.code);
    let token = token["access_token"].as_str().unwrap();
    let (socket, _) = client.socket(token);
    let session = asked(local.sessions()).unwrap()[0].id;
    assert!(asked(local.revoke(session)).unwrap());
    assert_eq!(socket.closed().0, 4411);
    assert!(!asked(local.revoke(session)).unwrap());
    assert_eq!(client.ticket(token).0, 401);
    assert!(asked(local.sessions()).unwrap().is_empty());
}

#[test]
fn every_host_of_the_machine_is_found() {
    let ground = Ground::new();
    assert!(matches!(asked(ground.local().status()), Err(AskError::NotRunning)));
    let mut host = ground.start();
    let running = asked(Local::running(&ground.state()));
    assert_eq!(running.len(), 1);
    assert_eq!(running[0].1.pid, host.pid());
    host.signal(Signal::KILL);
    host.wait_end();
    assert!(asked(Local::running(&ground.state())).is_empty());
    // The socket that it left behind keeps nobody from starting again.
    let _again = ground.start();
    assert_eq!(asked(Local::running(&ground.state())).len(), 1);
}

#[test]
fn the_control_socket_is_its_users_alone_and_answers_nonsense_with_a_refusal() {
    let host = Ground::new().start();
    let socket = socket_of(&host);
    assert_eq!(std::fs::metadata(&socket).unwrap().permissions().mode() & 0o777, 0o600);
    let said = |text: &[u8]| {
        let mut stream = UnixStream::connect(&socket).unwrap();
        stream.write_all(text).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
    };
    assert!(said(b"GET / HTTP/1.1\n").contains("refused"));
    assert!(said(b"{\"dance\":{}}\n").contains("refused"));
    assert!(said(b"\"status\"\n").contains("Lab"));
    // Beyond the first few, those who say nothing are turned away at once.
    let mut silent: Vec<_> = (0..40).map(|_| UnixStream::connect(&socket).unwrap()).collect();
    assert_eq!(silent[39].read(&mut [0]).unwrap(), 0);
}

#[test]
fn a_second_host_of_a_workspace_is_refused_and_harms_nothing() {
    let ground = Ground::new();
    let host = ground.start();
    let said = ground.refused("127.0.0.1:0");
    assert!(said.contains("another host works in") && said.contains("wakeful pair"), "{said}");
    let offered = asked(ground.local().offer(None, None)).unwrap();
    assert_eq!(host.client().pair(&offered.code).0, 200);
}

#[test]
fn what_cannot_be_listened_on_or_is_not_there_is_said() {
    let (one, two) = (Ground::new(), Ground::new());
    let host = one.start();
    let said = two.refused(&host.address.to_string());
    assert!(said.contains("nothing can listen on 127.0.0.1:"), "{said}");
    assert!(asked(two.local().status()).is_err());
    std::fs::remove_dir(two.workspace()).unwrap();
    assert!(two.refused("127.0.0.1:0").contains("the workspace"), "and the path is named");
}
