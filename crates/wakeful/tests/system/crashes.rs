//! What dies, and what becomes of it: the platform, a program, a whole sandbox.

use std::time::{Duration, Instant};

use wakeful_wire::{EnvId, Phase};

use crate::support::{Platform, Process, Setup, User, kill, lives, stays, until};

/// The daemons of an environment's sandboxes.
fn daemons(platform: &Platform) -> Vec<Process> {
    platform.processes().into_iter().filter(Process::is_envd).collect()
}

/// The only sandbox that there is belongs to the record.
fn is_the_only_sandbox(platform: &Platform, user: &User, env: EnvId) {
    let uid = platform.environment(user, env).sandbox.unwrap().to_string();
    for process in platform.processes() {
        assert_eq!(process.sandbox.as_deref(), Some(uid.as_str()), "{process:?}");
    }
    assert_eq!(daemons(platform).len(), 1);
}

/// Nothing of any sandbox is left, once what was ending has ended.
fn nothing_is_left(platform: &Platform) {
    until("no process is left", || platform.processes().is_empty().then_some(()));
}

/// Lets a few milliseconds pass, so that something else is a little further.
fn spin(time: Duration) {
    let end = Instant::now() + time;
    while Instant::now() < end {
        std::hint::spin_loop();
    }
}

#[test]
fn after_a_kill_of_the_platform_a_ready_environment_is_adopted_as_it_is() {
    let platform = Setup { idle_agent: "20m", idle_app: "10m", ..Setup::default() }.up();
    let user = platform.sign_up_ready("ada");
    platform.app(&user, "PUT", "/file/notes.txt").body("kept").send().expect(201);
    let (before, pid) = (platform.environment(&user, user.env), platform.pid(&user));
    platform.kill_9();
    assert!(lives(pid), "a sandbox outlives the platform");
    platform.start(&[]);
    // Its clocks went on while nobody was there; they did not begin anew.
    let after = platform.await_phase(&user, user.env, Phase::Ready);
    assert_eq!(after.sandbox, before.sandbox);
    assert!(after.clocks.agent.expires_in_ms < before.clocks.agent.expires_in_ms, "{after:?}");
    assert!(after.clocks.agent.expires_in_ms > 0);
    assert_eq!(platform.pid(&user), pid, "the same process answers");
    assert_eq!(platform.app(&user, "GET", "/file/notes.txt").send().expect(200).text(), "kept");
    assert_eq!(platform.metric("wakeful_sandbox_starts_total"), 0);
    is_the_only_sandbox(&platform, &user, user.env);
    platform.suspend(&user);
    nothing_is_left(&platform);
}

#[test]
fn after_a_kill_of_the_platform_a_start_is_completed_in_the_sandbox_that_was_begun() {
    let platform = Setup { variables: vec![("START_GATE", "go")], ..Setup::default() }.up();
    let user = platform.sign_up("ada");
    until("the program runs", || (platform.processes().len() > 1).then_some(()));
    let before = platform.environment(&user, user.env);
    assert_eq!(before.phase, Phase::Starting);
    platform.kill_9();
    platform.start(&[]);
    assert_eq!(platform.environment(&user, user.env).phase, Phase::Starting);
    platform.release(user.env, "go");
    let after = platform.await_phase(&user, user.env, Phase::Ready);
    assert_eq!(after.sandbox, before.sandbox);
    assert_eq!(platform.metric("wakeful_sandbox_starts_total"), 0);
    is_the_only_sandbox(&platform, &user, user.env);
    platform.app(&user, "GET", "/hit").send().expect(200);
}

#[test]
fn after_a_kill_at_any_moment_of_a_start_one_sandbox_comes_up() {
    let platform = Setup::default().up();
    let user = platform.sign_up_asleep("ada");
    for step in 0..10_u32 {
        let wake = platform.call(&user, "POST", &format!("/api/environments/{}/wake", user.env));
        wake.send();
        // A little further into the start each time.
        spin(Duration::from_millis(4) * step);
        platform.kill_9();
        platform.start(&[]);
        platform.await_phase(&user, user.env, Phase::Ready);
        platform.app(&user, "GET", "/hit").send().expect(200);
        is_the_only_sandbox(&platform, &user, user.env);
        platform.suspend(&user);
        nothing_is_left(&platform);
    }
}

#[test]
fn after_a_kill_of_the_platform_a_suspend_is_completed_and_files_are_intact() {
    // It does not end when it is told to, so that there is time to kill the platform meanwhile.
    let platform = Setup { variables: vec![("IGNORE_TERM", "1")], ..Setup::default() }.up();
    let user = platform.sign_up_ready("ada");
    platform.app(&user, "PUT", "/file/notes.txt").body("kept").send().expect(201);
    platform.order(&user, "suspend");
    platform.await_file(user.env, "told-to-end");
    assert_eq!(platform.environment(&user, user.env).phase, Phase::Suspending);
    platform.kill_9();
    platform.start(&[]);
    let asleep = platform.await_phase(&user, user.env, Phase::Suspended);
    assert_eq!(asleep.sandbox, None);
    nothing_is_left(&platform);
    assert_eq!(platform.metric("wakeful_sandbox_starts_total"), 0);
    assert_eq!(platform.metric("wakeful_suspends_total"), 1);
    assert_eq!(platform.app(&user, "GET", "/file/notes.txt").send().expect(200).text(), "kept");
}

#[test]
fn after_a_kill_at_any_moment_of_a_suspend_it_sleeps_and_nothing_is_left() {
    let platform = Setup::default().up();
    let user = platform.sign_up_ready("ada");
    for step in 0..8_u32 {
        platform.app(&user, "GET", "/hit").send().expect(200);
        platform.order(&user, "suspend");
        spin(Duration::from_millis(4) * step);
        platform.kill_9();
        platform.start(&[]);
        platform.await_phase(&user, user.env, Phase::Suspended);
        nothing_is_left(&platform);
    }
}

#[test]
fn a_killed_program_fails_what_was_in_flight_and_the_next_request_is_held_and_served() {
    let platform = Setup::default().up();
    let user = platform.sign_up_ready("ada");
    let (before, pid) = (platform.environment(&user, user.env), platform.pid(&user));
    let held = platform.app(&user, "POST", "/hold/never").open().unwrap();
    let mut stream = platform.app(&user, "GET", "/events").open().unwrap();
    let mut streamed = stream.head().unwrap();
    stream.chunks_until(&mut streamed, "data: open");
    platform.await_file(user.env, "never.begun");
    kill(pid);
    assert_eq!(held.finish().expect(502).code(), "upstream_failed");
    stream.rest(&mut streamed);
    assert!(!streamed.complete, "a stream that breaks off does not look whole");
    until("it has died", || (!lives(pid)).then_some(()));
    let next = platform.pid(&user);
    assert_ne!(next, pid);
    let after = platform.environment(&user, user.env);
    assert_eq!((after.phase, after.sandbox), (Phase::Ready, before.sandbox));
    assert_eq!(platform.metric("wakeful_sandbox_starts_total"), 1);
    assert!(platform.metric("wakeful_upstream_failures_total") >= 1);
}

#[test]
fn an_answer_that_breaks_off_is_visibly_broken_off() {
    let platform = Setup::default().up();
    let user = platform.sign_up_ready("ada");
    let pid = platform.pid(&user);
    let answer = platform.app(&user, "GET", "/half").send();
    until("it has died", || (!lives(pid)).then_some(()));
    assert_eq!((answer.status, answer.text().as_str()), (200, "0123456789"));
    assert!(!answer.complete);
    // A request that kills its program is not sent again.
    let pid = platform.pid(&user);
    let answer = platform.app(&user, "POST", "/die").send();
    assert_eq!(answer.expect(502).code(), "upstream_failed");
    until("it has died", || (!lives(pid)).then_some(()));
    platform.app(&user, "GET", "/hit").send().expect(200);
}

#[test]
fn a_program_that_ends_at_every_start_fails_its_surface_and_not_its_environment() {
    let broken = "[templates.program.surfaces.agent]\ncommand = 'exit 3'\n".to_owned();
    let platform = Setup { tables: broken, ..Setup::default() }.up();
    let user = platform.sign_up("ada");
    let environment = platform.await_phase(&user, user.env, Phase::Ready);
    platform.app(&user, "GET", "/hit").send().expect(200);
    let target = format!("/api/proxy/{}/", user.env);
    let answer = until("the surface is given up", || {
        let answer = platform.call(&user, "GET", &target).send();
        (answer.status == 502).then_some(answer)
    });
    assert_eq!(answer.code(), "surface_failed");
    assert_eq!(platform.environment(&user, user.env).sandbox, environment.sandbox);
}

#[test]
fn a_killed_sandbox_is_replaced_by_a_new_one() {
    let platform = Setup::default().up();
    let user = platform.sign_up_ready("ada");
    platform.app(&user, "PUT", "/file/notes.txt").body("kept").send().expect(201);
    let before = platform.environment(&user, user.env);
    let request = platform.app(&user, "POST", "/hold/never").open().unwrap();
    platform.await_file(user.env, "never.begun");
    // The daemon first: it would start its programs again.
    let (first, rest): (Vec<_>, Vec<_>) =
        platform.processes().into_iter().partition(Process::is_envd);
    first.iter().chain(&rest).for_each(|process| kill(process.pid));
    let answer = request.finish();
    assert!(matches!(answer.status, 502 | 503), "{} {}", answer.status, answer.text());
    let answer = platform.app(&user, "GET", "/file/notes.txt").send();
    assert_eq!(answer.expect(200).text(), "kept");
    let after = platform.await_phase(&user, user.env, Phase::Ready);
    assert!(after.sandbox.is_some() && after.sandbox != before.sandbox);
    assert_eq!(platform.metric("wakeful_sandbox_starts_total"), 2);
    is_the_only_sandbox(&platform, &user, user.env);
}

#[test]
fn a_request_that_comes_after_its_sandbox_was_killed_is_held_and_served() {
    let platform = Setup::default().up();
    let user = platform.sign_up_ready("ada");
    platform.app(&user, "GET", "/hit").send().expect(200);
    let daemon = daemons(&platform);
    daemon.iter().for_each(|process| kill(process.pid));
    // Programs end with their daemon, so a POST that comes now is not in flight anywhere.
    until("nothing of it is left", || daemon.iter().all(|gone| !lives(gone.pid)).then_some(()));
    let answer = platform.app(&user, "POST", "/hit").send();
    assert!(matches!(answer.status, 200 | 503), "{} {}", answer.status, answer.text());
    platform.app(&user, "GET", "/hit").send().expect(200);
    is_the_only_sandbox(&platform, &user, user.env);
}

#[test]
fn a_clean_stop_suspends_everything_and_leaves_no_process() {
    let platform = Setup::default().up();
    let user = platform.sign_up_ready("ada");
    let other = platform.sign_up_ready("bob");
    platform.app(&user, "PUT", "/file/notes.txt").body("kept").send().expect(201);
    assert!(platform.stop().success());
    assert_eq!(platform.processes(), []);
    platform.start(&[]);
    for user in [&user, &other] {
        let environment = platform.environment(user, user.env);
        assert_eq!((environment.phase, environment.sandbox), (Phase::Suspended, None));
    }
    assert_eq!(platform.app(&user, "GET", "/file/notes.txt").send().expect(200).text(), "kept");
}

#[test]
fn sandboxes_that_are_kept_at_a_stop_are_adopted_by_the_next_start() {
    let platform = Setup::default().up();
    let user = platform.sign_up_ready("ada");
    platform.stop();
    platform.start(&["--keep-sandboxes"]);
    platform.wake(&user);
    let (before, pid) = (platform.environment(&user, user.env), platform.pid(&user));
    assert!(platform.stop().success());
    assert!(lives(pid));
    platform.start(&[]);
    assert_eq!(platform.pid(&user), pid);
    let after = platform.environment(&user, user.env);
    assert_eq!((after.phase, after.sandbox), (Phase::Ready, before.sandbox));
    assert_eq!(platform.metric("wakeful_sandbox_starts_total"), 0);
}

#[test]
fn a_grandchild_that_hid_is_gone_after_a_suspend() {
    let platform = Setup::default().up();
    let user = platform.sign_up_ready("ada");
    let grandchild = platform.app(&user, "POST", "/daemonise").send().expect(200).text();
    let grandchild: u32 = grandchild.trim().parse().unwrap();
    assert!(lives(grandchild));
    platform.suspend(&user);
    assert!(!lives(grandchild), "it outlived its sandbox");
    assert_eq!(platform.processes(), []);
}

#[test]
fn a_program_that_ignores_the_request_to_end_is_killed_after_the_grace() {
    let platform = Setup { variables: vec![("IGNORE_TERM", "1")], ..Setup::default() }.up();
    let user = platform.sign_up_ready("ada");
    let pid = platform.pid(&user);
    platform.order(&user, "suspend");
    platform.await_file(user.env, "told-to-end");
    // It gets its grace first.
    stays("alive", Duration::from_secs(1), || lives(pid));
    platform.await_phase(&user, user.env, Phase::Suspended);
    assert!(!lives(pid));
    assert_eq!(platform.processes(), []);
}

#[test]
fn restarts_of_the_platform_do_not_extend_a_clock() {
    let platform = Setup { idle_agent: "8s", idle_app: "8s", ..Setup::default() }.up();
    let user = platform.sign_up_ready("ada");
    platform.app(&user, "GET", "/hit").send().expect(200);
    // An answered request holds until its end has been counted. What is killed before that leaves
    // its lease to run out, which is another matter than a clock.
    let whole = until("awake by its clocks alone", || platform.explain(&user).sleeps_in_ms);
    let (mut last, begun) = (whole, Instant::now());
    for _ in 0..3 {
        platform.kill_9();
        platform.start(&[]);
        let explained = platform.explain(&user);
        let Some(left) = explained.sleeps_in_ms else {
            assert_ne!(explained.phase, Phase::Ready, "{explained:?}");
            break;
        };
        assert!(left < last, "{left} after {last}");
        let elapsed = u64::try_from(begun.elapsed().as_millis()).unwrap();
        assert!(left <= whole.saturating_sub(elapsed) + 1_000, "{left} ms after {elapsed} ms");
        last = left;
    }
    platform.await_phase(&user, user.env, Phase::Suspended);
    nothing_is_left(&platform);
}

#[test]
fn what_ran_out_while_the_platform_was_down_sleeps_at_the_first_look() {
    let platform = Setup { idle_agent: "3s", idle_app: "3s", ..Setup::default() }.up();
    let user = platform.sign_up("ada");
    let pid = platform.pid(&user);
    platform.kill_9();
    stays("alive while nobody looks", Duration::from_millis(3_500), || lives(pid));
    platform.start(&[]);
    platform.await_phase(&user, user.env, Phase::Suspended);
    nothing_is_left(&platform);
    assert_eq!(platform.metric("wakeful_suspends_total{reason=\"idle\"}"), 1);
    assert_eq!(platform.metric("wakeful_sandbox_starts_total"), 0);
}
