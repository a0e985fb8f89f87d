//! `RAW`: an upstream that does what a test says and remembers every byte that it got.

use std::{
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering::SeqCst},
    },
};

use parking_lot::Mutex;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    task::AbortHandle,
};
use wakeful_wire::gate::Upstream;

/// The scripted upstream. Dropping it closes the listener, not its connections.
pub(crate) struct Raw {
    pub(crate) address: SocketAddr,
    log: Arc<Mutex<Vec<Vec<u8>>>>,
    connections: Arc<AtomicUsize>,
    open: Arc<AtomicUsize>,
    accepting: AbortHandle,
}

/// One connection to it.
pub(crate) struct Conn {
    pub(crate) stream: TcpStream,
    pub(crate) index: usize,
    buffer: Vec<u8>,
    log: Arc<Mutex<Vec<Vec<u8>>>>,
    open: Arc<AtomicUsize>,
}

impl Drop for Conn {
    fn drop(&mut self) {
        self.open.fetch_sub(1, SeqCst);
    }
}

/// A request as it arrived.
#[derive(Debug, Clone)]
pub(crate) struct Arrived {
    pub(crate) head: String,
    pub(crate) body: Vec<u8>,
}

impl Arrived {
    /// The request line's target.
    pub(crate) fn target(&self) -> &str {
        self.head.split(' ').nth(1).unwrap()
    }

    pub(crate) fn method(&self) -> &str {
        self.head.split(' ').next().unwrap()
    }
}

/// All values of a header in a head.
pub(crate) fn values<'a>(head: &'a str, name: &str) -> Vec<&'a str> {
    head.split("\r\n")
        .skip(1)
        .filter_map(|line| line.split_once(':'))
        .filter(|(have, _)| have.eq_ignore_ascii_case(name))
        .map(|(_, value)| value.trim())
        .collect()
}

impl Raw {
    /// Runs `script` for each connection.
    pub(crate) async fn start<F, Fut>(script: F) -> Self
    where
        F: Fn(Conn) -> Fut + Send + 'static,
        Fut: Future<Output = ()> + Send + 'static,
    {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let log = Arc::<Mutex<Vec<Vec<u8>>>>::default();
        let connections = Arc::<AtomicUsize>::default();
        let open = Arc::<AtomicUsize>::default();
        let accepting = tokio::spawn({
            let (log, connections, open) =
                (Arc::clone(&log), Arc::clone(&connections), Arc::clone(&open));
            async move {
                while let Ok((stream, _)) = listener.accept().await {
                    stream.set_nodelay(true).unwrap();
                    let index = connections.fetch_add(1, SeqCst);
                    open.fetch_add(1, SeqCst);
                    log.lock().push(Vec::new());
                    let conn = Conn {
                        stream,
                        index,
                        buffer: Vec::new(),
                        log: Arc::clone(&log),
                        open: Arc::clone(&open),
                    };
                    tokio::spawn(script(conn));
                }
            }
        })
        .abort_handle();
        Self { address, log, connections, open, accepting }
    }

    /// Answers each request of each connection with what `answer` makes of it.
    pub(crate) async fn answering(
        answer: impl Fn(&Arrived) -> Vec<u8> + Send + Sync + 'static,
    ) -> Self {
        let answer = Arc::new(answer);
        Self::start(move |mut conn| {
            let answer = Arc::clone(&answer);
            async move {
                while let Some(request) = conn.request().await {
                    conn.send(&answer(&request)).await;
                }
            }
        })
        .await
    }

    /// Answers 200 with `ok`.
    pub(crate) async fn ok() -> Self {
        Self::answering(|_| ok("ok")).await
    }

    /// As an upstream to dial by TCP.
    pub(crate) fn upstream(&self) -> Upstream {
        Upstream::Tcp { address: self.address, basic: None }
    }

    pub(crate) fn connections(&self) -> usize {
        self.connections.load(SeqCst)
    }

    /// How many connections its scripts still hold.
    pub(crate) fn open(&self) -> usize {
        self.open.load(SeqCst)
    }

    /// Every byte that came, by connection.
    pub(crate) fn bytes(&self) -> Vec<Vec<u8>> {
        self.log.lock().clone()
    }

    /// Everything that came, as text.
    pub(crate) fn text(&self) -> String {
        self.bytes().iter().map(|bytes| String::from_utf8_lossy(bytes).into_owned()).collect()
    }

    /// How many request lines came.
    pub(crate) fn requests(&self) -> usize {
        self.text().matches(" HTTP/1.1\r\n").count()
    }
}

impl Drop for Raw {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

impl Conn {
    /// Reads some more. False at the end, also at an abrupt one.
    pub(crate) async fn more(&mut self) -> bool {
        let mut chunk = vec![0; 64 << 10];
        match self.stream.read(&mut chunk).await {
            Ok(0) | Err(_) => false,
            Ok(count) => {
                self.log.lock()[self.index].extend_from_slice(&chunk[..count]);
                self.buffer.extend_from_slice(&chunk[..count]);
                true
            }
        }
    }

    /// Reads some more and tells how the peer ended: `Ok(true)` bytes, `Ok(false)` an orderly end.
    pub(crate) async fn more_or_error(&mut self) -> std::io::Result<bool> {
        let mut chunk = vec![0; 64 << 10];
        let count = self.stream.read(&mut chunk).await?;
        self.log.lock()[self.index].extend_from_slice(&chunk[..count]);
        self.buffer.extend_from_slice(&chunk[..count]);
        Ok(count > 0)
    }

    /// Reads a head. `None` at the end of the connection.
    pub(crate) async fn head(&mut self) -> Option<String> {
        loop {
            if let Some(end) = find(&self.buffer, b"\r\n\r\n") {
                let rest = self.buffer.split_off(end + 4);
                let head = std::mem::replace(&mut self.buffer, rest);
                return Some(String::from_utf8_lossy(&head).into_owned());
            }
            if !self.more().await {
                return None;
            }
        }
    }

    /// Reads so many bytes after a head.
    pub(crate) async fn exactly(&mut self, count: usize) -> Option<Vec<u8>> {
        while self.buffer.len() < count {
            if !self.more().await {
                return None;
            }
        }
        let rest = self.buffer.split_off(count);
        Some(std::mem::replace(&mut self.buffer, rest))
    }

    /// What has come and was not taken yet.
    pub(crate) fn pending(&self) -> &[u8] {
        &self.buffer
    }

    /// Reads a request with its body, by either framing.
    pub(crate) async fn request(&mut self) -> Option<Arrived> {
        let head = self.head().await?;
        let mut body = Vec::new();
        if let Some(length) = values(&head, "content-length").first() {
            body = self.exactly(length.parse().unwrap()).await?;
        } else if !values(&head, "transfer-encoding").is_empty() {
            loop {
                let end = loop {
                    if let Some(end) = find(&self.buffer, b"\r\n") {
                        break end;
                    }
                    if !self.more().await {
                        return None;
                    }
                };
                let line = self.exactly(end + 2).await?;
                let size = std::str::from_utf8(&line[..end]).unwrap();
                let size = usize::from_str_radix(size.split(';').next().unwrap(), 16).unwrap();
                let chunk = self.exactly(size + 2).await?;
                if size == 0 {
                    break;
                }
                body.extend_from_slice(&chunk[..size]);
            }
        }
        Some(Arrived { head, body })
    }

    /// Sends bytes. A peer that does not take them is no concern of a script.
    pub(crate) async fn send(&mut self, bytes: &[u8]) {
        let _ = self.stream.write_all(bytes).await;
    }

    /// Ends with a reset.
    pub(crate) fn reset(self) {
        socket2::SockRef::from(&self.stream).set_linger(Some(std::time::Duration::ZERO)).unwrap();
    }

    /// Says that no more will come.
    pub(crate) async fn half_close(&mut self) {
        let _ = self.stream.shutdown().await;
    }
}

pub(crate) fn find(bytes: &[u8], what: &[u8]) -> Option<usize> {
    bytes.windows(what.len()).position(|window| window == what)
}

/// A 200 with a length.
pub(crate) fn ok(body: &str) -> Vec<u8> {
    format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{body}", body.len()).into_bytes()
}
