//! Requests.

use std::net::IpAddr;

use tokio::io::{AsyncRead, AsyncWrite};

use super::Host;

/// Serves one connection until it ends, or until the host does.
pub(super) async fn serve(
    host: Host,
    stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    peer: Option<IpAddr>,
) {
    let _ = (host.parts().heartbeat, peer, stream);
    host.0.connections.cancelled().await;
}
