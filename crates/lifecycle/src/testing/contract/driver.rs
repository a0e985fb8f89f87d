//! What every [`Driver`] must do.

use std::time::Duration;

use crate::{
    SandboxRef, Secret, Seen,
    port::{Driver, Launch},
    testing::{a_fresh_sandbox, an_env},
};

/// Runs the whole suite. `launch` makes a launch for a sandbox, with a workspace that exists and a
/// template whose surfaces come up by themselves; `surface` is one of them.
///
/// # Panics
/// When the contract is broken.
pub async fn driver_contract<F>(driver: &dyn Driver, launch: F, surface: &str)
where
    F: Fn(SandboxRef) -> Launch,
{
    let grace = Duration::from_secs(5);
    let env = an_env();
    let fresh = a_fresh_sandbox();
    let sandbox = SandboxRef { env, uid: fresh.uid, secret: fresh.secret };
    let surface = surface.parse().expect("a surface's name");

    // Nothing is there: confirmed, and stopping nothing is fine.
    assert_eq!(driver.observe(&sandbox).await, Seen::Absent);
    driver.stop(&sandbox, grace).await.expect("stop of nothing");
    assert!(driver.upstream(&sandbox, &surface).is_none());

    // Created, and created again: one sandbox.
    driver.create(&launch(sandbox.clone())).await.expect("create");
    driver.create(&launch(sandbox.clone())).await.expect("create adopts what is there");
    wait_ready(driver, &sandbox).await;
    assert!(driver.upstream(&sandbox, &surface).is_some());
    driver.start_surface(&sandbox, &surface).await.expect("start of what runs");

    // Another secret is another's sandbox: never adopted, never confirmed absent, never stopped.
    let stranger = SandboxRef { secret: Secret("not the secret".into()), ..sandbox.clone() };
    assert_eq!(driver.observe(&stranger).await, Seen::Unknown);

    // Two sandboxes of two environments do not disturb one another.
    let fresh = a_fresh_sandbox();
    let other = SandboxRef { env: an_env(), uid: fresh.uid, secret: fresh.secret };
    driver.create(&launch(other.clone())).await.expect("create");
    wait_ready(driver, &other).await;

    // Stopped: absent, for good, and again.
    driver.stop(&sandbox, grace).await.expect("stop");
    assert_eq!(driver.observe(&sandbox).await, Seen::Absent);
    driver.stop(&sandbox, grace).await.expect("stop is idempotent");
    assert!(driver.upstream(&sandbox, &surface).is_none());
    assert!(matches!(driver.observe(&other).await, Seen::Present(present) if present.ready));

    // A new incarnation of the same environment.
    let fresh = a_fresh_sandbox();
    let next = SandboxRef { env, uid: fresh.uid, secret: fresh.secret };
    driver.create(&launch(next.clone())).await.expect("create");
    wait_ready(driver, &next).await;
    assert_eq!(driver.observe(&sandbox).await, Seen::Absent, "the old one stays gone");
    driver.stop(&next, grace).await.expect("stop");
    driver.stop(&other, grace).await.expect("stop");
    driver.forget(env).await.expect("forget");
    driver.forget(env).await.expect("forget is idempotent");
}

/// Waits until the sandbox is ready, woken by hints.
///
/// # Panics
/// When it is gone, or not ready within half a minute.
pub async fn wait_ready(driver: &dyn Driver, sandbox: &SandboxRef) {
    let ready = async {
        loop {
            match driver.observe(sandbox).await {
                Seen::Present(present) if present.ready => return,
                Seen::Present(_) | Seen::Unknown => {}
                Seen::Absent => panic!("the sandbox is gone"),
            }
            // A hint may be lost, so the wait for it is bounded.
            let _hint = tokio::time::timeout(Duration::from_millis(200), driver.next_hint()).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(30), ready).await.expect("ready within half a minute");
}
