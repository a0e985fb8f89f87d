//! One client with many hosts on which nothing happens.

use std::{
    io::{BufRead as _, BufReader},
    path::Path,
    process::{Command, Stdio},
    time::Duration,
};

use tokio::time::sleep;
use wakeful_client::signals;
use wakeful_link::{ConnectionPhase, DataStatus};

use crate::{
    host::{Desk, Server},
    process::used,
    way,
};

/// How long everything that follows a start may take before it is measured.
const SETTLED: Duration = Duration::from_secs(30);

pub(crate) async fn measure(hosts: usize, minutes: u64) {
    let home = tempfile::tempdir().unwrap();
    let desk = Desk::new(home.path());
    let (mut servers, mut counts) = (Vec::new(), Vec::new());
    for _ in 0..hosts {
        let server = Server::start();
        let (address, counted) = way::relay(server.address.clone()).await;
        server.pair(&desk, &address).await;
        servers.push(server);
        counts.push(counted);
    }
    let mut client = Command::new(std::env::current_exe().unwrap())
        .arg("client")
        .arg(home.path())
        .arg(hosts.to_string())
        .stdout(Stdio::piped())
        .stdin(Stdio::null())
        .spawn()
        .unwrap();
    let mut line = String::new();
    let mut said = BufReader::new(client.stdout.take().unwrap());
    said.read_line(&mut line).unwrap();
    assert_eq!(line.trim(), "live", "the client is not connected");
    sleep(SETTLED).await;

    let sum = || {
        let of =
            |count: &std::sync::atomic::AtomicU64| count.load(std::sync::atomic::Ordering::Relaxed);
        counts
            .iter()
            .fold((0, 0), |(up, down), one| (up + of(&one.to_host), down + of(&one.to_client)))
    };
    let (before, (up, down)) = (used(client.id()), sum());
    let hosts_before: Vec<_> = servers.iter().map(|server| used(server.pid())).collect();
    sleep(Duration::from_secs(minutes * 60)).await;
    let (after, (up_after, down_after)) = (used(client.id()), sum());
    let hosts_cpu: Duration = servers
        .iter()
        .zip(&hosts_before)
        .map(|(server, before)| used(server.pid()).cpu.saturating_sub(before.cpu))
        .sum();
    let hourly = 60.0 / minutes as f64;
    println!("one client, {hosts} idle hosts, {minutes} min, extrapolated to an hour:");
    println!("  wake-ups      {:.0}", (after.wakeups - before.wakeups) as f64 * hourly);
    let cpu = after.cpu.saturating_sub(before.cpu).as_secs_f64() * 1_000.0;
    println!("  CPU, ms       {:.0}", cpu * hourly);
    println!("  bytes to it   {:.0}", (down_after - down) as f64 * hourly);
    println!("  bytes from it {:.0}", (up_after - up) as f64 * hourly);
    println!("  resident, KiB {} in {} threads", after.resident, after.threads);
    let cpu = hosts_cpu.as_secs_f64() * 1_000.0 / hosts as f64;
    println!("  CPU of each host, ms {:.0}", cpu * hourly);
    client.kill().unwrap();
    client.wait().unwrap();
}

/// The client that is looked at: connected, and never asked for anything.
pub(crate) async fn client(home: &Path, hosts: usize) {
    let client = Desk::new(home).start(Some(home.join("cache"))).await;
    let _watching = signals::attach(&client);
    let mut changes = client.changes();
    loop {
        let live = client.with(|link, _| {
            let all: Vec<_> = link.entries().map(|entry| entry.host).collect();
            let live = |host: &&wakeful_wire::HostId| {
                link.shell(**host).is_some_and(|shell| shell.status == DataStatus::Live)
                    && link
                        .connection(**host)
                        .is_some_and(|state| state.phase == ConnectionPhase::Connected)
            };
            all.iter().filter(live).count()
        });
        if live == hosts {
            break;
        }
        let _change = changes.recv().await;
    }
    drop(changes);
    println!("live");
    std::future::pending().await
}
