//! Requests that a shell sends for the link, and what their answers mean.

use std::{fmt, time::Duration};

use serde_json::Value;

use crate::authorization::Access;

pub use crate::authorization::{HttpAnswer, Reply, Side};

/// How a request proves who sends it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Proof {
    /// Not at all: what anybody may read.
    None,
    /// By a proof of the client's key alone, made for an address below this one.
    Key {
        /// The public address of the host, without a slash at its end.
        address: String,
    },
    /// By an access token and a proof that names it.
    Access(Access),
}

/// A request's method.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Method {
    /// `GET`.
    Get,
    /// `POST`.
    Post,
}

impl Method {
    /// As it stands in a request and in a proof.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Get => "GET",
            Self::Post => "POST",
        }
    }
}

/// A request. The shell sends it once, makes the proof, follows no redirect, and answers within
/// `limit`.
#[derive(Clone, PartialEq)]
pub struct Request {
    /// The method.
    pub method: Method,
    /// Path and query below the address that it is sent to. Holds no secret.
    pub path: String,
    /// How it proves who sends it.
    pub proof: Proof,
    /// Whether it may wake a sleeping environment.
    pub wake: bool,
    /// What the asker holds already: the answer is 304 while that is right.
    pub etag: Option<String>,
    /// JSON to be sent. May hold secrets.
    pub body: Option<Value>,
    /// How long the answer may take, to its last byte.
    pub limit: Duration,
}

impl fmt::Debug for Request {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Request")
            .field("method", &self.method)
            .field("path", &self.path)
            .field("wake", &self.wake)
            .finish_non_exhaustive()
    }
}

/// How long an ordinary read may take. A list of ten thousand threads over a slow line is meant.
pub const READ_LIMIT: Duration = Duration::from_secs(60);

impl Request {
    /// A read that wakes nothing.
    #[must_use]
    pub fn get(path: impl Into<String>, proof: Proof) -> Self {
        Self {
            method: Method::Get,
            path: path.into(),
            proof,
            wake: false,
            etag: None,
            body: None,
            limit: READ_LIMIT,
        }
    }

    /// A request with a body.
    #[must_use]
    pub fn post(path: impl Into<String>, proof: Proof, body: Value) -> Self {
        Self { method: Method::Post, body: Some(body), ..Self::get(path, proof) }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn nothing_secret_is_printed() {
        let secret = "s3cr3t";
        let body = json!({ "refresh_token": secret });
        let request = Request::post("/oauth/token", Proof::None, body);
        assert!(!format!("{request:?}").contains(secret));
    }
}
