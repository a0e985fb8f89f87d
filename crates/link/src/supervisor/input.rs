//! What can happen to a connection.

use wakeful_wire::Phase;

use crate::{
    AttemptId, Failure, Network, Stage, route::RouteClass, supervisor::suspension::Foreground,
};

/// Something happened. What names an attempt or a check that is not the present one is of the past
/// and changes nothing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Input {
    /// The connection is wanted from now on.
    Connect {
        /// A person's intent, which may wake a sleeping environment.
        wake: bool,
    },
    /// It is wanted no more: everything ends, and the session is released.
    Disconnect,
    /// A person asks to try now. On a live session: to look whether it lives.
    RetryNow {
        /// Whether this may wake a sleeping environment.
        wake: bool,
    },
    /// What the device says of its network. The same again is no change.
    Network(Network),
    /// The way into the network is another one (interface, address, VPN).
    PathChanged,
    /// An account changed, or credentials were had anew.
    CredentialsChanged {
        /// Whether the credentials that this host's session was opened with depend on it.
        bound: bool,
    },
    /// The client came to the foreground.
    Foreground(Foreground),
    /// What the platform says of the environment, in the order that it says it.
    Environment(Phase),
    /// Something suggests that the host can be reached again: another host on the same way could.
    /// Ends a wait of the ladder early, spread and not often.
    Reachable,
    /// The budget lets this attempt begin.
    Granted {
        /// The attempt that was wanted.
        attempt: AttemptId,
    },
    /// How far the attempt is.
    Stage {
        /// Which.
        attempt: AttemptId,
        /// How far.
        stage: Stage,
    },
    /// Which way the attempt took.
    Route {
        /// Which.
        attempt: AttemptId,
        /// How far the host is on it.
        class: RouteClass,
    },
    /// The host greeted: the attempt became a session. Said once of an attempt.
    Ready {
        /// Which.
        attempt: AttemptId,
    },
    /// The attempt did not work; nothing of it is left. A defect inside it is a failure by
    /// transport.
    Failed {
        /// Which.
        attempt: AttemptId,
        /// Why.
        failure: Failure,
    },
    /// The session's socket is gone.
    Closed {
        /// The attempt that it came from.
        attempt: AttemptId,
        /// Why.
        failure: Failure,
    },
    /// Anything at all came in on that socket.
    Frame {
        /// The attempt that it came from.
        attempt: AttemptId,
    },
    /// The probe was answered.
    Alive {
        /// The session.
        attempt: AttemptId,
        /// The check that sent the probe.
        check: u64,
    },
    /// The session heard nothing for so long that it must be looked at.
    Silent {
        /// The session.
        attempt: AttemptId,
    },
    /// The expected host answered the fresh request. Another host's answer is no evidence and is
    /// never reported here.
    HostAnswered {
        /// The check that asked.
        check: u64,
    },
    /// A fresh request failed; the next one is made in its time.
    HostFailed {
        /// The check that asked.
        check: u64,
    },
}
