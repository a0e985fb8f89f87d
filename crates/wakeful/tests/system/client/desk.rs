//! A person's machine: a client with a key, pairings and a cache of its own.

use std::{path::PathBuf, sync::Arc};

use tempfile::TempDir;
use tokio::sync::broadcast::error::RecvError;
use uuid::Uuid;
use wakeful_client::{
    cache::Cache,
    credentials::{ClientKey, PairedHosts},
    pairing::Pairing,
    runtime::{Client, Setup},
};
use wakeful_link::{
    Change, ConnectionPhase, ConnectionState, DataStatus, Instant, Link, registry::Account,
    route::Address, shell::CachedShell,
};
use wakeful_wire::{
    HostId, UserName,
    rpc::{Call, ClientId, Detail, Prompt, Taken, ThreadCreate, ThreadId, ThreadPrompt},
};

use crate::support::{Platform, User, until};

/// A machine on which clients run, one after the other or none.
pub(super) struct Desk {
    directory: TempDir,
    tokio: tokio::runtime::Runtime,
}

impl Desk {
    pub(super) fn new() -> Self {
        let mut tokio = tokio::runtime::Builder::new_multi_thread();
        let tokio = tokio.worker_threads(1).enable_all().build().unwrap();
        Self { directory: tempfile::tempdir().unwrap(), tokio }
    }

    fn config(&self) -> PathBuf {
        self.directory.path().join("config")
    }

    fn cache(&self) -> PathBuf {
        self.directory.path().join("cache")
    }

    fn key(&self) -> ClientKey {
        ClientKey::open(&self.config().join("host-key")).unwrap()
    }

    fn paired(&self) -> PairedHosts {
        PairedHosts::in_directory(self.config())
    }

    /// Pairs with a host of its own.
    pub(super) fn pair(&self, address: &str, code: &str) -> HostId {
        let (hosts, key) = (self.paired(), self.key());
        let pairing = Pairing { hosts: &hosts, key: &key, label: "desk".to_owned() };
        self.tokio.block_on(pairing.enter(address, code, None)).unwrap().host
    }

    /// Starts a client that is signed in.
    pub(super) fn start(&self, platform: &Platform, name: &str, user: &User) -> Running<'_> {
        let account = account(platform, name);
        self.start_as(vec![(account, user.token.clone())])
    }

    fn start_as(&self, accounts: Vec<(Account, String)>) -> Running<'_> {
        let setup = Setup {
            key: Arc::new(self.key()),
            paired: self.paired(),
            cache: Some(self.cache()),
            accounts,
            label: "desk".to_owned(),
            focus: None,
            keep_alive: true,
        };
        Running { desk: self, client: self.tokio.block_on(Client::start(setup)).unwrap() }
    }

    /// Whether the list of a host is kept, looked at beside a client that may run.
    pub(super) fn has_cached(&self, host: HostId) -> bool {
        self.tokio.block_on(async {
            let cache = Cache::open(&self.cache()).await.unwrap();
            let kept = cache.shell::<CachedShell>(host).await.unwrap().is_some();
            cache.close().await;
            kept
        })
    }
}

pub(super) fn address(platform: &Platform) -> Address {
    Address::new(&platform.origin()).unwrap()
}

fn account(platform: &Platform, name: &str) -> Account {
    Account { platform: address(platform), user: UserName::new(name).unwrap() }
}

/// A client that runs.
pub(super) struct Running<'a> {
    desk: &'a Desk,
    client: Client,
}

impl Running<'_> {
    pub(super) fn with<R>(&self, look: impl FnOnce(&mut Link, Instant) -> R) -> R {
        self.client.with(look)
    }

    pub(super) fn connection(&self, host: HostId) -> Option<ConnectionState> {
        self.with(|link, _| link.connection(host).cloned())
    }

    pub(super) fn is(&self, host: HostId, phase: ConnectionPhase) -> bool {
        self.connection(host).is_some_and(|state| state.phase == phase)
    }

    /// Waits until a connection is so.
    pub(super) fn phase(&self, host: HostId, phase: ConnectionPhase) -> ConnectionState {
        until(&format!("{phase:?}, now {:?}", self.connection(host)), || {
            self.connection(host).filter(|state| state.phase == phase)
        })
    }

    /// Waits until the list is what the host has.
    pub(super) fn live(&self, host: HostId) -> ConnectionState {
        until(&format!("a live list, now {:?}", self.connection(host)), || {
            self.with(|link, _| {
                let live = link.shell(host)?.status == DataStatus::Live;
                link.connection(host).filter(|_| live).cloned()
            })
        })
    }

    /// Makes a request and waits for its answer.
    pub(super) fn call(&self, host: HostId, call: Call) -> serde_json::Value {
        let mut changes = self.client.changes();
        let asked = self.with(|link, now| link.call(now, host, call)).unwrap();
        let answered = async {
            loop {
                match changes.recv().await {
                    Ok(Change::Answered { token, outcome, .. }) if token == asked => {
                        return outcome.unwrap();
                    }
                    Ok(_) => {}
                    Err(RecvError::Lagged(_)) => panic!("the answer may have been missed"),
                    Err(RecvError::Closed) => panic!("the client has ended"),
                }
            }
        };
        self.desk.tokio.block_on(answered)
    }

    /// Makes a thread of the built-in shell, and looks at it.
    pub(super) fn thread(&self, host: HostId) -> ThreadId {
        let thread = ThreadId::from_uuid(Uuid::new_v4());
        let create = ThreadCreate {
            thread,
            parent: None,
            project: String::new(),
            agent: Some("shell".to_owned()),
            title: None,
            prompt: None,
        };
        let taken = self.call(host, Call::ThreadCreate(create));
        serde_json::from_value::<Taken>(taken).unwrap();
        self.with(|link, now| link.mount(now, host, thread)).unwrap();
        until("its row", || self.with(|link, _| link.row(host, thread).map(drop)));
        thread
    }

    /// Runs a command in a thread.
    pub(super) fn run(&self, host: HostId, thread: ThreadId, text: &str) {
        let prompt = Prompt::text(ClientId::from_uuid(Uuid::new_v4()), text);
        self.call(host, Call::ThreadPrompt(ThreadPrompt { thread, prompt }));
    }

    /// What is held of a thread, and how current that is.
    pub(super) fn detail(
        &self,
        host: HostId,
        thread: ThreadId,
    ) -> Option<(Arc<Detail>, DataStatus)> {
        self.with(|link, _| {
            let state = link.thread(host, thread)?;
            Some((Arc::clone(state.detail()?), state.status))
        })
    }

    /// What the commands of a thread printed, as this client holds it.
    pub(super) fn lines(&self, host: HostId, thread: ThreadId) -> Vec<String> {
        let Some((detail, _)) = self.detail(host, thread) else { return Vec::new() };
        let page = serde_json::to_value(&detail.page).unwrap();
        let segments = page["segments"].as_array().unwrap().iter();
        let items = segments.flat_map(|segment| segment["items"].as_array().unwrap());
        let texts = items.filter(|item| item["body"]["type"] == "terminal");
        let texts = texts.map(|item| item["body"]["text"].as_str().unwrap());
        let lines = texts.flat_map(str::lines).map(|line| line.trim().to_owned());
        lines.filter(|line| !line.is_empty()).collect()
    }

    pub(super) fn close(self) {
        self.desk.tokio.block_on(self.client.close());
    }
}
