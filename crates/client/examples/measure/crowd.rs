//! Many clients of one host that is killed and started again.

use std::{
    sync::atomic::Ordering::Relaxed,
    time::{Duration, Instant},
};

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use tokio::time::sleep;
use wakeful_client::runtime::Client;
use wakeful_wire::HostId;

use crate::{
    host::{Desk, Server, is_live},
    process::used,
    way,
};

/// The pause between two looks at everybody.
const LOOK: Duration = Duration::from_millis(100);

pub(crate) async fn measure(clients: usize) {
    // Each client has its socket and a kept connection for requests, with two ends each.
    let most = getrlimit(Resource::Nofile).maximum;
    setrlimit(Resource::Nofile, Rlimit { current: most, maximum: most }).unwrap();
    let mut server = Server::start();
    let (address, counts) = way::relay(server.address.clone()).await;
    let home = tempfile::tempdir().unwrap();
    let (mut desks, mut all, mut host) = (Vec::new(), Vec::new(), None);
    let begun = Instant::now();
    for number in 0..clients {
        let directory = home.path().join(number.to_string());
        std::fs::create_dir(&directory).unwrap();
        let desk = Desk::new(&directory);
        host = Some(server.pair(&desk, &address).await);
        desks.push(desk);
    }
    println!("{clients} clients paired in {:.1?}", begun.elapsed());
    let begun = Instant::now();
    for desk in desks {
        all.push(desk.start(None).await);
    }
    let host = host.expect("at least one client");
    everybody(&all, host, 1).await;
    println!("all live after {:.1?}", begun.elapsed());
    // Their connections have lasted, and what is kept for requests is closed where it is not used.
    sleep(Duration::from_secs(35)).await;

    let (bytes, upgraded) = (counts.bytes(), counts.upgraded.load(Relaxed));
    let before = (counts.whole.load(Relaxed), counts.unchanged.load(Relaxed));
    let snapshots = counts.snapshots.load(Relaxed);
    server.kill();
    let killed = Instant::now();
    sleep(Duration::from_secs(1)).await;
    server.run();
    let up = Instant::now();
    let curve = everybody(&all, host, 2).await;
    println!("host killed, up again after {:.1?}", up - killed);
    for (share, at) in curve {
        println!("  {share:>3} % live {:.1?} after it was up", at.saturating_duration_since(up));
    }
    let each = |total: u64| total as f64 / clients as f64;
    println!(
        "connections: {} in all, at most {} within a second while it was up",
        counts.connections(killed),
        counts.peak(up)
    );
    println!("upgrades: {}", counts.upgraded.load(Relaxed) - upgraded);
    println!(
        "bytes for each client, failed attempts included: {:.0}",
        each(counts.bytes() - bytes)
    );
    println!(
        "answers: {} whole, {} unchanged; snapshots over sockets: {}",
        counts.whole.load(Relaxed) - before.0,
        counts.unchanged.load(Relaxed) - before.1,
        counts.snapshots.load(Relaxed) - snapshots
    );
    let host_used = used(server.pid());
    println!("the host used {:.0?} of CPU and {} KiB", host_used.cpu, host_used.resident);
    let own = used(std::process::id());
    println!("this process, all clients and the relay: {} KiB", own.resident);
}

/// Waits until everybody has what the host has; when each tenth of them had.
async fn everybody(all: &[Client], host: HostId, generation: u64) -> Vec<(usize, Instant)> {
    let mut curve = Vec::new();
    loop {
        let live = all.iter().filter(|client| is_live(client, host, generation)).count();
        let now = Instant::now();
        let tenths = live * 10 / all.len();
        for tenth in curve.len() + 1..=tenths {
            curve.push((tenth * 10, now));
        }
        if live == all.len() {
            return curve;
        }
        sleep(LOOK).await;
    }
}
