//! What real machines say: a process that is stopped, and a network that comes, changes and goes.
//!
//! The watched process is this test binary once more, so that it can be stopped and can have a
//! network of its own.

#![cfg(target_os = "linux")]
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]
#![expect(clippy::print_stdout, reason = "who reads a test's output learns why it was skipped")]

use std::{
    io::{self, BufRead as _, BufReader, Read as _, Write as _},
    process::{Child, ChildStdin, Command, Stdio},
    sync::{Arc, mpsc},
    thread,
    time::{Duration, Instant},
};

use rustix::process::{Pid, kill_process};
use tokio::sync::broadcast::error::{RecvError, TryRecvError};
use wakeful_client::{
    credentials::{ClientKey, PairedHosts},
    runtime::{Client, Setup},
    signals::{Signal, Signals, attach},
};
use wakeful_link::{Change, Network, registry};

/// How long anything may take on a machine that is very busy.
const PATIENCE: Duration = Duration::from_secs(60);
/// What a line of the watched process begins with.
const MARK: &str = "signal: ";

#[test]
#[ignore = "is the watched process of the other tests, and ends with its input"]
fn the_watched_process() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let (ends, mut ended) = tokio::sync::oneshot::channel();
        thread::spawn(move || {
            let _read = io::stdin().read_to_end(&mut Vec::new());
            let _gone = ends.send(());
        });
        let mut signals = Signals::watch();
        loop {
            tokio::select! {
                _ = &mut ended => return,
                signal = signals.next() => println!("{MARK}{}", written(signal)),
            }
        }
    });
}

fn written(signal: Signal) -> String {
    match signal {
        Signal::Network(network) => format!("{network:?}"),
        Signal::PathChanged => "PathChanged".to_owned(),
        Signal::Suspended(suspended) => format!("Suspended {}", suspended.as_millis()),
    }
}

/// A process that watches its machine. Ends with this.
struct Watched {
    child: Child,
    said: mpsc::Receiver<String>,
    _input: ChildStdin,
}

impl Watched {
    /// Starts it by a command that runs what follows its arguments.
    fn start(by: &[&str]) -> Self {
        let this = std::env::current_exe().unwrap();
        let ours = ["--exact", "the_watched_process", "--ignored", "--nocapture"];
        let mut command = match by.split_first() {
            Some((program, arguments)) => {
                let mut command = Command::new(program);
                command.args(arguments).arg(this);
                command
            }
            None => Command::new(this),
        };
        let command = command.args(ours).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let (says, said) = mpsc::channel();
        thread::spawn(move || {
            for line in lines.map_while(Result::ok) {
                if let Some((_, signal)) = line.split_once(MARK) {
                    let _nobody = says.send(signal.to_owned());
                }
            }
        });
        let input = child.stdin.take().unwrap();
        Self { child, said, _input: input }
    }

    fn next(&self) -> String {
        self.said.recv_timeout(PATIENCE).expect("it says something")
    }

    /// The next thing that is said of the network.
    fn next_of_network(&self) -> String {
        loop {
            let said = self.next();
            // A machine that is very busy looks as if the process had been stopped.
            if !said.starts_with("Suspended") {
                return said;
            }
        }
    }

    fn send(&self, signal: rustix::process::Signal) {
        let pid = Pid::from_raw(i32::try_from(self.child.id()).unwrap()).unwrap();
        kill_process(pid, signal).unwrap();
    }
}

impl Drop for Watched {
    fn drop(&mut self) {
        let _ended = self.child.kill();
        let _status = self.child.wait();
    }
}

#[test]
fn a_process_that_was_stopped_knows_for_how_long() {
    const STOPPED: Duration = Duration::from_secs(9);
    let watched = Watched::start(&[]);
    assert!(["Online", "Offline"].contains(&watched.next().as_str()));

    let began = Instant::now();
    watched.send(rustix::process::Signal::STOP);
    // Only time itself is waited for here; what was said just before the stop is of no interest.
    while let Some(left) = STOPPED.checked_sub(began.elapsed()) {
        let _before_it = watched.said.recv_timeout(left);
    }
    watched.send(rustix::process::Signal::CONT);
    loop {
        let said = watched.next();
        let Some(millis) = said.strip_prefix("Suspended ") else { continue };
        let suspended = Duration::from_millis(millis.parse().unwrap());
        let whole = began.elapsed();
        // The look that the stop held up was due within five seconds after its begin.
        if suspended >= STOPPED - Duration::from_secs(5) {
            assert!(suspended <= whole, "{suspended:?} of {whole:?}");
            return;
        }
    }
}

/// A network of its own for the watched process, and the way to change it.
struct OwnNetwork {
    watched: Watched,
    enter: Vec<String>,
}

impl OwnNetwork {
    /// `None`, with the reason printed, where that is not permitted.
    fn new() -> Option<Self> {
        let is_root = rustix::process::geteuid().is_root();
        let apart: &[&str] =
            if is_root { &["unshare", "--net"] } else { &["unshare", "--map-root-user", "--net"] };
        let (program, arguments) = apart.split_first().unwrap();
        let probe = Command::new(program)
            .args(arguments)
            .args(["sh", "-c", "ip link add inner type veth peer name outer"])
            .output();
        match probe {
            Ok(probe) if probe.status.success() => {}
            Ok(probe) => {
                let why = String::from_utf8_lossy(&probe.stderr);
                println!("skipped: no network of its own can be had here: {}", why.trim());
                return None;
            }
            Err(error) => {
                println!("skipped: unshare cannot be run: {error}");
                return None;
            }
        }
        let watched = Watched::start(apart);
        let mut enter = vec![format!("--target={}", watched.child.id()), "--net".to_owned()];
        if !is_root {
            enter.extend(["--user", "--preserve-credentials"].map(str::to_owned));
        }
        Some(Self { watched, enter })
    }

    fn ip(&self, command: &str) {
        self.ip_each(&[command.to_owned()]);
    }

    fn ip_each(&self, commands: &[String]) {
        let mut command = Command::new("nsenter");
        command.args(&self.enter).args(["ip", "-batch", "-"]);
        let mut running = command.stdin(Stdio::piped()).spawn().unwrap();
        let input = commands.join("\n") + "\n";
        running.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
        assert!(running.wait().unwrap().success(), "{}…", commands[0]);
    }
}

#[test]
fn a_network_that_comes_changes_and_goes_is_told_of_each_once() {
    let Some(network) = OwnNetwork::new() else { return };
    let said = || network.watched.next_of_network();
    assert_eq!(said(), "Offline", "there is nothing besides the machine itself");

    network.ip("link set lo up");
    network.ip("link add inner type veth peer name outer");
    // Without addresses of their links, whose changes would tell of more than the devices do.
    network.ip("link set inner addrgenmode none");
    network.ip("link set outer addrgenmode none");
    network.ip("link set inner up");
    network.ip("addr add 10.77.0.1/24 dev inner");
    // With an address, but as if its cable were not in.
    network.ip("link set outer up");
    assert_eq!(said(), "Online");

    let changes = [
        "addr add 10.77.1.1/24 dev inner",
        "route add default via 10.77.0.2",
        "route replace default via 10.77.0.3",
        "addr del 10.77.1.1/24 dev inner",
        "route del default",
    ];
    for change in changes {
        network.ip(change);
        assert_eq!(said(), "PathChanged", "{change}");
    }

    // What has an address and leads nowhere changes nothing.
    network.ip("route add 10.99.0.0/16 via 10.77.0.2");
    network.ip("link set inner mtu 1400");

    network.ip("link set outer down");
    assert_eq!(said(), "Offline");
    network.ip("link set outer up");
    assert_eq!(said(), "Online");
    network.ip("addr del 10.77.0.1/24 dev inner");
    assert_eq!(said(), "Offline");
    network.ip("addr add 10.78.0.1/24 dev inner");
    assert_eq!(said(), "Online");
    network.ip("link del inner");
    assert_eq!(said(), "Offline");
}

#[test]
fn more_changes_than_the_kernel_keeps_are_looked_at_all_the_same() {
    let Some(network) = OwnNetwork::new() else { return };
    let said = || network.watched.next_of_network();
    assert_eq!(said(), "Offline");
    network.ip("link add inner type veth peer name outer");
    network.ip("link set outer up");
    network.ip("link set inner up");
    network.ip("addr add 10.77.0.1/24 dev inner");
    assert_eq!(said(), "Online");

    // What is told of these does not fit into the queue of a socket that nobody reads from.
    network.watched.send(rustix::process::Signal::STOP);
    let addresses = (0..2_000).map(|number| (number / 250, number % 250));
    let commands: Vec<_> = addresses
        .map(|(third, fourth)| format!("addr add 10.80.{third}.{fourth}/32 dev inner"))
        .collect();
    network.ip_each(&commands);
    network.watched.send(rustix::process::Signal::CONT);
    assert_eq!(said(), "PathChanged");
    // The last of a table that comes in many parts.
    network.ip("addr del 10.80.7.249/32 dev inner");
    assert_eq!(said(), "PathChanged");
    network.ip("link del inner");
    assert_eq!(said(), "Offline");
}

/// What a client needs to start, with nobody to connect to.
fn setup(directory: &tempfile::TempDir) -> Setup {
    let key = ClientKey::open(&directory.path().join("key")).unwrap();
    Setup {
        key: Arc::new(key),
        paired: PairedHosts::in_directory(directory.path().to_owned()),
        cache: None,
        accounts: vec![],
        label: "signals".to_owned(),
        focus: None,
        keep_alive: false,
    }
}

#[tokio::test]
async fn a_client_is_told_for_as_long_as_the_guard_lives() {
    let directory = tempfile::tempdir().unwrap();
    let client = Client::start(setup(&directory)).await.unwrap();
    let mut changes = client.changes();
    let guard = attach(&client);
    let told = async {
        loop {
            let change = changes.recv().await.unwrap();
            if let Change::Hosts(registry::Change::Network(network)) = change {
                return network;
            }
        }
    };
    let network = tokio::time::timeout(PATIENCE, told).await.unwrap();
    assert!([Network::Online, Network::Offline].contains(&network));

    // What is attached keeps the client running; nothing else does any more.
    drop(client);
    assert!(!matches!(changes.try_recv(), Err(TryRecvError::Closed)));
    drop(guard);
    let ended = async { while !matches!(changes.recv().await, Err(RecvError::Closed)) {} };
    tokio::time::timeout(PATIENCE, ended).await.expect("nothing runs without the guard");
}
