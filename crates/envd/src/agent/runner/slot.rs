//! What is still to be done in one thread.

use parking_lot::Mutex;
use tokio::{sync::Notify, time::Instant};
use wakeful_wire::rpc::{Prompt, RequestId, TurnId};

use super::Lease;

/// What is wanted of a thread's agent. Bounded by what a thread can have at once: one turn, one
/// cancel, one mode, and an answer for each waiting permission.
#[derive(Default)]
pub(super) struct Wanted {
    pub(super) start: Option<(TurnId, Prompt, Box<dyn Lease>)>,
    pub(super) cancel: Option<TurnId>,
    pub(super) answers: Vec<(RequestId, String)>,
    pub(super) mode: Option<String>,
    pub(super) end: bool,
}

impl Wanted {
    fn is_empty(&self) -> bool {
        self.start.is_none()
            && self.cancel.is_none()
            && self.answers.is_empty()
            && self.mode.is_none()
            && !self.end
    }
}

/// Between the runner, which wants, and the thread's task, which does.
#[derive(Default)]
pub(super) struct Slot {
    wanted: Mutex<Wanted>,
    state: Mutex<State>,
    changed: Notify,
}

#[derive(Default)]
struct State {
    alive: bool,
    idle_since: Option<Instant>,
}

impl Slot {
    pub(super) fn want(&self, change: impl FnOnce(&mut Wanted)) {
        change(&mut self.wanted.lock());
        self.changed.notify_one();
    }

    pub(super) fn take(&self) -> Wanted {
        std::mem::take(&mut *self.wanted.lock())
    }

    pub(super) fn is_wanted(&self) -> bool {
        !self.wanted.lock().is_empty()
    }

    /// Resolves when something is wanted, now or since it was last asked.
    pub(super) async fn changed(&self) {
        self.changed.notified().await;
    }

    pub(super) fn set(&self, alive: bool, idle_since: Option<Instant>) {
        *self.state.lock() = State { alive, idle_since };
    }

    pub(super) fn is_alive(&self) -> bool {
        self.state.lock().alive
    }

    pub(super) fn idle_since(&self) -> Option<Instant> {
        self.state.lock().idle_since
    }
}
