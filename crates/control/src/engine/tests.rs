//! The engine over a real database, a scripted driver and a clock that tests set.

use std::{
    collections::BTreeMap,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use async_trait::async_trait;
use parking_lot::Mutex;
use tokio::task::AbortHandle;
use wakeful_lifecycle::{
    Command, FreshSandbox, Intent, Policy, StartFault,
    port::{Store, StoreError},
    testing::{MemoryWorkspaces, ScriptedDriver, a_fresh_sandbox, a_holder, a_project, an_env},
};
use wakeful_wire::{
    EnvId, Phase, ProjectId, SurfaceName, TemplateName, Timestamp, UserName, api,
    gate::{
        ActivityReport, DrainAnswer, EnsureAnswer, EnsureRequest, FailureKind, FailureReport,
        GateEvent, GateState, LeaseKind, Principal, SignedInBy,
    },
    hosts::Hosts,
    template::Template,
};

use super::{
    Engine, EngineConfig, EngineError, EngineMetrics, LaunchSettings, LaunchVariables, Parts,
    Surroundings,
};
use crate::store::{Database, SqliteStore};

mod turns;

const T0: u64 = 1_800_000_000_000;

struct TestTime(AtomicU64);

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

struct World {
    engine: Engine,
    driver: Arc<ScriptedDriver>,
    workspaces: Arc<MemoryWorkspaces>,
    time: Arc<TestTime>,
    store: Arc<dyn Store>,
    running: Mutex<Option<AbortHandle>>,
    _dir: Option<tempfile::TempDir>,
}

fn template() -> Template {
    let surface = serde_json::json!({ "command": "true" });
    let lazy = serde_json::json!({ "command": "true", "auth": "basic" });
    let text = serde_json::json!({ "surfaces": { "app": surface, "agent": lazy } });
    serde_json::from_value(text).unwrap()
}

fn alice() -> UserName {
    UserName::new("alice").unwrap()
}

impl World {
    async fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let database = Database::open(&dir.path().join("wakeful.db")).await.unwrap();
        Self::over(Arc::new(SqliteStore::new(database)), Some(dir))
    }

    fn over(store: Arc<dyn Store>, dir: Option<tempfile::TempDir>) -> Self {
        let driver = ScriptedDriver::new();
        let workspaces = Arc::new(MemoryWorkspaces::new());
        let time = Arc::new(TestTime(AtomicU64::new(T0)));
        let engine = build(&store, &driver, &workspaces, &time);
        Self { engine, driver, workspaces, time, store, running: Mutex::default(), _dir: dir }
    }

    /// The platform's process is gone with everything in memory, and another one starts.
    fn restart(&mut self) {
        if let Some(running) = self.running.lock().take() {
            running.abort();
        }
        self.engine = build(&self.store, &self.driver, &self.workspaces, &self.time);
        self.run();
    }

    fn run(&self) {
        let engine = self.engine.clone();
        let running = tokio::spawn(async move { engine.run().await });
        *self.running.lock() = Some(running.abort_handle());
    }

    fn advance(&self, duration: Duration) {
        let ms = u64::try_from(duration.as_millis()).unwrap();
        self.time.0.fetch_add(ms, Ordering::SeqCst);
    }

    async fn project(&self) -> EnvId {
        let made = self.engine.create_project(&alice(), "One", None, false).await.unwrap();
        made.environments[0].id
    }

    async fn ensure(&self, env: EnvId, intent: bool) -> EnsureAnswer {
        let principal = Some(Principal { user: alice(), by: SignedInBy::Cookie });
        let request = EnsureRequest { env, surface: SurfaceName::app(), principal, intent };
        self.engine.ensure(&request).await.unwrap()
    }

    /// Looks until the environment is in this phase.
    async fn phase(&self, env: EnvId, wanted: Phase) -> api::Environment {
        let reached = self.engine.await_phase(env, |phase| phase == wanted);
        let loaded = tokio::time::timeout(Duration::from_secs(20), reached)
            .await
            .unwrap_or_else(|_| panic!("not {wanted} in time"))
            .unwrap();
        self.engine.view(&loaded)
    }

    async fn ready(&self) -> EnvId {
        let env = self.project().await;
        self.ensure(env, true).await;
        self.phase(env, Phase::Ready).await;
        env
    }
}

fn build(
    store: &Arc<dyn Store>,
    driver: &Arc<ScriptedDriver>,
    workspaces: &Arc<MemoryWorkspaces>,
    time: &Arc<TestTime>,
) -> Engine {
    let name = TemplateName::new("demo").unwrap();
    let config = EngineConfig {
        policy: Policy::default(),
        templates: BTreeMap::from([(name.clone(), Arc::new(template()))]),
        default_template: name,
        hosts: Hosts::default(),
        retention: Duration::from_secs(7 * 24 * 3600),
    };
    let parts = Parts {
        store: Arc::clone(store),
        driver: Arc::clone(driver) as _,
        workspaces: Arc::clone(workspaces) as _,
        launch: Arc::new(NoVariables),
        surroundings: Arc::clone(time) as _,
        programs: Arc::new(|_| None),
    };
    Engine::new(config, parts, EngineMetrics::default())
}

#[tokio::test]
async fn a_visit_wakes_and_is_then_ready_and_many_are_one_start() {
    let world = World::new().await;
    let env = world.project().await;
    assert_eq!(world.ensure(env, false).await.state, GateState::Asleep, "no intent, no wake");
    world.driver.hold_creates(true);
    for _ in 0..50 {
        assert_eq!(world.ensure(env, true).await.state, GateState::Starting);
    }
    world.driver.hold_creates(false);
    world.phase(env, Phase::Ready).await;
    let answer = world.ensure(env, true).await;
    assert_eq!(answer.state, GateState::Ready);
    assert!(answer.sandbox.is_some() && answer.upstream.is_some());
    assert_eq!(world.driver.creates(), 1);
}

#[tokio::test]
async fn what_belongs_to_another_or_does_not_exist_is_not_there() {
    let world = World::new().await;
    let env = world.project().await;
    let principal = Some(Principal { user: UserName::new("bob").unwrap(), by: SignedInBy::Token });
    let request = EnsureRequest { env, surface: SurfaceName::app(), principal, intent: true };
    assert_eq!(world.engine.ensure(&request).await.unwrap().state, GateState::NotFound);
    let unknown = EnsureRequest { env: an_env(), ..request.clone() };
    assert_eq!(world.engine.ensure(&unknown).await.unwrap().state, GateState::NotFound);
    let surface = EnsureRequest { surface: "nope".parse().unwrap(), principal: None, ..request };
    assert_ne!(world.engine.ensure(&surface).await.unwrap().state, GateState::Ready);
    assert_eq!(world.driver.creates(), 0, "none of it woke anything");
}

#[tokio::test]
async fn every_wakeup_is_named() {
    let world = World::new().await;
    let env = world.ready().await;
    let woken = |view: api::Environment| view.woken.unwrap().by;
    let view = world.engine.environment(env).await.unwrap().unwrap().value;
    assert_eq!(woken(view), "a visit of app by alice (cookie)");
    let view = world.engine.command(env, Command::Restart).await.unwrap();
    assert!(woken(view).contains("restart"));
    world.phase(env, Phase::Ready).await;
    world.advance(Duration::from_secs(61));
    world.driver.kill(env);
    world.engine.nudge(env);
    let named = async {
        loop {
            let view = world.engine.environment(env).await.unwrap().unwrap().value;
            if woken(view).contains("processes ended") {
                return;
            }
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(Duration::from_secs(20), named).await.unwrap();
}

#[tokio::test]
async fn a_deleted_environment_has_no_route_and_gateways_hear_of_it() {
    let world = World::new().await;
    let env = world.ready().await;
    assert!(world.engine.route(env).await.unwrap().is_some());
    world.driver.hold_stops(true);
    let mut events = world.engine.gate_events();
    world.engine.delete_project(env.to_string().parse().unwrap()).await.unwrap();
    assert!(world.engine.route(env).await.unwrap().is_none());
    let heard =
        async { while events.recv().await.unwrap() != (GateEvent::RouteChanged { env }) {} };
    tokio::time::timeout(Duration::from_secs(20), heard).await.unwrap();
}

#[tokio::test]
async fn it_sleeps_when_both_clocks_ran_out_and_wakes_again() {
    let world = World::new().await;
    world.run();
    let env = world.ready().await;
    world.advance(Duration::from_secs(29 * 60));
    world.engine.nudge(env);
    assert_eq!(world.ensure(env, false).await.state, GateState::Ready);
    world.advance(Duration::from_secs(60));
    world.engine.nudge(env);
    world.phase(env, Phase::Suspended).await;
    assert!(world.driver.running().is_empty());
    world.ensure(env, true).await;
    world.phase(env, Phase::Ready).await;
    assert_eq!(world.driver.creates(), 2);
}

#[tokio::test]
async fn an_open_socket_holds_and_a_silent_holder_loses_its_lease() {
    let world = World::new().await;
    let env = world.ready().await;
    let report = ActivityReport {
        env,
        surface: SurfaceName::app(),
        holder: a_holder(),
        kind: LeaseKind::Socket,
        count: 1,
        expires_ms: 3_600_000,
        touch: true,
    };
    world.engine.activity(&report).await.unwrap();
    world.advance(Duration::from_secs(31 * 60));
    world.engine.nudge(env);
    let explain = world.engine.explain(env).await.unwrap();
    assert_eq!(explain.sleeps_in_ms, None, "{explain:?}");
    assert_eq!(world.ensure(env, false).await.state, GateState::Ready);
    world.advance(Duration::from_secs(30 * 60));
    world.engine.nudge(env);
    world.phase(env, Phase::Suspended).await;
}

#[tokio::test]
async fn a_gateway_that_is_busy_averts_the_suspend_and_one_that_drained_allows_it() {
    let world = World::new().await;
    let env = world.ready().await;
    let holder = a_holder();
    world.engine.gateway_joined(holder);
    let mut events = world.engine.gate_events();
    world.advance(Duration::from_secs(30 * 60));
    world.engine.nudge(env);
    let decided = drain_event(&mut events).await;
    assert_eq!(world.ensure(env, false).await.state, GateState::Asleep, "nothing is admitted");
    world.engine.drained(&DrainAnswer { holder, env, generation: decided, drained: false });
    world.phase(env, Phase::Ready).await;

    world.advance(Duration::from_secs(60));
    world.engine.nudge(env);
    let decided = drain_event(&mut events).await;
    world.engine.drained(&DrainAnswer { holder, env, generation: decided, drained: true });
    world.phase(env, Phase::Suspended).await;
    assert_eq!(world.driver.stops(), 1);
}

async fn drain_event(
    events: &mut tokio::sync::broadcast::Receiver<GateEvent>,
) -> wakeful_wire::Generation {
    let found = async {
        loop {
            if let GateEvent::Drain { generation, .. } = events.recv().await.unwrap() {
                return generation;
            }
        }
    };
    tokio::time::timeout(Duration::from_secs(20), found).await.unwrap()
}

#[tokio::test]
async fn a_visit_during_the_drain_keeps_the_sandbox() {
    let world = World::new().await;
    let env = world.ready().await;
    world.engine.gateway_joined(a_holder());
    let mut events = world.engine.gate_events();
    world.advance(Duration::from_secs(30 * 60));
    world.engine.nudge(env);
    drain_event(&mut events).await;
    assert_eq!(world.ensure(env, true).await.state, GateState::Ready);
    assert_eq!((world.driver.creates(), world.driver.stops()), (1, 0));
}

#[tokio::test]
async fn a_failure_report_restarts_what_is_gone_and_leaves_alone_what_lives() {
    let world = World::new().await;
    let env = world.ready().await;
    let sandbox = world.ensure(env, true).await.sandbox.unwrap();
    let report =
        FailureReport { env, surface: SurfaceName::app(), sandbox, kind: FailureKind::Connect };
    assert!(!world.engine.failure(&report).await.unwrap().restart, "alive: 502");
    world.driver.blind(true);
    assert!(!world.engine.failure(&report).await.unwrap().restart, "in doubt: nothing changes");
    world.driver.blind(false);
    // It has been ready for long, so that its end is no failed start.
    world.advance(Duration::from_secs(61));
    world.driver.kill(env);
    assert!(world.engine.failure(&report).await.unwrap().restart, "gone: 503");
    world.phase(env, Phase::Ready).await;
    assert!(world.engine.failure(&report).await.unwrap().restart, "replaced already");
    assert_eq!(world.driver.creates(), 2);
    let unknown = FailureReport { env: an_env(), ..report };
    assert!(!world.engine.failure(&unknown).await.unwrap().restart);
}

#[tokio::test]
async fn a_restart_of_the_platform_adopts_what_runs_and_its_clocks_go_on() {
    let mut world = World::new().await;
    let env = world.ready().await;
    let sandbox = world.ensure(env, true).await.sandbox;
    world.advance(Duration::from_secs(20 * 60));
    for _ in 0..5 {
        world.restart();
        world.engine.nudge(env);
        assert_eq!(world.ensure(env, false).await.sandbox, sandbox, "the same incarnation");
    }
    let left = world.phase(env, Phase::Ready).await.clocks.agent.expires_in_ms;
    assert_eq!(left, 10 * 60 * 1_000, "restarts do not extend life");
    world.advance(Duration::from_secs(3_600));
    world.restart();
    world.phase(env, Phase::Suspended).await;
    assert_eq!((world.driver.creates(), world.driver.stops()), (1, 1), "suspended once");
}

#[tokio::test]
async fn a_start_that_a_crash_cut_is_completed() {
    let mut world = World::new().await;
    let env = world.project().await;
    world.driver.hold_creates(true);
    world.ensure(env, true).await;
    while world.driver.creates() == 0 {
        tokio::task::yield_now().await;
    }
    let uid = world.engine.load(env).await.unwrap().record.sandbox.unwrap().uid;
    world.restart();
    world.driver.hold_creates(false);
    world.phase(env, Phase::Ready).await;
    let running = world.driver.running();
    assert_eq!(running.iter().map(|s| s.uid).collect::<Vec<_>>(), [uid], "one, the same");
}

#[tokio::test]
async fn a_suspend_that_a_crash_cut_is_completed() {
    let mut world = World::new().await;
    let env = world.ready().await;
    world.driver.hold_stops(true);
    world.engine.command(env, Command::Suspend).await.unwrap();
    world.phase(env, Phase::Suspending).await;
    world.restart();
    world.driver.hold_stops(false);
    world.phase(env, Phase::Suspended).await;
    assert!(world.driver.running().is_empty());
}

#[tokio::test]
async fn a_drain_that_a_crash_cut_is_asked_for_anew() {
    let mut world = World::new().await;
    let env = world.ready().await;
    // A gateway that never answers, and ends with its process.
    world.engine.gateway_joined(a_holder());
    world.engine.command(env, Command::Suspend).await.unwrap();
    world.phase(env, Phase::Suspending).await;
    world.restart();
    world.phase(env, Phase::Suspended).await;
    assert!(world.driver.running().is_empty());
}

#[tokio::test]
async fn a_deletion_while_starting_is_final_and_leaves_nothing() {
    let world = World::new().await;
    let env = world.project().await;
    let project: ProjectId = env.to_string().parse().unwrap();
    world.driver.hold_creates(true);
    world.ensure(env, true).await;
    while world.driver.creates() == 0 {
        tokio::task::yield_now().await;
    }
    let (one, two) =
        tokio::join!(world.engine.delete_project(project), world.engine.delete_project(project));
    one.unwrap();
    two.unwrap();
    assert_eq!(world.ensure(env, true).await.state, GateState::Gone, "waiters hear at once");
    assert!(world.engine.projects(&alice()).await.unwrap().is_empty());
    assert_eq!(world.engine.deleted(&alice()).await.unwrap().len(), 1);
    world.driver.hold_creates(false);
    let buried = async {
        while world.engine.load(env).await.is_ok() {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(Duration::from_secs(20), buried).await.unwrap();
    assert!(world.driver.running().is_empty(), "the late sandbox is taken down");
    assert_eq!(world.ensure(env, true).await.state, GateState::NotFound);

    world.engine.restore_project(project).await.unwrap();
    let back = world.phase(env, Phase::Suspended).await;
    assert_eq!(back.sandbox, None);
    assert!(matches!(
        world.engine.restore_project(a_project("x", Timestamp(0)).0.id).await,
        Err(EngineError::NotFound)
    ));
}

#[tokio::test]
async fn the_reaper_removes_after_seven_days_and_never_what_is_named() {
    let world = World::new().await;
    let (kept, gone) = (world.project().await, world.project().await);
    let (old_orphan, young_orphan) = (an_env(), an_env());
    let days = |days: u64| Duration::from_secs(days * 24 * 3600);
    world.workspaces.age(kept, days(400));
    world.workspaces.age(old_orphan, days(8));
    world.workspaces.age(young_orphan, days(6));
    let project: ProjectId = gone.to_string().parse().unwrap();
    world.engine.delete_project(project).await.unwrap();
    let buried = async {
        while world.engine.load(gone).await.is_ok() {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(Duration::from_secs(20), buried).await.unwrap();
    world.workspaces.age(gone, days(400));
    world.advance(days(7) - Duration::from_secs(3_600));
    assert_eq!(world.engine.reap().await.unwrap(), [old_orphan]);
    assert_eq!(world.engine.deleted(&alice()).await.unwrap().len(), 1);
    world.advance(Duration::from_secs(3_600));
    // Whether or not the reaper has come to it: it may be removing the files just now.
    assert!(world.engine.restore_project(project).await.is_err(), "too late");
    assert!(world.engine.deleted(&alice()).await.unwrap().is_empty());
    assert_eq!(world.engine.reap().await.unwrap(), [gone]);
    assert!(world.engine.restore_project(project).await.is_err(), "too late");
}

#[tokio::test]
async fn an_empty_database_removes_no_workspace() {
    let world = World::new().await;
    let orphan = an_env();
    world.workspaces.age(orphan, Duration::from_secs(400 * 24 * 3600));
    assert_eq!(world.engine.reap().await.unwrap(), []);
}

#[tokio::test]
async fn a_permanent_fault_is_told_and_a_person_clears_it() {
    let world = World::new().await;
    let env = world.project().await;
    world.driver.fail_next_create(StartFault { reason: "not installed".into(), permanent: true });
    world.ensure(env, true).await;
    let failed = world.phase(env, Phase::Failed).await;
    let failure = failed.failure.unwrap();
    assert!(failure.permanent && failure.reason.contains("not installed"));
    let answer = world.ensure(env, true).await;
    assert_eq!(answer.state, GateState::Failed);
    assert_eq!(answer.reason.as_deref(), Some("not installed"));
    world.engine.command(env, Command::WakeNow).await.unwrap();
    world.phase(env, Phase::Ready).await;
    assert_eq!(world.driver.creates(), 2);
}

#[tokio::test]
async fn a_wake_of_something_idle_is_not_undone_by_its_own_plan() {
    let world = World::new().await;
    let env = world.ready().await;
    world.advance(Duration::from_secs(40 * 60));
    world.engine.command(env, Command::WakeNow).await.unwrap();
    assert_eq!(world.ensure(env, false).await.state, GateState::Ready);
    assert_eq!(world.driver.stops(), 0);
}

#[tokio::test]
async fn a_clean_end_suspends_everything_and_waits_for_it() {
    let world = World::new().await;
    world.run();
    let (one, two) = (world.ready().await, world.ready().await);
    let left = world.engine.close(true, Duration::from_secs(20)).await.unwrap();
    assert_eq!(left, 0);
    for env in [one, two] {
        assert_eq!(world.engine.load(env).await.unwrap().record.intent, Intent::Suspended);
    }
    assert!(world.driver.running().is_empty());
}

#[tokio::test]
async fn an_upload_holds_while_it_lasts() {
    let world = World::new().await;
    world.run();
    let env = world.ready().await;
    let hold = world.engine.hold(env, SurfaceName::agent(), LeaseKind::Upload);
    let held = |wanted: bool| {
        let engine = world.engine.clone();
        let now = world.engine.now();
        let look = async move {
            while engine.load(env).await.unwrap().clocks.held(now).next().is_some() != wanted {
                tokio::task::yield_now().await;
            }
        };
        tokio::time::timeout(Duration::from_secs(20), look)
    };
    held(true).await.unwrap();
    drop(hold);
    held(false).await.unwrap();
}
