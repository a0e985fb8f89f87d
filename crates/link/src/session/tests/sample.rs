//! What hosts say, for tests.

use wakeful_wire::{
    HostId, Timestamp, UserName,
    host::{Capabilities, Descriptor, Platform, Scope, Scopes, SessionMethod, SessionView},
    rpc::{Cursor, Epoch, Hello, HostConfig, PROTOCOL, Seq, ServerFrame},
};

use crate::{
    Instant,
    session::{Session, SessionEvent},
};

/// The host that is expected.
pub(crate) fn host() -> HostId {
    "0199f0a0-7b5c-7c3e-9d2f-6a1b2c3d4e06".parse().unwrap()
}

/// A position.
pub(crate) fn cursor(seq: u64) -> Cursor {
    Cursor { epoch: Epoch(7), seq: Seq(seq) }
}

/// A configuration without agents.
pub(crate) fn config(revision: u64) -> HostConfig {
    HostConfig { revision, ..HostConfig::default() }
}

/// The expected host's hello: revision 3, newest event 40, a heartbeat of 5 s.
pub(crate) fn hello() -> Hello {
    Hello {
        protocol: PROTOCOL,
        host: Descriptor {
            id: host(),
            environment: None,
            label: "Kitchen".to_owned(),
            release: "0.1.0".to_owned(),
            protocols: (1, 1),
            platform: Platform { os: "linux".to_owned(), arch: "x86_64".to_owned() },
            capabilities: Capabilities::and(&[]),
        },
        capabilities: Capabilities::and(&[]),
        config: config(3),
        session: SessionView {
            id: "0199f0a0-7b5c-7c3e-9d2f-6a1b2c3d4e04".parse().unwrap(),
            subject: UserName::new("ada").unwrap(),
            scopes: Scopes::from_iter([Scope::Read, Scope::Write]),
            method: SessionMethod::Grant,
            label: String::new(),
            issued_at: Timestamp(0),
            expires_at: Timestamp(3_600_000),
            last_connected_at: None,
            connections: 1,
        },
        head: cursor(40),
        tag: None,
        heartbeat_ms: 5_000,
    }
}

/// A frame as text.
pub(crate) fn text(frame: &ServerFrame) -> String {
    serde_json::to_string(frame).unwrap()
}

/// A hello as text.
pub(crate) fn hello_text(hello: Hello) -> String {
    text(&ServerFrame::Hello(Box::new(hello)))
}

/// A session that has just become ready, its events read.
pub(crate) fn ready(now: Instant) -> Session {
    let mut session = Session::new(now, host());
    session.handle_frame(now, &hello_text(hello())).unwrap();
    assert!(session.is_ready());
    while session.poll_event().is_some() {}
    session
}

/// Every event that waits.
pub(crate) fn events(session: &mut Session) -> Vec<SessionEvent> {
    std::iter::from_fn(|| session.poll_event()).collect()
}
