//! Hosts, and clients that are paired with them.

use std::{
    io::{BufRead as _, BufReader},
    path::{Path, PathBuf},
    process::{Child, ChildStderr, Command, Stdio},
    sync::Arc,
};

use wakeful_client::{
    credentials::{ClientKey, PairedHosts},
    pairing::Pairing,
    runtime::{Client, Setup},
};
use wakeful_envd::alone::ask::Local;
use wakeful_link::{ConnectionPhase, DataStatus};
use wakeful_wire::HostId;

/// A host that runs as a process of its own.
pub(crate) struct Server {
    directory: tempfile::TempDir,
    pub(crate) address: String,
    running: Option<(Child, BufReader<ChildStderr>)>,
}

impl Server {
    pub(crate) fn start() -> Self {
        let directory = tempfile::Builder::new().prefix("wk").tempdir_in("/tmp").unwrap();
        std::fs::create_dir(directory.path().join("w")).unwrap();
        let mut server = Self { directory, address: "127.0.0.1:0".to_owned(), running: None };
        server.run();
        server
    }

    fn at(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// Starts it where it was.
    pub(crate) fn run(&mut self) {
        let binary = std::env::var_os("WAKEFUL").unwrap_or_else(|| "target/release/wakeful".into());
        let mut child = Command::new(binary)
            .args(["envd", "--listen", &self.address, "--workspace"])
            .arg(self.at("w"))
            .arg("--state")
            .arg(self.at("s"))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .expect("build it: cargo build --release -p wakeful");
        let mut errors = BufReader::new(child.stderr.take().unwrap());
        loop {
            let mut line = String::new();
            assert_ne!(errors.read_line(&mut line).unwrap(), 0, "the host ended");
            if let Some(command) = line.trim().strip_prefix("wakeful pair http://") {
                command.split(' ').next().unwrap().clone_into(&mut self.address);
                break;
            }
        }
        self.running = Some((child, errors));
    }

    pub(crate) fn kill(&mut self) {
        let (mut child, _) = self.running.take().unwrap();
        child.kill().unwrap();
        child.wait().unwrap();
    }

    pub(crate) fn pid(&self) -> u32 {
        self.running.as_ref().unwrap().0.id()
    }

    /// Pairs a client by way of an address.
    pub(crate) async fn pair(&self, desk: &Desk, address: &str) -> HostId {
        let local = Local::of(&self.at("s"), &self.at("w")).unwrap();
        let offered = local.offer(None, None).await.unwrap();
        let (hosts, key) = (desk.hosts(), desk.key());
        let pairing = Pairing { hosts: &hosts, key: &key, label: "measured".to_owned() };
        pairing.enter(address, &offered.code, None).await.unwrap().host
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if self.running.is_some() {
            self.kill();
        }
    }
}

/// Where an installation keeps its key and its pairings.
#[derive(Debug, Clone)]
pub(crate) struct Desk(pub(crate) PathBuf);

impl Desk {
    pub(crate) fn new(directory: &Path) -> Self {
        Self(directory.to_owned())
    }

    fn hosts(&self) -> PairedHosts {
        PairedHosts::in_directory(self.0.clone())
    }

    fn key(&self) -> ClientKey {
        ClientKey::open(&self.0.join("host-key")).unwrap()
    }

    pub(crate) async fn start(&self, cache: Option<PathBuf>) -> Client {
        let setup = Setup {
            key: Arc::new(self.key()),
            paired: self.hosts(),
            cache,
            accounts: Vec::new(),
            label: "measured".to_owned(),
            focus: None,
            keep_alive: false,
        };
        Client::start(setup).await.unwrap()
    }
}

/// Whether a client has what the host has, over its session of this number.
pub(crate) fn is_live(client: &Client, host: HostId, generation: u64) -> bool {
    client.with(|link, _| {
        let live = link.shell(host).is_some_and(|shell| shell.status == DataStatus::Live);
        let state = link.connection(host);
        live && state.is_some_and(|state| {
            state.phase == ConnectionPhase::Connected && state.generation >= generation
        })
    })
}
