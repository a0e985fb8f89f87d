//! Binds the threads of a host to their agents.
//!
//! The core of threads decides which turn begins when; the runner makes it happen and reports what
//! comes of it. It is told of every durable event in order ([`Runner::observe`]), keeps of them only
//! what is still to be done (one slot per thread, bounded by what a thread can have pending), and
//! has one task per thread that an agent works in.
//!
//! Telling it never waits and never fails, so that a task that waits for the log is never what the
//! log's reader waits for.

mod slot;
mod work;
mod writing;

use std::{
    collections::{BTreeMap, HashMap},
    sync::Arc,
    time::Duration,
};

use async_trait::async_trait;
use parking_lot::Mutex;
use tokio::{sync::Semaphore, time::Instant};
use tokio_util::{sync::CancellationToken, task::TaskTracker};
use wakeful_wire::rpc::{Event, EventBody, Thread, ThreadId, TurnId};

use self::slot::Slot;
use super::port::Agent;
use crate::thread::{
    Follower, Threads, ThreadsError,
    command::{Append, Refused},
};

/// What the runner needs of the threads of a host.
#[async_trait]
pub trait Reports: Send + Sync + 'static {
    /// A thread as it is now; nothing if it is unknown or deleted.
    fn thread(&self, id: ThreadId) -> Option<Thread>;

    /// Writes down what an agent reports; returns when it is durable.
    ///
    /// # Errors
    /// Why it was not taken.
    async fn append(&self, append: Append) -> Result<(), NotTaken>;
}

/// Why a report was not taken.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NotTaken {
    /// It is refused: nothing of it happened, and never will.
    #[error("it was refused")]
    Refused(#[source] Refused),
    /// The log cannot be written just now.
    #[error("the thread log cannot be written")]
    Unavailable,
}

#[async_trait]
impl Reports for Threads {
    fn thread(&self, id: ThreadId) -> Option<Thread> {
        Self::thread(self, id).ok()
    }

    async fn append(&self, append: Append) -> Result<(), NotTaken> {
        match Self::append(self, append).await {
            Ok(_) => Ok(()),
            Err(ThreadsError::Refused(refused)) => Err(NotTaken::Refused(refused)),
            Err(ThreadsError::Log(_) | ThreadsError::Unavailable) => Err(NotTaken::Unavailable),
        }
    }
}

/// How long to wait before a log that cannot be read or written is tried again.
const AGAIN: Duration = Duration::from_millis(500);
/// How often a report is tried again.
const TRIES: u32 = 8;

/// Keeps the environment awake.
pub trait Leases: Send + Sync + 'static {
    /// Holds the environment awake for a turn, until what is returned is dropped. Called when the
    /// turn has begun, also while it waits for its place.
    fn hold(&self, thread: ThreadId, turn: TurnId) -> Box<dyn Lease>;

    /// An agent did something outside of a turn: the environment is in use just now.
    fn touch(&self, thread: ThreadId);
}

/// Something that holds until it is dropped.
pub trait Lease: Send + Sync {}

impl<T: Send + Sync> Lease for T {}

/// How much happens at once.
#[derive(Debug, Clone)]
pub struct RunnerLimits {
    /// Turns that run at once; a further one waits for its place, in order.
    pub turns: usize,
    /// Agents that live at once. For a further one the agent that has been idle longest is ended;
    /// while none is idle, the bound is `turns`.
    pub agents: usize,
    /// How long an agent without a turn lives after it last said something.
    pub idle: Duration,
}

impl Default for RunnerLimits {
    fn default() -> Self {
        Self { turns: 8, agents: 8, idle: Duration::from_secs(10 * 60) }
    }
}

/// Runs the turns of a host.
#[derive(Clone)]
pub struct Runner(Arc<Shared>);

struct Shared {
    reports: Arc<dyn Reports>,
    agents: BTreeMap<String, Arc<dyn Agent>>,
    leases: Arc<dyn Leases>,
    limits: RunnerLimits,
    places: Arc<Semaphore>,
    slots: Mutex<HashMap<ThreadId, Arc<Slot>>>,
    tasks: TaskTracker,
    stopping: CancellationToken,
}

impl std::fmt::Debug for Runner {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Runner")
            .field("agents", &self.0.agents.keys())
            .field("limits", &self.0.limits)
            .finish_non_exhaustive()
    }
}

impl Runner {
    /// A runner of `agents`, by the names that threads ask for.
    #[must_use]
    pub fn new(
        reports: Arc<dyn Reports>,
        agents: BTreeMap<String, Arc<dyn Agent>>,
        leases: Arc<dyn Leases>,
        limits: RunnerLimits,
    ) -> Self {
        Self(Arc::new(Shared {
            reports,
            agents,
            leases,
            places: Arc::new(Semaphore::new(limits.turns)),
            limits,
            slots: Mutex::default(),
            tasks: TaskTracker::new(),
            stopping: CancellationToken::new(),
        }))
    }

    /// Takes in one event. To be called with every durable event, in order, from the start of the
    /// host on (`Command::Start` cuts what an earlier start left running). Never waits. Needs a
    /// tokio runtime.
    pub fn observe(&self, event: &Event) {
        let Some(thread) = event.thread else { return };
        let shared = &self.0;
        match &event.body {
            EventBody::TurnStarted { turn, prompt, .. } => {
                let lease = shared.leases.hold(thread, *turn);
                self.want(thread, |wanted| wanted.start = Some((*turn, prompt.clone(), lease)));
            }
            EventBody::CancelRequested { turn } => {
                self.want_of_known(thread, |wanted| wanted.cancel = Some(*turn));
            }
            EventBody::PermissionAnswered { request, option, .. } => {
                let answer = (*request, option.clone());
                self.want_of_known(thread, |wanted| wanted.answers.push(answer));
            }
            EventBody::ModeRequested { mode } => {
                self.want_of_known(thread, |wanted| wanted.mode = Some(mode.clone()));
            }
            EventBody::Deleted {} => self.want_of_known(thread, |wanted| wanted.end = true),
            EventBody::HostStarted { .. }
            | EventBody::AnswerRemembered { .. }
            | EventBody::AnswerForgotten { .. }
            | EventBody::ThreadCreated { .. }
            | EventBody::Titled { .. }
            | EventBody::Pinned {}
            | EventBody::Unpinned {}
            | EventBody::Snoozed { .. }
            | EventBody::Unsnoozed { .. }
            | EventBody::Archived {}
            | EventBody::Restored {}
            | EventBody::Settled { .. }
            | EventBody::Unsettled { .. }
            | EventBody::PromptQueued { .. }
            | EventBody::PromptRemoved { .. }
            | EventBody::QueueReleased {}
            | EventBody::TurnEnded { .. }
            | EventBody::Text { .. }
            | EventBody::Tool { .. }
            | EventBody::Terminal { .. }
            | EventBody::Plan { .. }
            | EventBody::Notice { .. }
            | EventBody::PermissionRequested { .. }
            | EventBody::PermissionWithdrawn { .. }
            | EventBody::ModeChanged { .. }
            | EventBody::SessionBound { .. }
            | EventBody::AgentEnded { .. }
            | EventBody::UsageReported { .. }
            | EventBody::Unknown(_) => {}
        }
    }

    /// Observes what a follower reads, until the host closes its threads or the runner stops.
    ///
    /// `follower` is to begin where the threads were right after they were opened
    /// (`threads.follow(threads.cursor().seq)`), so that no turn is missed.
    pub async fn run(&self, mut follower: Follower) {
        loop {
            let next = tokio::select! {
                next = follower.next() => next,
                () = self.0.stopping.cancelled() => return,
            };
            match next {
                Ok(Some(events)) => {
                    for recorded in &events {
                        self.observe(&recorded.event);
                    }
                }
                Ok(None) => return,
                Err(error) => {
                    tracing::warn!(%error, "the thread log cannot be read; agents wait for it");
                    tokio::time::sleep(AGAIN).await;
                }
            }
        }
    }

    /// Ends every session: running turns are cut, agents leave or are killed. Returns when no
    /// process of an agent is left. Nothing is started any more.
    pub async fn stop(&self) {
        self.0.stopping.cancel();
        self.0.tasks.close();
        self.0.tasks.wait().await;
    }

    /// How many agents live.
    #[must_use]
    pub fn agents_alive(&self) -> usize {
        self.0.slots.lock().values().filter(|slot| slot.is_alive()).count()
    }

    /// Wants something of a thread, which gets a task if it has none.
    fn want(&self, thread: ThreadId, change: impl FnOnce(&mut slot::Wanted)) {
        let mut slots = self.0.slots.lock();
        if let Some(slot) = slots.get(&thread) {
            slot.want(change);
            return;
        }
        if self.0.stopping.is_cancelled() {
            return;
        }
        let slot = Arc::new(Slot::default());
        slot.want(change);
        slots.insert(thread, Arc::clone(&slot));
        let work = work::Work::new(Arc::clone(&self.0), thread, slot);
        self.0.tasks.spawn(work.run());
    }

    /// Wants something of a thread that an agent works in; of any other there is nothing to want.
    fn want_of_known(&self, thread: ThreadId, change: impl FnOnce(&mut slot::Wanted)) {
        if let Some(slot) = self.0.slots.lock().get(&thread) {
            slot.want(change);
        }
    }
}

impl Shared {
    /// Takes a thread's slot away, unless something is wanted of it again.
    fn retire(&self, thread: ThreadId, slot: &Slot) -> bool {
        let mut slots = self.slots.lock();
        let idle = !slot.is_wanted();
        if idle {
            slots.remove(&thread);
        }
        idle
    }

    /// Makes room for one more agent: asks the one that has been idle longest to end, if there are
    /// as many as may be.
    fn make_room(&self) {
        let slots = self.slots.lock();
        if slots.values().filter(|slot| slot.is_alive()).count() < self.limits.agents {
            return;
        }
        let longest: Option<(Instant, &Arc<Slot>)> = slots
            .values()
            .filter_map(|slot| Some((slot.idle_since()?, slot)))
            .min_by_key(|(since, _)| *since);
        if let Some((_, slot)) = longest {
            slot.want(|wanted| wanted.end = true);
        }
    }
}
