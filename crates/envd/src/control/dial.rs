//! Connecting to a surface, and handing the connected descriptor over.

use std::{
    collections::HashMap, io, io::IoSlice, mem::MaybeUninit, os::fd::AsFd, sync::Arc,
    time::Duration,
};

use parking_lot::Mutex;
use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags};
use tokio::{
    io::Interest,
    net::{TcpStream, UnixStream},
};
use wakeful_wire::sandbox::{Refusal, Reply};

use super::line;
use crate::probe::connect;

/// How long a connection may take, waiting for its turn included.
const CONNECT_TIME: Duration = Duration::from_secs(5);
/// How long the first and the longest try take. On loopback a handshake is over when `connect`
/// returns; one that is not has met a full backlog, which the kernel would ask again only after
/// 1 s, 3 s and 7 s.
const TRY_TIME: (Duration, Duration) = (Duration::from_millis(10), Duration::from_millis(200));
/// How many wait for one port. Further ones are refused.
const WAITING_MAX: usize = 4096;

/// Connects to ports, one connection at a time for each and in the order of asking.
///
/// With several handshakes at once a full backlog can take the last step of one away as well: it
/// is connected here and unknown to the program, and whoever writes to it waits in vain.
#[derive(Debug, Default)]
pub(super) struct Dials {
    ports: Mutex<HashMap<u16, Waiting>>,
}

#[derive(Debug, Default)]
struct Waiting {
    turn: Arc<tokio::sync::Mutex<()>>,
    count: usize,
}

/// A place in the queue of a port.
#[derive(Debug)]
struct Place<'a> {
    dials: &'a Dials,
    port: u16,
    turn: Arc<tokio::sync::Mutex<()>>,
}

impl Dials {
    /// Connects to a surface's port.
    ///
    /// # Errors
    /// [`Refusal::Connect`] when nothing listens, when no connection came about in
    /// [`CONNECT_TIME`], or at once when [`WAITING_MAX`] others wait.
    pub(super) async fn dial(&self, port: u16) -> Result<TcpStream, Refusal> {
        self.dial_within(port, CONNECT_TIME).await
    }

    async fn dial_within(&self, port: u16, patience: Duration) -> Result<TcpStream, Refusal> {
        let Some(place) = self.queue(port) else {
            let reason = format!("{WAITING_MAX} connections are waited for already");
            return Err(Refusal::Connect { reason });
        };
        let connecting = async {
            let _turn = place.turn.lock().await;
            insist(port).await
        };
        match tokio::time::timeout(patience, connecting).await {
            Ok(Ok(stream)) => Ok(stream),
            Ok(Err(error)) => Err(Refusal::Connect { reason: error.to_string() }),
            Err(_) => Err(Refusal::Connect {
                reason: format!("no connection within {} s", patience.as_secs()),
            }),
        }
    }

    fn queue(&self, port: u16) -> Option<Place<'_>> {
        let mut ports = self.ports.lock();
        let waiting = ports.entry(port).or_default();
        if waiting.count >= WAITING_MAX {
            return None;
        }
        waiting.count += 1;
        Some(Place { dials: self, port, turn: Arc::clone(&waiting.turn) })
    }
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        let mut ports = self.dials.ports.lock();
        if let Some(waiting) = ports.get_mut(&self.port) {
            waiting.count -= 1;
            if waiting.count == 0 {
                ports.remove(&self.port);
            }
        }
    }
}

/// Tries until the backlog has room.
async fn insist(port: u16) -> io::Result<TcpStream> {
    let mut time = TRY_TIME.0;
    loop {
        match tokio::time::timeout(time, connect(port)).await {
            Ok(connected) => return connected,
            Err(_) => time = (time * 2).min(TRY_TIME.1),
        }
    }
}

/// Sends `reply` with the descriptor. The descriptor is non-blocking, which the receiver shares.
pub(super) async fn pass(
    stream: &UnixStream,
    descriptor: &impl AsFd,
    reply: &Reply,
) -> io::Result<()> {
    let line = line::encode(reply)?;
    let sent = stream
        .async_io(Interest::WRITABLE, || {
            let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
            let mut ancillary = SendAncillaryBuffer::new(&mut space);
            let fds = [descriptor.as_fd()];
            if !ancillary.push(SendAncillaryMessage::ScmRights(&fds)) {
                return Err(io::Error::other("no room for a descriptor"));
            }
            Ok(rustix::net::sendmsg(
                stream,
                &[IoSlice::new(&line)],
                &mut ancillary,
                SendFlags::NOSIGNAL,
            )?)
        })
        .await?;
    // The descriptor travels with the first byte; a short write leaves only text to send.
    let mut rest = &line[sent..];
    while !rest.is_empty() {
        stream.writable().await?;
        match stream.try_write(rest) {
            Ok(count) => rest = &rest[count..],
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::{
        collections::HashSet,
        io::{Read, Write},
        net::{Ipv4Addr, SocketAddr, TcpListener},
    };

    use rustix::net::{AddressFamily, SocketType};
    use tokio::{
        io::{AsyncReadExt, AsyncWriteExt},
        task::JoinSet,
    };

    use super::*;

    const PATIENCE: Duration = Duration::from_secs(60);

    /// A listener with a backlog of one, and its port.
    fn narrow() -> (TcpListener, u16) {
        let socket = rustix::net::socket(AddressFamily::INET, SocketType::STREAM, None).unwrap();
        rustix::net::bind(&socket, &SocketAddr::from((Ipv4Addr::LOCALHOST, 0))).unwrap();
        rustix::net::listen(&socket, 1).unwrap();
        let listener = TcpListener::from(socket);
        let port = listener.local_addr().unwrap().port();
        (listener, port)
    }

    /// Answers each connection's first byte, one after the other and with a pause in between.
    fn answer(listener: TcpListener) {
        std::thread::spawn(move || {
            for mut stream in listener.incoming().flatten() {
                let mut byte = [0];
                if stream.read_exact(&mut byte).is_ok() {
                    let _left = stream.write_all(&byte);
                }
                let pause = rustix::time::Timespec { tv_sec: 0, tv_nsec: 1_000_000 };
                let _interrupted = rustix::thread::nanosleep(&pause);
            }
        });
    }

    /// How many connections to `port` wait for the second step of their handshake: state 2
    /// (`SYN_SENT`) of `/proc/net/tcp`, which can show one twice while others come and go.
    fn half_open(port: u16) -> usize {
        let table = std::fs::read_to_string("/proc/net/tcp").unwrap();
        let wanted = format!("0100007F:{port:04X}");
        let waiting = table.lines().filter_map(|line| {
            let mut fields = line.split_ascii_whitespace().skip(1);
            let local = fields.next()?;
            fields.take(2).eq([wanted.as_str(), "02"]).then_some(local)
        });
        waiting.collect::<HashSet<_>>().len()
    }

    #[tokio::test]
    async fn a_herd_reaches_a_program_with_a_small_backlog_without_a_loss() {
        let (listener, port) = narrow();
        answer(listener);
        let dials = Arc::new(Dials::default());
        let mut herd = JoinSet::new();
        for number in 0..200_u8 {
            let dials = Arc::clone(&dials);
            herd.spawn(async move {
                let mut stream = dials.dial_within(port, PATIENCE).await.unwrap();
                stream.write_all(&[number]).await.unwrap();
                let mut byte = [0];
                let answered = stream.read_exact(&mut byte);
                tokio::time::timeout(PATIENCE, answered).await.unwrap().unwrap();
                assert_eq!(byte, [number]);
            });
        }
        while let Some(answered) = herd.join_next().await {
            answered.unwrap();
        }
        assert!(dials.ports.lock().is_empty(), "nothing of a port is left");
    }

    #[tokio::test]
    async fn a_port_is_asked_for_one_connection_at_a_time_in_order() {
        let (listener, port) = narrow();
        let mut fillers = Vec::new();
        while let Ok(filler) = tokio::time::timeout(TRY_TIME.1, connect(port)).await {
            fillers.push(filler.unwrap());
        }
        let dials = Arc::new(Dials::default());
        let (arrived, mut order) = tokio::sync::mpsc::unbounded_channel();
        let mut herd = JoinSet::new();
        for number in 0..20 {
            let (dials, arrived) = (Arc::clone(&dials), arrived.clone());
            herd.spawn(async move {
                let mut stream = dials.dial_within(port, PATIENCE).await.unwrap();
                arrived.send(number).unwrap();
                stream.write_all(b"x").await.unwrap();
                stream.read_exact(&mut [0]).await.unwrap();
            });
        }
        let mut seen = 0;
        let until = tokio::time::Instant::now() + PATIENCE;
        while seen < 20 {
            assert!(tokio::time::Instant::now() < until);
            tokio::time::sleep(Duration::from_millis(1)).await;
            let now = half_open(port);
            assert!(now <= 1, "{now} at once");
            seen += now;
        }
        drop(fillers);
        answer(listener);
        for number in 0..20 {
            assert_eq!(order.recv().await, Some(number));
        }
        while let Some(answered) = herd.join_next().await {
            answered.unwrap();
        }
    }

    #[tokio::test]
    async fn a_full_queue_and_a_closed_port_are_refused_at_once() {
        let (listener, port) = narrow();
        let dials = Dials::default();
        let mut places: Vec<_> = (0..WAITING_MAX).map(|_| dials.queue(port).unwrap()).collect();
        let refused = dials.dial_within(port, PATIENCE).await;
        assert!(matches!(refused, Err(Refusal::Connect { .. })), "{refused:?}");
        places.pop();
        dials.dial_within(port, PATIENCE).await.unwrap();
        drop(listener);
        let refused = dials.dial_within(port, PATIENCE).await;
        assert!(matches!(refused, Err(Refusal::Connect { .. })), "{refused:?}");
    }
}
