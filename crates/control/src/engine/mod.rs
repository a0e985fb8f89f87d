//! The engine: loads, plans, commits, runs.
//!
//! Everything that happens to an environment goes through [`worker`]: one task per environment at
//! a time, which looks, plans, commits and runs the steps, until nothing is left to do. A hint, a
//! due time, a drain answer, a command and a restart of the platform only nudge it; it takes no
//! input but the record and what it sees, so a lost nudge only makes it later (the sweep finds what
//! is due).
//!
//! The gate's answers ([`gate`]) never wait for that task. They commit the wish (a touch, a wake)
//! and read the verdict from the record and the driver's last sight.

mod commands;
mod drain;
mod error;
mod events;
mod explain;
mod gate;
mod hold;
mod metrics;
mod projects;
mod prompts;
mod reap;
mod sweep;
mod turns;
mod view;
mod worker;

#[cfg(test)]
mod tests;

use std::{
    collections::{BTreeMap, HashMap},
    sync::Arc,
    time::Duration,
};

use async_trait::async_trait;
use parking_lot::Mutex;
use tokio::sync::{Notify, broadcast, watch};
use wakeful_lifecycle::{
    FreshSandbox, Policy, Secret, StartFault,
    port::{Driver, Store, StoreError, Workspaces},
};
use wakeful_wire::{
    EnvId, HolderId, SandboxUid, SurfaceName, TemplateName, Timestamp, gate::GateEvent,
    hosts::Hosts, sandbox::SurfaceState, template::Template,
};

pub use error::EngineError;
pub use events::EnvironmentEvent;
pub use hold::Hold;
pub use metrics::{EngineMetrics, SuspendLabels};
pub use projects::Owned;

/// How many events a slow listener may lag behind before it must start afresh.
const EVENT_BACKLOG: usize = 4_096;

/// What the engine goes by, resolved once.
#[derive(Debug, Clone)]
pub struct EngineConfig {
    /// The numbers of every plan.
    pub policy: Policy,
    /// The templates.
    pub templates: BTreeMap<TemplateName, Arc<Template>>,
    /// What a project runs when nobody says.
    pub default_template: TemplateName,
    /// Names and addresses of the public side.
    pub hosts: Hosts,
    /// How long a deleted project's workspace is kept.
    pub retention: Duration,
}

/// Time and randomness, passed in.
pub trait Surroundings: Send + Sync + 'static {
    /// The time.
    fn now(&self) -> Timestamp;
    /// A uid and a secret for a new sandbox.
    fn fresh_sandbox(&self) -> FreshSandbox;
    /// An id for a new project.
    fn fresh_project(&self) -> wakeful_wire::ProjectId;
}

/// The real surroundings: the platform's clock and the operating system's randomness.
#[derive(Debug)]
pub struct RealSurroundings {
    clock: crate::clock::PlatformClock,
}

impl RealSurroundings {
    /// With this clock.
    #[must_use]
    pub const fn new(clock: crate::clock::PlatformClock) -> Self {
        Self { clock }
    }
}

impl Surroundings for RealSurroundings {
    fn now(&self) -> Timestamp {
        self.clock.now()
    }

    fn fresh_sandbox(&self) -> FreshSandbox {
        let secret = format!("{}{}", uuid::Uuid::new_v4().simple(), uuid::Uuid::new_v4().simple());
        FreshSandbox { uid: SandboxUid::from_uuid(uuid::Uuid::new_v4()), secret: Secret(secret) }
    }

    fn fresh_project(&self) -> wakeful_wire::ProjectId {
        wakeful_wire::ProjectId::from_uuid(uuid::Uuid::now_v7())
    }
}

/// What an environment's processes are given beside their template.
#[derive(Clone)]
pub struct LaunchVariables {
    /// The environment's own variables and secrets.
    pub variables: BTreeMap<String, String>,
    /// The password for surfaces with `auth = "basic"`.
    pub basic_password: String,
}

impl std::fmt::Debug for LaunchVariables {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("LaunchVariables").finish_non_exhaustive()
    }
}

/// Where an environment's variables and secrets are kept.
#[async_trait]
pub trait LaunchSettings: Send + Sync + 'static {
    /// What its processes are given.
    async fn launch(&self, env: EnvId) -> Result<LaunchVariables, StoreError>;
}

/// Says what a template needs that this machine lacks, with how to install it; `None` when it can
/// run.
pub type ProgramCheck = Arc<dyn Fn(&Template) -> Option<String> + Send + Sync>;

/// The parts that an engine is built over.
#[derive(Clone)]
pub struct Parts {
    /// Records, clocks, leases.
    pub store: Arc<dyn Store>,
    /// Sandboxes.
    pub driver: Arc<dyn Driver>,
    /// Files.
    pub workspaces: Arc<dyn Workspaces>,
    /// Variables and secrets.
    pub launch: Arc<dyn LaunchSettings>,
    /// Time and randomness.
    pub surroundings: Arc<dyn Surroundings>,
    /// What a template needs.
    pub programs: ProgramCheck,
}

impl std::fmt::Debug for Parts {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Parts").finish_non_exhaustive()
    }
}

/// The engine. Clones are the same engine.
#[derive(Clone)]
pub struct Engine {
    inner: Arc<Inner>,
}

impl std::fmt::Debug for Engine {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Engine").finish_non_exhaustive()
    }
}

pub(crate) struct Inner {
    config: EngineConfig,
    parts: Parts,
    metrics: EngineMetrics,
    gate_events: broadcast::Sender<GateEvent>,
    environment_events: broadcast::Sender<Arc<EnvironmentEvent>>,
    /// Environments whose task runs; true when it is to run once more.
    workers: Mutex<HashMap<EnvId, bool>>,
    /// Why the last create of a sandbox failed, until the plan has taken it in.
    faults: Mutex<HashMap<SandboxUid, StartFault>>,
    drains: Mutex<drain::Drains>,
    /// Which surfaces gateways were last told to be ready or given up, by environment.
    settled: Mutex<HashMap<EnvId, BTreeMap<SurfaceName, SurfaceState>>>,
    /// Who counts the leases of this process: uploads.
    holder: HolderId,
    holds: Mutex<hold::Holds>,
    turns: Mutex<turns::Turns>,
    /// Woken when something may have become due sooner than the sweep thinks.
    sweep: Notify,
    closing: watch::Sender<bool>,
}

impl Engine {
    /// An engine over these parts. Nothing happens before [`Engine::run`].
    #[must_use]
    pub fn new(config: EngineConfig, parts: Parts, metrics: EngineMetrics) -> Self {
        let inner = Inner {
            config,
            parts,
            metrics,
            gate_events: broadcast::channel(EVENT_BACKLOG).0,
            environment_events: broadcast::channel(EVENT_BACKLOG).0,
            workers: Mutex::default(),
            faults: Mutex::default(),
            drains: Mutex::default(),
            settled: Mutex::default(),
            holder: HolderId::from_uuid(uuid::Uuid::new_v4()),
            holds: Mutex::default(),
            turns: Mutex::default(),
            sweep: Notify::new(),
            closing: watch::channel(false).0,
        };
        Self { inner: Arc::new(inner) }
    }

    /// The time.
    #[must_use]
    pub fn now(&self) -> Timestamp {
        self.inner.parts.surroundings.now()
    }

    /// Names and addresses of the public side.
    #[must_use]
    pub fn hosts(&self) -> &Hosts {
        &self.inner.config.hosts
    }

    /// The numbers of every plan.
    #[must_use]
    pub fn policy(&self) -> &Policy {
        &self.inner.config.policy
    }

    /// What environments of this template run; `None` where the settings have it no more.
    pub(crate) fn template(&self, name: &TemplateName) -> Option<&Arc<Template>> {
        self.inner.config.templates.get(name)
    }

    /// Runs the engine's own tasks until [`Engine::close`]: adopts or completes whatever a former
    /// process left, then follows hints and due times.
    ///
    /// # Errors
    /// When the store cannot be read at the start.
    pub async fn run(&self) -> Result<(), EngineError> {
        let mut closing = self.inner.closing.subscribe();
        // Whatever was on its way when the platform ended goes on from the record.
        for env in self.inner.parts.store.environments().await? {
            self.nudge(env);
        }
        tokio::select! {
            () = self.follow_hints() => {}
            () = self.sweep() => {}
            () = self.reap_at_times() => {}
            () = self.report_holds() => {}
            () = self.report_turns() => {}
            _ = closing.wait_for(|closing| *closing) => {}
        }
        Ok(())
    }

    async fn follow_hints(&self) {
        loop {
            let env = self.inner.parts.driver.next_hint().await;
            self.nudge(env);
            // A surface may have changed without the record: whoever waits for it looks again.
            match self.inner.parts.store.load(env).await {
                Ok(Some(loaded)) => self.publish_hint(&loaded),
                Ok(None) => drop(self.inner.settled.lock().remove(&env)),
                Err(error) => {
                    tracing::warn!(%env, error = &error as &dyn std::error::Error, "a hint is late");
                }
            }
        }
    }

    /// Ends the engine's tasks. With `suspend`, first takes down every sandbox that runs, and
    /// waits for that at most `patience`; returns how many were still there then.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub async fn close(&self, suspend: bool, patience: Duration) -> Result<usize, EngineError> {
        let left = if suspend {
            let all = self.suspend_all();
            match tokio::time::timeout(patience, all).await {
                Ok(done) => {
                    done?;
                    0
                }
                Err(_) => self.running().await?,
            }
        } else {
            0
        };
        self.inner.closing.send_replace(true);
        Ok(left)
    }
}
