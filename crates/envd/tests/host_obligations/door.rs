//! A host's door on a real port, clients with a key that enter again, and their sockets.

use std::time::Duration;

use futures::{SinkExt as _, StreamExt as _};
use serde_json::{Value, json};
use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::{TcpListener, TcpStream},
};
use tokio_tungstenite::{
    WebSocketStream, client_async,
    tungstenite::{Message, client::IntoClientRequest as _},
};
use wakeful_envd::credential::PairingOffer;
use wakeful_wire::{
    Code, UserName,
    host::TokenResponse,
    rpc::{CallId, Hello, SUBPROTOCOL, ServerFrame, TICKET_SUBPROTOCOL},
};

use crate::{
    client::{Answer, ClientKey, PATIENCE},
    fixture::{Member, World},
};

/// How long a session that a grant opened lasts.
pub(crate) const LIFE: Duration = Duration::from_secs(3_600);

/// What the token endpoint says to a grant that a client with this key shows.
pub(crate) async fn show(world: &World, seed: u8, grant: &str) -> Answer {
    let body = json!({ "grant_type": "urn:wakeful:oauth:grant", "grant": grant });
    exchange(world, seed, &body).await
}

async fn exchange(world: &World, seed: u8, body: &Value) -> Answer {
    let url = format!("{}/oauth/token", world.base);
    let proof = ClientKey::new(seed).proof("POST", &url, None, world.clock.now());
    world.send(&world.asking("POST", "/oauth/token").header("dpop", proof).json(body)).await
}

fn member(seed: u8, token: TokenResponse) -> Member {
    Member { key: ClientKey::new(seed), token: token.access_token, session: token.session }
}

/// Alice's client with this key enters by a new grant, for an hour. A second time it is a renewal.
pub(crate) async fn enter(world: &World, seed: u8, scopes: &str) -> Member {
    let answer = show(world, seed, &world.grant(scopes)).await;
    member(seed, answer.read())
}

/// Somebody's client with this key is paired, for thirty days.
pub(crate) async fn pair(world: &World, seed: u8, subject: &str, scopes: &str) -> Member {
    let offered = world.authority.offer_pairing(PairingOffer {
        subject: UserName::new(subject).unwrap(),
        scopes: scopes.parse().unwrap(),
        label: "paired".to_owned(),
    });
    let code = offered.code.to_string();
    let body = json!({ "grant_type": "urn:wakeful:oauth:pairing", "code": code });
    member(seed, exchange(world, seed, &body).await.read())
}

/// A socket over a real connection on a port.
pub(crate) async fn socket(world: &World, member: &Member) -> (Socket<TcpStream>, Hello) {
    let ticket = world.ticket(member).await;
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let stream = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
    let (far, peer) = listener.accept().await.unwrap();
    let host = world.host.clone();
    tokio::spawn(async move { host.serve(far, Some(peer.ip())).await });
    Socket::open(stream, &ticket).await
}

/// A socket that takes in about so many bytes before its writer waits.
pub(crate) async fn narrow_socket(
    world: &World,
    member: &Member,
    bytes: usize,
) -> Socket<tokio::io::DuplexStream> {
    let ticket = world.ticket(member).await;
    let (near, far) = tokio::io::duplex(bytes);
    let host = world.host.clone();
    let peer = Some("127.0.0.1".parse().unwrap());
    tokio::spawn(async move { host.serve(far, peer).await });
    Socket::open(near, &ticket).await.0
}

/// A client's end of a socket.
pub(crate) struct Socket<S>(WebSocketStream<S>);

impl<S: AsyncRead + AsyncWrite + Unpin> Socket<S> {
    async fn open(stream: S, ticket: &str) -> (Self, Hello) {
        let mut request = "ws://wakeful.localhost/rpc".into_client_request().unwrap();
        let offered = format!("{SUBPROTOCOL}, {TICKET_SUBPROTOCOL}{ticket}");
        request.headers_mut().insert("sec-websocket-protocol", offered.parse().unwrap());
        let opening = tokio::time::timeout(PATIENCE, client_async(request, stream));
        let mut socket = Self(opening.await.expect("in time").unwrap().0);
        match socket.frame().await {
            ServerFrame::Hello(hello) => (socket, *hello),
            other => panic!("not hello first: {other:?}"),
        }
    }

    async fn message(&mut self) -> Message {
        let next = tokio::time::timeout(PATIENCE, self.0.next()).await;
        next.expect("nothing came").expect("the socket ended").expect("the socket failed")
    }

    pub(crate) async fn frame(&mut self) -> ServerFrame {
        loop {
            match self.message().await {
                Message::Text(text) => return serde_json::from_str(&text).unwrap(),
                Message::Ping(_) | Message::Pong(_) => {}
                other => panic!("not a text frame: {other:?}"),
            }
        }
    }

    pub(crate) async fn send(&mut self, frame: Value) {
        self.0.send(Message::text(frame.to_string())).await.unwrap();
    }

    pub(crate) async fn request(&mut self, id: u32, method: &str, params: Value) {
        self.send(json!({ "type": "request", "id": id, "method": method, "params": params })).await;
    }

    /// The result of a call, or the code of its error. Items that come before are skipped.
    pub(crate) async fn ask(
        &mut self,
        id: u32,
        method: &str,
        params: Value,
    ) -> Result<Value, Code> {
        self.request(id, method, params).await;
        loop {
            match self.frame().await {
                ServerFrame::Response { id: CallId(of), result } if of == id => return Ok(result),
                ServerFrame::Error { id: CallId(of), problem } if of == id => {
                    return Err(problem.code);
                }
                _ => {}
            }
        }
    }

    /// The next item of any subscription.
    pub(crate) async fn item(&mut self) -> (u32, Value) {
        loop {
            match self.frame().await {
                ServerFrame::Item { id, item } => return (id.0, item),
                ServerFrame::Error { problem, .. } => panic!("{problem:?}"),
                _ => {}
            }
        }
    }

    /// Whether the host still answers on it.
    pub(crate) async fn answers(&mut self) {
        self.send(json!({ "type": "probe", "id": 77 })).await;
        while !matches!(self.frame().await, ServerFrame::Alive { id: CallId(77), .. }) {}
    }

    /// What it is closed with, whatever comes before.
    pub(crate) async fn closed(&mut self) -> (u16, String) {
        loop {
            if let Message::Close(frame) = self.message().await {
                let frame = frame.expect("a code");
                return (u16::from(frame.code), frame.reason.as_str().to_owned());
            }
        }
    }
}
