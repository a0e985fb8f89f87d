//! An engine with its ports and its gateways.

use std::{
    collections::BTreeMap,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use async_trait::async_trait;
use wakeful_control::engine::{
    Engine, EngineConfig, EngineMetrics, LaunchSettings, LaunchVariables, Parts, Surroundings,
};
use wakeful_gateway::gate::Key;
use wakeful_lifecycle::{
    FreshSandbox, Policy,
    port::StoreError,
    testing::{MemoryStore, MemoryWorkspaces, ScriptedDriver, a_fresh_sandbox, a_project},
};
use wakeful_wire::{
    EnvId, ProjectId, SurfaceName, TemplateName, Timestamp, UserName,
    gate::{Principal, SignedInBy},
    hosts::Hosts,
    template::Template,
};

use crate::{
    gateway::SimGateway,
    ports::{GappyDriver, GappyStore},
    seed::Seed,
};

/// When every simulation begins.
const T0: u64 = 1_800_000_000_000;

#[derive(Debug)]
struct SimTime(AtomicU64);

impl Surroundings for SimTime {
    fn now(&self) -> Timestamp {
        Timestamp(self.0.load(Ordering::SeqCst))
    }

    fn fresh_sandbox(&self) -> FreshSandbox {
        a_fresh_sandbox()
    }

    fn fresh_project(&self) -> ProjectId {
        a_project("anybody", Timestamp(0)).0.id
    }
}

struct NoVariables;

#[async_trait]
impl LaunchSettings for NoVariables {
    async fn launch(&self, _env: EnvId) -> Result<LaunchVariables, StoreError> {
        Ok(LaunchVariables { variables: BTreeMap::new(), basic_password: String::new() })
    }
}

/// An engine with its ports and its gateways.
#[derive(Debug)]
pub struct World {
    /// The engine.
    pub engine: Engine,
    /// What is stored.
    pub store: Arc<GappyStore>,
    /// What runs.
    pub driver: Arc<ScriptedDriver>,
    /// The gateways.
    pub gateways: Vec<Arc<SimGateway>>,
    /// The randomness of the run.
    pub seed: Seed,
    time: Arc<SimTime>,
}

impl World {
    /// A world with `gateways` gateways, and nothing in it.
    ///
    /// # Panics
    /// Never: the template is valid.
    #[must_use]
    pub fn new(seed: u64, gateways: usize, template: Template) -> Self {
        let seed = Seed::new(seed);
        let driver = ScriptedDriver::new();
        let time = Arc::new(SimTime(AtomicU64::new(T0)));
        let name = TemplateName::new("demo").expect("the name is valid");
        let config = EngineConfig {
            policy: Policy::default(),
            templates: BTreeMap::from([(name.clone(), Arc::new(template))]),
            default_template: name,
            hosts: Hosts::default(),
            retention: Duration::from_secs(7 * 24 * 3600),
        };
        let store = Arc::new(GappyStore { inner: MemoryStore::new(), seed: seed.clone() });
        let parts = Parts {
            store: Arc::clone(&store) as _,
            driver: Arc::new(GappyDriver { inner: Arc::clone(&driver), seed: seed.clone() }),
            workspaces: Arc::new(MemoryWorkspaces::new()),
            launch: Arc::new(NoVariables),
            surroundings: Arc::clone(&time) as _,
            programs: Arc::new(|_| None),
        };
        let engine = Engine::new(config, parts, EngineMetrics::default());
        let gateways = (0..gateways).map(|_| SimGateway::start(&engine, &seed)).collect();
        Self { engine, store, driver, gateways, seed, time }
    }

    /// Whose everything is.
    ///
    /// # Panics
    /// Never: the name is valid.
    #[must_use]
    pub fn alice() -> UserName {
        UserName::new("alice").expect("the name is valid")
    }

    /// An environment, asleep.
    ///
    /// # Panics
    /// When it cannot be made.
    pub async fn environment(&self) -> EnvId {
        let made = self.engine.create_project(&Self::alice(), "One", None, false).await;
        made.expect("a project is made").environments[0].id
    }

    /// What a browser of the owner asks for.
    #[must_use]
    pub fn key(env: EnvId, surface: SurfaceName, intent: bool) -> Key {
        let principal = Some(Principal { user: Self::alice(), by: SignedInBy::Cookie });
        Key { env, surface, principal, intent }
    }

    /// The control plane's time.
    #[must_use]
    pub fn now(&self) -> Timestamp {
        self.time.now()
    }

    /// Lets time pass for the control plane.
    pub fn advance(&self, duration: Duration) {
        let ms = wakeful_wire::time::millis(duration);
        self.time.0.fetch_add(ms, Ordering::SeqCst);
    }

    /// A gateway that the seed chooses.
    #[must_use]
    pub fn any_gateway(&self) -> &Arc<SimGateway> {
        let index = usize::try_from(self.seed.below(self.gateways.len() as u64)).unwrap_or(0);
        &self.gateways[index]
    }
}
