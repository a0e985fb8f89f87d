//! What the tests of the gateway stand on: a scripted upstream, a control plane in memory, and the
//! real gateway in between on ports of its own.

pub(crate) mod client;
pub(crate) mod control;
pub(crate) mod envd;
pub(crate) mod raw;

use std::{net::SocketAddr, sync::Arc, time::Duration};

use async_trait::async_trait;
use futures::StreamExt as _;
use http::{Request, Response};
use http_body_util::{BodyExt, StreamBody};
use hyper::body::Incoming;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use wakeful_gateway::{
    Gateway, GatewayConfig, Threads,
    control::{Body, MainHost},
};
use wakeful_wire::{EnvId, Hosts};

use control::Control;

/// Within this everything that is awaited has happened, or it never will.
pub(crate) const SOON: Duration = Duration::from_secs(20);

/// Awaits something that must happen.
pub(crate) async fn soon<F: Future>(what: F) -> F::Output {
    tokio::time::timeout(SOON, what).await.expect("it happens soon")
}

/// Waits until a condition holds.
pub(crate) async fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let start = tokio::time::Instant::now();
    while !holds() {
        assert!(start.elapsed() < SOON, "never: {what}");
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
}

/// The main host: says what it was asked for, and at `/api/events` streams without an end.
pub(crate) struct Main;

#[async_trait]
impl MainHost for Main {
    async fn serve(&self, request: Request<Incoming>) -> Response<Body> {
        if request.uri().path() == "/api/events" {
            let event = Ok(http_body::Frame::data(bytes::Bytes::from_static(b"data: one\n\n")));
            let events = futures::stream::iter([event]).chain(futures::stream::pending());
            let mut response = Response::new(StreamBody::new(events).boxed_unsync());
            let kind = http::HeaderValue::from_static("text/event-stream");
            response.headers_mut().insert(http::header::CONTENT_TYPE, kind);
            return response;
        }
        let peer = request.extensions().get::<SocketAddr>().is_some();
        let text = format!("main {} {} peer={peer}", request.method(), request.uri());
        let body = http_body_util::Full::new(text.into());
        Response::new(BodyExt::boxed_unsync(body.map_err(|never| match never {})))
    }
}

/// A gateway that serves.
pub(crate) struct Served {
    pub(crate) address: SocketAddr,
    pub(crate) hosts: Hosts,
    pub(crate) control: Arc<Control>,
    pub(crate) registry: prometheus_client::registry::Registry,
    shutdown: CancellationToken,
    running: Option<JoinHandle<std::io::Result<()>>>,
}

impl Served {
    /// Serves on one core.
    pub(crate) fn start(control: Arc<Control>) -> Self {
        Self::with(control, |_| {})
    }

    pub(crate) fn with(control: Arc<Control>, change: impl FnOnce(&mut GatewayConfig)) -> Self {
        let listeners = wakeful_gateway::listen(&["127.0.0.1:0".parse().unwrap()]).unwrap();
        let address = listeners[0].local_addr().unwrap();
        let hosts = Hosts { port: Some(address.port()), ..Hosts::default() };
        let mut config = GatewayConfig {
            hosts: Arc::new(hosts.clone()),
            threads: Threads::PerCore(1),
            ..GatewayConfig::default()
        };
        change(&mut config);
        let shutdown = CancellationToken::new();
        let gateway = Gateway::new(config, Arc::clone(&control) as Arc<_>, Arc::new(Main));
        let mut registry = prometheus_client::registry::Registry::default();
        gateway.register_metrics(&mut registry);
        let running = tokio::spawn(gateway.run(listeners, shutdown.clone()));
        Self { address, hosts, control, registry, shutdown, running: Some(running) }
    }

    /// The app's host of an environment, with the port.
    pub(crate) fn app(&self, env: EnvId) -> String {
        format!("{env}-dev.apps.wakeful.localhost:{}", self.address.port())
    }

    /// The host of another surface.
    pub(crate) fn on(&self, env: EnvId, surface: &str) -> String {
        format!("{env}-{surface}.on.wakeful.localhost:{}", self.address.port())
    }

    /// The main host.
    pub(crate) fn main(&self) -> String {
        format!("wakeful.localhost:{}", self.address.port())
    }

    /// A metric's value.
    pub(crate) fn metric(&self, line: &str) -> u64 {
        let mut text = String::new();
        prometheus_client::encoding::text::encode(&mut text, &self.registry).unwrap();
        let value = text.lines().find_map(|have| have.strip_prefix(line)?.strip_prefix(' '));
        value.unwrap_or_else(|| panic!("{line} is not in:\n{text}")).parse().unwrap()
    }

    pub(crate) fn shut_down(&self) {
        self.shutdown.cancel();
    }

    /// Shuts down and waits for the end.
    pub(crate) async fn stop(mut self) {
        self.shutdown.cancel();
        soon(self.running.take().unwrap()).await.unwrap().unwrap();
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        self.shutdown.cancel();
    }
}
