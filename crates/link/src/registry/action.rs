//! What the registry asks of its parent, and what it tells.

use std::collections::BTreeSet;

use wakeful_wire::HostId;

use super::Entry;
use crate::{
    Network,
    route::{Address, RoutesError},
};

/// One connection scope: everything that lives while a host is connected to, or tried to, under one
/// entry. Numbered by the registry, never reused. What comes from another scope than the present
/// one is of the past and changes nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ScopeId(pub u64);

/// One thing that a person, or a program for one, asked for. Numbered by the registry.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct OperationId(pub u64);

/// One answer that the registry waits for. A second answer, or one that nobody waits for any more,
/// changes nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Token {
    pub(super) host: HostId,
    pub(super) number: u64,
}

impl Token {
    /// The host that it is about.
    #[must_use]
    pub const fn host(self) -> HostId {
        self.host
    }
}

/// What is to be done.
///
/// `Persist`, `Unpersist`, `Close` and `Clear` are each answered once, in bounded time, also when
/// they fail: until then nothing else is done for that host. Those of one host come one after the
/// other, those of different hosts are done at once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Action {
    /// Keep this entry for good, in place of any other of its host. Answered by
    /// [`handle_persisted`](super::Registry::handle_persisted).
    Persist {
        /// For the answer.
        token: Token,
        /// What is kept.
        entry: Entry,
        /// Whether the host's own credentials are deleted in the same step, because the entry that
        /// they belonged to is replaced by one of a platform.
        drop_credentials: bool,
    },
    /// Delete the kept entry of a host and its credentials, and note that its data are still to be
    /// cleared, all in one step: whoever ends before that finds the note at the next start. A
    /// credential is only ever written where the entry is still kept, so that one which is renewed
    /// at this moment does not come back. Answered by
    /// [`handle_unpersisted`](super::Registry::handle_unpersisted).
    Unpersist {
        /// For the answer.
        token: Token,
    },
    /// Begin a scope. The connection is wanted unless the entry says paused.
    Open {
        /// The host.
        host: HostId,
        /// The new scope.
        scope: ScopeId,
        /// What it begins with.
        entry: Entry,
    },
    /// The entry of a scope has changed, and the connection goes on: another label, paused or not,
    /// further ways to the host.
    Update {
        /// The host.
        host: HostId,
        /// The scope.
        scope: ScopeId,
        /// What holds from now on.
        entry: Entry,
    },
    /// Try again now, because a person says so.
    Retry {
        /// The host.
        host: HostId,
        /// The scope.
        scope: ScopeId,
    },
    /// End a scope: its socket, requests and timers. Answered by
    /// [`handle_closed`](super::Registry::handle_closed) when nothing of it runs any more.
    Close {
        /// The host.
        host: HostId,
        /// The scope.
        scope: ScopeId,
        /// Whether the scope may save at its end what it holds. Otherwise its data are about to be
        /// deleted, and whatever it still writes would come back as a ghost.
        save: bool,
    },
    /// Delete what is kept of a host: cached lists and threads, drafts, queued messages, and the
    /// note that this is to be done. Answered by
    /// [`handle_cleared`](super::Registry::handle_cleared).
    Clear {
        /// For the answer.
        token: Token,
    },
    /// An operation has come to its end.
    Finish {
        /// The host.
        host: HostId,
        /// Which one.
        operation: OperationId,
        /// Whether what was asked for holds now.
        outcome: Result<(), Refusal>,
    },
    /// Views should know this.
    Publish(Change),
}

/// What views should know.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Change {
    /// A host is there that was not.
    Added(HostId),
    /// The entry or the scope of a host is another one.
    Changed(HostId),
    /// A host is gone.
    Removed(HostId),
    /// Something of a host could not be kept or deleted. It goes on without.
    Unkept {
        /// The host.
        host: HostId,
        /// What did not work, for people.
        detail: String,
    },
    /// There are hosts that were not taken. All others were.
    LeftOut {
        /// The platform that lists them; none for those that were kept at the start.
        platform: Option<Address>,
        /// Those beyond the number of hosts that a client can have.
        over_limit: usize,
        /// Those that another platform already has.
        contested: BTreeSet<HostId>,
    },
    /// The device says something else of its network. Independent of any connection.
    Network(Network),
}

/// Why something was not done.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// The registry has not begun, or has ended.
    #[error("this client is not running")]
    NotRunning,
    /// No such host.
    #[error("no such host is registered")]
    NotRegistered,
    /// The platform's list alone says which environments there are.
    #[error("an environment comes and goes with its platform's list; delete it there, or sign out")]
    Managed,
    /// The ways to the host cannot be as asked.
    #[error(transparent)]
    Routes(RoutesError),
    /// Too much is asked of one host at once.
    #[error("too much is waiting to be done for this host")]
    Busy,
    /// There are as many hosts as a client can have.
    #[error("a client can have at most {} hosts", super::HOSTS_MAX)]
    Full,
    /// It could not be kept, or deleted, for good.
    #[error("the change could not be kept: {0}")]
    Unkept(String),
}

/// Where somebody stands who reads a host through all of its scopes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Following {
    /// The scope that was seen last is the present one.
    Current,
    /// Another scope has taken over.
    Moved(ScopeId),
    /// No scope is open at the moment. One may come.
    Between,
    /// The host was removed. If it is there again, that is another registration.
    Ended,
}
