//! The control plane as the gateway of the same process sees it: the engine and the accounts,
//! asked directly.

use std::{error::Error, future::Future};

use async_trait::async_trait;
use tokio::{runtime::Handle, sync::broadcast};
use wakeful_control::{accounts::Accounts, engine::Engine};
use wakeful_gateway::control::{ControlPlane, SurfaceSession, Unavailable};
use wakeful_wire::{
    EnvId, SurfaceName, UserName,
    gate::{
        ActivityReport, Credential, DrainAnswer, EnsureAnswer, EnsureRequest, FailureAnswer,
        FailureReport, GateEvent, Principal, Route,
    },
};

/// The engine and the accounts of this process.
#[derive(Debug, Clone)]
pub(super) struct LocalPlane {
    pub(super) engine: Engine,
    pub(super) accounts: Accounts,
    /// Where database futures run: never on a data core.
    pub(super) runtime: Handle,
}

impl LocalPlane {
    /// Runs a question on the control plane's runtime.
    async fn ask<T, E, F>(&self, question: impl FnOnce(Self) -> F) -> Result<T, Unavailable>
    where
        T: Send + 'static,
        E: Error + Send + Sync + 'static,
        F: Future<Output = Result<T, E>> + Send + 'static,
    {
        let task = self.runtime.spawn(question(self.clone()));
        match task.await {
            Ok(Ok(answer)) => Ok(answer),
            Ok(Err(error)) => Err(Unavailable(chain(&error))),
            Err(error) => Err(Unavailable(error.to_string())),
        }
    }
}

/// An error with everything that caused it, for the log.
fn chain(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        text.push_str(": ");
        text.push_str(&cause.to_string());
        source = cause.source();
    }
    text
}

#[async_trait]
impl ControlPlane for LocalPlane {
    async fn authenticate(
        &self,
        credential: &Credential,
    ) -> Result<Option<Principal>, Unavailable> {
        let credential = credential.clone();
        self.ask(|plane| async move { plane.accounts.authenticate(&credential).await }).await
    }

    async fn route(&self, env: EnvId) -> Result<Option<Route>, Unavailable> {
        self.ask(move |plane| async move { plane.engine.route(env).await }).await
    }

    async fn home(&self, user: &UserName) -> Result<Option<(EnvId, SurfaceName)>, Unavailable> {
        let user = user.clone();
        self.ask(|plane| async move { plane.engine.home(&user).await }).await
    }

    async fn ensure(&self, request: EnsureRequest) -> Result<EnsureAnswer, Unavailable> {
        self.ask(|plane| async move { plane.engine.ensure(&request).await }).await
    }

    async fn failure(&self, report: FailureReport) -> Result<FailureAnswer, Unavailable> {
        self.ask(|plane| async move { plane.engine.failure(&report).await }).await
    }

    async fn activity(&self, report: ActivityReport) -> Result<(), Unavailable> {
        self.ask(|plane| async move { plane.engine.activity(&report).await }).await
    }

    async fn drained(&self, answer: DrainAnswer) -> Result<(), Unavailable> {
        let _entered = self.runtime.enter();
        self.engine.drained(&answer);
        Ok(())
    }

    fn events(&self) -> broadcast::Receiver<GateEvent> {
        self.engine.gate_events()
    }

    async fn redeem(
        &self,
        ticket: &str,
        nonce: &str,
        host: &str,
    ) -> Result<Option<SurfaceSession>, Unavailable> {
        let (ticket, nonce, host) = (ticket.to_owned(), nonce.to_owned(), host.to_owned());
        let grant =
            self.ask(|plane| async move { plane.accounts.redeem(&ticket, &nonce, &host).await });
        Ok(grant.await?.map(|grant| SurfaceSession {
            cookie: grant.cookie,
            max_age_s: grant.max_age.as_secs(),
        }))
    }
}
