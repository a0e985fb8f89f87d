//! Bringing a sandbox up.

use std::{io, time::Duration};

use tokio::time::Instant;
use wakeful_lifecycle::{
    SandboxRef,
    port::{DriverError, Launch},
};
use wakeful_wire::sandbox::{EnvdStatus, SandboxSpec};

use super::{ProcessDriver, look::Look, run_dir::RunDir, spawn};

/// How long an `envd` may take to say hello.
const HELLO_TIME: Duration = Duration::from_secs(20);
/// The first and the longest pause between two tries for a hello.
const HELLO_PAUSE: (Duration, Duration) = (Duration::from_millis(1), Duration::from_millis(25));

impl ProcessDriver {
    fn spec(&self, launch: &Launch, dir: &RunDir) -> SandboxSpec {
        SandboxSpec {
            env: launch.sandbox.env,
            sandbox: launch.sandbox.uid,
            secret: launch.sandbox.secret.0.clone(),
            workspace: launch.workspace.clone(),
            run_dir: dir.path().to_owned(),
            env_vars: launch.variables.clone(),
            basic_password: launch.basic_password.clone(),
            surfaces: launch.template.surfaces.clone(),
            isolation: self.isolation.clone(),
            stop_grace_ms: wakeful_wire::time::millis(self.stop_grace),
            agents: launch.template.agents.clone(),
            host: launch.host.clone(),
        }
    }

    /// Starts an `envd` in a directory that does not exist yet, and waits for its hello.
    pub(super) async fn start(
        &self,
        launch: &Launch,
        dir: &RunDir,
    ) -> Result<EnvdStatus, DriverError> {
        if let Some(missing) = self.missing_program(&launch.template) {
            return Err(DriverError::permanent(missing));
        }
        dir.make().map_err(|error| {
            DriverError::passing(format!("its run directory cannot be made: {error}"))
        })?;
        let spec = self.spec(launch, dir);
        let mut child = self.starter.start(&spec, dir).await.map_err(|error| {
            let reason = format!("envd cannot be started: {error}");
            if error.kind() == io::ErrorKind::NotFound {
                DriverError::permanent(reason)
            } else {
                DriverError::passing(reason)
            }
        })?;
        tokio::select! {
            hello = self.hello(&launch.sandbox, dir) => match hello {
                Look::Answers(status) => Ok(status),
                Look::Stranger | Look::Nothing | Look::Dead | Look::Doubt => Err(no_hello()),
            },
            ended = child.wait() => {
                Err(DriverError::passing(spawn::why_ended(dir.path(), ended.ok())))
            }
        }
    }

    /// Looks until it answers, as itself or as a stranger, for at most [`HELLO_TIME`].
    pub(super) async fn hello(&self, sandbox: &SandboxRef, dir: &RunDir) -> Look {
        let until = Instant::now() + HELLO_TIME;
        let mut pause = HELLO_PAUSE.0;
        loop {
            let look = self.look(sandbox, dir, Duration::ZERO).await;
            if matches!(look, Look::Answers(_) | Look::Stranger) || Instant::now() >= until {
                return look;
            }
            tokio::time::sleep(pause).await;
            pause = (pause * 2).min(HELLO_PAUSE.1);
        }
    }
}

/// Nothing was heard for [`HELLO_TIME`].
pub(super) fn no_hello() -> DriverError {
    DriverError::passing(format!("envd said nothing for {} s", HELLO_TIME.as_secs()))
}
