//! What the link wants of the shell around it, and what it tells views.

use serde_json::Value;
use wakeful_wire::{HostId, rpc::ThreadId};

use crate::{
    AttemptId,
    authorization::{Access, RenewalId, Secret},
    boundary::{CallFailure, Token as RequestToken},
    families::Absence,
    http::Request,
    platform::StreamId as EventsId,
    registry::{self, Entry, OperationId, ScopeId},
    route::Address,
    shell::CachedShell,
    threads::{Held, StreamId, WriteId},
};

/// One scope of one host. What comes back with a scope that is over changes nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct At {
    /// The host.
    pub host: HostId,
    /// The scope.
    pub scope: ScopeId,
}

/// How a request or a socket reaches its host or platform.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Way {
    /// What paths are put behind.
    pub address: Address,
    /// The platform whose sign-in opens the way; none for a host that is paired with directly. The
    /// shell adds the platform's token, and whether the request may wake.
    pub platform: Option<Address>,
}

/// One request of a host's scope, or of a platform. Never reused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct AskId {
    pub(crate) scope: ScopeId,
    pub(crate) number: u64,
}

/// How a socket proves who opens it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Enter {
    /// By an access token and a proof, in headers.
    Access(Access),
    /// By a one-use ticket, as a subprotocol: for a shell that cannot send headers.
    Ticket(Secret),
}

/// Something that the shell is to do. In this order, as far as one host is concerned. Everything
/// with an answer is answered once, in bounded time, also where it fails.
#[derive(Debug, Clone, PartialEq)]
pub enum Effect {
    /// Open a socket, once: answered by `handle_opened` or `handle_not_opened`.
    Open {
        /// For whom.
        at: At,
        /// Which socket.
        attempt: AttemptId,
        /// Where, below [`SOCKET_PATH`](wakeful_wire::host::SOCKET_PATH).
        way: Way,
        /// Whether this may wake a sleeping environment.
        wake: bool,
        /// Who opens it.
        enter: Enter,
        /// What the host is known by, for the header
        /// [`KNOWN_HEADER`](wakeful_wire::rpc::KNOWN_HEADER) where the shell can send one.
        known: Option<String>,
    },
    /// Send a text frame.
    Send {
        /// For whom.
        at: At,
        /// On which socket.
        attempt: AttemptId,
        /// The frame.
        text: String,
    },
    /// Close a socket, or give up opening it. Nothing more of it is of interest.
    Close {
        /// For whom.
        at: At,
        /// Which socket.
        attempt: AttemptId,
    },
    /// Send a request: answered by `handle_reply`.
    Ask {
        /// Names it.
        ask: AskId,
        /// Where to.
        way: Way,
        /// What.
        request: Request,
    },
    /// Nobody waits for this request any more.
    Withdraw {
        /// Which.
        ask: AskId,
    },
    /// Open a platform's stream of changes.
    Follow {
        /// The platform.
        platform: Address,
        /// Names the stream.
        stream: EventsId,
    },
    /// Close it.
    Unfollow {
        /// The platform.
        platform: Address,
        /// The stream.
        stream: EventsId,
    },
    /// Read the cached list: answered by `handle_cached_shell`.
    LoadShell {
        /// For whom.
        at: At,
    },
    /// Put this in the place of the cached list: answered by `handle_saved_shell`.
    SaveShell {
        /// For whom.
        at: At,
        /// The list.
        shell: Box<CachedShell>,
    },
    /// Read the cached copy of a thread: answered by `handle_cached_thread`.
    LoadThread {
        /// For whom.
        at: At,
        /// For which stream.
        stream: StreamId,
    },
    /// Replace the cached copy of a thread: answered by `handle_written_thread`.
    SaveThread {
        /// For whom.
        at: At,
        /// Names the change.
        write: WriteId,
        /// The thread.
        thread: ThreadId,
        /// State and cursor in one.
        held: Box<Held>,
    },
    /// Remove the cached copy of a thread: answered by `handle_written_thread`.
    ForgetThread {
        /// For whom.
        at: At,
        /// Names the change.
        write: WriteId,
        /// The thread.
        thread: ThreadId,
    },
    /// Store the refresh token of a paired host, if the host is still kept: answered by
    /// `handle_stored_refresh`.
    StoreRefresh {
        /// For whom.
        at: At,
        /// For which renewal.
        renewal: RenewalId,
        /// The token.
        refresh_token: Secret,
    },
    /// Remove the refresh token of a paired host.
    ForgetRefresh {
        /// For whom.
        at: At,
    },
    /// Keep an entry for good: answered by `handle_persisted`.
    Persist {
        /// For the answer.
        token: registry::Token,
        /// What is kept.
        entry: Box<Entry>,
        /// Whether the host's own credentials are deleted in the same step.
        drop_credentials: bool,
    },
    /// Delete a kept entry and its credentials, and note that [`Effect::Clear`] is to follow, all
    /// in one step: answered by `handle_unpersisted`.
    Unpersist {
        /// For the answer.
        token: registry::Token,
    },
    /// Delete what is kept of a host: answered by `handle_cleared`.
    Clear {
        /// For the answer.
        token: registry::Token,
    },
    /// Views should know this.
    Tell(Change),
}

/// What has changed for views. They read the rest from the link.
#[derive(Debug, Clone, PartialEq)]
pub enum Change {
    /// The hosts themselves.
    Hosts(registry::Change),
    /// An operation on a host has ended.
    Operation {
        /// The host.
        host: HostId,
        /// Which.
        operation: OperationId,
        /// Whether what was asked for holds now.
        outcome: Result<(), registry::Refusal>,
    },
    /// The connection to a platform.
    Platform(Address),
    /// A host's connection.
    Connection(HostId),
    /// A host's configuration or capabilities.
    Configuration(HostId),
    /// A host's list.
    Shell(HostId),
    /// The lists as they are shown side by side.
    Lists,
    /// A host's rows that were read on demand, its older settled threads, or a search.
    Rows(HostId),
    /// A thread.
    Thread {
        /// The host.
        host: HostId,
        /// The thread.
        thread: ThreadId,
    },
    /// The host was asked whether a thread is there.
    Absence {
        /// The host.
        host: HostId,
        /// The thread.
        thread: ThreadId,
        /// What is known of it.
        absence: Absence,
    },
    /// A command was answered, or is not going to be.
    Answered {
        /// The host.
        host: HostId,
        /// Which.
        token: RequestToken,
        /// What came of it.
        outcome: Result<Value, CallFailure>,
    },
}
