//! The beginning and the end of the environment server, and what it survives.

use std::{
    fs::{self, File},
    io::Read,
    time::Duration,
};

use rustix::{fs::FlockOperation, process::Signal};
use serde_json::json;
use wakeful_wire::sandbox::{AskKind, Refusal, Reply, SurfaceState};

use crate::{
    fixture::{Ground, Sandbox, eventually, kill, lives},
    host::{bare, command},
};

fn held() -> (Ground, File) {
    let ground = Ground::new(&[("app", json!({ "command": "exec $WAKEFUL_BIN stub" }))]);
    let directory = ground.spec.workspace.join(".wakeful");
    fs::create_dir(&directory).unwrap();
    let lock = File::create(directory.join("threads.lock")).unwrap();
    rustix::fs::flock(&lock, FlockOperation::NonBlockingLockExclusive).unwrap();
    (ground, lock)
}

#[test]
fn a_log_that_cannot_be_opened_harms_no_surface_and_heals() {
    let (ground, lock) = held();
    let sandbox = ground.start();
    sandbox.wait_for("app", SurfaceState::Ready);
    assert!(sandbox.get("app", "/").contains("200 OK"));
    let broken = sandbox.status_when("the fault", |status| status.host.fault.is_some());
    assert!(broken.host.fault.unwrap().contains("another process"));
    let Err(Refusal::GivenUp { reason }) = sandbox.dial_host() else { panic!("it serves") };
    assert!(reason.contains("another process"), "{reason}");
    let Err(Refusal::Host { problem }) = sandbox.deliver(command("true").1) else {
        panic!("it was taken")
    };
    assert!(problem.retry && problem.detail.unwrap().contains("another process"));

    drop(lock);
    sandbox.status_when("the end of the fault", |status| status.host.fault.is_none());
    assert!(sandbox.dial_host().is_ok());
    assert!(sandbox.deliver(command("true").1).unwrap().changed);
    assert_eq!(sandbox.events("host_started").len(), 1, "only what was opened has begun");
}

#[test]
fn a_file_that_is_no_log_is_said_so_and_the_next_try_finds_it_mended() {
    let ground = Ground::new(&[("app", json!({ "command": "exec $WAKEFUL_BIN stub" }))]);
    let directory = ground.spec.workspace.join(".wakeful");
    fs::create_dir(&directory).unwrap();
    let log = directory.join("threads.db");
    fs::write(&log, "no database ".repeat(1_000)).unwrap();
    let sandbox = ground.start();
    sandbox.wait_for("app", SurfaceState::Ready);
    sandbox.status_when("the fault", |status| status.host.fault.is_some());
    fs::remove_file(log).unwrap();
    sandbox.status_when("the end of the fault", |status| status.host.fault.is_none());
}

#[test]
fn a_drain_before_the_host_is_open_holds_what_comes_with_it() {
    let (ground, lock) = held();
    let sandbox = ground.start();
    sandbox.status_when("the fault", |status| status.host.fault.is_some());
    assert_eq!(sandbox.ask(AskKind::Drain { hold_ms: 60_000 }), Reply::Drained { turns: 0 });
    drop(lock);
    sandbox.status_when("the end of the fault", |status| status.host.fault.is_none());
    std::thread::scope(|scope| {
        let waiting = scope.spawn(|| sandbox.deliver(command("true").1));
        let pause = rustix::time::Timespec { tv_sec: 0, tv_nsec: 300_000_000 };
        let _interrupted = rustix::thread::nanosleep(&pause);
        assert!(sandbox.events("thread_created").is_empty());
        assert_eq!(sandbox.ask(AskKind::Drain { hold_ms: 0 }), Reply::Drained { turns: 0 });
        assert!(waiting.join().unwrap().unwrap().changed);
    });
}

/// Starts a turn that does not end, and answers its process.
fn endless(sandbox: &Sandbox) -> i32 {
    sandbox.deliver(command("echo $$ > pid; echo said; sleep 1000").1).unwrap();
    sandbox.written("pid").parse().unwrap()
}

#[test]
fn a_stop_cuts_running_turns_and_leaves_a_whole_log_and_no_process() {
    let mut sandbox = bare();
    let pid = endless(&sandbox);
    let mut connected = eventually("the host", || sandbox.dial_host().ok());
    assert_eq!(sandbox.ask(AskKind::Stop { grace_ms: 20_000 }), Reply::Done);
    // A connection on which nothing is under way ends; nobody hangs on it.
    assert_eq!(connected.read(&mut [0; 16]).unwrap(), 0);
    assert_eq!(sandbox.wait_end(), Some(0));
    assert!(!lives(pid));
    let ended = sandbox.events("turn_ended");
    assert_eq!(ended.len(), 1);
    assert_eq!(ended[0]["outcome"]["type"], "cut");
    let log = sandbox.log("envd.log");
    let at = |what: &str| log.find(what).unwrap_or_else(|| panic!("no `{what}` in: {log}"));
    assert!(at("stopping") < at("the host is closed") && at("the host is closed") < at("stopped"));
}

#[test]
fn a_stop_without_grace_is_not_held_up_by_the_host() {
    let mut sandbox = bare();
    let pid = endless(&sandbox);
    sandbox.ask(AskKind::Stop { grace_ms: 0 });
    assert_eq!(sandbox.wait_end(), Some(0));
    assert!(!lives(pid));
}

#[test]
fn a_killed_envd_loses_nothing_and_the_next_start_says_what_was_cut() {
    let mut first = bare();
    let pid = endless(&first);
    eventually("what it said", || (!first.events("terminal").is_empty()).then_some(()));
    kill(first.envd.id().cast_signed(), Signal::KILL);
    assert_eq!(first.wait_end(), None);
    eventually("the end of its command", || (!lives(pid)).then_some(()));
    assert!(first.events("turn_ended").is_empty());

    let second = first.ground.next().start();
    eventually("the host", || second.dial_host().ok());
    let ended = second.events("turn_ended");
    assert_eq!(ended.len(), 1, "{ended:?}");
    assert_eq!(ended[0]["outcome"]["type"], "cut");
    assert_eq!(second.status().host.turns, 0);
    assert_eq!(second.events("host_started").len(), 2);
    assert!(!second.events("terminal").is_empty());
    assert!(second.deliver(command("true").1).unwrap().changed);
}

#[test]
fn with_isolation_the_host_works_as_without() {
    let mut ground = Ground::new(&[]);
    ground.spec.isolation.landlock = true;
    ground.spec.isolation.seccomp = true;
    let mut sandbox = ground.start();
    sandbox.deliver(command("tty > tty; echo done > done").1).unwrap();
    assert_eq!(sandbox.written("done"), "done");
    assert!(sandbox.written("tty").starts_with("/dev/pts/"));
    assert!(sandbox.dial_host().is_ok());
    sandbox.status_when("the end of the turn", |status| status.host.turns == 0);
    sandbox.ask(AskKind::Stop {
        grace_ms: u64::try_from(Duration::from_secs(20).as_millis()).unwrap(),
    });
    assert_eq!(sandbox.wait_end(), Some(0));
    assert_eq!(sandbox.events("turn_ended").len(), 1);
}
