//! Client commands against a scripted server that remembers what it was asked.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::{
    fs,
    io::Write as _,
    os::unix::fs::PermissionsExt as _,
    process::{Command, Output, Stdio},
    sync::Arc,
};

use axum::{
    Router,
    body::{Body, Bytes},
    http::{HeaderMap, Method, StatusCode, Uri, header},
    response::{IntoResponse as _, Response},
};
use parking_lot::Mutex;
use serde_json::{Value, json};
use tempfile::TempDir;

const SITE: &str = "0199f0a0-7b5c-7c3e-9d2f-6a1b2c3d4e5f";
const GONE: &str = "0299f0a0-7b5c-7c3e-9d2f-6a1b2c3d4e5f";
const OLD: &str = "00000000-0000-4000-8000-000000000001";
const NEW: &str = "00000000-0000-4000-8000-000000000002";

/// One request as it came.
#[derive(Debug, Clone)]
struct Asked {
    method: Method,
    target: String,
    authorization: Option<String>,
    body: String,
}

#[derive(Default)]
struct World {
    asked: Vec<Asked>,
    phase: &'static str,
    sandbox: Option<&'static str>,
    /// How many more looks a change of phase takes.
    looks: u32,
    goal: Option<(&'static str, Option<&'static str>)>,
}

impl World {
    fn environment(&self) -> Value {
        let clock = json!({ "expires_in_ms": 60_000 });
        let failure = (self.phase == "failed").then(
            || json!({ "reason": "opencode is not installed", "permanent": true, "attempts": 1 }),
        );
        let mut env = json!({
            "id": SITE, "project": SITE, "slug": "dev", "phase": self.phase, "generation": 3,
            "sandbox": self.sandbox, "since": 0, "clocks": { "agent": clock, "app": clock },
            "leases": [], "surfaces": [
                { "name": "app", "url": "http://site.apps.example/", "ready": true },
                { "name": "db", "url": "http://site.db.example/", "ready": false },
            ],
        });
        if let Some(failure) = failure {
            env["failure"] = failure;
        }
        env
    }

    fn project(&self) -> Value {
        json!({
            "id": SITE, "title": "My site", "template": "demo",
            "environments": [self.environment()],
        })
    }
}

fn problem(status: StatusCode, code: &str, detail: &str) -> Response {
    let body = json!({
        "code": code, "title": "T", "status": status.as_u16(), "detail": detail, "retry": false,
    });
    (status, [(header::CONTENT_TYPE, "application/problem+json")], body.to_string()).into_response()
}

fn answer(world: &mut World, asked: &Asked) -> Response {
    let ok = |value: Value| axum::Json(value).into_response();
    let (path, query) = asked.target.split_once('?').unwrap_or((&asked.target, ""));
    if path == "/login" {
        let body: Value = serde_json::from_str(&asked.body).unwrap();
        return match (body["password"].as_str(), body["token"].as_str()) {
            (Some("right"), None) => ok(json!({ "user": body["user"], "token": "wk_new" })),
            (None, Some("wk_given")) => ok(json!({ "user": body["user"] })),
            _ => problem(StatusCode::UNAUTHORIZED, "bad_credentials", "Wrong name or password."),
        };
    }
    if asked.authorization.as_deref() != Some("Bearer wk_new") {
        return problem(StatusCode::UNAUTHORIZED, "unauthenticated", "Sign in first.");
    }
    let environment = format!("/api/environments/{SITE}");
    let below = path.strip_prefix(&environment);
    match (asked.method.as_str(), path, below) {
        ("GET", "/api/projects", _) if query == "deleted=true" => ok(json!([{
            "id": GONE, "title": "Old site", "deleted_at": 0, "keep_until": 9_999_999_999_999_u64,
        }])),
        ("GET", "/api/projects", _) => ok(json!([world.project()])),
        ("POST", "/api/projects", _) => {
            (StatusCode::CREATED, axum::Json(world.project())).into_response()
        }
        ("POST", restore, _) if restore == format!("/api/projects/{GONE}/restore") => {
            ok(world.project())
        }
        ("PUT", file, _) if file.starts_with(&format!("/api/projects/{SITE}/files/")) => {
            match asked.body.as_str() {
                "refuse" => problem(StatusCode::PAYLOAD_TOO_LARGE, "too_large", "No room for it."),
                "expire" => problem(StatusCode::UNAUTHORIZED, "unauthenticated", "Sign in."),
                _ => (StatusCode::CREATED, axum::Json(json!({}))).into_response(),
            }
        }
        ("GET", file, _) if file == format!("/api/projects/{SITE}/files/d/a%20b.txt") => {
            "content".into_response()
        }
        ("GET", "/api/events", _) => {
            let text = format!(": hello\n\nevent: environment\ndata: {}\n\n", world.environment());
            ([(header::CONTENT_TYPE, "text/event-stream")], text).into_response()
        }
        ("GET", _, Some("")) => {
            world.looks = world.looks.saturating_sub(1);
            if world.looks == 0
                && let Some((phase, sandbox)) = world.goal.take()
            {
                (world.phase, world.sandbox) = (phase, sandbox);
            }
            ok(world.environment())
        }
        ("POST", _, Some("/wake")) => {
            (world.phase, world.looks) = ("starting", 2);
            world.goal.get_or_insert(("ready", Some(NEW)));
            (StatusCode::ACCEPTED, axum::Json(world.environment())).into_response()
        }
        ("POST", _, Some("/restart")) => {
            (world.looks, world.goal) = (3, Some(("ready", Some(NEW))));
            (StatusCode::ACCEPTED, axum::Json(world.environment())).into_response()
        }
        ("POST", _, Some("/extend")) => ok(world.environment()),
        ("GET", _, Some("/explain")) => ok(json!({
            "phase": "ready", "awake_because": [], "sleeps_in_ms": null, "sentence": "Asleep.",
        })),
        ("GET", _, Some("/logs")) => "one\ntwo\n".into_response(),
        ("PUT" | "DELETE", _, Some(variable)) if variable.starts_with("/variables/") => {
            StatusCode::NO_CONTENT.into_response()
        }
        ("GET", _, Some("/variables")) => ok(json!([
            { "name": "KEY", "secret": true, "value": "••••", "updated_at": 0 },
        ])),
        _ => problem(StatusCode::NOT_FOUND, "not_found", "There is nothing here."),
    }
}

struct Server {
    world: Arc<Mutex<World>>,
    address: std::net::SocketAddr,
    home: TempDir,
    _runtime: tokio::runtime::Runtime,
}

impl Server {
    fn start(phase: &'static str) -> Self {
        let sandbox = (phase == "ready").then_some(OLD);
        let world = Arc::new(Mutex::new(World { phase, sandbox, ..World::default() }));
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()
            .unwrap();
        let listener = runtime.block_on(tokio::net::TcpListener::bind("127.0.0.1:0")).unwrap();
        let address = listener.local_addr().unwrap();
        let shared = Arc::clone(&world);
        let handler = move |method: Method, uri: Uri, headers: HeaderMap, body: Body| {
            let shared = Arc::clone(&shared);
            async move {
                let body: Bytes = axum::body::to_bytes(body, 1 << 20).await.unwrap();
                let authorization = headers.get(header::AUTHORIZATION);
                let asked = Asked {
                    method,
                    target: uri.to_string(),
                    authorization: authorization.map(|value| value.to_str().unwrap().to_owned()),
                    body: String::from_utf8_lossy(&body).into_owned(),
                };
                let mut world = shared.lock();
                world.asked.push(asked.clone());
                answer(&mut world, &asked)
            }
        };
        let router = Router::new().fallback(handler);
        runtime.spawn(async move { axum::serve(listener, router).await });
        Self { world, address, home: tempfile::tempdir().unwrap(), _runtime: runtime }
    }

    /// A name below `.localhost`, which no resolver of the machine needs to know.
    fn url(&self) -> String {
        format!("http://wakeful.localhost:{}", self.address.port())
    }

    fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_wakeful"));
        command
            .args(args)
            .current_dir(self.home.path())
            .env_clear()
            .env("PATH", "/usr/bin:/bin")
            .env("HOME", self.home.path())
            // A proxy for the world outside is none for this machine.
            .env("http_proxy", "http://127.0.0.1:9")
            .stdin(Stdio::null());
        command
    }

    fn run(&self, args: &[&str]) -> Output {
        self.command(args).output().unwrap()
    }

    fn run_with_input(&self, args: &[&str], input: &str) -> Output {
        let mut child = self
            .command(args)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
        child.wait_with_output().unwrap()
    }

    fn signed_in(phase: &'static str) -> Self {
        let server = Self::start(phase);
        let args = ["login", &server.url(), "--user", "ada", "--password-stdin"];
        let output = server.run_with_input(&args, "right\n");
        assert!(output.status.success(), "{}", stderr(&output));
        server
    }

    fn asked(&self, method: &str, ending: &str) -> Vec<Asked> {
        let world = self.world.lock();
        let fits = |asked: &&Asked| asked.method == method && asked.target.ends_with(ending);
        world.asked.iter().filter(fits).cloned().collect()
    }
}

fn stdout(output: &Output) -> String {
    assert!(output.status.success(), "{}", stderr(output));
    String::from_utf8(output.stdout.clone()).unwrap()
}

fn stderr(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).unwrap()
}

#[test]
fn login_keeps_a_token_for_its_owner_alone_and_the_next_command_uses_it() {
    let server = Server::signed_in("suspended");
    let file = server.home.path().join(".config/wakeful/credentials.json");
    assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
    assert!(fs::read_to_string(&file).unwrap().contains("wk_new"));
    let text = stdout(&server.run(&["envs"]));
    assert!(text.contains(SITE) && text.contains("My site/dev") && text.contains("suspended"));
}

#[test]
fn login_by_token_keeps_the_token_that_was_given() {
    let server = Server::start("suspended");
    let args = ["login", &server.url(), "--user", "ada", "--token", "wk_given", "--json"];
    let shown: Value = serde_json::from_str(&stdout(&server.run(&args))).unwrap();
    assert_eq!(shown["user"], "ada");
    let file = server.home.path().join(".config/wakeful/credentials.json");
    assert!(fs::read_to_string(file).unwrap().contains("wk_given"));
}

#[test]
fn a_wrong_password_is_told_and_keeps_nothing() {
    let server = Server::start("suspended");
    let args = ["login", &server.url(), "--user", "ada", "--password-stdin"];
    let output = server.run_with_input(&args, "wrong");
    assert_eq!(output.status.code(), Some(1));
    assert!(stderr(&output).contains("Wrong name or password. (bad_credentials)"));
    assert!(!server.home.path().join(".config").exists());
}

#[test]
fn the_environment_beats_the_credentials_file() {
    let server = Server::start("suspended");
    let run = |token: &str| {
        let mut command = server.command(&["envs", "--json"]);
        command.env("WAKEFUL_URL", server.url()).env("WAKEFUL_TOKEN", token).output().unwrap()
    };
    let shown: Value = serde_json::from_str(&stdout(&run("wk_new"))).unwrap();
    assert_eq!(shown[0]["id"], SITE);
    let refused = run("wk_other");
    assert_eq!(refused.status.code(), Some(1));
    let problem: Value = serde_json::from_slice(&refused.stderr).unwrap();
    assert_eq!(problem["code"], "unauthenticated");
}

#[test]
fn logout_forgets_the_token() {
    let server = Server::signed_in("suspended");
    assert!(server.run(&["logout"]).status.success());
    let output = server.run(&["envs"]);
    assert!(stderr(&output).contains("not signed in"), "{}", stderr(&output));
}

#[test]
fn wake_waits_until_it_is_ready() {
    let server = Server::signed_in("suspended");
    assert_eq!(stdout(&server.run(&["wake", "my site"])), "my site is ready.\n");
    assert_eq!(server.world.lock().phase, "ready");
}

#[test]
fn a_wake_that_fails_says_why() {
    let server = Server::signed_in("suspended");
    server.world.lock().goal = Some(("failed", None));
    let output = server.run(&["wake", "My site"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(stderr(&output).contains("failed: opencode is not installed"), "{}", stderr(&output));
}

#[test]
fn restart_waits_for_a_new_sandbox_though_the_old_one_is_ready() {
    let server = Server::signed_in("ready");
    let shown: Value =
        serde_json::from_str(&stdout(&server.run(&["restart", SITE, "--json"]))).unwrap();
    assert_eq!(shown["sandbox"], NEW);
}

#[test]
fn extend_rounds_up_to_whole_minutes_and_explains() {
    let server = Server::signed_in("ready");
    assert_eq!(stdout(&server.run(&["extend", "My site", "--for", "89m1s"])), "Asleep.\n");
    let asked = server.asked("POST", "/extend");
    assert_eq!(asked[0].body, r#"{"minutes":90}"#);
    let output = server.run(&["extend", "My site", "--for", "90"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("needs a unit"));
}

#[test]
fn open_prints_the_surfaces_address() {
    let server = Server::signed_in("ready");
    assert_eq!(stdout(&server.run(&["open", "My site"])), "http://site.apps.example/\n");
    assert_eq!(stdout(&server.run(&["open", "My site/dev", "db"])), "http://site.db.example/\n");
    let output = server.run(&["open", "My site", "appp"]);
    assert!(stderr(&output).contains("did you mean `app`?"), "{}", stderr(&output));
}

#[test]
fn logs_are_passed_on_as_they_are_or_line_by_line() {
    let server = Server::signed_in("ready");
    let args = ["logs", "My site", "--surface", "app", "--tail", "2"];
    assert_eq!(stdout(&server.run(&args)), "one\ntwo\n");
    assert_eq!(server.asked("GET", "/logs?surface=app&tail=2").len(), 1);
    let json = stdout(&server.run(&["logs", "My site", "--json"]));
    assert_eq!(json, "{\"line\":\"one\"}\n{\"line\":\"two\"}\n");
}

#[test]
fn upload_stores_each_file_at_its_path_and_names_what_was_refused() {
    let server = Server::signed_in("suspended");
    let directory = server.home.path().join("site");
    fs::create_dir(&directory).unwrap();
    let large = "x".repeat(200_000);
    fs::write(directory.join("a?b ü.txt"), &large).unwrap();
    fs::write(directory.join("empty"), "").unwrap();
    let output = server.run(&["upload", "My site", "site", "--to", "/www/"]);
    assert_eq!(stdout(&output), "Uploaded 2 files, 200000 bytes.\n");
    let stored = server.asked("PUT", "/files/www/site/a%3Fb%20%C3%BC.txt");
    assert_eq!(stored[0].body, large);
    assert_eq!(server.asked("PUT", "/files/www/site/empty")[0].body, "");
    fs::write(directory.join("b.txt"), "refuse").unwrap();
    fs::write(directory.join("c.txt"), "later").unwrap();
    let output = server.run(&["upload", "My site", "site/"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(stderr(&output).contains("b.txt: No room for it."), "{}", stderr(&output));
    assert!(stderr(&output).contains("1 of 4 files were not stored"), "{}", stderr(&output));
    assert_eq!(server.asked("PUT", "/files/c.txt").len(), 1, "the others are stored");
}

#[test]
fn an_upload_that_may_not_go_on_stops_at_once() {
    let server = Server::signed_in("suspended");
    for name in ["a", "b"] {
        fs::write(server.home.path().join(name), "expire").unwrap();
    }
    let output = server.run(&["upload", "My site", "a", "b"]);
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(server.asked("PUT", "/files/b").len(), 0);
}

#[test]
fn download_writes_a_file_whole_or_not_at_all() {
    let server = Server::signed_in("suspended");
    let output = server.run(&["download", "My site", "d/a b.txt"]);
    assert_eq!(stdout(&output), "a b.txt: 7 bytes\n");
    let file = server.home.path().join("a b.txt");
    assert_eq!(fs::read_to_string(&file).unwrap(), "content");
    fs::write(&file, "mine").unwrap();
    let output = server.run(&["download", "My site", "d/a b.txt"]);
    assert!(stderr(&output).contains("--force"), "{}", stderr(&output));
    assert_eq!(fs::read_to_string(&file).unwrap(), "mine");
    assert_eq!(stdout(&server.run(&["download", "My site", "d/a b.txt", "-o", "-"])), "content");
    let output = server.run(&["download", "My site", "missing"]);
    assert!(stderr(&output).contains("(not_found)"), "{}", stderr(&output));
    assert_eq!(fs::read_dir(server.home.path()).unwrap().count(), 2, "no half file is left");
}

#[test]
fn a_secret_travels_in_the_body_alone() {
    let server = Server::signed_in("suspended");
    let args = ["vars", "My site", "set", "API_KEY", "--secret"];
    let output = server.run_with_input(&args, "s3cret\n");
    assert!(!stdout(&output).contains("s3cret"));
    let asked = &server.asked("PUT", "/variables/API_KEY")[0];
    let body = |text: &str| serde_json::from_str::<Value>(text).unwrap();
    assert_eq!(body(&asked.body), serde_json::json!({ "secret": true, "value": "s3cret" }));
    assert!(server.run(&["vars", "My site", "set", "A=1", "B=x=y"]).status.success());
    let plain = body(&server.asked("PUT", "/variables/B")[0].body);
    assert_eq!(plain, serde_json::json!({ "secret": false, "value": "x=y" }));
    assert!(server.run(&["vars", "My site", "unset", "A"]).status.success());
    assert_eq!(server.asked("DELETE", "/variables/A").len(), 1);
    assert!(stdout(&server.run(&["vars", "My site"])).contains("••••"));
}

#[test]
fn events_are_told_one_a_line_and_the_end_of_the_stream_is_a_failure() {
    let server = Server::signed_in("ready");
    let output = server.run(&["events", "--json"]);
    assert_eq!(output.status.code(), Some(1));
    let line: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(line["event"], "environment");
    assert_eq!(line["data"]["phase"], "ready");
    let text = String::from_utf8(server.run(&["events"]).stdout).unwrap();
    assert_eq!(text, format!("{SITE} dev ready\n"));
}

#[test]
fn a_deleted_project_is_listed_and_restored() {
    let server = Server::signed_in("suspended");
    let text = stdout(&server.run(&["projects", "list", "--deleted"]));
    assert!(text.contains("Old site"), "{text}");
    assert_eq!(stdout(&server.run(&["restore", "Old site"])), "Restored My site.\n");
}

#[test]
fn a_server_that_is_not_there_is_named() {
    let server = Server::start("ready");
    let mut command = server.command(&["envs", "--url", "http://wakeful.localhost:1"]);
    let output = command.env("WAKEFUL_TOKEN", "wk_new").output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    let text = stderr(&output);
    assert!(text.contains("http://wakeful.localhost:1 cannot be reached"), "{text}");
}
