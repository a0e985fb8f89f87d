//! HTTP/1.1 over plain sockets: what is sent is what stands here, and an answer that breaks off is
//! told from one that is whole.

use std::{
    io::{self, BufRead as _, BufReader, Read as _, Write as _},
    net::{SocketAddr, TcpStream},
    time::Duration,
};

use serde::{Serialize, de::DeserializeOwned};

use super::waiting::PATIENCE;

/// A request to be sent on a connection of its own.
#[derive(Debug, Clone)]
#[must_use]
pub(crate) struct Ask {
    address: SocketAddr,
    head: String,
    body: Vec<u8>,
}

/// A whole answer, or as much as came of it.
#[derive(Debug, Clone)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
    /// Whether the body came to the end that its framing states.
    pub(crate) complete: bool,
}

/// A connection with a request on it whose answer is read bit by bit.
#[derive(Debug)]
pub(crate) struct Exchange {
    reader: BufReader<TcpStream>,
}

/// How an answer's body ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Framing {
    Length(usize),
    Chunked,
    Close,
}

impl Ask {
    /// A request for `target` at `host`, which is sent to `address`.
    pub(crate) fn new(address: SocketAddr, method: &str, host: &str, target: &str) -> Self {
        let head = format!("{method} {target} HTTP/1.1\r\nHost: {host}\r\n");
        Self { address, head, body: Vec::new() }
    }

    pub(crate) fn header(mut self, name: &str, value: &str) -> Self {
        self.head.push_str(&format!("{name}: {value}\r\n"));
        self
    }

    /// With a bearer token.
    pub(crate) fn token(self, token: &str) -> Self {
        self.header("Authorization", &format!("Bearer {token}"))
    }

    pub(crate) fn body(mut self, body: impl Into<Vec<u8>>) -> Self {
        self.body = body.into();
        self
    }

    pub(crate) fn json(self, body: &impl Serialize) -> Self {
        self.header("Content-Type", "application/json").body(serde_json::to_vec(body).unwrap())
    }

    pub(crate) fn form(self, body: &str) -> Self {
        self.header("Content-Type", "application/x-www-form-urlencoded").body(body)
    }

    /// As a browser sends it that loads a page.
    pub(crate) fn page(self) -> Self {
        self.header("Sec-Fetch-Mode", "navigate")
            .header("Sec-Fetch-Dest", "document")
            .header("Sec-Fetch-Site", "none")
            .header("Accept", "text/html,*/*;q=0.8")
    }

    /// Sends it and leaves the answer to be read.
    pub(crate) fn open(mut self) -> io::Result<Exchange> {
        let stream = TcpStream::connect_timeout(&self.address, PATIENCE)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        stream.set_nodelay(true)?;
        let bodiless = self.head.starts_with("GET ") || self.head.starts_with("HEAD ");
        if !bodiless {
            self.head.push_str(&format!("Content-Length: {}\r\n", self.body.len()));
        }
        let mut bytes = self.head.into_bytes();
        bytes.extend_from_slice(b"\r\n");
        bytes.append(&mut self.body);
        (&stream).write_all(&bytes)?;
        Ok(Exchange { reader: BufReader::new(stream) })
    }

    /// Sends it and takes the answer, whole or broken off.
    pub(crate) fn try_send(self) -> io::Result<Answer> {
        let head_only = self.head.starts_with("HEAD ");
        let mut exchange = self.header("Connection", "close").open()?;
        let mut answer = exchange.head()?;
        if !head_only {
            exchange.rest(&mut answer);
        }
        Ok(answer)
    }

    /// Sends it and takes the answer.
    pub(crate) fn send(self) -> Answer {
        let what = self.head.lines().next().unwrap_or_default().to_owned();
        self.try_send().unwrap_or_else(|error| panic!("{what}: {error}"))
    }
}

impl Exchange {
    /// Reads the head of the answer. Its body is still to come.
    pub(crate) fn head(&mut self) -> io::Result<Answer> {
        let status = self.line()?;
        let status = status.split(' ').nth(1).and_then(|status| status.parse().ok());
        let status = status.ok_or(io::ErrorKind::InvalidData)?;
        let mut headers = Vec::new();
        loop {
            let line = self.line()?;
            let Some((name, value)) = line.split_once(':') else { break };
            headers.push((name.to_ascii_lowercase(), value.trim().to_owned()));
        }
        Ok(Answer { status, headers, body: Vec::new(), complete: false })
    }

    fn line(&mut self) -> io::Result<String> {
        let mut line = String::new();
        self.reader.read_line(&mut line)?;
        match line.strip_suffix("\r\n") {
            Some(line) => Ok(line.to_owned()),
            None => Err(io::ErrorKind::UnexpectedEof.into()),
        }
    }

    /// Reads the rest of the answer's body, to its end or to where it breaks off.
    pub(crate) fn rest(&mut self, answer: &mut Answer) {
        let read = match answer.framing() {
            Framing::Length(length) => self.exactly(length, &mut answer.body),
            Framing::Chunked => loop {
                match self.chunk(&mut answer.body) {
                    Ok(true) => {}
                    Ok(false) => break Ok(()),
                    Err(error) => break Err(error),
                }
            },
            Framing::Close => self.reader.read_to_end(&mut answer.body).map(|_| ()),
        };
        answer.complete = read.is_ok();
    }

    /// Reads one chunk of a chunked body. False after the last.
    pub(crate) fn chunk(&mut self, into: &mut Vec<u8>) -> io::Result<bool> {
        let line = self.line()?;
        let size = line.split(';').next().unwrap_or_default().trim();
        let size = usize::from_str_radix(size, 16).map_err(|_| io::ErrorKind::InvalidData)?;
        self.exactly(size, into)?;
        self.line()?;
        Ok(size > 0)
    }

    /// Reads chunks until the body holds `text`.
    pub(crate) fn chunks_until(&mut self, answer: &mut Answer, text: &str) {
        assert_eq!(answer.framing(), Framing::Chunked, "{answer:?}");
        while !answer.text().contains(text) {
            assert!(self.chunk(&mut answer.body).unwrap(), "it ended before {text}: {answer:?}");
        }
    }

    fn exactly(&mut self, length: usize, into: &mut Vec<u8>) -> io::Result<()> {
        let read = (&mut self.reader).take(length as u64).read_to_end(into)?;
        if read == length { Ok(()) } else { Err(io::ErrorKind::UnexpectedEof.into()) }
    }

    /// Sends more on the connection.
    pub(crate) fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.reader.get_mut().write_all(bytes)
    }

    /// Reads exactly so many bytes.
    pub(crate) fn read(&mut self, length: usize) -> io::Result<Vec<u8>> {
        let mut bytes = Vec::new();
        self.exactly(length, &mut bytes)?;
        Ok(bytes)
    }

    /// Whether nothing has come yet. Looks for a short while.
    pub(crate) fn is_silent(&mut self) -> bool {
        let stream = self.reader.get_ref();
        stream.set_read_timeout(Some(Duration::from_millis(100))).unwrap();
        let silent = match self.reader.fill_buf() {
            Ok(_) => false,
            Err(error) => {
                matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut)
            }
        };
        self.reader.get_ref().set_read_timeout(Some(PATIENCE)).unwrap();
        silent
    }

    /// Takes the whole answer.
    pub(crate) fn finish(mut self) -> Answer {
        let mut answer = self.head().unwrap();
        self.rest(&mut answer);
        answer
    }
}

impl Answer {
    fn framing(&self) -> Framing {
        let length = self.header("content-length").and_then(|length| length.parse().ok());
        match (self.status, self.header("transfer-encoding"), length) {
            (204 | 304, ..) => Framing::Length(0),
            (_, Some(_), _) => Framing::Chunked,
            (_, None, Some(length)) => Framing::Length(length),
            (_, None, None) => Framing::Close,
        }
    }

    /// The first value of a header.
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(found, _)| found == name).map(|(_, value)| value.as_str())
    }

    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    /// The body as JSON.
    pub(crate) fn json<T: DeserializeOwned>(&self) -> T {
        serde_json::from_slice(&self.body)
            .unwrap_or_else(|error| panic!("{error}: {} {}", self.status, self.text()))
    }

    /// The stable code of a problem.
    pub(crate) fn code(&self) -> String {
        self.json::<serde_json::Value>()["code"].as_str().unwrap_or_default().to_owned()
    }

    /// Itself, if its status is this.
    pub(crate) fn expect(self, status: u16) -> Self {
        assert_eq!(self.status, status, "{} {:?}", self.text(), self.headers);
        self
    }
}
