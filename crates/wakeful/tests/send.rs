//! `send` against a server that is scripted answer by answer, and loses some.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::{
    io::{BufRead as _, BufReader, Read as _, Write as _},
    net::{TcpListener, TcpStream},
    process::{Command, Output, Stdio},
    sync::{Arc, mpsc},
    thread,
};

use parking_lot::Mutex;
use serde_json::{Value, json};

const SITE: &str = "0199f0a0-7b5c-7c3e-9d2f-6a1b2c3d4e5f";
const THREAD: &str = "0299f0a0-7b5c-7c3e-9d2f-6a1b2c3d4e5f";

/// What the server does with a request for the prompts of [`SITE`].
#[derive(Debug, Clone)]
enum Does {
    /// It closes the connection without a word, having perhaps taken the prompt.
    Drops,
    /// It answers with this status and body.
    Answers(u16, Value),
    /// It answers what it keeps of the prompt in this state.
    Keeps(&'static str, &'static str),
}

/// A request.
#[derive(Debug, Clone)]
struct Asked {
    method: String,
    target: String,
    body: Value,
}

struct Server {
    port: u16,
    asked: Arc<Mutex<Vec<Asked>>>,
}

impl Server {
    /// Does each thing once, in order; then nothing any more.
    fn start(script: Vec<Does>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let asked = Arc::new(Mutex::new(Vec::new()));
        let seen = Arc::clone(&asked);
        let (steps, script_left) = mpsc::channel();
        script.into_iter().for_each(|step| steps.send(step).unwrap());
        drop(steps);
        thread::spawn(move || {
            for stream in listener.incoming() {
                serve(stream.unwrap(), &seen, &script_left);
            }
        });
        Self { port, asked }
    }

    fn run(&self, args: &[&str], input: &str) -> Output {
        let home = tempfile::tempdir().unwrap();
        let mut child = Command::new(env!("CARGO_BIN_EXE_wakeful"))
            .args(args)
            .current_dir(home.path())
            .env_clear()
            .env("PATH", "/usr/bin:/bin")
            .env("HOME", home.path())
            .env("WAKEFUL_URL", format!("http://127.0.0.1:{}", self.port))
            .env("WAKEFUL_TOKEN", "wk_token")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        // A command that wants no input may be gone.
        let _ = child.stdin.take().unwrap().write_all(input.as_bytes());
        child.wait_with_output().unwrap()
    }

    fn prompts(&self) -> Vec<Asked> {
        let path = format!("/api/environments/{SITE}/prompts");
        let asked = self.asked.lock();
        asked.iter().filter(|asked| asked.target.starts_with(&path)).cloned().collect()
    }
}

/// Reads one request and does what is next.
fn serve(stream: TcpStream, seen: &Mutex<Vec<Asked>>, script: &mpsc::Receiver<Does>) {
    let mut reader = BufReader::new(stream);
    let mut first = String::new();
    if reader.read_line(&mut first).unwrap_or(0) == 0 {
        return;
    }
    let mut length = 0;
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).unwrap();
        if line.trim().is_empty() {
            break;
        }
        if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length:") {
            length = value.trim().parse().unwrap();
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).unwrap();
    let mut words = first.split_whitespace().map(str::to_owned);
    let (method, target) = (words.next().unwrap(), words.next().unwrap());
    let body = serde_json::from_slice(&body).unwrap_or(Value::Null);
    let asked = Asked { method, target, body };
    seen.lock().push(asked.clone());
    if asked.target == "/api/events" {
        follow(reader.into_inner());
        return;
    }
    let (status, answer) = if asked.target == "/api/projects" {
        (200, projects())
    } else if asked.target == "/api/me" {
        (200, json!({ "user": "ada" }))
    } else {
        match script.try_recv() {
            Ok(Does::Drops) | Err(_) => return,
            Ok(Does::Answers(status, body)) => (status, body),
            Ok(Does::Keeps(state, phase)) => (200, kept(&client(seen), state, phase)),
        }
    };
    let answer = answer.to_string();
    let mut stream = reader.into_inner();
    let head = format!(
        "HTTP/1.1 {status} x\r\ncontent-type: application/json\r\nconnection: close\r\n\
         content-length: {}\r\n\r\n",
        answer.len()
    );
    let _ = stream.write_all(format!("{head}{answer}").as_bytes());
}

/// Begins a stream of changes that says nothing and does not end before the test.
fn follow(mut stream: TcpStream) {
    let head = "HTTP/1.1 200 x\r\ncontent-type: text/event-stream\r\n\r\n: begins\n\n";
    let _ = stream.write_all(head.as_bytes());
    std::mem::forget(stream);
}

/// The id of the prompt that came last.
fn client(seen: &Mutex<Vec<Asked>>) -> Value {
    let seen = seen.lock();
    let sent = seen.iter().rev().find(|asked| asked.method == "POST").unwrap();
    sent.body["client"].clone()
}

fn kept(client: &Value, state: &str, phase: &str) -> Value {
    json!({ "client": client, "thread": THREAD, "state": state, "created_at": 0, "phase": phase })
}

fn projects() -> Value {
    let clock = json!({ "expires_in_ms": 0 });
    json!([{ "id": SITE, "title": "Site", "template": "demo", "environments": [{
        "id": SITE, "project": SITE, "slug": "dev", "phase": "suspended", "generation": 1,
        "sandbox": null, "since": 0, "clocks": { "agent": clock, "app": clock },
        "leases": [], "surfaces": [],
    }] }])
}

fn problem(status: u16, code: &str, detail: &str) -> Value {
    json!({ "code": code, "title": "T", "status": status, "detail": detail, "retry": false })
}

fn stdout(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).unwrap()
}

fn stderr(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).unwrap()
}

#[test]
fn a_prompt_is_sent_again_with_its_id_until_it_is_taken_and_then_waited_for() {
    let server = Server::start(vec![
        Does::Drops,
        Does::Answers(502, json!("a proxy")),
        Does::Answers(503, problem(503, "internal", "Not now.")),
        Does::Keeps("waiting", "suspended"),
        Does::Drops,
        Does::Keeps("waiting", "starting"),
        Does::Keeps("delivered", "ready"),
    ]);
    let args = ["send", "Site", "-", "--agent", "shell", "--title", "T", "--directory", "web"];
    let output = server.run(&args, "make it\nso\n");
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    assert_eq!(stdout(&output), format!("{THREAD}\n"));
    let asked = server.prompts();
    let sent: Vec<_> = asked.iter().filter(|asked| asked.method == "POST").collect();
    assert_eq!(sent.len(), 4);
    for again in &sent {
        assert_eq!(again.body, sent[0].body, "the same prompt with the same id");
    }
    let mut expected = json!({
        "text": "make it\nso", "agent": "shell", "title": "T", "project": "web",
    });
    expected["client"] = sent[0].body["client"].clone();
    assert_eq!(sent[0].body, expected);
    let id = sent[0].body["client"].as_str().unwrap();
    assert!(asked[4..].iter().all(|asked| asked.method == "GET" && asked.target.contains(id)));
}

#[test]
fn another_prompt_has_another_id() {
    let server =
        Server::start(vec![Does::Keeps("delivered", "ready"), Does::Keeps("delivered", "ready")]);
    let args = ["send", "Site", "--thread", THREAD, "--json", "again"];
    for _ in 0..2 {
        let output = server.run(&args, "");
        assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
        let printed: Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!(printed["thread"], THREAD);
    }
    let sent = server.prompts();
    assert_eq!((sent.len(), &sent[0].body["thread"]), (2, &json!(THREAD)));
    assert_ne!(sent[0].body["client"], sent[1].body["client"]);
}

#[test]
fn a_refusal_says_why_and_ends_with_1() {
    let why = "There is no agent `codr`.";
    let mut refused = kept(&json!(THREAD), "refused", "ready");
    refused["problem"] = problem(400, "invalid", why);
    let at_once = Does::Answers(400, problem(400, "invalid", why));
    for script in [vec![at_once], vec![Does::Answers(200, refused)]] {
        let server = Server::start(script);
        let output = server.run(&["send", "Site", "x", "--agent", "codr"], "");
        assert_eq!(output.status.code(), Some(1));
        assert!(stderr(&output).contains(why), "{}", stderr(&output));
        assert!(output.stdout.is_empty());
        assert_eq!(server.prompts().len(), 1, "what is refused is not sent again");
    }
}

#[test]
fn an_empty_prompt_goes_nowhere() {
    let server = Server::start(Vec::new());
    for args in [["send", "Site", " "], ["send", "Site", "-"]] {
        let output = server.run(&args, "\n");
        assert_eq!(output.status.code(), Some(1));
        assert!(stderr(&output).contains("is empty"), "{}", stderr(&output));
    }
    assert!(server.asked.lock().is_empty());
}

#[test]
fn without_a_name_every_environment_is_listed_and_the_sleeping_are_left_asleep() {
    let server = Server::start(Vec::new());
    let output = server.run(&["threads"], "");
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let text = stdout(&output);
    assert!(text.starts_with("Site/dev\n  asleep"), "{text}");
    let output = server.run(&["threads", "--json"], "");
    let printed: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(printed["environments"][0]["environment"], SITE);
    assert_eq!(printed["environments"][0]["phase"], "suspended");
    let asked = server.asked.lock();
    let of_the_host = |asked: &&Asked| {
        asked.target.starts_with("/api/host/") || asked.target.starts_with("/api/environments/")
    };
    assert_eq!(asked.iter().filter(of_the_host).count(), 0, "{asked:?}");
}
