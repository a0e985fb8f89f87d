//! The program that this crate's tests start: `envd` with its shim, the demo, and stubs that
//! behave as badly as real programs do.

use std::{
    ffi::OsString,
    io::{self, BufRead, BufReader, Read, Write},
    net::{TcpListener, TcpStream},
    process::ExitCode,
    thread,
    time::{Duration, Instant},
};

use wakeful_envd::demo::Demo;
use wakeful_wire::sandbox::subcommand;

fn main() -> ExitCode {
    let mut args = std::env::args_os().skip(1);
    let command = args.next().and_then(|word| word.into_string().ok()).unwrap_or_default();
    match command.as_str() {
        subcommand::ENVD => wakeful_envd::main_blocking(io::stdin().lock()),
        subcommand::SHIM => wakeful_envd::exec_shim(args),
        subcommand::TETHER => wakeful_envd::agent::tether(args),
        subcommand::PROBE => wakeful_envd::probe_isolation(io::stdin().lock(), io::stdout()),
        "demo" => demo(),
        "alone" => alone(&args.collect::<Vec<_>>()),
        "run" => run_in_terminal(&args.collect::<Vec<_>>()),
        "stub" => stub(&args.collect::<Vec<_>>()),
        _ => ExitCode::from(64),
    }
}

fn variable(name: &str) -> Option<String> {
    std::env::var_os(name).and_then(|value| value.into_string().ok())
}

fn port() -> u16 {
    variable("PORT").and_then(|port| port.parse().ok()).unwrap_or(0)
}

/// `alone WORKSPACE STATE LISTEN [LABEL]`: a host of its own, with an agent `fake` that is none.
fn alone(args: &[OsString]) -> ExitCode {
    let text = |at: usize| args.get(at).and_then(|arg| arg.to_str());
    let path = |at: usize| text(at).map(std::path::PathBuf::from);
    let (Some(workspace), Some(state)) = (path(0), path(1)) else { return ExitCode::from(64) };
    let Some(listen) = text(2).and_then(|listen| listen.parse().ok()) else {
        return ExitCode::from(64);
    };
    wakeful_envd::alone::alone_blocking(wakeful_envd::alone::AloneOptions {
        workspace,
        listen,
        agents: [("fake".to_owned(), "exit 3".to_owned())].into(),
        default_agent: Some("shell".to_owned()),
        label: text(3).unwrap_or_default().to_owned(),
        public: None,
        state,
        variables: std::env::vars_os().collect(),
    })
}

fn demo() -> ExitCode {
    let Ok(runtime) = tokio::runtime::Builder::new_current_thread().enable_all().build() else {
        return ExitCode::FAILURE;
    };
    let demo = Demo {
        workspace: ".".into(),
        greeting: variable("GREETING"),
        dashboard_url: variable("WAKEFUL_DASHBOARD_URL"),
    };
    let _error = runtime.block_on(wakeful_envd::demo::serve(port(), demo));
    ExitCode::FAILURE
}

/// `run TEXT`: has the shell agent run it, prints what its terminal shows, and ends well if the
/// turn did.
fn run_in_terminal(args: &[OsString]) -> ExitCode {
    use wakeful_envd::{
        agent::{Agent, AgentLimits, Opening, Order, ShellAgent, Surroundings},
        thread::command::AgentUpdate,
    };
    use wakeful_wire::rpc::{ClientId, Outcome, Prompt, ThreadId, TurnId};
    let Ok(runtime) = tokio::runtime::Builder::new_current_thread().enable_all().build() else {
        return ExitCode::FAILURE;
    };
    let text = args.first().and_then(|text| text.to_str()).unwrap_or_default();
    let surroundings = Surroundings {
        program: "/proc/self/exe".into(),
        env: std::env::vars_os().collect(),
        workspace: std::env::current_dir().unwrap_or_default(),
        scratch: std::env::var_os("TMPDIR").unwrap_or_default().into(),
    };
    let nil = uuid::Uuid::nil();
    runtime.block_on(async {
        let opening = Opening {
            thread: ThreadId::from_uuid(nil),
            project: String::new(),
            session: None,
            mode: None,
        };
        // As `envd` does, which waits for every child: nothing may depend on a status that it takes.
        tokio::spawn(async {
            loop {
                while let Ok(Some(_)) = rustix::process::wait(rustix::process::WaitOptions::NOHANG)
                {
                }
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
        });
        let mut session = ShellAgent::new(surroundings, AgentLimits::default()).open(opening);
        let prompt = Prompt::text(ClientId::from_uuid(nil), text);
        let _taken =
            session.orders.send(Order::Prompt { turn: TurnId::from_uuid(nil), prompt }).await;
        while let Some(said) = session.said.recv().await {
            if let AgentUpdate::Terminal { text, .. } = &said.update {
                let _closed = io::stdout().write_all(text.as_bytes());
            }
            if let AgentUpdate::TurnEnded(outcome) = said.update {
                let well = matches!(outcome, Outcome::Completed { .. });
                return if well { ExitCode::SUCCESS } else { ExitCode::FAILURE };
            }
        }
        ExitCode::FAILURE
    })
}

/// `stub [hang MS] [basic] [closed MS] [v6]`: answers 200 with an echo of what it was asked for.
/// `hang` never answers a connection of its first milliseconds, `basic` answers 401 without the
/// pair, `closed` binds only after so long, `v6` binds the IPv6 loopback address alone.
fn stub(args: &[OsString]) -> ExitCode {
    let begun = Instant::now();
    let number = |name: &str| {
        let at = args.iter().position(|arg| arg == name)?;
        args.get(at + 1)?.to_str()?.parse().ok().map(Duration::from_millis)
    };
    let hang = number("hang").unwrap_or_default();
    let expected = args.iter().any(|arg| arg == "basic").then(|| {
        let pair = |name| variable(name).unwrap_or_default();
        format!("{}:{}", pair("WAKEFUL_BASIC_USER"), pair("WAKEFUL_BASIC_PASSWORD"))
    });
    if let Some(closed) = number("closed") {
        let wait = rustix::time::Timespec {
            tv_sec: i64::try_from(closed.as_secs()).unwrap_or(0),
            tv_nsec: i64::from(closed.subsec_nanos()),
        };
        let _interrupted = rustix::thread::nanosleep(&wait);
    }
    let address = if args.iter().any(|arg| arg == "v6") { "::1" } else { "127.0.0.1" };
    let Ok(listener) = TcpListener::bind((address, port())) else { return ExitCode::FAILURE };
    let mut swallowed = Vec::new();
    for stream in listener.incoming().flatten() {
        if begun.elapsed() < hang {
            swallowed.push(stream);
            continue;
        }
        let expected = expected.clone();
        thread::spawn(move || answer(stream, expected.as_deref()));
    }
    ExitCode::FAILURE
}

fn answer(stream: TcpStream, expected: Option<&str>) -> Option<()> {
    let mut reader = BufReader::new(stream.try_clone().ok()?.take(16 * 1024));
    let mut head = Vec::new();
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line).ok()? == 0 || line == "\r\n" {
            break;
        }
        head.push(line);
    }
    let authorized = expected.is_none_or(|pair| {
        use base64::{Engine, engine::general_purpose::STANDARD};
        let wanted = format!("authorization: basic {}", STANDARD.encode(pair)).to_lowercase();
        head.iter().any(|line| line.trim().to_lowercase() == wanted)
    });
    let status = if authorized { "200 OK" } else { "401 Unauthorized" };
    let body = head.first().map_or("", |line| line.trim());
    let length = body.len();
    let mut stream = stream;
    write!(
        stream,
        "HTTP/1.1 {status}\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n{body}"
    )
    .ok()
}
