//! A doubted socket is replaced before it is given up.

use std::time::Duration;

use wakeful_wire::HostId;

use super::world::{Reach, World, options, thread};
use crate::{Change, ConnectionPhase, DataStatus, supervisor::Foreground};

fn far(seed: u64) -> (World, HostId) {
    let mut world = World::new(seed, options());
    let host = world.paired("kitchen", "https://kitchen.example");
    world.create(host, thread(1));
    world.start(None);
    world.until_live(host);
    world.act(|link, now| link.mount(now, host, thread(1))).unwrap();
    world.pass(Duration::from_secs(60));
    (world, host)
}

#[test]
fn a_dead_far_socket_is_replaced_without_a_gap_and_without_an_event_twice() {
    let (mut world, host) = far(1);
    world.kill(host);
    let began = world.time;
    world.act(|link, now| link.handle_path_changed(now));
    for number in 0..40 {
        world.text(host, thread(1), &format!("word {number}"));
        world.pass_ms(100);
        assert_eq!(
            world.phase(host),
            ConnectionPhase::Connected,
            "after {} ms",
            world.time - began
        );
        let most = if world.time - began < 2_500 { 2 } else { 1 };
        assert!(world.open_lines(host).len() <= most);
        if world.state(host).generation == 1 {
            assert!(world.time - began <= 2_500);
        }
    }
    world.pass(Duration::from_secs(5));
    assert_eq!(world.state(host).generation, 2);
    world.check_all_is_shown(host);
    let counts = &world.host(host).counts;
    assert_eq!((counts.dials, counts.thread_snapshots, counts.lists), (2, 1, 1));
}

#[test]
fn a_replacement_that_was_not_needed_is_put_away_and_the_old_socket_goes_on() {
    let (mut world, host) = far(2);
    // The answers to the probe are late, the host answers fresh requests, and then frames come.
    world.wires.latency = 600;
    world.act(|link, now| link.handle_path_changed(now));
    world.pass_ms(700);
    world.wires.latency = 20;
    world.pass(Duration::from_secs(30));
    assert_eq!(world.state(host).generation, 1);
    assert_eq!(world.open_lines(host).len(), 1);
    world.text(host, thread(1), "still here");
    world.pass(Duration::from_secs(1));
    world.check_all_is_shown(host);
}

#[test]
fn a_host_that_answers_nothing_at_all_is_given_up_at_the_deadline_of_its_way() {
    let table = [
        ("http://127.0.0.1:4747", Foreground::Desk, 3_000),
        ("http://192.168.1.20:4747", Foreground::Desk, 3_000),
        ("https://kitchen.example", Foreground::Desk, 15_000),
        ("https://kitchen.example", Foreground::Long, 3_000),
    ];
    for (at, foreground, deadline) in table {
        let mut world = World::new(3, options());
        let host = world.paired("kitchen", at);
        world.start(None);
        world.until_live(host);
        world.set(host, |host| host.reach = Reach::Silent);
        world.act(|link, now| link.handle_foreground(now, foreground));
        world.pass_ms(deadline - 1);
        assert_eq!(world.state(host).generation, 1, "{at}");
        assert_eq!(world.phase(host), ConnectionPhase::Connected, "{at}");
        world.pass_ms(2);
        assert_ne!(world.phase(host), ConnectionPhase::Connected, "{at}");
        world.set(host, |host| host.reach = Reach::Up);
        world.until_live(host);
    }
}

#[test]
fn silence_is_noticed_by_itself() {
    let (mut world, host) = far(4);
    world.kill(host);
    let began = world.time;
    world.run_until(|world| world.state(host).generation == 2);
    assert!(world.time - began < 60_000, "{} ms", world.time - began);
    world.text(host, thread(1), "back");
    world.pass(Duration::from_secs(5));
    world.check_all_is_shown(host);
}

#[test]
fn a_host_that_stalls_for_ten_seconds_keeps_its_socket() {
    let (mut world, host) = far(5);
    world.wires.latency = 5_000;
    world.act(|link, now| link.handle_foreground(now, Foreground::Desk));
    world.pass(Duration::from_secs(10));
    world.wires.latency = 20;
    world.pass(Duration::from_secs(60));
    let state = world.state(host);
    assert_eq!((state.phase, state.generation), (ConnectionPhase::Connected, 1));
    assert_eq!(world.host(host).counts.dials, 1);
}

#[test]
fn a_view_that_looks_during_a_handover_sees_nothing_but_live_or_synchronizing() {
    let (mut world, host) = far(6);
    world.kill(host);
    world.told.clear();
    world.act(|link, now| link.handle_path_changed(now));
    let until = world.time + 10_000;
    while world.step(until) {
        let status = world.link.shell(host).unwrap().status;
        assert!(matches!(status, DataStatus::Live | DataStatus::Synchronizing), "{status:?}");
        assert_eq!(world.phase(host), ConnectionPhase::Connected);
    }
    assert!(world.told(|change| matches!(change, Change::Connection(_))) <= 3);
    assert_eq!(world.state(host).generation, 2);
}
