//! A host of its own, and a client that is paired with it by way of a proxy.

use std::{
    io::{BufRead as _, BufReader},
    path::PathBuf,
    process::{Child, ChildStderr, Command, Stdio},
    sync::Arc,
    time::Duration,
};

use tokio::time::timeout;
use uuid::Uuid;
use wakeful_client::{
    credentials::{ClientKey, PairedHost, PairedHosts},
    pairing::Pairing,
    runtime::{Client, Setup},
};
use wakeful_link::{
    Change, ConnectionPhase, ConnectionState, DataStatus, Instant, Link, boundary::CallFailure,
};
use wakeful_wire::{
    HostId,
    rpc::{Call, ClientId, Detail, Prompt, Taken, ThreadCreate, ThreadId, ThreadPrompt},
};

use crate::{network::Network, proxy::Proxy};

/// The program under test.
const BINARY: &str = env!("CARGO_BIN_EXE_wakeful");

/// The longest that a test waits for a value.
pub(crate) const PATIENCE: Duration = Duration::from_secs(90);

/// Every line that the commands of a thread printed, as the client holds it.
pub(crate) fn printed(detail: &Detail) -> Vec<String> {
    let page = serde_json::to_value(&detail.page).unwrap();
    let mut lines = Vec::new();
    for segment in page["segments"].as_array().unwrap() {
        for item in segment["items"].as_array().unwrap() {
            if item["body"]["type"] == "terminal" {
                let text = item["body"]["text"].as_str().unwrap();
                lines.extend(text.lines().map(|line| line.trim().to_owned()));
            }
        }
    }
    lines.retain(|line| !line.is_empty());
    lines
}

/// A host, started and ended by its test. Its workspace and its state outlive it.
pub(crate) struct Server {
    directory: tempfile::TempDir,
    address: String,
    running: Option<(Child, BufReader<ChildStderr>)>,
    code: String,
    /// What it is started by.
    program: Vec<String>,
}

impl Server {
    /// Starts a host on a free port.
    pub(crate) fn start() -> Self {
        Self::start_by(vec![BINARY.to_owned()], "127.0.0.1:0")
    }

    /// Starts a host in a network of its own.
    pub(crate) fn start_in(network: &Network) -> Self {
        let command = network.inside(BINARY);
        let program = [command.get_program()].into_iter().chain(command.get_args());
        let program = program.map(|word| word.to_str().unwrap().to_owned()).collect();
        Self::start_by(program, "0.0.0.0:0")
    }

    fn start_by(program: Vec<String>, address: &str) -> Self {
        let directory = tempfile::Builder::new().prefix("wk").tempdir_in("/tmp").unwrap();
        std::fs::create_dir(directory.path().join("w")).unwrap();
        let mut server = Self {
            directory,
            address: address.to_owned(),
            running: None,
            code: String::new(),
            program,
        };
        server.run();
        server
    }

    /// Starts it again where it was.
    pub(crate) fn run(&mut self) {
        let at = |name: &str| self.directory.path().join(name);
        let mut child = Command::new(&self.program[0])
            .args(&self.program[1..])
            .args(["envd", "--label", "Lab", "--listen", &self.address])
            .arg("--workspace")
            .arg(at("w"))
            .arg("--state")
            .arg(at("s"))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut errors = BufReader::new(child.stderr.take().unwrap());
        let (mut said, mut command) = (String::new(), None);
        while command.is_none() {
            let mut line = String::new();
            assert_ne!(errors.read_line(&mut line).unwrap(), 0, "it ended: {said}");
            said.push_str(&line);
            command = line.trim().strip_prefix("wakeful pair http://").map(str::to_owned);
        }
        let command = command.unwrap();
        let (address, code) = command.split_once(' ').unwrap();
        let (ip, _) = self.address.rsplit_once(':').unwrap();
        let (_, port) = address.rsplit_once(':').unwrap();
        (self.address, self.code) = (format!("{ip}:{port}"), code.to_owned());
        self.running = Some((child, errors));
    }

    /// What a client pairs with.
    pub(crate) fn code(&self) -> &str {
        &self.code
    }

    /// Where it listens.
    pub(crate) fn address(&self) -> String {
        self.address.clone()
    }

    /// Where it is reached by one of its addresses.
    pub(crate) fn at(&self, ip: std::net::Ipv4Addr) -> String {
        let (_, port) = self.address.rsplit_once(':').unwrap();
        format!("http://{ip}:{port}")
    }

    pub(crate) fn pid(&self) -> u32 {
        self.running.as_ref().unwrap().0.id()
    }

    /// Stops all of its threads, or lets them go on.
    pub(crate) fn signal(&self, signal: rustix::process::Signal) {
        let pid = rustix::process::Pid::from_raw(self.pid().cast_signed()).unwrap();
        rustix::process::kill_process(pid, signal).unwrap();
    }

    /// Ends it at once.
    pub(crate) fn kill(&mut self) {
        let (mut child, _) = self.running.take().unwrap();
        child.kill().unwrap();
        child.wait().unwrap();
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if let Some((mut child, _)) = self.running.take() {
            let _ended = child.kill();
            let _ended = child.wait();
        }
    }
}

/// This installation of a client, and what it is running.
pub(crate) struct Desk {
    directory: tempfile::TempDir,
    pub(crate) host: HostId,
}

impl Desk {
    /// Pairs with a host by way of an address.
    pub(crate) async fn pair(server: &Server, address: &str) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let desk = Self { directory, host: HostId::from_uuid(Uuid::nil()) };
        let (hosts, key) = (desk.hosts(), desk.key());
        let pairing = Pairing { hosts: &hosts, key: &key, label: "desk".to_owned() };
        let paired: PairedHost = pairing.enter(address, &server.code, None).await.unwrap();
        Self { host: paired.host, ..desk }
    }

    /// From now on its host is reached at another address.
    pub(crate) fn move_host(&self, address: &str) {
        move_host(&self.hosts(), address);
    }

    fn config(&self) -> PathBuf {
        self.directory.path().join("config")
    }

    fn hosts(&self) -> PairedHosts {
        PairedHosts::in_directory(self.config())
    }

    fn key(&self) -> Arc<ClientKey> {
        Arc::new(ClientKey::open(&self.config().join("host-key")).unwrap())
    }

    /// Starts the client.
    pub(crate) async fn start(&self) -> Running {
        let setup = Setup {
            key: self.key(),
            paired: self.hosts(),
            cache: Some(self.directory.path().join("cache")),
            accounts: Vec::new(),
            label: "desk".to_owned(),
            focus: None,
            keep_alive: true,
        };
        Running { client: Client::start(setup).await.unwrap(), host: self.host }
    }
}

/// The only host that a client is paired with is reached at another address from now on.
pub(crate) fn move_host(hosts: &PairedHosts, address: &str) {
    let [host] = <[PairedHost; 1]>::try_from(hosts.list().unwrap()).unwrap();
    hosts.keep(&host.name, address, host.host, host.refresh_token).unwrap();
}

/// A running client that looks at one host.
pub(crate) struct Running {
    pub(crate) client: Client,
    pub(crate) host: HostId,
}

impl Running {
    /// Waits until something is so.
    pub(crate) async fn until<T>(
        &self,
        what: &str,
        mut look: impl FnMut(&mut Link, Instant) -> Option<T>,
    ) -> T {
        let mut changes = self.client.changes();
        let waiting = async {
            loop {
                if let Some(value) = self.client.with(&mut look) {
                    return value;
                }
                // A view that missed something looks anew.
                let _change = changes.recv().await;
            }
        };
        match timeout(PATIENCE, waiting).await {
            Ok(value) => value,
            Err(_) => panic!("waited in vain: {what}; {:?}", self.connection()),
        }
    }

    pub(crate) fn connection(&self) -> Option<ConnectionState> {
        self.client.with(|link, _| link.connection(self.host).cloned())
    }

    pub(crate) fn generation(&self) -> u64 {
        self.connection().unwrap().generation
    }

    pub(crate) async fn phase(&self, phase: ConnectionPhase) -> ConnectionState {
        let host = self.host;
        self.until(&format!("{phase:?}"), |link, _| {
            link.connection(host).filter(|state| state.phase == phase).cloned()
        })
        .await
    }

    /// Waits until the list is what the host has.
    pub(crate) async fn live(&self) {
        let host = self.host;
        self.until("a live list", |link, _| {
            link.shell(host).filter(|shell| shell.status == DataStatus::Live).map(drop)
        })
        .await;
    }

    /// Makes a request and waits for its outcome.
    pub(crate) async fn call(&self, call: Call) -> Result<serde_json::Value, CallFailure> {
        let mut changes = self.client.changes();
        let host = self.host;
        let asked = self.client.with(|link, now| link.call(now, host, call)).unwrap();
        let answered = async {
            loop {
                if let Ok(Change::Answered { token, outcome, .. }) = changes.recv().await
                    && token == asked
                {
                    return outcome;
                }
            }
        };
        timeout(PATIENCE, answered).await.expect("an answer in time")
    }

    /// Makes a thread of the built-in shell.
    pub(crate) async fn thread(&self) -> ThreadId {
        let thread = ThreadId::from_uuid(Uuid::new_v4());
        let create = ThreadCreate {
            thread,
            parent: None,
            project: String::new(),
            agent: Some("shell".to_owned()),
            title: None,
            prompt: None,
        };
        let taken = self.call(Call::ThreadCreate(create)).await.unwrap();
        serde_json::from_value::<Taken>(taken).unwrap();
        thread
    }

    /// Runs a command in a thread.
    pub(crate) async fn run(&self, thread: ThreadId, text: &str) {
        let client = ClientId::from_uuid(Uuid::new_v4());
        let prompt = Prompt::text(client, text);
        self.call(Call::ThreadPrompt(ThreadPrompt { thread, prompt })).await.unwrap();
    }
}

/// A host, a proxy before it, and a client that goes through it.
pub(crate) struct World {
    pub(crate) server: Server,
    pub(crate) proxy: Proxy,
    pub(crate) desk: Desk,
    pub(crate) client: Running,
}

impl World {
    pub(crate) async fn new() -> Self {
        let server = Server::start();
        let proxy = Proxy::start(server.address()).await;
        let desk = Desk::pair(&server, &proxy.address()).await;
        let client = desk.start().await;
        client.live().await;
        Self { server, proxy, desk, client }
    }
}
