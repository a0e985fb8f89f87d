//! When a thread is saved, and in which order the cache is written.

use std::{collections::BTreeMap, time::Duration};

use wakeful_wire::rpc::ThreadId;

use super::{
    Held,
    action::{Action, Outbox, WriteId},
};
use crate::Instant;

/// How long after a change a thread is saved: what changes together is written once.
pub const SAVE_AFTER: Duration = Duration::from_millis(500);
/// Most threads with a write that waits for the one before it. At more, saves are left out: a cache
/// may always be older. What is to be forgotten is never left out.
pub const WRITES_MAX: usize = 128;

/// When one thread is saved: some time after a change while it does not run, and at its end. A
/// running thread changes many times a second, and resumes from what was saved before.
#[derive(Debug, Default)]
pub(super) struct Saving {
    unsaved: bool,
    due: Option<Instant>,
}

impl Saving {
    /// The state has changed.
    pub(super) fn handle_changed(&mut self, now: Instant, running: bool) {
        self.unsaved = true;
        self.due = if running { None } else { self.due.or_else(|| Some(now.after(SAVE_AFTER))) };
    }

    /// When it is to be saved.
    pub(super) const fn poll_timeout(&self) -> Option<Instant> {
        self.due
    }

    /// Whether it is to be saved now.
    pub(super) fn take_due(&mut self, now: Instant) -> bool {
        let due = self.due.take_if(|due| *due <= now).is_some();
        self.unsaved &= !due;
        due
    }

    /// Whether something was not saved, at the end.
    pub(super) const fn is_unsaved(&self) -> bool {
        self.unsaved
    }
}

/// The order in which the cache of one host is written: for each thread one write at a time, and
/// one that waits, the newest. So a slow write of an earlier scope never ends up over its
/// successor's.
#[derive(Debug, Default)]
pub(super) struct Writes(BTreeMap<ThreadId, Slot>);

#[derive(Debug)]
struct Slot {
    running: WriteId,
    forgets: bool,
    next: Option<Write>,
}

#[derive(Debug)]
enum Write {
    Save(Box<Held>),
    Forget,
}

impl Writes {
    /// Saves a thread.
    pub(super) fn save(&mut self, thread: ThreadId, held: Held, out: &mut Outbox) {
        self.write(thread, Write::Save(Box::new(held)), out);
    }

    /// Removes a thread.
    pub(super) fn forget(&mut self, thread: ThreadId, out: &mut Outbox) {
        self.write(thread, Write::Forget, out);
    }

    /// Whether nothing is being written.
    pub(super) fn is_idle(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether a removal is still on its way, so that what could be read is worth nothing.
    pub(super) fn is_forgetting(&self, thread: ThreadId) -> bool {
        self.0.get(&thread).is_some_and(|slot| {
            slot.forgets && slot.next.is_none() || matches!(slot.next, Some(Write::Forget))
        })
    }

    fn write(&mut self, thread: ThreadId, write: Write, out: &mut Outbox) {
        let waiting = self.0.values().filter(|slot| slot.next.is_some()).count();
        match self.0.get_mut(&thread) {
            Some(slot) => {
                let waits = slot.next.is_some();
                if waits || waiting < WRITES_MAX || matches!(write, Write::Forget) {
                    slot.next = Some(write);
                }
            }
            None => self.begin(thread, write, out),
        }
    }

    fn begin(&mut self, thread: ThreadId, write: Write, out: &mut Outbox) {
        let running = WriteId(out.draw());
        let forgets = matches!(write, Write::Forget);
        self.0.insert(thread, Slot { running, forgets, next: None });
        out.push(match write {
            Write::Save(held) => Action::Save { write: running, thread, held },
            Write::Forget => Action::Forget { write: running, thread },
        });
    }

    /// A write is over.
    pub(super) fn handle_written(&mut self, write: WriteId, out: &mut Outbox) {
        let Some(thread) =
            self.0.iter().find(|(_, slot)| slot.running == write).map(|(thread, _)| *thread)
        else {
            return;
        };
        if let Some(next) = self.0.remove(&thread).and_then(|slot| slot.next) {
            self.begin(thread, next, out);
        }
    }
}
