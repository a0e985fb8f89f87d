//! Credentials: of requests, and of sockets.

use std::time::Duration;

use super::world::{Manner, Reach, World, account, options, thread};
use crate::{ConnectionPhase, DataStatus, FailureReason};

fn signed_in(seed: u64) -> (World, wakeful_wire::HostId) {
    let mut world = World::new(seed, options());
    let host = world.environment("kitchen");
    world.create(host, thread(1));
    world.start(Some("ada"));
    world.until_live(host);
    (world, host)
}

#[test]
fn a_refused_request_is_sent_once_more_and_the_socket_is_not_touched() {
    let (mut world, host) = signed_in(1);
    let before = world.host(host).counts.clone();
    // The host forgets the tokens that it gave, not the sockets.
    world.set(host, |host| host.sessions.values_mut().for_each(|session| session.until = 0));
    world.act(|link, now| link.mount_family(now, host, thread(1))).unwrap();
    world.pass(Duration::from_secs(10));
    let counts = &world.host(host).counts;
    assert_eq!((counts.refused, counts.exchanges), (before.refused + 1, before.exchanges + 1));
    assert_eq!((counts.dials, world.state(host).generation), (before.dials, 1));
    let family = world.link.family(host, thread(1)).unwrap();
    assert_eq!((family.status, family.failure), (DataStatus::Live, None));
}

#[test]
fn a_live_socket_is_renewed_in_its_last_minute_and_goes_on_past_its_end() {
    let (mut world, host) = signed_in(2);
    for hour in 1..=6 {
        world.pass(Duration::from_secs(3_600));
        let served = world.host(host);
        assert_eq!((served.counts.dials, served.sockets.len()), (1, 1), "hour {hour}");
        assert_eq!(served.counts.exchanges, 1 + hour, "once an hour");
    }
    assert_eq!((world.state(host).generation, world.phase(host)), (1, ConnectionPhase::Connected));
}

#[test]
fn a_socket_that_cannot_be_renewed_ends_at_its_time_and_comes_back_when_it_can() {
    let (mut world, host) = signed_in(3);
    world.pass(Duration::from_secs(3_000));
    world.set(host, |host| host.exchanges = false);
    world.pass_ms(3_600_000 - world.time);
    assert_eq!(world.state(host).generation, 1, "until the end it lives");
    world.pass(Duration::from_secs(5));
    assert_ne!(world.phase(host), ConnectionPhase::Connected);
    assert_eq!(world.host(host).sockets.len(), 0);
    world.set(host, |host| host.exchanges = true);
    world.run_until(|world| world.state(host).generation == 2);
    world.until_live(host);
}

#[test]
fn a_revoked_session_waits_for_a_person() {
    let mut world = World::new(4, options());
    let host = world.paired("kitchen", "http://192.168.1.20:4747");
    world.create(host, thread(1));
    world.start(None);
    world.until_live(host);
    // The host knows this client no longer.
    world.store.forget_given(host);
    world.revoke_all(host);
    world.pass(Duration::from_secs(8 * 3_600));
    let state = world.state(host);
    assert_eq!(state.phase, ConnectionPhase::Blocked);
    assert_eq!(state.last_failure.unwrap().reason, FailureReason::Authentication);
    let counts = world.host(host).counts.clone();
    assert_eq!(counts.dials, 1, "no attempt with what is dead");
    assert!(world.link.shell(host).unwrap().list.is_some(), "the list stays readable");
    world.act(|link, now| link.retry(now, host));
    world.pass(Duration::from_secs(60));
    assert_eq!(world.phase(host), ConnectionPhase::Blocked);
    assert_eq!(world.host(host).counts.dials, counts.dials);
}

#[test]
fn a_token_that_died_with_the_connection_is_replaced_within_one_attempt() {
    let (mut world, host) = signed_in(5);
    world.set(host, |host| host.sessions.values_mut().for_each(|session| session.until = 0));
    world.cut(host);
    world.pass_ms(30);
    let before = world.host(host).counts.clone();
    world.run_until(|world| world.state(host).generation == 2);
    let counts = &world.host(host).counts;
    assert_eq!(counts.exchanges, before.exchanges + 1);
    assert_eq!(counts.greeted, before.greeted + 1);
    world.until_live(host);
}

#[test]
fn ten_views_that_ask_at_once_share_one_renewal() {
    let (mut world, host) = signed_in(6);
    world.set(host, |host| host.sessions.values_mut().for_each(|session| session.until = 0));
    let before = world.host(host).counts.exchanges;
    for number in 1..=10 {
        world.act(|link, now| link.mount_family(now, host, thread(number))).unwrap();
    }
    world.pass(Duration::from_secs(20));
    assert_eq!(world.host(host).counts.exchanges, before + 1);
    assert_eq!(world.state(host).generation, 1);
}

#[test]
fn a_platform_that_signs_the_client_out_leaves_a_live_socket_until_its_end() {
    let (mut world, host) = signed_in(7);
    world.platform.grants = false;
    world.pass(Duration::from_secs(3_590));
    assert_eq!(world.state(host).generation, 1);
    world.pass(Duration::from_secs(600));
    let state = world.state(host);
    assert_eq!(state.phase, ConnectionPhase::Blocked, "{state:?}");
    let dials = world.host(host).counts.dials;
    world.pass(Duration::from_secs(8 * 3_600));
    assert_eq!(world.host(host).counts.dials, dials, "nobody tries with a dead credential");
    world.platform.grants = true;
    world.act(|link, now| link.sign_in(now, account("ada")));
    world.run_until(|world| world.state(host).generation == 2);
}

#[test]
fn a_forbidden_upgrade_is_not_tried_again() {
    let mut world = World::new(8, options());
    let host = world.paired("kitchen", "http://192.168.1.20:4747");
    world.set(host, |host| host.manner = Manner::Forbids(403));
    world.start(None);
    world.pass(Duration::from_secs(1_800));
    assert_eq!(world.phase(host), ConnectionPhase::Blocked);
    assert_eq!(world.host(host).counts.dials, 1);
}

#[test]
fn a_page_of_a_proxy_in_place_of_an_upgrade_means_that_somebody_must_sign_in() {
    let mut world = World::new(9, options());
    let host = world.paired("kitchen", "https://kitchen.example");
    world.set(host, |host| host.manner = Manner::Forbids(302));
    world.start(None);
    world.pass(Duration::from_secs(1_800));
    let state = world.state(host);
    assert_eq!(state.phase, ConnectionPhase::Blocked);
    assert_eq!(state.last_failure.unwrap().reason, FailureReason::Authentication);
    assert_eq!(world.host(host).counts.dials, 1);
}

#[test]
fn an_account_that_changes_in_the_middle_of_a_renewal_leaves_nothing_of_the_former_one() {
    let (mut world, host) = signed_in(10);
    world.pass(Duration::from_secs(30));
    // The renewal of the first account is on its way while another one signs in.
    world.platform.thinks = 500;
    world.set(host, |host| host.sessions.values_mut().for_each(|session| session.until = 0));
    world.act(|link, now| link.mount_family(now, host, thread(1))).unwrap();
    world.pass_ms(200);
    world.platform.user = Some(super::world::user("bea"));
    world.act(|link, now| link.sign_in(now, account("bea")));
    world.platform.thinks = 0;
    world.run_until(|world| world.is_live(host));
    world.pass(Duration::from_secs(120));
    let served = world.host(host);
    let subjects: Vec<_> = served
        .sockets
        .values()
        .map(|socket| served.sessions[&socket.session].subject.clone())
        .collect();
    assert_eq!(subjects, [super::world::user("bea")], "one socket, and it is hers");
    assert_eq!(world.link.entry(host).unwrap().target.account(), Some(&account("bea")));
    world.check_all_is_shown(host);
}

#[test]
fn a_silent_token_endpoint_costs_an_attempt_its_budget_and_no_more() {
    let mut world = World::new(11, options());
    let host = world.paired("kitchen", "http://192.168.1.20:4747");
    world.set(host, |host| host.reach = Reach::Silent);
    world.start(None);
    world.run_until(|world| world.phase(host) == ConnectionPhase::Backoff);
    assert!((15_000..15_100).contains(&world.time), "{} ms", world.time);
    world.set(host, |host| host.reach = Reach::Up);
    world.until_live(host);
}
