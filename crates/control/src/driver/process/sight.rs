//! What this process knows of each sandbox, kept fresh by a watch, and who wants to hear of it.

use std::{collections::HashMap, sync::Arc};

use parking_lot::Mutex;
use subtle::ConstantTimeEq;
use tokio::task::AbortHandle;
use wakeful_lifecycle::{Present, SandboxRef, Secret, Seen};
use wakeful_wire::{EnvId, SandboxUid, sandbox::EnvdStatus};

use super::hints::Hints;

/// What was last seen of a sandbox that exists or may exist.
#[derive(Debug)]
struct Sight {
    env: EnvId,
    secret: Secret,
    status: Option<Arc<EnvdStatus>>,
    watch: Option<Watch>,
}

/// The one watch of a sandbox.
#[derive(Debug)]
struct Watch {
    number: u64,
    task: Option<AbortHandle>,
}

impl Drop for Sight {
    fn drop(&mut self) {
        if let Some(Watch { task: Some(task), .. }) = &self.watch {
            task.abort();
        }
    }
}

/// Everything that is known. A sandbox that is gone leaves its uid under its environment, so there
/// is at most one entry for each sandbox that runs and one for each environment.
#[derive(Debug, Default)]
pub(super) struct Sights {
    inner: Mutex<Inner>,
    hints: Hints,
}

#[derive(Debug, Default)]
struct Inner {
    present: HashMap<SandboxUid, Sight>,
    absent: HashMap<EnvId, SandboxUid>,
    watches: u64,
}

pub(super) fn seen(status: &EnvdStatus) -> Seen {
    Seen::Present(Present {
        ready: status.eager_ready() && !status.stopping,
        stopping: status.stopping,
        surfaces: status.surfaces.clone(),
        isolation: status.isolation.clone(),
        host: status.host.clone(),
    })
}

fn same(a: &Secret, b: &Secret) -> bool {
    a.0.as_bytes().ct_eq(b.0.as_bytes()).into()
}

impl Sights {
    /// The sandbox answered with this status. Where nobody watches it yet, the number under which
    /// the caller is to begin a watch; where somebody does, what the watch brought is newer and
    /// stays.
    pub(super) fn answered(&self, sandbox: &SandboxRef, status: EnvdStatus) -> Option<u64> {
        let mut inner = self.inner.lock();
        inner.watches += 1;
        let number = inner.watches;
        if inner.absent.get(&sandbox.env) == Some(&sandbox.uid) {
            inner.absent.remove(&sandbox.env);
        }
        let sight = inner.present.entry(sandbox.uid).or_insert_with(|| Sight {
            env: sandbox.env,
            secret: sandbox.secret.clone(),
            status: None,
            watch: None,
        });
        sight.secret = sandbox.secret.clone();
        if sight.watch.is_none() || sight.status.is_none() {
            sight.status = Some(Arc::new(status));
        }
        if sight.watch.is_some() {
            return None;
        }
        sight.watch = Some(Watch { number, task: None });
        Some(number)
    }

    /// A watch has begun; it ends when the sandbox is gone.
    pub(super) fn watched(&self, uid: SandboxUid, number: u64, task: AbortHandle) {
        let mut inner = self.inner.lock();
        let sight = inner.present.get_mut(&uid).and_then(|sight| sight.watch.as_mut());
        match sight.filter(|watch| watch.number == number) {
            Some(watch) => watch.task = Some(task),
            None => task.abort(),
        }
    }

    /// A watch brought a newer status.
    pub(super) fn changed(&self, uid: SandboxUid, number: u64, status: EnvdStatus) {
        let env = {
            let mut inner = self.inner.lock();
            let Some(sight) = inner.present.get_mut(&uid) else { return };
            if sight.watch.as_ref().is_none_or(|watch| watch.number != number)
                || sight.status.as_deref() == Some(&status)
            {
                return;
            }
            sight.status = Some(Arc::new(status));
            sight.env
        };
        self.hints.give(env);
    }

    /// A watch has ended: nothing is known until somebody looks.
    pub(super) fn lost(&self, uid: SandboxUid, number: u64) {
        let env = {
            let mut inner = self.inner.lock();
            let Some(sight) = inner.present.get_mut(&uid) else { return };
            if sight.watch.as_ref().is_none_or(|watch| watch.number != number) {
                return;
            }
            sight.watch = None;
            sight.status = None;
            sight.env
        };
        self.hints.give(env);
    }

    /// A look was in doubt.
    pub(super) fn doubted(&self, sandbox: &SandboxRef) {
        if let Some(sight) = self.inner.lock().present.get_mut(&sandbox.uid)
            && same(&sight.secret, &sandbox.secret)
        {
            sight.status = None;
        }
    }

    /// Confirmed: it is gone.
    pub(super) fn gone(&self, sandbox: &SandboxRef) {
        let mut inner = self.inner.lock();
        inner.present.remove(&sandbox.uid);
        inner.absent.insert(sandbox.env, sandbox.uid);
    }

    /// The environment is deleted.
    pub(super) fn forget(&self, env: EnvId) {
        self.inner.lock().absent.remove(&env);
    }

    /// What was last seen.
    pub(super) fn glance(&self, sandbox: &SandboxRef) -> Seen {
        if let Some(status) = self.status(sandbox) {
            return seen(&status);
        }
        let inner = self.inner.lock();
        if !inner.present.contains_key(&sandbox.uid)
            && inner.absent.get(&sandbox.env) == Some(&sandbox.uid)
        {
            Seen::Absent
        } else {
            Seen::Unknown
        }
    }

    /// The newest status, for who knows the secret.
    pub(super) fn status(&self, sandbox: &SandboxRef) -> Option<Arc<EnvdStatus>> {
        let inner = self.inner.lock();
        let sight = inner.present.get(&sandbox.uid)?;
        if same(&sight.secret, &sandbox.secret) { sight.status.clone() } else { None }
    }

    /// The sandbox of this environment that was seen, if any.
    pub(super) fn of_env(&self, env: EnvId) -> Option<SandboxUid> {
        let inner = self.inner.lock();
        inner.present.iter().find(|(_, sight)| sight.env == env).map(|(uid, _)| *uid)
    }

    /// The next environment whose sandbox changed.
    pub(super) async fn next_hint(&self) -> EnvId {
        self.hints.next().await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sandbox() -> SandboxRef {
        SandboxRef {
            env: "0199f0a0-7b5c-7c3e-9d2f-6a1b2c3d4e50".parse().unwrap(),
            uid: "0199f0a0-7b5c-7c3e-9d2f-6a1b2c3d4e51".parse().unwrap(),
            secret: Secret("s".to_owned()),
        }
    }

    fn status(stopping: bool) -> EnvdStatus {
        EnvdStatus {
            env: sandbox().env,
            sandbox: sandbox().uid,
            pid: 1,
            surfaces: std::collections::BTreeMap::new(),
            isolation: wakeful_wire::sandbox::IsolationInForce::default(),
            stopping,
            host: wakeful_wire::sandbox::HostUse::default(),
        }
    }

    fn is_present(seen: &Seen) -> bool {
        matches!(seen, Seen::Present(_))
    }

    #[tokio::test]
    async fn a_glance_shows_the_last_sight_to_who_knows_the_secret() {
        let sights = Sights::default();
        let stranger = SandboxRef { secret: Secret("t".to_owned()), ..sandbox() };
        assert_eq!(sights.glance(&sandbox()), Seen::Unknown);
        let number = sights.answered(&sandbox(), status(false)).unwrap();
        assert!(is_present(&sights.glance(&sandbox())));
        assert_eq!(sights.glance(&stranger), Seen::Unknown);
        sights.doubted(&stranger);
        assert!(is_present(&sights.glance(&sandbox())), "a stranger's doubt is not ours");
        let watch = tokio::spawn(std::future::pending::<()>());
        sights.watched(sandbox().uid, number, watch.abort_handle());
        sights.changed(sandbox().uid, number, status(true));
        assert_eq!(sights.answered(&sandbox(), status(false)), None, "one watch is enough");
        assert!(sights.status(&sandbox()).unwrap().stopping, "and knows better");
        sights.lost(sandbox().uid, number);
        assert_eq!(sights.glance(&sandbox()), Seen::Unknown);
        sights.gone(&sandbox());
        assert_eq!(sights.glance(&sandbox()), Seen::Absent);
    }

    #[tokio::test]
    async fn a_watch_ends_with_its_sandbox_and_an_old_one_changes_nothing() {
        let sights = Sights::default();
        let number = sights.answered(&sandbox(), status(false)).unwrap();
        let watch = tokio::spawn(std::future::pending::<()>());
        sights.watched(sandbox().uid, number, watch.abort_handle());
        sights.changed(sandbox().uid, number + 7, status(true));
        assert!(!sights.status(&sandbox()).unwrap().stopping);
        sights.changed(sandbox().uid, number, status(true));
        assert!(sights.status(&sandbox()).unwrap().stopping);
        sights.gone(&sandbox());
        assert!(watch.await.unwrap_err().is_cancelled());
        sights.changed(sandbox().uid, number, status(false));
        assert_eq!(sights.glance(&sandbox()), Seen::Absent);
    }
}
