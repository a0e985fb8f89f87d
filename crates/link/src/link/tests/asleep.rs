//! Environments that sleep: left alone, shown, and woken by people alone.

use std::time::Duration;

use wakeful_wire::HostId;

use super::world::{Reach, World, options, thread};
use crate::{ConnectionPhase, DataStatus, Network, supervisor::Foreground};

/// An environment that was live and has fallen asleep.
fn asleep(seed: u64) -> (World, HostId) {
    let mut world = World::new(seed, options());
    let host = world.environment("kitchen");
    world.create(host, thread(1));
    world.start(Some("ada"));
    world.until_live(host);
    world.pass(Duration::from_secs(60));
    world.put_to_sleep(host);
    world.run_until(|world| world.phase(host) == ConnectionPhase::Asleep);
    world.pass(Duration::from_secs(5));
    (world, host)
}

#[test]
fn a_sleeping_environment_is_left_alone_with_its_list_shown() {
    let (mut world, host) = asleep(1);
    let before = world.host(host).counts.clone();
    world.pass(Duration::from_secs(8 * 3_600));
    world.act(|link, now| link.handle_foreground(now, Foreground::Desk));
    world.act(|link, now| link.handle_network(now, Network::Offline));
    world.pass(Duration::from_secs(60));
    world.act(|link, now| link.handle_network(now, Network::Online));
    world.act(|link, now| link.handle_path_changed(now));
    world.sleep(Duration::from_secs(600));
    world.pass(Duration::from_secs(600));
    assert_eq!(world.phase(host), ConnectionPhase::Asleep);
    assert_eq!((&world.host(host).counts, world.platform.woken), (&before, 0));
    let shell = world.link.shell(host).unwrap();
    assert_eq!(
        (shell.status, shell.list.as_ref().unwrap().rows().count()),
        (DataStatus::Cached, 1)
    );
    assert_eq!(shell.error, None, "to sleep is no error");
}

#[test]
fn a_person_wakes_it_and_everything_is_live_again() {
    let (mut world, host) = asleep(2);
    assert!(world.act(|link, now| link.intend(now, host)));
    world.until_live(host);
    assert_eq!(world.platform.woken, 1);
    world.check_all_is_shown(host);
}

#[test]
fn it_comes_back_when_somebody_else_has_woken_it() {
    let (mut world, host) = asleep(3);
    world.wake(host);
    let woken = world.time;
    world.until_live(host);
    assert!(world.time - woken < 5_000, "{} ms", world.time - woken);
    assert_eq!(world.platform.woken, 1, "by somebody else");
}

#[test]
fn it_comes_back_by_the_platforms_list_where_its_event_was_lost() {
    let (mut world, host) = asleep(4);
    world.platform.reach = Reach::Silent;
    world.wake(host);
    world.pass(Duration::from_secs(30));
    assert_eq!(world.phase(host), ConnectionPhase::Asleep);
    world.platform.reach = Reach::Up;
    world.end_stream();
    world.until_live(host);
}

#[test]
fn looking_at_a_thread_of_a_sleeping_environment_shows_what_is_kept_and_wakes_nothing() {
    let mut world = World::new(5, options());
    let host = world.environment("kitchen");
    world.create(host, thread(1));
    world.start(Some("ada"));
    world.until_live(host);
    let consumer = world.act(|link, now| link.mount(now, host, thread(1))).unwrap();
    world.pass(Duration::from_secs(5));
    world.act(|link, now| link.unmount(now, host, consumer));
    world.put_to_sleep(host);
    world.pass(Duration::from_secs(600));
    world.act(|link, now| link.mount(now, host, thread(1))).unwrap();
    world.pass(Duration::from_secs(60));
    let state = world.link.thread(host, thread(1)).unwrap();
    assert_eq!(state.status, DataStatus::Cached);
    assert_eq!(state.detail().unwrap().thread.id, thread(1));
    assert_eq!((world.phase(host), world.platform.woken), (ConnectionPhase::Asleep, 0));
}

#[test]
fn a_client_that_starts_beside_a_sleeping_environment_asks_it_nothing() {
    let (mut world, host) = asleep(6);
    let before = world.host(host).counts.clone();
    world.reopen(7, options());
    world.pass(Duration::from_secs(3_600));
    assert_eq!(world.phase(host), ConnectionPhase::Asleep);
    assert_eq!(world.link.shell(host).unwrap().list.as_ref().unwrap().rows().count(), 1);
    let after = &world.host(host).counts;
    assert_eq!(
        (after.greeted, after.lists, world.platform.woken),
        (before.greeted, before.lists, 0)
    );
}

#[test]
fn an_environment_that_falls_asleep_while_a_person_waits_is_woken_once_more() {
    let (mut world, host) = asleep(8);
    assert!(world.act(|link, now| link.intend(now, host)));
    world.pass_ms(500);
    // The platform puts it back as soon as it is there.
    world.run_until(|world| world.phase_of(host) == Some(wakeful_wire::Phase::Ready));
    world.put_to_sleep(host);
    world.until_live(host);
    assert_eq!(world.platform.woken, 2);
}
