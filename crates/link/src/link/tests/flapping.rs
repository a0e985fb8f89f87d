//! Hosts that greet and go, or do not greet at all.

use std::time::Duration;

use super::world::{Manner, Reach, World, options};
use crate::{ConnectionPhase, FailureReason};

const HALF_AN_HOUR: Duration = Duration::from_secs(1_800);

/// How often a host was dialled in half an hour, and how the client stands then.
fn half_an_hour(seed: u64, manner: Manner) -> (World, usize) {
    let mut world = World::new(seed, options());
    let host = world.paired("kitchen", "http://127.0.0.1:4747");
    world.set(host, |host| host.manner = manner);
    world.start(None);
    world.pass(HALF_AN_HOUR);
    let dials = world.host(host).counts.dials;
    (world, dials)
}

#[test]
fn a_host_that_never_lasts_is_tried_ever_more_seldom() {
    let brief = Duration::from_millis(100);
    let table = [
        ("closed before the greeting", Manner::ClosesUngreeted(brief, 1008)),
        ("failed before the greeting", Manner::ClosesUngreeted(Duration::ZERO, 1011)),
        ("closed after the greeting", Manner::Closes(Duration::from_secs(2), 1011)),
        ("open, and silent", Manner::SaysNothing),
        ("greeted with nonsense", Manner::SpeaksNonsense),
        ("refused", Manner::Forbids(503)),
    ];
    for (name, manner) in table {
        for seed in 0..8 {
            let (world, dials) = half_an_hour(seed, manner);
            assert!((10..=15).contains(&dials), "{name}: {dials} times in half an hour");
            let host = *world.hosts.keys().next().unwrap();
            assert!(world.state(host).last_failure.is_some(), "{name}: it says why");
        }
    }
}

#[test]
fn a_host_that_keeps_ending_its_sessions_is_said_to() {
    let manner = Manner::Closes(Duration::from_secs(2), 1011);
    let (mut world, _) = half_an_hour(1, manner);
    let host = *world.hosts.keys().next().unwrap();
    world.run_until(|world| world.phase(host) == ConnectionPhase::Backoff);
    let failure = world.state(host).last_failure.unwrap();
    assert!(
        failure.detail.contains("keeps ending") && failure.detail.contains("1011"),
        "{failure}"
    );
}

#[test]
fn a_host_that_refuses_for_good_is_not_tried_again() {
    let table = [
        (Manner::ClosesUngreeted(Duration::from_millis(100), 4401), FailureReason::Authentication),
        (Manner::ClosesUngreeted(Duration::from_millis(100), 4403), FailureReason::Permission),
        (Manner::Forbids(403), FailureReason::Permission),
    ];
    for (manner, reason) in table {
        let (world, dials) = half_an_hour(1, manner);
        let host = *world.hosts.keys().next().unwrap();
        assert_eq!((dials, world.phase(host)), (1, ConnectionPhase::Blocked), "{manner:?}");
        assert_eq!(world.state(host).last_failure.unwrap().reason, reason);
    }
}

#[test]
fn a_session_that_lasted_a_minute_begins_the_ladder_anew() {
    let manner = Manner::Closes(Duration::from_secs(60), 1011);
    let (_, dials) = half_an_hour(1, manner);
    assert!((26..=30).contains(&dials), "{dials} times in half an hour");
}

#[test]
fn nobody_comes_back_before_the_time_that_was_asked_for() {
    for seed in 0..20 {
        let mut world = World::new(seed, options());
        let host = world.paired("kitchen", "http://127.0.0.1:4747");
        world.start(None);
        world.until_live(host);
        world.set(host, |host| host.reach = Reach::Busy(Duration::from_secs(20)));
        world.cut(host);
        world.run_until(|world| world.host(host).counts.dials == 2);
        let told = world.time;
        world.run_until(|world| world.host(host).counts.dials == 3);
        let after = world.time - told;
        assert!((20_000..=60_000).contains(&after), "{after} ms");
    }
}

#[test]
fn a_hopeless_host_costs_about_a_hundred_attempts_in_six_hours() {
    let (mut world, dials) = half_an_hour(3, Manner::Forbids(503));
    let host = *world.hosts.keys().next().unwrap();
    world.pass(Duration::from_secs(6 * 3_600) - HALF_AN_HOUR);
    let six = world.host(host).counts.dials;
    assert!(dials <= 15 && (90..=112).contains(&six), "{dials}, then {six}");
}
