//! Hands waiting prompts to the hosts of their environments.
//!
//! It is level-triggered: a new prompt and a change of an environment only make it look sooner, and
//! a sweep finds what they missed. It runs beside the engine, which never waits for it.

use std::time::Duration;

use futures::{StreamExt as _, stream::FuturesUnordered};
use tokio::{
    sync::broadcast::error::RecvError,
    time::{Instant, MissedTickBehavior},
};
use wakeful_wire::{Code, EnvId, Problem, gate::GateEvent, rpc::Call};

use super::{
    PromptError, Prompts,
    decide::{self, Act, Outcome},
    rota::{After, Rota, Spur, Woken},
    store::Settled,
};
use crate::engine::EngineError;

/// How many environments are looked at at once. A delivery may take half a minute.
const AT_ONCE: usize = 32;

/// How often everything that waits is looked at, whatever was heard of it.
const SWEEP_EVERY: Duration = Duration::from_secs(30);

impl Prompts {
    /// Delivers until it is dropped, beginning with what a former process left. To be run once at a
    /// time, and dropped before environments are put to sleep for good: what waits wakes them.
    pub async fn run(&self) {
        // Listening begins before the first look, so that no change falls between.
        let mut events = self.inner.engine.gate_events();
        let mut rota = Rota::default();
        let mut looks = FuturesUnordered::new();
        let mut sweep = tokio::time::interval(SWEEP_EVERY);
        sweep.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            while looks.len() < AT_ONCE
                && let Some((env, woken)) = rota.begin(Instant::now())
            {
                looks.push(async move { (env, self.look(env, woken).await) });
            }
            let next = rota.next().filter(|_| looks.len() < AT_ONCE);
            let due = async {
                match next {
                    Some(next) => tokio::time::sleep_until(next).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                Some((env, after)) = looks.next() => rota.end(env, after, Instant::now()),
                event = events.recv() => match event {
                    Ok(GateEvent::Changed { env, .. }) => {
                        rota.stir(env, Spur::Changed, Instant::now());
                    }
                    Ok(_) => {}
                    Err(RecvError::Lagged(_)) => rota.stir_all(Instant::now()),
                    // The engine is gone.
                    Err(RecvError::Closed) => return,
                },
                () = self.inner.stirred.notified() => {
                    for env in std::mem::take(&mut *self.inner.kept.lock()) {
                        rota.stir(env, Spur::Prompt, Instant::now());
                    }
                }
                _ = sweep.tick() => self.sweep(&mut rota).await,
                () = due => {}
            }
        }
    }

    /// Finds what waits, and forgets what was settled long ago.
    async fn sweep(&self, rota: &mut Rota) {
        let store = &self.inner.store;
        match store.environments().await {
            Ok(waiting) => {
                for env in waiting {
                    rota.stir(env, Spur::Prompt, Instant::now());
                }
            }
            Err(error) => {
                let error = &error as &dyn std::error::Error;
                tracing::warn!(error, "kept prompts are looked for later");
            }
        }
        let before = decide::forgotten_before(self.inner.engine.now());
        if let Err(error) = store.forget(before).await {
            tracing::warn!(
                error = &error as &dyn std::error::Error,
                "old prompts are kept for now"
            );
        }
    }

    /// Does what there is to do about the first prompt of an environment.
    async fn look(&self, env: EnvId, woken: Option<Woken>) -> After {
        match self.advance(env, woken).await {
            Ok(after) => after,
            Err(error) => {
                tracing::warn!(%env, error = &error as &dyn std::error::Error, "a prompt waits");
                After::Failed
            }
        }
    }

    async fn advance(&self, env: EnvId, woken: Option<Woken>) -> Result<After, PromptError> {
        let engine = &self.inner.engine;
        let Some((seq, client)) = self.inner.store.head(env).await? else {
            self.inner.reasons.lock().remove(&env);
            return Ok(After::Idle);
        };
        let (phase, sandbox) = match engine.sandbox(env).await {
            Ok(found) => found,
            // Its prompts went with it.
            Err(EngineError::NotFound) => {
                self.inner.reasons.lock().remove(&env);
                return Ok(After::Idle);
            }
            Err(error) => return Err(error.into()),
        };
        let woken = woken.filter(|(woke, _)| *woke == seq).map(|(_, at)| at);
        match (decide::act(phase, woken, Instant::now()), sandbox) {
            (Act::Wake, _) => {
                match engine.wake_for_prompt(env).await {
                    // Whatever refuses it is seen at the next look.
                    Ok(()) | Err(EngineError::Refused(_) | EngineError::NotFound) => {}
                    Err(error) => return Err(error.into()),
                }
                Ok(After::Woke(seq))
            }
            (Act::Wait(until), _) => Ok(After::Waits(until)),
            (Act::Deliver, None) => Ok(After::Waits(None)),
            (Act::Deliver, Some(sandbox)) => {
                let Some(_held) = self.hold(env, client) else {
                    // Somebody withdraws it just now.
                    return Ok(After::Failed);
                };
                let Some(text) = self.inner.store.call(seq).await? else {
                    return Ok(After::Settled);
                };
                let outcome = match serde_json::from_str::<Call>(&text) {
                    Ok(call) => decide::outcome(engine.deliver(&sandbox, &call).await),
                    // A newer release wrote it.
                    Err(_) => Outcome::Refused(Problem::new(Code::Unsupported)),
                };
                let settled = match outcome {
                    Outcome::Later(reason) => {
                        tracing::debug!(%env, %client, reason, "not delivered yet");
                        self.inner.reasons.lock().insert(env, (seq, reason));
                        return Ok(After::Failed);
                    }
                    Outcome::Delivered(taken) => Settled::Delivered(taken),
                    Outcome::Refused(problem) => Settled::Refused(problem),
                };
                self.inner.store.settle(seq, &settled, engine.now()).await?;
                self.inner.reasons.lock().remove(&env);
                let delivered = matches!(settled, Settled::Delivered(_));
                tracing::info!(%env, %client, delivered, "a kept prompt is settled");
                // Without a listener nobody waits.
                drop(self.inner.settled.send((env, client)));
                Ok(After::Settled)
            }
        }
    }
}
