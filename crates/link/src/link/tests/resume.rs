//! What happens while the wire is cut is shown afterwards, once and whole.

use std::time::Duration;

use wakeful_wire::rpc::EventBody;

use super::world::{Manner, World, client, options, thread};
use crate::{ConnectionPhase, DataStatus};

const KITCHEN: &str = "http://192.168.1.20:4747";

/// A client that looks at a thread with a running turn, live.
fn watching(seed: u64) -> (World, wakeful_wire::HostId) {
    let mut world = World::new(seed, options());
    let host = world.paired("kitchen", KITCHEN);
    world.create(host, thread(1));
    world.write(host, |log| log.turn_started(thread(1)));
    world.start(None);
    world.until_live(host);
    world.act(|link, now| link.mount(now, host, thread(1))).unwrap();
    world.pass(Duration::from_secs(1));
    world.check_all_is_shown(host);
    (world, host)
}

#[test]
fn a_stream_that_is_cut_in_its_middle_goes_on_exactly_where_it_was() {
    let (mut world, host) = watching(1);
    for number in 1..=40 {
        world.text(host, thread(1), &format!("word {number}"));
    }
    world.pass_ms(20);
    world.set(host, |host| host.manner = Manner::Forbids(503));
    world.cut(host);
    world.pass_ms(30);
    let held = world.link.thread(host, thread(1)).unwrap();
    assert_eq!(held.status, DataStatus::Cached);
    for number in 41..=99 {
        world.text(host, thread(1), &format!("word {number}"));
        world.pass_ms(500);
    }
    world.write(host, |log| log.turn_ended(thread(1)));
    world.set(host, |host| host.manner = Manner::Serves);
    let before = world.host(host).counts.clone();
    world.act(|link, now| link.retry(now, host));
    world.until_live(host);
    world.pass(Duration::from_secs(1));
    world.check_all_is_shown(host);
    let shown = world.link.thread(host, thread(1)).unwrap().detail().unwrap();
    assert!(shown.thread.turn.is_none(), "the end is shown");
    let counts = &world.host(host).counts;
    assert_eq!(counts.thread_snapshots, before.thread_snapshots, "nothing is loaded again");
    assert_eq!(counts.thread_resumes, before.thread_resumes + 1);
    assert_eq!(counts.lists, before.lists);
}

#[test]
fn a_second_cut_during_the_replay_loses_nothing() {
    let (mut world, host) = watching(2);
    world.cut(host);
    for number in 0..60 {
        world.text(host, thread(1), &format!("word {number}"));
    }
    world.wires.latency = 200;
    world.run_until(|world| world.state(host).generation == 2);
    // The hello is there, the subscriptions are on their way.
    world.cut(host);
    world.text(host, thread(1), "and one more");
    world.run_until(|world| world.state(host).generation == 3);
    world.until_live(host);
    world.pass(Duration::from_secs(5));
    world.check_all_is_shown(host);
}

#[test]
fn a_restarted_host_is_resumed_by_cursor_without_a_snapshot() {
    let (mut world, host) = watching(3);
    let before = world.host(host).counts.clone();
    world.restart(host, 0);
    world.text(host, thread(1), "after the start");
    world.pass(Duration::from_secs(30));
    world.check_all_is_shown(host);
    let counts = &world.host(host).counts;
    assert_eq!(counts.dials, before.dials + 1);
    assert_eq!((counts.lists, counts.thread_snapshots), (before.lists, before.thread_snapshots));
    let cursor = world.link.thread(host, thread(1)).unwrap().cursor().unwrap();
    assert_eq!(cursor.epoch, world.host(host).log.head().epoch, "of the new start");
}

#[test]
fn a_host_that_lost_what_was_shown_is_believed_all_the_same() {
    let (mut world, host) = watching(4);
    for number in 0..20 {
        world.text(host, thread(1), &format!("word {number}"));
    }
    world.pass(Duration::from_secs(1));
    world.restart(host, 10);
    world.text(host, thread(1), "another word");
    world.pass(Duration::from_secs(30));
    world.check_all_is_shown(host);
    assert_eq!(world.host(host).counts.thread_snapshots, 2, "a reset, not a silent gap");
}

#[test]
fn a_gap_that_is_too_large_is_filled_by_one_snapshot() {
    let (mut world, host) = watching(5);
    world.cut(host);
    for _ in 0..1_000 {
        world.text(host, thread(1), "word");
    }
    world.pass(Duration::from_secs(30));
    world.check_all_is_shown(host);
    assert_eq!(world.host(host).counts.thread_snapshots, 2);
}

#[test]
fn an_event_that_was_lost_on_a_healthy_socket_is_noticed_and_fetched() {
    let (mut world, host) = watching(6);
    // Written, and told to nobody.
    world.set(host, |host| {
        host.log.write(thread(1), EventBody::Pinned {});
    });
    assert!(!world.link.thread(host, thread(1)).unwrap().detail().unwrap().thread.pinned);
    world.pass(Duration::from_secs(40));
    world.check_all_is_shown(host);
    assert!(world.link.thread(host, thread(1)).unwrap().detail().unwrap().thread.pinned);
    assert_eq!(world.host(host).counts.dials, 1, "by the same socket");
}

#[test]
fn a_thread_that_is_deleted_while_nobody_is_connected_is_gone_for_good() {
    let (mut world, host) = watching(7);
    world.cut(host);
    world.pass_ms(30);
    world.body(host, thread(1), EventBody::Deleted {});
    world.until_live(host);
    world.pass(Duration::from_secs(600));
    assert_eq!(world.link.thread(host, thread(1)).unwrap().status, DataStatus::Deleted);
    let counts = &world.host(host).counts;
    assert_eq!(counts.thread_snapshots + counts.thread_resumes, 2, "it is asked for once more");
    assert_eq!(world.link.shell(host).unwrap().list.as_ref().unwrap().rows().count(), 0);
    assert!(world.store.threads.is_empty());
}

#[test]
fn a_prompt_that_was_on_its_way_when_the_wire_broke_is_not_sent_again() {
    let (mut world, host) = watching(8);
    world.prompt(host, thread(1));
    world.pass_ms(5);
    world.cut(host);
    world.pass(Duration::from_secs(600));
    assert_eq!(world.phase(host), ConnectionPhase::Connected);
    assert!(world.host(host).prompts.get(&client(1)).is_none_or(|times| *times == 1));
    let answered = |change: &crate::Change| matches!(change, crate::Change::Answered { .. });
    assert_eq!(world.told(answered), 1, "whoever sent it is told, once");

    world.set(host, |host| host.manner = Manner::Forbids(503));
    world.cut(host);
    world.pass(Duration::from_secs(1));
    world.prompt(host, thread(1));
    world.set(host, |host| host.manner = Manner::Serves);
    world.pass(Duration::from_secs(600));
    assert_eq!(
        world.host(host).prompts.get(&client(2)),
        None,
        "without a session it fails at once"
    );
    assert_eq!(world.told(answered), 2);
}

#[test]
fn going_back_to_a_thread_within_five_minutes_needs_no_snapshot() {
    let mut quiet = options();
    quiet.persist = false;
    let mut world = World::new(9, quiet);
    let host = world.paired("kitchen", KITCHEN);
    world.create(host, thread(1));
    world.start(None);
    world.until_live(host);
    let look = |world: &mut World, away: u64| {
        let consumer = world.act(|link, now| link.mount(now, host, thread(1))).unwrap();
        world.pass(Duration::from_secs(1));
        world.check_all_is_shown(host);
        world.act(|link, now| link.unmount(now, host, consumer));
        world.text(host, thread(1), "meanwhile");
        world.pass(Duration::from_secs(away));
        world.host(host).counts.thread_snapshots
    };
    assert_eq!(look(&mut world, 299), 1);
    assert_eq!(look(&mut world, 301), 1);
    assert_eq!(look(&mut world, 0), 2);
}
