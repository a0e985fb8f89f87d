//! A host, and clients with sockets.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use futures::{FutureExt as _, SinkExt as _, StreamExt as _};
use ring::signature::{Ed25519KeyPair, KeyPair as _};
use serde_json::{Value, json};
use tokio::{io::DuplexStream, sync::watch};
use tokio_tungstenite::{
    WebSocketStream, client_async,
    tungstenite::{
        Message,
        client::IntoClientRequest as _,
        protocol::{CloseFrame, frame::coding::CloseCode},
    },
};
use wakeful_envd::{
    credential::{Authority, AuthorityOptions, HttpAddress, PairingOffer, Presented, Sources},
    host::{Address, Host, HostParts, Use},
    thread::{
        Settings, Threads,
        command::{AgentUpdate, Append, Command, Create},
        view::FeedLimits,
    },
};
use wakeful_wire::{
    HostSessionId, Timestamp,
    host::{Capabilities, Descriptor, Platform, Scope, Scopes, TokenRequest},
    rpc::{
        AgentView, CallId, Detail, Hello, HostConfig, Role, SUBPROTOCOL, Seq, ServerFrame,
        TICKET_SUBPROTOCOL, ThreadId, ThreadItem,
    },
};

/// Far longer than anything here takes on a busy machine.
pub(crate) const PATIENCE: Duration = Duration::from_secs(20);
/// Where clients say that they reach the host.
const BASE: &str = "http://127.0.0.1:7878";
/// A socket that takes in about this much before its writer waits.
pub(crate) const NARROW: usize = 4 * 1024;
/// A socket whose writer hardly ever waits.
pub(crate) const WIDE: usize = 1024 * 1024;

/// Counts uses.
#[derive(Debug, Default)]
pub(crate) struct Uses(pub(crate) AtomicU64);

impl Use for Uses {
    fn used(&self) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

/// A host.
pub(crate) struct Place {
    pub(crate) host: Host,
    pub(crate) threads: Threads,
    pub(crate) authority: Authority,
    pub(crate) config: watch::Sender<HostConfig>,
    pub(crate) uses: Arc<Uses>,
    clock: Arc<AtomicU64>,
    proofs: AtomicU64,
    _home: tempfile::TempDir,
}

impl Place {
    /// A host that is silent for a minute at most.
    pub(crate) async fn new() -> Self {
        Self::with(Duration::from_secs(60), FeedLimits::default()).await
    }

    pub(crate) async fn with(heartbeat: Duration, feeds: FeedLimits) -> Self {
        let home = tempfile::tempdir().unwrap();
        let settings = Settings {
            flush_delay: Duration::from_millis(1),
            feeds,
            ..Settings::new(home.path().to_owned())
        };
        let threads = Threads::open(settings).await.unwrap();
        let clock = Arc::new(AtomicU64::new(1_700_000_000_000));
        let time = {
            let clock = Arc::clone(&clock);
            move || Timestamp(clock.load(Ordering::SeqCst))
        };
        let sources = Sources::new(time.clone(), |bytes| getrandom::fill(bytes).unwrap());
        let path = home.path().join(".wakeful").join("sessions.db");
        let authority = Authority::open(AuthorityOptions::new(path, sources)).await.unwrap();
        let config = watch::Sender::new(config(1));
        let uses = Arc::new(Uses::default());
        let descriptor = Descriptor {
            id: uuid::Uuid::from_u128(7).to_string().parse().unwrap(),
            environment: None,
            label: "bench".to_owned(),
            release: "1.2.3".to_owned(),
            protocols: Host::protocols(),
            platform: Platform { os: "linux".to_owned(), arch: "x86_64".to_owned() },
            capabilities: Capabilities::and(&[]),
        };
        let host = Host::new(HostParts {
            threads: threads.clone(),
            authority: authority.clone(),
            descriptor,
            config: config.subscribe(),
            address: Address::Own(None),
            used: Arc::clone(&uses) as Arc<dyn Use>,
            clock: Arc::new(time),
            heartbeat,
        });
        let proofs = AtomicU64::new(0);
        Self { host, threads, authority, config, uses, clock, proofs, _home: home }
    }

    /// Lets time pass for credentials.
    pub(crate) fn advance(&self, by: Duration) {
        let by = u64::try_from(by.as_millis()).unwrap();
        self.clock.fetch_add(by, Ordering::SeqCst);
    }

    fn proof(&self, key: u8, path: &str, token: Option<&str>) -> (HttpAddress, String) {
        let pair = Ed25519KeyPair::from_seed_unchecked(&[key; 32]).unwrap();
        let address = HttpAddress::parse(BASE).unwrap().below(path).unwrap();
        let public = URL_SAFE_NO_PAD.encode(pair.public_key().as_ref());
        let jwk = json!({ "kty": "OKP", "crv": "Ed25519", "x": public });
        let header = json!({ "typ": "dpop+jwt", "alg": "EdDSA", "jwk": jwk });
        let mut claims = json!({
            "jti": format!("proof-{}", self.proofs.fetch_add(1, Ordering::SeqCst)),
            "htm": "POST",
            "htu": address.to_string(),
            "iat": self.clock.load(Ordering::SeqCst) / 1_000,
        });
        if let Some(token) = token {
            let hash = ring::digest::digest(&ring::digest::SHA256, token.as_bytes());
            claims["ath"] = URL_SAFE_NO_PAD.encode(hash.as_ref()).into();
        }
        let part = |value: &Value| URL_SAFE_NO_PAD.encode(value.to_string());
        let signed = format!("{}.{}", part(&header), part(&claims));
        let signature = URL_SAFE_NO_PAD.encode(pair.sign(signed.as_bytes()).as_ref());
        (address, format!("{signed}.{signature}"))
    }

    /// A new session of a client with this key; its id and access token.
    pub(crate) async fn session(&self, key: u8, scopes: Scopes) -> (HostSessionId, String) {
        let offer =
            PairingOffer { subject: "alice".parse().unwrap(), scopes, label: "laptop".to_owned() };
        let code = self.authority.offer_pairing(offer).code.to_string();
        let (address, proof) = self.proof(key, "/oauth/token", None);
        let presented = Presented {
            method: "POST",
            address: &address,
            authorization: None,
            proof: Some(&proof),
        };
        let request = TokenRequest::Pairing { code, label: None };
        let near = Some("127.0.0.1".parse().unwrap());
        let answer = self.authority.token(&request, &presented, near).await.unwrap();
        (answer.session, answer.access_token)
    }

    /// A socket of a session, which has said hello.
    pub(crate) async fn socket(&self, key: u8, token: &str, width: usize) -> (Client, Hello) {
        let (address, proof) = self.proof(key, "/ticket", Some(token));
        let authorization = format!("DPoP {token}");
        let presented = Presented {
            method: "POST",
            address: &address,
            authorization: Some(&authorization),
            proof: Some(&proof),
        };
        let ticket = self.authority.ticket(&presented).unwrap().ticket;
        let (near, far) = tokio::io::duplex(width);
        let host = self.host.clone();
        tokio::spawn(async move { host.serve(far, Some("127.0.0.1".parse().unwrap())).await });
        let mut request = "ws://127.0.0.1:7878/rpc".into_client_request().unwrap();
        let offered = format!("{SUBPROTOCOL}, {TICKET_SUBPROTOCOL}{ticket}");
        request.headers_mut().insert("sec-websocket-protocol", offered.parse().unwrap());
        let (socket, _) = client_async(request, near).await.unwrap();
        let mut client = Client { socket };
        match client.frame().await {
            ServerFrame::Hello(hello) => (client, *hello),
            other => panic!("not hello first: {other:?}"),
        }
    }

    /// A socket of a new client that may do everything.
    pub(crate) async fn client(&self, width: usize) -> Client {
        let (_, token) = self.session(1, Scopes::all()).await;
        self.socket(1, &token, width).await.0
    }

    pub(crate) async fn thread(&self) -> ThreadId {
        let create = Create { agent: "shell".to_owned(), ..Create::default() };
        self.threads.command(Command::Create(create)).await.unwrap().thread.unwrap()
    }

    /// Says something in a thread, so many times.
    pub(crate) async fn say(&self, thread: ThreadId, what: &str, times: usize) -> Seq {
        let text =
            |_| AgentUpdate::Text { role: Role::Agent, message: None, text: what.to_owned() };
        let updates = (0..times).map(text).collect();
        self.threads.append(Append { thread, turn: None, updates }).await.unwrap().seq
    }

    pub(crate) async fn detail(&self, thread: ThreadId) -> Detail {
        let limits = wakeful_envd::thread::log::PageLimits::FIRST;
        self.threads.detail(thread, limits).await.unwrap()
    }
}

pub(crate) fn config(revision: u64) -> HostConfig {
    HostConfig {
        revision,
        agents: vec![AgentView { name: "shell".to_owned(), title: None }],
        default_agent: Some("shell".to_owned()),
    }
}

pub(crate) fn scopes(scopes: &[Scope]) -> Scopes {
    scopes.iter().copied().collect()
}

/// A client's end of a socket.
pub(crate) struct Client {
    pub(crate) socket: WebSocketStream<DuplexStream>,
}

impl Client {
    pub(crate) async fn send(&mut self, frame: Value) {
        self.send_text(&frame.to_string()).await;
    }

    pub(crate) async fn send_text(&mut self, text: &str) {
        self.socket.send(Message::text(text)).await.unwrap();
    }

    pub(crate) async fn request(&mut self, id: u32, method: &str, params: Value) {
        self.send(json!({ "type": "request", "id": id, "method": method, "params": params })).await;
    }

    pub(crate) async fn message(&mut self) -> Message {
        let next = tokio::time::timeout(PATIENCE, self.socket.next()).await;
        next.expect("nothing came").expect("the socket ended").expect("the socket failed")
    }

    /// The next frame of the host.
    pub(crate) async fn frame(&mut self) -> ServerFrame {
        loop {
            match self.message().await {
                Message::Text(text) => return serde_json::from_str(&text).unwrap(),
                Message::Ping(_) | Message::Pong(_) => {}
                other @ (Message::Binary(_) | Message::Close(_) | Message::Frame(_)) => {
                    panic!("not a text frame: {other:?}")
                }
            }
        }
    }

    /// Whether nothing has come.
    pub(crate) fn is_quiet(&mut self) -> bool {
        self.socket.next().now_or_never().is_none()
    }

    /// The result of a call, or the code of its error.
    pub(crate) async fn answer(&mut self, to: u32) -> Result<Value, wakeful_wire::Code> {
        loop {
            match self.frame().await {
                ServerFrame::Response { id: CallId(id), result } if id == to => return Ok(result),
                ServerFrame::Error { id: CallId(id), problem } if id == to => {
                    assert!(problem.detail.is_some(), "{problem:?}");
                    return Err(problem.code);
                }
                _ => {}
            }
        }
    }

    pub(crate) async fn ask(
        &mut self,
        id: u32,
        method: &str,
        params: Value,
    ) -> Result<Value, wakeful_wire::Code> {
        self.request(id, method, params).await;
        self.answer(id).await
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

    /// The next item of the one thread that is followed.
    pub(crate) async fn thread_item(&mut self) -> ThreadItem {
        serde_json::from_value(self.item().await.1).unwrap()
    }

    /// Reads until the host closes; its code and reason, and how many frames came before.
    pub(crate) async fn closed(&mut self) -> (u16, String, usize) {
        let mut frames = 0;
        loop {
            match self.message().await {
                Message::Close(Some(CloseFrame { code, reason })) => {
                    return (CloseCode::into(code), reason.to_string(), frames);
                }
                Message::Close(None) => panic!("closed without a code"),
                Message::Text(_) => frames += 1,
                Message::Binary(_) | Message::Ping(_) | Message::Pong(_) | Message::Frame(_) => {}
            }
        }
    }
}

/// What a client holds of a thread.
#[derive(Debug, Default)]
pub(crate) struct Held {
    pub(crate) detail: Option<Detail>,
    pub(crate) snapshots: usize,
    pub(crate) events: usize,
    pub(crate) synchronized: usize,
}

impl Held {
    pub(crate) fn take(&mut self, item: ThreadItem) {
        match item {
            ThreadItem::Snapshot { detail, .. } => {
                self.detail = Some(*detail);
                self.snapshots += 1;
            }
            ThreadItem::Events { events } => {
                let held = self.detail.as_mut().expect("a snapshot first");
                for event in events {
                    assert!(event.seq > held.thread.seq, "nothing twice");
                    held.apply(&event);
                    self.events += 1;
                }
            }
            ThreadItem::Synchronized { .. } => self.synchronized += 1,
            ThreadItem::Resumed { .. } => {}
            ThreadItem::Deleted { .. } | ThreadItem::Unknown => panic!("unexpected: {item:?}"),
        }
    }

    pub(crate) fn seq(&self) -> Seq {
        self.detail.as_ref().map_or(Seq::ZERO, |detail| detail.thread.seq)
    }

    /// Reads until everything up to `seq` and the marker have come.
    pub(crate) async fn follow(&mut self, client: &mut Client, seq: Seq) {
        while self.seq() < seq || self.synchronized == 0 {
            self.take(client.thread_item().await);
        }
    }
}
