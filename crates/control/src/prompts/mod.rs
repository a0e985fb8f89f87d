//! Kept prompts: the durable way to an agent that may be asleep.
//!
//! A prompt is committed before its sender is answered, and wakes its environment. The worker
//! ([`Prompts::run`]) hands it to the environment's host as soon as that serves, in the order of
//! acceptance. Its thread is drawn at acceptance and the host takes a client id once, so a prompt
//! that is handed over again, because an answer or the mark of it was lost, is not carried out
//! again. What the host took or refused is remembered for [`REMEMBERED`].

mod admit;
mod decide;
mod error;
mod rota;
mod store;
#[cfg(test)]
mod testing;
#[cfg(test)]
mod tests;
mod worker;

use std::{
    collections::{BTreeSet, HashMap, HashSet},
    sync::Arc,
    time::Duration,
};

use parking_lot::Mutex;
use tokio::sync::{Notify, broadcast};
use wakeful_lifecycle::Refused;
use wakeful_wire::{
    Code, EnvId, Phase, Problem,
    api::{Environment, KeepPrompt, KeptPrompt, KeptPrompts, PromptState},
    rpc::{ClientId, ThreadId},
};

pub use admit::TEXT_MAX;
pub use decide::REMEMBERED;
pub use error::PromptError;
pub use store::{ROWS_MAX, WAITING_MAX};

use crate::{
    engine::{Engine, EngineError},
    store::Database,
};
use store::{Kept, PromptStore, Row};

/// How many settled prompts whoever waits for one may lag behind before looking again.
const SETTLED_BACKLOG: usize = 256;

/// The kept prompts of every environment. A cheap handle.
#[derive(Clone)]
pub struct Prompts {
    inner: Arc<Inner>,
}

impl std::fmt::Debug for Prompts {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Prompts").finish_non_exhaustive()
    }
}

struct Inner {
    store: PromptStore,
    engine: Engine,
    /// Environments for which prompts were kept since the worker last looked.
    kept: Mutex<BTreeSet<EnvId>>,
    stirred: Notify,
    /// Prompts that are being handed over or withdrawn.
    held: Mutex<HashSet<(EnvId, ClientId)>>,
    settled: broadcast::Sender<(EnvId, ClientId)>,
    /// Why the first prompt of an environment that is awake was not taken yet.
    reasons: Mutex<HashMap<EnvId, (i64, String)>>,
}

/// Nobody else hands this prompt over or withdraws it.
struct Held<'a> {
    inner: &'a Inner,
    key: (EnvId, ClientId),
}

impl Drop for Held<'_> {
    fn drop(&mut self) {
        self.inner.held.lock().remove(&self.key);
    }
}

/// The worker looks at this environment as soon as this is dropped.
struct Stir<'a> {
    inner: &'a Inner,
    env: EnvId,
}

impl Drop for Stir<'_> {
    fn drop(&mut self) {
        self.inner.kept.lock().insert(self.env);
        self.inner.stirred.notify_one();
    }
}

impl Prompts {
    /// The prompts in this database, for the environments of this engine. Nothing is delivered
    /// before [`Prompts::run`].
    #[must_use]
    pub fn new(database: Database, engine: Engine) -> Self {
        let inner = Inner {
            store: PromptStore::new(database),
            engine,
            kept: Mutex::default(),
            stirred: Notify::new(),
            held: Mutex::default(),
            settled: broadcast::channel(SETTLED_BACKLOG).0,
            reasons: Mutex::default(),
        };
        Self { inner: Arc::new(inner) }
    }

    /// Keeps a prompt and wakes its environment. True with a prompt that was not kept before.
    ///
    /// # Errors
    /// [`PromptError::Another`] when its id stands for another prompt; for one that is new,
    /// [`PromptError::Invalid`], [`PromptError::TooLarge`], [`PromptError::TooMany`], or
    /// [`PromptError::Engine`] where the environment could not be woken.
    pub async fn keep(
        &self,
        environment: &Environment,
        request: &KeepPrompt,
    ) -> Result<(bool, KeptPrompt), PromptError> {
        let env = environment.id;
        // Also when the sender is gone before the answer.
        let stir = Stir { inner: &self.inner, env };
        let (new, row) = self.commit(environment, request).await?;
        if row.state == PromptState::Waiting {
            // It is kept, and so it is answered: the worker wakes as well.
            if let Err(error) = self.inner.engine.wake_for_prompt(env).await {
                let error = &error as &dyn std::error::Error;
                tracing::warn!(%env, error, "a prompt is kept that could not wake its environment");
            }
        }
        // After the wake, so that this one does not count as the worker's.
        drop(stir);
        let now = self.inner.engine.environment(env).await?.ok_or(EngineError::NotFound)?;
        Ok((new, self.view(row, &now.value)))
    }

    async fn commit(
        &self,
        environment: &Environment,
        request: &KeepPrompt,
    ) -> Result<(bool, Row), PromptError> {
        let env = environment.id;
        if let Some((row, digest)) = self.inner.store.find(env, request.client).await? {
            let same = digest == admit::digest(request)?;
            return if same { Ok((false, row)) } else { Err(PromptError::Another) };
        }
        match environment.phase {
            Phase::Disabled => return Err(EngineError::Refused(Refused::Disabled).into()),
            Phase::Deleted => return Err(EngineError::Refused(Refused::Gone).into()),
            Phase::Suspended
            | Phase::Starting
            | Phase::Ready
            | Phase::Suspending
            | Phase::Frozen
            | Phase::Failed
            | Phase::Publishing => {}
        }
        let admitted = admit::admit(request, ThreadId::from_uuid(uuid::Uuid::now_v7()))?;
        let now = self.inner.engine.now();
        match self.inner.store.keep(env, request.client, &admitted, now).await? {
            Kept::Now(row) => Ok((true, row)),
            Kept::Before(row) => Ok((false, row)),
            Kept::Another => Err(PromptError::Another),
            Kept::Full => Err(PromptError::TooMany),
            Kept::NoEnvironment => Err(EngineError::Refused(Refused::Gone).into()),
        }
    }

    /// The prompts of an environment, oldest first.
    ///
    /// # Errors
    /// When the database cannot be read.
    pub async fn list(&self, environment: &Environment) -> Result<KeptPrompts, PromptError> {
        let rows = self.inner.store.list(environment.id).await?;
        Ok(KeptPrompts {
            prompts: rows.into_iter().map(|row| self.view(row, environment)).collect(),
        })
    }

    /// A prompt, as soon as it does not wait any more, but after `budget` at the latest.
    ///
    /// # Errors
    /// [`PromptError::NotFound`] also when it is withdrawn or forgotten meanwhile, and
    /// [`PromptError::Engine`] when its environment is deleted.
    pub async fn find(
        &self,
        env: EnvId,
        client: ClientId,
        budget: Duration,
    ) -> Result<KeptPrompt, PromptError> {
        let until = tokio::time::Instant::now() + budget;
        // Listening begins before the look, so that nothing falls between.
        let mut settled = self.inner.settled.subscribe();
        loop {
            let found = self.inner.store.find(env, client).await?;
            let (row, _) = found.ok_or(PromptError::NotFound)?;
            let over = tokio::time::Instant::now() >= until;
            if row.state != PromptState::Waiting || over {
                let now = self.inner.engine.environment(env).await?.ok_or(EngineError::NotFound)?;
                return Ok(self.view(row, &now.value));
            }
            let ours =
                async { while settled.recv().await.is_ok_and(|key| key != (env, client)) {} };
            drop(tokio::time::timeout_at(until, ours).await);
        }
    }

    /// Takes a prompt back that waits. One that was handed over without an answer may have been
    /// taken all the same.
    ///
    /// # Errors
    /// [`PromptError::NotFound`], or [`PromptError::Settled`] when it does not wait any more.
    pub async fn withdraw(&self, env: EnvId, client: ClientId) -> Result<(), PromptError> {
        let _held = self.hold(env, client).ok_or(PromptError::Settled)?;
        if self.inner.store.withdraw(env, client).await? {
            drop(self.inner.settled.send((env, client)));
            return Ok(());
        }
        let known = self.inner.store.find(env, client).await?.is_some();
        Err(if known { PromptError::Settled } else { PromptError::NotFound })
    }

    /// Takes the one right to hand a prompt over or to withdraw it.
    fn hold(&self, env: EnvId, client: ClientId) -> Option<Held<'_>> {
        let key = (env, client);
        let inner = &*self.inner;
        inner.held.lock().insert(key).then(|| Held { inner, key })
    }

    fn view(&self, row: Row, environment: &Environment) -> KeptPrompt {
        let phase = environment.phase;
        let problem = match row.state {
            PromptState::Waiting => self.why_it_waits(&row, environment),
            PromptState::Delivered | PromptState::Refused | PromptState::Other => row.problem,
        };
        KeptPrompt {
            client: row.client,
            thread: row.thread,
            state: row.state,
            created_at: row.created_at,
            seq: row.taken,
            problem,
            phase,
        }
    }

    fn why_it_waits(&self, row: &Row, environment: &Environment) -> Option<Problem> {
        let phase = environment.phase;
        if phase == Phase::Disabled {
            return Some(Problem::new(Code::EnvironmentDisabled).phase(phase));
        }
        if let Some(failure) = &environment.failure {
            let code =
                if phase == Phase::Failed { Code::EnvironmentFailed } else { Code::Starting };
            return Some(Problem::new(code).phase(phase).detail(failure.reason.clone()));
        }
        let reasons = self.inner.reasons.lock();
        let (seq, reason) = reasons.get(&environment.id)?;
        let ours = *seq == row.seq && phase == Phase::Ready;
        ours.then(|| Problem::new(Code::UpstreamFailed).phase(phase).detail(reason.clone()))
    }
}
