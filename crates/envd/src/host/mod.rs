//! The environment server: what a host's clients reach.
//!
//! [`Host`] binds [threads](crate::thread), [credentials](crate::credential) and the configuration
//! together. `http` answers requests (descriptor, tokens, tickets, reads), `socket` runs one
//! WebSocket each; both decide nothing about threads and change them by [`Host::call`] alone.
//! It does not know where a connection comes from: inside an environment they are handed over by
//! the broker, on a host of its own by a listener.

mod command;
mod hold;
mod http;
mod socket;

use std::{fmt, future::Future, net::IpAddr, sync::Arc, time::Duration};

use tokio::{
    io::{AsyncRead, AsyncWrite},
    sync::watch,
};
use tokio_util::{sync::CancellationToken, task::TaskTracker};
use wakeful_wire::{
    Code, Problem, Timestamp,
    host::Descriptor,
    rpc::{Call, HostConfig, PROTOCOL, Taken},
};

pub use self::hold::{Entered, Hold};
use crate::{
    credential::{Authority, HttpAddress},
    thread::{Threads, ThreadsError},
};

/// How long a closing socket has to take its close frame.
const CLOSE_TIME: Duration = Duration::from_secs(1);

/// Hears that somebody uses the host.
pub trait Use: Send + Sync + 'static {
    /// Somebody did something just now.
    fn used(&self);
}

/// Where clients reach this host: what their proofs are made for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Address {
    /// The gateway states it in
    /// [`PUBLIC_ADDRESS_HEADER`](wakeful_wire::host::PUBLIC_ADDRESS_HEADER) of each request.
    Stated,
    /// By any address at which a request arrives (its `Host`), over plain HTTP; or by this one,
    /// where a proxy in front of this host has another.
    Own(Option<HttpAddress>),
}

/// What a host is made of.
pub struct HostParts {
    /// The threads.
    pub threads: Threads,
    /// Who may use it.
    pub authority: Authority,
    /// What it says of itself.
    pub descriptor: Descriptor,
    /// How it is set up.
    pub config: watch::Receiver<HostConfig>,
    /// Where clients reach it.
    pub address: Address,
    /// Hears of use.
    pub used: Arc<dyn Use>,
    /// The clock.
    pub clock: Arc<dyn Fn() -> Timestamp + Send + Sync>,
    /// How long it is silent on a socket at most.
    pub heartbeat: Duration,
}

impl fmt::Debug for HostParts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HostParts").field("descriptor", &self.descriptor).finish_non_exhaustive()
    }
}

/// How a host ends: what its sockets are closed with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Farewell {
    /// The close code.
    pub code: u16,
    /// The reason, at most 123 bytes.
    pub reason: &'static str,
}

impl Farewell {
    /// The environment is put to sleep or taken down (`design.md`, "Clocks").
    pub const SUSPENDING: Self = Self { code: 4503, reason: "suspending" };
    /// A host of its own ends.
    pub const GOING_AWAY: Self = Self { code: 1001, reason: "the host is ending" };
}

/// An environment server. Cheap to clone.
#[derive(Clone)]
pub struct Host(Arc<Inner>);

struct Inner {
    parts: HostParts,
    hold: Hold,
    /// What sockets are closed with, once the host ends.
    farewell: watch::Sender<Option<Farewell>>,
    sockets: TaskTracker,
    connections: CancellationToken,
}

impl fmt::Debug for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Host").field("descriptor", &self.0.parts.descriptor).finish_non_exhaustive()
    }
}

impl Host {
    /// A host that serves whatever connections it is given.
    #[must_use]
    pub fn new(parts: HostParts) -> Self {
        Self(Arc::new(Inner {
            parts,
            hold: Hold::default(),
            farewell: watch::Sender::new(None),
            sockets: TaskTracker::new(),
            connections: CancellationToken::new(),
        }))
    }

    /// Serves one connection, HTTP/1.1 with upgrades, until it ends. `peer` is who is at its other
    /// end, where that is the client itself.
    pub async fn serve(
        &self,
        stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
        peer: Option<IpAddr>,
    ) {
        http::serve(self.clone(), stream, peer).await;
    }

    /// Carries out a command of a person. Waits while a drain holds.
    ///
    /// Who calls has made sure that the caller may do it ([`Call::scope`]).
    ///
    /// # Errors
    /// A problem fit for the outside. Where it says that a retry makes sense, the same call with
    /// the same ids may be sent again: it happens once.
    pub async fn call(&self, call: Call) -> Result<Taken, Problem> {
        self.call_unless(call, std::future::pending()).await
    }

    /// The same, given up where `gone` comes while it waits for a drain. Once it has been let
    /// through it is carried out to its end.
    async fn call_unless(
        &self,
        call: Call,
        gone: impl Future<Output = ()>,
    ) -> Result<Taken, Problem> {
        let parts = &self.0.parts;
        let command = command::of(call, &parts.config.borrow())?;
        let entered = tokio::select! {
            entered = self.0.hold.enter() => entered.ok_or_else(ending)?,
            () = gone => return Err(Problem::new(Code::Asleep)),
        };
        parts.used.used();
        let taken = parts.threads.command(command).await.map_err(|error| problem(&error))?;
        drop(entered);
        Ok(Taken { seq: taken.seq, thread: taken.thread, changed: taken.changed })
    }

    /// Begins a drain: for `hold` nothing new begins, and what is asked for waits. Returns how many
    /// turns run within `turn_limit`, a command that is just being carried out counting as one.
    #[must_use]
    pub fn drain(&self, hold: Duration, turn_limit: Duration) -> u32 {
        let entered = self.0.hold.begin(hold);
        self.turns(turn_limit).saturating_add(entered)
    }

    /// How many turns run that are younger than `limit`.
    #[must_use]
    pub fn turns(&self, limit: Duration) -> u32 {
        let now = (self.0.parts.clock)();
        let running = self.0.parts.threads.running();
        let young = running.iter().filter(|(_, turn)| turn.started_at.after(limit) > now).count();
        u32::try_from(young).unwrap_or(u32::MAX)
    }

    /// Ends it: nothing more is taken, every socket is closed with `farewell`, and other
    /// connections end. Returns when the sockets have been told, or could not be in time.
    pub async fn close(&self, farewell: Farewell) {
        self.0.hold.close();
        self.0.farewell.send_replace(Some(farewell));
        self.0.sockets.close();
        let _in_time = tokio::time::timeout(CLOSE_TIME, self.0.sockets.wait()).await;
        self.0.connections.cancel();
    }

    /// The host's newest protocol, and the oldest that it speaks.
    #[must_use]
    pub const fn protocols() -> (u32, u32) {
        (PROTOCOL, PROTOCOL)
    }

    pub(super) fn parts(&self) -> &HostParts {
        &self.0.parts
    }
}

/// The host is being taken down: nothing happened.
fn ending() -> Problem {
    Problem::new(Code::Asleep).detail("The environment is being put to sleep. Send it again.")
}

/// What the outside hears of a command that was not carried out.
fn problem(error: &ThreadsError) -> Problem {
    match error {
        ThreadsError::Refused(refused) => Problem::new(refused.code()).detail(sentence(refused)),
        ThreadsError::Log(_) | ThreadsError::Unavailable => {
            tracing::warn!(
                error = error as &dyn std::error::Error,
                "a command was not carried out"
            );
            Problem::new(Code::Internal)
                .detail("The host could not write it down. Send it again with the same ids.")
        }
    }
}

fn sentence(refused: &crate::thread::command::Refused) -> String {
    let text = refused.to_string();
    let mut letters = text.chars();
    letters
        .next()
        .map_or_else(String::new, |first| format!("{}{}.", first.to_uppercase(), letters.as_str()))
}
