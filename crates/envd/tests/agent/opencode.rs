//! A real agent against a scripted model: OpenCode.

use std::{
    ffi::OsString,
    path::{Path, PathBuf},
};

use serde_json::json;
use wakeful_envd::{
    agent::{AcpAgent, AgentLimits, AgentSpec, Order},
    thread::command::AgentUpdate,
};
use wakeful_wire::rpc::{Outcome, ToolContent, ToolStatus};

use crate::{
    fixture::{DONE, Place, Talk, lives, opening},
    model::{Model, script},
};

/// The program that `cargo xtask setup` installs.
fn opencode() -> Option<PathBuf> {
    let program = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../.tools/bin/opencode");
    let found = program.canonicalize().ok();
    if found.is_none() {
        assert!(std::env::var_os("CI").is_none(), "OpenCode is missing: run `cargo xtask setup`");
        eprintln!("skipped: OpenCode is not installed (`cargo xtask setup` does it)");
    }
    found
}

fn agent(place: &Place, program: &Path, model: &Model) -> AcpAgent {
    let config = json!({
        "provider": {"scripted": {
            "npm": "@ai-sdk/openai-compatible", "name": "Scripted",
            "options": {"baseURL": model.url, "apiKey": "none"},
            "models": {"m1": {"name": "M1", "limit": {"context": 100_000, "output": 8_000}}},
        }},
        "model": "scripted/m1", "small_model": "scripted/m1", "enabled_providers": ["scripted"],
        "permission": {"bash": "ask", "edit": "ask", "task": "deny"},
        "share": "disabled", "autoupdate": false,
    });
    let mut surroundings = place.surroundings.clone();
    let more = [
        ("OPENCODE_CONFIG_CONTENT", config.to_string()),
        ("OPENCODE_DISABLE_MODELS_FETCH", "1".to_owned()),
        ("OPENCODE_DISABLE_AUTOUPDATE", "1".to_owned()),
        ("OPENCODE_DISABLE_LSP_DOWNLOAD", "1".to_owned()),
        ("OPENCODE_DISABLE_DEFAULT_PLUGINS", "1".to_owned()),
        ("OPENCODE_SERVER_PASSWORD", "for-this-test-only".to_owned()),
        ("npm_config_offline", "true".to_owned()),
    ];
    surroundings
        .env
        .extend(more.map(|(name, value)| (OsString::from(name), OsString::from(value))));
    let command = format!("exec '{}' acp --port 0", program.display());
    let spec = AgentSpec { name: "opencode".to_owned(), command };
    AcpAgent::new(spec, surroundings, AgentLimits::default())
}

#[tokio::test]
async fn opencode_works_through_a_turn_with_a_tool_a_permission_a_crash_and_a_resume() {
    let Some(program) = opencode() else { return };
    let (place, model) = (Place::new(), Model::start());
    let agent = agent(&place, &program, &model);
    let bash = |command: &str| json!({"command": command, "description": "a test"});

    // A tool, asked for and allowed.
    let mut talk = Talk::open(&agent, opening(None));
    let steps = json!([
        {"say": "I look at the files now.", "tool": "bash", "args": bash("echo from-the-tool; echo $$ > pid")},
        {"say": "All is done."},
    ]);
    let turn = talk.begin(&script(&steps)).await;
    let asked = talk.until(|update| matches!(update, AgentUpdate::Permission { .. })).await;
    let AgentUpdate::Permission { request, options, key, .. } = asked else { unreachable!() };
    assert_eq!(key.as_deref(), Some("execute"));
    assert!(!place.workspace().join("pid").exists(), "it ran before it was allowed");
    let once = options.iter().find(|option| option.id == "once").unwrap();
    talk.order(Order::Answer { request, option: Some(once.id.clone()) }).await;
    assert_eq!(talk.end_of(turn).await, DONE);
    let text = talk.text();
    let (first, last) = (text.find("I look").unwrap(), text.find("All is done.").unwrap());
    assert!(first < last, "{text}");
    let shown = talk.heard.iter().any(|said| match &said.update {
        AgentUpdate::Tool(tool) if tool.status == Some(ToolStatus::Completed) => {
            matches!(tool.content.as_deref(), Some([ToolContent::Text { text }, ..])
                if text.contains("from-the-tool"))
        }
        _ => false,
    });
    assert!(shown, "{:?}", talk.heard);
    let session = talk.bound().unwrap();

    // A cancel in a running tool.
    let steps = json!([{"tool": "bash", "args": bash("echo $$ > running; sleep 1000")}]);
    let turn = talk.begin(&script(&steps)).await;
    let asked = talk.until(|update| matches!(update, AgentUpdate::Permission { .. })).await;
    let AgentUpdate::Permission { request, .. } = asked else { unreachable!() };
    talk.order(Order::Answer { request, option: Some("once".to_owned()) }).await;
    let pid = running(&place, &mut talk).await;
    talk.order(Order::Cancel { turn }).await;
    assert_eq!(talk.end_of(turn).await, Outcome::Cancelled { obeyed: true });

    assert!(!lives(pid));

    // The agent is killed in the middle of a turn: no tool outlives it.
    let turn = talk.begin(&script(&steps)).await;
    let asked = talk.until(|update| matches!(update, AgentUpdate::Permission { .. })).await;
    let AgentUpdate::Permission { request, .. } = asked else { unreachable!() };
    std::fs::remove_file(place.workspace().join("running")).unwrap();
    talk.order(Order::Answer { request, option: Some("once".to_owned()) }).await;
    let pid = running(&place, &mut talk).await;
    let killed = place.kill("opencode");
    assert!(killed > 0);
    assert_eq!(talk.end_of(turn).await, Outcome::Cut);
    let why = talk.hear_the_end().await;
    assert!(why.contains("signal 9"), "{why}");
    assert!(!lives(pid), "a tool outlived its agent");

    // The same session in a new process, without the old words.
    let mut talk = Talk::open(&agent, opening(Some(&session)));
    let turn = talk.begin(&script(&json!([{"say": "Here again."}]))).await;
    assert_eq!(talk.end_of(turn).await, DONE);
    assert_eq!(talk.text(), "Here again.");
    assert_eq!(talk.bound().unwrap(), session);
    assert_eq!(talk.notices(), "");
    talk.order(Order::End).await;
    talk.hear_the_end().await;
}

/// Waits until the tool runs, taking what the agent says meanwhile.
async fn running(place: &Place, talk: &mut Talk) -> i32 {
    let file = place.workspace().join("running");
    loop {
        let pid = std::fs::read_to_string(&file).ok().and_then(|text| text.trim().parse().ok());
        if let Some(pid) = pid {
            return pid;
        }
        let wait = std::time::Duration::from_millis(50);
        if let Ok(said) = tokio::time::timeout(wait, talk.session.said.recv()).await {
            talk.heard.push(said.unwrap());
        }
    }
}
