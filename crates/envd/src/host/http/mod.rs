//! Requests: one connection, HTTP/1.1 with keep-alive and upgrades.
//!
//! A request is [routed](route) by method and path alone, [admitted](admit) by what it shows of who
//! sent it, and answered. Every answer is `no-store`: most of them are private, and clients keep
//! what they read themselves. Cookies are never looked at, and no answer allows another origin to
//! read it (no CORS): a page of another origin can open a socket with a ticket, nothing else.
//!
//! Bounds: a head of 64 fields, 32 KiB and [`HEAD_TIME`] (which is also how long an idle connection
//! stays), a body of [`admit::BODY_MAX`] and [`BODY_TIME`]. What reaches one is answered with a
//! problem where that is still possible, and the connection ends.

mod admit;
mod answer;
mod etag;
mod read;
mod route;
mod sessions;
mod token;
mod upgrade;

use std::{convert::Infallible, net::IpAddr, panic::AssertUnwindSafe, time::Duration};

use axum::{
    body::Body,
    extract::Request,
    response::{IntoResponse as _, Response},
};
use futures::FutureExt as _;
use hyper::{body::Incoming, server::conn::http1, service::service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::io::{AsyncRead, AsyncWrite};
use wakeful_wire::{Code, Problem};

use self::{admit::Asked, answer::Refusal, route::Route};
use super::{CLOSE_TIME, Host};

/// How long a request's head may take, counted from when the connection is free for it.
const HEAD_TIME: Duration = Duration::from_secs(10);
/// How long a request's body may take.
const BODY_TIME: Duration = Duration::from_secs(10);
/// Most fields of a head. More is answered with 431.
const FIELDS_MAX: usize = 64;
/// Most bytes that are buffered of a connection, and thus of a head. More is answered with 431.
const BUFFER_MAX: usize = 32 * 1024;

/// Serves one connection until it ends, or until the host does: a request that is being answered
/// then has [`CLOSE_TIME`] to be.
pub(super) async fn serve(
    host: Host,
    stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    peer: Option<IpAddr>,
) {
    let ended = host.0.connections.clone();
    let service = service_fn(move |request| {
        let host = host.clone();
        async move { Ok::<_, Infallible>(answer_whole(host, peer, request).await) }
    });
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_TIME)
        .max_headers(FIELDS_MAX)
        .max_buf_size(BUFFER_MAX)
        .serve_connection(TokioIo::new(stream), service)
        .with_upgrades();
    let mut connection = std::pin::pin!(connection);
    tokio::select! {
        _left = connection.as_mut() => return,
        () = ended.cancelled() => {}
    }
    connection.as_mut().graceful_shutdown();
    let _in_time = tokio::time::timeout(CLOSE_TIME, connection).await;
}

/// An answer, whatever happens: a panic costs one request, not the connection's other requests nor
/// the process.
async fn answer_whole(host: Host, peer: Option<IpAddr>, request: Request<Incoming>) -> Response {
    let (head, body) = request.into_parts();
    let id = host.parts().descriptor.id;
    let asked = Asked { host, peer, head };
    let answered = AssertUnwindSafe(dispatch(asked, Body::new(body))).catch_unwind().await;
    match answered {
        Ok(Ok(response)) => response,
        Ok(Err(refusal)) => answer::of_host(refusal.into_response(), id),
        Err(_panic) => {
            tracing::error!("a request made the host panic");
            Refusal::from(Problem::new(Code::Internal)).into_response()
        }
    }
}

async fn dispatch(asked: Asked, body: Body) -> Result<Response, Refusal> {
    if asked.host.0.farewell.borrow().is_some() && !upgrade::is_by_browser(&asked) {
        return Err(Refusal::closing());
    }
    match Route::of(&asked.head.method, asked.head.uri.path())? {
        Route::Descriptor => Ok(answer::json(&asked.host.parts().descriptor)),
        Route::Token => Ok(token::exchange(&asked, body).await),
        Route::Ticket => token::ticket(&asked),
        Route::Socket => upgrade::answer(asked).await,
        Route::Shell => read::shell(&asked),
        Route::Counts => read::counts(&asked),
        Route::Settled => read::settled(&asked),
        Route::Archived => read::archived(&asked),
        Route::Search => read::search(&asked).await,
        Route::Thread(thread) => read::thread(&asked, thread).await,
        Route::Page(thread) => read::page(&asked, thread).await,
        Route::Family(thread) => read::family(&asked, thread),
        Route::Sessions => sessions::list(&asked),
        Route::Session(id) => sessions::revoke(&asked, id).await,
        Route::RevokeOthers => sessions::revoke_others(&asked).await,
        Route::Pairing => sessions::pair(&asked, body).await,
    }
}
