//! Connections that wait for their next request, one pool per thread.
//!
//! The key is the sandbox's uid and the surface: an address that passed to another tenant can
//! never be reached by a connection of this one. Nothing here takes a lock.

use std::{
    cell::RefCell,
    collections::HashMap,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
    time::Duration,
};

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use hyper::{body::Incoming, client::conn::http1};
use hyper_util::rt::TokioIo;
use tokio::time::Instant;
use wakeful_wire::{SandboxUid, SurfaceName};

use crate::stream::{Dialed, Exchange, SurfaceIo};

/// A connection that has been idle for this long is not used again: common programs close theirs
/// after five seconds.
pub(crate) const IDLE_MAX: Duration = Duration::from_secs(4);
/// Idle connections per sandbox and surface, and in all, on one thread. Beyond, the connection
/// that became idle last is closed.
const PER_SURFACE: usize = 512;
const IN_ALL: usize = 4096;

/// The body of a request on its way to a surface.
pub(crate) struct RequestBody {
    inner: Option<Incoming>,
    exchange: Option<Arc<Exchange>>,
}

impl RequestBody {
    /// No body.
    pub(crate) const fn none() -> Self {
        Self { inner: None, exchange: None }
    }

    /// The client's body. Should the client break off, the exchange is reset: a request that was
    /// cut must not look whole.
    pub(crate) fn of(body: Incoming) -> Self {
        if body.is_end_stream() { Self::none() } else { Self { inner: Some(body), exchange: None } }
    }

    /// Whether there is nothing to send, so that the request can be sent twice.
    pub(crate) const fn is_none(&self) -> bool {
        self.inner.is_none()
    }

    fn bind(&mut self, exchange: &Arc<Exchange>) {
        if self.inner.is_some() {
            self.exchange = Some(Arc::clone(exchange));
        }
    }
}

impl std::fmt::Debug for RequestBody {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RequestBody").field("none", &self.is_none()).finish()
    }
}

impl Body for RequestBody {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        let Some(inner) = &mut self.inner else { return Poll::Ready(None) };
        let frame = ready!(Pin::new(inner).poll_frame(cx));
        if let (Some(Err(_)), Some(exchange)) = (&frame, &self.exchange) {
            exchange.abort();
        }
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        self.inner.as_ref().is_none_or(Body::is_end_stream)
    }

    fn size_hint(&self) -> SizeHint {
        self.inner.as_ref().map_or_else(|| SizeHint::with_exact(0), Body::size_hint)
    }
}

/// A connection to a surface that can carry requests, one after the other.
pub(crate) struct Connection {
    sender: http1::SendRequest<RequestBody>,
    exchange: Arc<Exchange>,
}

impl Connection {
    /// Starts HTTP/1.1 on a socket; its driver is a task of this thread.
    pub(crate) async fn start(dialed: Dialed) -> Result<Self, hyper::Error> {
        let exchange = Arc::<Exchange>::default();
        let io = TokioIo::new(SurfaceIo::new(dialed, Arc::clone(&exchange)));
        let (sender, driver) = http1::Builder::new().handshake(io).await?;
        tokio::spawn(async move {
            // Whoever waits for the answer gets the error.
            let _ = driver.with_upgrades().await;
        });
        Ok(Self { sender, exchange })
    }

    /// Sends a request.
    pub(crate) async fn send(
        &mut self,
        mut request: http::Request<RequestBody>,
    ) -> Result<http::Response<Incoming>, http1_error::SendError> {
        self.exchange.begin();
        request.body_mut().bind(&self.exchange);
        self.sender.try_send_request(request).await
    }

    pub(crate) const fn exchange(&self) -> &Arc<Exchange> {
        &self.exchange
    }
}

/// The error of a request that was not answered, perhaps with the request itself.
pub(crate) mod http1_error {
    pub(crate) type SendError =
        hyper::client::conn::TrySendError<http::Request<super::RequestBody>>;
}

impl std::fmt::Debug for Connection {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Connection").field("exchange", &self.exchange).finish_non_exhaustive()
    }
}

struct Idle {
    connection: Connection,
    since: Instant,
}

#[derive(Default)]
struct Pool {
    sandboxes: HashMap<SandboxUid, Vec<(SurfaceName, Vec<Idle>)>>,
    idle: usize,
}

thread_local! {
    static POOL: RefCell<Pool> = RefCell::default();
}

impl Pool {
    fn take(
        &mut self,
        sandbox: SandboxUid,
        surface: &SurfaceName,
        now: Instant,
    ) -> Option<(Connection, Duration)> {
        let (_, idle) =
            self.sandboxes.get_mut(&sandbox)?.iter_mut().find(|(name, _)| name == surface)?;
        // The one that was used last is the one that its peer will close last.
        for index in (0..idle.len()).rev() {
            let candidate = &idle[index];
            let age = now.saturating_duration_since(candidate.since);
            if candidate.connection.sender.is_closed() || age >= IDLE_MAX {
                idle.swap_remove(index);
                self.idle -= 1;
            } else if candidate.connection.sender.is_ready() {
                self.idle -= 1;
                return Some((idle.remove(index).connection, age));
            }
        }
        None
    }

    fn put(&mut self, sandbox: SandboxUid, surface: &SurfaceName, idle: Idle) {
        if self.idle >= IN_ALL || idle.connection.sender.is_closed() {
            return;
        }
        let surfaces = self.sandboxes.entry(sandbox).or_default();
        let list = match surfaces.iter().position(|(name, _)| name == surface) {
            Some(index) => &mut surfaces[index].1,
            None => {
                surfaces.push((surface.clone(), Vec::new()));
                let last = surfaces.len() - 1;
                &mut surfaces[last].1
            }
        };
        if list.len() < PER_SURFACE {
            list.push(idle);
            self.idle += 1;
        }
    }

    fn sweep(&mut self, now: Instant) {
        let mut left = 0;
        self.sandboxes.retain(|_, surfaces| {
            surfaces.retain_mut(|(_, idle)| {
                idle.retain(|idle| {
                    !idle.connection.sender.is_closed()
                        && now.saturating_duration_since(idle.since) < IDLE_MAX
                });
                left += idle.len();
                !idle.is_empty()
            });
            !surfaces.is_empty()
        });
        self.idle = left;
    }
}

/// A connection of this thread to this surface of this sandbox, and how long it was idle.
pub(crate) fn take(
    sandbox: SandboxUid,
    surface: &SurfaceName,
    now: Instant,
) -> Option<(Connection, Duration)> {
    POOL.with_borrow_mut(|pool| pool.take(sandbox, surface, now))
}

/// Keeps a connection for the next request. It need not be ready again yet.
pub(crate) fn put(
    sandbox: SandboxUid,
    surface: &SurfaceName,
    connection: Connection,
    now: Instant,
) {
    POOL.with_borrow_mut(|pool| pool.put(sandbox, surface, Idle { connection, since: now }));
}

/// Closes what has been idle for too long on this thread.
pub(crate) fn sweep(now: Instant) {
    POOL.with_borrow_mut(|pool| pool.sweep(now));
}

/// Closes the idle connections of this thread to a sandbox.
pub(crate) fn forget(sandbox: SandboxUid) {
    POOL.with_borrow_mut(|pool| {
        if let Some(surfaces) = pool.sandboxes.remove(&sandbox) {
            pool.idle -= surfaces.iter().map(|(_, idle)| idle.len()).sum::<usize>();
        }
    });
}

#[cfg(test)]
mod tests {
    use tokio::net::{TcpListener, TcpStream};
    use uuid::Uuid;

    use super::*;

    fn sandbox(n: u128) -> SandboxUid {
        SandboxUid::from_uuid(Uuid::from_u128(n))
    }

    async fn connection() -> (Connection, TcpStream) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let stream = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
        let (peer, _) = listener.accept().await.unwrap();
        let mut connection = Connection::start(Dialed::Tcp(stream)).await.unwrap();
        std::future::poll_fn(|cx| connection.sender.poll_ready(cx)).await.unwrap();
        (connection, peer)
    }

    #[tokio::test]
    async fn a_connection_serves_only_its_own_sandbox_and_surface() {
        let (mut pool, now) = (Pool::default(), Instant::now());
        let (idle, _peer) = connection().await;
        pool.put(sandbox(1), &SurfaceName::app(), Idle { connection: idle, since: now });
        assert!(pool.take(sandbox(2), &SurfaceName::app(), now).is_none());
        assert!(pool.take(sandbox(1), &SurfaceName::agent(), now).is_none());
        assert!(pool.take(sandbox(1), &SurfaceName::app(), now).is_some());
        assert!(pool.take(sandbox(1), &SurfaceName::app(), now).is_none());
        assert_eq!(pool.idle, 0);
    }

    #[tokio::test]
    async fn an_old_or_closed_connection_is_not_used() {
        let (mut pool, now) = (Pool::default(), Instant::now());
        let (old, _peer) = connection().await;
        pool.put(sandbox(1), &SurfaceName::app(), Idle { connection: old, since: now });
        assert!(pool.take(sandbox(1), &SurfaceName::app(), now + IDLE_MAX).is_none());

        let (closed, peer) = connection().await;
        pool.put(sandbox(1), &SurfaceName::app(), Idle { connection: closed, since: now });
        drop(peer);
        loop {
            tokio::task::yield_now().await;
            let surfaces = &pool.sandboxes[&sandbox(1)];
            if surfaces[0].1[0].connection.sender.is_closed() {
                break;
            }
        }
        assert!(pool.take(sandbox(1), &SurfaceName::app(), now).is_none());
        assert_eq!(pool.idle, 0);
    }

    #[tokio::test]
    async fn a_sweep_forgets_what_is_too_old() {
        let (mut pool, now) = (Pool::default(), Instant::now());
        let mut peers = Vec::new();
        for n in 0..3 {
            let (idle, peer) = connection().await;
            peers.push(peer);
            let since = now + Duration::from_secs(n);
            pool.put(sandbox(1), &SurfaceName::app(), Idle { connection: idle, since });
        }
        pool.sweep(now + IDLE_MAX);
        assert_eq!(pool.idle, 2);
        pool.sweep(now + IDLE_MAX * 2);
        assert!(pool.idle == 0 && pool.sandboxes.is_empty());
    }
}
