//! A client of a host, as little of one as these tests need.

use std::{
    io::{Read, Write},
    sync::atomic::{AtomicU64, Ordering},
    time::{SystemTime, UNIX_EPOCH},
};

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use ring::{
    digest::{SHA256, digest},
    rand::SystemRandom,
    signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, KeyPair as _},
};
use serde_json::{Value, json};
use tokio_tungstenite::tungstenite::{
    Message, WebSocket,
    client::{IntoClientRequest as _, client},
    protocol::CloseFrame,
};
use wakeful_wire::{
    host::PUBLIC_ADDRESS_HEADER,
    rpc::{SUBPROTOCOL, TICKET_SUBPROTOCOL},
};

/// A connection of whatever kind.
pub(crate) trait Stream: Read + Write {}
impl<T: Read + Write> Stream for T {}

/// A client with a key of its own.
pub(crate) struct Client {
    pair: EcdsaKeyPair,
    connect: Box<dyn Fn() -> Box<dyn Stream>>,
    /// The public address of the host.
    base: String,
    /// Whether a gateway stands between, which states the address.
    is_stated: bool,
    proofs: AtomicU64,
}

impl Client {
    pub(crate) fn new(
        base: String,
        is_stated: bool,
        connect: impl Fn() -> Box<dyn Stream> + 'static,
    ) -> Self {
        let (random, algorithm) = (SystemRandom::new(), &ECDSA_P256_SHA256_FIXED_SIGNING);
        let document = EcdsaKeyPair::generate_pkcs8(algorithm, &random).unwrap();
        let pair = EcdsaKeyPair::from_pkcs8(algorithm, document.as_ref(), &random).unwrap();
        Self { pair, connect: Box::new(connect), base, is_stated, proofs: AtomicU64::new(0) }
    }

    /// The value of the `Host` header.
    fn authority(&self) -> &str {
        self.base.trim_start_matches("http://").split('/').next().unwrap()
    }

    /// A proof for one request.
    fn proof(&self, method: &str, path: &str, token: Option<&str>) -> String {
        let b64 = |bytes: &[u8]| URL_SAFE_NO_PAD.encode(bytes);
        let (x, y) = self.pair.public_key().as_ref()[1..].split_at(32);
        let jwk = json!({ "kty": "EC", "crv": "P-256", "x": b64(x), "y": b64(y) });
        let header = json!({ "typ": "dpop+jwt", "alg": "ES256", "jwk": jwk });
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs();
        let number = self.proofs.fetch_add(1, Ordering::Relaxed);
        let mut claims = json!({
            "jti": format!("proof-{number}-{now}"),
            "htm": method,
            "htu": format!("{}{path}", self.base),
            "iat": now,
        });
        if let Some(token) = token {
            claims["ath"] = b64(digest(&SHA256, token.as_bytes()).as_ref()).into();
        }
        let signed = [header, claims].map(|part| b64(part.to_string().as_bytes())).join(".");
        let signature = self.pair.sign(&SystemRandom::new(), signed.as_bytes()).unwrap();
        format!("{signed}.{}", b64(signature.as_ref()))
    }

    fn request(&self, method: &str, path: &str, headers: &str, body: &str) -> (u16, Value) {
        let mut stream = (self.connect)();
        let stated = if self.is_stated {
            format!("{PUBLIC_ADDRESS_HEADER}: {}\r\n", self.base)
        } else {
            String::new()
        };
        write!(
            stream,
            "{method} {path} HTTP/1.1\r\nhost: {}\r\nconnection: close\r\n{stated}{headers}\
             content-length: {}\r\n\r\n{body}",
            self.authority(),
            body.len(),
        )
        .unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        let status = answer.split(' ').nth(1).and_then(|status| status.parse().ok());
        let (_, body) = answer.split_once("\r\n\r\n").unwrap_or_else(|| panic!("{answer}"));
        (
            status.unwrap_or_else(|| panic!("{answer}")),
            serde_json::from_str(body).unwrap_or_default(),
        )
    }

    pub(crate) fn get(&self, path: &str) -> (u16, Value) {
        self.request("GET", path, "", "")
    }

    /// Asks the token endpoint.
    pub(crate) fn token(&self, request: &Value) -> (u16, Value) {
        let headers = format!(
            "content-type: application/json\r\ndpop: {}\r\n",
            self.proof("POST", "/oauth/token", None)
        );
        self.request("POST", "/oauth/token", &headers, &request.to_string())
    }

    /// Asks for a socket's ticket.
    pub(crate) fn ticket(&self, token: &str) -> (u16, Value) {
        let proof = self.proof("POST", "/ticket", Some(token));
        let headers = format!("authorization: DPoP {token}\r\ndpop: {proof}\r\n");
        self.request("POST", "/ticket", &headers, "")
    }

    /// Opens a socket with an access token, and waits for its hello.
    pub(crate) fn socket(&self, token: &str) -> (Socket, Value) {
        let (status, ticket) = self.ticket(token);
        assert_eq!(status, 200, "{ticket}");
        let ticket = ticket["ticket"].as_str().unwrap();
        let mut request = format!("ws://{}/rpc", self.authority()).into_client_request().unwrap();
        let headers = request.headers_mut();
        let offered = format!("{SUBPROTOCOL}, {TICKET_SUBPROTOCOL}{ticket}");
        headers.insert("sec-websocket-protocol", offered.parse().unwrap());
        if self.is_stated {
            headers.insert(PUBLIC_ADDRESS_HEADER, self.base.parse().unwrap());
        }
        let (inner, answer) = client(request, (self.connect)()).unwrap();
        assert_eq!(answer.headers()["sec-websocket-protocol"], SUBPROTOCOL);
        let mut socket = Socket(inner);
        let hello = socket.frame().expect("a hello");
        assert_eq!(hello["type"], "hello", "{hello}");
        (socket, hello)
    }
}

/// An open socket.
pub(crate) struct Socket(WebSocket<Box<dyn Stream>>);

impl Socket {
    pub(crate) fn send(&mut self, frame: &Value) {
        self.0.send(Message::text(frame.to_string())).unwrap();
    }

    /// The next frame; its end: the close frame, if it had one.
    pub(crate) fn frame(&mut self) -> Result<Value, Option<CloseFrame>> {
        loop {
            match self.0.read() {
                Ok(Message::Text(text)) => return Ok(serde_json::from_str(&text).unwrap()),
                Ok(Message::Close(frame)) => return Err(frame),
                Ok(Message::Ping(_) | Message::Pong(_)) => {}
                Ok(Message::Binary(_) | Message::Frame(_)) | Err(_) => return Err(None),
            }
        }
    }

    /// The first frame that is as it should be.
    pub(crate) fn frame_when(&mut self, fits: impl Fn(&Value) -> bool) -> Value {
        loop {
            let frame = self.frame().unwrap_or_else(|end| panic!("it closed: {end:?}"));
            if fits(&frame) {
                return frame;
            }
        }
    }

    /// Waits for its end: the close code.
    pub(crate) fn closed(mut self) -> (u16, String) {
        loop {
            match self.frame() {
                Ok(_) => {}
                Err(Some(frame)) => return (frame.code.into(), frame.reason.to_string()),
                Err(None) => panic!("it ended without a word"),
            }
        }
    }
}
