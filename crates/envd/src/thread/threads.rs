//! The handle on a host's threads.

use std::{collections::HashMap, fmt, path::PathBuf, sync::Arc, time::Duration};

use parking_lot::{Mutex, RwLock};
use tokio::sync::{mpsc, oneshot, watch};
use tokio_util::sync::CancellationToken;
use wakeful_wire::{
    Timestamp,
    rpc::{
        Cursor, Detail, OlderSettled, Omissions, Page, PageCursor, RunningTurn, Seq, ShellSnapshot,
        Thread, ThreadId,
    },
};

use super::{
    command::{Append, Command, Refused, Taken},
    decide::Policy,
    limits::SEARCH_MAX,
    log::{Found, Log, LogError, PageLimits},
    shell::{RowKey, Rows},
    subscription::{Follower, ShellSubscription, ThreadSubscription},
    view::{FeedLimits, View},
    writer::{self, Input},
};
use crate::clock;

/// How many commands wait for the writer; whoever sends more waits as well.
const INPUTS: usize = 1_024;

/// How a host's threads are kept.
#[derive(Clone)]
pub struct Settings {
    /// The workspace; the log is in [`super::log::DIRECTORY`] below it.
    pub workspace: PathBuf,
    /// The host's clock.
    pub clock: Arc<dyn Fn() -> Timestamp + Send + Sync>,
    /// How long a piece of streamed content may wait for others to share its sync. Whatever a
    /// person waits for is written at once.
    pub flush_delay: Duration,
    /// How many events come between two checkpoints.
    pub checkpoint_every: usize,
    /// How often what is due by time is looked for.
    pub tick: Duration,
    /// What the host itself decides by.
    pub policy: Policy,
    /// How much subscribers are sent at once, and what is kept in memory for them.
    pub feeds: FeedLimits,
}

impl Settings {
    /// The settings for a workspace, with the system's clock.
    #[must_use]
    pub fn new(workspace: PathBuf) -> Self {
        Self {
            workspace,
            clock: Arc::new(clock::wall),
            flush_delay: Duration::from_millis(20),
            checkpoint_every: 512,
            tick: Duration::from_secs(30),
            policy: Policy::default(),
            feeds: FeedLimits::default(),
        }
    }
}

impl fmt::Debug for Settings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Settings").field("workspace", &self.workspace).finish_non_exhaustive()
    }
}

/// Why something about threads was not done.
#[derive(Debug, thiserror::Error)]
pub enum ThreadsError {
    /// It is refused. Nothing happened.
    #[error(transparent)]
    Refused(#[from] Refused),
    /// The log could not be read.
    #[error(transparent)]
    Log(#[from] LogError),
    /// The log could not be written, or is closed. Whether it happened is unknown; sending it again
    /// with the same client id is safe.
    #[error("the thread log cannot be written")]
    Unavailable,
}

/// What is shared by the writer and everybody who reads.
#[derive(Debug)]
pub(super) struct Shared {
    pub(super) view: RwLock<View>,
    pub(super) log: Log,
    /// The newest published event.
    pub(super) head: watch::Sender<Seq>,
    /// The newest published event that changed the list.
    pub(super) listed: watch::Sender<Seq>,
    /// The newest published event of each thread that somebody follows.
    pub(super) followed: Mutex<HashMap<ThreadId, watch::Sender<Seq>>>,
    /// Cancelled when the log is closed.
    pub(super) closed: CancellationToken,
}

/// A host's threads: the one owner of their state. Cheap to clone; the log is closed when the last
/// clone is gone or [`Self::close`] was called.
#[derive(Debug, Clone)]
pub struct Threads {
    shared: Arc<Shared>,
    inputs: mpsc::Sender<Input>,
}

impl Threads {
    /// Opens the threads of a workspace, and closes whatever a crash or a stop left open: afterwards
    /// no turn runs.
    ///
    /// # Errors
    /// If the log is in use, of a newer release, or cannot be read and written.
    pub async fn open(settings: Settings) -> Result<Self, LogError> {
        let log = Log::open(&settings.workspace).await?;
        let loaded = log.load().await?;
        let head = loaded.view.head();
        let shared = Arc::new(Shared {
            view: RwLock::new(loaded.view.with_limits(settings.feeds)),
            log,
            head: watch::Sender::new(head),
            listed: watch::Sender::new(head),
            followed: Mutex::new(HashMap::new()),
            closed: CancellationToken::new(),
        });
        let (inputs, receiver) = mpsc::channel(INPUTS);
        let (state, checkpoint) = (loaded.state, loaded.checkpoint);
        writer::start(Arc::clone(&shared), state, checkpoint, receiver, settings).await?;
        Ok(Self { shared, inputs })
    }

    /// Has a command decided, and answers when what it caused is durable and published.
    ///
    /// # Errors
    /// [`ThreadsError::Refused`] if nothing happened, [`ThreadsError::Unavailable`] if that is not
    /// known.
    pub async fn command(&self, command: Command) -> Result<Taken, ThreadsError> {
        let (reply, answer) = oneshot::channel();
        let input = Input::Command { command, reply };
        self.inputs.send(input).await.map_err(|_| ThreadsError::Unavailable)?;
        answer.await.map_err(|_| ThreadsError::Unavailable)?
    }

    /// Takes in what an agent reports, and answers when it is durable and published. Streamed
    /// content may wait for the flush delay; whoever has more meanwhile gathers it for the next
    /// call.
    ///
    /// # Errors
    /// As for [`Self::command`]; [`Refused::Stale`] if the turn is over.
    pub async fn append(&self, append: Append) -> Result<Taken, ThreadsError> {
        self.command(Command::Agent(append)).await
    }

    /// Writes what is under way, saves the state and closes the log. Later commands are
    /// unavailable.
    pub async fn close(&self) {
        let (reply, answer) = oneshot::channel();
        if self.inputs.send(Input::Close { reply }).await.is_ok() {
            let _closed_already = answer.await;
        }
    }

    /// The newest published position.
    #[must_use]
    pub fn cursor(&self) -> Cursor {
        self.shared.view.read().cursor()
    }

    /// Changes when something was published.
    #[must_use]
    pub fn head(&self) -> watch::Receiver<Seq> {
        self.shared.head.subscribe()
    }

    /// Every event from a position on, in order, each once; for those who act on them.
    #[must_use]
    pub fn follow(&self, after: Seq) -> Follower {
        Follower::new(Arc::clone(&self.shared), after)
    }

    /// The running turns.
    #[must_use]
    pub fn running(&self) -> Vec<(ThreadId, RunningTurn)> {
        let view = self.shared.view.read();
        let mut running: Vec<_> =
            view.threads().filter_map(|thread| Some((thread.id, thread.turn?))).collect();
        running.sort_unstable_by_key(|(id, turn)| (turn.started_at, *id));
        running
    }

    /// A thread's small state.
    ///
    /// # Errors
    /// If the thread is unknown or deleted.
    pub fn thread(&self, id: ThreadId) -> Result<Thread, Refused> {
        match self.shared.view.read().thread(id) {
            None => Err(Refused::UnknownThread),
            Some(thread) if thread.deleted => Err(Refused::Deleted),
            Some(thread) => Ok(thread.clone()),
        }
    }

    /// A subscription of the list, from a cursor or from a snapshot.
    #[must_use]
    pub fn subscribe_shell(&self, cursor: Option<Cursor>, omit: Omissions) -> ShellSubscription {
        ShellSubscription::new(Arc::clone(&self.shared), cursor, omit)
    }

    /// A subscription of a thread, from a cursor or from a snapshot.
    ///
    /// # Errors
    /// If the thread is unknown or deleted.
    pub fn subscribe_thread(
        &self,
        id: ThreadId,
        cursor: Option<Cursor>,
    ) -> Result<ThreadSubscription, Refused> {
        ThreadSubscription::new(Arc::clone(&self.shared), id, cursor)
    }

    /// The list. Nothing if the list has not changed since `unless`, which then still is a good
    /// cursor: what was read with the same omissions stands.
    #[must_use]
    pub fn shell(&self, omit: Omissions, unless: Option<Cursor>) -> Option<ShellSnapshot> {
        let view = self.shared.view.read();
        let same = |cursor: Cursor| view.confirms(cursor) && view.shell().newest() <= cursor.seq;
        if unless.is_some_and(same) { None } else { Some(view.shell_snapshot(omit)) }
    }

    /// A thread with its newest page.
    ///
    /// # Errors
    /// If the thread is unknown or deleted, or the log cannot be read.
    pub async fn detail(&self, id: ThreadId, limits: PageLimits) -> Result<Detail, ThreadsError> {
        self.thread(id)?;
        let entry = self.shared.view.read().entry(id).ok_or(Refused::UnknownThread)?;
        let detail = self.shared.log.detail(&entry, limits).await?;
        Ok(detail.ok_or(Refused::Deleted)?)
    }

    /// The page of a thread before a cursor.
    ///
    /// # Errors
    /// If the thread is unknown, deleted, or was made anew since, or the log cannot be read.
    pub async fn page(
        &self,
        id: ThreadId,
        before: PageCursor,
        limits: PageLimits,
    ) -> Result<Page, ThreadsError> {
        self.thread(id)?;
        let page = self.shared.log.page(id, before, limits).await?;
        Ok(page.ok_or(Refused::Invalid("page"))?)
    }

    /// All active threads that share a root with a thread.
    ///
    /// # Errors
    /// If the thread is unknown or deleted.
    pub fn family(&self, id: ThreadId) -> Result<Rows, Refused> {
        self.thread(id)?;
        self.shared.view.read().family(id).ok_or(Refused::UnknownThread)
    }

    /// A page of settled top-level threads, newest first.
    #[must_use]
    pub fn settled(&self, before: Option<RowKey>, limit: usize) -> Rows {
        self.shared.view.read().settled(before, limit)
    }

    /// A page of archived threads, newest first.
    #[must_use]
    pub fn archived(&self, before: Option<RowKey>, limit: usize) -> Rows {
        self.shared.view.read().archived(before, limit)
    }

    /// How many settled threads are older than those that a snapshot keeps, with what that is at.
    #[must_use]
    pub fn older_settled(&self) -> (Seq, OlderSettled) {
        let view = self.shared.view.read();
        (view.head(), view.shell().older_settled())
    }

    /// Threads whose title or texts hold the words, with their rows: titles first, then texts,
    /// newest first.
    ///
    /// # Errors
    /// If the text is too long, or the log cannot be read.
    pub async fn search(
        &self,
        text: &str,
        limit: usize,
    ) -> Result<(Rows, Vec<Found>), ThreadsError> {
        if text.len() > SEARCH_MAX {
            return Err(Refused::TooLarge("search text").into());
        }
        let limit = limit.clamp(1, super::limits::ROWS_PAGE_MAX);
        let found = self.shared.log.search(text, limit).await?;
        let view = self.shared.view.read();
        let mut ids = titled(&view, text, limit);
        for found in &found {
            if ids.len() < limit && !ids.contains(&found.thread) {
                ids.push(found.thread);
            }
        }
        let rows = Rows { seq: view.head(), rows: view.rows_of(ids), next: None };
        Ok((rows, found))
    }
}

/// Threads whose title holds a text, whatever its case; newest activity first.
fn titled(view: &View, text: &str, limit: usize) -> Vec<ThreadId> {
    let wanted = text.trim().to_lowercase();
    if wanted.is_empty() {
        return Vec::new();
    }
    let holds = |thread: &&Thread| {
        !thread.deleted
            && thread.title.as_ref().is_some_and(|title| title.to_lowercase().contains(&wanted))
    };
    let mut found: Vec<_> =
        view.threads().filter(holds).map(|thread| (thread.active_at, thread.id)).collect();
    found.sort_unstable_by(|one, other| other.cmp(one));
    found.into_iter().take(limit).map(|(_, id)| id).collect()
}
