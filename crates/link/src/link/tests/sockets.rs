//! One owner, one socket, one subscription per topic, whatever happens. That the world holds no two
//! at once is checked after each step of every test.

use std::time::Duration;

use super::world::{Reach, World, address, options, thread};
use crate::{
    Change, ConnectionPhase, DataStatus, Network,
    registry::Entry,
    route::{Route, Routes},
    supervisor::Foreground,
};

const KITCHEN: &str = "http://192.168.1.20:4747";

#[test]
fn a_host_is_connected_to_once_and_everything_becomes_live() {
    let mut world = World::new(1, options());
    let host = world.paired("kitchen", KITCHEN);
    world.create(host, thread(1));
    world.start(None);
    world.until_live(host);
    world.act(|link, now| link.mount(now, host, thread(1))).unwrap();
    world.text(host, thread(1), "soup");
    world.pass(Duration::from_secs(600));
    world.check_all_is_shown(host);
    let counts = &world.host(host).counts;
    assert_eq!((counts.dials, counts.exchanges, counts.lists), (1, 1, 1));
}

#[test]
fn there_is_one_socket_and_one_subscription_per_topic_whatever_people_do() {
    let mut world = World::new(2, options());
    let host = world.paired("kitchen", KITCHEN);
    world.create(host, thread(1));
    world.set(host, |host| host.reach = Reach::Refuses);
    world.start(None);
    world.run_until(|world| world.phase(host) == ConnectionPhase::Backoff);
    let consumers: Vec<_> =
        (0..3).map(|_| world.act(|link, now| link.mount(now, host, thread(1))).unwrap()).collect();
    for _ in 0..5 {
        world.act(|link, now| link.handle_foreground(now, Foreground::Desk));
        world.pass_ms(10);
    }
    for _ in 0..2 {
        assert!(world.act(|link, now| link.retry(now, host)));
        world.pass_ms(10);
    }
    world.act(|link, now| link.unmount(now, host, consumers[0]));
    world.set(host, |host| host.reach = Reach::Up);
    world.act(|link, now| link.retry(now, host));
    world.until_live(host);
    for round in 0..10 {
        world.restart(host, 0);
        world.text(host, thread(1), "while it was away");
        world.run_until(|world| !world.is_live(host));
        world.until_live(host);
        world.pass(Duration::from_secs(5));
        world.check_all_is_shown(host);
        assert_eq!(world.host(host).sockets.len(), 1, "round {round}");
    }
    let served = world.host(host).sockets.values().next().unwrap();
    assert_eq!(served.topics.len(), 2, "the list and one thread: {:?}", served.topics);
    world.told.clear();
    world.text(host, thread(1), "once");
    world.pass(Duration::from_secs(1));
    let of_thread = |change: &Change| matches!(change, Change::Thread { .. });
    assert_eq!(world.told(of_thread), 1, "what happens once is told once");
}

#[test]
fn a_host_that_is_removed_in_the_middle_of_a_dial_leaves_nothing_behind() {
    let mut world = World::new(3, options());
    let host = world.paired("kitchen", KITCHEN);
    world.start(None);
    world.run_until(|world| world.open_lines(host).len() == 1);
    world.act(|link, now| link.remove(now, host)).unwrap();
    world.pass(Duration::from_secs(60));
    assert_eq!(world.link.entries().count(), 0);
    assert!(!world.store.has(host));
    assert_eq!(world.host(host).sockets.len(), 0);
    assert_eq!(world.link.poll_timeout(), None, "no timer is left");

    let routes = Routes::of(Route::new(address(KITCHEN)));
    let entry = Entry::paired(host, "kitchen".to_owned(), routes);
    let secret = crate::authorization::Secret::new("refresh.kitchen");
    world.store.cleared.remove(&host);
    world.store.refresh.insert(host, "refresh.kitchen".to_owned());
    world.act(|link, now| link.register(now, entry, secret)).unwrap();
    world.until_live(host);
    assert_eq!(world.host(host).sockets.len(), 1);
}

#[test]
fn a_paused_host_keeps_what_is_known_of_it_and_is_left_alone() {
    let mut world = World::new(4, options());
    let host = world.paired("kitchen", KITCHEN);
    world.create(host, thread(1));
    world.start(None);
    world.until_live(host);
    world.pass(Duration::from_secs(60));
    world.act(|link, now| link.pause(now, host)).unwrap();
    world.pass(Duration::from_secs(8 * 3_600));
    assert_eq!(world.phase(host), ConnectionPhase::Available);
    assert_eq!(world.host(host).counts.dials, 1);
    let shell = world.link.shell(host).unwrap();
    assert_eq!(
        (shell.status, shell.list.as_ref().unwrap().rows().count()),
        (DataStatus::Cached, 1)
    );
    assert!(world.store.has(host) && world.store.entries[&host].paused, "it is remembered");

    world.act(|link, now| link.resume(now, host)).unwrap();
    world.until_live(host);
    assert_eq!(world.host(host).counts.dials, 2);
}

#[test]
fn an_offline_report_does_not_touch_a_session_that_answers() {
    for at in ["http://127.0.0.1:4747", KITCHEN, "https://kitchen.example"] {
        let mut world = World::new(5, options());
        let host = world.paired("kitchen", at);
        world.start(None);
        world.until_live(host);
        world.act(|link, now| link.handle_network(now, Network::Offline));
        world.pass(Duration::from_secs(3_600));
        let state = world.state(host);
        assert_eq!((state.phase, state.generation), (ConnectionPhase::Connected, 1), "{at}");
        assert_eq!((world.host(host).counts.dials, world.host(host).counts.probes), (1, 1), "{at}");
    }
}

#[test]
fn twenty_changes_of_focus_are_one_look_and_no_other_socket() {
    let mut world = World::new(6, options());
    let host = world.paired("kitchen", KITCHEN);
    world.start(None);
    world.until_live(host);
    world.wires.latency = 1_000;
    for _ in 0..20 {
        world.act(|link, now| link.handle_foreground(now, Foreground::Desk));
        world.pass_ms(50);
    }
    world.pass(Duration::from_secs(60));
    let counts = &world.host(host).counts;
    assert_eq!((counts.dials, counts.probes, counts.descriptors), (1, 1, 0));
    assert_eq!(world.state(host).generation, 1);
}

#[test]
fn a_machine_that_sleeps_all_night_makes_no_attempts_and_comes_back_at_once() {
    let mut world = World::new(7, options());
    let host = world.paired("kitchen", KITCHEN);
    world.create(host, thread(1));
    world.start(None);
    world.until_live(host);
    let mut served = world.host(host).counts.clone();
    world.kill(host);
    world.sleep(Duration::from_secs(8 * 3_600));
    assert_eq!(world.host(host).counts.dials, served.dials);
    world.text(host, thread(1), "in the morning");
    let woke = world.time;
    // The host answers a fresh request and the socket is silent: on this way it is dead at once.
    world.run_until(|world| world.state(host).generation == 2);
    world.until_live(host);
    assert!(world.time - woke < 1_500, "{} ms", world.time - woke);
    // The first one shows the token of yesterday.
    served.dials += 2;
    assert_eq!((world.host(host).counts.dials, world.host(host).counts.refused), (served.dials, 1));
}

#[test]
fn a_request_that_waits_without_a_sign_of_life_has_the_session_checked_long_before_heartbeats_miss()
{
    let mut world = World::new(31, options());
    let host = world.paired("kitchen", KITCHEN);
    world.create(host, thread(1));
    world.start(None);
    world.until_live(host);
    world.set(host, |host| host.reach = Reach::Silent);
    let settle = wakeful_wire::rpc::ThreadSettle { thread: thread(1), settled: true };
    world.act(|link, now| link.call(now, host, wakeful_wire::rpc::Call::ThreadSettle(settle)));
    world.pass(Duration::from_secs(6));
    assert!(world.link.connection(host).unwrap().verifying);
    world.pass(Duration::from_secs(4));
    assert_ne!(world.link.connection(host).unwrap().phase, ConnectionPhase::Connected);
}
