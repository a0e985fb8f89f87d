//! The state of a host's threads, derived from its events.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    sync::Arc,
};

use serde::{Deserialize, Serialize};
use wakeful_wire::rpc::{ClientId, Cursor, Epoch, Event, EventBody, Seq, Thread, ThreadId};

use super::{limits::REMEMBERED_MAX, numbering::Numbering};

/// One thread as the host holds it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Entry {
    /// The state that clients share.
    pub thread: Thread,
    /// How the next item is numbered.
    #[serde(default)]
    pub(crate) numbering: Numbering,
}

impl Entry {
    pub(crate) fn apply(&mut self, event: &Event) {
        if event.seq > self.thread.seq {
            self.thread.apply(event);
            self.numbering.apply(&event.body);
            if self.thread.deleted {
                self.numbering = Numbering::default();
            }
        }
    }
}

/// The starts of a host that are in its log, oldest first: each with the event that says so.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Epochs(Vec<(Epoch, Seq)>);

impl Epochs {
    /// The present start.
    #[must_use]
    pub fn present(&self) -> Epoch {
        self.0.last().map(|(epoch, _)| *epoch).unwrap_or_default()
    }

    /// Whether a cursor names a position of this log: its epoch is in the log, and its number is
    /// not beyond what that epoch wrote.
    #[must_use]
    pub fn confirms(&self, cursor: Cursor, head: Seq) -> bool {
        let Some(place) = self.0.iter().rposition(|(epoch, _)| *epoch == cursor.epoch) else {
            return false;
        };
        match self.0.get(place + 1) {
            Some((_, next_start)) => cursor.seq < *next_start,
            None => cursor.seq <= head,
        }
    }

    pub(crate) fn start(&mut self, epoch: Epoch, seq: Seq) {
        self.0.push((epoch, seq));
    }
}

/// What was answered for all threads of a project and an agent: by project, agent and key, whether
/// it allows.
pub(crate) type Remembered = BTreeMap<String, bool>;

/// The key of a remembered answer: no part holds a NUL.
pub(crate) fn remembered_key(project: &str, agent: &str, key: &str) -> String {
    format!("{project}\0{agent}\0{key}")
}

/// The state of a host's threads. It changes by [`Self::apply`] alone.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct State {
    pub(crate) head: Seq,
    pub(crate) epochs: Epochs,
    pub(crate) threads: HashMap<ThreadId, Arc<Entry>>,
    /// Subagents by the thread they are of, deleted ones excluded.
    pub(crate) children: HashMap<ThreadId, BTreeSet<ThreadId>>,
    /// Every prompt that was ever taken. Kept for good: a prompt may be sent again at any time.
    pub(crate) clients: HashMap<ClientId, (ThreadId, Seq)>,
    pub(crate) remembered: Remembered,
    /// Threads in which a turn runs.
    pub(crate) running: BTreeSet<ThreadId>,
}

impl State {
    /// The newest event.
    #[must_use]
    pub const fn head(&self) -> Seq {
        self.head
    }

    /// The starts of the host.
    #[must_use]
    pub const fn epochs(&self) -> &Epochs {
        &self.epochs
    }

    /// A thread, deleted ones included.
    #[must_use]
    pub fn thread(&self, id: ThreadId) -> Option<&Thread> {
        self.threads.get(&id).map(|entry| &entry.thread)
    }

    /// All threads, deleted ones included, in no order.
    pub fn threads(&self) -> impl Iterator<Item = &Thread> {
        self.threads.values().map(|entry| &entry.thread)
    }

    /// The prompt of that id, if it was ever taken: its thread and the event that took it.
    #[must_use]
    pub fn prompt(&self, client: ClientId) -> Option<(ThreadId, Seq)> {
        self.clients.get(&client).copied()
    }

    /// The subagents of a thread that are not deleted.
    pub(crate) fn children(&self, id: ThreadId) -> impl Iterator<Item = ThreadId> {
        self.children.get(&id).into_iter().flatten().copied()
    }

    /// A thread and everything below it that is not deleted, the thread first.
    pub(crate) fn subtree(&self, id: ThreadId) -> Vec<ThreadId> {
        let mut found = vec![id];
        let mut at = 0;
        while let Some(next) = found.get(at).copied() {
            // A log that was written by others could hold a ring.
            found.extend(
                self.children(next).filter(|child| !found.contains(child)).collect::<Vec<_>>(),
            );
            at += 1;
        }
        found
    }

    /// Takes in one event. Total: any sequence of events gives a state, and the same sequence the
    /// same state. An event that is not newer than the head changes nothing.
    pub fn apply(&mut self, event: &Event) {
        if event.seq <= self.head {
            return;
        }
        self.head = event.seq;
        let Some(id) = event.thread else {
            self.apply_to_host(event);
            return;
        };
        if let EventBody::PromptQueued { prompt } = &event.body {
            self.clients.entry(prompt.client).or_insert((id, event.seq));
        }
        if let EventBody::ThreadCreated { parent, .. } = &event.body {
            self.adopt(id, *parent);
        }
        let Some(entry) = self.entry_for(event, id) else { return };
        entry.apply(event);
        let (runs, deleted, parent) =
            (entry.thread.turn.is_some(), entry.thread.deleted, entry.thread.parent);
        if runs {
            self.running.insert(id);
        } else {
            self.running.remove(&id);
        }
        if deleted && let Some(parent) = parent {
            disown(&mut self.children, parent, id);
        }
    }

    /// Puts back a thread that was saved.
    pub(crate) fn put(&mut self, entry: Arc<Entry>) {
        let thread = &entry.thread;
        if thread.turn.is_some() {
            self.running.insert(thread.id);
        }
        if let Some(parent) = thread.parent.filter(|_| !thread.deleted) {
            self.children.entry(parent).or_default().insert(thread.id);
        }
        self.threads.insert(thread.id, entry);
    }

    /// The entry that an event is for: one that is there, or one that it makes.
    fn entry_for(&mut self, event: &Event, id: ThreadId) -> Option<&mut Entry> {
        if let Some(made) = Thread::created(event)
            && !self.threads.contains_key(&id)
        {
            let mut numbering = Numbering::default();
            numbering.apply(&event.body);
            self.threads.insert(id, Arc::new(Entry { thread: made, numbering }));
        }
        self.threads.get_mut(&id).map(Arc::make_mut)
    }

    fn adopt(&mut self, id: ThreadId, parent: Option<ThreadId>) {
        let before = self.threads.get(&id).and_then(|entry| entry.thread.parent);
        if let Some(before) = before {
            disown(&mut self.children, before, id);
        }
        if let Some(parent) = parent {
            self.children.entry(parent).or_default().insert(id);
        }
    }

    fn apply_to_host(&mut self, event: &Event) {
        if let EventBody::HostStarted { epoch } = &event.body {
            self.epochs.start(*epoch, event.seq);
        } else if let EventBody::AnswerRemembered { project, agent, key, allow } = &event.body {
            let key = remembered_key(project, agent, key);
            if self.remembered.len() >= REMEMBERED_MAX && !self.remembered.contains_key(&key) {
                self.remembered.pop_first();
            }
            self.remembered.insert(key, *allow);
        } else if let EventBody::AnswerForgotten {
            project: Some(project),
            agent: Some(agent),
            key,
        } = &event.body
        {
            self.remembered.remove(&remembered_key(project, agent, key));
        }
    }
}

/// Takes a child from its parent.
pub(crate) fn disown(
    children: &mut HashMap<ThreadId, BTreeSet<ThreadId>>,
    parent: ThreadId,
    child: ThreadId,
) {
    if let Some(siblings) = children.get_mut(&parent) {
        siblings.remove(&child);
        if siblings.is_empty() {
            children.remove(&parent);
        }
    }
}
