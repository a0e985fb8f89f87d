//! Two upgraded connections, relayed byte for byte.
//!
//! Both sockets have been taken back from hyper. A thread has one buffer for all its relays, so a
//! connection on which nothing moves owns no buffer; only what a slow peer does not take at once
//! is kept with the connection, and nothing more is read for it meanwhile.
//!
//! One side's end of sending is passed on and ends nothing else (RFC 6455 §7.1.1 lets a peer finish
//! first); but once one side has ended, the other has [`HALF_OPEN_MAX`] of silence left.

use std::{
    cell::RefCell,
    io,
    pin::Pin,
    task::{Context, Poll, ready},
    time::Duration,
};

use bytes::Bytes;
use tokio::{
    io::{AsyncRead, AsyncWrite, AsyncWriteExt, ReadBuf},
    time::{Instant, Sleep},
};

use crate::{
    frames::{FrameScanner, Seen},
    recall::{Enrolled, Why},
    rescue::close_frame,
    stream::{ClientIo, SurfaceIo},
};

/// How long a half-open connection may be silent before it ends.
pub(crate) const HALF_OPEN_MAX: Duration = Duration::from_secs(30);
/// How long a client gets to answer a close frame of ours.
const CLOSE_WAIT: Duration = Duration::from_secs(2);
/// What is read at once, and so also the most that is kept for a slow peer in one direction.
const BUFFER: usize = 64 << 10;

thread_local! {
    static SCRATCH: RefCell<Vec<u8>> = RefCell::new(vec![0; BUFFER]);
}

/// How a relayed connection ended.
#[derive(Debug)]
pub(crate) enum Ended {
    /// Both sides had finished, or one had and the other fell silent.
    Finished,
    /// The client's side broke, or vanished.
    ClientGone,
    /// The surface's side broke without a close frame before.
    SurfaceGone,
    /// It was told to end.
    Recalled(Why),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Flow {
    Open,
    /// The reader has ended; what is kept is still to be written.
    Ending,
    /// The end was passed on.
    Closed,
}

#[derive(Debug)]
struct Direction {
    scanner: FrameScanner,
    kept: Bytes,
    flow: Flow,
    close_seen: bool,
}

/// Which side failed.
#[derive(Debug, Clone, Copy)]
enum Side {
    Reader,
    Writer,
}

impl Direction {
    fn new(early: Bytes) -> Self {
        let mut direction = Self {
            scanner: FrameScanner::default(),
            kept: Bytes::new(),
            flow: Flow::Open,
            close_seen: false,
        };
        direction.note(&early);
        direction.kept = early;
        direction
    }

    fn note(&mut self, bytes: &[u8]) -> Seen {
        let seen = self.scanner.feed(bytes);
        self.close_seen |= seen.close;
        seen
    }

    fn poll_kept<W: AsyncWrite + Unpin>(
        &mut self,
        cx: &mut Context<'_>,
        writer: &mut W,
    ) -> Poll<io::Result<()>> {
        while !self.kept.is_empty() {
            let count = ready!(Pin::new(&mut *writer).poll_write(cx, &self.kept))?;
            if count == 0 {
                return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
            }
            let _ = self.kept.split_to(count);
        }
        // Gives the memory back, not only the length.
        self.kept = Bytes::new();
        Poll::Ready(Ok(()))
    }

    /// Moves bytes until the reader has ended and all is written. True in `moved` if any did.
    fn poll_move<R: AsyncRead + Unpin, W: AsyncWrite + Unpin>(
        &mut self,
        cx: &mut Context<'_>,
        reader: &mut R,
        writer: &mut W,
        moved: &mut Moved,
    ) -> Poll<Result<(), (Side, io::Error)>> {
        loop {
            ready!(self.poll_kept(cx, writer)).map_err(|error| (Side::Writer, error))?;
            if self.flow != Flow::Open {
                return Poll::Ready(Ok(()));
            }
            ready!(SCRATCH.with_borrow_mut(|scratch| {
                let mut buffer = ReadBuf::new(scratch);
                ready!(Pin::new(&mut *reader).poll_read(cx, &mut buffer))
                    .map_err(|error| (Side::Reader, error))?;
                let bytes = buffer.filled();
                if bytes.is_empty() {
                    self.flow = Flow::Ending;
                    return Poll::Ready(Ok(()));
                }
                moved.any = true;
                moved.data_frames += self.note(bytes).data_frames;
                let written = match Pin::new(&mut *writer).poll_write(cx, bytes) {
                    Poll::Ready(Ok(count)) => count,
                    Poll::Ready(Err(error)) => return Poll::Ready(Err((Side::Writer, error))),
                    Poll::Pending => 0,
                };
                if written < bytes.len() {
                    self.kept = Bytes::copy_from_slice(&bytes[written..]);
                }
                Poll::Ready(Ok(()))
            }))?;
        }
    }
}

#[derive(Debug, Default)]
struct Moved {
    any: bool,
    data_frames: u32,
}

/// A relayed connection.
#[derive(Debug)]
pub(crate) struct Relay {
    client: ClientIo,
    surface: SurfaceIo,
    up: Direction,
    down: Direction,
    half_open: Option<Pin<Box<Sleep>>>,
    moved: bool,
    data_frames: u64,
}

impl Relay {
    /// Takes both sides, and what each had already sent when hyper let go of it.
    pub(crate) fn new(client: (ClientIo, Bytes), surface: (SurfaceIo, Bytes)) -> Self {
        Self {
            client: client.0,
            surface: surface.0,
            up: Direction::new(client.1),
            down: Direction::new(surface.1),
            half_open: None,
            moved: false,
            data_frames: 0,
        }
    }

    /// Relays until it ends. [`Self::finish`] comes next.
    pub(crate) async fn watch(&mut self, recall: &Enrolled) -> Ended {
        std::future::poll_fn(|cx| self.poll(cx, recall)).await
    }

    /// Frames of data so far, both ways. Pings do not count.
    pub(crate) const fn data_frames(&self) -> u64 {
        self.data_frames
    }

    /// Closes both sides. A client whose connection was ended by somebody else is told by a close
    /// frame, and has [`CLOSE_WAIT`] to read it.
    pub(crate) async fn finish(mut self, ended: &Ended, reason: &str) {
        let (code, reason) = match ended {
            Ended::Recalled(Why::Asleep) => (4503, reason),
            Ended::Recalled(Why::Leaving) => (1012, "restarting"),
            Ended::SurfaceGone => (1011, "the program ended the connection"),
            Ended::ClientGone => return self.surface.exchange().abort(),
            Ended::Finished if self.down.flow == Flow::Closed => return,
            Ended::Finished => {
                // The surface broke off behind its own close frame, which the client is to read.
                self.client.linger();
                let _ = tokio::time::timeout(CLOSE_WAIT, self.client.shutdown()).await;
                return;
            }
        };
        self.client.linger();
        // The client's own clock ends this; nothing is left to do about a failure.
        let _ = tokio::time::timeout(CLOSE_WAIT, self.say_close(code, reason)).await;
    }

    fn poll(&mut self, cx: &mut Context<'_>, recall: &Enrolled) -> Poll<Ended> {
        if let Poll::Ready(why) = recall.poll(cx) {
            return Poll::Ready(Ended::Recalled(why));
        }
        let mut moved = Moved::default();
        let up = self.up.poll_move(cx, &mut self.client, &mut self.surface, &mut moved);
        let down = self.down.poll_move(cx, &mut self.surface, &mut self.client, &mut moved);
        self.moved |= moved.any;
        self.data_frames += u64::from(moved.data_frames);

        // It takes nothing more. What it had said before is delivered first.
        let said_all =
            self.down.kept.is_empty() && (self.down.flow != Flow::Open || down.is_pending());
        if self.surface.is_deaf() && said_all {
            return Poll::Ready(self.surface_gone());
        }
        match (up, down) {
            (Poll::Ready(Err((Side::Reader, _))), _) | (_, Poll::Ready(Err((Side::Writer, _)))) => {
                return Poll::Ready(Ended::ClientGone);
            }
            (Poll::Ready(Err((Side::Writer, _))), _) | (_, Poll::Ready(Err((Side::Reader, _)))) => {
                return Poll::Ready(self.surface_gone());
            }
            (Poll::Ready(Ok(())) | Poll::Pending, Poll::Ready(Ok(())) | Poll::Pending) => {}
        }
        if self.up.flow == Flow::Ending && self.up.kept.is_empty() {
            if ready!(Pin::new(&mut self.surface).poll_shutdown(cx)).is_err() {
                return Poll::Ready(self.surface_gone());
            }
            self.up.flow = Flow::Closed;
        }
        if self.down.flow == Flow::Ending && self.down.kept.is_empty() {
            if ready!(self.client.poll_half_close(cx)).is_err() {
                return Poll::Ready(Ended::ClientGone);
            }
            self.down.flow = Flow::Closed;
        }
        match (self.up.flow, self.down.flow) {
            (Flow::Closed, Flow::Closed) => Poll::Ready(Ended::Finished),
            (Flow::Open, Flow::Open) => Poll::Pending,
            _ => self.poll_half_open(cx),
        }
    }

    fn surface_gone(&self) -> Ended {
        if self.down.close_seen || self.up.close_seen {
            Ended::Finished
        } else {
            Ended::SurfaceGone
        }
    }

    /// One side has ended: the other goes on for as long as something moves.
    fn poll_half_open(&mut self, cx: &mut Context<'_>) -> Poll<Ended> {
        let timer =
            self.half_open.get_or_insert_with(|| Box::pin(tokio::time::sleep(HALF_OPEN_MAX)));
        loop {
            ready!(timer.as_mut().poll(cx));
            if !std::mem::take(&mut self.moved) {
                return Poll::Ready(Ended::Finished);
            }
            timer.as_mut().reset(Instant::now() + HALF_OPEN_MAX);
        }
    }

    /// Puts a close frame behind the last whole frame towards the client, and listens until the
    /// client has read it.
    async fn say_close(&mut self, code: u16, reason: &str) -> io::Result<()> {
        if self.down.flow != Flow::Open && self.down.kept.is_empty() && self.down.close_seen {
            return Ok(());
        }
        std::future::poll_fn(|cx| self.down.poll_kept(cx, &mut self.client)).await?;
        let mut chunk = vec![0; 4096];
        while !self.down.scanner.at_boundary() {
            let mut buffer = ReadBuf::new(&mut chunk);
            std::future::poll_fn(|cx| Pin::new(&mut self.surface).poll_read(cx, &mut buffer))
                .await?;
            if buffer.filled().is_empty() {
                return Ok(());
            }
            let mut end = 0;
            while end < buffer.filled().len() && !self.down.scanner.at_boundary() {
                let seen = self.down.scanner.feed(&buffer.filled()[end..=end]);
                self.down.close_seen |= seen.close;
                end += 1;
            }
            self.client.write_all(&buffer.filled()[..end]).await?;
        }
        if !self.down.close_seen {
            self.client.write_all(&close_frame(code, reason)).await?;
        }
        self.client.shutdown().await
    }
}

/// Sends the close frame of a connection that was upgraded only to say why it is refused, and
/// waits a moment for the client to have read it.
pub(crate) async fn refuse(mut client: ClientIo, frame: Bytes) {
    client.linger();
    let said = async {
        client.write_all(&frame).await?;
        client.shutdown().await
    };
    let _ = tokio::time::timeout(CLOSE_WAIT, said).await;
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use tokio::{
        io::AsyncReadExt,
        net::{TcpListener, TcpStream},
    };
    use uuid::Uuid;
    use wakeful_wire::EnvId;

    use super::*;
    use crate::{
        recall::Recalls,
        stream::{Client, Dialed, Exchange},
    };

    async fn pair() -> (TcpStream, TcpStream) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let one = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
        (one, listener.accept().await.unwrap().0)
    }

    /// A relay, and the far ends of its client and its surface.
    async fn relay() -> (Relay, TcpStream, TcpStream) {
        let (client, far_client) = pair().await;
        let (surface, far_surface) = pair().await;
        let state = Client::new(client.peer_addr().unwrap(), None);
        let client = ClientIo::new(client, Arc::new(state));
        let surface = SurfaceIo::new(Dialed::Tcp(surface), Arc::<Exchange>::default());
        (Relay::new((client, Bytes::new()), (surface, Bytes::new())), far_client, far_surface)
    }

    fn enrolled(recalls: &Arc<Recalls>) -> Enrolled {
        recalls.enroll(EnvId::from_uuid(Uuid::nil()), true)
    }

    /// C14: half open and silent is over after a bound, and not before.
    #[tokio::test]
    async fn a_half_open_connection_ends_after_its_bound_of_silence() {
        let (mut relay, mut client, mut surface) = relay().await;
        let recalls = Arc::<Recalls>::default();
        let watching = tokio::spawn(async move {
            let recall = enrolled(&recalls);
            relay.watch(&recall).await
        });
        client.shutdown().await.unwrap();
        let mut byte = [0; 1];
        assert_eq!(surface.read(&mut byte).await.unwrap(), 0, "the end is passed on");
        tokio::time::pause();
        // Something moves after twenty seconds, so that the bound counts from there.
        tokio::time::advance(HALF_OPEN_MAX * 2 / 3).await;
        tokio::time::resume();
        surface.write_all(b"x").await.unwrap();
        client.read_exact(&mut byte).await.unwrap();
        tokio::time::pause();
        let start = Instant::now();
        assert!(matches!(watching.await.unwrap(), Ended::Finished));
        assert!(start.elapsed() > HALF_OPEN_MAX / 3, "{:?}", start.elapsed());
        assert!(start.elapsed() < HALF_OPEN_MAX * 2, "{:?}", start.elapsed());
    }

    #[tokio::test]
    async fn a_slow_peer_bounds_what_is_read_for_it() {
        let (mut relay, mut client, surface) = relay().await;
        let recalls = Arc::<Recalls>::default();
        let watching = tokio::spawn(async move {
            let recall = enrolled(&recalls);
            relay.watch(&recall).await
        });
        // Nobody reads at the surface: after the kernel's buffers nothing more is taken.
        let chunk = vec![0x42; 1 << 20];
        let mut written = 0;
        while let Ok(Ok(count)) =
            tokio::time::timeout(Duration::from_millis(500), client.write(&chunk)).await
        {
            written += count;
            assert!(written < 256 << 20, "taken without bound");
        }
        drop(surface);
        drop(client);
        assert!(matches!(watching.await.unwrap(), Ended::ClientGone | Ended::SurfaceGone));
    }

    #[test]
    fn an_idle_relay_owns_little() {
        assert!(size_of::<Relay>() <= 384, "{}", size_of::<Relay>());
    }
}
