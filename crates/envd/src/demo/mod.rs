//! The shipped demo: a small web server that shows an environment to whoever has just got one.
//!
//! It serves a welcome page and the workspace's files, read-only. Every URL on its pages is
//! relative, so it works on a host of its own and under a path prefix that a proxy takes off.
//! `/events` is an event stream with a heartbeat: what a real program's forgotten tab keeps open.

mod body;
mod events;
mod files;
mod page;

use std::{convert::Infallible, io, net::Ipv4Addr, path::PathBuf, sync::Arc, time::Duration};

use http::{HeaderValue, Method, Request, Response, StatusCode, header};
use hyper::{body::Incoming, server::conn::http1, service::service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::{net::TcpListener, sync::Semaphore};

use body::Payload;
use files::{Found, Workspace};

/// How many connections are served at once; further ones wait in the listener's backlog.
const CONNECTIONS_MAX: usize = 512;
/// How long a request's head may take.
const HEAD_TIME: Duration = Duration::from_secs(30);
/// The pause after a failed accept.
const ACCEPT_PAUSE: Duration = Duration::from_millis(20);

/// What the demo shows.
#[derive(Debug, Clone)]
pub struct Demo {
    /// Where the files are that it lists.
    pub workspace: PathBuf,
    /// A greeting of the environment's own (`$GREETING`).
    pub greeting: Option<String>,
    /// Where the dashboard is (`$WAKEFUL_DASHBOARD_URL`). Only `http` and `https` URLs are linked.
    pub dashboard_url: Option<String>,
}

/// Everything that a request needs.
#[derive(Debug)]
struct Shared {
    workspace: Workspace,
    greeting: Option<String>,
    dashboard_url: Option<String>,
}

/// Serves the demo on this port of the loopback address, 0 for any. Returns only with an error.
///
/// # Errors
/// When the workspace cannot be opened or the port not be bound.
pub async fn serve(port: u16, demo: Demo) -> io::Result<Infallible> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port)).await?;
    let shared = Arc::new(Shared {
        workspace: Workspace::open(&demo.workspace)?,
        greeting: demo.greeting.filter(|text| !text.trim().is_empty()),
        dashboard_url: demo.dashboard_url.filter(|url| is_web_url(url)),
    });
    let room = Arc::new(Semaphore::new(CONNECTIONS_MAX));
    loop {
        let permit = Arc::clone(&room).acquire_owned().await.map_err(io::Error::other)?;
        let Ok((stream, _)) = listener.accept().await else {
            tokio::time::sleep(ACCEPT_PAUSE).await;
            continue;
        };
        let shared = Arc::clone(&shared);
        tokio::spawn(async move {
            let service = service_fn(move |request| {
                let shared = Arc::clone(&shared);
                async move { Ok::<_, Infallible>(answer(&shared, &request)) }
            });
            let _left = http1::Builder::new()
                .timer(TokioTimer::new())
                .header_read_timeout(HEAD_TIME)
                .serve_connection(TokioIo::new(stream), service)
                .await;
            drop(permit);
        });
    }
}

fn is_web_url(url: &str) -> bool {
    url.starts_with("http://") || url.starts_with("https://")
}

fn answer(shared: &Shared, request: &Request<Incoming>) -> Response<Payload> {
    if !matches!(*request.method(), Method::GET | Method::HEAD) {
        let mut response = plain(StatusCode::METHOD_NOT_ALLOWED, "only GET and HEAD\n");
        response.headers_mut().insert(header::ALLOW, HeaderValue::from_static("GET, HEAD"));
        return response;
    }
    let path = request.uri().path();
    let mut response = match path {
        "/" => welcome(shared),
        "/healthz" => plain(StatusCode::OK, "ok\n"),
        "/events" => events::answer(),
        "/style.css" => asset("text/css; charset=utf-8", page::STYLE),
        "/icon.svg" => asset("image/svg+xml", page::ICON),
        "/live.js" => asset("text/javascript; charset=utf-8", page::SCRIPT),
        _ => match path.strip_prefix("/files/") {
            Some(below) => file(shared, below, request.uri().query() == Some("download")),
            None => not_found(path),
        },
    };
    response
        .headers_mut()
        .insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    response
}

fn welcome(shared: &Shared) -> Response<Payload> {
    let listing = shared.workspace.find(b"").ok().and_then(|found| match found {
        Found::Directory(listing) => Some(listing),
        Found::File(_) => None,
    });
    html(
        StatusCode::OK,
        page::welcome(
            shared.greeting.as_deref(),
            shared.dashboard_url.as_deref(),
            listing.as_ref(),
        ),
    )
}

fn file(shared: &Shared, below: &str, download: bool) -> Response<Payload> {
    let Some(path) = files::decode(below) else { return not_found(below) };
    match shared.workspace.find(&path) {
        Ok(Found::Directory(listing)) if path.is_empty() || below.ends_with('/') => {
            html(StatusCode::OK, page::directory(&path, &listing))
        }
        // Relative links on the page need the slash; so is this one, to stay below any prefix.
        Ok(Found::Directory(_)) => {
            let last = below.rsplit('/').next().unwrap_or(below);
            let mut response = plain(StatusCode::PERMANENT_REDIRECT, "a directory\n");
            if let Ok(location) = HeaderValue::from_str(&format!("./{last}/")) {
                response.headers_mut().insert(header::LOCATION, location);
            }
            response
        }
        Ok(Found::File(_)) if below.ends_with('/') => not_found(below),
        Ok(Found::File(file)) => files::answer(file, &path, download),
        Err(_) => not_found(below),
    }
}

fn not_found(path: &str) -> Response<Payload> {
    html(StatusCode::NOT_FOUND, page::not_found(path.trim_start_matches('/').matches('/').count()))
}

fn html(status: StatusCode, page: maud::Markup) -> Response<Payload> {
    let mut response = Response::new(Payload::text(page.into_string()));
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("text/html; charset=utf-8"));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    headers.insert(
        header::CONTENT_SECURITY_POLICY,
        HeaderValue::from_static("default-src 'self'; base-uri 'none'; form-action 'none'"),
    );
    response
}

fn asset(content_type: &'static str, text: &'static str) -> Response<Payload> {
    let mut response = Response::new(Payload::text(text));
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(content_type));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("max-age=300"));
    response
}

fn plain(status: StatusCode, text: &'static str) -> Response<Payload> {
    let mut response = Response::new(Payload::text(text));
    *response.status_mut() = status;
    response
        .headers_mut()
        .insert(header::CONTENT_TYPE, HeaderValue::from_static("text/plain; charset=utf-8"));
    response
}
