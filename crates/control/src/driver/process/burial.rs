//! Taking a sandbox away for good.

use std::{io, time::Duration};

use tokio::time::Instant;
use wakeful_lifecycle::SandboxRef;
use wakeful_wire::SandboxUid;

use super::{
    ProcessDriver,
    cgroup::Cgroup,
    leftovers::Mark,
    off_the_runtime,
    run_dir::{LockState, RunDir},
};

/// The first and the longest pause between two looks at a lock that is to become free.
const STOP_PAUSE: (Duration, Duration) = (Duration::from_millis(2), Duration::from_millis(50));
/// How long killing may take.
const KILL_TIME: Duration = Duration::from_secs(10);

impl ProcessDriver {
    /// Buries a sandbox whose `envd` does not live. An error means that one does, or that something
    /// is left.
    pub(super) async fn bury(&self, sandbox: &SandboxRef, dir: &RunDir) -> io::Result<()> {
        let (logs, env, uid, run) = (self.logs.clone(), sandbox.env, sandbox.uid, dir.clone());
        off_the_runtime(move || {
            match run.lock()? {
                LockState::Held => {
                    return Err(io::Error::new(io::ErrorKind::ResourceBusy, "its envd lives"));
                }
                LockState::Free(held) => run.give_up(held)?,
                LockState::Missing => {}
            }
            kill_leftovers(uid, &run)?;
            if let Err(error) = logs.keep(env, &run) {
                tracing::warn!(%error, sandbox = %uid, "the logs of a sandbox are not kept");
            }
            run.remove()
        })
        .await?;
        self.sights.gone(sandbox);
        Ok(())
    }

    /// Kills everything of a sandbox, its `envd` too, and buries it.
    pub(super) async fn kill(&self, sandbox: &SandboxRef, dir: &RunDir) -> io::Result<()> {
        let (uid, run) = (sandbox.uid, dir.clone());
        off_the_runtime(move || kill_leftovers(uid, &run)).await?;
        self.bury(sandbox, dir).await
    }
}

/// Waits until no `envd` holds the lock, for at most `time`. Whether that came to be; an error is a
/// doubt, so it did not.
pub(super) async fn wait_free(dir: &RunDir, time: Duration) -> bool {
    let until = Instant::now() + time;
    let mut pause = STOP_PAUSE.0;
    loop {
        match dir.lock() {
            Ok(LockState::Free(_) | LockState::Missing) => return true,
            Ok(LockState::Held) | Err(_) if Instant::now() >= until => return false,
            Ok(LockState::Held) | Err(_) => {}
        }
        tokio::time::sleep(pause).await;
        pause = (pause * 2).min(STOP_PAUSE.1);
    }
}

/// Kills what the mark and the ancestry lead to, then what the control group holds beside it.
fn kill_leftovers(uid: SandboxUid, dir: &RunDir) -> io::Result<()> {
    Mark::new(uid, dir.path()).kill_all(KILL_TIME)?;
    match Cgroup::recorded(dir.path()) {
        Some(group) => group.kill(KILL_TIME),
        None => Ok(()),
    }
}
