//! Requests to platforms and hosts, and connections for sockets.

pub mod resolve;
mod send;
pub mod sse;
mod stream;

use std::{sync::Arc, time::Duration};

use reqwest::{Response, Url};

pub use send::Sender;
pub(crate) use send::head_of;
pub use stream::{Stream, connect};

/// How long it may take until a connection stands.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// The most bytes of an answer that is no stream.
pub const ANSWER_MAX: usize = 64 << 20;

/// An HTTP client for a server. It follows no redirect, because an answer that leads elsewhere is
/// none of ours and a token must not follow it, and reaches this machine without a proxy.
///
/// # Errors
/// No client can be built on this machine.
pub fn http_client(server: &Url) -> reqwest::Result<reqwest::Client> {
    // A program's own choice stands; a library that is loaded into another program has none.
    let _chosen_before = rustls::crypto::ring::default_provider().install_default();
    let mut http = reqwest::Client::builder()
        .connect_timeout(CONNECT_TIMEOUT)
        .user_agent(concat!("wakeful/", env!("CARGO_PKG_VERSION")))
        .redirect(reqwest::redirect::Policy::none())
        .dns_resolver(Arc::new(resolve::Loopback));
    if server.host_str().is_some_and(resolve::is_loopback) {
        http = http.no_proxy();
    }
    http.build()
}

/// Why a body was not read.
#[derive(Debug, thiserror::Error)]
pub enum BodyError {
    /// It has more than [`ANSWER_MAX`] bytes.
    #[error("it is too long")]
    TooLong,
    /// It broke off.
    #[error(transparent)]
    Broken(reqwest::Error),
}

/// Reads a whole body, up to [`ANSWER_MAX`] bytes.
///
/// # Errors
/// [`BodyError`].
pub async fn body(mut response: Response) -> Result<Vec<u8>, BodyError> {
    let mut bytes = Vec::new();
    while let Some(chunk) = response.chunk().await.map_err(BodyError::Broken)? {
        if bytes.len() + chunk.len() > ANSWER_MAX {
            return Err(BodyError::TooLong);
        }
        bytes.extend_from_slice(&chunk);
    }
    Ok(bytes)
}
