//! What the tests of kept prompts share.

use std::{
    collections::BTreeMap,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use async_trait::async_trait;
use wakeful_lifecycle::{
    FreshSandbox, Policy,
    port::StoreError,
    testing::{MemoryWorkspaces, ScriptedDriver, a_fresh_sandbox, a_project},
};
use wakeful_wire::{
    EnvId, Phase, ProjectId, TemplateName, Timestamp, UserName,
    api::{Environment, KeepPrompt, KeptPrompt, PromptState},
    hosts::Hosts,
    rpc::ClientId,
    template::Template,
};

use super::Prompts;
use crate::{
    engine::{
        Engine, EngineConfig, EngineMetrics, LaunchSettings, LaunchVariables, Parts, Surroundings,
    },
    store::{Database, SqliteStore},
};

/// A client id.
pub(super) fn a_client(number: u32) -> ClientId {
    format!("0199f0a0-7b5c-7c3e-9d2f-{number:012x}").parse().unwrap()
}

/// A prompt to a new thread.
pub(super) fn a_request(client: ClientId, text: &str) -> KeepPrompt {
    KeepPrompt {
        client,
        text: text.to_owned(),
        thread: None,
        agent: None,
        project: None,
        title: None,
    }
}

/// A clock that a test sets.
pub(super) struct TestTime(AtomicU64);

impl TestTime {
    pub(super) fn advance(&self, duration: Duration) {
        self.0.fetch_add(wakeful_wire::time::millis(duration), Ordering::SeqCst);
    }
}

impl Surroundings for TestTime {
    fn now(&self) -> Timestamp {
        Timestamp(self.0.load(Ordering::SeqCst))
    }

    fn fresh_sandbox(&self) -> FreshSandbox {
        a_fresh_sandbox()
    }

    fn fresh_project(&self) -> ProjectId {
        a_project("nobody", Timestamp(0)).0.id
    }
}

struct NoVariables;

#[async_trait]
impl LaunchSettings for NoVariables {
    async fn launch(&self, _env: EnvId) -> Result<LaunchVariables, StoreError> {
        Ok(LaunchVariables { variables: BTreeMap::new(), basic_password: "pw".into() })
    }
}

/// A platform on a real database, with sandboxes that do what a test tells them.
pub(super) struct World {
    pub(super) engine: Engine,
    pub(super) prompts: Prompts,
    pub(super) driver: Arc<ScriptedDriver>,
    pub(super) time: Arc<TestTime>,
    pub(super) database: Database,
    workspaces: Arc<MemoryWorkspaces>,
    delivering: Option<tokio::task::JoinHandle<()>>,
    _dir: tempfile::TempDir,
}

impl World {
    /// Its engine runs; nothing is delivered before [`Self::deliver`].
    pub(super) async fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let database = Database::open(&dir.path().join("wakeful.db")).await.unwrap();
        let driver = ScriptedDriver::new();
        let workspaces = Arc::new(MemoryWorkspaces::new());
        let time = Arc::new(TestTime(AtomicU64::new(1_800_000_000_000)));
        let engine = build(&database, &driver, &workspaces, &time);
        let prompts = Prompts::new(database.clone(), engine.clone());
        let delivering = None;
        Self { engine, prompts, driver, time, database, workspaces, delivering, _dir: dir }
    }

    /// The platform's process is gone with everything in memory, and another one starts.
    pub(super) fn restart(&mut self) {
        if let Some(delivering) = self.delivering.take() {
            delivering.abort();
        }
        self.engine = build(&self.database, &self.driver, &self.workspaces, &self.time);
        self.prompts = Prompts::new(self.database.clone(), self.engine.clone());
    }

    /// Delivers from now on.
    pub(super) fn deliver(&mut self) {
        let prompts = self.prompts.clone();
        self.delivering = Some(tokio::spawn(async move { prompts.run().await }));
    }

    /// A new environment, asleep.
    pub(super) async fn env(&self) -> EnvId {
        let owner = UserName::new("alice").unwrap();
        let made = self.engine.create_project(&owner, "One", None, false).await.unwrap();
        made.environments[0].id
    }

    pub(super) async fn environment(&self, env: EnvId) -> Environment {
        self.engine.environment(env).await.unwrap().unwrap().value
    }

    pub(super) async fn keep(&self, env: EnvId, client: u32, text: &str) -> KeptPrompt {
        let environment = self.environment(env).await;
        self.prompts.keep(&environment, &a_request(a_client(client), text)).await.unwrap().1
    }

    pub(super) async fn find(&self, env: EnvId, client: u32) -> KeptPrompt {
        self.prompts.find(env, a_client(client), Duration::ZERO).await.unwrap()
    }

    /// Waits until a prompt does not wait any more.
    pub(super) async fn settled(&self, env: EnvId, client: u32) -> KeptPrompt {
        let budget = Duration::from_secs(20);
        let kept = self.prompts.find(env, a_client(client), budget).await.unwrap();
        assert_ne!(kept.state, PromptState::Waiting, "{kept:?}");
        kept
    }

    /// Looks until the environment is in this phase.
    pub(super) async fn phase(&self, env: EnvId, phase: Phase) {
        self.until(async || self.environment(env).await.phase == phase).await;
    }

    /// Looks until something is so.
    pub(super) async fn until(&self, mut is: impl AsyncFnMut() -> bool) {
        for _ in 0..4_000 {
            if is().await {
                return;
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        panic!("it never came");
    }
}

impl Drop for World {
    fn drop(&mut self) {
        if let Some(delivering) = self.delivering.take() {
            delivering.abort();
        }
    }
}

fn build(
    database: &Database,
    driver: &Arc<ScriptedDriver>,
    workspaces: &Arc<MemoryWorkspaces>,
    time: &Arc<TestTime>,
) -> Engine {
    let name = TemplateName::new("demo").unwrap();
    let template = serde_json::json!({ "surfaces": { "app": { "command": "true" } } });
    let template: Template = serde_json::from_value(template).unwrap();
    let config = EngineConfig {
        policy: Policy::default(),
        templates: BTreeMap::from([(name.clone(), Arc::new(template))]),
        default_template: name,
        hosts: Hosts::default(),
        retention: Duration::from_secs(7 * 24 * 3600),
    };
    let parts = Parts {
        store: Arc::new(SqliteStore::new(database.clone())),
        driver: Arc::clone(driver) as _,
        workspaces: Arc::clone(workspaces) as _,
        launch: Arc::new(NoVariables),
        surroundings: Arc::clone(time) as _,
        programs: Arc::new(|_| None),
    };
    let engine = Engine::new(config, parts, EngineMetrics::default());
    let running = engine.clone();
    tokio::spawn(async move { running.run().await });
    engine
}
