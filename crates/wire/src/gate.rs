//! What a gateway and the control plane say to one another.
//!
//! In one process these travel through a trait, in a scaled-out installation as JSON on the
//! routes `/internal/proxy/…`.

use std::{collections::BTreeMap, path::PathBuf, sync::Arc};

use serde::{Deserialize, Serialize};

use crate::{
    EnvId, Generation, HolderId, Phase, SandboxUid, Slug, SurfaceName, UserName, template::Surface,
};

/// Who asks, once authenticated.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Principal {
    /// The user.
    pub user: UserName,
    /// By what they showed who they are.
    pub by: SignedInBy,
}

/// A cookie means a browser, a token means a program (`design.md`, "Intent").
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SignedInBy {
    /// A session cookie of the main host or of a surface's own host.
    Cookie,
    /// A bearer token.
    Token,
}

/// Something that may authenticate a request. Its text is a secret and is never printed.
#[derive(Clone, PartialEq, Eq, Hash)]
pub enum Credential {
    /// A bearer token, `wk_…`.
    Token(String),
    /// The main host's session cookie.
    Session(String),
    /// The cookie of a private surface's own host.
    Surface {
        /// The cookie's value.
        value: String,
        /// The host that it was sent to, lower-case, without port.
        host: String,
    },
}

impl std::fmt::Debug for Credential {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Token(_) => "Token(…)",
            Self::Session(_) => "Session(…)",
            Self::Surface { .. } => "Surface(…)",
        })
    }
}

/// What a gateway must know of an environment to route to it; changes only with its template,
/// owner or slug.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Route {
    /// The environment.
    pub env: EnvId,
    /// Its owner: the only one who may visit private surfaces.
    pub owner: UserName,
    /// Its slug, the second half of the app's canonical host label.
    pub slug: Slug,
    /// A title for the waking page.
    pub title: String,
    /// The surface that `/u/{user}/` opens.
    pub home: Option<SurfaceName>,
    /// The surfaces and their rules.
    pub surfaces: BTreeMap<SurfaceName, Arc<Surface>>,
    /// The shortest idle timeout in force, in milliseconds: bounds how long "ready" may be cached.
    pub idle_min_ms: u64,
}

/// `POST /internal/proxy/projects/{envId}/ensure`. Never blocks.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct EnsureRequest {
    /// The environment.
    pub env: EnvId,
    /// The surface asked for; starts it if it is lazy.
    #[serde(deserialize_with = "crate::name::addressed")]
    pub surface: SurfaceName,
    /// Who asks.
    pub principal: Option<Principal>,
    /// Whether this request may wake a sleeping environment.
    pub intent: bool,
}

/// The answer of the gate.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct EnsureAnswer {
    /// What a waiting request is to do.
    pub state: GateState,
    /// The phase, for people and for the `Wakeful-Phase` header.
    pub phase: Phase,
    /// The record's generation. An answer older than one known already is dropped.
    pub generation: Generation,
    /// The sandbox that serves, when ready.
    pub sandbox: Option<SandboxUid>,
    /// How to reach the surface, when ready.
    pub upstream: Option<Upstream>,
    /// When to ask again, where that makes sense.
    pub retry_after_ms: Option<u64>,
    /// Why, for people: what failed, or what is awaited.
    pub reason: Option<String>,
}

/// What a waiting request is to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum GateState {
    /// Go on to `upstream`.
    Ready,
    /// Wait and ask again: the environment is starting.
    Starting,
    /// Wait and ask again: the environment is ready, this surface is not yet.
    SurfaceStarting,
    /// This surface's program cannot be started: 502 `surface_failed`.
    SurfaceFailed,
    /// Asleep, and this request does not wake it.
    Asleep,
    /// Cannot start: 502 `environment_failed`.
    Failed,
    /// Switched off: 423.
    Disabled,
    /// Deleted: 410 for who waited, 404 for who comes.
    Gone,
    /// Nothing of that name for this principal: 404.
    NotFound,
}

/// How a gateway reaches a surface of a sandbox.
#[derive(Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Upstream {
    /// Ask `envd` at its control socket for a connected descriptor (`design.md`, decision 7).
    Broker {
        /// The control socket.
        socket: PathBuf,
        /// What `envd` expects to hear first.
        secret: String,
        /// The `Host` that the program sees under `host = "upstream"`.
        authority: String,
        /// The basic-auth pair to inject, `user:password`, where the surface declares it.
        basic: Option<String>,
    },
    /// Dial this address.
    Tcp {
        /// `address:port`.
        address: std::net::SocketAddr,
        /// The basic-auth pair to inject, where the surface declares it.
        basic: Option<String>,
    },
}

impl std::fmt::Debug for Upstream {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Broker { socket, authority, .. } => f
                .debug_struct("Broker")
                .field("socket", socket)
                .field("authority", authority)
                .finish_non_exhaustive(),
            Self::Tcp { address, .. } => {
                f.debug_struct("Tcp").field("address", address).finish_non_exhaustive()
            }
        }
    }
}

/// `POST …/failure`: something went wrong with a sandbox that was ready.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FailureReport {
    /// The environment.
    pub env: EnvId,
    /// The surface.
    #[serde(deserialize_with = "crate::name::addressed")]
    pub surface: SurfaceName,
    /// The sandbox that the failed request went to.
    pub sandbox: SandboxUid,
    /// What went wrong.
    pub kind: FailureKind,
}

/// What went wrong between gateway and surface.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FailureKind {
    /// No connection could be had.
    Connect,
    /// The connection ended before an answer's head.
    BeforeHead,
    /// The connection ended in the middle of an answer.
    MidStream,
    /// The answer was not HTTP.
    Malformed,
    /// The upgrade was not completed.
    Handshake,
}

impl FailureKind {
    /// The stable text.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Connect => "connect",
            Self::BeforeHead => "before_head",
            Self::MidStream => "mid_stream",
            Self::Malformed => "malformed",
            Self::Handshake => "handshake",
        }
    }
}

/// Whether the sandbox is gone and a new one starts (503), or lives (502).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct FailureAnswer {
    /// True: the sandbox is gone, a new one starts; try again.
    /// False: the program died inside a living sandbox, which is left alone.
    pub restart: bool,
}

/// `POST …/activity`: one aggregate per environment and surface and interval.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ActivityReport {
    /// The environment.
    pub env: EnvId,
    /// The surface; its clock is the one that the gate would touch.
    #[serde(deserialize_with = "crate::name::addressed")]
    pub surface: SurfaceName,
    /// Who counts.
    pub holder: HolderId,
    /// What is held.
    pub kind: LeaseKind,
    /// How many of that kind are open now; 0 ends the lease.
    pub count: u32,
    /// The lease lapses after this, unless reported again.
    pub expires_ms: u64,
    /// Whether the clock is touched: true while something is open or was since the last report.
    pub touch: bool,
}

/// What holds an environment awake.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum LeaseKind {
    /// A request in flight.
    Request,
    /// An event stream or another answer without an end in sight.
    Stream,
    /// An upgraded connection.
    Socket,
    /// An upload to the workspace.
    Upload,
    /// A running agent turn.
    Turn,
}

impl LeaseKind {
    /// The stable text.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Request => "request",
            Self::Stream => "stream",
            Self::Socket => "socket",
            Self::Upload => "upload",
            Self::Turn => "turn",
        }
    }
}

/// `GET /internal/proxy/events`: what makes a gateway forget or act at once.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum GateEvent {
    /// The phase or the readiness of a surface changed: cached verdicts below this generation die,
    /// and waiting requests ask again.
    Changed {
        /// The environment.
        env: EnvId,
        /// The record's generation.
        generation: Generation,
        /// The phase now.
        phase: Phase,
    },
    /// A suspend was decided. The gateway admits nothing more from its cache, and answers by
    /// [`DrainAnswer`] whether anything of its own is still in flight.
    Drain {
        /// The environment.
        env: EnvId,
        /// The generation of the decision.
        generation: Generation,
        /// True when a person or a deletion asked: sockets are closed with 4503, streams ended.
        /// False when idleness decided: anything open aborts the suspend.
        forced: bool,
    },
    /// A session ended: principals cached for it die.
    SignedOut {
        /// The user.
        user: UserName,
    },
    /// What a gateway knows of an environment's route (owner, slug, surfaces) has changed.
    RouteChanged {
        /// The environment.
        env: EnvId,
    },
}

/// A gateway's answer to [`GateEvent::Drain`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DrainAnswer {
    /// The gateway.
    pub holder: HolderId,
    /// The environment.
    pub env: EnvId,
    /// The generation of the decision that is answered.
    pub generation: Generation,
    /// False: requests, streams or sockets are open, and the suspend must not go on (unless it is
    /// forced, in which case the gateway answers again when they have ended).
    pub drained: bool,
}
