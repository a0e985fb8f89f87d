//! The host of an environment: how it is reached, and how its use keeps the environment awake.

use wakeful_lifecycle::{
    port::{DeliverError, Driver, Launch},
    testing::{MemoryStore, a_thread, contract::driver::driver_contract},
};
use wakeful_wire::{
    Code, Problem,
    api::{AwakeBecause, LeaseView},
    rpc::{Call, ThreadCreate},
    sandbox::HostSpec,
};

use super::*;

const PATIENCE: Duration = Duration::from_secs(20);

fn world() -> World {
    World::over(Arc::new(MemoryStore::new()), None)
}

async fn eventually<T>(what: &str, mut found: impl AsyncFnMut() -> Option<T>) -> T {
    let found = async {
        loop {
            if let Some(value) = found().await {
                return value;
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(PATIENCE, found).await.unwrap_or_else(|_| panic!("in vain: {what}"))
}

impl World {
    async fn view(&self, env: EnvId) -> api::Environment {
        self.engine.environment(env).await.unwrap().unwrap().value
    }

    async fn turn_lease(&self, env: EnvId) -> Option<LeaseView> {
        let host = SurfaceName::host();
        let leases = self.view(env).await.leases;
        leases.into_iter().find(|lease| lease.kind == LeaseKind::Turn && lease.surface == host)
    }

    async fn await_turns(&self, env: EnvId, turns: u32) {
        eventually("the lease", async || {
            let count = self.turn_lease(env).await.map_or(0, |lease| lease.count);
            (count == turns).then_some(())
        })
        .await;
    }

    async fn ensure_host(&self, env: EnvId, who: Option<&str>, intent: bool) -> EnsureAnswer {
        let user = |name| UserName::new(name).unwrap();
        let principal = who.map(|who| Principal { user: user(who), by: SignedInBy::Token });
        let request = EnsureRequest { env, surface: SurfaceName::host(), principal, intent };
        self.engine.ensure(&request).await.unwrap()
    }

    async fn agent_clock_ms(&self, env: EnvId) -> u64 {
        self.view(env).await.clocks.agent.expires_in_ms
    }
}

#[tokio::test]
async fn the_host_is_reached_by_its_owner_alone_and_wakes_with_intent_only() {
    let world = world();
    let env = world.project().await;
    assert_eq!(world.ensure_host(env, Some("alice"), false).await.state, GateState::Asleep);
    for stranger in [Some("bob"), None] {
        let answer = world.ensure_host(env, stranger, true).await;
        assert_eq!(answer.state, GateState::NotFound, "{stranger:?}");
    }
    assert_eq!(world.driver.creates(), 0, "none of it woke anything");
    assert_eq!(world.ensure_host(env, Some("alice"), true).await.state, GateState::Starting);
    world.phase(env, Phase::Ready).await;
    let answer = world.ensure_host(env, Some("alice"), false).await;
    assert_eq!(answer.state, GateState::Ready);
    assert!(answer.upstream.is_some() && answer.sandbox.is_some());
    for stranger in [Some("bob"), None] {
        let answer = world.ensure_host(env, stranger, true).await;
        assert_eq!(answer.state, GateState::NotFound, "{stranger:?}");
    }
}

#[tokio::test]
async fn a_visit_of_the_host_touches_the_agent_clock_only_with_intent() {
    let world = world();
    let env = world.ready().await;
    world.advance(Duration::from_secs(600));
    let before = world.agent_clock_ms(env).await;
    world.ensure_host(env, Some("alice"), false).await;
    assert_eq!(world.agent_clock_ms(env).await, before);
    world.ensure_host(env, Some("alice"), true).await;
    assert_eq!(world.agent_clock_ms(env).await, before + 600_000);
}

#[tokio::test]
async fn a_host_that_does_not_serve_says_why_and_gateways_hear_of_it() {
    let world = world();
    world.run();
    let env = world.ready().await;
    let mut events = world.engine.gate_events();
    world.driver.set_host_fault(env, Some("its log cannot be read"));
    let changed = async {
        while !matches!(events.recv().await.unwrap(), GateEvent::Changed { env: of, .. } if of == env)
        {
        }
    };
    tokio::time::timeout(PATIENCE, changed).await.unwrap();
    let answer = world.ensure_host(env, Some("alice"), true).await;
    assert_eq!(answer.state, GateState::SurfaceFailed);
    assert_eq!(answer.reason.as_deref(), Some("its log cannot be read"));
    assert_eq!(world.ensure(env, false).await.state, GateState::Ready, "the surfaces run");
}

#[tokio::test]
async fn a_sandbox_is_told_its_name_and_the_numbers() {
    let world = world();
    let env = world.ready().await;
    let host = world.driver.launched(env).unwrap();
    assert_eq!(host.label, "One (dev)");
    assert_eq!(host.turn_limit_ms, 6 * 3_600_000);
    assert_eq!(host.activity_interval_ms, 60_000);
    assert_eq!(host.default_agent.as_deref(), Some("shell"));
}

#[tokio::test]
async fn a_turn_holds_the_environment_and_a_whole_idle_timeout_follows_its_end() {
    let world = world();
    world.run();
    let env = world.ready().await;
    let idle = world.engine.policy().idle_agent;
    world.driver.set_turns(env, 2);
    world.await_turns(env, 2).await;
    let sandbox = world.view(env).await.sandbox.unwrap();
    assert_eq!(world.turn_lease(env).await.unwrap().holder, sandbox.to_string());
    let explained = world.engine.explain(env).await.unwrap();
    let is_turn = |because: &AwakeBecause| {
        matches!(because, AwakeBecause::Lease { what: LeaseKind::Turn, count: 2, .. })
    };
    assert!(explained.awake_because.iter().any(is_turn), "{explained:?}");
    assert_eq!(explained.sleeps_in_ms, None);

    // As old as an interval: reported again, so that it never lapses.
    for _ in 0..40 {
        world.advance(Duration::from_secs(60));
        world.engine.nudge(env);
        let fresh = u64::try_from(idle.as_millis()).unwrap();
        eventually("the next report", async || {
            (world.agent_clock_ms(env).await == fresh).then_some(())
        })
        .await;
    }
    assert_eq!(world.view(env).await.phase, Phase::Ready);

    world.advance(Duration::from_secs(100));
    world.driver.set_turns(env, 0);
    world.await_turns(env, 0).await;
    let left = world.engine.explain(env).await.unwrap().sleeps_in_ms;
    assert_eq!(left, Some(u64::try_from(idle.as_millis()).unwrap()));
    world.advance(idle);
    world.engine.nudge(env);
    world.phase(env, Phase::Suspended).await;
}

#[tokio::test]
async fn use_of_the_host_touches_the_agent_clock_once_each_time() {
    let world = world();
    world.run();
    let env = world.ready().await;
    let fresh = u64::try_from(world.engine.policy().idle_agent.as_millis()).unwrap();
    for _ in 0..3 {
        world.advance(Duration::from_secs(90));
        assert_eq!(world.agent_clock_ms(env).await, fresh - 90_000);
        world.driver.use_host(env);
        eventually("the touch", async || (world.agent_clock_ms(env).await == fresh).then_some(()))
            .await;
    }
    world.advance(Duration::from_secs(90));
    world.engine.nudge(env);
    // Whatever the look finds is settled before this one is.
    world.driver.set_turns(env, 1);
    world.await_turns(env, 1).await;
    world.driver.set_turns(env, 0);
    world.await_turns(env, 0).await;
    assert!(world.turn_lease(env).await.is_none());
}

#[tokio::test]
async fn turns_are_found_by_a_platform_that_starts_again_and_so_is_their_end() {
    let mut world = world();
    let env = world.ready().await;
    // Nobody reports while the platform does not run.
    world.driver.set_turns(env, 1);
    world.restart();
    world.await_turns(env, 1).await;

    // One that ended while it was away: the clock runs whole from when that is found.
    world.engine.close(false, Duration::ZERO).await.unwrap();
    world.driver.set_turns(env, 0);
    world.advance(Duration::from_secs(149));
    world.restart();
    world.await_turns(env, 0).await;
    let fresh = u64::try_from(world.engine.policy().idle_agent.as_millis()).unwrap();
    assert_eq!(world.agent_clock_ms(env).await, fresh);
}

#[tokio::test]
async fn a_sandbox_that_is_gone_loses_its_lease_at_once() {
    let world = world();
    world.run();
    let env = world.ready().await;
    world.driver.set_turns(env, 1);
    world.await_turns(env, 1).await;
    let before = world.view(env).await.sandbox;
    world.driver.slow_starts(true);
    world.driver.kill(env);
    world.await_turns(env, 0).await;
    let view = world.view(env).await;
    assert_ne!(view.sandbox, before);
    assert_eq!(view.phase, Phase::Starting, "somebody needed it, so another one comes");
}

#[tokio::test]
async fn a_turn_averts_the_idle_suspend_that_no_lease_averts_yet() {
    let world = world();
    let env = world.ready().await;
    // Nobody reports: the sandbox alone knows of its turn.
    world.driver.set_turns(env, 1);
    world.advance(world.engine.policy().idle_agent);
    world.engine.nudge(env);
    let sandbox = world.view(env).await.sandbox.unwrap();
    eventually("the ask, and the end of its hold", async || {
        let asked = [(sandbox, Duration::from_secs(15)), (sandbox, Duration::ZERO)];
        (world.driver.drains() == asked).then_some(())
    })
    .await;
    world.phase(env, Phase::Ready).await;
    assert_eq!(world.driver.stops(), 0);

    // It is not asked again at once; then it says that nothing runs.
    world.driver.set_turns(env, 0);
    world.engine.nudge(env);
    world.advance(Duration::from_secs(10));
    world.engine.nudge(env);
    world.phase(env, Phase::Suspended).await;
    assert_eq!(world.driver.drains()[2..], [(sandbox, Duration::from_secs(15))]);
}

#[tokio::test]
async fn a_sandbox_that_does_not_answer_is_busy() {
    let world = world();
    let env = world.ready().await;
    world.driver.deaf_to_drains(true);
    world.advance(world.engine.policy().idle_agent);
    let mut events = world.engine.gate_events();
    world.engine.nudge(env);
    drain_event(&mut events).await;
    world.phase(env, Phase::Ready).await;
    assert_eq!(world.driver.stops(), 0);
    world.driver.deaf_to_drains(false);
    world.advance(Duration::from_secs(10));
    world.engine.nudge(env);
    world.phase(env, Phase::Suspended).await;
}

#[tokio::test]
async fn what_a_person_asks_for_does_not_ask_the_sandbox() {
    let world = world();
    let env = world.ready().await;
    world.driver.set_turns(env, 1);
    world.engine.command(env, Command::Suspend).await.unwrap();
    world.phase(env, Phase::Suspended).await;
    assert!(world.driver.drains().is_empty());
}

#[tokio::test]
async fn what_the_sandbox_holds_back_goes_on_when_a_visit_averts_the_suspend() {
    let world = world();
    let env = world.ready().await;
    let holder = a_holder();
    world.engine.gateway_joined(holder);
    world.advance(world.engine.policy().idle_agent);
    let mut events = world.engine.gate_events();
    world.engine.nudge(env);
    drain_event(&mut events).await;
    let sandbox = world.view(env).await.sandbox.unwrap();
    eventually("the hold", async || (!world.driver.drains().is_empty()).then_some(())).await;
    assert_eq!(world.ensure(env, true).await.state, GateState::Ready);
    let begun = tokio::time::timeout(Duration::from_secs(10), world.driver.begin_turn(sandbox, 1));
    assert!(begun.await.expect("sooner than the hold would end by itself"));
    assert_eq!(world.driver.stops(), 0);
}

#[tokio::test]
async fn the_scripted_driver_keeps_the_driver_contract() {
    let driver = ScriptedDriver::new();
    let launch = |sandbox| Launch {
        sandbox,
        workspace: "/".into(),
        template: template(),
        variables: BTreeMap::new(),
        basic_password: String::new(),
        host: HostSpec::default(),
    };
    driver_contract(&*driver, launch, "app").await;
}

#[tokio::test]
async fn a_scripted_host_refuses_what_it_is_told_to() {
    let world = world();
    let env = world.ready().await;
    let sandbox = world.driver.running().remove(0);
    let call = Call::ThreadCreate(ThreadCreate {
        thread: a_thread(),
        parent: None,
        project: String::new(),
        agent: None,
        title: None,
        prompt: None,
    });
    let refusal = DeliverError::Refused(Problem::new(Code::Invalid));
    world.driver.refuse_deliveries(Some(refusal.clone()));
    assert_eq!(world.driver.deliver(&sandbox, &call).await, Err(refusal));
    assert!(world.driver.delivered(env).is_empty());
    world.driver.refuse_deliveries(None);
    assert!(world.driver.deliver(&sandbox, &call).await.unwrap().changed);
    assert_eq!(world.driver.delivered(env), [call]);
}
