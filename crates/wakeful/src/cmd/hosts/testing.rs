//! Hosts as tests need them.

use uuid::Uuid;
use wakeful_link::{ConnectionPhase, ConnectionState, DataStatus, shell::ShellList};
use wakeful_wire::{EnvId, HostId};

use super::{super::which::PAIRED, HostView};

/// A live environment without threads.
pub(in crate::cmd) fn host(name: &str) -> HostView {
    let env = EnvId::from_uuid(Uuid::from_u64_pair(1, name.len() as u64));
    HostView {
        host: env.into(),
        env: Some(env),
        name: name.to_owned(),
        paused: false,
        connection: ConnectionState {
            desired: true,
            phase: ConnectionPhase::Connected,
            generation: 1,
            ..ConnectionState::default()
        },
        address: None,
        session_until: None,
        status: DataStatus::Live,
        error: None,
        list: Some(ShellList::default()),
        as_of: None,
        settled: 0,
    }
}

/// A live paired host without threads.
pub(in crate::cmd) fn paired(name: &str) -> HostView {
    let id = HostId::from_uuid(Uuid::from_u64_pair(2, name.len() as u64));
    HostView { host: id, env: None, name: format!("{PAIRED}{name}"), ..host(name) }
}
