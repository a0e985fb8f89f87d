//! Forward: one request to one surface, and its answer's head back.
//!
//! # When a request is sent twice
//!
//! A kept connection may have been closed by its peer while it was idle. A request that met such a
//! connection is sent again, on a new one, only if not one byte of it had been written, or if its
//! method is idempotent, it has no body, and nothing of an answer had come
//! (RFC 9110 §9.2.2, RFC 9112 §9.3.1; `cases.md`, C08). Everything else that fails is a failure.

use std::time::Duration;

use http::{Method, Request, Response};
use hyper::body::Incoming;
use tokio::time::Instant;
use wakeful_wire::{
    SandboxUid, SurfaceName,
    gate::{FailureKind, Upstream},
};

use crate::{
    core::Core,
    dial::{DialError, dial},
    pool::{self, Connection, RequestBody},
};

/// A connection that carried a request a moment ago is taken for alive; a copy of the request's
/// head, to send it again, is made only for one that was idle for longer.
const FRESH: Duration = Duration::from_millis(2);

/// Which surface of which sandbox, and how to reach it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Way<'a> {
    pub(crate) sandbox: SandboxUid,
    pub(crate) surface: &'a SurfaceName,
    pub(crate) upstream: &'a Upstream,
}

/// A connection to send on.
#[derive(Debug)]
pub(crate) struct Ready {
    connection: Connection,
    /// How long it was idle, if it was kept.
    idle: Option<Duration>,
}

/// Takes a kept connection, or makes one.
///
/// # Errors
/// There is none to be had; not one byte of the request has left.
pub(crate) async fn connect(core: &Core, way: Way<'_>) -> Result<Ready, DialError> {
    if let Some((connection, idle)) = pool::take(way.sandbox, way.surface, Instant::now()) {
        return Ok(Ready { connection, idle: Some(idle) });
    }
    Box::pin(connect_anew(core, way)).await
}

/// Makes a connection.
///
/// # Errors
/// As [`connect`].
pub(crate) async fn connect_anew(core: &Core, way: Way<'_>) -> Result<Ready, DialError> {
    let dialed = dial(way.upstream, way.surface).await?;
    core.counters().dial();
    let connection = Connection::start(dialed)
        .await
        .map_err(|error| DialError::Io(std::io::Error::other(error)))?;
    Ok(Ready { connection, idle: None })
}

/// Why there is no answer to a request that was sent.
#[derive(Debug)]
pub(crate) enum SendError {
    /// The surface's doing.
    Failed(FailureKind),
    /// The client broke off in the middle of its request.
    ClientLeft,
}

/// What an exchange that is given up before its answer leaves behind: a reset.
struct Unanswered(Option<Connection>);

impl Unanswered {
    fn connection(&mut self) -> Option<&mut Connection> {
        self.0.as_mut()
    }
}

impl Drop for Unanswered {
    fn drop(&mut self) {
        if let Some(connection) = &self.0 {
            connection.exchange().abort();
        }
    }
}

/// Sends a request whose headers are the program's already, and waits for an answer's head. There
/// is no limit to that wait: an agent may think for minutes before its first byte.
///
/// # Errors
/// See [`SendError`].
pub(crate) async fn send(
    core: &Core,
    way: Way<'_>,
    ready: Ready,
    mut request: Request<RequestBody>,
) -> Result<(Response<Incoming>, Connection), SendError> {
    let mut ready = ready;
    loop {
        let idle = ready.idle;
        let idempotent = is_idempotent(request.method());
        let again =
            idle.filter(|idle| *idle > FRESH && request.body().is_none()).map(|_| copy(&request));
        let mut sent = Unanswered(Some(ready.connection));
        let Some(connection) = sent.connection() else {
            return Err(SendError::Failed(FailureKind::Connect));
        };
        let mut error = match connection.send(request).await {
            Ok(response) => match sent.0.take() {
                Some(connection) => return Ok((response, connection)),
                None => return Err(SendError::Failed(FailureKind::BeforeHead)),
            },
            Err(error) => error,
        };
        let untouched = error.take_message();
        let received = connection.exchange().has_received();
        let may_again = !received && (idempotent || !connection.exchange().has_sent());
        let error = error.into_error();
        request = match (untouched, again) {
            (Some(untouched), _) if idle.is_some() => untouched,
            (None, Some(again)) if may_again => again,
            _ => return Err(classify(&error, received)),
        };
        core.counters().replay();
        ready = Box::pin(connect_anew(core, way))
            .await
            .map_err(|_| SendError::Failed(FailureKind::Connect))?;
    }
}

fn classify(error: &hyper::Error, received: bool) -> SendError {
    if error.is_user() {
        // Of all that a request is made of, only its body can fail, and that is the client's.
        return SendError::ClientLeft;
    }
    if error.is_parse() && received {
        return SendError::Failed(FailureKind::Malformed);
    }
    SendError::Failed(FailureKind::BeforeHead)
}

/// Whether doing it twice is the same as doing it once (RFC 9110 §9.2.2).
fn is_idempotent(method: &Method) -> bool {
    matches!(*method, Method::GET | Method::HEAD | Method::OPTIONS | Method::PUT | Method::DELETE)
}

fn copy(request: &Request<RequestBody>) -> Request<RequestBody> {
    let mut copy = Request::new(RequestBody::none());
    *copy.method_mut() = request.method().clone();
    *copy.uri_mut() = request.uri().clone();
    *copy.headers_mut() = request.headers().clone();
    copy
}
