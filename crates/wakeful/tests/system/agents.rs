//! A real agent end to end: OpenCode over ACP against a scripted model, followed by `attach` through
//! the gateway while things die around it.

use std::{
    collections::BTreeSet,
    fs::{self, File},
    path::{Path, PathBuf},
    process::{Child, Stdio},
};

use serde_json::{Value, json};
use wakeful_wire::Phase;

use crate::support::{Model, Platform, Process, Setup, User, kill, until};

/// Where `cargo xtask setup` installs the agent.
#[expect(clippy::print_stderr, reason = "the runner shows what a test left out")]
fn tools() -> Option<PathBuf> {
    let tools = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../.tools");
    let tools = tools.canonicalize().unwrap_or_default();
    if tools.join("bin/opencode").exists() {
        return Some(tools);
    }
    let missing = "OpenCode is not installed: run `cargo xtask setup`";
    assert!(std::env::var_os("CI").is_none(), "{missing}");
    eprintln!("SKIPPED: {missing}");
    None
}

/// A platform whose environments have OpenCode, which asks this model.
fn with_opencode(model: &Model) -> Option<Platform> {
    let tools = tools()?;
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
    let tables = format!(
        "[templates.program.agents.opencode]\n\
         command = '''export OPENCODE_CONFIG_CONTENT='{config}' OPENCODE_DISABLE_MODELS_FETCH=1 \
         OPENCODE_DISABLE_AUTOUPDATE=1 OPENCODE_DISABLE_LSP_DOWNLOAD=1 \
         OPENCODE_DISABLE_DEFAULT_PLUGINS=1 OPENCODE_SERVER_PASSWORD=for-this-test-only \
         npm_config_offline=true; exec opencode acp --port 0'''\n"
    );
    let bin = tools.join("bin");
    Some(Setup { tables, path: vec![bin], readable: vec![tools], ..Setup::default() }.up())
}

/// `attach` as a program uses it, with what it has printed so far in a file.
struct Attached {
    child: Child,
    printed: PathBuf,
}

impl Attached {
    fn start(platform: &Platform, user: &User, thread: &str, name: &str) -> Self {
        let printed = platform.data().with_file_name(name);
        let env = user.env.to_string();
        let args = ["attach", &env, thread, "--approve", "allow", "--until-idle"];
        let child = platform
            .client(user, &args)
            .stdout(File::create(&printed).unwrap())
            .stderr(Stdio::inherit())
            .spawn()
            .unwrap();
        Self { child, printed }
    }

    /// What it printed, a value for each line.
    fn lines(&self) -> Vec<Value> {
        let text = fs::read_to_string(&self.printed).unwrap();
        let whole = text.rsplit_once('\n').map(|(whole, _)| whole).unwrap_or_default();
        whole.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    /// Waits until it ends by itself.
    fn ended(mut self) -> (i32, Vec<Value>) {
        let status = until("attach ends", || self.child.try_wait().unwrap());
        (status.code().unwrap(), self.lines())
    }
}

impl Drop for Attached {
    fn drop(&mut self) {
        let _ended = self.child.kill();
        let _status = self.child.wait();
    }
}

/// The events that `attach` printed. None comes twice, and they are in order.
fn events(lines: &[Value]) -> Vec<&Value> {
    let events: Vec<_> =
        lines.iter().filter(|line| line["type"] == "event").map(|line| &line["event"]).collect();
    let numbers: Vec<_> = events.iter().map(|event| event["seq"].as_u64().unwrap()).collect();
    let sorted: BTreeSet<_> = numbers.iter().copied().collect();
    assert_eq!(sorted.into_iter().collect::<Vec<_>>(), numbers, "{numbers:?}");
    events
}

/// A thread as a host tells it: everything of it, whole.
fn whole(platform: &Platform, user: &User, thread: &str) -> Value {
    let env = user.env.to_string();
    let output = platform.cli(user, &["attach", &env, thread, "--until-idle", "--wake"]);
    let text = String::from_utf8(output.stdout).unwrap();
    let lines = text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let snapshot = lines.into_iter().find(|line| line["type"] == "snapshot");
    let error = String::from_utf8_lossy(&output.stderr).into_owned();
    snapshot.unwrap_or_else(|| panic!("no snapshot: {text} {error}"))["detail"].clone()
}

/// What the agent said and what its tools showed, without the prompts that told it to.
fn shown(detail: &Value) -> String {
    let segments = detail["page"]["segments"].as_array().unwrap().iter();
    let items = segments.flat_map(|segment| segment["items"].as_array().unwrap());
    let bodies = items.map(|item| &item["body"]).filter(|body| body["type"] != "prompt");
    let texts = bodies.map(|body| match body["type"].as_str() {
        Some("text") => body["text"].as_str().unwrap().to_owned(),
        Some("tool") => body["tool"]["content"].to_string(),
        _ => String::new(),
    });
    texts.collect::<Vec<_>>().join("\n")
}

fn send(platform: &Platform, user: &User, more: &[&str], steps: &Value) -> String {
    let env = user.env.to_string();
    let text = Model::script(steps);
    let args = [&["send", &env], more, &[&text]].concat();
    let output = platform.cli(user, &args);
    let error = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{error}");
    let kept: Value = serde_json::from_slice(&output.stdout).unwrap();
    kept["thread"].as_str().unwrap().to_owned()
}

fn agent(platform: &Platform) -> Vec<Process> {
    let of_agent = |process: &Process| process.command == "opencode acp --port 0";
    platform.processes().into_iter().filter(of_agent).collect()
}

/// A tool call that waits in the middle for a file.
fn tool(mark: &str) -> Value {
    let command = format!(
        "echo {mark} >> began; while [ ! -e go-{mark} ]; do sleep 0.05; done; echo done-{mark}"
    );
    json!({ "command": command, "description": "a test" })
}

#[test]
fn a_turn_of_opencode_is_whole_after_the_death_of_the_gateway_of_the_agent_and_a_sleep() {
    let model = Model::start();
    let Some(platform) = with_opencode(&model) else { return };
    let user = platform.sign_up_asleep("ada");
    // The prompt wakes it. A tool asks for permission, which `attach` gives.
    let steps = json!([
        {"say": "I look at the files now.", "tool": "bash", "args": tool("first")},
        {"say": "All is done."},
    ]);
    let thread = send(&platform, &user, &["--agent", "opencode"], &steps);
    let attached = Attached::start(&platform, &user, &thread, "attached-1");
    let began = platform.workspace(user.env).join("began");
    until("the tool runs", || began.exists().then_some(()));

    // The gateway, and with it the whole platform, dies in the middle.
    platform.kill_9();
    platform.start_again();
    platform.release(user.env, "go-first");
    let (code, lines) = attached.ended();
    assert_eq!(code, 0, "{lines:#?}");
    let told = events(&lines);
    let kinds: Vec<_> = told.iter().map(|event| event["body"]["kind"].as_str().unwrap()).collect();
    assert!(kinds.contains(&"turn_ended"), "{kinds:?}");
    let text = shown(&whole(&platform, &user, &thread));
    let at = |words: &str| text.find(words).unwrap_or_else(|| panic!("no {words}: {text}"));
    assert!(at("I look at the files now.") < at("done-first"), "{text}");
    assert!(at("done-first") < at("All is done."), "{text}");
    assert_eq!(agent(&platform).len(), 1, "the agent outlived the platform");

    // The agent dies in the middle.
    let steps = json!([
        {"say": "Once more.", "tool": "bash", "args": tool("second")},
        {"say": "Never said."},
    ]);
    assert_eq!(send(&platform, &user, &["--thread", &thread], &steps), thread);
    let attached = Attached::start(&platform, &user, &thread, "attached-2");
    until("the tool runs again", || {
        fs::read_to_string(&began).unwrap().contains("second").then_some(())
    });
    agent(&platform).iter().for_each(|process| kill(process.pid));
    let (code, lines) = attached.ended();
    assert_eq!(code, 4, "a turn that was cut is no success: {lines:#?}");
    let before = whole(&platform, &user, &thread);
    let text = shown(&before);
    assert!(text.contains("done-first") && text.contains("All is done."), "{text}");
    assert!(text.contains("Once more.") && !text.contains("Never said."), "{text}");

    // It sleeps, and wakes with the same log. The agent goes on with its session.
    platform.suspend(&user);
    assert!(agent(&platform).is_empty());
    let after = whole(&platform, &user, &thread);
    assert_eq!(after["page"]["segments"], before["page"]["segments"], "a lost or changed log");
    platform.await_phase(&user, user.env, Phase::Ready);
    let steps = json!([{"say": "Here again."}]);
    send(&platform, &user, &["--thread", &thread], &steps);
    let attached = Attached::start(&platform, &user, &thread, "attached-3");
    let (code, _) = attached.ended();
    assert_eq!(code, 0);
    let text = shown(&whole(&platform, &user, &thread));
    assert!(text.contains("Here again.") && text.contains("done-first"), "{text}");
}
