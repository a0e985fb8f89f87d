//! What tells an open stream or socket to end: its environment is put to sleep by force, or the
//! gateway leaves.

use std::{
    collections::HashMap,
    sync::{
        Arc,
        atomic::{AtomicU8, AtomicU64, Ordering},
    },
    task::{Context, Poll},
};

use futures::task::AtomicWaker;
use parking_lot::Mutex;
use wakeful_wire::EnvId;

/// Why something open is to end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Why {
    /// The environment is put to sleep, restarted or deleted by somebody.
    Asleep,
    /// This gateway is being stopped.
    Leaving,
}

/// One open stream or socket, as those see it who may end it.
#[derive(Debug, Default)]
pub(crate) struct Recall {
    weighs: bool,
    why: AtomicU8,
    waker: AtomicWaker,
}

impl Recall {
    fn set(&self, why: Why) {
        let code = match why {
            Why::Asleep => 1,
            Why::Leaving => 2,
        };
        // The first reason stands.
        let _ = self.why.compare_exchange(0, code, Ordering::AcqRel, Ordering::Acquire);
        self.waker.wake();
    }

    fn get(&self) -> Option<Why> {
        match self.why.load(Ordering::Acquire) {
            0 => None,
            1 => Some(Why::Asleep),
            _ => Some(Why::Leaving),
        }
    }

    /// Ready once it is to end.
    pub(crate) fn poll(&self, cx: &Context<'_>) -> Poll<Why> {
        if let Some(why) = self.get() {
            return Poll::Ready(why);
        }
        self.waker.register(cx.waker());
        self.get().map_or(Poll::Pending, Poll::Ready)
    }
}

/// What is open in one place, by a number of its own.
type Open = HashMap<u64, Arc<Recall>>;

/// Everything open, by environment. Its lock is taken when something opens or closes, and never
/// for a byte in between.
#[derive(Debug, Default)]
pub(crate) struct Recalls {
    /// The main host's own streams stand under `None`.
    open: Mutex<HashMap<Option<EnvId>, Open>>,
    next: AtomicU64,
}

impl Recalls {
    /// Enters something open, until the result is dropped. What does not weigh (the environment
    /// server's own sockets) does not keep its environment awake, and ends with an idle suspend.
    pub(crate) fn enroll(self: &Arc<Self>, env: EnvId, weighs: bool) -> Enrolled {
        self.enter(Some(env), weighs)
    }

    /// Enters an open stream of the main host, which ends only with this gateway.
    pub(crate) fn enroll_main(self: &Arc<Self>) -> Enrolled {
        self.enter(None, false)
    }

    fn enter(self: &Arc<Self>, env: Option<EnvId>, weighs: bool) -> Enrolled {
        let id = self.next.fetch_add(1, Ordering::Relaxed);
        let recall = Arc::new(Recall { weighs, ..Recall::default() });
        self.open.lock().entry(env).or_default().insert(id, Arc::clone(&recall));
        Enrolled { recalls: Arc::clone(self), env, id, recall }
    }

    /// Tells what is open of an environment to end; unless `all`, only what does not weigh.
    pub(crate) fn recall(&self, env: EnvId, all: bool, why: Why) {
        if let Some(open) = self.open.lock().get(&Some(env)) {
            open.values().filter(|recall| all || !recall.weighs).for_each(|recall| recall.set(why));
        }
    }

    /// Tells everything to end.
    pub(crate) fn recall_all(&self, why: Why) {
        self.open.lock().values().flat_map(HashMap::values).for_each(|recall| recall.set(why));
    }
}

/// An entry in [`Recalls`].
#[derive(Debug)]
pub(crate) struct Enrolled {
    recalls: Arc<Recalls>,
    env: Option<EnvId>,
    id: u64,
    recall: Arc<Recall>,
}

impl std::ops::Deref for Enrolled {
    type Target = Recall;

    fn deref(&self) -> &Recall {
        &self.recall
    }
}

impl Drop for Enrolled {
    fn drop(&mut self) {
        let mut open = self.recalls.open.lock();
        if let Some(of_env) = open.get_mut(&self.env) {
            of_env.remove(&self.id);
            if of_env.is_empty() {
                open.remove(&self.env);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;

    #[tokio::test]
    async fn only_what_is_open_of_the_environment_ends() {
        let recalls = Arc::<Recalls>::default();
        let env = |n| EnvId::from_uuid(Uuid::from_u128(n));
        let (one, two) = (recalls.enroll(env(1), false), recalls.enroll(env(2), true));
        recalls.recall(env(1), false, Why::Asleep);
        recalls.recall(env(2), false, Why::Asleep);
        recalls.recall_all(Why::Leaving);
        assert_eq!(std::future::poll_fn(|cx| one.poll(cx)).await, Why::Asleep, "the first reason");
        assert_eq!(std::future::poll_fn(|cx| two.poll(cx)).await, Why::Leaving);
        drop((one, two));
        assert!(recalls.open.lock().is_empty());
    }

    #[tokio::test]
    async fn a_waiting_task_is_woken() {
        let recalls = Arc::<Recalls>::default();
        let env = EnvId::from_uuid(Uuid::nil());
        let open = recalls.enroll(env, true);
        let task = tokio::spawn(async move { std::future::poll_fn(|cx| open.poll(cx)).await });
        tokio::task::yield_now().await;
        recalls.recall(env, true, Why::Asleep);
        assert_eq!(task.await.unwrap(), Why::Asleep);
    }
}
