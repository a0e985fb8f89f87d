//! What holds an environment awake, and for how long, in virtual time (cases C17, C19).

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::{sync::Arc, time::Duration};

use wakeful_lifecycle::testing::a_holder;
use wakeful_sim::{gateway::SimGateway, world::World};
use wakeful_wire::{
    ClockKind, EnvId, HolderId, Phase, SurfaceName,
    gate::{ActivityReport, GateState, LeaseKind},
    template::Template,
};

const MINUTE: Duration = Duration::from_secs(60);

fn template() -> Template {
    let surface = serde_json::json!({ "command": "true" });
    let text = serde_json::json!({ "surfaces": { "app": surface, "agent": surface } });
    serde_json::from_value(text).unwrap()
}

struct Bench {
    world: World,
    env: EnvId,
}

impl Bench {
    async fn awake() -> Self {
        let world = World::new(7, 1, template());
        let env = world.environment().await;
        let bench = Self { world, env };
        bench.visit(SurfaceName::agent()).await;
        bench
    }

    fn gateway(&self) -> &Arc<SimGateway> {
        &self.world.gateways[0]
    }

    async fn visit(&self, surface: SurfaceName) {
        let key = World::key(self.env, surface, true);
        let admitted = self.gateway().admit(&key, LeaseKind::Request).await;
        self.gateway().settle(admitted.expect("it is served"));
        self.gateway().report().await;
    }

    /// Lets time pass, a keep-alive interval at a time, as reports and sweeps come.
    async fn pass(&self, duration: Duration) {
        let mut left = duration;
        while !left.is_zero() {
            let step = left.min(MINUTE);
            self.world.advance(step);
            self.gateway().advance(step);
            self.gateway().report().await;
            self.settle().await;
            left -= step;
        }
    }

    /// Lets everything that is under way come to its end.
    async fn settle(&self) {
        self.world.engine.nudge(self.env);
        tokio::time::sleep(Duration::from_millis(10)).await;
    }

    async fn phase(&self) -> Phase {
        self.world.engine.environment(self.env).await.unwrap().unwrap().value.phase
    }

    async fn report(&self, holder: HolderId, kind: LeaseKind, count: u32, expires: Duration) {
        let report = ActivityReport {
            env: self.env,
            surface: SurfaceName::agent(),
            holder,
            kind,
            count,
            expires_ms: wakeful_wire::time::millis(expires),
            touch: false,
        };
        self.world.engine.activity(&report).await.unwrap();
    }
}

fn idle_agent() -> Duration {
    wakeful_lifecycle::Policy::default().idle_agent
}

fn idle_app() -> Duration {
    wakeful_lifecycle::Policy::default().idle_app
}

#[tokio::test(start_paused = true)]
async fn whatever_is_open_holds_and_the_idle_time_starts_when_it_ends() {
    for kind in [LeaseKind::Request, LeaseKind::Stream, LeaseKind::Socket, LeaseKind::Upload] {
        let bench = Bench::awake().await;
        let key = World::key(bench.env, SurfaceName::agent(), true);
        let open = bench.gateway().admit(&key, kind).await.unwrap();
        bench.pass(5 * idle_agent()).await;
        assert_eq!(bench.phase().await, Phase::Ready, "an open {kind:?} holds");
        let explain = bench.world.engine.explain(bench.env).await.unwrap();
        assert_eq!(explain.sleeps_in_ms, None, "{explain:?}");
        bench.gateway().settle(open);
        bench.pass(idle_agent() - MINUTE).await;
        assert_eq!(bench.phase().await, Phase::Ready, "the idle time starts at the end");
        bench.pass(3 * MINUTE).await;
        assert_eq!(bench.phase().await, Phase::Suspended, "after an open {kind:?}");
        assert_eq!(bench.world.driver.creates(), 1, "it never slept in between");
    }
}

#[tokio::test(start_paused = true)]
async fn app_and_agent_activity_are_kept_apart_and_either_keeps_it_awake() {
    let bench = Bench::awake().await;
    bench.pass(idle_agent() - MINUTE).await;
    bench.visit(SurfaceName::app()).await;
    bench.pass(idle_app() - MINUTE).await;
    assert_eq!(bench.phase().await, Phase::Ready, "the app clock holds it alone");
    bench.pass(3 * MINUTE).await;
    assert_eq!(bench.phase().await, Phase::Suspended, "and only as long as an app visit holds");
    bench.visit(SurfaceName::app()).await;
    let clocks = bench.world.engine.environment(bench.env).await.unwrap().unwrap().value.clocks;
    assert_eq!(clocks.app.expires_in_ms, wakeful_wire::time::millis(idle_app()));
}

#[tokio::test(start_paused = true)]
async fn a_running_turn_holds_with_no_client_until_it_ends_or_its_holder_falls_silent() {
    let bench = Bench::awake().await;
    let envd = a_holder();
    for _ in 0..120 {
        bench.report(envd, LeaseKind::Turn, 1, Duration::from_secs(150)).await;
        bench.pass(MINUTE).await;
    }
    assert_eq!(bench.phase().await, Phase::Ready, "two hours of work and not one request");
    bench.pass(3 * MINUTE).await;
    assert_eq!(bench.phase().await, Phase::Suspended, "a silent holder loses its lease");
}

#[tokio::test(start_paused = true)]
async fn a_gateway_that_ends_gives_its_leases_back_and_its_successor_holds_anew() {
    let bench = Bench::awake().await;
    let (old, new) = (a_holder(), a_holder());
    bench.world.engine.gateway_joined(old);
    bench.report(old, LeaseKind::Socket, 3, Duration::from_secs(3_600)).await;
    bench.pass(idle_agent()).await;
    assert_eq!(bench.phase().await, Phase::Ready);
    bench.report(new, LeaseKind::Socket, 1, Duration::from_secs(150)).await;
    bench.world.engine.gateway_left(old).await.unwrap();
    bench.settle().await;
    assert_eq!(bench.phase().await, Phase::Ready, "the reconnected socket holds");
    bench.pass(5 * MINUTE).await;
    assert_eq!(bench.phase().await, Phase::Suspended);
}

#[tokio::test(start_paused = true)]
async fn what_only_looks_neither_wakes_nor_keeps_awake() {
    let bench = Bench::awake().await;
    bench.pass(idle_agent() + 2 * MINUTE).await;
    assert_eq!(bench.phase().await, Phase::Suspended);
    let key = World::key(bench.env, SurfaceName::agent(), false);
    for _ in 0..100 {
        assert!(bench.gateway().admit(&key, LeaseKind::Request).await.is_none());
        bench.pass(MINUTE).await;
    }
    assert_eq!((bench.phase().await, bench.world.driver.creates()), (Phase::Suspended, 1));
}

#[tokio::test(start_paused = true)]
async fn an_upload_touches_the_agent_clock_and_wakes_nothing() {
    let bench = Bench::awake().await;
    bench.pass(idle_agent() - MINUTE).await;
    bench.world.engine.touch(bench.env, ClockKind::Agent).await.unwrap();
    bench.pass(idle_agent() - MINUTE).await;
    assert_eq!(bench.phase().await, Phase::Ready);
    bench.pass(3 * MINUTE).await;
    assert_eq!(bench.phase().await, Phase::Suspended);
    bench.world.engine.touch(bench.env, ClockKind::Agent).await.unwrap();
    bench.settle().await;
    assert_eq!((bench.phase().await, bench.world.driver.creates()), (Phase::Suspended, 1));
}

#[tokio::test(start_paused = true)]
async fn clocks_that_a_store_lost_are_rebuilt_and_suspend_nobody() {
    let bench = Bench::awake().await;
    bench.pass(10 * MINUTE).await;
    bench.world.store.inner.lose_clocks(bench.env);
    bench.settle().await;
    assert_eq!(bench.phase().await, Phase::Ready, "absence is not expiry");
    bench.pass(15 * MINUTE).await;
    assert_eq!(bench.phase().await, Phase::Ready);
    bench.pass(8 * MINUTE).await;
    assert_eq!(bench.phase().await, Phase::Suspended, "nor is it immortality");
}

#[tokio::test(start_paused = true)]
async fn a_gate_answer_of_ready_needs_both_the_record_and_the_surface() {
    let bench = Bench::awake().await;
    let key = World::key(bench.env, SurfaceName::agent(), true);
    bench.world.driver.set_ready(bench.env, false);
    bench.settle().await;
    let answer = bench.world.engine.ensure(&key.request()).await.unwrap();
    assert_eq!((answer.state, answer.phase), (GateState::SurfaceStarting, Phase::Ready));
    bench.world.driver.set_ready(bench.env, true);
    let answer = bench.world.engine.ensure(&key.request()).await.unwrap();
    assert_eq!(answer.state, GateState::Ready);
    assert_eq!(bench.world.driver.creates(), 1, "a flap replaces nothing");
}
