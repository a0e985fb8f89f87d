//! The race of suspend with requests, sockets and uploads (case C16), in tens of thousands of
//! interleavings, with one gateway and with three over one store.
//!
//! Each seed is one interleaving. In all of them: no request is ever cut by a suspend, every
//! request with intent is served, at most one sandbox runs at a time, and there is one start for
//! each wake. `WAKEFUL_SIM_SEEDS` says how many seeds, `WAKEFUL_SIM_FIRST` which is the first.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::{
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};

use wakeful_lifecycle::{
    Command, StopStage,
    port::{Store as _, Touch},
};
use wakeful_sim::{gateway::SimGateway, seed::Seed, world::World};
use wakeful_wire::{ClockKind, EnvId, Phase, SurfaceName, gate::LeaseKind, template::Template};

fn template() -> Template {
    let surface = serde_json::json!({ "command": "true" });
    let text = serde_json::json!({ "surfaces": { "app": surface, "agent": surface } });
    serde_json::from_value(text).unwrap()
}

#[expect(clippy::disallowed_methods, reason = "how far to search is said from outside")]
fn setting(name: &str, default: u64) -> u64 {
    std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(default)
}

/// Whether the sandbox that a request was admitted to runs.
fn runs(world: &World, sandbox: wakeful_wire::SandboxUid) -> bool {
    world.driver.running().iter().any(|running| running.uid == sandbox)
}

/// One request: admitted, held for a while, given back. Never may its sandbox vanish meanwhile.
async fn visit(
    world: &World,
    gateway: &Arc<SimGateway>,
    env: EnvId,
    seed: &Seed,
    intent: bool,
    kind: LeaseKind,
) -> bool {
    let surface = if seed.below(2) == 0 { SurfaceName::app() } else { SurfaceName::agent() };
    let key = World::key(env, surface, intent);
    let Some(admitted) = gateway.admit(&key, kind).await else { return false };
    let sandbox = admitted.sandbox;
    let length = if seed.below(2) == 0 { 12 } else { 200 };
    for _ in 0..seed.below(length) {
        assert!(runs(world, sandbox), "a request was cut by a suspend");
        tokio::task::yield_now().await;
    }
    assert!(runs(world, sandbox), "a request was cut by a suspend");
    gateway.settle(admitted);
    true
}

async fn one_interleaving(seed: u64, gateways: usize) {
    let world = World::new(seed, gateways, template());
    let env = world.environment().await;
    let draw = &world.seed;
    // Awake, known to every gateway, and known there also without intent: that is what a core may
    // keep and admit from.
    for gateway in &world.gateways {
        // Just before the reports are due, so that the answers still hold when they have been sent:
        // a request that is admitted from them is known to its gateway alone.
        gateway.advance(Duration::from_secs(59));
        for surface in [SurfaceName::app(), SurfaceName::agent()] {
            for intent in [true, false] {
                let key = World::key(env, surface.clone(), intent);
                let admitted = gateway.admit(&key, LeaseKind::Request).await;
                gateway.settle(admitted.expect("it is awake"));
            }
        }
        gateway.advance(Duration::from_secs(2));
        gateway.report().await;
    }
    let starts_before = world.driver.creates();
    assert_eq!(starts_before, 1);
    world.advance(world.engine.policy().idle_agent);

    let served = AtomicU32::new(0);
    let wanted = AtomicU32::new(0);
    let sweeper = async {
        for _ in 0..=draw.below(3) {
            draw.give_way(20).await;
            world.engine.nudge(env);
        }
    };
    let visitor = || async {
        let kind = [LeaseKind::Request, LeaseKind::Socket, LeaseKind::Stream]
            [usize::try_from(draw.below(3)).unwrap()];
        let intent = draw.below(4) > 0;
        draw.give_way(60).await;
        let gateway = world.any_gateway();
        let admitted = visit(&world, gateway, env, draw, intent, kind).await;
        if intent {
            wanted.fetch_add(1, Ordering::Relaxed);
            served.fetch_add(u32::from(admitted), Ordering::Relaxed);
        }
    };
    let upload = async {
        draw.give_way(60).await;
        let touch = Touch { clock: ClockKind::Agent, now: world.now() };
        let after = world.store.inner.touch(env, touch).await.unwrap().unwrap();
        // Before the point of no return it wins: this sandbox must live on.
        let sandbox = after.record.sandbox?;
        let past_return = sandbox.stop.is_some_and(|stop| stop.stage == StopStage::Stopping);
        (!past_return).then_some(sandbox.uid)
    };
    let owner = async {
        if draw.below(6) == 0 {
            draw.give_way(60).await;
            world.engine.command(env, Command::WakeNow).await.unwrap();
        }
    };
    let everything =
        async { tokio::join!(sweeper, visitor(), visitor(), visitor(), visitor(), upload, owner) };
    let (.., touched, ()) = tokio::time::timeout(Duration::from_secs(600), everything)
        .await
        .expect("everybody is served within ten simulated minutes");
    if let Some(sandbox) = touched {
        // Whatever was under way has come to its end by now.
        tokio::time::sleep(Duration::from_secs(1)).await;
        assert!(runs(&world, sandbox), "a suspend was decided before the touch and took effect");
    }
    assert_eq!(served.load(Ordering::Relaxed), wanted.load(Ordering::Relaxed));
    assert!(world.driver.running().len() <= 1, "two sandboxes of one environment");
    let starts = world.driver.creates() - starts_before;
    assert!(starts <= world.driver.stops(), "a start without a wake");

    // Faults and visits have stopped: it must come to rest, and then to sleep.
    for _ in 0..20 {
        for gateway in &world.gateways {
            gateway.advance(Duration::from_secs(61));
            gateway.report().await;
        }
        world.advance(Duration::from_secs(3_600));
        world.engine.nudge(env);
        tokio::time::sleep(Duration::from_secs(1)).await;
        let phase = world.engine.environment(env).await.unwrap().unwrap().value.phase;
        if phase == Phase::Suspended {
            assert!(world.driver.running().is_empty());
            return;
        }
    }
    panic!("it does not come to rest");
}

fn search(gateways: usize, seeds: u64) {
    let first = setting("WAKEFUL_SIM_FIRST", 0);
    let seeds = setting("WAKEFUL_SIM_SEEDS", seeds);
    for seed in first..first + seeds {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .start_paused(true)
            .build()
            .unwrap();
        let run = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            runtime.block_on(one_interleaving(seed, gateways));
        }));
        assert!(run.is_ok(), "seed {seed} with {gateways} gateways; see above");
    }
}

#[test]
fn no_request_is_cut_by_a_suspend_with_one_gateway() {
    search(1, 10_000);
}

#[test]
fn no_request_is_cut_by_a_suspend_with_three_gateways() {
    search(3, 10_000);
}
