//! A connection to a surface of one sandbox, and of no other.

use std::{
    io::{self, IoSliceMut},
    mem::MaybeUninit,
    net::SocketAddr,
    os::fd::OwnedFd,
    path::Path,
    time::Duration,
};

use rustix::net::{
    self, AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, ReturnFlags,
    SendFlags, SocketAddrUnix, SocketFlags, SocketType, sockopt,
};
use tokio::{
    io::Interest,
    net::{TcpStream, UnixStream},
    time::Instant,
};
use wakeful_wire::{
    SurfaceName,
    gate::Upstream,
    sandbox::{Ask, AskKind, Refusal, Reply},
};

use crate::stream::{Dialed, tune};

/// How long a connection may take in all, the answer of `envd` included.
pub(crate) const DIAL_TIMEOUT: Duration = Duration::from_secs(5);
/// The longest line that is taken as the answer to a dial.
const REPLY_MAX: usize = 8 << 10;
/// First and longest pause before a full backlog is tried again.
const BACKLOG_PAUSE: (Duration, Duration) = (Duration::from_millis(1), Duration::from_millis(50));

/// Why there is no connection. In each case not one byte of a request has left.
#[derive(Debug, thiserror::Error)]
pub(crate) enum DialError {
    /// `envd` answers, and refuses.
    #[error("the environment server refused")]
    Refused(Refusal),
    /// The connection, or the one to `envd`, failed.
    #[error("no connection")]
    Io(#[source] io::Error),
    /// It took longer than [`DIAL_TIMEOUT`].
    #[error("no connection in time")]
    TimedOut,
    /// The answer of `envd` is not one.
    #[error("the environment server's answer is not one: {0}")]
    Answer(&'static str),
}

/// Connects to a surface.
///
/// # Errors
/// See [`DialError`]; within [`DIAL_TIMEOUT`] in every case.
pub(crate) async fn dial(upstream: &Upstream, surface: &SurfaceName) -> Result<Dialed, DialError> {
    let deadline = Instant::now() + DIAL_TIMEOUT;
    tokio::time::timeout_at(deadline, async {
        match upstream {
            Upstream::Tcp { address, .. } => tcp(*address).await,
            Upstream::Broker { socket, secret, .. } => broker(socket, secret, surface).await,
        }
    })
    .await
    .unwrap_or(Err(DialError::TimedOut))
}

async fn tcp(address: SocketAddr) -> Result<Dialed, DialError> {
    let stream = TcpStream::connect(address).await.map_err(DialError::Io)?;
    tune(&stream).map_err(DialError::Io)?;
    Ok(Dialed::Tcp(stream))
}

async fn broker(socket: &Path, secret: &str, surface: &SurfaceName) -> Result<Dialed, DialError> {
    let ask = Ask { secret: secret.to_owned(), ask: AskKind::Dial { surface: surface.clone() } };
    let mut line = serde_json::to_vec(&ask).map_err(|error| DialError::Io(error.into()))?;
    line.push(b'\n');
    let (control, said) = connect(socket, &line).await.map_err(DialError::Io)?;
    send(&control, &line[said..]).await.map_err(DialError::Io)?;
    let (reply, descriptor) = receive(&control).await?;
    match (reply, descriptor) {
        (Reply::Done, Some(descriptor)) => adopt(descriptor),
        (Reply::Done, None) => Err(DialError::Answer("no descriptor came with it")),
        (Reply::Refused(refusal), _) => Err(DialError::Refused(refusal)),
        (Reply::Status(_) | Reply::Drained { .. } | Reply::Taken(_), _) => {
            Err(DialError::Answer("of another kind"))
        }
    }
}

/// Connects to a control socket and says `line`, or as much of it as there is room for, which is
/// returned as well. A full backlog means that many ask at once, not that nobody answers, so it is
/// tried again until the caller's deadline.
///
/// Connecting and speaking are one step, with no wait between them: `envd` drives out who is silent
/// when many connect, and of a herd on one core all would have connected before the first one spoke.
async fn connect(path: &Path, line: &[u8]) -> io::Result<(UnixStream, usize)> {
    let address = SocketAddrUnix::new(path)?;
    let mut pause = BACKLOG_PAUSE.0;
    loop {
        let socket = net::socket_with(
            AddressFamily::UNIX,
            SocketType::STREAM,
            SocketFlags::CLOEXEC | SocketFlags::NONBLOCK,
            None,
        )?;
        match net::connect(&socket, &address) {
            Ok(()) => {
                let said = match net::send(&socket, line, SendFlags::NOSIGNAL) {
                    Ok(said) => said,
                    Err(rustix::io::Errno::AGAIN | rustix::io::Errno::INTR) => 0,
                    Err(errno) => return Err(errno.into()),
                };
                return Ok((UnixStream::from_std(socket.into())?, said));
            }
            Err(rustix::io::Errno::AGAIN) => {
                tokio::time::sleep(pause).await;
                pause = (pause * 2).min(BACKLOG_PAUSE.1);
            }
            Err(rustix::io::Errno::INTR) => {}
            Err(errno) => return Err(errno.into()),
        }
    }
}

async fn send(control: &UnixStream, mut bytes: &[u8]) -> io::Result<()> {
    while !bytes.is_empty() {
        control.writable().await?;
        match control.try_write(bytes) {
            Ok(count) => bytes = &bytes[count..],
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Reads one line, and the descriptor that travels with it.
async fn receive(control: &UnixStream) -> Result<(Reply, Option<OwnedFd>), DialError> {
    let mut line = Vec::new();
    let mut descriptor = None;
    loop {
        let mut chunk = [0; 1024];
        let (count, passed, truncated) = control
            .async_io(Interest::READABLE, || receive_some(control, &mut chunk))
            .await
            .map_err(DialError::Io)?;
        if truncated || (passed.is_some() && descriptor.is_some()) {
            return Err(DialError::Answer("more than one descriptor"));
        }
        descriptor = descriptor.or(passed);
        if count == 0 {
            return Err(DialError::Answer("it ended early"));
        }
        line.extend_from_slice(&chunk[..count]);
        if let Some(end) = line.iter().position(|byte| *byte == b'\n') {
            let reply = serde_json::from_slice(&line[..end])
                .map_err(|_| DialError::Answer("not the JSON of a reply"))?;
            return Ok((reply, descriptor));
        }
        if line.len() > REPLY_MAX {
            return Err(DialError::Answer("too long"));
        }
    }
}

fn receive_some(
    control: &UnixStream,
    chunk: &mut [u8],
) -> io::Result<(usize, Option<OwnedFd>, bool)> {
    // Room for one: the kernel closes what does not fit, and says so.
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut ancillary = RecvAncillaryBuffer::new(&mut space);
    let message = net::recvmsg(
        control,
        &mut [IoSliceMut::new(chunk)],
        &mut ancillary,
        RecvFlags::CMSG_CLOEXEC | RecvFlags::DONTWAIT,
    )?;
    let mut descriptor = None;
    let mut more = message.flags.contains(ReturnFlags::CTRUNC);
    for passed in ancillary.drain() {
        if let RecvAncillaryMessage::ScmRights(descriptors) = passed {
            for passed in descriptors {
                more |= descriptor.is_some();
                descriptor = Some(passed);
            }
        }
    }
    Ok((message.bytes, descriptor, more))
}

/// Takes a passed descriptor for what it must be: a connected stream socket. Anything else (a
/// file, a listening or datagram socket, a pipe) is closed at once.
fn adopt(descriptor: OwnedFd) -> Result<Dialed, DialError> {
    const NOT: DialError = DialError::Answer("the descriptor is not a connected stream socket");
    let kind = sockopt::socket_type(&descriptor).map_err(|_| NOT)?;
    let listens = sockopt::socket_acceptconn(&descriptor).map_err(|_| NOT)?;
    let family = sockopt::socket_domain(&descriptor).map_err(|_| NOT)?;
    if kind != SocketType::STREAM || listens {
        return Err(NOT);
    }
    net::getpeername(&descriptor).map_err(|_| NOT)?;
    rustix::io::ioctl_fionbio(&descriptor, true).map_err(|errno| DialError::Io(errno.into()))?;
    match family {
        AddressFamily::INET | AddressFamily::INET6 => {
            let stream = TcpStream::from_std(descriptor.into()).map_err(DialError::Io)?;
            tune(&stream).map_err(DialError::Io)?;
            Ok(Dialed::Tcp(stream))
        }
        AddressFamily::UNIX => {
            UnixStream::from_std(descriptor.into()).map(Dialed::Unix).map_err(DialError::Io)
        }
        _ => Err(NOT),
    }
}

#[cfg(test)]
mod tests {
    use std::{
        io::{BufRead, BufReader, IoSlice, Write},
        os::{fd::AsFd, unix::net::UnixListener},
        path::PathBuf,
        thread::JoinHandle,
    };

    use futures::FutureExt as _;
    use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage};
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    use super::*;

    fn reply(stream: &std::os::unix::net::UnixStream, reply: &Reply, pass: &[&OwnedFd]) {
        let mut line = serde_json::to_vec(reply).unwrap();
        line.push(b'\n');
        let borrowed: Vec<_> = pass.iter().map(|fd| fd.as_fd()).collect();
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(2))];
        let mut ancillary = SendAncillaryBuffer::new(&mut space);
        if !borrowed.is_empty() {
            assert!(ancillary.push(SendAncillaryMessage::ScmRights(&borrowed)));
        }
        net::sendmsg(stream, &[IoSlice::new(&line)], &mut ancillary, SendFlags::empty()).unwrap();
    }

    /// Plays `envd` for one connection.
    fn envd(
        answer: impl FnOnce(&std::os::unix::net::UnixStream, Ask) + Send + 'static,
    ) -> (tempfile::TempDir, PathBuf, JoinHandle<()>) {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("envd.sock");
        let listener = UnixListener::bind(&path).unwrap();
        let thread = std::thread::spawn(move || {
            let (stream, _) = listener.accept().unwrap();
            let mut line = String::new();
            BufReader::new(&stream).read_line(&mut line).unwrap();
            answer(&stream, serde_json::from_str(&line).unwrap());
        });
        (dir, path, thread)
    }

    async fn ask(path: PathBuf) -> Result<Dialed, DialError> {
        let upstream = Upstream::Broker {
            socket: path,
            secret: "s3cret".to_owned(),
            authority: "127.0.0.1:1".to_owned(),
            basic: None,
        };
        dial(&upstream, &SurfaceName::app()).await
    }

    #[tokio::test]
    async fn a_passed_connection_is_used() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let (_dir, path, thread) = envd(move |stream, ask| {
            assert_eq!(ask.secret, "s3cret");
            assert_eq!(ask.ask, AskKind::Dial { surface: SurfaceName::app() });
            let connected = std::net::TcpStream::connect(address).unwrap();
            reply(stream, &Reply::Done, &[&connected.into()]);
        });
        let Ok(Dialed::Tcp(mut stream)) = ask(path).await else { panic!("no connection") };
        thread.join().unwrap();
        let (mut peer, _) = listener.accept().unwrap();
        peer.write_all(b"hi").unwrap();
        let mut two = [0; 2];
        stream.read_exact(&mut two).await.unwrap();
        assert_eq!(&two, b"hi");
        assert!(stream.nodelay().unwrap());
        stream.shutdown().await.unwrap();
    }

    #[tokio::test]
    async fn whatever_is_not_a_connected_stream_socket_is_refused() {
        let make: [fn() -> Vec<OwnedFd>; 6] = [
            Vec::new,
            || vec![std::fs::File::open("/dev/null").unwrap().into()],
            || vec![std::net::TcpListener::bind("127.0.0.1:0").unwrap().into()],
            || vec![std::net::UdpSocket::bind("127.0.0.1:0").unwrap().into()],
            || vec![net::socket(AddressFamily::INET, SocketType::STREAM, None).unwrap()],
            || {
                let (a, b) = std::os::unix::net::UnixStream::pair().unwrap();
                vec![a.into(), b.into()]
            },
        ];
        for (row, make) in make.into_iter().enumerate() {
            let (_dir, path, thread) = envd(move |stream, _| {
                let passed = make();
                reply(stream, &Reply::Done, &passed.iter().collect::<Vec<_>>());
            });
            let result = ask(path).await;
            assert!(matches!(result, Err(DialError::Answer(_))), "{row}: {result:?}");
            thread.join().unwrap();
        }
    }

    #[tokio::test]
    async fn a_refusal_says_why() {
        let (_dir, path, thread) =
            envd(|stream, _| reply(stream, &Reply::Refused(Refusal::NotReady), &[]));
        let result = ask(path).await;
        assert!(matches!(result, Err(DialError::Refused(Refusal::NotReady))), "{result:?}");
        thread.join().unwrap();
    }

    #[tokio::test]
    async fn an_answer_that_is_none_is_refused() {
        for bytes in [&b""[..], b"{}\n", b"[[[[\n", b"no end"] {
            let (_dir, path, thread) = envd(|mut stream, _| stream.write_all(bytes).unwrap());
            let result = ask(path).await;
            assert!(matches!(result, Err(DialError::Answer(_))), "{result:?}");
            thread.join().unwrap();
        }
    }

    #[tokio::test]
    async fn a_full_backlog_is_tried_again() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("full.sock");
        let socket = net::socket(AddressFamily::UNIX, SocketType::STREAM, None).unwrap();
        net::bind(&socket, &SocketAddrUnix::new(&path).unwrap()).unwrap();
        net::listen(&socket, 0).unwrap();
        let listener = UnixListener::from(socket);
        // A backlog of 0 still takes one.
        let first = std::os::unix::net::UnixStream::connect(&path).unwrap();
        let waiting = tokio::spawn({
            let path = path.clone();
            async move { connect(&path, b"").await }
        });
        for _ in 0..5 {
            tokio::time::sleep(BACKLOG_PAUSE.0).await;
            assert!(!waiting.is_finished());
        }
        drop(listener.accept().unwrap());
        waiting.await.unwrap().unwrap();
        drop(first);
    }

    /// A socket that is silent after it was accepted may be driven out.
    #[tokio::test]
    async fn a_connection_has_spoken_before_anybody_else_gets_a_turn() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("envd.sock");
        let listener = UnixListener::bind(&path).unwrap();
        let mut asking = Box::pin(ask(path));
        assert!(asking.as_mut().now_or_never().is_none(), "nothing is answered yet");
        let (stream, _) = listener.accept().unwrap();
        stream.set_nonblocking(true).unwrap();
        let mut line = String::new();
        BufReader::new(&stream).read_line(&mut line).expect("the line is there");
        let said: Ask = serde_json::from_str(&line).unwrap();
        assert_eq!(said.ask, AskKind::Dial { surface: SurfaceName::app() });
        reply(&stream, &Reply::Refused(Refusal::NotReady), &[]);
        let result = asking.await;
        assert!(matches!(result, Err(DialError::Refused(Refusal::NotReady))), "{result:?}");
    }

    #[tokio::test]
    async fn nobody_at_the_socket_is_an_error_at_once() {
        let dir = tempfile::tempdir().unwrap();
        let result = ask(dir.path().join("none.sock")).await;
        assert!(matches!(result, Err(DialError::Io(_))), "{result:?}");
    }
}
