//! What all cores share, and what each has for itself.

use std::{cell::RefCell, collections::HashMap, net::IpAddr, sync::Arc, time::Duration};

use http::{HeaderMap, Method, Uri};
use tokio_util::task::TaskTracker;
use wakeful_wire::{
    EnvId, HolderId, Hosts, SandboxUid, SurfaceName, UserName,
    gate::{Credential, FailureAnswer, FailureKind, FailureReport, Principal, Route},
};

use crate::{
    admit::CookieNames,
    config::GatewayConfig,
    control::{ControlPlane, MainHost, Unavailable},
    ensure::Ensure,
    leases::Leases,
    metrics::{CoreCounters, Metrics},
    pool,
    recall::Recalls,
    refusal::Refusal,
    remembered::{Remembered, Slot, Terms},
    route::{RouteError, Router, Target},
    server::ClientLimits,
};

/// How long the control plane may take to answer any question but the gate's.
const ANSWER_MAX: Duration = Duration::from_secs(10);
/// Routes change by events only; this bounds what a lost one costs.
pub(crate) const ROUTES: Terms =
    Terms { found: Duration::from_secs(60), absent: Duration::from_secs(1), max: 65_536 };
/// A sign-out arrives as an event; a token's own end by this.
pub(crate) const PRINCIPALS: Terms =
    Terms { found: Duration::from_secs(30), absent: Duration::from_secs(1), max: 65_536 };
pub(crate) const HOMES: Terms =
    Terms { found: Duration::from_secs(5), absent: Duration::from_secs(1), max: 16_384 };
/// Failures of one surface that come this close together are one.
pub(crate) const FAILURES: Terms =
    Terms { found: Duration::from_secs(1), absent: Duration::from_secs(1), max: 16_384 };
/// Answers that a core keeps of each kind; beyond, it forgets them and asks its process again.
const KEPT_MAX: usize = 16_384;

/// What all cores share.
pub(crate) struct Shared {
    pub(crate) config: GatewayConfig,
    pub(crate) control: Arc<dyn ControlPlane>,
    pub(crate) main: Arc<dyn MainHost>,
    pub(crate) holder: HolderId,
    pub(crate) ensure: Arc<Ensure>,
    pub(crate) leases: Arc<Leases>,
    pub(crate) recalls: Arc<Recalls>,
    pub(crate) metrics: Arc<Metrics>,
    pub(crate) routes: Remembered<EnvId, Arc<Route>>,
    pub(crate) principals: Remembered<Credential, Principal>,
    pub(crate) homes: Remembered<UserName, (EnvId, SurfaceName)>,
    pub(crate) failures: Remembered<(SandboxUid, SurfaceName), FailureAnswer>,
    pub(crate) doubts: Remembered<(SandboxUid, SurfaceName), ()>,
}

impl std::fmt::Debug for Shared {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Shared").field("holder", &self.holder).finish_non_exhaustive()
    }
}

thread_local! {
    static KEPT_ROUTES: RefCell<HashMap<EnvId, Arc<Slot<Arc<Route>>>>> = RefCell::default();
    static KEPT_PRINCIPALS: RefCell<HashMap<Credential, Arc<Slot<Principal>>>> =
        RefCell::default();
}

/// Forgets what has ended, on this thread.
pub(crate) fn sweep(now: Duration) {
    KEPT_ROUTES.with_borrow_mut(|kept| kept.retain(|_, slot| slot.is_live(now)));
    KEPT_PRINCIPALS.with_borrow_mut(|kept| kept.retain(|_, slot| slot.is_live(now)));
}

/// One core.
#[derive(Debug)]
pub(crate) struct Core {
    shared: Arc<Shared>,
    counters: Arc<CoreCounters>,
    router: Router,
    names: CookieNames,
    tasks: TaskTracker,
}

impl Core {
    pub(crate) fn new(shared: Arc<Shared>) -> Self {
        let counters = shared.metrics.core();
        let router = Router::new(Arc::clone(&shared.config.hosts));
        let names = CookieNames::of(&shared.config.hosts);
        Self { shared, counters, router, names, tasks: TaskTracker::new() }
    }

    pub(crate) fn shared(&self) -> &Shared {
        &self.shared
    }

    pub(crate) fn counters(&self) -> &Arc<CoreCounters> {
        &self.counters
    }

    pub(crate) fn limits(&self) -> &ClientLimits {
        &self.shared.config.client
    }

    pub(crate) fn recalls(&self) -> &Arc<Recalls> {
        &self.shared.recalls
    }

    pub(crate) fn hosts(&self) -> &Hosts {
        self.router.hosts()
    }

    pub(crate) const fn names(&self) -> &CookieNames {
        &self.names
    }

    /// The tasks that a drain waits for.
    pub(crate) const fn tasks(&self) -> &TaskTracker {
        &self.tasks
    }

    pub(crate) fn now(&self) -> Duration {
        self.shared.ensure.now()
    }

    pub(crate) fn target(
        &self,
        method: &Method,
        uri: &Uri,
        headers: &HeaderMap,
        peer: IpAddr,
    ) -> Result<Target, RouteError> {
        self.router.route(method, uri, headers, peer)
    }

    /// The route of an environment.
    pub(crate) async fn route(
        &self,
        env: EnvId,
        now: Duration,
    ) -> Result<Option<Arc<Route>>, Unavailable> {
        let kept = KEPT_ROUTES.with_borrow(|kept| kept.get(&env)?.get(now).cloned());
        if let Some(route) = kept {
            return Ok(route);
        }
        Box::pin(self.load_route(env, now)).await
    }

    async fn load_route(
        &self,
        env: EnvId,
        now: Duration,
    ) -> Result<Option<Arc<Route>>, Unavailable> {
        let load = || async {
            let route = in_time(self.shared.control.route(env)).await?;
            Ok(route.map(Arc::new))
        };
        let routes = &self.shared.routes;
        let mut slot = routes.get(&env, now, load).await?;
        if !slot.is_live(now) {
            // It was forgotten while it was asked for, which does not mean that there is none.
            slot = routes.get(&env, now, load).await?;
        }
        let route = slot.get(now).cloned().flatten();
        KEPT_ROUTES.with_borrow_mut(|kept| keep(kept, env, slot));
        Ok(route)
    }

    /// Whom a credential stands for.
    pub(crate) async fn principal(
        &self,
        credential: &Credential,
        now: Duration,
    ) -> Result<Option<Principal>, Unavailable> {
        let kept = KEPT_PRINCIPALS.with_borrow(|kept| kept.get(credential)?.get(now).cloned());
        if let Some(principal) = kept {
            return Ok(principal);
        }
        Box::pin(self.load_principal(credential, now)).await
    }

    async fn load_principal(
        &self,
        credential: &Credential,
        now: Duration,
    ) -> Result<Option<Principal>, Unavailable> {
        let load = || in_time(self.shared.control.authenticate(credential));
        let slot = self.shared.principals.get(credential, now, load).await?;
        let principal = slot.get(now).cloned().flatten();
        KEPT_PRINCIPALS.with_borrow_mut(|kept| keep(kept, credential.clone(), slot));
        Ok(principal)
    }

    /// The default environment of a user and its home surface.
    pub(crate) async fn home(
        &self,
        user: &UserName,
    ) -> Result<Option<(EnvId, SurfaceName)>, Unavailable> {
        let now = self.now();
        let load = || in_time(self.shared.control.home(user));
        let slot = self.shared.homes.get(user, now, load).await?;
        Ok(slot.get(now).cloned().flatten())
    }

    /// Reports a failure of a sandbox that was ready. Its cached verdicts die, so whoever comes
    /// next asks again. Those that fail together share one report: a program with a thousand
    /// streams dies once.
    pub(crate) async fn failed(
        &self,
        env: EnvId,
        surface: SurfaceName,
        sandbox: SandboxUid,
        kind: FailureKind,
    ) -> Option<FailureAnswer> {
        self.counters.failure(kind);
        pool::forget(sandbox);
        let (now, shared) = (self.now(), &self.shared);
        let key = (sandbox, surface);
        let load = || {
            shared.ensure.handle_failure(env, sandbox);
            let report = FailureReport { env, surface: key.1.clone(), sandbox, kind };
            async { in_time(shared.control.failure(report)).await.map(Some) }
        };
        match shared.failures.get(&key, now, load).await {
            Ok(slot) => slot.get(now).copied().flatten(),
            Err(error) => {
                tracing::warn!(%error, %env, kind = kind.as_str(), "a failure is not reported");
                None
            }
        }
    }

    /// As [`Self::failed`], and what the failure means to the one whose request it was.
    pub(crate) async fn refusal_of_failure(
        &self,
        env: EnvId,
        surface: SurfaceName,
        sandbox: SandboxUid,
        kind: FailureKind,
    ) -> Refusal {
        let answer = self.failed(env, surface, sandbox, kind).await;
        let deleted = self.shared.ensure.is_deleted(env)
            || matches!(self.route(env, self.now()).await, Ok(None));
        if deleted { Refusal::deleted() } else { Refusal::of_failure(kind, answer) }
    }

    /// `envd` itself contradicts a cached verdict: it dies, at most once in a while, and nothing is
    /// reported.
    pub(crate) async fn doubt(&self, env: EnvId, surface: &SurfaceName, sandbox: SandboxUid) {
        let shared = &self.shared;
        let load = || async {
            shared.ensure.handle_failure(env, sandbox);
            Ok(Some(()))
        };
        // Cannot fail: nothing is asked.
        let _ = shared.doubts.get(&(sandbox, surface.clone()), self.now(), load).await;
    }
}

fn keep<K: Eq + std::hash::Hash, V>(
    kept: &mut HashMap<K, Arc<Slot<V>>>,
    key: K,
    slot: Arc<Slot<V>>,
) {
    if kept.len() >= KEPT_MAX {
        kept.clear();
    }
    kept.insert(key, slot);
}

async fn in_time<T>(
    answer: impl Future<Output = Result<T, Unavailable>>,
) -> Result<T, Unavailable> {
    tokio::time::timeout(ANSWER_MAX, answer)
        .await
        .unwrap_or_else(|_| Err(Unavailable("no answer in time".to_owned())))
}
