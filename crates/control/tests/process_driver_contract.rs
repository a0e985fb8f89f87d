//! The process driver with real processes: the contract of every driver, and what only this one
//! can get wrong.
//!
//! This program is its own `envd`: the driver starts it again under the hidden subcommands. So it
//! has a `main` of its own, which answers the test runner as the standard one does.

#![expect(clippy::unwrap_used, reason = "everything here is a test: a failed step fails it")]

#[path = "process_driver/ground.rs"]
mod ground;
#[path = "process_driver/runner.rs"]
mod runner;

use std::{
    collections::BTreeSet,
    fs,
    io::Write,
    process::{Command, ExitCode, Stdio},
    time::Duration,
};

use ground::{GRACE, Ground, eventually, kill, lives, marked};
use rustix::process::Signal;
use serde_json::json;
use wakeful_control::driver::process::ProcessDriver;
use wakeful_lifecycle::{
    Secret, Seen,
    port::{Driver, DriverError},
    testing::contract::driver as contract,
};
use wakeful_wire::{
    SurfaceName,
    gate::Upstream,
    rpc::{Call, Prompt, ThreadCreate},
    sandbox::{MARKER, RUN_MARKER, SurfaceState, run_dir, subcommand},
};

fn main() -> ExitCode {
    let mut args = std::env::args_os().skip(1);
    match args.next().as_deref().and_then(|word| word.to_str()) {
        Some(subcommand::ENVD) => wakeful_envd::main_blocking(std::io::stdin().lock()),
        Some(subcommand::SHIM) => wakeful_envd::exec_shim(args),
        Some(subcommand::PROBE) => {
            wakeful_envd::probe_isolation(std::io::stdin().lock(), std::io::stdout())
        }
        Some(subcommand::TETHER) => wakeful_envd::agent::tether(args),
        Some("demo") => ground::demo(),
        _ => runner::main(tests![
            process_driver_passes_the_driver_contract,
            a_new_platform_adopts_what_runs,
            a_killed_envd_is_absent_and_nothing_of_it_is_left,
            what_a_crash_left_half_made_is_buried,
            a_late_envd_of_a_sandbox_that_was_given_up_ends,
            an_envd_that_hangs_is_a_doubt_and_can_be_stopped,
            an_envd_that_hangs_while_it_is_stopped_is_killed,
            a_creation_waits_for_an_envd_that_is_coming_up,
            a_failed_start_leaves_nothing,
            a_template_whose_program_is_missing_is_not_started,
            a_stranger_is_neither_stopped_nor_asked,
            a_creation_that_was_dropped_can_be_taken_down,
            two_creations_at_once_make_one_sandbox,
            a_look_never_takes_a_starting_sandbox_for_dead,
            logs_are_kept_after_the_sandbox_and_forgotten_with_the_environment,
            an_upstream_leads_to_the_program,
            a_change_is_hinted_and_glanced_at,
            a_lazy_surface_is_started_when_asked,
            isolation_is_reported_as_it_is,
            a_program_behind_a_shim_of_this_machines_path_comes_up,
            a_turn_is_hinted_counted_by_a_drain_and_found_by_a_new_platform,
            the_host_is_reached_over_the_control_socket,
        ]),
    }
}

async fn present(driver: &ProcessDriver, ground: &Ground) -> wakeful_lifecycle::Present {
    match driver.observe(&ground.sandbox).await {
        Seen::Present(present) => present,
        other @ (Seen::Absent | Seen::Unknown) => panic!("expected a sandbox, got {other:?}"),
    }
}

async fn created(ground: &Ground) -> ProcessDriver {
    let driver = ground.driver();
    driver.create(&ground.launch()).await.unwrap();
    contract::wait_ready(&driver, &ground.sandbox).await;
    driver
}

async fn process_driver_passes_the_driver_contract() {
    let ground = Ground::demo();
    let driver = ground.driver();
    contract::driver_contract(&driver, |sandbox| ground.launch_of(sandbox), "app").await;
    assert_eq!(ground.run_dirs(), 0, "nothing is left on disk");
}

async fn a_new_platform_adopts_what_runs() {
    let ground = Ground::demo();
    let driver = created(&ground).await;
    let before = present(&driver, &ground).await;
    drop(driver);
    let driver = ground.driver();
    assert_eq!(driver.glance(&ground.sandbox), Seen::Unknown, "it has not looked yet");
    assert!(driver.upstream(&ground.sandbox, &"app".parse().unwrap()).is_none());
    let after = present(&driver, &ground).await;
    assert_eq!(before.surfaces, after.surfaces, "the same processes");
    assert!(driver.upstream(&ground.sandbox, &"app".parse().unwrap()).is_some());
    driver.create(&ground.launch()).await.unwrap();
    assert_eq!(present(&driver, &ground).await.surfaces, before.surfaces);
    driver.stop(&ground.sandbox, GRACE).await.unwrap();
}

async fn a_killed_envd_is_absent_and_nothing_of_it_is_left() {
    let ground = Ground::of(json!({ "app": {
        "command": "(setsid sleep 1000 &); (setsid sh -c 'trap \"\" TERM; sleep 1000 & wait' &); \
                    echo kept > file; exec \"$WAKEFUL_BIN\" demo",
        "ready": { "http": "/healthz" },
    }}));
    let driver = created(&ground).await;
    let envd = ground.envd_pid();
    assert!(marked(&ground.sandbox).len() >= 4);
    kill(envd, Signal::KILL);
    let seen = eventually("the absence", async || {
        let seen = driver.observe(&ground.sandbox).await;
        (seen != Seen::Unknown).then_some(seen)
    })
    .await;
    assert_eq!(seen, Seen::Absent);
    assert_eq!(marked(&ground.sandbox), Vec::<i32>::new());
    assert_eq!(driver.glance(&ground.sandbox), Seen::Absent);
    assert_eq!(ground.run_dirs(), 0);
    assert_eq!(fs::read_to_string(ground.workspace().join("file")).unwrap(), "kept\n");
}

async fn what_a_crash_left_half_made_is_buried() {
    let ground = Ground::demo();
    let driver = ground.driver();
    driver.create(&ground.launch()).await.unwrap();
    let dir = ground.run_dir();
    driver.stop(&ground.sandbox, GRACE).await.unwrap();
    let table: [&[&str]; 4] =
        [&[], &[run_dir::LOCK], &[run_dir::LOCK, "logs/app.log"], &["logs/x"]];
    for files in table {
        fs::create_dir_all(dir.join(run_dir::LOGS)).unwrap();
        for file in files {
            fs::write(dir.join(file), "x").unwrap();
        }
        assert_eq!(driver.observe(&ground.sandbox).await, Seen::Absent, "{files:?}");
        assert_eq!(ground.run_dirs(), 0, "{files:?}");
        // The same, found by a stop and by a creation.
        fs::create_dir(&dir).unwrap();
        driver.stop(&ground.sandbox, GRACE).await.unwrap();
        assert_eq!(ground.run_dirs(), 0);
        fs::create_dir(&dir).unwrap();
        driver.create(&ground.launch()).await.unwrap();
        driver.stop(&ground.sandbox, GRACE).await.unwrap();
    }
}

async fn a_late_envd_of_a_sandbox_that_was_given_up_ends() {
    let ground = Ground::demo();
    let driver = ground.driver();
    driver.create(&ground.launch()).await.unwrap();
    let dir = ground.run_dir();
    driver.stop(&ground.sandbox, GRACE).await.unwrap();
    // What a platform leaves that dies between the spawn and the end of the spec: here the spec
    // arrives late, after somebody has looked.
    fs::create_dir(&dir).unwrap();
    fs::write(dir.join(run_dir::LOCK), "").unwrap();
    let mut late = Command::new(std::env::current_exe().unwrap())
        .arg(subcommand::ENVD)
        .stdin(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    assert_eq!(driver.observe(&ground.sandbox).await, Seen::Absent);
    let text = serde_json::to_vec(&ground.spec(&dir)).unwrap();
    late.stdin.take().unwrap().write_all(&text).unwrap();
    assert_eq!(late.wait().unwrap().code(), Some(1));
    assert_eq!(driver.observe(&ground.sandbox).await, Seen::Absent);
    assert_eq!(ground.run_dirs(), 0);
}

async fn an_envd_that_hangs_is_a_doubt_and_can_be_stopped() {
    let ground = Ground::demo();
    let driver = created(&ground).await;
    let envd = ground.envd_pid();
    kill(envd, Signal::STOP);
    assert_eq!(driver.observe(&ground.sandbox).await, Seen::Unknown);
    assert_eq!(driver.glance(&ground.sandbox), Seen::Unknown);
    assert!(lives(envd), "a doubt changes nothing");
    driver.stop(&ground.sandbox, Duration::ZERO).await.unwrap();
    assert!(!lives(envd));
    assert_eq!(marked(&ground.sandbox), Vec::<i32>::new());
    assert_eq!(driver.observe(&ground.sandbox).await, Seen::Absent);
}

async fn an_envd_that_hangs_while_it_is_stopped_is_killed() {
    let ground = Ground::of(json!({ "app": {
        "command": "trap 'kill -STOP $PPID' TERM; echo up > up; while :; do sleep 0.02; done",
    }}));
    let driver = ground.driver();
    driver.create(&ground.launch()).await.unwrap();
    eventually("the program", async || ground.workspace().join("up").exists().then_some(())).await;
    driver.stop(&ground.sandbox, Duration::ZERO).await.unwrap();
    assert_eq!(marked(&ground.sandbox), Vec::<i32>::new());
    assert_eq!(ground.run_dirs(), 0);
}

async fn a_creation_waits_for_an_envd_that_is_coming_up() {
    let ground = Ground::demo();
    let driver = created(&ground).await;
    let envd = ground.envd_pid();
    kill(envd, Signal::STOP);
    let launch = ground.launch();
    let driver = &driver;
    let creation = async {
        let creating = driver.create(&launch);
        let waited = tokio::time::timeout(Duration::from_millis(300), creating).await;
        assert!(waited.is_err(), "it holds the lock, so it may yet answer");
        driver.create(&launch).await
    };
    let going_on = async {
        tokio::time::sleep(Duration::from_millis(600)).await;
        kill(envd, Signal::CONT);
    };
    let (created, ()) = futures::future::join(creation, going_on).await;
    created.unwrap();
    assert_eq!(ground.envd_pid(), envd, "the same one");
    driver.stop(&ground.sandbox, GRACE).await.unwrap();
}

async fn a_failed_start_leaves_nothing() {
    let ground = Ground::demo();
    let driver = ground.driver();
    let mut launch = ground.launch();
    launch.workspace = ground.workspace().join("nowhere");
    let error = driver.create(&launch).await.unwrap_err();
    assert!(!error.fault.permanent);
    assert!(error.fault.reason.contains("workspace"), "{error}");
    assert_eq!(ground.run_dirs(), 0);
    assert_eq!(marked(&ground.sandbox), Vec::<i32>::new());
    assert_eq!(driver.observe(&ground.sandbox).await, Seen::Absent);
    driver.create(&ground.launch()).await.unwrap();
    driver.stop(&ground.sandbox, GRACE).await.unwrap();
}

async fn a_template_whose_program_is_missing_is_not_started() {
    let ground = Ground::of(json!({ "app": { "command": "no-such-program --port $PORT" } }));
    let driver = ground.driver();
    let DriverError { fault } = driver.create(&ground.launch()).await.unwrap_err();
    assert!(fault.permanent && fault.reason.contains("`no-such-program`"), "{}", fault.reason);
    assert_eq!(ground.run_dirs(), 0);
}

async fn a_stranger_is_neither_stopped_nor_asked() {
    let ground = Ground::demo();
    let driver = created(&ground).await;
    let mut stranger = ground.sandbox.clone();
    stranger.secret = Secret("another".to_owned());
    assert!(driver.stop(&stranger, Duration::ZERO).await.is_err());
    let mut launch = ground.launch();
    launch.sandbox = stranger.clone();
    assert!(driver.create(&launch).await.is_err());
    let app = "app".parse().unwrap();
    assert!(driver.start_surface(&stranger, &app).await.is_err());
    assert!(driver.upstream(&stranger, &app).is_none());
    assert_eq!(driver.glance(&stranger), Seen::Unknown);
    assert!(present(&driver, &ground).await.ready);
    driver.stop(&ground.sandbox, GRACE).await.unwrap();
}

async fn a_creation_that_was_dropped_can_be_taken_down() {
    // At many points of it, from before the directory to after the hello.
    for micros in [0, 50, 200, 500, 1000, 2000, 4000, 8000, 20_000] {
        let ground = Ground::demo();
        let driver = ground.driver();
        let launch = ground.launch();
        let _dropped =
            tokio::time::timeout(Duration::from_micros(micros), driver.create(&launch)).await;
        // A platform that comes after knows nothing of it.
        let driver = ground.driver();
        driver.stop(&ground.sandbox, GRACE).await.unwrap();
        eventually("the end of its processes", async || {
            marked(&ground.sandbox).is_empty().then_some(())
        })
        .await;
        assert_eq!(driver.observe(&ground.sandbox).await, Seen::Absent);
        assert_eq!(ground.run_dirs(), 0, "after {micros} µs");
    }
}

async fn two_creations_at_once_make_one_sandbox() {
    let ground = Ground::demo();
    let driver = ground.driver();
    let launch = ground.launch();
    let results = futures::future::join_all((0..8).map(|_| driver.create(&launch))).await;
    assert!(results.iter().all(Result::is_ok));
    contract::wait_ready(&driver, &ground.sandbox).await;
    let programs: BTreeSet<_> = marked(&ground.sandbox).into_iter().collect();
    assert_eq!(programs.len(), 2, "one envd and one program");
    driver.stop(&ground.sandbox, GRACE).await.unwrap();
}

async fn a_look_never_takes_a_starting_sandbox_for_dead() {
    let ground = Ground::demo();
    let driver = ground.driver();
    let launch = ground.launch();
    let mut creation = std::pin::pin!(driver.create(&launch));
    // The first poll takes the turn; from then on there is something that a look could bury.
    assert!(futures::poll!(creation.as_mut()).is_pending());
    let looking = async {
        loop {
            assert_ne!(driver.observe(&ground.sandbox).await, Seen::Absent);
            tokio::task::yield_now().await;
        }
    };
    tokio::select! {
        created = creation => created.unwrap(),
        () = looking => {}
    }
    contract::wait_ready(&driver, &ground.sandbox).await;
    driver.stop(&ground.sandbox, GRACE).await.unwrap();
}

async fn logs_are_kept_after_the_sandbox_and_forgotten_with_the_environment() {
    let ground = Ground::of(json!({ "app": {
        "command": "echo hello from the program; exec \"$WAKEFUL_BIN\" demo",
    }}));
    let driver = created(&ground).await;
    let app = "app".parse().unwrap();
    let env = ground.sandbox.env;
    let tail = async || driver.logs(env, &app, 1000, None).await.unwrap().bytes;
    eventually("the line", async || (tail().await == b"hello from the program\n").then_some(()))
        .await;
    driver.stop(&ground.sandbox, GRACE).await.unwrap();
    assert_eq!(tail().await, b"hello from the program\n");
    driver.forget(env).await.unwrap();
    assert_eq!(tail().await, b"");
}

async fn an_upstream_leads_to_the_program() {
    let ground = Ground::demo();
    let driver = created(&ground).await;
    let app = "app".parse().unwrap();
    let Some(Upstream::Broker { socket, secret, authority, basic }) =
        driver.upstream(&ground.sandbox, &app)
    else {
        panic!("a broker")
    };
    let port = present(&driver, &ground).await.surfaces["app"].port;
    assert_eq!(authority, format!("127.0.0.1:{port}"));
    assert_eq!(basic, None);
    assert!(socket.as_os_str().len() < 108);
    let answer = ground::get_through(&socket, &secret, "app", "/healthz");
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    assert!(driver.upstream(&ground.sandbox, &"db".parse().unwrap()).is_none());
    driver.stop(&ground.sandbox, GRACE).await.unwrap();
}

async fn a_change_is_hinted_and_glanced_at() {
    let ground = Ground::demo();
    let driver = created(&ground).await;
    let before = present(&driver, &ground).await.surfaces["app"].clone();
    kill(before.pid.unwrap().cast_signed(), Signal::KILL);
    // By hints alone, without a look.
    loop {
        let hinted = tokio::time::timeout(Duration::from_secs(60), driver.next_hint()).await;
        assert_eq!(hinted.unwrap(), ground.sandbox.env);
        if let Seen::Present(present) = driver.glance(&ground.sandbox)
            && present.surfaces["app"].state == SurfaceState::Ready
            && present.surfaces["app"].starts == 2
        {
            break;
        }
    }
    kill(ground.envd_pid(), Signal::KILL);
    tokio::time::timeout(Duration::from_secs(60), async {
        while driver.glance(&ground.sandbox) != Seen::Unknown {
            driver.next_hint().await;
        }
    })
    .await
    .unwrap();
    assert_eq!(driver.observe(&ground.sandbox).await, Seen::Absent);
}

async fn a_lazy_surface_is_started_when_asked() {
    let ground = Ground::of(json!({ "db": {
        "command": "exec \"$WAKEFUL_BIN\" demo", "start": "lazy",
    }}));
    let driver = created(&ground).await;
    let db = "db".parse().unwrap();
    assert!(driver.upstream(&ground.sandbox, &db).is_none());
    driver.start_surface(&ground.sandbox, &db).await.unwrap();
    eventually("the surface", async || driver.upstream(&ground.sandbox, &db)).await;
    let error = driver.start_surface(&ground.sandbox, &"x".parse().unwrap()).await.unwrap_err();
    assert!(error.fault.permanent);
    driver.stop(&ground.sandbox, GRACE).await.unwrap();
}

async fn isolation_is_reported_as_it_is() {
    let ground = Ground::demo();
    let driver = created(&ground).await;
    let report = driver.isolation_report().await;
    assert_eq!(report.in_force, present(&driver, &ground).await.isolation);
    assert!(report.in_force.parts.iter().any(|(part, _)| part == "landlock"));
    driver.stop(&ground.sandbox, GRACE).await.unwrap();
    // Every process carries both marks, so that two installations are told apart.
    assert_ne!(MARKER, RUN_MARKER);
}

async fn a_program_behind_a_shim_of_this_machines_path_comes_up() {
    let path = std::env::var_os("PATH").unwrap();
    if !std::env::split_paths(&path).any(|dir| dir.join("python3").is_file()) {
        let _closed = writeln!(std::io::stderr(), "skipped: no python3 on this machine");
        return;
    }
    let ground = Ground::of(json!({ "app": {
        "command": "python3 -m http.server $PORT --bind 127.0.0.1",
        "ready": { "http": "/" },
    }}));
    fs::write(ground.workspace().join("file"), "from the workspace").unwrap();
    let driver = ground.driver_with(std::env::vars_os().collect());
    driver.create(&ground.launch()).await.unwrap();
    contract::wait_ready(&driver, &ground.sandbox).await;
    let present = present(&driver, &ground).await;
    let app = &present.surfaces["app"];
    assert_eq!(app.state, SurfaceState::Ready, "{:?}", app.reason);
    let Some(Upstream::Broker { socket, secret, .. }) =
        driver.upstream(&ground.sandbox, &"app".parse().unwrap())
    else {
        panic!("a broker")
    };
    let answer = ground::get_through(&socket, &secret, "app", "/file");
    assert!(answer.ends_with("from the workspace"), "{answer}");
    driver.stop(&ground.sandbox, GRACE).await.unwrap();
}

async fn a_turn_is_hinted_counted_by_a_drain_and_found_by_a_new_platform() {
    let ground = Ground::demo();
    let driver = created(&ground).await;
    let sandbox = &ground.sandbox;
    let id = |text: &str| format!("0199f0a0-7b5c-7c3e-9d2f-{text:0>12}");
    let text = "while [ ! -e go ]; do sleep 0.02; done";
    let call = Call::ThreadCreate(ThreadCreate {
        thread: id("1").parse().unwrap(),
        parent: None,
        project: String::new(),
        agent: Some("shell".to_owned()),
        title: None,
        prompt: Some(Prompt::text(id("2").parse().unwrap(), text)),
    });
    assert!(driver.deliver(sandbox, &call).await.unwrap().changed);
    // By hints alone, without a look.
    let glanced = async |driver: &ProcessDriver, turns| {
        let turns_of = |seen| match seen {
            Seen::Present(present) => Some(present.host.turns),
            Seen::Absent | Seen::Unknown => None,
        };
        let seen = async {
            while turns_of(driver.glance(sandbox)) != Some(turns) {
                driver.next_hint().await;
            }
        };
        tokio::time::timeout(Duration::from_secs(60), seen).await.expect("the turns are hinted");
    };
    glanced(&driver, 1).await;
    assert_eq!(driver.drain(sandbox, Duration::from_secs(1)).await.unwrap(), 1);
    driver.drain(sandbox, Duration::ZERO).await.unwrap();

    drop(driver);
    let driver = ground.driver();
    assert_eq!(present(&driver, &ground).await.host.turns, 1);
    assert!(!driver.deliver(sandbox, &call).await.unwrap().changed);
    fs::write(ground.workspace().join("go"), "").unwrap();
    glanced(&driver, 0).await;
    assert_eq!(driver.drain(sandbox, Duration::from_secs(1)).await.unwrap(), 0);
    driver.stop(sandbox, GRACE).await.unwrap();
}

async fn the_host_is_reached_over_the_control_socket() {
    let ground = Ground::demo();
    let driver = created(&ground).await;
    let Some(Upstream::Broker { authority, basic, .. }) =
        driver.upstream(&ground.sandbox, &SurfaceName::host())
    else {
        panic!("a broker")
    };
    assert_eq!((authority.as_str(), basic), ("host", None));
    driver.stop(&ground.sandbox, GRACE).await.unwrap();
    assert!(driver.upstream(&ground.sandbox, &SurfaceName::host()).is_none());
}
