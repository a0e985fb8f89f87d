//! What kept prompts ask of the engine.

use wakeful_lifecycle::{Command, SandboxRef, port::DeliverError};
use wakeful_wire::{
    ClockKind, EnvId,
    rpc::{Call, Taken},
};

use super::{Engine, EngineError};

impl Engine {
    /// Wakes an environment as its owner's own request does. One that is awake counts as in use
    /// just now.
    ///
    /// # Errors
    /// [`EngineError::NotFound`], [`EngineError::Refused`], or a failing store.
    pub(crate) async fn wake_for_prompt(&self, env: EnvId) -> Result<(), EngineError> {
        self.apply_command(env, Command::WakeNow).await?;
        self.touch(env, ClockKind::Agent).await
    }

    /// Hands a call to the host of a sandbox. May take half a minute.
    ///
    /// # Errors
    /// [`DeliverError`] says whether it makes sense to hand it over again.
    pub(crate) async fn deliver(
        &self,
        sandbox: &SandboxRef,
        call: &Call,
    ) -> Result<Taken, DeliverError> {
        self.inner.parts.driver.deliver(sandbox, call).await
    }
}
