//! A herd at a sleeping door (`cases.md`, C23): ten thousand requests over a thousand connections.

use std::{
    net::SocketAddr,
    sync::Arc,
    time::{Duration, Instant},
};

use tokio::{
    io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader},
    net::TcpStream,
    sync::Barrier,
};

use crate::support::{Platform, Setup, User};

const CONNECTIONS: usize = 1_000;
const REQUESTS_EACH: usize = 10;
/// How long the whole herd may take.
const PATIENCE: Duration = Duration::from_secs(120);

/// The statuses that one connection's requests got, in order.
async fn visitor(address: SocketAddr, request: Arc<String>, gate: Arc<Barrier>) -> Vec<u16> {
    let stream = TcpStream::connect(address).await.unwrap();
    stream.set_nodelay(true).unwrap();
    let mut stream = BufReader::new(stream);
    gate.wait().await;
    let mut statuses = Vec::with_capacity(REQUESTS_EACH);
    for _ in 0..REQUESTS_EACH {
        stream.get_mut().write_all(request.as_bytes()).await.unwrap();
        statuses.push(answer(&mut stream).await.unwrap());
    }
    statuses
}

/// Reads one answer to its end.
async fn answer(stream: &mut BufReader<TcpStream>) -> std::io::Result<u16> {
    let mut status = None;
    let mut length = 0;
    loop {
        let mut line = String::new();
        stream.read_line(&mut line).await?;
        let line = line.trim_end();
        if status.is_none() {
            status = line.split(' ').nth(1).and_then(|status| status.parse().ok());
            status.ok_or(std::io::ErrorKind::UnexpectedEof)?;
        } else if line.is_empty() {
            break;
        } else if let Some((name, value)) = line.split_once(':')
            && name.eq_ignore_ascii_case("content-length")
        {
            length = value.trim().parse().unwrap();
        }
    }
    let mut body = vec![0; length];
    stream.read_exact(&mut body).await?;
    status.ok_or_else(|| std::io::ErrorKind::InvalidData.into())
}

fn herd(platform: &Platform, user: &User, target: &str) -> Vec<u16> {
    let host = platform.host(user.env, "app");
    let token = &user.token;
    let request =
        format!("GET {target} HTTP/1.1\r\nHost: {host}\r\nAuthorization: Bearer {token}\r\n\r\n");
    let (request, gate) = (Arc::new(request), Arc::new(Barrier::new(CONNECTIONS)));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let visitors: Vec<_> = (0..CONNECTIONS)
            .map(|_| {
                let (request, gate) = (Arc::clone(&request), Arc::clone(&gate));
                tokio::spawn(visitor(platform.address(), request, gate))
            })
            .collect();
        let all = async {
            let mut statuses = Vec::new();
            for visitor in visitors {
                statuses.extend(visitor.await.unwrap());
            }
            statuses
        };
        tokio::time::timeout(PATIENCE, all).await.expect("every request is answered in time")
    })
}

fn a_herd_wakes_once(setup: Setup, target: &str) {
    let platform = setup.up();
    let user = platform.sign_up_asleep("ada");
    let starts = platform.metric("wakeful_sandbox_starts_total");
    let ensures = platform.metric("wakeful_ensure_calls_total");
    let begun = Instant::now();
    let statuses = herd(&platform, &user, target);
    let seconds = begun.elapsed().as_secs() + 1;
    assert_eq!(statuses.len(), CONNECTIONS * REQUESTS_EACH);
    let others: Vec<_> = statuses.iter().filter(|status| **status != 200).collect();
    assert!(others.is_empty(), "{} were not answered with 200: {:?}", others.len(), &others[..1]);
    assert_eq!(platform.metric("wakeful_sandbox_starts_total") - starts, 1);
    // One a second, one more at once where there are news, and one when "ready" is renewed.
    let ensures = platform.metric("wakeful_ensure_calls_total") - ensures;
    assert!(ensures <= seconds + 2, "{ensures} ensure calls in {seconds} s");
    assert_eq!(platform.metric("wakeful_held_requests"), 0);
}

#[test]
fn ten_thousand_requests_over_a_thousand_connections_wake_the_demo_once_and_are_all_answered() {
    a_herd_wakes_once(Setup { template: "demo", ..Setup::default() }, "/healthz");
}

#[test]
fn a_herd_is_answered_by_a_program_that_takes_a_while_to_start() {
    let slow = "[templates.slow.surfaces.app]\nready = { http = '/healthz' }\n\
                command = 'sleep 3; exec \"$WAKEFUL_BIN\" demo'\n";
    let slow = slow.to_owned();
    a_herd_wakes_once(Setup { template: "slow", tables: slow, ..Setup::default() }, "/healthz");
}
