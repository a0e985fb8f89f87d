//! What is published of a connection.

use wakeful_wire::Phase;

use crate::{Failure, Instant};

/// One attempt, and the socket that it opens: numbered by its supervisor, never reused. What comes
/// with another number than the present one is of the past and changes nothing.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct AttemptId(pub u64);

/// What the device says of its network. Often wrong, above all for a host on this machine: never
/// more than a reason to look.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum Network {
    /// Nothing was said.
    #[default]
    Unknown,
    /// There is one.
    Online,
    /// There is none.
    Offline,
}

/// What a connection is doing.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum ConnectionPhase {
    /// Nobody wants it.
    #[default]
    Available,
    /// It waits for the network.
    Offline,
    /// An attempt is under way.
    Connecting,
    /// It waits for its next attempt.
    Backoff,
    /// A session is ready.
    Connected,
    /// It waits for something to change: sign-in, pairing, an update.
    Blocked,
    /// The environment sleeps, and nobody needs it. No attempt is made.
    Asleep,
}

/// How far an attempt is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Stage {
    /// It waits for its turn among the attempts of all hosts.
    Waiting,
    /// Credentials and a ticket are had.
    Preparing,
    /// The socket is opened.
    Opening,
    /// The socket is open; the host's hello is awaited.
    Synchronizing,
}

/// What is published of one host's connection.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ConnectionState {
    /// Whether somebody wants it.
    pub desired: bool,
    /// What the device says of its network.
    pub network: Network,
    /// What it is doing.
    pub phase: ConnectionPhase,
    /// How far the attempt is; only while connecting.
    pub stage: Option<Stage>,
    /// How many attempts in a row, this one included, have not led to a lasting connection.
    pub attempt: u32,
    /// One more with each session that became ready; 0 before the first. Never reused.
    pub generation: u64,
    /// Why it is not connected. Stays through the whole next attempt.
    pub last_failure: Option<Failure>,
    /// When the next attempt begins; only in backoff.
    pub retry_at: Option<Instant>,
    /// Whether it is being found out that the session still lives. The phase stays connected.
    pub verifying: bool,
    /// The environment's phase, as far as the platform or the host said it.
    pub environment: Option<Phase>,
}

/// How current the data of a list or a thread are. Apart from the connection's health: data may be
/// out of date on a healthy connection.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum DataStatus {
    /// Nothing is known.
    #[default]
    Empty,
    /// Something is shown that may be out of date, and nothing is on its way.
    Cached,
    /// What is shown is being brought up to date.
    Synchronizing,
    /// What is shown is what the host has.
    Live,
    /// The thread is gone. Final.
    Deleted,
}
