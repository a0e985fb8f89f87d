//! Whole runs, line by line, as people can read them. Where a run changes on purpose, its file below
//! `traces/` changes with it: the test says what it should be.

use std::time::Duration;

use super::world::{World, options, thread};
use crate::ConnectionPhase;

fn compare(name: &str, mut world: World, expected: &str) {
    let actual = world.trace.take();
    assert!(actual == expected, "traces/{name}.txt is now:\n{actual}");
}

#[test]
fn the_first_start_of_a_paired_host() {
    let mut world = World::new(1, options());
    let host = world.paired("kitchen", "http://192.168.1.20:4747");
    world.create(host, thread(1));
    world.write(host, |log| log.turn_started(thread(1)));
    world.trace.begin();
    world.start(None);
    world.until_live(host);
    let time = world.time;
    world.trace.remark(time, "a person looks at the thread");
    world.act(|link, now| link.mount(now, host, thread(1))).unwrap();
    world.pass(Duration::from_secs(1));
    let time = world.time;
    world.trace.remark(time, "the agent says something");
    world.text(host, thread(1), "soup");
    world.pass(Duration::from_secs(1));
    compare("first_start", world, include_str!("traces/first_start.txt"));
}

#[test]
fn a_host_that_is_restarted_in_the_middle_of_a_stream() {
    let mut world = World::new(2, options());
    let host = world.paired("kitchen", "http://192.168.1.20:4747");
    world.create(host, thread(1));
    world.write(host, |log| log.turn_started(thread(1)));
    world.start(None);
    world.until_live(host);
    world.act(|link, now| link.mount(now, host, thread(1))).unwrap();
    world.pass(Duration::from_secs(60));
    world.trace.begin();
    world.text(host, thread(1), "so");
    world.text(host, thread(1), "up");
    world.restart(host, 0);
    world.text(host, thread(1), "is ready");
    world.pass(Duration::from_secs(10));
    world.check_all_is_shown(host);
    compare("restart", world, include_str!("traces/restart.txt"));
}

#[test]
fn an_environment_that_falls_asleep_and_is_woken_by_a_person() {
    let mut world = World::new(3, options());
    let host = world.environment("kitchen");
    world.create(host, thread(1));
    world.trace.begin();
    world.start(Some("ada"));
    world.until_live(host);
    world.pass(Duration::from_secs(12));
    let time = world.time;
    world.trace.remark(time, "nobody has done anything for a while");
    world.put_to_sleep(host);
    world.pass(Duration::from_secs(3_600));
    assert_eq!(world.phase(host), ConnectionPhase::Asleep);
    let time = world.time;
    world.trace.remark(time, "a person writes");
    world.act(|link, now| link.intend(now, host));
    world.pass(Duration::from_secs(5));
    world.check_all_is_shown(host);
    compare("asleep", world, include_str!("traces/asleep.txt"));
}

#[test]
fn a_far_socket_that_dies_without_a_word() {
    let mut world = World::new(4, options());
    let host = world.paired("kitchen", "https://kitchen.example");
    world.create(host, thread(1));
    world.start(None);
    world.until_live(host);
    world.act(|link, now| link.mount(now, host, thread(1))).unwrap();
    world.pass(Duration::from_secs(60));
    world.trace.begin();
    world.kill(host);
    let time = world.time;
    world.trace.remark(time, "another network");
    world.act(|link, now| link.handle_path_changed(now));
    world.pass(Duration::from_secs(2));
    world.text(host, thread(1), "meanwhile");
    world.pass(Duration::from_secs(3));
    world.check_all_is_shown(host);
    compare("handover", world, include_str!("traces/handover.txt"));
}

#[test]
fn a_session_that_is_not_renewed_and_ends() {
    let mut world = World::new(5, options());
    let host = world.environment("kitchen");
    world.start(Some("ada"));
    world.until_live(host);
    world.pass(Duration::from_secs(3_500));
    world.set(host, |host| host.exchanges = false);
    world.trace.begin();
    world.run_until(|world| world.phase(host) == ConnectionPhase::Backoff);
    let time = world.time;
    world.trace.remark(time, "the host can give tokens again");
    world.set(host, |host| host.exchanges = true);
    world.until_live(host);
    let trace = world.trace.take();
    let lines = trace.lines().filter(|line| !line.ends_with("heartbeat"));
    let shown: String = lines.flat_map(|line| [line, "\n"]).collect();
    assert!(shown == include_str!("traces/expiry.txt"), "traces/expiry.txt is now:\n{shown}");
}
