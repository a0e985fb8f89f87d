//! Looking at a sandbox.

use std::{sync::Arc, time::Duration};

use wakeful_lifecycle::SandboxRef;
use wakeful_wire::sandbox::{AskKind, EnvdStatus, Reply};

use super::{
    ASK_TIME, ProcessDriver,
    ask::{self, AskError},
    burial::wait_free,
    run_dir::RunDir,
};

/// How long an `envd` that takes no connections may still hold its lock: one that was killed closes
/// its files one after the other.
pub(super) const DYING_TIME: Duration = Duration::from_millis(300);

/// What a look found.
#[derive(Debug)]
pub(super) enum Look {
    /// No directory: absent.
    Nothing,
    /// A directory that no `envd` lives in.
    Dead,
    /// An `envd` lives but does not answer, or it cannot be told.
    Doubt,
    /// It answers, but not to this secret or not as this sandbox.
    Stranger,
    /// It answers as this sandbox.
    Answers(EnvdStatus),
}

impl ProcessDriver {
    /// Looks at a sandbox. `patience` is how long an `envd` that takes no connections may hold its
    /// lock before that is a doubt.
    pub(super) async fn look(
        &self,
        sandbox: &SandboxRef,
        dir: &RunDir,
        patience: Duration,
    ) -> Look {
        match dir.exists() {
            Ok(true) => {}
            Ok(false) => return Look::Nothing,
            Err(_) => return Look::Doubt,
        }
        match ask::once(&dir.socket(), &sandbox.secret, AskKind::Status, ASK_TIME).await {
            Ok(Reply::Status(status))
                if status.sandbox == sandbox.uid && status.env == sandbox.env =>
            {
                Look::Answers(status)
            }
            Ok(_) => Look::Stranger,
            Err(AskError::Late | AskError::Garbled) => Look::Doubt,
            Err(AskError::Gone(_)) if wait_free(dir, patience).await => Look::Dead,
            Err(AskError::Gone(_)) => Look::Doubt,
        }
    }

    /// The sandbox answers: remembers it and watches it, if nobody does yet.
    pub(super) fn adopt(&self, sandbox: &SandboxRef, dir: &RunDir, status: EnvdStatus) {
        let Some(number) = self.sights.answered(sandbox, status) else { return };
        let (sights, sandbox, socket) = (Arc::clone(&self.sights), sandbox.clone(), dir.socket());
        let uid = sandbox.uid;
        let watch = tokio::spawn(async move {
            let opened = ask::open(&socket, &sandbox.secret, AskKind::Watch, ASK_TIME).await;
            if let Ok(mut replies) = opened {
                while let Ok(Reply::Status(status)) = replies.next().await {
                    sights.changed(sandbox.uid, number, status);
                }
            }
            sights.lost(sandbox.uid, number);
        });
        self.sights.watched(uid, number, watch.abort_handle());
    }
}
