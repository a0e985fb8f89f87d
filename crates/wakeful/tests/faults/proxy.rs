//! What lies between a client and its host: a relay that can stop, cut, refuse and count.

use std::sync::{
    Arc,
    atomic::{AtomicU64, AtomicUsize, Ordering},
};

use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpListener, TcpStream},
    sync::watch,
};

/// What the way does to what goes over it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Way {
    /// Passes everything on.
    Open,
    /// Takes nothing on from connections that are open, without a word; new ones pass.
    OldOnesHang(u64),
    /// Refuses new connections, and cuts those that are open.
    Cut,
}

/// A relay before a host.
pub(crate) struct Proxy {
    address: String,
    way: watch::Sender<Way>,
    counts: Arc<Counts>,
    task: tokio::task::JoinHandle<()>,
}

#[derive(Debug, Default)]
struct Counts {
    connections: AtomicUsize,
    number: AtomicU64,
    bytes: AtomicU64,
}

impl Proxy {
    pub(crate) async fn start(host: String) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = format!("http://{}", listener.local_addr().unwrap());
        let (way, ways) = watch::channel(Way::Open);
        let counts = Arc::new(Counts::default());
        let task = tokio::spawn(accept(listener, host, ways, Arc::clone(&counts)));
        Self { address, way, counts, task }
    }

    /// Where clients go.
    pub(crate) fn address(&self) -> String {
        self.address.clone()
    }

    /// Does this from now on.
    pub(crate) fn set(&self, way: Way) {
        self.way.send_replace(way);
    }

    /// Lets what is open hang without a word, and passes new connections.
    pub(crate) fn hang_old_ones(&self) {
        self.set(Way::OldOnesHang(self.counts.number.load(Ordering::SeqCst)));
    }

    /// How many connections there have been.
    pub(crate) fn connections(&self) -> usize {
        self.counts.connections.load(Ordering::SeqCst)
    }

    /// How many bytes went over it, both ways together.
    pub(crate) fn bytes(&self) -> u64 {
        self.counts.bytes.load(Ordering::SeqCst)
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn accept(
    listener: TcpListener,
    host: String,
    ways: watch::Receiver<Way>,
    counts: Arc<Counts>,
) {
    while let Ok((client, _)) = listener.accept().await {
        counts.connections.fetch_add(1, Ordering::SeqCst);
        let number = counts.number.fetch_add(1, Ordering::SeqCst) + 1;
        if *ways.borrow() == Way::Cut {
            continue;
        }
        tokio::spawn(relay(client, host.clone(), number, ways.clone(), Arc::clone(&counts)));
    }
}

async fn relay(
    client: TcpStream,
    host: String,
    number: u64,
    ways: watch::Receiver<Way>,
    counts: Arc<Counts>,
) {
    let mut cut = ways.clone();
    let relaying = async {
        passes(&mut ways.clone(), number).await;
        let Ok(host) = TcpStream::connect(host).await else { return };
        let (client_in, client_out) = client.into_split();
        let (host_in, host_out) = host.into_split();
        tokio::join!(
            pump(client_in, host_out, number, ways.clone(), &counts),
            pump(host_in, client_out, number, ways.clone(), &counts),
        );
    };
    tokio::select! {
        () = relaying => {}
        _ = cut.wait_for(|way| *way == Way::Cut) => {}
    }
}

/// Waits until the way lets this connection pass.
async fn passes(ways: &mut watch::Receiver<Way>, number: u64) {
    let open = |way: &Way| match way {
        Way::Open => true,
        Way::OldOnesHang(last) => number > *last,
        Way::Cut => false,
    };
    let _gone = ways.wait_for(open).await;
}

async fn pump(
    mut from: tokio::net::tcp::OwnedReadHalf,
    mut to: tokio::net::tcp::OwnedWriteHalf,
    number: u64,
    mut ways: watch::Receiver<Way>,
    counts: &Counts,
) {
    let mut buffer = vec![0; 16 * 1024];
    while let Ok(read) = from.read(&mut buffer).await {
        if read == 0 {
            break;
        }
        passes(&mut ways, number).await;
        counts.bytes.fetch_add(read as u64, Ordering::SeqCst);
        if to.write_all(&buffer[..read]).await.is_err() {
            return;
        }
    }
    let _gone = to.shutdown().await;
}
