//! A crowd at a sleeping door (case C23): one start for all, one reason for all, and room again.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::{sync::Arc, time::Duration};

use wakeful_lifecycle::{Command, StartFault};
use wakeful_sim::world::World;
use wakeful_wire::{
    EnvId, Phase, SurfaceName,
    gate::{GateState, LeaseKind},
    template::Template,
};

fn template() -> Template {
    let surface = serde_json::json!({ "command": "true" });
    serde_json::from_value(serde_json::json!({ "surfaces": { "app": surface } })).unwrap()
}

async fn await_phase(world: &World, env: EnvId, wanted: Phase) {
    for _ in 0..10_000 {
        let phase = world.engine.environment(env).await.unwrap().unwrap().value.phase;
        if phase == wanted {
            return;
        }
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    panic!("never {wanted}");
}

#[tokio::test(start_paused = true)]
async fn two_thousand_requests_over_three_gateways_are_one_start_and_leavers_change_nothing() {
    let world = Arc::new(World::new(11, 3, template()));
    let env = world.environment().await;
    world.driver.hold_creates(true);
    let mut waiting = Vec::new();
    for number in 0..2_000_usize {
        let world = Arc::clone(&world);
        waiting.push(tokio::spawn(async move {
            let key = World::key(env, SurfaceName::app(), true);
            let gateway = &world.gateways[number % 3];
            let admitted = gateway.admit(&key, LeaseKind::Request).await.expect("it is served");
            gateway.settle(admitted);
        }));
    }
    tokio::time::sleep(Duration::from_secs(10)).await;
    // Half of them leave, among them whoever asked first.
    for task in waiting.drain(..1_000) {
        task.abort();
    }
    tokio::time::sleep(Duration::from_secs(10)).await;
    world.driver.hold_creates(false);
    for task in waiting {
        task.await.unwrap();
    }
    assert_eq!(world.driver.creates(), 1);
    assert_eq!(world.gateways.iter().map(|gateway| gateway.in_flight(env)).sum::<u32>(), 0);
}

#[tokio::test(start_paused = true)]
async fn two_explicit_starts_at_once_join() {
    let world = World::new(12, 1, template());
    let env = world.environment().await;
    let (one, two) = tokio::join!(
        world.engine.command(env, Command::WakeNow),
        world.engine.command(env, Command::WakeNow)
    );
    one.unwrap();
    two.unwrap();
    await_phase(&world, env, Phase::Ready).await;
    assert_eq!(world.driver.creates(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_wake_that_fails_tells_everybody_one_reason_and_the_crowd_starts_nothing_more() {
    let world = World::new(13, 3, template());
    let env = world.environment().await;
    let reason = "no such program".to_owned();
    world.driver.fail_next_create(StartFault { reason: reason.clone(), permanent: true });
    let key = World::key(env, SurfaceName::app(), true);
    world.engine.ensure(&key.request()).await.unwrap();
    await_phase(&world, env, Phase::Failed).await;
    for _ in 0..2_000 {
        let answer = world.engine.ensure(&key.request()).await.unwrap();
        assert_eq!((answer.state, answer.reason.as_ref()), (GateState::Failed, Some(&reason)));
    }
    assert_eq!(world.driver.creates(), 1);
    world.engine.command(env, Command::WakeNow).await.unwrap();
    await_phase(&world, env, Phase::Ready).await;
    assert_eq!(world.driver.creates(), 2, "a person tries again");
}

#[tokio::test(start_paused = true)]
async fn many_environments_that_wake_at_once_are_one_start_each() {
    let world = World::new(14, 1, template());
    let mut all = Vec::new();
    for _ in 0..100 {
        all.push(world.environment().await);
    }
    for env in &all {
        let key = World::key(*env, SurfaceName::app(), true);
        world.engine.ensure(&key.request()).await.unwrap();
    }
    for env in &all {
        await_phase(&world, *env, Phase::Ready).await;
    }
    assert_eq!(world.driver.creates(), 100);
    assert_eq!(world.driver.running().len(), 100);
}
