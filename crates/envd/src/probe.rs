//! One try of a readiness probe.

use std::{
    io,
    net::{Ipv4Addr, Ipv6Addr, SocketAddr},
    time::Duration,
};

use base64::{Engine, engine::general_purpose::STANDARD};
use bytes::Bytes;
use http_body_util::Empty;
use hyper_util::rt::TokioIo;
use tokio::{net::TcpStream, task::AbortHandle};
use wakeful_wire::{
    sandbox::BASIC_USER,
    template::{Auth, Ready, Surface},
};

use crate::{processes, surface::ProbeOutcome};

/// What one surface's probe needs.
#[derive(Debug, Clone)]
pub(crate) struct Probe {
    ready: Ready,
    authorization: Option<String>,
}

impl Probe {
    /// The probe that a surface declares. With `auth = "basic"` it sends the pair, since such a
    /// program answers 401 to everything else.
    pub(crate) fn of(surface: &Surface, password: &str) -> Self {
        let authorization = match surface.auth {
            Auth::None => None,
            Auth::Basic => {
                Some(format!("Basic {}", STANDARD.encode(format!("{BASIC_USER}:{password}"))))
            }
        };
        Self { ready: surface.ready.clone(), authorization }
    }

    /// Tries once, for at most `timeout`. A success counts only if the listener on the port is
    /// `leader`'s or another descendant's of `envd`, the process `root`.
    pub(crate) async fn once(
        &self,
        root: i32,
        leader: i32,
        port: u16,
        timeout: Duration,
    ) -> ProbeOutcome {
        let tried = tokio::time::timeout(timeout, async {
            let stream = connect(port).await.map_err(|error| {
                if error.kind() == io::ErrorKind::ConnectionRefused {
                    "its port takes no connections yet".to_owned()
                } else {
                    format!("its port cannot be reached: {error}")
                }
            })?;
            match &self.ready {
                Ready::Tcp(_) => Ok(()),
                Ready::Http(ready) => self.get(stream, port, &ready.http, &ready.status).await,
            }
        })
        .await;
        match tried {
            Err(_) => ProbeOutcome::Silent,
            Ok(Err(reason)) => ProbeOutcome::Not { reason },
            Ok(Ok(())) => match processes::owns_listener(root, leader, port) {
                Ok(false) => ProbeOutcome::Not {
                    reason: format!("port {port} is served by a program that is not its own"),
                },
                // Where the tables cannot be read, the claim on the port must do.
                Ok(true) | Err(_) => ProbeOutcome::Answers,
            },
        }
    }

    async fn get(
        &self,
        stream: TcpStream,
        port: u16,
        path: &str,
        statuses: &[u16],
    ) -> Result<(), String> {
        let broken = |error: hyper::Error| format!("{path} is not answered properly: {error}");
        let (mut sender, connection) =
            hyper::client::conn::http1::handshake(TokioIo::new(stream)).await.map_err(broken)?;
        let _driving = AbortOnDrop(tokio::spawn(connection).abort_handle());
        let mut request = http::Request::get(path)
            .header(http::header::HOST, format!("127.0.0.1:{port}"))
            .header(http::header::USER_AGENT, "wakeful-envd")
            .header(http::header::CONNECTION, "close");
        if let Some(authorization) = &self.authorization {
            request = request.header(http::header::AUTHORIZATION, authorization);
        }
        let request = request
            .body(Empty::<Bytes>::new())
            .map_err(|_| format!("`{path}` is not a path that can be asked for"))?;
        let status = sender.send_request(request).await.map_err(broken)?.status().as_u16();
        let fits = if statuses.is_empty() { status < 500 } else { statuses.contains(&status) };
        if fits { Ok(()) } else { Err(format!("{path} answers {status}")) }
    }
}

struct AbortOnDrop(AbortHandle);

impl Drop for AbortOnDrop {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// Connects to a loopback port, by IPv4 and, where that is refused, by IPv6.
pub(crate) async fn connect(port: u16) -> io::Result<TcpStream> {
    match TcpStream::connect(SocketAddr::from((Ipv4Addr::LOCALHOST, port))).await {
        Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => {
            // The first refusal is what people can understand; a machine may have no IPv6.
            TcpStream::connect(SocketAddr::from((Ipv6Addr::LOCALHOST, port)))
                .await
                .map_err(|_| error)
        }
        other => other,
    }
}
