//! Who wants to hear that a sandbox changed.

use std::collections::{HashSet, VecDeque};

use parking_lot::Mutex;
use tokio::sync::Notify;
use wakeful_wire::EnvId;

/// Environments whose sandbox changed, in the order of their first change, each at most once.
#[derive(Debug, Default)]
pub(super) struct Hints {
    queue: Mutex<Queue>,
    given: Notify,
}

#[derive(Debug, Default)]
struct Queue {
    order: VecDeque<EnvId>,
    waiting: HashSet<EnvId>,
}

impl Hints {
    /// Gives one.
    pub(super) fn give(&self, env: EnvId) {
        let mut queue = self.queue.lock();
        if queue.waiting.insert(env) {
            queue.order.push_back(env);
        }
        drop(queue);
        self.given.notify_one();
    }

    /// Waits for the next one. Dropping the future loses none.
    pub(super) async fn next(&self) -> EnvId {
        loop {
            let given = self.given.notified();
            {
                let mut queue = self.queue.lock();
                if let Some(env) = queue.order.pop_front() {
                    queue.waiting.remove(&env);
                    return env;
                }
            }
            given.await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn hints_are_kept_until_taken_and_each_environment_waits_once() {
        let hints = Hints::default();
        let env = |digit: char| -> EnvId {
            format!("0199f0a0-7b5c-7c3e-9d2f-6a1b2c3d4e5{digit}").parse().unwrap()
        };
        let (one, other) = (env('1'), env('2'));
        hints.give(one);
        hints.give(other);
        hints.give(one);
        assert_eq!(hints.next().await, one);
        assert_eq!(hints.next().await, other);
        let mut waiting = Box::pin(hints.next());
        assert!(futures::poll!(waiting.as_mut()).is_pending());
        hints.give(other);
        drop(waiting);
        assert_eq!(hints.next().await, other, "dropping a wait loses nothing");
    }
}
