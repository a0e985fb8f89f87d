//! A socket that dies without a word, and one that only seems to.

use std::time::{Duration, Instant};

use rustix::process::Signal;
use wakeful_link::{ConnectionPhase, DataStatus, Network, supervisor::Foreground};

use crate::{fixture::World, proxy::Way};

/// Waits until no check of the session is under way.
async fn checked(world: &World) {
    let host = world.client.host;
    world
        .client
        .until("the end of a check", |link, _| {
            link.connection(host).filter(|state| !state.verifying).map(drop)
        })
        .await;
}

#[tokio::test]
async fn a_socket_that_died_without_a_close_is_replaced_as_soon_as_the_host_answers_a_fresh_request()
 {
    let world = World::new().await;
    let host = world.client.host;
    world.proxy.hang_old_ones();
    let begun = Instant::now();
    world.client.client.with(|link, now| link.handle_foreground(now, Foreground::Short));
    world
        .client
        .until("another session", |link, _| {
            link.connection(host).filter(|state| state.generation == 2).map(drop)
        })
        .await;
    // The host is asked half a second after the probe, and its answer is the verdict on this
    // machine: without it the probe alone would take three seconds.
    let taken = begun.elapsed();
    assert!(taken >= Duration::from_millis(500), "{taken:?}");
    world.client.live().await;
    world.client.client.close().await;
}

#[tokio::test]
async fn a_host_that_says_nothing_for_a_while_keeps_its_socket() {
    let world = World::new().await;
    world.server.signal(Signal::STOP);
    world.client.client.with(|link, now| link.handle_foreground(now, Foreground::Desk));
    // It is silent for two seconds of the three that a probe has.
    let silent = tokio::time::timeout(Duration::from_secs(2), checked(&world)).await;
    assert!(silent.is_err(), "the check must not end before the host answers");
    world.server.signal(Signal::CONT);
    checked(&world).await;
    assert_eq!(world.client.generation(), 1);
    assert_eq!(world.client.connection().unwrap().phase, ConnectionPhase::Connected);
    world.client.client.close().await;
}

#[tokio::test]
async fn a_host_that_says_nothing_at_all_is_given_up_and_found_again() {
    let world = World::new().await;
    let host = world.client.host;
    world.server.signal(Signal::STOP);
    let begun = Instant::now();
    world.client.client.with(|link, now| link.handle_foreground(now, Foreground::Short));
    world
        .client
        .until("the end of the session", |link, _| {
            link.connection(host)
                .filter(|state| state.phase != ConnectionPhase::Connected)
                .map(drop)
        })
        .await;
    // On this machine a probe has three seconds.
    assert!(begun.elapsed() >= Duration::from_millis(2_900), "{:?}", begun.elapsed());
    let status = world.client.client.with(|link, _| link.shell(host).unwrap().status);
    assert_ne!(status, DataStatus::Live);
    world.server.signal(Signal::CONT);
    world.client.client.with(|link, now| link.retry(now, host));
    world.client.live().await;
    assert_eq!(world.client.generation(), 2);
    world.client.client.close().await;
}

#[tokio::test]
async fn a_wrong_offline_report_and_another_address_leave_a_live_session_alone() {
    let world = World::new().await;
    let host = world.client.host;
    let connections = world.proxy.connections();
    world.client.client.with(|link, now| link.handle_network(now, Network::Offline));
    checked(&world).await;
    world.client.client.with(|link, now| link.handle_path_changed(now));
    checked(&world).await;
    world.client.client.with(|link, now| link.retry(now, host));
    checked(&world).await;
    let state = world.client.connection().unwrap();
    assert_eq!((state.generation, state.phase), (1, ConnectionPhase::Connected));
    assert_eq!(state.network, Network::Offline);
    assert_eq!(world.proxy.connections(), connections, "a probe needs no connection");
    // And it still delivers.
    let thread = world.client.thread().await;
    world.client.until("its row", |link, _| link.row(host, thread).map(drop)).await;
    world.client.client.close().await;
}

#[tokio::test]
async fn a_way_that_is_cut_is_waited_for_and_then_resumed_over_a_few_bytes() {
    let world = World::new().await;
    let host = world.client.host;
    world.proxy.set(Way::Cut);
    world.client.phase(ConnectionPhase::Backoff).await;
    world.proxy.set(Way::Open);
    let before = world.proxy.bytes();
    world.client.client.with(|link, now| link.retry(now, host));
    world.client.live().await;
    let bytes = world.proxy.bytes() - before;
    assert!(bytes < 2_048, "{bytes} bytes for a reconnect with nothing changed");
    assert_eq!(world.client.generation(), 2);
    world.client.client.close().await;
}
