//! What people ask of an environment.

use std::time::Duration;

use wakeful_lifecycle::{
    Command, Observation, SandboxRef, Woken, apply,
    port::{Loaded, LogTail, Touch},
};
use wakeful_wire::{ClockKind, EnvId, Phase, SurfaceName, api};

use super::{Engine, EngineError, worker::RACES_MAX};

/// How long a wait for a phase relies on events.
const LOOK_AGAIN: Duration = Duration::from_secs(1);

impl Engine {
    /// Applies a command, commits it and lets the environment's task carry it out. Accepted in
    /// every phase that allows it, also while something else is under way; never waits for the
    /// effect.
    ///
    /// # Errors
    /// [`EngineError::NotFound`], [`EngineError::Refused`], or a failing store.
    pub async fn command(
        &self,
        env: EnvId,
        command: Command,
    ) -> Result<api::Environment, EngineError> {
        let loaded = self.apply_command(env, command).await?;
        Ok(self.view(&loaded))
    }

    pub(super) async fn apply_command(
        &self,
        env: EnvId,
        command: Command,
    ) -> Result<Loaded, EngineError> {
        for _ in 0..RACES_MAX {
            let loaded = self.load(env).await?;
            let wished = apply(&loaded.record, command, self.policy(), self.now())
                .map_err(EngineError::Refused)?;
            let Some(mut next) = wished else { return Ok(loaded) };
            let asked = matches!(command, Command::WakeNow | Command::Restart);
            let touch = asked.then(|| Touch { clock: ClockKind::Agent, now: self.now() });
            let mut planned_from = loaded.clone();
            if let Some(touch) = touch {
                // Planned with the touch that is committed with it: a wake of something idle must
                // not be put to sleep by its own plan.
                planned_from.clocks.touch(touch.clock, touch.now);
            }
            if asked {
                let by = if command == Command::Restart {
                    "a restart that its owner asked for"
                } else {
                    "its owner, from the dashboard, the API or a command"
                };
                next.woken = Some(Woken { at: self.now(), by: by.to_owned() });
                tracing::info!(%env, by, "wake");
            }
            let made = self.make_plan(&planned_from, &next, &Observation::unknown());
            if self.commit(&loaded, &made, touch).await? {
                self.nudge(env);
                return self.load(env).await;
            }
        }
        Err(EngineError::Contended)
    }

    pub(super) async fn load(&self, env: EnvId) -> Result<Loaded, EngineError> {
        self.inner.parts.store.load(env).await?.ok_or(EngineError::NotFound)
    }

    /// Keeps an environment awake for `time` from now at least.
    ///
    /// # Errors
    /// [`EngineError::NotFound`], or a failing store.
    pub async fn extend(
        &self,
        env: EnvId,
        time: Duration,
    ) -> Result<api::Environment, EngineError> {
        let until = self.now().after(time);
        let loaded =
            self.inner.parts.store.extend(env, until).await?.ok_or(EngineError::NotFound)?;
        self.nudge(env);
        self.publish(&loaded);
        Ok(self.view(&loaded))
    }

    /// Touches a clock: something was done to the environment without waking it.
    ///
    /// # Errors
    /// [`EngineError::NotFound`], or a failing store.
    pub async fn touch(&self, env: EnvId, clock: ClockKind) -> Result<(), EngineError> {
        let touch = Touch { clock, now: self.now() };
        self.inner.parts.store.touch(env, touch).await?.ok_or(EngineError::NotFound)?;
        Ok(())
    }

    /// Waits until an environment is not starting any more, at most `budget`.
    ///
    /// # Errors
    /// [`EngineError::NotFound`] also when it is deleted meanwhile, or a failing store.
    pub async fn await_settled(
        &self,
        env: EnvId,
        budget: Duration,
    ) -> Result<api::Environment, EngineError> {
        let settled = self.await_phase(env, |phase| phase != Phase::Starting);
        match tokio::time::timeout(budget, settled).await {
            Ok(loaded) => Ok(self.view(&loaded?)),
            Err(_) => Ok(self.view(&self.load(env).await?)),
        }
    }

    /// The phase, and the incarnation that exists with its secret: for what is said to that sandbox
    /// alone.
    ///
    /// # Errors
    /// [`EngineError::NotFound`], or a failing store.
    pub async fn sandbox(&self, env: EnvId) -> Result<(Phase, Option<SandboxRef>), EngineError> {
        Ok(sandbox_of(&self.load(env).await?))
    }

    /// As [`Engine::sandbox`], once the environment neither starts nor goes to sleep any more;
    /// after `budget` as it is then.
    ///
    /// # Errors
    /// [`EngineError::NotFound`] also when it is deleted meanwhile, or a failing store.
    pub async fn await_sandbox(
        &self,
        env: EnvId,
        budget: Duration,
    ) -> Result<(Phase, Option<SandboxRef>), EngineError> {
        // A wake that came while idleness ended the sandbox begins when that is done.
        let settled = |phase| !matches!(phase, Phase::Starting | Phase::Suspending);
        match tokio::time::timeout(budget, self.await_phase(env, settled)).await {
            Ok(loaded) => Ok(sandbox_of(&loaded?)),
            Err(_) => self.sandbox(env).await,
        }
    }

    pub(super) async fn await_phase(
        &self,
        env: EnvId,
        wanted: impl Fn(Phase) -> bool,
    ) -> Result<Loaded, EngineError> {
        // Listening begins before the look, so that no change falls between.
        let mut events = self.gate_events();
        loop {
            let loaded = self.load(env).await?;
            if wanted(loaded.record.phase()) {
                return Ok(loaded);
            }
            // An event of another environment only makes us look once more; one of another process
            // does not reach us, so the wait for it is bounded.
            drop(tokio::time::timeout(LOOK_AGAIN, events.recv()).await);
        }
    }

    /// The end of a surface's log.
    ///
    /// # Errors
    /// [`EngineError::NotFound`], [`EngineError::NoSurface`], or a log that cannot be read.
    pub async fn logs(
        &self,
        env: EnvId,
        surface: &SurfaceName,
        max: usize,
        from: Option<u64>,
    ) -> Result<LogTail, EngineError> {
        let record = self.load(env).await?.record;
        let known = self
            .template(&record.template)
            .is_some_and(|template| template.surfaces.contains_key(surface));
        if !known {
            return Err(EngineError::NoSurface);
        }
        self.inner.parts.driver.logs(env, surface, max, from).await.map_err(EngineError::Driver)
    }

    /// Takes down every sandbox, and returns when none is left.
    pub(super) async fn suspend_all(&self) -> Result<(), EngineError> {
        let store = &self.inner.parts.store;
        let mut waiting = Vec::new();
        for env in store.environments().await? {
            let Some(loaded) = store.load(env).await? else { continue };
            if loaded.record.sandbox.is_none() {
                continue;
            }
            match self.apply_command(env, Command::Suspend).await {
                Ok(_) | Err(EngineError::Refused(_) | EngineError::NotFound) => waiting.push(env),
                Err(error) => return Err(error),
            }
        }
        for env in waiting {
            let done = self.await_phase(env, |phase| {
                !matches!(phase, Phase::Ready | Phase::Starting | Phase::Suspending | Phase::Frozen)
            });
            match done.await {
                Ok(_) | Err(EngineError::NotFound) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// How many environments have a sandbox.
    pub(super) async fn running(&self) -> Result<usize, EngineError> {
        let store = &self.inner.parts.store;
        let mut running = 0;
        for env in store.environments().await? {
            let sandbox = store.load(env).await?.and_then(|loaded| loaded.record.sandbox);
            running += usize::from(sandbox.is_some());
        }
        Ok(running)
    }
}

fn sandbox_of(loaded: &Loaded) -> (Phase, Option<SandboxRef>) {
    let record = &loaded.record;
    (record.phase(), record.sandbox.as_ref().map(|sandbox| sandbox.reference(record.id)))
}
