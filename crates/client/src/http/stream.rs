//! A connection to where a socket is opened, with TLS where its address says so.

use std::{net::IpAddr, sync::Arc, time::Duration};

use reqwest::Url;
use rustls::pki_types::ServerName;
use rustls_platform_verifier::ConfigVerifierExt as _;
use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::TcpStream,
};
use tokio_rustls::TlsConnector;

use super::resolve::is_loopback;

/// How long a connection may take.
const CONNECT_TIME: Duration = Duration::from_secs(10);

/// What a WebSocket can be spoken over.
pub trait Stream: AsyncRead + AsyncWrite + Unpin + Send {}

impl<T: AsyncRead + AsyncWrite + Unpin + Send> Stream for T {}

/// Connects to the host of an address.
///
/// # Errors
/// Why not, for people.
pub async fn connect(url: &Url) -> Result<Box<dyn Stream>, String> {
    let host = url.host_str().ok_or("its address has no host")?.trim_matches(['[', ']']);
    let port = url.port_or_known_default().ok_or("its address has no port")?;
    let connecting = async {
        let stream = if is_loopback(host) && host.parse::<IpAddr>().is_err() {
            // Names under `.localhost` are this machine, whatever its resolver says.
            let address: [IpAddr; 2] =
                [std::net::Ipv4Addr::LOCALHOST.into(), std::net::Ipv6Addr::LOCALHOST.into()];
            TcpStream::connect(&address.map(|ip| (ip, port).into())[..]).await
        } else {
            TcpStream::connect((host, port)).await
        };
        stream.map_err(|error| error.to_string())
    };
    let stream = tokio::time::timeout(CONNECT_TIME, connecting)
        .await
        .map_err(|_| "it takes too long".to_owned())??;
    let _without_delay = stream.set_nodelay(true);
    if url.scheme() != "https" {
        return Ok(Box::new(stream));
    }
    let config = rustls::ClientConfig::with_platform_verifier().map_err(|e| e.to_string())?;
    let name = ServerName::try_from(host.to_owned()).map_err(|error| error.to_string())?;
    let secured = TlsConnector::from(Arc::new(config)).connect(name, stream);
    let secured = tokio::time::timeout(CONNECT_TIME, secured).await;
    let secured = secured.map_err(|_| "it takes too long".to_owned())?;
    Ok(Box::new(secured.map_err(|error| error.to_string())?))
}
