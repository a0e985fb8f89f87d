//! The main host on the control plane's own runtime: the gateway's cores only carry.

use std::sync::{Arc, OnceLock};

use async_trait::async_trait;
use axum::Router;
use http::{Request, Response, StatusCode};
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use tokio::runtime::Handle;
use tower::ServiceExt as _;
use wakeful_gateway::control::{Body, MainHost};

/// A place for the router, which is built after whatever serves it.
#[derive(Debug, Clone, Default)]
pub(super) struct Slot(Arc<OnceLock<Router>>);

impl Slot {
    /// Puts the router in; the first one stays.
    pub(super) fn fill(&self, router: Router) {
        drop(self.0.set(router));
    }
}

/// The main host's router, run on `runtime`.
#[derive(Debug)]
pub(super) struct RouterHost {
    pub(super) router: Slot,
    pub(super) runtime: Handle,
}

#[async_trait]
impl MainHost for RouterHost {
    async fn serve(&self, request: Request<Incoming>) -> Response<Body> {
        let Some(router) = self.router.0.get().cloned() else {
            return empty(StatusCode::SERVICE_UNAVAILABLE);
        };
        let answer = self.runtime.spawn(router.oneshot(request.map(axum::body::Body::new)));
        match answer.await {
            Ok(Ok(response)) => response.map(|body| body.map_err(Into::into).boxed_unsync()),
            Ok(Err(never)) => match never {},
            // A handler panicked: its own task is gone, nothing else.
            Err(_) => empty(StatusCode::INTERNAL_SERVER_ERROR),
        }
    }
}

fn empty(status: StatusCode) -> Response<Body> {
    let body = Full::default().map_err(|never| match never {}).boxed_unsync();
    let mut response = Response::new(body);
    *response.status_mut() = status;
    response
}
