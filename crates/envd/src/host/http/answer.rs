//! Answers, and refusals: problems (RFC 9457) with what a client needs to act on them.

use axum::{
    body::Body,
    http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header},
    response::{IntoResponse, Response},
};
use serde::Serialize;
use serde_json::Value;
use wakeful_wire::{
    Code, HostId, Problem,
    host::{self, Denial, Remedy},
};

use crate::credential::{CredentialError, challenge};

/// How long a client waits whose remedy is to wait, in seconds: as long as proofs are remembered.
const WAIT_SECONDS: u32 = 60;
/// How long a client waits for a host that is being put to sleep, in seconds.
const CLOSING_SECONDS: u32 = 1;

const HOST_HEADER: HeaderName = HeaderName::from_static(host::HOST_HEADER);

const NO_STORE: HeaderValue = HeaderValue::from_static("no-store");

/// Says that a refusal is the host's own, and not of a gateway on the way: a client deletes what it
/// keeps of a thread only where the host itself says that there is none.
pub(super) fn of_host(mut response: Response, id: HostId) -> Response {
    if let Ok(id) = HeaderValue::from_str(&id.to_string()) {
        response.headers_mut().insert(HOST_HEADER, id);
    }
    response
}

/// Why a request is not answered with what it asked for.
#[derive(Debug)]
pub(super) struct Refusal {
    problem: Problem,
    reason: Option<Denial>,
    allow: Option<&'static str>,
    retry_after: Option<u32>,
    closes: bool,
}

impl From<Problem> for Refusal {
    fn from(problem: Problem) -> Self {
        Self { problem, reason: None, allow: None, retry_after: None, closes: false }
    }
}

impl From<Denial> for Refusal {
    fn from(denial: Denial) -> Self {
        let problem = Problem::new(denial.code()).detail(denial.sentence());
        Self { reason: Some(denial), retry_after: retry_after(denial), ..Self::from(problem) }
    }
}

impl From<CredentialError> for Refusal {
    fn from(error: CredentialError) -> Self {
        error.denial().map_or_else(
            || {
                tracing::warn!(
                    error = &error as &dyn std::error::Error,
                    "sessions cannot be stored"
                );
                Self::from(error.problem())
            },
            Self::from,
        )
    }
}

impl Refusal {
    /// The path has no such method.
    pub(super) fn method(allow: &'static str) -> Self {
        let problem = Problem::new(Code::MethodNotAllowed)
            .detail(format!("This path takes {allow} and nothing else."));
        Self { allow: Some(allow), ..Self::from(problem) }
    }

    /// The host is going: nothing happened.
    pub(super) fn closing() -> Self {
        let problem = Problem::new(Code::Asleep)
            .detail("The host is being put to sleep or taken down. Nothing happened; try again.");
        Self { retry_after: Some(CLOSING_SECONDS), closes: true, ..Self::from(problem) }
    }

    /// As many sockets are open as the host holds.
    pub(super) fn full() -> Self {
        let problem = Problem::new(Code::Overloaded)
            .detail("This host has as many sockets open as it can. Try again later.");
        Self { retry_after: Some(WAIT_SECONDS), ..Self::from(problem) }
    }

    /// The connection ends with it: what is left of the request is not read.
    pub(super) fn closing_connection(problem: Problem) -> Self {
        Self { closes: true, ..Self::from(problem) }
    }

    /// The problem alone.
    pub(super) const fn problem(&self) -> &Problem {
        &self.problem
    }

    /// Whether the connection ends with it.
    pub(super) const fn ends_connection(&self) -> bool {
        self.closes
    }

    #[cfg(test)]
    pub(super) const fn status(&self) -> u16 {
        self.problem.status
    }
}

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        let mut body = serde_json::to_value(&self.problem).unwrap_or_default();
        if let (Value::Object(fields), Some(denial)) = (&mut body, self.reason) {
            fields.insert("reason".to_owned(), denial.as_str().into());
        }
        let mut response = with_body(self.problem.status, Problem::MEDIA_TYPE, &body);
        let headers = response.headers_mut();
        if let Some(denial) = self.reason {
            challenged(headers, denial, self.problem.status);
        }
        if let Some(allow) = self.allow {
            headers.insert(header::ALLOW, HeaderValue::from_static(allow));
        }
        if let Some(seconds) = self.retry_after {
            headers.insert(header::RETRY_AFTER, seconds.into());
        }
        if self.closes {
            headers.insert(header::CONNECTION, HeaderValue::from_static("close"));
        }
        response
    }
}

/// How long a denial's remedy has a client wait, in seconds.
pub(super) fn retry_after(denial: Denial) -> Option<u32> {
    (denial.remedy() == Remedy::Wait).then_some(WAIT_SECONDS)
}

/// Says what to bring, where that is the remedy.
pub(super) fn challenged(headers: &mut HeaderMap, denial: Denial, status: u16) {
    if matches!(status, 401 | 403)
        && let Ok(value) = HeaderValue::from_str(&challenge(denial))
    {
        headers.insert(header::WWW_AUTHENTICATE, value);
    }
}

/// What was asked for.
pub(super) fn json(body: &impl Serialize) -> Response {
    with_body(200, "application/json", body)
}

/// Done; there is nothing to say.
pub(super) fn done() -> Response {
    empty(StatusCode::NO_CONTENT)
}

/// An answer without a body.
pub(super) fn empty(status: StatusCode) -> Response {
    let mut response = Response::new(Body::empty());
    *response.status_mut() = status;
    response.headers_mut().insert(header::CACHE_CONTROL, NO_STORE);
    response
}

/// An answer with a body of JSON.
pub(super) fn with_body(status: u16, media: &'static str, body: &impl Serialize) -> Response {
    let Ok(bytes) = serde_json::to_vec(body) else {
        tracing::error!("an answer is not JSON");
        return empty(StatusCode::INTERNAL_SERVER_ERROR);
    };
    let mut response = Response::new(Body::from(bytes));
    *response.status_mut() =
        StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(media));
    headers.insert(header::CACHE_CONTROL, NO_STORE);
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    response
}
