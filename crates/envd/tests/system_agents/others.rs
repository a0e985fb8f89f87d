//! Each agent by itself.
//!
//! Three of them are installed by `cargo xtask setup`. The others are looked for in the directory
//! that `WAKEFUL_TEST_AGENTS` names. None has a key here: what counts is that each starts, speaks,
//! and either works or says what it needs, and that nothing of it is left afterwards.

use std::{
    ffi::OsString,
    path::{Path, PathBuf},
};

use serde_json::json;
use wakeful_envd::{
    agent::{AcpAgent, AgentLimits, AgentSpec, Order},
    thread::command::AgentUpdate,
};
use wakeful_wire::rpc::{Outcome, PermissionOptionKind};

use crate::{
    fixture::{DONE, Place, Talk, eventually, opening},
    model::{Model, script},
};

/// What an agent can do without a key.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Without {
    /// Whole turns with the scripted model; the name of its tool that runs a command.
    Turns(&'static str),
    /// It says what it needs.
    Nothing,
}

/// Program, arguments, variables (`MODEL` stands for the model's address, `HOME` for a directory of
/// its own), and what to expect.
type Entry = (&'static str, &'static str, &'static [(&'static str, &'static str)], Without);

/// What every agent is told: to fetch nothing and to tell nobody about its use.
const QUIET: &[(&str, &str)] = &[
    ("npm_config_offline", "true"),
    ("NO_UPDATE_NOTIFIER", "1"),
    ("DO_NOT_TRACK", "1"),
    ("GEMINI_TELEMETRY_ENABLED", "false"),
];

const AGENTS: &[Entry] = &[
    (
        "qwen",
        "--acp --auth-type=openai",
        &[("OPENAI_API_KEY", "none"), ("OPENAI_BASE_URL", "MODEL"), ("OPENAI_MODEL", "m1")],
        Without::Turns("run_shell_command"),
    ),
    (
        "dsh",
        "--profile acp",
        &[("DSH_HOME", "HOME/dsh"), ("DSH_TELEMETRY_MODE", "DISABLED")],
        Without::Nothing,
    ),
    ("gemini", "--acp", &[], Without::Nothing),
    ("codex-acp", "", &[], Without::Nothing),
    ("claude-agent-acp", "", &[], Without::Nothing),
    ("pi-acp", "", &[], Without::Nothing),
    ("copilot", "--acp", &[], Without::Nothing),
    ("cline", "--acp", &[], Without::Nothing),
    ("auggie", "--acp", &[], Without::Nothing),
];

fn installed(program: &str) -> Option<PathBuf> {
    let tools = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../.tools/bin");
    let given = std::env::var_os("WAKEFUL_TEST_AGENTS").map(PathBuf::from);
    given.into_iter().chain([tools]).map(|dir| dir.join(program)).find(|path| path.exists())
}

/// Talks to one agent: `false` where it is not installed.
async fn talk_to((program, args, variables, without): &Entry) -> bool {
    let Some(path) = installed(program) else { return false };
    let model = Model::start();
    let mut place = Place::new();
    let home = place.surroundings.scratch.display().to_string();
    let given = |(name, value): &(&str, &str)| {
        let value = value.replace("MODEL", &model.url).replace("HOME", &home);
        (OsString::from(*name), OsString::from(value))
    };
    place.surroundings.env.extend(QUIET.iter().chain(*variables).map(given));
    let spec = AgentSpec {
        name: (*program).to_owned(),
        command: format!("exec '{}' {args}", path.display()),
    };
    let agent = AcpAgent::new(spec, place.surroundings.clone(), AgentLimits::default());
    let mut talk = Talk::open(&agent, opening(None));
    let outcome = match without {
        Without::Turns(tool) => work(&mut talk, tool).await,
        Without::Nothing => {
            let turn = talk.begin("hello").await;
            talk.end_of(turn).await
        }
    };
    eprintln!("{program}: {outcome:?}");
    if matches!(without, Without::Turns(_)) {
        assert_eq!(outcome, DONE, "{program}");
        assert!(talk.text().contains("All is done."), "{program}: {}", talk.text());
        assert!(place.workspace().join("made").exists(), "{program}");
    } else {
        let Outcome::Failed { message } = outcome else { panic!("{program}: {outcome:?}") };
        assert!(!message.contains("in time"), "{program}: {message}");
    }
    // Where the turn could not begin, the session has ended by itself.
    let _ended = talk.session.orders.send(Order::End).await;
    talk.hear_the_end().await;
    eventually("the end of every process", || place.processes().is_empty()).await;
    true
}

/// One of those that `cargo xtask setup` installs.
async fn one_of_ours(program: &str) {
    let entry = AGENTS.iter().find(|entry| entry.0 == program).unwrap();
    if !talk_to(entry).await {
        assert!(std::env::var_os("CI").is_none(), "{program} is missing: run `cargo xtask setup`");
        eprintln!("skipped: {program} is not installed (`cargo xtask setup` does it)");
    }
}

#[tokio::test]
async fn qwen_code_works_through_a_turn_with_a_tool_and_a_permission() {
    one_of_ours("qwen").await;
}

#[tokio::test]
async fn gemini_cli_starts_and_says_that_it_wants_to_be_signed_in() {
    one_of_ours("gemini").await;
}

#[tokio::test]
async fn pi_acp_starts_and_says_what_it_needs() {
    one_of_ours("pi-acp").await;
}

#[tokio::test]
async fn every_other_agent_that_is_installed_starts_and_works_or_says_what_it_needs() {
    for entry in AGENTS.iter().filter(|entry| !["qwen", "gemini", "pi-acp"].contains(&entry.0)) {
        if !talk_to(entry).await {
            eprintln!("skipped: {} is not installed", entry.0);
        }
    }
}

/// A turn with a tool that is asked for and allowed.
async fn work(talk: &mut Talk, tool: &str) -> Outcome {
    let args = json!({"command": "echo x > made", "description": "a test", "is_background": false});
    let steps = json!([{"say": "I begin.", "tool": tool, "args": args}, {"say": "All is done."}]);
    let turn = talk.begin(&script(&steps)).await;
    loop {
        let said = talk.next().await.unwrap();
        match said.update {
            AgentUpdate::Permission { request, options, .. } => {
                let once = options.iter().find(|it| it.kind == PermissionOptionKind::AllowOnce);
                let option = Some(once.unwrap().id.clone());
                talk.order(Order::Answer { request, option }).await;
            }
            AgentUpdate::TurnEnded(outcome) if said.turn == Some(turn) => return outcome,
            _ => {}
        }
    }
}
