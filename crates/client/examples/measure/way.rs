//! What lies between clients and their host: it counts.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use parking_lot::Mutex;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpListener, TcpStream},
};

/// What went over it.
#[derive(Debug, Default)]
pub(crate) struct Counts {
    pub(crate) to_host: AtomicU64,
    pub(crate) to_client: AtomicU64,
    /// Answers by their status, as far as one begins a segment.
    pub(crate) upgraded: AtomicU64,
    pub(crate) whole: AtomicU64,
    pub(crate) unchanged: AtomicU64,
    /// Lists and threads that were sent whole over a socket.
    pub(crate) snapshots: AtomicU64,
    /// When connections came.
    pub(crate) came: Mutex<Vec<Instant>>,
}

impl Counts {
    pub(crate) fn bytes(&self) -> u64 {
        self.to_host.load(Ordering::Relaxed) + self.to_client.load(Ordering::Relaxed)
    }

    /// The most connections within a second.
    pub(crate) fn peak(&self, since: Instant) -> usize {
        let came: Vec<_> = self.came.lock().iter().copied().filter(|at| *at >= since).collect();
        let within = |from: &Instant| {
            came.iter().filter(|at| *at >= from && **at - *from < Duration::from_secs(1)).count()
        };
        came.iter().map(within).max().unwrap_or_default()
    }

    pub(crate) fn connections(&self, since: Instant) -> usize {
        self.came.lock().iter().filter(|at| **at >= since).count()
    }

    fn answered(&self, bytes: &[u8]) {
        for (begins, count) in [
            (&b"HTTP/1.1 101"[..], &self.upgraded),
            (b"HTTP/1.1 200", &self.whole),
            (b"HTTP/1.1 304", &self.unchanged),
        ] {
            if bytes.starts_with(begins) {
                count.fetch_add(1, Ordering::Relaxed);
            }
        }
        let snapshot = b"\"type\":\"snapshot\"";
        if bytes.windows(snapshot.len()).any(|window| window == snapshot) {
            self.snapshots.fetch_add(1, Ordering::Relaxed);
        }
    }
}

/// Begins to relay for a host, and says where.
pub(crate) async fn relay(host: String) -> (String, Arc<Counts>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    let counts = Arc::new(Counts::default());
    let counting = Arc::clone(&counts);
    tokio::spawn(async move {
        while let Ok((client, _)) = listener.accept().await {
            counting.came.lock().push(Instant::now());
            tokio::spawn(carry(client, host.clone(), Arc::clone(&counting)));
        }
    });
    (address, counts)
}

async fn carry(client: TcpStream, host: String, counts: Arc<Counts>) {
    let Ok(host) = TcpStream::connect(host).await else { return };
    let _at_once = (client.set_nodelay(true), host.set_nodelay(true));
    let (mut from_client, mut to_client) = client.into_split();
    let (mut from_host, mut to_host) = host.into_split();
    let up = async {
        let mut buffer = vec![0; 8 * 1024];
        while let Ok(read @ 1..) = from_client.read(&mut buffer).await {
            counts.to_host.fetch_add(read as u64, Ordering::Relaxed);
            if to_host.write_all(&buffer[..read]).await.is_err() {
                break;
            }
        }
        let _gone = to_host.shutdown().await;
    };
    let down = async {
        let mut buffer = vec![0; 8 * 1024];
        while let Ok(read @ 1..) = from_host.read(&mut buffer).await {
            counts.to_client.fetch_add(read as u64, Ordering::Relaxed);
            counts.answered(&buffer[..read]);
            if to_client.write_all(&buffer[..read]).await.is_err() {
                break;
            }
        }
        let _gone = to_client.shutdown().await;
    };
    tokio::join!(up, down);
}
