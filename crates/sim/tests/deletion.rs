//! A deletion that its owner looks at meanwhile.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use wakeful_lifecycle::port::Store as _;
use wakeful_sim::world::World;
use wakeful_wire::{ProjectId, template::Template};

/// How many interleavings of the looks with the burial.
const SEEDS: u64 = 200;

fn template() -> Template {
    let surface = serde_json::json!({ "command": "true" });
    serde_json::from_value(serde_json::json!({ "surfaces": { "app": surface } })).unwrap()
}

async fn one_interleaving(seed: u64) {
    let world = World::new(seed, 1, template());
    let env = world.environment().await;
    let project: ProjectId = env.to_string().parse().unwrap();
    world.engine.delete_project(project).await.unwrap();
    loop {
        let buried = world.store.inner.project(project).await.unwrap().is_none();
        let deleted = world.engine.deleted(&World::alice()).await.unwrap();
        let listed: Vec<_> = deleted.iter().map(|deleted| deleted.id).collect();
        assert_eq!(listed, [project], "seed {seed}, buried before: {buried}");
        if buried {
            return;
        }
    }
}

#[tokio::test(start_paused = true)]
async fn what_is_deleted_is_listed_once_at_every_moment_of_its_burial() {
    for seed in 0..SEEDS {
        one_interleaving(seed).await;
    }
}
