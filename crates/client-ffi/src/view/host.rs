//! Hosts and their connections.

use std::time::Duration;

use wakeful_link::{
    self as link, ConnectionState, Instant,
    platform::PlatformState,
    registry::{Entry, Target},
};
use wakeful_wire::rpc::HostConfig;

use crate::error::words;

/// A host that is known here.
#[derive(Debug, Clone, PartialEq, Eq, uniffi::Record)]
pub struct Host {
    /// Its id, by which everything else names it.
    pub id: String,
    /// What it is called here.
    pub name: String,
    /// How it is reached, and by whose leave.
    pub kind: HostKind,
    /// Whether it takes part at all.
    pub enabled: bool,
    /// Whether somebody wants no connection for now.
    pub paused: bool,
}

/// How a host is reached, and by whose leave.
#[derive(Debug, Clone, PartialEq, Eq, uniffi::Enum)]
pub enum HostKind {
    /// This client was paired with it.
    Paired {
        /// The ways to it, the preferred one first.
        addresses: Vec<String>,
    },
    /// An environment of a server, by its user's account there.
    Environment {
        /// The server's address.
        server: String,
        /// The user.
        user: String,
    },
}

impl Host {
    pub(crate) fn of(entry: &Entry) -> Self {
        let kind = match &entry.target {
            Target::Paired { routes } => {
                let address = |route: &link::route::Route| route.address().to_string();
                HostKind::Paired { addresses: routes.iter().map(address).collect() }
            }
            Target::Environment { account, .. } => HostKind::Environment {
                server: account.platform.to_string(),
                user: account.user.to_string(),
            },
        };
        Self {
            id: entry.host.to_string(),
            name: words(&entry.label),
            kind,
            enabled: entry.enabled,
            paused: entry.paused,
        }
    }
}

/// What a device says of its network.
#[derive(Debug, Clone, Copy, PartialEq, Eq, uniffi::Enum)]
pub enum Network {
    /// Nothing is known.
    Unknown,
    /// There is one.
    Online,
    /// There is none.
    Offline,
}

impl From<Network> for link::Network {
    fn from(network: Network) -> Self {
        match network {
            Network::Unknown => Self::Unknown,
            Network::Online => Self::Online,
            Network::Offline => Self::Offline,
        }
    }
}

/// What a host's connection is doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, uniffi::Enum)]
pub enum ConnectionPhase {
    /// Nobody wants it.
    Available,
    /// It waits for the network.
    Offline,
    /// An attempt is under way.
    Connecting,
    /// It waits for its next attempt.
    Backoff,
    /// It is ready.
    Connected,
    /// It waits for something to change: sign-in, pairing, an update.
    Blocked,
    /// The environment sleeps, and nobody needs it.
    Asleep,
}

impl From<link::ConnectionPhase> for ConnectionPhase {
    fn from(phase: link::ConnectionPhase) -> Self {
        match phase {
            link::ConnectionPhase::Available => Self::Available,
            link::ConnectionPhase::Offline => Self::Offline,
            link::ConnectionPhase::Connecting => Self::Connecting,
            link::ConnectionPhase::Backoff => Self::Backoff,
            link::ConnectionPhase::Connected => Self::Connected,
            link::ConnectionPhase::Blocked => Self::Blocked,
            link::ConnectionPhase::Asleep => Self::Asleep,
        }
    }
}

/// How far an attempt is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, uniffi::Enum)]
pub enum ConnectionStage {
    /// It waits for its turn among the attempts of all hosts.
    Waiting,
    /// Credentials are had.
    Preparing,
    /// The socket is opened.
    Opening,
    /// The socket is open; the host's hello is awaited.
    Synchronizing,
}

impl From<link::Stage> for ConnectionStage {
    fn from(stage: link::Stage) -> Self {
        match stage {
            link::Stage::Waiting => Self::Waiting,
            link::Stage::Preparing => Self::Preparing,
            link::Stage::Opening => Self::Opening,
            link::Stage::Synchronizing => Self::Synchronizing,
        }
    }
}

/// Why something does not work.
#[derive(Debug, Clone, PartialEq, Eq, uniffi::Record)]
pub struct Failure {
    /// Why, for programs: a stable word such as `network` or `authentication`.
    pub reason: String,
    /// What happened, for people, in one line.
    pub detail: String,
}

impl Failure {
    pub(crate) fn of(failure: &link::Failure) -> Self {
        Self { reason: failure.reason.as_str().to_owned(), detail: words(&failure.detail) }
    }
}

/// What a host's connection is doing. It says nothing of how current lists and threads are.
#[derive(Debug, Clone, PartialEq, Eq, uniffi::Record)]
pub struct Connection {
    /// What it is doing.
    pub phase: ConnectionPhase,
    /// How far the attempt is; only while connecting.
    pub stage: Option<ConnectionStage>,
    /// How many attempts in a row, this one included, have not led to a lasting connection.
    pub attempt: u32,
    /// One more with each connection that became ready; 0 before the first.
    pub generation: u64,
    /// Why it is not connected. Stays through the whole next attempt.
    pub failure: Option<Failure>,
    /// In how many milliseconds the next attempt begins; only in backoff.
    pub retry_in_ms: Option<u64>,
    /// Whether it is being found out that the connection still lives.
    pub verifying: bool,
    /// What the environment is doing, where it was said: a stable word such as `suspended` or
    /// `ready`.
    pub environment: Option<String>,
}

impl Connection {
    pub(crate) fn of(state: &ConnectionState, now: Instant) -> Self {
        Self {
            phase: state.phase.into(),
            stage: state.stage.map(Into::into),
            attempt: state.attempt,
            generation: state.generation,
            failure: state.last_failure.as_ref().map(Failure::of),
            retry_in_ms: state.retry_at.map(|at| millis(now.until(at))),
            verifying: state.verifying,
            environment: state.environment.map(|phase| phase.as_str().to_owned()),
        }
    }
}

/// What the connection to a server is doing, which tells this client of its environments.
#[derive(Debug, Clone, PartialEq, Eq, uniffi::Record)]
pub struct ServerState {
    /// The server's address.
    pub server: String,
    /// Whether its environments are followed at this moment.
    pub following: bool,
    /// Whether it waits for something to change, such as a sign-in.
    pub blocked: bool,
    /// Why it is not followed.
    pub failure: Option<Failure>,
}

impl ServerState {
    pub(crate) fn of(server: &link::route::Address, state: &PlatformState) -> Self {
        let (following, blocked, failure) = match state {
            PlatformState::Idle | PlatformState::Offline => (false, false, None),
            PlatformState::Opening { last_failure } => (false, false, last_failure.as_ref()),
            PlatformState::Following => (true, false, None),
            PlatformState::Backoff { last_failure, .. } => (false, false, Some(last_failure)),
            PlatformState::Blocked(failure) => (false, true, Some(failure)),
        };
        let failure = failure.map(Failure::of);
        Self { server: server.to_string(), following, blocked, failure }
    }
}

/// An agent that threads of a host can be made with.
#[derive(Debug, Clone, PartialEq, Eq, uniffi::Record)]
pub struct Agent {
    /// Its name.
    pub name: String,
    /// For people.
    pub title: String,
    /// Whether a thread gets it when nobody chose one.
    pub is_default: bool,
}

impl Agent {
    pub(crate) fn all(config: &HostConfig) -> Vec<Self> {
        let agent = |view: &wakeful_wire::rpc::AgentView| Self {
            name: view.name.clone(),
            title: words(view.title.as_ref().unwrap_or(&view.name)),
            is_default: config.default_agent.as_ref() == Some(&view.name),
        };
        config.agents.iter().map(agent).collect()
    }
}

pub(crate) fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use wakeful_link::FailureReason;

    use super::*;

    #[test]
    fn a_wait_is_told_as_what_is_left_of_it() {
        let state = ConnectionState {
            phase: link::ConnectionPhase::Backoff,
            retry_at: Some(Instant(5_000)),
            last_failure: Some(link::Failure::new(FailureReason::Network, "Gone\nfor now")),
            environment: Some(wakeful_wire::Phase::Suspended),
            ..ConnectionState::default()
        };
        let shown = Connection::of(&state, Instant(3_500));
        assert_eq!(shown.retry_in_ms, Some(1_500));
        assert_eq!(shown.environment.as_deref(), Some("suspended"));
        let failure = Failure { reason: "network".to_owned(), detail: "Gone for now".to_owned() };
        assert_eq!(shown.failure, Some(failure));
        assert_eq!(Connection::of(&state, Instant(9_000)).retry_in_ms, Some(0));
    }
}
