//! A client of a host: raw HTTP/1.1 over a connection, and proofs (RFC 9449) of a key of its own.

use std::{
    sync::atomic::{AtomicU64, Ordering},
    time::Duration,
};

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use ring::{
    digest,
    signature::{Ed25519KeyPair, KeyPair as _},
};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, DuplexStream};
use wakeful_wire::Timestamp;

/// Far longer than anything here takes on a busy machine.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// A key pair, and proofs by it.
pub(crate) struct ClientKey(Ed25519KeyPair);

static PROOFS: AtomicU64 = AtomicU64::new(0);

impl ClientKey {
    pub(crate) fn new(seed: u8) -> Self {
        Self(Ed25519KeyPair::from_seed_unchecked(&[seed; 32]).unwrap())
    }

    /// A proof for one request: a JWT that holds the public key in its header and is signed by it.
    /// With an access token it names that token's hash.
    pub(crate) fn proof(
        &self,
        method: &str,
        url: &str,
        token: Option<&str>,
        now: Timestamp,
    ) -> String {
        let public = b64(self.0.public_key().as_ref());
        let header = json!({
            "typ": "dpop+jwt",
            "alg": "EdDSA",
            "jwk": { "kty": "OKP", "crv": "Ed25519", "x": public },
        });
        let mut claims = json!({
            "jti": format!("proof-{}", PROOFS.fetch_add(1, Ordering::Relaxed)),
            "htm": method,
            "htu": url,
            "iat": now.0 / 1_000,
        });
        if let Some(token) = token {
            claims["ath"] = b64(digest::digest(&digest::SHA256, token.as_bytes()).as_ref()).into();
        }
        let signed = format!(
            "{}.{}",
            b64(header.to_string().as_bytes()),
            b64(claims.to_string().as_bytes())
        );
        let signature = self.0.sign(signed.as_bytes());
        format!("{signed}.{}", b64(signature.as_ref()))
    }
}

fn b64(bytes: &[u8]) -> String {
    URL_SAFE_NO_PAD.encode(bytes)
}

/// A request as it goes over the wire.
#[derive(Debug, Clone)]
pub(crate) struct Asking {
    pub(crate) method: &'static str,
    pub(crate) target: String,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
}

impl Asking {
    pub(crate) fn new(method: &'static str, target: impl Into<String>) -> Self {
        Self { method, target: target.into(), headers: Vec::new(), body: Vec::new() }
    }

    pub(crate) fn header(mut self, name: &str, value: impl Into<String>) -> Self {
        self.headers.push((name.to_owned(), value.into()));
        self
    }

    pub(crate) fn body(self, media: &str, body: impl Into<Vec<u8>>) -> Self {
        let mut with = self.header("content-type", media);
        with.body = body.into();
        with
    }

    pub(crate) fn json(self, body: &Value) -> Self {
        self.body("application/json", body.to_string())
    }

    /// The path of the target.
    pub(crate) fn path(&self) -> &str {
        self.target.split('?').next().unwrap()
    }

    fn bytes(&self) -> Vec<u8> {
        let mut head = format!("{} {} HTTP/1.1\r\n", self.method, self.target);
        for (name, value) in &self.headers {
            head.push_str(&format!("{name}: {value}\r\n"));
        }
        if !self.body.is_empty() {
            head.push_str(&format!("content-length: {}\r\n", self.body.len()));
        }
        head.push_str("\r\n");
        let mut bytes = head.into_bytes();
        bytes.extend(&self.body);
        bytes
    }
}

/// An answer as it came.
#[derive(Debug, Clone)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
    /// Bytes of the status line and the headers.
    pub(crate) head_len: usize,
}

impl Answer {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    pub(crate) fn value(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap()
    }

    pub(crate) fn read<T: serde::de::DeserializeOwned>(&self) -> T {
        assert_eq!(self.status, 200, "{}", String::from_utf8_lossy(&self.body));
        serde_json::from_slice(&self.body).unwrap()
    }

    /// The status and a problem's reason.
    pub(crate) fn refusal(&self) -> (u16, String) {
        let reason = self.value()["reason"].as_str().unwrap_or_default().to_owned();
        (self.status, reason)
    }
}

/// One connection to a host.
pub(crate) struct Line {
    stream: DuplexStream,
    read: Vec<u8>,
}

impl Line {
    pub(crate) const fn new(stream: DuplexStream) -> Self {
        Self { stream, read: Vec::new() }
    }

    pub(crate) fn into_stream(self) -> DuplexStream {
        assert!(self.read.is_empty());
        self.stream
    }

    pub(crate) async fn send(&mut self, bytes: &[u8]) {
        self.stream.write_all(bytes).await.unwrap();
    }

    pub(crate) async fn ask(&mut self, asking: &Asking) -> Answer {
        // Who refuses a body does not read it all.
        let _refused = self.stream.write_all(&asking.bytes()).await;
        self.answer(asking.method == "HEAD").await.expect("an answer")
    }

    /// The next answer; nothing at the end of the connection.
    pub(crate) async fn answer(&mut self, is_head: bool) -> Option<Answer> {
        let head_len = loop {
            if let Some(at) = self.read.windows(4).position(|window| window == b"\r\n\r\n") {
                break at + 4;
            }
            if self.more().await == 0 {
                return None;
            }
        };
        let head: Vec<u8> = self.read.drain(..head_len).collect();
        let head = String::from_utf8(head).unwrap();
        let mut lines = head.trim_end().split("\r\n");
        let status = lines.next().unwrap().split(' ').nth(1).unwrap().parse().unwrap();
        let headers: Vec<(String, String)> = lines
            .map(|line| line.split_once(": ").unwrap())
            .map(|(name, value)| (name.to_ascii_lowercase(), value.to_owned()))
            .collect();
        let mut answer = Answer { status, headers, body: Vec::new(), head_len };
        if !is_head {
            let len = answer.header("content-length").map_or(0, |len| len.parse().unwrap());
            while self.read.len() < len {
                assert_ne!(self.more().await, 0, "the answer is cut");
            }
            answer.body = self.read.drain(..len).collect();
        }
        Some(answer)
    }

    /// Whether the host has ended the connection and sent nothing more.
    pub(crate) async fn is_over(&mut self) -> bool {
        self.more().await == 0
    }

    async fn more(&mut self) -> usize {
        let read = self.stream.read_buf(&mut self.read);
        tokio::time::timeout(PATIENCE, read).await.expect("in time").unwrap_or(0)
    }
}
