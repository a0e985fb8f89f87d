//! Real programs behind the gateway: Datasette on its own host, OpenCode by path and on its host.

use std::{
    fs,
    net::{Ipv4Addr, TcpStream},
    path::{Path, PathBuf},
    process::Command,
};

use serde_json::Value;
use wakeful_wire::{EnvId, Phase};

use crate::support::{Ask, Browser, Platform, Setup, User, until};

/// Where `cargo xtask setup` installs them.
fn tools() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../.tools").canonicalize().unwrap_or_default()
}

/// A platform that can run a program; `None`, said so, where it is not installed.
#[expect(clippy::print_stderr, reason = "the runner shows what a test left out")]
fn with(program: &str, template: &'static str) -> Option<Platform> {
    let (tools, bin) = (tools(), tools().join("bin"));
    if !bin.join(program).exists() {
        let missing = format!("{program} is not installed: run `cargo xtask setup`");
        assert!(std::env::var_os("CI").is_none(), "{missing}");
        eprintln!("SKIPPED: {missing}");
        return None;
    }
    let mut readable = vec![tools];
    // A virtual environment uses the libraries of the Python that it was made from.
    if let Ok(python) = bin.join("../python/bin/python3").canonicalize()
        && let Some(prefix) = python.parent().and_then(Path::parent)
    {
        readable.push(prefix.to_owned());
    }
    Some(Setup { template, path: vec![bin], readable, ..Setup::default() }.up())
}

/// A database with a few rows in the workspace.
fn database(platform: &Platform, env: EnvId) {
    let script = "import sqlite3, sys\n\
                  with sqlite3.connect(sys.argv[1]) as db:\n\
                  \x20   db.execute('create table rivers (name text, km integer)')\n\
                  \x20   rows = [('Rhine', 1233), ('Elbe', 1094), ('Loire', 1006)]\n\
                  \x20   db.executemany('insert into rivers values (?, ?)', rows)\n";
    let file = platform.workspace(env).join("water.db");
    let made = Command::new("/usr/bin/env").args(["python3", "-c", script]).arg(file).status();
    assert!(made.unwrap().success());
}

#[test]
fn datasette_serves_a_real_database_on_its_own_host_and_a_query_through_its_pages_works() {
    let Some(platform) = with("datasette", "datasette") else { return };
    let mut browser = Browser::new(&platform);
    let user = browser.sign_up("ada");
    // It looks for databases when it starts.
    database(&platform, user.env);
    platform.order(&user, "restart");
    platform.await_phase(&user, user.env, Phase::Ready);
    let host = platform.host(user.env, "db");
    assert!(host.starts_with(&format!("{}.db.wakeful.localhost", user.env)));

    let home = browser.load_woken(&format!("http://{host}/"));
    let page = home.answer.expect(200).text();
    assert!(page.contains("href=\"/water\""), "{page}");
    let table = browser.load(&format!("http://{host}/water/rivers"));
    let page = table.answer.expect(200).text();
    assert!(page.contains("Rhine") && page.contains("Loire"), "{page}");
    // The form of its page is sent as a query.
    let asked = "sql=select+name+from+rivers+where+km+%3E+%3Aleast+order+by+km&least=1050";
    let result = browser.load(&format!("http://{host}/water?{asked}"));
    let page = result.answer.expect(200).text();
    assert!(page.contains("Elbe") && page.contains("Rhine") && !page.contains(">Loire<"), "{page}");

    let rows = platform.ask_at(&host, "GET", &format!("/water.json?{asked}&_shape=arrays"));
    let rows: Value = rows.token(&user.token).send().expect(200).json();
    assert_eq!(rows["rows"], serde_json::json!([["Elbe"], ["Rhine"]]));
    // A write is refused by the program, and its refusal comes through.
    let refused = platform.ask_at(&host, "GET", "/water.json?sql=delete+from+rivers");
    let refused: Value = refused.token(&user.token).send().expect(400).json();
    assert!(refused["error"].as_str().unwrap().contains("SELECT"), "{refused}");
    // A stream of a whole table, in chunks.
    let csv = platform.ask_at(&host, "GET", "/water/rivers.csv?_stream=on").token(&user.token);
    let csv = csv.send().expect(200);
    assert!(csv.complete && csv.text().lines().count() == 4, "{csv:?}");

    platform.suspend(&user);
    let woken = browser.load_woken(&format!("http://{host}/water/rivers"));
    assert!(woken.answer.expect(200).text().contains("Rhine"));
}

/// The port of the environment's only program that listens.
fn port_of(platform: &Platform, user: &User) -> u16 {
    let processes = platform.processes();
    let program = processes
        .iter()
        .find(|process| process.command.contains("serve") && process.command.contains("--port"));
    let words: Vec<_> =
        program.unwrap_or_else(|| panic!("{user:?} {processes:#?}")).command.split(' ').collect();
    let at = words.iter().position(|word| *word == "--port").unwrap();
    words[at + 1].parse().unwrap()
}

#[test]
fn opencode_serves_its_api_by_path_its_page_on_its_host_and_nobody_else() {
    let Some(platform) = with("opencode", "opencode") else { return };
    let mut browser = Browser::new(&platform);
    let user = browser.sign_up("ada");
    let path = format!("/api/proxy/{}", user.env);
    // The first request comes while it starts, and is not swallowed.
    let health = platform.call(&user, "GET", &format!("{path}/global/health")).send();
    assert_eq!(health.expect(200).json::<Value>()["healthy"], true);

    // Its event stream comes piece by piece.
    let mut events = platform.call(&user, "GET", &format!("{path}/event")).open().unwrap();
    let mut streamed = events.head().unwrap();
    assert_eq!(streamed.status, 200);
    assert!(streamed.header("content-type").unwrap().starts_with("text/event-stream"));
    events.chunks_until(&mut streamed, "server.connected");

    let session = platform.call(&user, "POST", &format!("{path}/session"));
    let session: Value = session.json(&serde_json::json!({})).send().expect(200).json();
    let id = session["id"].as_str().unwrap();
    assert_eq!(session["directory"], platform.workspace(user.env).to_str().unwrap());
    events.chunks_until(&mut streamed, id);
    let shell = platform.call(&user, "POST", &format!("{path}/session/{id}/shell"));
    let command = serde_json::json!({ "agent": "build", "command": "echo written > shell.txt" });
    shell.json(&command).send().expect(200);
    let written = platform.workspace(user.env).join("shell.txt");
    assert_eq!(fs::read_to_string(written).unwrap(), "written\n");
    drop(events);

    // Without the password, which only the gateway knows, its port is closed to everybody.
    let port = port_of(&platform, &user);
    let direct = |target: &str| {
        let address = (Ipv4Addr::LOCALHOST, port).into();
        Ask::new(address, "GET", &format!("127.0.0.1:{port}"), target).send()
    };
    TcpStream::connect((Ipv4Addr::LOCALHOST, port)).unwrap();
    direct("/global/health").expect(401);
    direct("/").expect(401);
    // A password of somebody's own is not what the program gets.
    let other = platform.ask_at(&platform.host(user.env, "agent"), "GET", "/global/health");
    other
        .header("X-Wakeful-Token", &user.token)
        .header("Authorization", "Basic dTpw")
        .send()
        .expect(200);

    // Its page, with what it loads, on its own host.
    let page = browser.load_woken(&format!("http://{}/", platform.host(user.env, "agent")));
    assert!(page.url.contains("-agent.on.wakeful.localhost"), "{}", page.url);
    let html = page.answer.expect(200).text();
    let script = html.split("src=\"/assets/").nth(1).and_then(|rest| rest.split('"').next());
    let script = script.unwrap_or_else(|| panic!("no script: {html}"));
    let script = browser.script("GET", &format!("{}assets/{script}", page.url)).send();
    let kind = script.header("content-type").unwrap_or_default().to_owned();
    assert!(kind.contains("javascript"), "{kind}");
    assert!(script.expect(200).complete);
    let health = browser.script("GET", &format!("{}global/health", page.url)).send();
    health.expect(200);

    // What is left open by its page does not wake it; a page load does, with everything there.
    platform.suspend(&user);
    for target in ["event", "global/event", "global/health"] {
        let answer = browser.script("GET", &format!("{}{target}", page.url)).send();
        assert_eq!(answer.status, 503, "{target}");
    }
    assert_eq!(platform.environment(&user, user.env).phase, Phase::Suspended);
    browser.load_woken(&page.url).answer.expect(200);
    let sessions: Value =
        platform.call(&user, "GET", &format!("{path}/session")).send().expect(200).json();
    let found = sessions.as_array().unwrap().iter().any(|session| session["id"] == id);
    assert!(found, "{sessions}");
    until("its first sandbox is gone", || {
        (platform.metric("wakeful_sandbox_starts_total") == 2).then_some(())
    });
}
