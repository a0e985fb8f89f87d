//! One consumer more: it holds the threads that run.

use std::collections::{BTreeMap, BTreeSet};

use wakeful_wire::{
    Timestamp,
    rpc::{ShellRow, ThreadId},
};

use super::{action::ConsumerId, held::row_is_running};

/// Most threads that are kept alive in one host; of more, those in which somebody did something
/// last.
pub const KEPT_ALIVE_MAX: usize = 16;
/// Most running threads that are known; of more, those in which somebody did something last.
const RUNNING_MAX: usize = 1_024;

/// Which threads are kept alive: those that run, by the list. One that no longer does stays until
/// its own stream has shown the same, because the two are independent: the list may tell of a stop
/// before the thread's content has come.
///
/// At the bound running threads go before stopped ones.
#[derive(Debug, Default)]
pub(super) struct KeepAlive {
    /// Threads that run, and when somebody last did something in them.
    running: BTreeMap<ThreadId, Timestamp>,
    /// Those of them that are to be held.
    chosen: BTreeSet<ThreadId>,
    held: BTreeMap<ThreadId, ConsumerId>,
}

impl KeepAlive {
    /// The list says this of a thread.
    pub(super) fn handle_row(&mut self, row: &ShellRow) {
        self.note(row);
        self.choose();
    }

    /// The list is this, whole. That a thread is not in it shows no more than that it does not run.
    pub(super) fn handle_list<'a>(&mut self, rows: impl IntoIterator<Item = &'a ShellRow>) {
        self.running.clear();
        rows.into_iter().for_each(|row| self.note(row));
        self.choose();
    }

    fn note(&mut self, row: &ShellRow) {
        if !row_is_running(row) {
            self.running.remove(&row.id);
            return;
        }
        self.running.insert(row.id, row.active_at);
        if self.running.len() > RUNNING_MAX {
            let least = self.running.iter().min_by_key(|(id, at)| (**at, **id)).map(|(id, _)| *id);
            least.and_then(|least| self.running.remove(&least));
        }
    }

    fn choose(&mut self) {
        let mut ranked: Vec<_> = self.running.iter().map(|(id, at)| (*at, *id)).collect();
        ranked.sort_unstable_by(|one, other| other.cmp(one));
        self.chosen = ranked.into_iter().take(KEPT_ALIVE_MAX).map(|(_, id)| id).collect();
    }

    /// The thread is gone from the list, or for good: nothing is kept of it. Returns the consumer
    /// that held it.
    pub(super) fn handle_removed(&mut self, thread: ThreadId) -> Option<ConsumerId> {
        if self.running.remove(&thread).is_some() {
            self.choose();
        }
        self.held.remove(&thread)
    }

    /// The consumers to release: of threads that run but are not among the chosen, and of stopped
    /// ones that have shown it or for which there is no place.
    pub(super) fn take_released(
        &mut self,
        shows_stop: impl Fn(ThreadId) -> bool,
    ) -> Vec<ConsumerId> {
        let mut places = KEPT_ALIVE_MAX.saturating_sub(self.chosen.len());
        let (chosen, running) = (&self.chosen, &self.running);
        let mut released = Vec::new();
        self.held.retain(|thread, consumer| {
            if chosen.contains(thread) {
                return true;
            }
            let stays = !running.contains_key(thread) && !shows_stop(*thread) && places > 0;
            if stays {
                places -= 1;
            } else {
                released.push(*consumer);
            }
            stays
        });
        released
    }

    /// Threads that are to be held and are not.
    pub(super) fn missing(&self) -> Vec<ThreadId> {
        let missing = self.chosen.iter().filter(|thread| !self.held.contains_key(thread));
        missing.copied().collect()
    }

    /// The thread is held from now on.
    pub(super) fn hold(&mut self, thread: ThreadId, consumer: ConsumerId) {
        self.held.insert(thread, consumer);
    }

    /// Gives up the thread that is worth least among those that pass: a stopped one, or the one in
    /// which somebody did something the longest ago.
    pub(super) fn give_up(&mut self, passes: impl Fn(ThreadId) -> bool) -> Option<ConsumerId> {
        let worth = |thread: &ThreadId| (self.running.get(thread).copied(), *thread);
        let least = self.held.keys().filter(|thread| passes(**thread)).min_by_key(|id| worth(id));
        let least = *least?;
        self.held.remove(&least)
    }

    /// Whether the thread is held.
    pub(super) fn holds(&self, thread: ThreadId) -> bool {
        self.held.contains_key(&thread)
    }
}
