//! Threads that run are followed although nobody looks at them, where the client wants it.

use std::time::Duration;

use wakeful_wire::HostId;

use super::world::{Manner, World, options, thread};
use crate::{ConnectionPhase, DataStatus};

fn busy(seed: u64, keep_alive: bool) -> (World, HostId) {
    let mut all = options();
    all.keep_alive = keep_alive;
    let mut world = World::new(seed, all);
    let host = world.paired("kitchen", "http://192.168.1.20:4747");
    for number in 1..=3 {
        world.create(host, thread(number));
    }
    world.write(host, |log| log.turn_started(thread(1)));
    world.start(None);
    world.until_live(host);
    world.pass(Duration::from_secs(1));
    (world, host)
}

#[test]
fn a_running_thread_is_followed_and_let_go_when_it_has_stopped() {
    let (mut world, host) = busy(1, true);
    assert!(world.link.is_kept_alive(host, thread(1)));
    assert!(!world.link.is_kept_alive(host, thread(2)));
    world.write(host, |log| log.turn_started(thread(2)));
    world.pass(Duration::from_secs(1));
    assert!(world.link.is_kept_alive(host, thread(2)));
    world.check_all_is_shown(host);
    for number in 0..50 {
        world.text(host, thread(1), &format!("word {number}"));
    }
    world.write(host, |log| log.turn_ended(thread(1)));
    world.pass(Duration::from_secs(5));
    assert!(!world.link.is_kept_alive(host, thread(1)));
    let saved = &world.store.threads[&(host, thread(1))];
    assert!(saved.detail.thread.turn.is_none(), "the stop is saved");
    assert_eq!(world.host(host).counts.thread_snapshots, 2, "each once");
    let topics: Vec<_> = world.host(host).sockets.values().map(|held| held.topics.len()).collect();
    assert_eq!(topics, [2], "the list and the one that runs");
}

#[test]
fn a_stop_while_nobody_is_connected_is_shown_before_the_thread_is_let_go() {
    let (mut world, host) = busy(2, true);
    world.set(host, |host| host.manner = Manner::Forbids(503));
    world.cut(host);
    world.pass(Duration::from_secs(1));
    world.write(host, |log| log.turn_ended(thread(1)));
    assert!(world.link.is_kept_alive(host, thread(1)));
    world.set(host, |host| host.manner = Manner::Serves);
    world.until_live(host);
    world.pass(Duration::from_secs(5));
    assert!(!world.link.is_kept_alive(host, thread(1)));
    assert!(world.store.threads[&(host, thread(1))].detail.thread.turn.is_none());
}

#[test]
fn a_client_that_does_not_want_it_follows_nothing() {
    let (world, host) = busy(3, false);
    assert!(!world.link.is_kept_alive(host, thread(1)));
    assert_eq!(world.host(host).counts.thread_snapshots, 0);
}

#[test]
fn opening_a_running_thread_needs_nothing_of_the_host() {
    let (mut world, host) = busy(4, true);
    let before = world.host(host).counts.clone();
    world.act(|link, now| link.mount(now, host, thread(1))).unwrap();
    world.check_all_is_shown(host);
    world.pass(Duration::from_secs(1));
    assert_eq!(world.host(host).counts, before);
}

#[test]
fn a_thread_of_a_host_that_was_not_reached_says_that_nothing_is_on_its_way() {
    let (mut world, host) = busy(9, false);
    world.act(|link, now| link.mount(now, host, thread(1))).unwrap();
    world.pass(Duration::from_secs(2));
    world.set(host, |host| host.manner = Manner::Forbids(403));
    world.cut(host);
    world.pass(Duration::from_secs(40));
    assert_eq!(world.link.connection(host).unwrap().phase, ConnectionPhase::Blocked);
    let state = world.link.thread(host, thread(1)).unwrap();
    assert_eq!(state.status, DataStatus::Cached);
    assert!(state.detail().is_some());
}
