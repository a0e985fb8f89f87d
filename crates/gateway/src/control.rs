//! What the gateway asks of the control plane, and what it hands on to the main host.
//!
//! The gateway knows no store and no driver. In one process these traits are implemented over the
//! engine directly; in a scaled-out installation over HTTP.

use async_trait::async_trait;
use bytes::Bytes;
use http::{Request, Response};
use http_body_util::combinators::UnsyncBoxBody;
use hyper::body::Incoming;
use tokio::sync::broadcast;
use wakeful_wire::{
    EnvId, SurfaceName, UserName,
    gate::{
        ActivityReport, Credential, DrainAnswer, EnsureAnswer, EnsureRequest, FailureAnswer,
        FailureReport, GateEvent, Principal, Route,
    },
};

/// An error of a body on its way; the connection is aborted with it.
pub type BodyError = Box<dyn std::error::Error + Send + Sync>;

/// A response body of the gateway.
pub type Body = UnsyncBoxBody<Bytes, BodyError>;

/// The control plane cannot be asked just now. Nothing of it is shown to the outside.
#[derive(Debug, thiserror::Error)]
#[error("the control plane cannot be asked: {0}")]
pub struct Unavailable(pub String);

/// The control plane as a gateway sees it. No call waits for an environment.
#[async_trait]
pub trait ControlPlane: Send + Sync + 'static {
    /// Who this credential stands for; `None` if for nobody (any more).
    async fn authenticate(&self, credential: &Credential)
    -> Result<Option<Principal>, Unavailable>;

    /// What is needed to route to an environment; `None` if there is none of that id.
    async fn route(&self, env: EnvId) -> Result<Option<Route>, Unavailable>;

    /// The default environment of a user and its home surface.
    async fn home(&self, user: &UserName) -> Result<Option<(EnvId, SurfaceName)>, Unavailable>;

    /// The gate: wakes if `intent`, touches the surface's clock, says what a request is to do.
    async fn ensure(&self, request: EnsureRequest) -> Result<EnsureAnswer, Unavailable>;

    /// A request to a ready sandbox failed.
    async fn failure(&self, report: FailureReport) -> Result<FailureAnswer, Unavailable>;

    /// What this gateway holds open, aggregated.
    async fn activity(&self, report: ActivityReport) -> Result<(), Unavailable>;

    /// The answer to [`GateEvent::Drain`]. Must be sent for every such event, by every gateway.
    async fn drained(&self, answer: DrainAnswer) -> Result<(), Unavailable>;

    /// Changes, pushed. A receiver that lagged must forget everything that it cached.
    fn events(&self) -> broadcast::Receiver<GateEvent>;

    /// Exchanges a single-use ticket for the cookie of a private surface's own host. `nonce` is
    /// the value that this browser got when it was sent to sign in. `None`: spent, expired, made
    /// for another host or another browser.
    async fn redeem(
        &self,
        ticket: &str,
        nonce: &str,
        host: &str,
    ) -> Result<Option<SurfaceSession>, Unavailable>;
}

/// What a ticket was exchanged for.
#[derive(Clone)]
pub struct SurfaceSession {
    /// The value of the surface host's cookie. A secret.
    pub cookie: String,
    /// How long it lasts, in seconds.
    pub max_age_s: u64,
}

impl std::fmt::Debug for SurfaceSession {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SurfaceSession").field("max_age_s", &self.max_age_s).finish_non_exhaustive()
    }
}

/// The main host: pages, API, sign-in. It runs on the control plane's own runtime, never on a data
/// core; the gateway only carries request and response.
#[async_trait]
pub trait MainHost: Send + Sync + 'static {
    /// Answers one request. The peer's address stands in the request's extensions as
    /// `std::net::SocketAddr`.
    async fn serve(&self, request: Request<Incoming>) -> Response<Body>;
}
