//! The listening side: one descriptor per address, shared by one current-thread runtime per core.
//!
//! `SO_REUSEPORT` would spread connections too, but any process of the same user could join it and
//! take a share of the visitors; a descriptor cannot be joined. A core keeps what it accepted: its
//! connections, its pool and its view of the gate belong to one thread and need no lock.

use std::{
    collections::HashMap,
    convert::Infallible,
    future::poll_fn,
    io,
    net::{SocketAddr, TcpListener as StdListener},
    pin::pin,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
    task::Poll,
    time::Duration,
};

use hyper::{server::conn::http1, service::service_fn};
use hyper_util::rt::TokioIo;
use parking_lot::Mutex;
use socket2::{Domain, Protocol, Socket, Type};
use tokio::{
    net::{TcpListener, TcpStream},
    runtime,
    sync::{Semaphore, oneshot},
    time::Instant,
};
use tokio_util::sync::CancellationToken;

use crate::{
    core::{self, Core},
    ensure, pool,
    recall::Why,
    serve,
    stream::{Client, ClientIo, Patience, tune},
};

/// Connections that the kernel keeps for the gateway before it accepts them.
const BACKLOG: i32 = 4096;
/// The pause after an accept failed for want of descriptors or memory.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);
/// How often a core closes what has been idle for too long.
const SWEEP: Duration = Duration::from_secs(1);
/// What is read or buffered at once for a client. Larger than any head that is taken.
const CLIENT_BUFFER: usize = 256 << 10;

/// How the gateway's work is spread over threads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Threads {
    /// One current-thread runtime for each of so many cores; 0: for each core there is. Costs 10
    /// to 24 % less CPU per request than work stealing.
    PerCore(usize),
    /// One work-stealing runtime of so many threads; 0: one per core. Steadier where neighbours
    /// hold cores.
    Shared(usize),
}

impl Threads {
    fn count(self) -> usize {
        match self {
            Self::PerCore(0) | Self::Shared(0) => {
                std::thread::available_parallelism().map_or(1, std::num::NonZero::get)
            }
            Self::PerCore(count) | Self::Shared(count) => count,
        }
    }
}

/// Binds listeners, ready to be given to [`Gateway::run`](crate::Gateway::run).
///
/// # Errors
/// An address cannot be bound; the error names it.
pub fn listen(addresses: &[SocketAddr]) -> io::Result<Vec<StdListener>> {
    let bind = |address: &SocketAddr| {
        let socket = Socket::new(Domain::for_address(*address), Type::STREAM, Some(Protocol::TCP))?;
        if address.is_ipv6() {
            socket.set_only_v6(true)?;
        }
        socket.set_reuse_address(true)?;
        socket.bind(&(*address).into())?;
        socket.listen(BACKLOG)?;
        Ok(socket.into())
    };
    addresses
        .iter()
        .map(|address| {
            bind(address).map_err(|error: io::Error| {
                io::Error::new(error.kind(), format!("cannot listen on {address}: {error}"))
            })
        })
        .collect()
}

/// Timeouts and limits of client connections.
#[derive(Debug, Clone)]
pub struct ClientLimits {
    /// How long a request's head may take, from its first byte.
    pub head_timeout: Duration,
    /// How long a connection may wait for its next request.
    pub idle_timeout: Duration,
    /// The most that a request's head may hold, in bytes; beyond, 431.
    pub head_max: usize,
    /// The most connections of all cores; beyond, the kernel's backlog holds them.
    pub connections_max: usize,
    /// How long answers under way get when the gateway is stopped.
    pub drain_timeout: Duration,
}

impl Default for ClientLimits {
    fn default() -> Self {
        Self {
            head_timeout: Duration::from_secs(10),
            idle_timeout: Duration::from_secs(75),
            head_max: 32 << 10,
            connections_max: 65_536,
            drain_timeout: Duration::from_secs(10),
        }
    }
}

/// Serves until `shutdown`, then drains.
pub(crate) async fn run(
    make_core: impl Fn() -> Arc<Core>,
    threads: Threads,
    listeners: Vec<StdListener>,
    shutdown: CancellationToken,
) -> io::Result<()> {
    let mut ends = Vec::new();
    let (runtimes, workers) = match threads {
        Threads::PerCore(_) => (threads.count(), None),
        Threads::Shared(_) => (1, Some(threads.count())),
    };
    for listener in &listeners {
        listener.set_nonblocking(true)?;
    }
    for index in 0..runtimes {
        let core = make_core();
        let listeners =
            listeners.iter().map(StdListener::try_clone).collect::<io::Result<Vec<_>>>()?;
        let limit = core.limits().connections_max.div_ceil(runtimes);
        let runtime = match workers {
            None => runtime::Builder::new_current_thread().enable_all().build()?,
            Some(workers) => runtime::Builder::new_multi_thread()
                .worker_threads(workers)
                .thread_name("gateway-worker")
                .enable_all()
                .build()?,
        };
        let shutdown = shutdown.clone();
        let (ended, end) = oneshot::channel();
        std::thread::Builder::new().name(format!("gateway-{index}")).spawn(move || {
            // A panic drops the sender, which the receiver takes for the end all the same.
            let _ = ended.send(runtime.block_on(serve_core(core, listeners, limit, shutdown)));
        })?;
        ends.push(end);
    }
    drop(listeners);
    for end in ends {
        end.await
            .unwrap_or_else(|_| Err(io::Error::other("a core of the gateway has panicked")))?;
    }
    Ok(())
}

/// The connections of one core, to be told when to end.
#[derive(Debug, Default)]
struct Connections {
    open: Mutex<HashMap<u64, Arc<Client>>>,
    next: AtomicU64,
}

impl Connections {
    fn enter(self: &Arc<Self>, client: &Arc<Client>) -> Entry {
        let id = self.next.fetch_add(1, Relaxed);
        self.open.lock().insert(id, Arc::clone(client));
        Entry { connections: Arc::clone(self), id }
    }

    fn drain(&self) {
        self.open.lock().values().for_each(|client| client.drain());
    }
}

struct Entry {
    connections: Arc<Connections>,
    id: u64,
}

impl Drop for Entry {
    fn drop(&mut self) {
        self.connections.open.lock().remove(&self.id);
    }
}

async fn serve_core(
    core: Arc<Core>,
    listeners: Vec<StdListener>,
    limit: usize,
    shutdown: CancellationToken,
) -> io::Result<()> {
    let connections = Arc::<Connections>::default();
    let permits = Arc::new(Semaphore::new(limit.min(Semaphore::MAX_PERMITS)));
    let mut accepting = Vec::new();
    for listener in listeners {
        let listener = TcpListener::from_std(listener)?;
        accepting.push(tokio::spawn(accept(
            Arc::clone(&core),
            listener,
            Arc::clone(&connections),
            Arc::clone(&permits),
            shutdown.clone(),
        )));
    }
    let sweep = tokio::spawn({
        let core = Arc::clone(&core);
        async move {
            let mut ticks = tokio::time::interval(SWEEP);
            loop {
                pool::sweep(ticks.tick().await);
                let now = core.now();
                ensure::sweep(now);
                core::sweep(now);
            }
        }
    });
    shutdown.cancelled().await;
    for task in accepting {
        let _ = task.await;
    }
    core.tasks().close();
    connections.drain();
    core.recalls().recall_all(Why::Leaving);
    let _ = tokio::time::timeout(core.limits().drain_timeout, core.tasks().wait()).await;
    sweep.abort();
    Ok(())
}

async fn accept(
    core: Arc<Core>,
    listener: TcpListener,
    connections: Arc<Connections>,
    permits: Arc<Semaphore>,
    shutdown: CancellationToken,
) {
    loop {
        let accepted = async {
            // The semaphore is never closed.
            let permit = Arc::clone(&permits).acquire_owned().await.ok();
            (permit, listener.accept().await)
        };
        let (permit, accepted) = tokio::select! {
            () = shutdown.cancelled() => return,
            accepted = accepted => accepted,
        };
        match accepted {
            Ok((stream, peer)) => {
                core.counters().connection();
                let client = Arc::new(Client::new(peer, permit));
                let connections = Arc::clone(&connections);
                core.tasks().spawn(drive(Arc::clone(&core), stream, client, connections));
            }
            Err(error) if is_of_one_connection(&error) => {}
            Err(error) => {
                tracing::warn!(%error, "cannot accept a connection");
                tokio::time::sleep(ACCEPT_PAUSE).await;
            }
        }
    }
}

/// Whether only the one connection failed, before it was accepted.
fn is_of_one_connection(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::ConnectionAborted
            | io::ErrorKind::ConnectionReset
            | io::ErrorKind::ConnectionRefused
            | io::ErrorKind::Interrupted
    )
}

/// Carries one client connection to its end, or to its upgrade.
async fn drive(
    core: Arc<Core>,
    stream: TcpStream,
    client: Arc<Client>,
    connections: Arc<Connections>,
) {
    if tune(&stream).is_err() {
        return;
    }
    let limits = core.limits();
    let (head_timeout, idle_timeout) = (limits.head_timeout, limits.idle_timeout);
    let _entry = connections.enter(&client);
    let io = TokioIo::new(ClientIo::new(stream, Arc::clone(&client)));
    let mut builder = http1::Builder::new();
    builder.max_header_size(limits.head_max).max_buf_size(CLIENT_BUFFER);
    let service = service_fn({
        let client = Arc::clone(&client);
        move |request| {
            let (core, client) = (Arc::clone(&core), Arc::clone(&client));
            async move { Ok::<_, Infallible>(serve::serve(core, client, request).await) }
        }
    });
    let mut connection = pin!(builder.serve_connection(io, service).with_upgrades());
    // One timer for the life of the connection; requests only leave stamps for it.
    let mut timer = pin!(tokio::time::sleep(head_timeout));
    let mut registered = false;
    let mut draining = false;
    poll_fn(|cx| {
        if !registered {
            registered = true;
            client.register(cx);
        }
        if client.is_draining() && !draining {
            draining = true;
            connection.as_mut().graceful_shutdown();
        }
        loop {
            // Its error is the client's doing, or was answered already.
            if connection.as_mut().poll(cx).is_ready() {
                return Poll::Ready(());
            }
            if timer.as_mut().poll(cx).is_pending() {
                return Poll::Pending;
            }
            let again = match client.patience(head_timeout, idle_timeout) {
                Patience::Left(left) => left,
                Patience::IdleOver => {
                    connection.as_mut().graceful_shutdown();
                    head_timeout
                }
                Patience::HeadOver => return Poll::Ready(()),
            };
            timer.as_mut().reset(Instant::now() + again);
        }
    })
    .await;
}
