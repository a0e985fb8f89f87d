//! Agents at work: prompts to sleeping environments, turns that keep them awake, and what a crash
//! leaves of both.

use std::{fs, time::Duration};

use serde_json::{Value, json};
use wakeful_wire::{
    Phase,
    api::{KeptPrompt, PromptState},
    gate::LeaseKind,
};

use crate::support::{Ask, Platform, Setup, User, stays, until};

/// A client id that a test draws.
fn client(number: u32) -> String {
    format!("0199f0a0-7b5c-7c3e-9d2f-{number:012x}")
}

/// Sends a prompt that the control plane keeps.
fn post(platform: &Platform, user: &User, client: &str, text: &str) -> Ask {
    let target = format!("/api/environments/{}/prompts", user.env);
    let body = json!({ "client": client, "text": text, "agent": "shell" });
    platform.call(user, "POST", &target).json(&body)
}

/// What became of a kept prompt.
fn kept(platform: &Platform, user: &User, client: &str) -> KeptPrompt {
    let target = format!("/api/environments/{}/prompts/{client}", user.env);
    platform.call(user, "GET", &target).send().expect(200).json()
}

fn await_delivery(platform: &Platform, user: &User, client: &str) -> KeptPrompt {
    until("the prompt is delivered", || {
        let kept = kept(platform, user, client);
        assert_ne!(kept.state, PromptState::Refused, "{kept:?}");
        (kept.state == PromptState::Delivered).then_some(kept)
    })
}

/// How often a line stands in a file of the workspace.
fn count(platform: &Platform, user: &User, file: &str, line: &str) -> usize {
    let text = fs::read_to_string(platform.workspace(user.env).join(file)).unwrap_or_default();
    text.lines().filter(|each| *each == line).count()
}

/// A command that says that it runs and ends when the file `go` is there.
const WAITING: &str =
    "echo began >> log; while [ ! -e go ]; do sleep 0.05; done; echo ended >> log";

#[test]
fn a_prompt_to_a_sleeping_environment_is_kept_wakes_it_and_is_delivered_once() {
    let platform = Setup::default().up();
    let user = platform.sign_up_asleep("ada");
    let first = client(1);
    // Sent five times, by somebody who heard no answer.
    for _ in 0..5 {
        let answer = post(&platform, &user, &first, "echo worked >> log").send();
        assert!(matches!(answer.status, 200 | 202), "{} {}", answer.status, answer.text());
    }
    let delivered = await_delivery(&platform, &user, &first);
    assert!(delivered.seq.is_some(), "{delivered:?}");
    until("it worked", || (count(&platform, &user, "log", "worked") > 0).then_some(()));
    assert_eq!(platform.environment(&user, user.env).phase, Phase::Ready);
    // A further one, so that a doubled first would have run by now.
    post(&platform, &user, &client(2), "echo second >> log").send().expect(202);
    until("the second worked", || (count(&platform, &user, "log", "second") > 0).then_some(()));
    assert_eq!(count(&platform, &user, "log", "worked"), 1);
    // The same id with other words is another prompt, which it may not be.
    post(&platform, &user, &first, "echo other >> log").send().expect(409);
}

#[test]
fn a_kept_prompt_outlives_a_kill_of_the_platform_at_any_moment() {
    let platform = Setup::default().up();
    let user = platform.sign_up_asleep("ada");
    for round in 0..4_u32 {
        let (id, line) = (client(10 + round), format!("round-{round}"));
        let text = format!("echo {line} >> log");
        post(&platform, &user, &id, &text).send().expect(202);
        if round % 2 == 0 {
            // Killed while it starts, or soon after.
            platform.kill_9();
            platform.start(&[]);
        } else {
            until("it worked", || (count(&platform, &user, "log", &line) > 0).then_some(()));
            platform.kill_9();
            platform.start(&[]);
        }
        await_delivery(&platform, &user, &id);
        until("it worked", || (count(&platform, &user, "log", &line) > 0).then_some(()));
        platform.suspend(&user);
    }
    platform.wake(&user);
    for round in 0..4 {
        assert_eq!(count(&platform, &user, "log", &format!("round-{round}")), 1, "{round}");
    }
}

#[test]
fn a_running_turn_keeps_its_environment_awake_and_its_end_lets_it_sleep() {
    let setup = Setup { idle_agent: "2s", idle_app: "500ms", ..Setup::default() };
    let platform = setup.up();
    let user = platform.sign_up("ada");
    platform.suspend(&user);
    post(&platform, &user, &client(1), WAITING).send().expect(202);
    until("the turn runs", || (count(&platform, &user, "log", "began") > 0).then_some(()));
    let leases = until("the turn holds", || {
        let leases = platform.environment(&user, user.env).leases;
        leases.iter().any(|lease| lease.kind == LeaseKind::Turn).then_some(leases)
    });
    assert_eq!(leases[0].surface.as_str(), "host", "{leases:?}");
    stays("it is awake", Duration::from_secs(4), || {
        platform.environment(&user, user.env).phase == Phase::Ready
    });
    // The platform is killed meanwhile: the lease is there again.
    platform.kill_9();
    platform.start(&[]);
    until("the turn holds again", || {
        let leases = platform.environment(&user, user.env).leases;
        leases.iter().any(|lease| lease.kind == LeaseKind::Turn).then_some(())
    });
    platform.release(user.env, "go");
    until("the turn ends", || (count(&platform, &user, "log", "ended") > 0).then_some(()));
    platform.await_phase(&user, user.env, Phase::Suspended);
    assert_eq!(count(&platform, &user, "log", "began"), 1);
}

#[test]
fn a_turn_that_a_kill_cut_is_not_run_again_by_itself() {
    let platform = Setup::default().up();
    let user = platform.sign_up_ready("ada");
    post(&platform, &user, &client(1), WAITING).send().expect(202);
    until("the turn runs", || (count(&platform, &user, "log", "began") > 0).then_some(()));
    let daemon = platform.processes().into_iter().find(crate::support::Process::is_envd).unwrap();
    crate::support::kill(daemon.pid);
    until("nothing of the turn is left", || {
        let left = platform.processes();
        let old = |process: &crate::support::Process| process.sandbox == daemon.sandbox;
        (!left.iter().any(old)).then_some(())
    });
    platform.wake(&user);
    let next = client(2);
    post(&platform, &user, &next, "echo alive >> log").send().expect(202);
    until("it works again", || (count(&platform, &user, "log", "alive") > 0).then_some(()));
    assert_eq!(count(&platform, &user, "log", "began"), 1);
    assert_eq!(count(&platform, &user, "log", "ended"), 0);
}

#[test]
fn a_grant_is_given_to_the_owner_alone_and_wakes_only_when_told_to() {
    let platform = Setup::default().up();
    let user = platform.sign_up_asleep("ada");
    let other = platform.sign_up("bob");
    let target = format!("/api/environments/{}/grant", user.env);
    let asleep = platform.call(&user, "POST", &target).json(&json!({})).send().expect(503);
    let asleep: Value = asleep.json();
    assert_eq!(asleep["code"], "asleep", "{asleep}");
    assert_eq!(platform.environment(&user, user.env).phase, Phase::Suspended);
    platform.call(&other, "POST", &target).json(&json!({ "wake": true })).send().expect(404);
    platform.ask("POST", &target).json(&json!({ "wake": true })).send().expect(401);
    let given = until("a grant is given", || {
        let answer = platform.call(&user, "POST", &target).json(&json!({ "wake": true })).send();
        if answer.status == 503 { None } else { Some(answer.expect(201)) }
    });
    assert_eq!(given.header("cache-control"), Some("no-store"));
    let given: Value = given.json();
    let address = format!("{}/api/host/{}", platform.origin(), user.env);
    assert_eq!(given["address"], address.as_str());
    // The host itself answers its descriptor, and says which environment it is.
    let descriptor = format!("/api/host/{}/descriptor", user.env);
    let host: Value = platform.call(&user, "GET", &descriptor).send().expect(200).json();
    assert_eq!(host["id"], user.env.to_string().as_str(), "{host}");
    platform.call(&other, "GET", &descriptor).send().expect(404);
    // Without a credential of the host's own, nothing else is answered.
    let shell = format!("/api/host/{}/shell", user.env);
    let refused = platform.call(&user, "GET", &shell).send().expect(401);
    assert!(refused.header("www-authenticate").unwrap_or_default().contains("DPoP"));
}
