//! The two kinds of socket that the gateway holds, as hyper and the relay see them.
//!
//! Both carry a small shared state, because what a connection has already done decides what may be
//! done next: whether a request may be sent again, whether an end must look like a failure, and
//! whether a client that still sends is to be listened to for a moment.

use std::{
    io,
    net::SocketAddr,
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering::Relaxed},
    },
    task::{Context, Poll, ready},
    time::Duration,
};

use futures::task::AtomicWaker;
use rustix::event::{PollFd, PollFlags, Timespec};
use socket2::SockRef;
use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    net::{TcpStream, UnixStream},
    sync::OwnedSemaphorePermit,
    time::{Instant, Sleep},
};

/// How long a client that still sends is listened to after the last answer, so that a reset does
/// not wipe the answer out before it was read (RFC 9112 §9.6).
const LINGER: Duration = Duration::from_secs(5);
/// How many bytes are taken and thrown away meanwhile.
const LINGER_BYTES: usize = 64 << 20;

/// Silence after which a TCP peer is asked whether it is still there.
const KEEPALIVE_IDLE: Duration = Duration::from_secs(60);
/// How long sent bytes may stay unacknowledged before the peer counts as gone.
const USER_TIMEOUT: Duration = Duration::from_secs(120);

/// Sets what every TCP connection of the gateway has: no delay, and an end for vanished peers.
///
/// # Errors
/// The socket is not a TCP socket any more.
pub(crate) fn tune(stream: &TcpStream) -> io::Result<()> {
    let socket = SockRef::from(stream);
    socket.set_tcp_nodelay(true)?;
    socket.set_tcp_keepalive(
        &socket2::TcpKeepalive::new()
            .with_time(KEEPALIVE_IDLE)
            .with_interval(KEEPALIVE_IDLE / 4)
            .with_retries(4),
    )?;
    socket.set_tcp_user_timeout(Some(USER_TIMEOUT))
}

/// What is known of one client connection, shared by its socket, its requests and its driver.
pub(crate) struct Client {
    /// Where it comes from.
    pub(crate) peer: SocketAddr,
    /// Its place among the connections, given back when the socket is closed, upgraded or not.
    _permit: Option<OwnedSemaphorePermit>,
    /// The clock's zero of the two moments below.
    epoch: Instant,
    /// When the first byte of an unfinished head came, in milliseconds and one more; 0: none did.
    head_since: AtomicU64,
    /// When the connection fell idle, in milliseconds.
    idle_since: AtomicU64,
    /// Whether a request is being answered.
    busy: AtomicBool,
    /// Whether the last request had a body, of which some may still be on its way.
    body: AtomicBool,
    /// Whether its socket is to be watched for the client's leaving: hyper does not read while a
    /// body waits to be taken, and so would not see it.
    watched: AtomicBool,
    /// Whether the end must look like a failure.
    reset: AtomicBool,
    /// Whether the connection ends after the answer that is under way.
    draining: AtomicBool,
    waker: AtomicWaker,
}

impl Client {
    pub(crate) fn new(peer: SocketAddr, permit: Option<OwnedSemaphorePermit>) -> Self {
        Self {
            peer,
            _permit: permit,
            epoch: Instant::now(),
            head_since: AtomicU64::new(0),
            idle_since: AtomicU64::new(0),
            busy: AtomicBool::new(false),
            body: AtomicBool::new(false),
            watched: AtomicBool::new(false),
            reset: AtomicBool::new(false),
            draining: AtomicBool::new(false),
            waker: AtomicWaker::new(),
        }
    }

    fn millis(&self) -> u64 {
        u64::try_from(self.epoch.elapsed().as_millis()).unwrap_or(u64::MAX - 1)
    }

    /// A whole request head is here, and perhaps a body is on its way.
    pub(crate) fn begin(&self, body: bool) {
        self.busy.store(true, Relaxed);
        self.body.store(body, Relaxed);
        self.head_since.store(0, Relaxed);
    }

    /// The answer's last byte has been handed on.
    pub(crate) fn end(&self) {
        self.idle_since.store(self.millis(), Relaxed);
        self.busy.store(false, Relaxed);
    }

    /// From now on the connection ends by a reset, so that a cut answer cannot pass for a whole
    /// one where only the end of the connection ends it.
    pub(crate) fn end_by_reset(&self) {
        self.reset.store(true, Relaxed);
    }

    /// Ends the connection after the answer that is under way, at once where there is none.
    pub(crate) fn drain(&self) {
        self.draining.store(true, Relaxed);
        self.waker.wake();
    }

    pub(crate) fn is_draining(&self) -> bool {
        self.draining.load(Relaxed)
    }

    /// The task that [`Self::drain`] wakes.
    pub(crate) fn register(&self, cx: &Context<'_>) {
        self.waker.register(cx.waker());
    }

    /// Whether to look, whenever the connection is polled, if the client has left.
    pub(crate) fn watch(&self, watched: bool) {
        self.watched.store(watched, Relaxed);
    }

    /// Whether the client may be in the middle of sending something.
    fn may_still_send(&self) -> bool {
        self.body.load(Relaxed) || self.head_since.load(Relaxed) != 0
    }

    /// What the clocks of this connection allow from now on.
    pub(crate) fn patience(&self, head: Duration, idle: Duration) -> Patience {
        if self.busy.load(Relaxed) {
            return Patience::Left(head);
        }
        let now = self.millis();
        let (since, limit, over) = match self.head_since.load(Relaxed) {
            0 => (self.idle_since.load(Relaxed), idle, Patience::IdleOver),
            since => (since - 1, head, Patience::HeadOver),
        };
        match limit.checked_sub(Duration::from_millis(now.saturating_sub(since))) {
            Some(left) if !left.is_zero() => Patience::Left(left.min(head)),
            _ => over,
        }
    }
}

impl std::fmt::Debug for Client {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Client").field("peer", &self.peer).finish_non_exhaustive()
    }
}

/// What [`Client::patience`] found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Patience {
    /// Look again after this.
    Left(Duration),
    /// A head has been incomplete for too long.
    HeadOver,
    /// Nothing has come for too long.
    IdleOver,
}

/// A client's socket.
#[derive(Debug)]
pub(crate) struct ClientIo {
    stream: TcpStream,
    client: Arc<Client>,
    linger: Option<(Pin<Box<Sleep>>, usize)>,
}

impl ClientIo {
    pub(crate) const fn new(stream: TcpStream, client: Arc<Client>) -> Self {
        Self { stream, client, linger: None }
    }

    /// Listens for a moment after the end, whatever the client has sent so far.
    pub(crate) fn linger(&self) {
        self.client.body.store(true, Relaxed);
    }

    /// Says that no more bytes will come, and goes on listening.
    pub(crate) fn poll_half_close(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }

    fn poll_linger(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let Some((deadline, left)) = &mut self.linger else { return Poll::Ready(()) };
        let mut scratch = [std::mem::MaybeUninit::uninit(); 16 << 10];
        while *left > 0 && deadline.as_mut().poll(cx).is_pending() {
            let mut buffer = ReadBuf::uninit(&mut scratch);
            match ready!(Pin::new(&mut self.stream).poll_read(cx, &mut buffer)) {
                Ok(()) if !buffer.filled().is_empty() => {
                    *left = left.saturating_sub(buffer.filled().len());
                }
                Ok(()) | Err(_) => break,
            }
        }
        Poll::Ready(())
    }
}

impl AsyncRead for ClientIo {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        ready!(Pin::new(&mut self.stream).poll_read(cx, buffer))?;
        let client = &self.client;
        if buffer.filled().len() > before
            && !client.busy.load(Relaxed)
            && client.head_since.load(Relaxed) == 0
        {
            client.head_since.store(client.millis() + 1, Relaxed);
        }
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for ClientIo {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(cx, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(cx, slices)
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        // Nothing is buffered here; but hyper comes by whenever the connection is polled.
        if self.client.watched.load(Relaxed) && has_left(&self.stream) {
            return Poll::Ready(Err(io::ErrorKind::ConnectionAborted.into()));
        }
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if self.client.reset.load(Relaxed) {
            return Poll::Ready(Ok(()));
        }
        if self.linger.is_none() {
            ready!(self.poll_half_close(cx))?;
            if !self.client.may_still_send() {
                return Poll::Ready(Ok(()));
            }
            self.linger = Some((Box::pin(tokio::time::sleep(LINGER)), LINGER_BYTES));
        }
        ready!(self.poll_linger(cx));
        Poll::Ready(Ok(()))
    }
}

/// Whether the peer has closed its side, even if what it sent before is not read yet.
fn has_left(stream: &TcpStream) -> bool {
    let mut polled = [PollFd::new(stream, PollFlags::RDHUP)];
    let now = Timespec { tv_sec: 0, tv_nsec: 0 };
    matches!(rustix::event::poll(&mut polled, Some(&now)), Ok(count) if count > 0)
}

impl Drop for ClientIo {
    fn drop(&mut self) {
        if self.client.reset.load(Relaxed) {
            let _ = SockRef::from(&self.stream).set_linger(Some(Duration::ZERO));
        }
    }
}

/// What one connection to a surface has done, shared by its socket and the request on it.
#[derive(Debug, Default)]
pub(crate) struct Exchange {
    sent: AtomicBool,
    received: AtomicBool,
    reset: AtomicBool,
}

impl Exchange {
    /// A new request is about to be sent.
    pub(crate) fn begin(&self) {
        self.sent.store(false, Relaxed);
        self.received.store(false, Relaxed);
    }

    /// Whether a byte of the request may have left.
    pub(crate) fn has_sent(&self) -> bool {
        self.sent.load(Relaxed)
    }

    /// Whether a byte of an answer has come.
    pub(crate) fn has_received(&self) -> bool {
        self.received.load(Relaxed)
    }

    /// The request was given up: the surface must see a reset, never a request that looks whole.
    pub(crate) fn abort(&self) {
        self.reset.store(true, Relaxed);
    }
}

/// A connected socket to a surface.
#[derive(Debug)]
pub(crate) enum Dialed {
    /// By TCP.
    Tcp(TcpStream),
    /// By a Unix socket.
    Unix(UnixStream),
}

/// A surface's socket.
#[derive(Debug)]
pub(crate) struct SurfaceIo {
    stream: Dialed,
    exchange: Arc<Exchange>,
    /// The peer takes no more bytes. What it said before is still to be read, so further bytes
    /// are dropped and the reading side decides how the exchange ends.
    deaf: bool,
}

impl SurfaceIo {
    pub(crate) const fn new(stream: Dialed, exchange: Arc<Exchange>) -> Self {
        Self { stream, exchange, deaf: false }
    }

    pub(crate) const fn exchange(&self) -> &Arc<Exchange> {
        &self.exchange
    }

    /// Ends the tolerance for a peer that takes no more bytes: a relayed connection has no answer
    /// to wait for.
    pub(crate) const fn is_deaf(&self) -> bool {
        self.deaf
    }

    fn wrote(&mut self, offered: usize, result: io::Result<usize>) -> Poll<io::Result<usize>> {
        match result {
            Ok(count) => {
                self.exchange.sent.store(true, Relaxed);
                Poll::Ready(Ok(count))
            }
            Err(error)
                if matches!(
                    error.kind(),
                    io::ErrorKind::BrokenPipe | io::ErrorKind::ConnectionReset
                ) =>
            {
                self.deaf = true;
                Poll::Ready(Ok(offered))
            }
            Err(error) => Poll::Ready(Err(error)),
        }
    }
}

impl AsyncRead for SurfaceIo {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        ready!(match &mut self.stream {
            Dialed::Tcp(stream) => Pin::new(stream).poll_read(cx, buffer),
            Dialed::Unix(stream) => Pin::new(stream).poll_read(cx, buffer),
        })?;
        if buffer.filled().len() > before {
            self.exchange.received.store(true, Relaxed);
        }
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for SurfaceIo {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        if self.deaf {
            return Poll::Ready(Ok(bytes.len()));
        }
        let result = ready!(match &mut self.stream {
            Dialed::Tcp(stream) => Pin::new(stream).poll_write(cx, bytes),
            Dialed::Unix(stream) => Pin::new(stream).poll_write(cx, bytes),
        });
        self.wrote(bytes.len(), result)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let offered = slices.iter().map(|slice| slice.len()).sum();
        if self.deaf {
            return Poll::Ready(Ok(offered));
        }
        let result = ready!(match &mut self.stream {
            Dialed::Tcp(stream) => Pin::new(stream).poll_write_vectored(cx, slices),
            Dialed::Unix(stream) => Pin::new(stream).poll_write_vectored(cx, slices),
        });
        self.wrote(offered, result)
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if self.deaf || self.exchange.reset.load(Relaxed) {
            return Poll::Ready(Ok(()));
        }
        match &mut self.stream {
            Dialed::Tcp(stream) => Pin::new(stream).poll_shutdown(cx),
            Dialed::Unix(stream) => Pin::new(stream).poll_shutdown(cx),
        }
    }
}

impl Drop for SurfaceIo {
    fn drop(&mut self) {
        if let Dialed::Tcp(stream) = &self.stream
            && self.exchange.reset.load(Relaxed)
        {
            let _ = SockRef::from(stream).set_linger(Some(Duration::ZERO));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEAD: Duration = Duration::from_secs(10);
    const IDLE: Duration = Duration::from_secs(75);

    #[tokio::test(start_paused = true)]
    async fn a_head_has_less_time_than_an_idle_connection() {
        let client = Client::new("127.0.0.1:1".parse().unwrap(), None);
        assert_eq!(client.patience(HEAD, IDLE), Patience::Left(HEAD));
        tokio::time::advance(Duration::from_secs(70)).await;
        assert_eq!(client.patience(HEAD, IDLE), Patience::Left(Duration::from_secs(5)));
        client.head_since.store(client.millis() + 1, Relaxed);
        assert_eq!(client.patience(HEAD, IDLE), Patience::Left(HEAD));
        tokio::time::advance(HEAD).await;
        assert_eq!(client.patience(HEAD, IDLE), Patience::HeadOver);
        client.begin(false);
        tokio::time::advance(IDLE * 100).await;
        assert_eq!(client.patience(HEAD, IDLE), Patience::Left(HEAD), "an answer may take long");
        client.end();
        tokio::time::advance(IDLE).await;
        assert_eq!(client.patience(HEAD, IDLE), Patience::IdleOver);
    }
}
