//! A control plane in memory: it says what a test has set, and counts what it was asked.

use std::{
    collections::{BTreeMap, HashMap},
    sync::Arc,
};

use async_trait::async_trait;
use parking_lot::Mutex;
use tokio::{
    sync::{broadcast, watch},
    time::Instant,
};
use uuid::Uuid;
use wakeful_gateway::control::{ControlPlane, SurfaceSession, Unavailable};
use wakeful_wire::{
    EnvId, Generation, Phase, SandboxUid, Slug, SurfaceName, UserName,
    gate::{
        ActivityReport, Credential, DrainAnswer, EnsureAnswer, EnsureRequest, FailureAnswer,
        FailureReport, GateEvent, GateState, Principal, Route, SignedInBy, Upstream,
    },
    template::Surface,
};

pub(crate) const ALICE: &str = "wk_alice0000000000000000000000000";
pub(crate) const BOB: &str = "wk_bob000000000000000000000000000";
/// Alice's session on the main host.
pub(crate) const ALICE_SESSION: &str = "alice-session";
/// Alice's cookie on any surface's host.
pub(crate) const ALICE_SURFACE: &str = "alice-surface";
pub(crate) const BOB_SURFACE: &str = "bob-surface";
/// A ticket that can be redeemed once, with [`NONCE_ANY`] or any nonce.
pub(crate) const TICKET: &str = "one-use-ticket";

pub(crate) fn env(n: u128) -> EnvId {
    EnvId::from_uuid(Uuid::from_u128(0x0199_f0a0_7b5c_7c3e_9d2f_0000_0000_0000 + n))
}

pub(crate) fn sandbox(n: u128) -> SandboxUid {
    SandboxUid::from_uuid(Uuid::from_u128(n))
}

pub(crate) fn user(name: &str) -> UserName {
    UserName::new(name).unwrap()
}

/// A surface with the defaults of a template, and what `toml`-like JSON adds.
pub(crate) fn surface(extra: serde_json::Value) -> Arc<Surface> {
    let mut json = serde_json::json!({ "command": "true" });
    json.as_object_mut().unwrap().extend(extra.as_object().unwrap().clone());
    Arc::new(serde_json::from_value(json).unwrap())
}

/// How an environment is.
pub(crate) struct Env {
    pub(crate) route: Route,
    pub(crate) state: GateState,
    pub(crate) phase: Phase,
    pub(crate) generation: Generation,
    pub(crate) sandbox: SandboxUid,
    pub(crate) upstreams: HashMap<SurfaceName, Upstream>,
    pub(crate) reason: Option<String>,
    /// What [`Env::state`] becomes when a request with intent comes.
    pub(crate) on_intent: Option<(GateState, Phase)>,
}

#[derive(Default)]
struct State {
    envs: HashMap<EnvId, Env>,
    restart: bool,
    down: bool,
    spent: bool,
    ensures: Vec<(Instant, EnsureRequest)>,
    failures: Vec<FailureReport>,
    activity: Vec<ActivityReport>,
    drained: Vec<DrainAnswer>,
    authenticated: usize,
}

pub(crate) struct Control {
    state: Mutex<State>,
    events: broadcast::Sender<GateEvent>,
    /// Whether questions of the gate are left open.
    holds: watch::Sender<bool>,
}

impl Control {
    pub(crate) fn new() -> Arc<Self> {
        Arc::new(Self {
            state: Mutex::default(),
            events: broadcast::channel(1024).0,
            holds: watch::Sender::new(false),
        })
    }

    /// Alice's environment, ready, with the surfaces that are named.
    pub(crate) fn ready(n: u128, upstream: &Upstream) -> Arc<Self> {
        let control = Self::new();
        control.add(n, "alice", GateState::Ready, upstream);
        control
    }

    /// Adds an environment whose every surface is at `upstream`.
    pub(crate) fn add(&self, n: u128, owner: &str, state: GateState, upstream: &Upstream) {
        let names = ["app", "agent", "db"];
        let surfaces: BTreeMap<_, _> = names
            .iter()
            .map(|name| (SurfaceName::new(name).unwrap(), surface(serde_json::json!({}))))
            .collect();
        let route = Route {
            env: env(n),
            owner: user(owner),
            slug: Slug::new("dev").unwrap(),
            title: "Demo".to_owned(),
            home: Some(SurfaceName::agent()),
            surfaces,
            idle_min_ms: 600_000,
        };
        let phase = match state {
            GateState::Ready => Phase::Ready,
            GateState::Starting | GateState::SurfaceStarting => Phase::Starting,
            GateState::Failed => Phase::Failed,
            GateState::Disabled => Phase::Disabled,
            GateState::Gone => Phase::Deleted,
            GateState::Asleep | GateState::NotFound => Phase::Suspended,
            GateState::SurfaceFailed => Phase::Ready,
        };
        let upstreams = names
            .iter()
            .map(|name| (SurfaceName::new(name).unwrap(), upstream.clone()))
            .chain([(SurfaceName::host(), upstream.clone())])
            .collect();
        self.state.lock().envs.insert(
            env(n),
            Env {
                route,
                state,
                phase,
                generation: Generation(1),
                sandbox: sandbox(n),
                upstreams,
                reason: None,
                on_intent: Some((GateState::Starting, Phase::Starting)),
            },
        );
    }

    /// Changes a surface's declaration.
    pub(crate) fn declare(&self, n: u128, name: &str, extra: serde_json::Value) {
        self.change(n, |env| {
            env.route.surfaces.insert(SurfaceName::new(name).unwrap(), surface(extra));
        });
        self.tell(GateEvent::RouteChanged { env: env(n) });
    }

    /// Changes an environment, quietly.
    pub(crate) fn change(&self, n: u128, change: impl FnOnce(&mut Env)) {
        change(self.state.lock().envs.get_mut(&env(n)).unwrap());
    }

    /// Changes its state, raises its generation and tells the gateway.
    pub(crate) fn become_state(&self, n: u128, state: GateState, phase: Phase) {
        let generation = {
            let mut all = self.state.lock();
            let changed = all.envs.get_mut(&env(n)).unwrap();
            changed.state = state;
            changed.phase = phase;
            changed.generation = changed.generation.next();
            changed.generation
        };
        self.tell(GateEvent::Changed { env: env(n), generation, phase });
    }

    pub(crate) fn become_ready(&self, n: u128) {
        self.become_state(n, GateState::Ready, Phase::Ready);
    }

    /// Deletes it: whoever asks from now on gets no generation.
    pub(crate) fn delete(&self, n: u128) {
        let generation = {
            let removed = self.state.lock().envs.remove(&env(n)).unwrap();
            removed.generation.next()
        };
        self.tell(GateEvent::Changed { env: env(n), generation, phase: Phase::Deleted });
        self.tell(GateEvent::RouteChanged { env: env(n) });
    }

    pub(crate) fn drain(&self, n: u128, forced: bool) {
        let generation = {
            let mut all = self.state.lock();
            let changed = all.envs.get_mut(&env(n)).unwrap();
            changed.phase = Phase::Suspending;
            changed.state = GateState::Asleep;
            changed.generation = changed.generation.next();
            changed.generation
        };
        self.tell(GateEvent::Drain { env: env(n), generation, forced });
    }

    pub(crate) fn tell(&self, event: GateEvent) {
        let _ = self.events.send(event);
    }

    /// What a failure report is answered with.
    pub(crate) fn answer_failures(&self, restart: bool) {
        self.state.lock().restart = restart;
    }

    /// Nothing can be asked, or all can be again.
    pub(crate) fn down(&self, down: bool) {
        self.state.lock().down = down;
    }

    /// Takes the gate's questions and answers none, or answers all again.
    pub(crate) fn hold_ensures(&self, hold: bool) {
        self.holds.send_replace(hold);
    }

    pub(crate) fn ensures(&self) -> Vec<(Instant, EnsureRequest)> {
        self.state.lock().ensures.clone()
    }

    pub(crate) fn ensures_of(&self, n: u128) -> usize {
        self.ensures().iter().filter(|(_, request)| request.env == env(n)).count()
    }

    pub(crate) fn failures(&self) -> Vec<FailureReport> {
        self.state.lock().failures.clone()
    }

    pub(crate) fn activity(&self) -> Vec<ActivityReport> {
        self.state.lock().activity.clone()
    }

    pub(crate) fn drained(&self) -> Vec<DrainAnswer> {
        self.state.lock().drained.clone()
    }

    pub(crate) fn authenticated(&self) -> usize {
        self.state.lock().authenticated
    }

    fn up(&self) -> Result<parking_lot::MutexGuard<'_, State>, Unavailable> {
        let state = self.state.lock();
        if state.down { Err(Unavailable("down".to_owned())) } else { Ok(state) }
    }
}

#[async_trait]
impl ControlPlane for Control {
    async fn authenticate(
        &self,
        credential: &Credential,
    ) -> Result<Option<Principal>, Unavailable> {
        self.up()?.authenticated += 1;
        let (name, by) = match credential {
            Credential::Token(token) => match token.as_str() {
                ALICE => ("alice", SignedInBy::Token),
                BOB => ("bob", SignedInBy::Token),
                _ => return Ok(None),
            },
            Credential::Session(session) => match session.as_str() {
                ALICE_SESSION => ("alice", SignedInBy::Cookie),
                _ => return Ok(None),
            },
            Credential::Surface { value, .. } => match value.as_str() {
                ALICE_SURFACE => ("alice", SignedInBy::Cookie),
                BOB_SURFACE => ("bob", SignedInBy::Cookie),
                _ => return Ok(None),
            },
        };
        Ok(Some(Principal { user: user(name), by }))
    }

    async fn route(&self, env: EnvId) -> Result<Option<Route>, Unavailable> {
        Ok(self.up()?.envs.get(&env).map(|env| env.route.clone()))
    }

    async fn home(&self, user: &UserName) -> Result<Option<(EnvId, SurfaceName)>, Unavailable> {
        let state = self.up()?;
        let mut owned: Vec<_> = state.envs.values().filter(|e| e.route.owner == *user).collect();
        owned.sort_by_key(|env| env.route.env);
        Ok(owned.first().map(|env| (env.route.env, SurfaceName::agent())))
    }

    async fn ensure(&self, request: EnsureRequest) -> Result<EnsureAnswer, Unavailable> {
        self.up()?.ensures.push((Instant::now(), request.clone()));
        let mut holds = self.holds.subscribe();
        // Fails only when this is dropped.
        drop(holds.wait_for(|holds| !holds).await);
        let mut state = self.up()?;
        let Some(env) = state.envs.get_mut(&request.env) else {
            return Ok(EnsureAnswer {
                state: GateState::NotFound,
                phase: Phase::Deleted,
                generation: Generation(0),
                sandbox: None,
                upstream: None,
                retry_after_ms: None,
                reason: None,
            });
        };
        if request.intent
            && env.state == GateState::Asleep
            && let Some((state, phase)) = env.on_intent
        {
            (env.state, env.phase) = (state, phase);
            env.generation = env.generation.next();
        }
        let ready = env.state == GateState::Ready;
        Ok(EnsureAnswer {
            state: env.state,
            phase: env.phase,
            generation: env.generation,
            sandbox: ready.then_some(env.sandbox),
            upstream: ready.then(|| env.upstreams[&request.surface].clone()),
            retry_after_ms: (!ready).then_some(1000),
            reason: env.reason.clone(),
        })
    }

    async fn failure(&self, report: FailureReport) -> Result<FailureAnswer, Unavailable> {
        let mut state = self.up()?;
        state.failures.push(report);
        Ok(FailureAnswer { restart: state.restart })
    }

    async fn activity(&self, report: ActivityReport) -> Result<(), Unavailable> {
        self.up()?.activity.push(report);
        Ok(())
    }

    async fn drained(&self, answer: DrainAnswer) -> Result<(), Unavailable> {
        self.up()?.drained.push(answer);
        Ok(())
    }

    fn events(&self) -> broadcast::Receiver<GateEvent> {
        self.events.subscribe()
    }

    async fn redeem(
        &self,
        ticket: &str,
        nonce: &str,
        _host: &str,
    ) -> Result<Option<SurfaceSession>, Unavailable> {
        let mut state = self.up()?;
        if ticket != TICKET || nonce.is_empty() || std::mem::replace(&mut state.spent, true) {
            return Ok(None);
        }
        Ok(Some(SurfaceSession { cookie: ALICE_SURFACE.to_owned(), max_age_s: 3600 }))
    }
}
