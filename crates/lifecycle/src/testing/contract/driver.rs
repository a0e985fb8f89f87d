//! What every [`Driver`] must do.

use std::time::Duration;

use wakeful_wire::rpc::{Call, Empty, ThreadCreate};

use crate::{
    SandboxRef, Secret, Seen,
    port::{DeliverError, Driver, Launch},
    testing::{a_fresh_sandbox, a_thread, an_env},
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
    driver.drain(&sandbox, HOLD).await.expect_err("nothing is there to be drained");
    let call = a_call();
    expect_later(driver, &sandbox, &call).await;

    // Created, and created again: one sandbox.
    driver.create(&launch(sandbox.clone())).await.expect("create");
    driver.create(&launch(sandbox.clone())).await.expect("create adopts what is there");
    wait_ready(driver, &sandbox).await;
    assert!(driver.upstream(&sandbox, &surface).is_some());
    driver.start_surface(&sandbox, &surface).await.expect("start of what runs");

    // Another secret is another's sandbox: never adopted, never confirmed absent, never stopped.
    let stranger = SandboxRef { secret: Secret("not the secret".into()), ..sandbox.clone() };
    assert_eq!(driver.observe(&stranger).await, Seen::Unknown);
    driver.drain(&stranger, HOLD).await.expect_err("a stranger's is not drained");
    expect_later(driver, &stranger, &call).await;

    host_contract(driver, &sandbox, &call).await;

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
    driver.drain(&sandbox, HOLD).await.expect_err("it is gone");
    assert!(matches!(driver.observe(&other).await, Seen::Present(present) if present.ready));

    // A new incarnation of the same environment.
    let fresh = a_fresh_sandbox();
    let next = SandboxRef { env, uid: fresh.uid, secret: fresh.secret };
    driver.create(&launch(next.clone())).await.expect("create");
    wait_ready(driver, &next).await;
    assert_eq!(driver.observe(&sandbox).await, Seen::Absent, "the old one stays gone");
    let again = driver.deliver(&next, &call).await.expect("taken by the incarnation before");
    assert!(!again.changed, "what was taken outlives its sandbox");
    driver.stop(&next, grace).await.expect("stop");
    driver.stop(&other, grace).await.expect("stop");
    driver.forget(env).await.expect("forget");
    driver.forget(env).await.expect("forget is idempotent");
}

/// The environment server of a sandbox that is ready and runs no turn.
async fn host_contract(driver: &dyn Driver, sandbox: &SandboxRef, call: &Call) {
    // A call is taken once, however often it is delivered.
    let first = driver.deliver(sandbox, call).await.expect("a call is taken");
    assert!(first.changed);
    let again = driver.deliver(sandbox, call).await.expect("and answered when it comes again");
    assert_eq!((again.changed, again.thread), (false, first.thread));
    let other = Call::SessionRevokeOthers(Empty::default());
    let refused = driver.deliver(sandbox, &other).await.expect_err("no call that is ever kept");
    assert!(matches!(refused, DeliverError::Refused(_)), "{refused:?}");

    // While a drain holds, a call waits; it goes on when the drain ends.
    assert_eq!(driver.drain(sandbox, HOLD).await.expect("drain"), 0);
    let later = a_call();
    let waiting = driver.deliver(sandbox, &later);
    tokio::pin!(waiting);
    let early = tokio::time::timeout(Duration::from_millis(100), waiting.as_mut()).await;
    assert!(early.is_err(), "a call went past a drain: {early:?}");
    driver.drain(sandbox, Duration::ZERO).await.expect("the end of the drain");
    assert!(waiting.await.expect("it goes on").changed);

    // Without a word, a hold ends by itself.
    assert_eq!(driver.drain(sandbox, Duration::from_millis(50)).await.expect("drain"), 0);
    assert!(driver.deliver(sandbox, &a_call()).await.expect("it ends").changed);
}

/// Longer than anything here takes, and shorter than a delivery may.
const HOLD: Duration = Duration::from_secs(15);

async fn expect_later(driver: &dyn Driver, sandbox: &SandboxRef, call: &Call) {
    let error = driver.deliver(sandbox, call).await.expect_err("nobody is there to take it");
    assert!(matches!(error, DeliverError::Later(_)), "{error:?}");
}

/// A call that no other call of this equals: a new thread without a prompt.
fn a_call() -> Call {
    Call::ThreadCreate(ThreadCreate {
        thread: a_thread(),
        parent: None,
        project: String::new(),
        agent: None,
        title: None,
        prompt: None,
    })
}

/// Waits until the sandbox is ready, woken by hints: by a look, and by what is glanced at as well,
/// which may be a moment behind.
///
/// # Panics
/// When it is gone, or not ready within half a minute.
pub async fn wait_ready(driver: &dyn Driver, sandbox: &SandboxRef) {
    let is_ready = |seen| match seen {
        Seen::Present(present) => present.ready,
        Seen::Unknown => false,
        Seen::Absent => panic!("the sandbox is gone"),
    };
    let ready = async {
        loop {
            if is_ready(driver.observe(sandbox).await) && is_ready(driver.glance(sandbox)) {
                return;
            }
            // A hint may be lost, so the wait for it is bounded.
            let _hint = tokio::time::timeout(Duration::from_millis(200), driver.next_hint()).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(30), ready).await.expect("ready within half a minute");
}
