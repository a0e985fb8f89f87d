//! `envd`'s own beginning and end.

use std::{fs, io::Write, time::Duration};

use rustix::process::Signal;
use serde_json::json;
use wakeful_wire::sandbox::{AskKind, Refusal, Reply, SurfaceState, run_dir};

use crate::fixture::{Ground, Sandbox, eventually, kill, lives};

#[test]
fn a_stop_leaves_nothing_behind_not_even_what_daemonised() {
    let command = "(setsid sh -c 'echo $$ > daemon; exec sleep 1000' </dev/null >/dev/null 2>&1 &) ; \
                   (setsid sh -c 'sleep 1000 & echo $! > grandchild; wait' &) ; \
                   (env -i setsid sleep 1000 & echo $! > unmarked) ; \
                   exec $WAKEFUL_BIN stub";
    let mut sandbox = Sandbox::of(&[("app", json!({ "command": command }))]);
    let mut pids: Vec<i32> = ["daemon", "grandchild", "unmarked"]
        .map(|name| sandbox.written(name).parse().unwrap())
        .into();
    pids.push(sandbox.pid_of("app"));
    assert!(pids.iter().all(|pid| lives(*pid)));
    assert_eq!(sandbox.ask(AskKind::Stop { grace_ms: 5000 }), Reply::Done);
    assert_eq!(sandbox.wait_end(), Some(0));
    assert!(pids.iter().all(|pid| !lives(*pid)), "{pids:?}");
    assert_eq!(sandbox.marked(), Vec::<i32>::new());
    assert!(!sandbox.run_dir().join(run_dir::SOCKET).exists());
}

#[test]
fn a_program_that_ignores_sigterm_is_killed_after_the_grace() {
    // Short sleeps: a shell that forks just then can lose a signal meant for its child.
    let command = "trap 'echo told > told' TERM; echo ready > ready; \
                   while :; do sleep 0.02; done";
    let mut sandbox = Sandbox::of(&[("app", json!({ "command": command }))]);
    sandbox.written("ready");
    let pid = sandbox.status().surfaces["app"].pid.unwrap().cast_signed();
    let begun = std::time::Instant::now();
    sandbox.ask(AskKind::Stop { grace_ms: 3_000 });
    // Asked of nothing new while it goes down.
    sandbox.written("told");
    assert!(lives(pid), "it has its grace");
    assert_eq!(sandbox.dial("app").unwrap_err(), Refusal::Stopping);
    assert_eq!(sandbox.wait_end(), Some(0));
    assert!(begun.elapsed() >= Duration::from_secs(3));
    assert!(!lives(pid));
    // It was killed by the stop, not by the end of an `envd` that gave up on it.
    assert!(sandbox.log("envd.log").contains("stopped after"));
}

#[test]
fn a_second_stop_shortens_the_grace() {
    let command = "trap '' TERM; echo ready > ready; while :; do sleep 1000; done";
    let mut sandbox = Sandbox::of(&[("app", json!({ "command": command }))]);
    sandbox.written("ready");
    sandbox.ask(AskKind::Stop { grace_ms: 500_000 });
    sandbox.ask(AskKind::Stop { grace_ms: 10 });
    assert_eq!(sandbox.wait_end(), Some(0));
}

#[test]
fn sigterm_to_envd_is_a_stop() {
    let mut sandbox = Sandbox::of(&[(
        "app",
        json!({ "command": "trap 'echo bye > bye; exit' TERM; echo up > up; \
                            while :; do sleep 0.05; done" }),
    )]);
    sandbox.written("up");
    kill(sandbox.envd.id().cast_signed(), Signal::TERM);
    assert_eq!(sandbox.wait_end(), Some(0));
    assert_eq!(sandbox.written("bye"), "bye");
}

#[test]
fn a_killed_envd_takes_its_children_with_it() {
    let mut sandbox = Sandbox::of(&[("app", json!({ "command": "exec $WAKEFUL_BIN stub" }))]);
    let pid = sandbox.pid_of("app");
    kill(sandbox.envd.id().cast_signed(), Signal::KILL);
    assert_eq!(sandbox.wait_end(), None);
    eventually("the end of the child", || (!lives(pid)).then_some(()));
}

#[test]
fn orphans_are_waited_for() {
    let command = "(setsid sh -c 'echo $$ > orphan; sleep 0.1' &); exec $WAKEFUL_BIN stub";
    let sandbox = Sandbox::of(&[("app", json!({ "command": command }))]);
    let pid = sandbox.written("orphan");
    eventually("the orphan's end", || {
        (!std::path::Path::new(&format!("/proc/{pid}")).exists()).then_some(())
    });
    assert_eq!(sandbox.wait_for("app", SurfaceState::Ready).surfaces["app"].starts, 1);
}

#[test]
fn a_spec_that_is_cut_short_ends_envd_before_it_did_anything() {
    let ground = Ground::new(&[("app", json!({ "command": "touch started" }))]);
    let text = serde_json::to_vec(&ground.spec).unwrap();
    for length in [0, text.len() / 2, text.len() - 1] {
        let mut envd = ground.spawn();
        envd.stdin.take().unwrap().write_all(&text[..length]).unwrap();
        assert_eq!(envd.wait().unwrap().code(), Some(1), "{length}");
    }
    assert_eq!(fs::read_dir(&ground.spec.run_dir).unwrap().count(), 1, "the lock file alone");
    let errors = fs::read_to_string(ground.dir.path().join("stderr")).unwrap();
    assert!(errors.contains("incomplete"), "{errors}");
}

#[test]
fn a_sandbox_that_was_given_up_cannot_come_up_afterwards() {
    let ground = Ground::new(&[("app", json!({ "command": "touch started" }))]);
    let mut envd = ground.spawn();
    fs::remove_file(ground.spec.run_dir.join(run_dir::LOCK)).unwrap();
    let text = serde_json::to_vec(&ground.spec).unwrap();
    envd.stdin.take().unwrap().write_all(&text).unwrap();
    assert_eq!(envd.wait().unwrap().code(), Some(1));
    assert_eq!(fs::read_dir(&ground.spec.run_dir).unwrap().count(), 0);
}

#[test]
fn one_run_directory_has_one_envd() {
    let sandbox = Sandbox::of(&[("app", json!({ "command": "exec $WAKEFUL_BIN stub" }))]);
    let mut second = sandbox.ground.spawn();
    let text = serde_json::to_vec(&sandbox.ground.spec).unwrap();
    second.stdin.take().unwrap().write_all(&text).unwrap();
    assert_eq!(second.wait().unwrap().code(), Some(1));
    assert!(sandbox.get("app", "/").contains("200 OK"));
}
