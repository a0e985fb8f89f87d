//! The race of suspend with turns that begin by commands at an environment's host, in thousands of
//! interleavings, with one gateway and with three over one store.
//!
//! A client's socket at the host holds nothing, so a command that comes over it while an idle
//! suspend is being decided is known to the sandbox alone. In every interleaving: a turn that began
//! is never cut; a command that was refused, because the sandbox was taken down, was not taken; one
//! that was taken was so once; and the environment comes to rest when all turns have ended.
//! `WAKEFUL_SIM_SEEDS` says how many seeds, `WAKEFUL_SIM_FIRST` which is the first.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::{sync::Arc, time::Duration};

use wakeful_lifecycle::Command;
use wakeful_sim::{gateway::SimGateway, world::World};
use wakeful_wire::{
    EnvId, Phase, SandboxUid, SurfaceName,
    gate::{GateEvent, LeaseKind},
    template::Template,
};

fn template() -> Template {
    let surface = serde_json::json!({ "command": "true" });
    serde_json::from_value(serde_json::json!({ "surfaces": { "app": surface } })).unwrap()
}

#[expect(clippy::disallowed_methods, reason = "how far to search is said from outside")]
fn setting(name: &str, default: u64) -> u64 {
    std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(default)
}

fn runs(world: &World, sandbox: SandboxUid) -> bool {
    world.driver.running().iter().any(|running| running.uid == sandbox)
}

/// Connects to the host, waking the environment if it must.
async fn connect(gateway: &Arc<SimGateway>, env: EnvId) -> SandboxUid {
    let key = World::key(env, SurfaceName::host(), true);
    let admitted =
        gateway.admit(&key, LeaseKind::Socket).await.expect("with intent it is admitted");
    let sandbox = admitted.sandbox;
    // The socket stays open, but one of this surface is no reason to stay awake.
    gateway.settle(admitted);
    sandbox
}

/// One client: has a socket at the host already, sends a command, and sends it again to the next
/// incarnation where it was refused. `forced`: somebody may ask for a suspend, which cuts turns.
async fn client(world: &World, env: EnvId, mut sandbox: SandboxUid, command: u64, forced: bool) {
    let draw = &world.seed;
    draw.give_way(80).await;
    while !world.driver.begin_turn(sandbox, command).await {
        assert!(!runs(world, sandbox), "refused by a sandbox that runs");
        assert!(!world.driver.commands(env).contains(&command), "refused, but taken");
        sandbox = connect(world.any_gateway(), env).await;
        draw.give_way(4).await;
    }
    let length = if draw.below(2) == 0 { 12 } else { 300 };
    for _ in 0..draw.below(length) {
        assert!(forced || runs(world, sandbox), "a turn was cut by an idle suspend");
        tokio::task::yield_now().await;
    }
    assert!(forced || runs(world, sandbox), "a turn was cut by an idle suspend");
    world.driver.end_turn(sandbox);
}

async fn one_interleaving(seed: u64, gateways: usize) {
    let world = World::new(seed, gateways, template());
    let env = world.environment().await;
    let draw = &world.seed;
    // In half of them leases are reported too; in the others the drain alone stands between.
    let reported = draw.below(2) == 0;
    if reported {
        let engine = world.engine.clone();
        tokio::spawn(async move { engine.run().await.unwrap() });
    }
    let sandbox = connect(world.any_gateway(), env).await;
    world.advance(world.engine.policy().idle_agent);

    let forced = draw.below(8) == 0;
    let clients = 1 + draw.below(4);
    let sweeper = async {
        for _ in 0..=draw.below(4) {
            draw.give_way(40).await;
            if draw.below(3) == 0 {
                // Past the pause after a suspend that was given up, or in the middle of a drain.
                world.advance(world.engine.policy().drain_deadline);
            }
            world.engine.nudge(env);
        }
    };
    let owner = async {
        if forced {
            draw.give_way(80).await;
            let command = if draw.below(2) == 0 { Command::Suspend } else { Command::Restart };
            world.engine.command(env, command).await.unwrap();
        }
    };
    let sending = |command| {
        let client = client(&world, env, sandbox, command, forced);
        async move {
            if command < clients {
                client.await;
            }
        }
    };
    let everything =
        async { tokio::join!(sweeper, owner, sending(0), sending(1), sending(2), sending(3)) };
    tokio::time::timeout(Duration::from_secs(600), everything)
        .await
        .expect("every command is taken within ten simulated minutes");
    let mut taken = world.driver.commands(env);
    taken.sort_unstable();
    assert_eq!(taken, (0..clients).collect::<Vec<_>>(), "each command is taken once");
    assert!(world.driver.running().len() <= 1, "two sandboxes of one environment");

    for _ in 0..20 {
        world.advance(Duration::from_secs(3_600));
        world.engine.nudge(env);
        tokio::time::sleep(Duration::from_secs(1)).await;
        let view = world.engine.environment(env).await.unwrap().unwrap().value;
        if view.phase == Phase::Suspended {
            assert!(world.driver.running().is_empty());
            world.engine.close(false, Duration::ZERO).await.unwrap();
            return;
        }
    }
    panic!("it does not come to rest");
}

fn in_simulated_time(run: impl Future<Output = ()>) {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()
        .unwrap();
    runtime.block_on(run);
}

fn search(gateways: usize, seeds: u64) {
    let first = setting("WAKEFUL_SIM_FIRST", 0);
    let seeds = setting("WAKEFUL_SIM_SEEDS", seeds);
    for seed in first..first + seeds {
        let run = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            in_simulated_time(one_interleaving(seed, gateways));
        }));
        assert!(run.is_ok(), "seed {seed} with {gateways} gateways; see above");
    }
}

#[test]
fn no_turn_is_cut_by_an_idle_suspend_with_one_gateway() {
    search(1, 5_000);
}

#[test]
fn no_turn_is_cut_by_an_idle_suspend_with_three_gateways() {
    search(3, 5_000);
}

#[test]
fn a_turn_holds_the_environment_awake_through_any_number_of_idle_timeouts() {
    in_simulated_time(async {
        let world = World::new(1, 1, template());
        let env = world.environment().await;
        let engine = world.engine.clone();
        tokio::spawn(async move { engine.run().await.unwrap() });
        let sandbox = connect(world.any_gateway(), env).await;
        assert!(world.driver.begin_turn(sandbox, 1).await);
        let mut events = world.engine.gate_events();
        tokio::time::sleep(Duration::from_secs(1)).await;
        for _ in 0..400 {
            // Both clocks go together, as they do outside of simulations.
            tokio::time::sleep(Duration::from_secs(30)).await;
            world.advance(Duration::from_secs(30));
        }
        let view = world.engine.environment(env).await.unwrap().unwrap().value;
        assert_eq!((view.phase, view.sandbox), (Phase::Ready, Some(sandbox)));
        let mut drains = 0;
        while let Ok(event) = events.try_recv() {
            drains += u32::from(matches!(event, GateEvent::Drain { .. }));
        }
        assert_eq!(drains, 0, "with its lease reported nobody even asks");

        world.driver.end_turn(sandbox);
        tokio::time::sleep(Duration::from_secs(1)).await;
        world.advance(world.engine.policy().idle_agent);
        tokio::time::sleep(Duration::from_secs(60)).await;
        let view = world.engine.environment(env).await.unwrap().unwrap().value;
        assert_eq!(view.phase, Phase::Suspended);
        world.engine.close(false, Duration::ZERO).await.unwrap();
    });
}
