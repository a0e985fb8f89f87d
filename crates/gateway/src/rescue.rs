//! Rescue: the one place that turns a refusal into an answer.
//!
//! A browser that navigates gets a page, everything else `application/problem+json`. A browser's
//! WebSocket is accepted and closed with a code that says why, since a refused upgrade tells a
//! page nothing (1006); a program's gets the plain status.

mod socket;

use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Method, Response, StatusCode, header};
use serde::Serialize;
use wakeful_wire::{
    Code, Hosts, Phase, Problem,
    gate::{EnsureAnswer, GateState},
};

use crate::{intent, pages, refusal::Refusal, route::Redirect};

pub use socket::{SocketAnswer, close_frame, refuse_socket};

/// The header that tells the environment's phase.
pub const PHASE: HeaderName = HeaderName::from_static("wakeful-phase");

/// What is known of a request that is answered by the gateway itself.
#[derive(Debug, Clone, Copy)]
pub struct Asked<'a> {
    /// Its method.
    pub method: &'a Method,
    /// Its headers, before any were rewritten.
    pub headers: &'a HeaderMap,
    /// The public hosts, for links and for who may embed a page.
    pub hosts: &'a Hosts,
    /// Whether a browser that navigates gets a page. Not where nothing else is one: an interface
    /// for programs answers as such to everybody.
    pub pages: bool,
}

impl<'a> Asked<'a> {
    /// A request by its parts.
    #[must_use]
    pub const fn new(method: &'a Method, headers: &'a HeaderMap, hosts: &'a Hosts) -> Self {
        Self { method, headers, hosts, pages: true }
    }

    /// The same, with or without pages.
    #[must_use]
    pub const fn pages(self, pages: bool) -> Self {
        Self { pages, ..self }
    }

    fn wants_page(&self) -> bool {
        self.pages && intent::is_navigation(self.method, self.headers)
    }
}

/// The answer to a refused request that is no WebSocket handshake.
#[must_use]
pub fn refuse(refusal: &Refusal, asked: Asked<'_>) -> Response<Bytes> {
    let mut response = if asked.wants_page() {
        page(refusal.code.status(), pages::refusal(refusal, asked.hosts), asked)
    } else {
        json(refusal.code.status(), Problem::MEDIA_TYPE, &refusal.problem(), asked)
    };
    decorate(response.headers_mut(), refusal);
    response
}

fn decorate(headers: &mut HeaderMap, refusal: &Refusal) {
    if let Some(phase) = refusal.phase {
        headers.insert(PHASE, HeaderValue::from_static(phase.as_str()));
    }
    if let Some(after) = refusal.retry_after {
        headers.insert(header::RETRY_AFTER, HeaderValue::from(whole_seconds(after)));
    }
    if refusal.code.status() == 401 {
        let scheme = HeaderValue::from_static("Bearer realm=\"wakeful\"");
        headers.insert(header::WWW_AUTHENTICATE, scheme);
    }
    if refusal.code == Code::MethodNotAllowed {
        let carried = HeaderValue::from_static("GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS");
        headers.insert(header::ALLOW, carried);
    }
}

/// `Retry-After` knows whole seconds; rounded up, so that nobody comes too early, and never 0.
fn whole_seconds(duration: Duration) -> u64 {
    let seconds = duration.as_secs() + u64::from(duration.subsec_nanos() > 0);
    seconds.max(1)
}

/// The page that a page load gets while its environment wakes. It goes on by itself.
#[must_use]
pub fn waking(waking: &pages::Waking<'_>, asked: Asked<'_>) -> Response<Bytes> {
    let mut response = page(503, pages::waking(waking, asked.hosts), asked);
    let headers = response.headers_mut();
    headers.insert(PHASE, HeaderValue::from_static(waking.phase.as_str()));
    headers.insert(header::RETRY_AFTER, HeaderValue::from(1));
    response
}

/// The page for somebody who asks for a page at an address, where nothing can work under a name.
#[must_use]
pub fn needs_name(asked: Asked<'_>) -> Response<Bytes> {
    page(421, pages::needs_name(asked.hosts), asked)
}

/// A redirect of the gateway's own. It has no body and is never cached: what it leads to may
/// change with a slug or a setting.
#[must_use]
pub fn redirect(to: &Redirect) -> Response<Bytes> {
    let mut response = Response::new(Bytes::new());
    *response.status_mut() = to.status;
    let headers = response.headers_mut();
    match HeaderValue::try_from(&to.location) {
        Ok(location) => {
            headers.insert(header::LOCATION, location);
        }
        Err(_) => *response.status_mut() = StatusCode::BAD_REQUEST,
    }
    seal(response.headers_mut());
    response
}

/// A redirect of somebody who is not signed in, or has no cookie for this host yet. `cookie` is a
/// `Set-Cookie` that goes with it.
#[must_use]
pub fn sign_in(location: &str, cookie: Option<HeaderValue>) -> Response<Bytes> {
    let to = Redirect { status: StatusCode::SEE_OTHER, location: location.to_owned() };
    let mut response = redirect(&to);
    if let Some(cookie) = cookie {
        response.headers_mut().append(header::SET_COOKIE, cookie);
    }
    response
}

/// How far a wake is, as `/.wakeful/status` says it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Status<'a> {
    /// The environment's phase.
    pub phase: Phase,
    /// Whether a request to this surface would be let through now.
    pub ready: bool,
    /// Whether waiting makes sense.
    pub waiting: bool,
    /// What is awaited, or what failed, for people.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<&'a str>,
}

impl<'a> Status<'a> {
    /// What an answer of the gate means to a page that waits.
    #[must_use]
    pub fn of(answer: &'a EnsureAnswer) -> Self {
        let (ready, waiting) = match answer.state {
            GateState::Ready => (true, false),
            GateState::Starting | GateState::SurfaceStarting => (false, true),
            GateState::Asleep
            | GateState::SurfaceFailed
            | GateState::Failed
            | GateState::Disabled
            | GateState::Gone
            | GateState::NotFound => (false, false),
        };
        Self { phase: answer.phase, ready, waiting, reason: answer.reason.as_deref() }
    }
}

/// The answer of `/.wakeful/status`.
#[must_use]
pub fn status(status: &Status<'_>, asked: Asked<'_>) -> Response<Bytes> {
    let mut response = json(200, "application/json", status, asked);
    response.headers_mut().insert(PHASE, HeaderValue::from_static(status.phase.as_str()));
    response
}

fn json(
    status: u16,
    media: &'static str,
    body: &impl Serialize,
    asked: Asked<'_>,
) -> Response<Bytes> {
    let body = serde_json::to_vec(body).unwrap_or_default();
    build(status, HeaderValue::from_static(media), body.into(), asked)
}

fn page(status: u16, page: pages::Page, asked: Asked<'_>) -> Response<Bytes> {
    let media = HeaderValue::from_static("text/html; charset=utf-8");
    let mut response = build(status, media, page.html.into(), asked);
    let headers = response.headers_mut();
    if let Ok(policy) = HeaderValue::try_from(page.policy) {
        headers.insert(header::CONTENT_SECURITY_POLICY, policy);
    }
    headers.insert(header::REFERRER_POLICY, HeaderValue::from_static("no-referrer"));
    response
}

fn build(status: u16, media: HeaderValue, body: Bytes, asked: Asked<'_>) -> Response<Bytes> {
    let length = HeaderValue::from(body.len());
    let body = if *asked.method == Method::HEAD { Bytes::new() } else { body };
    let mut response = Response::new(body);
    *response.status_mut() =
        StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, media);
    headers.insert(header::CONTENT_LENGTH, length);
    seal(headers);
    response
}

fn seal(headers: &mut HeaderMap) {
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
}

#[cfg(test)]
mod tests;
