//! Other people's agents, those of them that are installed.
//!
//! Each is looked for in the directory that `WAKEFUL_TEST_AGENTS` names, or in `.tools/bin`. None of
//! them has a key here: what counts is that each starts, speaks, and either works or says what it
//! needs, and that nothing of it is left afterwards.

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

#[tokio::test]
async fn every_agent_that_is_installed_starts_and_works_or_says_what_it_needs() {
    let model = Model::start();
    for (program, args, variables, without) in AGENTS {
        let Some(path) = installed(program) else {
            eprintln!("skipped: {program} is not installed");
            continue;
        };
        let mut place = Place::new();
        let home = place.surroundings.scratch.display().to_string();
        let given = |(name, value): &(&str, &str)| {
            let value = value.replace("MODEL", &model.url).replace("HOME", &home);
            (OsString::from(*name), OsString::from(value))
        };
        place.surroundings.env.extend(variables.iter().map(given));
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
