//! The environment server beside the surfaces: what the platform asks of it.

use std::{
    io::{Read, Write},
    os::fd::AsRawFd,
    time::Duration,
};

use serde_json::{Value, json};
use wakeful_wire::{
    Code,
    host::Descriptor,
    rpc::{Call, Empty, OneThread, Prompt, Taken, ThreadCreate, ThreadId, ThreadPrompt},
    sandbox::{AskKind, EnvdStatus, Refusal, Reply},
};

use crate::fixture::{Ground, Sandbox, eventually};

/// A sandbox without surfaces.
pub(crate) fn bare() -> Sandbox {
    Ground::new(&[]).start()
}

/// A new thread of the shell agent with a command.
pub(crate) fn command(text: &str) -> (ThreadId, Call) {
    let thread = ThreadId::from_uuid(uuid::Uuid::new_v4());
    let create = ThreadCreate {
        thread,
        parent: None,
        project: String::new(),
        agent: None,
        title: None,
        prompt: Some(prompt(text)),
    };
    (thread, Call::ThreadCreate(create))
}

fn prompt(text: &str) -> Prompt {
    let client = uuid::Uuid::new_v4().to_string().parse().unwrap();
    Prompt::text(client, text)
}

impl Sandbox {
    pub(crate) fn deliver(&self, call: Call) -> Result<Taken, Refusal> {
        match self.ask(AskKind::Deliver { call: Box::new(call) }) {
            Reply::Taken(taken) => Ok(taken),
            Reply::Refused(refusal) => Err(refusal),
            Reply::Status(_) | Reply::Done | Reply::Drained { .. } => {
                panic!("no answer to a delivery")
            }
        }
    }

    fn drain(&self, hold: Duration) -> u32 {
        let hold_ms = u64::try_from(hold.as_millis()).unwrap();
        match self.ask(AskKind::Drain { hold_ms }) {
            Reply::Drained { turns } => turns,
            Reply::Status(_) | Reply::Done | Reply::Taken(_) | Reply::Refused(_) => {
                panic!("no answer to a drain")
            }
        }
    }

    /// The first status that is as it should be.
    pub(crate) fn status_when(&self, what: &str, fits: impl Fn(&EnvdStatus) -> bool) -> EnvdStatus {
        self.watch().find(fits).unwrap_or_else(|| panic!("waited in vain for: {what}"))
    }

    /// What the log holds of a kind, as the workspace shows it to everybody.
    pub(crate) fn events(&self, kind: &str) -> Vec<Value> {
        events(&self.ground.spec.workspace, kind)
    }
}

pub(crate) fn events(workspace: &std::path::Path, kind: &str) -> Vec<Value> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let options = sqlx::sqlite::SqliteConnectOptions::new()
            .filename(workspace.join(".wakeful/threads.db"))
            .read_only(true);
        let pool = sqlx::SqlitePool::connect_with(options).await.unwrap();
        let bodies: Vec<String> = sqlx::query_scalar("SELECT body FROM events ORDER BY seq")
            .fetch_all(&pool)
            .await
            .unwrap();
        pool.close().await;
        let bodies = bodies.iter().map(|body| serde_json::from_str::<Value>(body).unwrap());
        bodies.filter(|body| body["kind"] == kind).collect()
    })
}

#[test]
fn a_dial_of_the_host_passes_a_connection_on_which_it_says_who_it_is() {
    let mut ground = Ground::new(&[]);
    ground.spec.host.label = "Kitchen".to_owned();
    let sandbox = ground.start();
    let mut stream = eventually("the host", || sandbox.dial_host().ok());
    write!(stream, "GET /descriptor HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 200 "), "{answer}");
    let (_, body) = answer.split_once("\r\n\r\n").unwrap();
    let descriptor: Descriptor = serde_json::from_str(body).unwrap();
    let env = sandbox.ground.spec.env;
    assert_eq!((descriptor.id, descriptor.environment), (env.into(), Some(env)));
    assert_eq!(descriptor.label, "Kitchen");
    assert!(descriptor.capabilities.has("grants") && !descriptor.capabilities.has("pairing"));
}

#[test]
fn a_dialled_descriptor_belongs_to_the_asker_alone() {
    let sandbox = bare();
    let before = eventually("the host", || sandbox.dial_host().ok());
    // What envd starts inherits neither end: its own are close-on-exec.
    let (_, call) = command("ls -l /proc/self/fd | grep -c socket > sockets; echo done > done");
    sandbox.deliver(call).unwrap();
    sandbox.written("done");
    assert_eq!(sandbox.written("sockets"), "0");
    assert!(before.as_raw_fd() > 2);
}

#[test]
fn a_delivered_command_runs_and_the_log_holds_it_once_however_often_it_is_delivered() {
    let sandbox = bare();
    let (thread, call) = command("echo ran >> ran; echo visible; echo done > done");
    let first = sandbox.deliver(call.clone()).unwrap();
    assert_eq!((first.thread, first.changed), (Some(thread), true));
    sandbox.written("done");
    let again = sandbox.deliver(call).unwrap();
    assert_eq!((again.thread, again.changed), (Some(thread), false));

    let follow_up = Call::ThreadPrompt(ThreadPrompt { thread, prompt: prompt("echo next > next") });
    let taken = sandbox.deliver(follow_up.clone()).unwrap();
    sandbox.written("next");
    let again = sandbox.deliver(follow_up).unwrap();
    assert_eq!((again.thread, again.changed), (taken.thread, false));

    eventually("the end of both turns", || {
        let ended = sandbox.events("turn_ended");
        (ended.len() == 2).then(|| {
            assert!(ended.iter().all(|ended| ended["outcome"]["type"] == "completed"), "{ended:?}");
        })
    });
    assert_eq!(sandbox.events("turn_started").len(), 2);
    assert_eq!(sandbox.written("ran"), "ran");
    let shown: String = sandbox
        .events("terminal")
        .iter()
        .map(|piece| piece["text"].as_str().unwrap_or_default().to_owned())
        .collect();
    assert!(shown.contains("visible"), "{shown}");
}

#[test]
fn only_what_is_kept_for_a_sleeping_environment_is_delivered() {
    let sandbox = bare();
    let (thread, _) = command("");
    for call in [Call::ThreadDelete(OneThread { thread }), Call::Activity(Empty {})] {
        let Err(Refusal::Host { problem }) = sandbox.deliver(call) else { panic!("it was taken") };
        assert_eq!((problem.code, problem.retry), (Code::Unsupported, false));
    }
    // Refused by the host, for good.
    let unknown = Call::ThreadPrompt(ThreadPrompt { thread, prompt: prompt("x") });
    let Err(Refusal::Host { problem }) = sandbox.deliver(unknown) else { panic!("it was taken") };
    assert_eq!((problem.code, problem.retry), (Code::NotFound, false));
}

#[test]
fn a_running_turn_shows_in_the_status_and_in_a_drain_until_it_ends() {
    let sandbox = bare();
    assert_eq!(sandbox.status().host.turns, 0);
    let (_, call) = command("echo up > up; while ! test -e go; do sleep 0.02; done");
    sandbox.deliver(call).unwrap();
    let busy = sandbox.status_when("a turn", |status| status.host.turns == 1);
    assert_eq!((busy.host.fault, busy.host.activity), (None, 1));
    sandbox.written("up");
    assert_eq!(sandbox.drain(Duration::ZERO), 1);
    std::fs::write(sandbox.workspace("go"), "").unwrap();
    sandbox.status_when("the end of the turn", |status| status.host.turns == 0);
    assert_eq!(sandbox.drain(Duration::ZERO), 0);
}

#[test]
fn a_turn_that_reaches_its_limit_is_ended_and_keeps_nothing_awake() {
    let mut ground = Ground::new(&[]);
    ground.spec.host.turn_limit_ms = 1_500;
    let sandbox = ground.start();
    let watch = sandbox.watch();
    let (_, call) = command("echo up > up; sleep 1000");
    sandbox.deliver(call).unwrap();
    // Nothing happens in the log when the limit is reached: only the clock says so.
    let mut turns = watch.map(|status| status.host.turns).skip_while(|turns| *turns == 0);
    assert_eq!(turns.next(), Some(1));
    assert!(turns.any(|turns| turns == 0));
    sandbox.written("up");
    assert_eq!(sandbox.drain(Duration::ZERO), 0);
    eventually("its end", || (!sandbox.events("turn_ended").is_empty()).then_some(()));
}

#[test]
fn while_a_drain_holds_nothing_begins_and_what_waited_goes_on() {
    let sandbox = bare();
    eventually("the host", || sandbox.dial_host().ok());
    assert_eq!(sandbox.drain(Duration::from_secs(60)), 0);
    let (_, call) = command("echo ran > ran");
    std::thread::scope(|scope| {
        let waiting = scope.spawn(|| sandbox.deliver(call));
        // Time enough for a delivery, of which the log would hold something.
        let pause = rustix::time::Timespec { tv_sec: 0, tv_nsec: 300_000_000 };
        let _interrupted = rustix::thread::nanosleep(&pause);
        assert!(sandbox.events("thread_created").is_empty());
        assert!(!waiting.is_finished());
        assert_eq!(sandbox.drain(Duration::ZERO), 0);
        assert!(waiting.join().unwrap().unwrap().changed);
    });
    sandbox.written("ran");
}

#[test]
fn use_counts_at_once_and_again_at_the_end_of_the_interval() {
    let mut ground = Ground::new(&[]);
    ground.spec.host.activity_interval_ms = 700;
    let sandbox = ground.start();
    let mut activity = sandbox.watch().map(|status| status.host.activity);
    for text in ["true", "true", "true"] {
        sandbox.deliver(command(text).1).unwrap();
    }
    assert!(activity.any(|count| count == 1));
    assert!(activity.any(|count| count == 2), "what came within the interval is not lost");
}

#[test]
fn agents_of_the_template_are_known_by_name() {
    let mut ground = Ground::new(&[]);
    ground.spec.agents =
        serde_json::from_value(json!({ "helper": { "command": "echo no ACP > spoke; exit 3" } }))
            .unwrap();
    ground.spec.host.default_agent = Some("helper".to_owned());
    let sandbox = ground.start();
    let (_, call) = command("hello");
    sandbox.deliver(call).unwrap();
    sandbox.written("spoke");
    eventually("the end of the turn", || {
        let ended = sandbox.events("turn_ended");
        ended.first().map(|ended| assert_eq!(ended["outcome"]["type"], "failed", "{ended}"))
    });
    let (_, mut ghost) = command("hello");
    if let Call::ThreadCreate(create) = &mut ghost {
        create.agent = Some("ghost".to_owned());
    }
    let Err(Refusal::Host { problem }) = sandbox.deliver(ghost) else { panic!("it was taken") };
    assert!(problem.detail.unwrap().contains("helper, shell"));
}
