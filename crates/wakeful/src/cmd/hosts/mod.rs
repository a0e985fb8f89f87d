//! The hosts of a running client, as commands show them side by side.

pub(super) mod failure;
mod json;
mod reaching;
mod waiting;
mod words;

#[cfg(test)]
pub(super) mod testing;

use wakeful_client::runtime::Client;
use wakeful_link::{
    ConnectionPhase, ConnectionState, DataStatus, Failure, Instant, Link,
    platform::PlatformState,
    registry::{Entry, Target},
    route::Address,
    shell::ShellList,
};
use wakeful_wire::{EnvId, HostId, Timestamp};

pub(super) use self::{
    json::{connection_json, connection_value, platform_json},
    reaching::{Tries, WAKING, call, call_until_known, connected, failed},
    waiting::{PATIENCE, settle, until},
    words::{Countdown, data_words, phase_word, platform_words, words},
};
use super::which::PAIRED;

/// Which rows of a host are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Rows {
    /// As the client knows them at this moment.
    Live,
    /// As they are shown beside others: steady while those synchronize.
    Steady,
}

/// What is known of one host at one moment.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct HostView {
    /// The host.
    pub(super) host: HostId,
    /// Its environment; nothing for a paired host.
    pub(super) env: Option<EnvId>,
    /// What it is called; for a paired host with [`PAIRED`] before it. Another side's words may be
    /// in it.
    pub(super) name: String,
    /// Whether a person wants no connection for now.
    pub(super) paused: bool,
    /// What the connection is doing.
    pub(super) connection: ConnectionState,
    /// The way to it that was taken last, else the one that is tried first.
    pub(super) address: Option<Address>,
    /// When the session ends that its socket stands on.
    pub(super) session_until: Option<Instant>,
    /// How current the list is.
    pub(super) status: DataStatus,
    /// Why the list is not brought up to date on a connection that is healthy.
    pub(super) error: Option<Failure>,
    /// The list.
    pub(super) list: Option<ShellList>,
    /// When the list was what the host had, where it is not now.
    pub(super) as_of: Option<Timestamp>,
    /// How many threads are settled, those that the list leaves out among them.
    pub(super) settled: u64,
}

impl HostView {
    /// Why it cannot be worked with at this moment, although it is not for sleep: what a command
    /// about this host alone ends with.
    pub(super) fn failure(&self) -> Option<Failure> {
        let stands = match self.connection.phase {
            ConnectionPhase::Backoff | ConnectionPhase::Blocked | ConnectionPhase::Offline => true,
            // It was tried before.
            ConnectionPhase::Connecting => self.connection.attempt > 1,
            ConnectionPhase::Connected => return self.error.clone(),
            ConnectionPhase::Available | ConnectionPhase::Asleep => false,
        };
        self.connection.last_failure.clone().filter(|_| stands)
    }

    /// Whether the list is what the host has.
    pub(super) const fn is_live(&self) -> bool {
        matches!(self.status, DataStatus::Live)
    }
}

/// What is known of one platform at one moment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct PlatformView {
    /// Its address.
    pub(super) address: Address,
    /// What the connection to it is doing.
    pub(super) state: PlatformState,
}

/// Everything that is shown at one moment.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct View {
    /// The moment, on the link's clock.
    pub(super) now: Instant,
    /// The hosts: environments by name, then paired ones.
    pub(super) hosts: Vec<HostView>,
    /// The platforms.
    pub(super) platforms: Vec<PlatformView>,
}

/// Reads all hosts, or only these.
pub(super) fn view(client: &Client, only: Option<&[HostId]>, rows: Rows) -> View {
    let mut view = client.with(|link, now| View {
        now,
        hosts: hosts(link, only, rows),
        platforms: link
            .platforms()
            .filter_map(|address| {
                let state = link.platform(address)?.clone();
                Some(PlatformView { address: address.clone(), state })
            })
            .collect(),
    });
    for host in view.hosts.iter_mut().filter(|host| !host.is_live()) {
        host.as_of = client.cached_at(host.host);
    }
    view
}

fn hosts(link: &Link, only: Option<&[HostId]>, rows: Rows) -> Vec<HostView> {
    let wanted = |entry: &&Entry| only.is_none_or(|only| only.contains(&entry.host));
    let mut hosts: Vec<_> =
        link.entries().filter(wanted).filter_map(|entry| host(link, entry, rows)).collect();
    hosts.sort_by(|one, other| {
        (one.env.is_none(), &one.name, one.host).cmp(&(
            other.env.is_none(),
            &other.name,
            other.host,
        ))
    });
    hosts
}

/// Nothing for a host whose scope is not open yet, or not any more.
fn host(link: &Link, entry: &Entry, rows: Rows) -> Option<HostView> {
    let host = entry.host;
    let shell = link.shell(host)?;
    let (env, name) = match &entry.target {
        Target::Environment { env, .. } => (Some(*env), entry.label.clone()),
        Target::Paired { .. } => (None, format!("{PAIRED}{}", entry.label)),
    };
    let first = || {
        let routes = entry.target.routes().ok()?;
        routes.iter().next().map(|route| route.address().clone())
    };
    let list = match rows {
        Rows::Live => shell.list.as_ref(),
        Rows::Steady => link.shown(host),
    };
    // Rows that wait to change together with others' are not what the host has.
    let held = list.is_some() && list != shell.list.as_ref();
    let behind = held && shell.status == DataStatus::Live;
    let status = if behind { DataStatus::Synchronizing } else { shell.status };
    Some(HostView {
        host,
        env,
        name,
        paused: entry.paused,
        connection: link.connection(host)?.clone(),
        address: link.way(host).cloned().or_else(first),
        session_until: link.session_until(host),
        status,
        error: shell.error.clone(),
        list: list.cloned(),
        as_of: None,
        settled: link.settled_count(host).unwrap_or(0),
    })
}
