//! Surfaces: started, probed, restarted, given up.

use rustix::process::Signal;
use serde_json::json;
use wakeful_wire::sandbox::{AskKind, Refusal, Reply, SurfaceState};

use crate::fixture::{Ground, Sandbox, eventually, kill};

#[test]
fn a_crash_is_restarted_and_a_restart_has_another_port() {
    let sandbox = Sandbox::of(&[("app", json!({ "command": "exec $WAKEFUL_BIN stub" }))]);
    let first = sandbox.wait_for("app", SurfaceState::Ready).surfaces["app"].clone();
    kill(first.pid.unwrap().cast_signed(), Signal::KILL);
    let second = eventually("a second start", || {
        let status = sandbox.status().surfaces["app"].clone();
        (status.state == SurfaceState::Ready && status.starts == 2).then_some(status)
    });
    assert_ne!(first.pid, second.pid);
    assert_ne!(first.port, second.port);
    assert!(sandbox.get("app", "/hello").ends_with("GET /hello HTTP/1.1"));
}

#[test]
fn a_program_that_keeps_ending_is_given_up_and_started_again_when_asked() {
    let command = "echo no such module >&2; test -e fixed || exit 3; exec $WAKEFUL_BIN stub";
    let sandbox = Sandbox::of(&[
        ("app", json!({ "command": command })),
        ("agent", json!({ "command": "exec $WAKEFUL_BIN stub" })),
    ]);
    let status = sandbox.wait_for("app", SurfaceState::GivenUp).surfaces["app"].clone();
    assert_eq!(status.starts, 6);
    let reason = eventually("its last words", || {
        let reason = sandbox.status().surfaces["app"].reason.clone()?;
        reason.contains("it wrote last").then_some(reason)
    });
    assert!(reason.contains("status 3") && reason.contains("no such module"), "{reason}");
    assert!(matches!(sandbox.dial("app"), Err(Refusal::GivenUp { .. })));
    // One broken surface is no reason for the others not to work.
    assert!(sandbox.get("agent", "/").contains("200 OK"));
    assert!(sandbox.status().eager_ready());

    std::fs::write(sandbox.workspace("fixed"), "").unwrap();
    let start = AskKind::Start { surface: "app".parse().unwrap() };
    assert_eq!(sandbox.ask(start), Reply::Done);
    sandbox.wait_for("app", SurfaceState::Ready);
    assert!(sandbox.get("app", "/").contains("200 OK"));
}

#[test]
fn a_lazy_surface_starts_by_the_first_dial() {
    let sandbox =
        Sandbox::of(&[("app", json!({ "command": "exec $WAKEFUL_BIN stub", "start": "lazy" }))]);
    let status = sandbox.status();
    assert_eq!(status.surfaces["app"].state, SurfaceState::Stopped);
    assert!(status.eager_ready(), "a lazy surface is not waited for");
    assert_eq!(sandbox.dial("app").unwrap_err(), Refusal::NotReady);
    assert!(sandbox.get("app", "/").contains("200 OK"));
    assert_eq!(sandbox.status().surfaces["app"].starts, 1);
}

#[test]
fn a_server_that_swallows_its_first_requests_becomes_ready() {
    let sandbox = Sandbox::of(&[(
        "agent",
        json!({ "command": "exec $WAKEFUL_BIN stub hang 700", "ready": { "http": "/health" } }),
    )]);
    let before = sandbox
        .watch()
        .filter_map(|status| status.surfaces["agent"].reason.clone())
        .find(|reason| reason.contains("does not answer"));
    assert!(before.is_some(), "an open port alone is not ready");
    sandbox.wait_for("agent", SurfaceState::Ready);
    assert!(sandbox.get("agent", "/now").contains("200 OK"));
}

#[test]
fn a_program_that_listens_late_or_by_ipv6_alone_becomes_ready() {
    let sandbox = Sandbox::of(&[
        ("late", json!({ "command": "exec $WAKEFUL_BIN stub closed 300" })),
        ("six", json!({ "command": "exec $WAKEFUL_BIN stub v6", "ready": { "http": "/" } })),
    ]);
    assert!(sandbox.get("late", "/").contains("200 OK"));
    assert!(sandbox.get("six", "/").contains("200 OK"));
}

#[test]
fn a_probe_sends_the_pair_of_a_surface_with_basic_auth() {
    let mut ground = Ground::new(&[(
        "agent",
        json!({
            "command": "exec $WAKEFUL_BIN stub basic",
            "ready": { "http": "/health", "status": [200] },
            "auth": "basic",
        }),
    )]);
    ground.spec.basic_password = "pä:ss".to_owned();
    let sandbox = ground.start();
    assert!(sandbox.get("agent", "/").contains("401 Unauthorized"), "but a dial adds nothing");
}

#[test]
fn only_the_listed_statuses_mean_ready() {
    let sandbox = Sandbox::of(&[
        (
            "wrong",
            json!({ "command": "exec $WAKEFUL_BIN stub", "ready": { "http": "/", "status": [204] } }),
        ),
        ("any", json!({ "command": "exec $WAKEFUL_BIN stub", "ready": { "http": "/" } })),
    ]);
    sandbox.wait_for("any", SurfaceState::Ready);
    let reason = sandbox.watch().find_map(|status| {
        status.surfaces["wrong"].reason.clone().filter(|reason| reason.contains("answers 200"))
    });
    assert!(reason.is_some());
    assert_eq!(sandbox.status().surfaces["wrong"].state, SurfaceState::Starting);
    assert_eq!(sandbox.dial("wrong").unwrap_err(), Refusal::NotReady);
}

#[test]
fn what_a_program_started_goes_with_it_before_its_restart() {
    let command = "sleep 1000 & echo $! > child; exec $WAKEFUL_BIN stub";
    let sandbox = Sandbox::of(&[("app", json!({ "command": command }))]);
    let child: i32 = sandbox.written("child").parse().unwrap();
    kill(sandbox.pid_of("app"), Signal::KILL);
    eventually("the end of the child", || (!crate::fixture::lives(child)).then_some(()));
}

#[test]
fn programs_get_their_variables_and_nothing_of_the_platforms() {
    let mut ground = Ground::new(&[
        ("app", json!({ "command": "env > env; pwd > pwd; exec $WAKEFUL_BIN stub" })),
        ("agent", json!({ "command": "env > env2; exec $WAKEFUL_BIN stub", "auth": "basic" })),
    ]);
    ground.spec.env_vars = [("GREETING", "hello you"), ("PORT", "1"), ("WAKEFUL_SANDBOX", "no")]
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .into();
    let sandbox = ground.start();
    sandbox.wait_for("app", SurfaceState::Ready);
    sandbox.wait_for("agent", SurfaceState::Ready);
    let workspace = sandbox.ground.spec.workspace.display().to_string();
    let read = |name| std::fs::read_to_string(sandbox.workspace(name)).unwrap();
    assert_eq!(sandbox.written("pwd"), workspace);
    let variables = read("env");
    let has = |line: &str| variables.lines().any(|variable| variable == line);
    assert!(has("GREETING=hello you"));
    assert!(has(&format!("HOME={workspace}")));
    assert!(has("LANG=C.UTF-8"));
    assert!(has(&format!("PORT={}", sandbox.status().surfaces["app"].port)));
    assert!(has(&format!("WAKEFUL_SANDBOX={}", sandbox.ground.spec.sandbox)));
    assert!(!variables.contains("NOT_FOR_SANDBOXES"));
    assert!(!variables.contains("WAKEFUL_BASIC"), "only where it is declared");
    assert!(!variables.contains("the secret"));
    let variables = read("env2");
    assert!(variables.contains("WAKEFUL_BASIC_USER=wakeful\n"));
    assert!(variables.contains("WAKEFUL_BASIC_PASSWORD=hunter2\n"));
}

#[test]
fn a_log_holds_what_a_program_wrote_and_is_bounded() {
    let command = "echo to stdout; echo to stderr >&2; \
                   head -c 5000000 /dev/zero | tr '\\0' 'x'; echo; echo end; echo done > done; \
                   exec $WAKEFUL_BIN stub";
    let sandbox = Sandbox::of(&[
        ("big", json!({ "command": command })),
        ("small", json!({ "command": "echo out; echo err >&2; exec $WAKEFUL_BIN stub" })),
    ]);
    sandbox.written("done");
    eventually("the end of the log", || sandbox.log("big.log").ends_with("\nend\n").then_some(()));
    let (newest, older) = (sandbox.log("big.log").len(), sandbox.log("big.log.1").len());
    assert!(newest <= 1024 * 1024 && older <= 1024 * 1024, "{newest} {older}");
    assert!(newest + older > 1024 * 1024, "and keeps what it may: {newest} {older}");
    eventually("the small log", || (sandbox.log("small.log") == "out\nerr\n").then_some(()));
}

#[test]
fn a_port_that_somebody_else_serves_never_makes_a_surface_ready() {
    // The program never listens; a stranger does, outside of the sandbox.
    let sandbox = Sandbox::of(&[("app", json!({ "command": "exec sleep 1000" }))]);
    let port = sandbox.wait_for("app", SurfaceState::Starting).surfaces["app"].port;
    let _stranger =
        eventually("the port", || std::net::TcpListener::bind(("127.0.0.1", port)).ok());
    let reason = sandbox.watch().find_map(|status| {
        let surface = status.surfaces["app"].clone();
        assert_ne!(surface.state, SurfaceState::Ready);
        surface.reason.filter(|reason| reason.contains("not its own"))
    });
    assert!(reason.is_some());
    assert_eq!(sandbox.dial("app").unwrap_err(), Refusal::NotReady);
}
