//! A client's process that is stopped for long, while its connection dies.

use std::{
    io::{BufRead as _, BufReader},
    path::Path,
    process::{Child, Command, Stdio},
    sync::mpsc::{Receiver, channel},
    time::{Duration, Instant},
};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use wakeful_client::credentials::PairedHosts;

use crate::{
    fixture::{PATIENCE, Server, move_host},
    network::{Far, Network},
};

/// Longer than the suspension from which on a client no longer trusts what it shows, by more than a
/// client can be mistaken in how long it was stopped.
const LONG: Duration = Duration::from_secs(37);

/// `wakeful threads --watch --json`, which lives until it is dropped.
struct Watching {
    child: Child,
    said: Receiver<Value>,
}

fn wakeful(home: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_wakeful"));
    command.env_clear().env("HOME", home).env("PATH", "/usr/bin:/bin").stdin(Stdio::null());
    command
}

impl Watching {
    fn start(home: &Path) -> Self {
        let mut command = wakeful(home);
        command.args(["--json", "threads", "--watch"]).stdout(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let (says, said) = channel();
        std::thread::spawn(move || {
            for line in lines.map_while(Result::ok) {
                if says.send(serde_json::from_str(&line).unwrap()).is_err() {
                    return;
                }
            }
        });
        Self { child, said }
    }

    /// Waits for a line of this type that is so.
    fn says(&self, kind: &str, so: impl Fn(&Value) -> bool) -> Value {
        let mut before = Vec::new();
        loop {
            let line = self.said.recv_timeout(PATIENCE);
            let line = line.unwrap_or_else(|_| panic!("no such {kind} after {before:#?}"));
            if line["type"] == kind && so(&line) {
                return line;
            }
            before.push(line);
        }
    }

    fn signal(&self, signal: Signal) {
        let pid = Pid::from_raw(self.child.id().cast_signed()).unwrap();
        kill_process(pid, signal).unwrap();
    }
}

impl Drop for Watching {
    fn drop(&mut self) {
        let _ended = self.child.kill();
        let _status = self.child.wait();
    }
}

#[tokio::test]
async fn a_program_that_was_stopped_for_long_checks_its_connection_by_the_short_deadline_wherever_it_leads()
 {
    let Some(network) = Network::new() else { return };
    let server = Server::start_in(&network);
    let home = tempfile::tempdir().unwrap();
    let paired = wakeful(home.path())
        .args(["--json", "pair", &server.at(network.host(Far::Lan)), server.code()])
        .output()
        .unwrap();
    assert!(paired.status.success(), "{}", String::from_utf8_lossy(&paired.stderr));
    let hosts = PairedHosts::in_directory(home.path().join(".config/wakeful"));
    move_host(&hosts, &server.at(network.host(Far::Anywhere)));
    let watching = Watching::start(home.path());
    watching.says("synchronized", |_| true);

    watching.signal(Signal::STOP);
    tokio::time::sleep(LONG).await;
    network.lose_everything();
    let begun = Instant::now();
    watching.signal(Signal::CONT);
    watching.says("connection", |line| line["connection"]["verifying"] == true);
    let lost = watching.says("connection", |line| line["connection"]["phase"] != "connected");
    let taken = begun.elapsed();
    // Any other check of so distant a host has fifteen seconds.
    assert!(taken >= Duration::from_millis(2_900), "{taken:?} {lost}");
    assert!(taken < Duration::from_secs(12), "{taken:?} {lost}");
    assert!(lost["connection"]["failure"].is_object(), "{lost}");

    network.lose_nothing();
    watching.says("synchronized", |_| true);
    drop((watching, server));
}
