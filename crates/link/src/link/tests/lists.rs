//! Lists of several hosts side by side, and what goes and stays with an account.

use std::time::Duration;

use wakeful_wire::HostId;

use super::world::{PLATFORM, Reach, World, account, address, options, thread, user};
use crate::{Change, ConnectionPhase, DataStatus};

fn three(seed: u64) -> (World, [HostId; 3]) {
    let mut world = World::new(seed, options());
    let hosts = [
        world.paired("kitchen", "http://192.168.1.20:4747"),
        world.paired("cellar", "http://192.168.1.21:4747"),
        world.paired("attic", "http://192.168.1.22:4747"),
    ];
    for host in hosts {
        world.create(host, thread(1));
    }
    (world, hosts)
}

#[test]
fn hosts_that_come_within_two_seconds_change_the_lists_once() {
    let (mut world, hosts) = three(1);
    world.start(None);
    hosts.iter().for_each(|host| world.until_live(*host));
    world.pass(Duration::from_secs(60));
    for host in hosts {
        world.cut(host);
    }
    world.pass(Duration::from_secs(30));
    world.reopen(2, options());
    // Each of them takes longer than the one before it.
    for (place, host) in hosts.iter().enumerate() {
        world.create(*host, thread(2));
        let thinks = Duration::from_millis(400 * u64::try_from(place).unwrap());
        world.set(*host, |host| host.thinks = thinks);
    }
    world.pass_ms(5);
    for host in hosts {
        assert_eq!(world.link.shown(host).unwrap().rows().count(), 1, "as it was kept");
    }
    world.told.clear();
    world.run_until(|world| hosts.iter().all(|host| world.is_live(*host)));
    world.pass(Duration::from_secs(3));
    for host in hosts {
        assert_eq!(world.link.shown(host).unwrap().rows().count(), 2);
    }
    assert_eq!(world.told(|change| *change == Change::Lists), 1, "all of them at once");
}

#[test]
fn rows_that_wait_for_other_hosts_are_looked_up_as_they_are() {
    let (mut world, hosts) = three(3);
    world.start(None);
    hosts.iter().for_each(|host| world.until_live(*host));
    world.pass(Duration::from_secs(60));
    world.create(hosts[0], thread(2));
    world.pass(Duration::from_secs(60));
    world.reopen(4, options());
    world.set(hosts[2], |host| host.thinks = Duration::from_millis(1_500));
    world.create(hosts[0], thread(3));
    world.run_until(|world| {
        let list = world.link.shell(hosts[0]).and_then(|shell| shell.list.as_ref());
        list.is_some_and(|list| list.rows().count() == 3)
    });
    assert!(world.link.shown(hosts[0]).unwrap().rows().count() < 3, "not shown in the list yet");
    assert!(world.link.row(hosts[0], thread(3)).is_some(), "but known");
    assert!(world.link.may_move(hosts[2]).is_err());
    world.pass(Duration::from_secs(3));
    assert_eq!(world.link.shown(hosts[0]).unwrap().rows().count(), 3);
    assert!(world.link.may_move(hosts[2]).is_ok());
}

#[test]
fn a_host_that_cannot_be_reached_holds_nobody_back() {
    let (mut world, hosts) = three(5);
    world.set(hosts[1], |host| host.reach = Reach::Refuses);
    world.start(None);
    world.until_live(hosts[0]);
    world.until_live(hosts[2]);
    world.pass(Duration::from_secs(2));
    assert_eq!(world.link.shown(hosts[0]).unwrap().rows().count(), 1);
    assert_eq!(world.link.shown(hosts[2]).unwrap().rows().count(), 1);
    assert!(world.link.shown(hosts[1]).is_none());
    assert_eq!(world.phase(hosts[1]), ConnectionPhase::Backoff);
}

#[test]
fn signing_out_takes_the_platforms_environments_and_nothing_else() {
    let mut world = World::new(6, options());
    let paired = world.paired("kitchen", "http://192.168.1.20:4747");
    let environment = world.environment("cellar");
    for host in [paired, environment] {
        world.create(host, thread(1));
    }
    world.start(Some("ada"));
    world.until_live(paired);
    world.until_live(environment);
    world.pass(Duration::from_secs(60));
    assert!(world.store.has(environment));
    world.platform.user = None;
    world.act(|link, now| link.sign_out(now, &address(PLATFORM))).unwrap();
    world.pass(Duration::from_secs(60));
    assert!(world.link.entry(environment).is_none() && !world.store.has(environment));
    assert_eq!(world.host(environment).sockets.len(), 0);
    let state = world.state(paired);
    assert_eq!((state.phase, state.generation), (ConnectionPhase::Connected, 1));
    assert!(world.store.has(paired));

    world.platform.user = Some(user("ada"));
    world.act(|link, now| link.sign_in(now, account("ada")));
    world.until_live(environment);
}

#[test]
fn an_environment_that_is_deleted_goes_with_all_that_was_kept_of_it() {
    let mut world = World::new(7, options());
    let host = world.environment("kitchen");
    world.create(host, thread(1));
    world.start(Some("ada"));
    world.until_live(host);
    world.pass(Duration::from_secs(60));
    world.delete(host);
    world.pass(Duration::from_secs(60));
    assert!(world.link.entry(host).is_none() && !world.store.has(host));
    assert_eq!((world.host(host).sockets.len(), world.open_lines(host).len()), (0, 0));
}

#[test]
fn a_removal_clears_everything_and_nothing_is_written_back() {
    for takes in [0, 700] {
        let (mut world, hosts) = three(8);
        world.store.takes = takes;
        world.start(None);
        hosts.iter().for_each(|host| world.until_live(*host));
        world.act(|link, now| link.mount(now, hosts[0], thread(1))).unwrap();
        world.pass(Duration::from_secs(30));
        assert!(world.store.lists.contains_key(&hosts[0]));
        assert!(world.store.threads.contains_key(&(hosts[0], thread(1))));
        // It has just changed, so both are about to be saved.
        world.create(hosts[0], thread(2));
        world.text(hosts[0], thread(1), "the last word");
        world.pass_ms(100);
        world.act(|link, now| link.remove(now, hosts[0])).unwrap();
        world.pass(Duration::from_secs(60));
        assert!(!world.store.has(hosts[0]), "a store that takes {takes} ms");
        assert!(world.link.connection(hosts[0]).is_none());
        assert_eq!(world.host(hosts[0]).sockets.len(), 0);
        assert!(world.is_live(hosts[1]) && world.is_live(hosts[2]));
    }
}

#[test]
fn what_was_shown_is_shown_again_at_the_next_start_before_anybody_answers() {
    let (mut world, hosts) = three(9);
    world.start(None);
    hosts.iter().for_each(|host| world.until_live(*host));
    world.pass(Duration::from_secs(60));
    for host in hosts {
        world.set(host, |host| host.reach = Reach::Silent);
    }
    world.reopen(10, options());
    world.pass_ms(5);
    let now = world.now();
    assert!(world.link.first_paint(now));
    for host in hosts {
        assert_eq!(world.link.shown(host).unwrap().rows().count(), 1);
        let status = world.link.shell(host).unwrap().status;
        assert!(matches!(status, DataStatus::Cached | DataStatus::Synchronizing), "{status:?}");
    }
}
