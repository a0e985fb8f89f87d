//! Clients: raw bytes out, whole answers in.

use std::net::SocketAddr;

use base64::Engine as _;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};

use super::{raw::find, soon};

/// One connection to the gateway.
pub(crate) struct Client {
    pub(crate) stream: TcpStream,
    pub(crate) buffer: Vec<u8>,
}

/// An answer.
#[derive(Debug, Clone)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) head: String,
    pub(crate) body: Vec<u8>,
    /// Whether its end was where its framing says.
    pub(crate) whole: bool,
}

impl Answer {
    pub(crate) fn all(&self, name: &str) -> Vec<&str> {
        super::raw::values(&self.head, name)
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.all(name).into_iter().next()
    }

    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    /// The `code` of a problem body.
    pub(crate) fn code(&self) -> String {
        let json: serde_json::Value = serde_json::from_slice(&self.body)
            .unwrap_or_else(|_| panic!("no problem body: {} {}", self.head, self.text()));
        json["code"].as_str().unwrap().to_owned()
    }
}

impl Client {
    pub(crate) async fn connect(address: SocketAddr) -> Self {
        let stream = TcpStream::connect(address).await.unwrap();
        stream.set_nodelay(true).unwrap();
        Self { stream, buffer: Vec::new() }
    }

    pub(crate) async fn send(&mut self, bytes: impl AsRef<[u8]>) {
        self.stream.write_all(bytes.as_ref()).await.unwrap();
    }

    /// Reads some more. False at the end, also at an abrupt one.
    pub(crate) async fn more(&mut self) -> bool {
        let mut chunk = vec![0; 64 << 10];
        match soon(self.stream.read(&mut chunk)).await {
            Ok(0) | Err(_) => false,
            Ok(count) => {
                self.buffer.extend_from_slice(&chunk[..count]);
                true
            }
        }
    }

    pub(crate) async fn exactly(&mut self, count: usize) -> Option<Vec<u8>> {
        while self.buffer.len() < count {
            if !self.more().await {
                return None;
            }
        }
        let rest = self.buffer.split_off(count);
        Some(std::mem::replace(&mut self.buffer, rest))
    }

    /// Reads a head; `None` if the connection ends before.
    pub(crate) async fn head(&mut self) -> Option<String> {
        loop {
            if let Some(end) = find(&self.buffer, b"\r\n\r\n") {
                let rest = self.buffer.split_off(end + 4);
                let head = std::mem::replace(&mut self.buffer, rest);
                return Some(String::from_utf8(head).unwrap());
            }
            if !self.more().await {
                return None;
            }
        }
    }

    /// Reads a whole answer to a request of this method.
    pub(crate) async fn answer_to(&mut self, method: &str) -> Option<Answer> {
        let head = self.head().await?;
        let status: u16 = head.split(' ').nth(1).unwrap().parse().unwrap();
        let mut answer = Answer { status, head, body: Vec::new(), whole: true };
        if status == 100 {
            return Some(answer);
        }
        if method == "HEAD" || matches!(status, 101 | 204 | 304) {
            return Some(answer);
        }
        if let Some(length) = answer.header("content-length") {
            let length: usize = length.parse().unwrap();
            match self.exactly(length).await {
                Some(body) => answer.body = body,
                None => {
                    answer.whole = false;
                    answer.body = std::mem::take(&mut self.buffer);
                }
            }
        } else if answer.header("transfer-encoding").is_some() {
            answer.whole = false;
            loop {
                let Some(chunk) = self.chunk().await else { return Some(answer) };
                if chunk.is_empty() {
                    answer.whole = true;
                    return Some(answer);
                }
                answer.body.extend_from_slice(&chunk);
            }
        } else {
            while self.more().await {}
            answer.body = std::mem::take(&mut self.buffer);
        }
        Some(answer)
    }

    /// Reads one chunk of a chunked body; empty for the last one, `None` where it breaks off.
    pub(crate) async fn chunk(&mut self) -> Option<Vec<u8>> {
        let end = loop {
            if let Some(end) = find(&self.buffer, b"\r\n") {
                break end;
            }
            if !self.more().await {
                return None;
            }
        };
        let line = self.exactly(end + 2).await?;
        let size = usize::from_str_radix(std::str::from_utf8(&line[..end]).ok()?, 16).ok()?;
        let mut chunk = self.exactly(size + 2).await?;
        chunk.truncate(size);
        Some(chunk)
    }

    /// Whether the connection has ended, with nothing more on it.
    pub(crate) async fn ended(&mut self) -> bool {
        self.buffer.is_empty() && !self.more().await
    }
}

/// A request line and headers, with a line for each.
pub(crate) fn request(line: &str, host: &str, headers: &[&str]) -> String {
    let mut text = format!("{line} HTTP/1.1\r\nHost: {host}\r\n");
    for header in headers {
        text.push_str(header);
        text.push_str("\r\n");
    }
    text.push_str("\r\n");
    text
}

/// Asks once on a connection of its own.
pub(crate) async fn ask(address: SocketAddr, line: &str, host: &str, headers: &[&str]) -> Answer {
    ask_raw(address, request(line, host, headers)).await
}

/// Sends bytes on a connection of its own and reads one answer.
pub(crate) async fn ask_raw(address: SocketAddr, bytes: impl AsRef<[u8]>) -> Answer {
    let method = bytes.as_ref().split(|byte| *byte == b' ').next().unwrap().to_vec();
    let mut client = Client::connect(address).await;
    client.send(&bytes).await;
    client.answer_to(std::str::from_utf8(&method).unwrap()).await.expect("an answer")
}

pub(crate) const KEY: &str = "dGhlIHNhbXBsZSBub25jZQ==";
pub(crate) const ACCEPT: &str = "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=";

/// A WebSocket handshake (RFC 6455 §1.3's own key).
pub(crate) fn handshake(target: &str, host: &str, headers: &[&str]) -> String {
    let mut all = vec!["Connection: Upgrade", "Upgrade: websocket", "Sec-WebSocket-Version: 13"];
    let key = format!("Sec-WebSocket-Key: {KEY}");
    all.push(&key);
    all.extend_from_slice(headers);
    request(&format!("GET {target}"), host, &all)
}

/// A 101 with more headers.
pub(crate) fn switching(headers: &[&str]) -> String {
    let mut text = format!(
        "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
         Sec-WebSocket-Accept: {ACCEPT}\r\n"
    );
    for header in headers {
        text.push_str(header);
        text.push_str("\r\n");
    }
    text.push_str("\r\n");
    text
}

/// A masked text frame of at most 125 bytes.
pub(crate) fn masked(text: &str) -> Vec<u8> {
    let mut frame = vec![0x81, 0x80 | u8::try_from(text.len()).unwrap(), 0, 0, 0, 0];
    frame.extend_from_slice(text.as_bytes());
    frame
}

/// An unmasked text frame of at most 125 bytes.
pub(crate) fn unmasked(text: &str) -> Vec<u8> {
    let mut frame = vec![0x81, u8::try_from(text.len()).unwrap()];
    frame.extend_from_slice(text.as_bytes());
    frame
}

/// The code and reason of a close frame to a client.
pub(crate) fn close_of(frame: &[u8]) -> (u16, String) {
    assert_eq!(frame[0], 0x88, "not a close frame: {frame:?}");
    let code = u16::from_be_bytes([frame[2], frame[3]]);
    (code, String::from_utf8(frame[4..2 + usize::from(frame[1])].to_vec()).unwrap())
}

pub(crate) fn basic(pair: &str) -> String {
    format!("Basic {}", base64::engine::general_purpose::STANDARD.encode(pair))
}
