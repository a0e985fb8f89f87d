//! The session store: the ledger with its file and its live sockets.

use std::{collections::HashMap, fmt, path::Path, sync::Arc, time::Duration};

use parking_lot::Mutex;
use tokio::sync::{Mutex as AsyncMutex, broadcast, watch};
use wakeful_wire::{
    HostSessionId, Timestamp, UserName,
    host::{Denial, SessionEvent, SessionView},
};

use super::{
    Sources,
    file::{SessionFile, SessionFileError},
    ledger::{Effect, Issue, Ledger, SocketId, Write},
    refusal::CredentialError,
    session::Session,
    watch::{CloseCause, Outcome},
};

mod live_socket;

pub use live_socket::LiveSocket;

/// Changes of the list that a slow follower may be behind; then it misses some and lists anew.
const EVENTS: usize = 256;
/// A clock may be set, and a machine may sleep: no wait for the clock is longer than this.
const LOOK_AGAIN: Duration = Duration::from_secs(15);

/// The sessions of this host.
///
/// Reading costs no IO: every session is held in memory, at most as many as the policy allows. A
/// change is written to the file before anybody can see it.
#[derive(Clone)]
pub struct SessionStore {
    inner: Arc<Inner>,
}

struct Inner {
    live: Mutex<Live>,
    /// Lets one change run at a time, from its plan to its effects.
    file: AsyncMutex<SessionFile>,
    events: broadcast::Sender<SessionEvent>,
    sources: Sources,
}

struct Live {
    ledger: Ledger,
    signals: HashMap<SocketId, watch::Sender<Option<CloseCause>>>,
}

impl fmt::Debug for SessionStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SessionStore").finish_non_exhaustive()
    }
}

impl SessionStore {
    /// Opens the file, and returns with the store the key that its tokens are signed with.
    pub(super) async fn open(
        path: &Path,
        sources: Sources,
        sessions_max: usize,
    ) -> Result<(Self, [u8; 32]), SessionFileError> {
        let fresh_key = sources.random();
        let (file, contents) = SessionFile::open(path, fresh_key, sources.now()).await?;
        let live =
            Live { ledger: Ledger::new(contents.sessions, sessions_max), signals: HashMap::new() };
        let inner = Inner {
            live: Mutex::new(live),
            file: AsyncMutex::new(file),
            events: broadcast::channel(EVENTS).0,
            sources,
        };
        Ok((Self { inner: Arc::new(inner) }, contents.signing_key))
    }

    /// A session whose credentials are good now.
    ///
    /// # Errors
    /// [`Denial::SessionUnknown`], [`Denial::SessionRevoked`] or [`Denial::SessionExpired`].
    pub fn holding(&self, id: HostSessionId) -> Result<Session, Denial> {
        let now = self.inner.sources.now();
        self.inner.live.lock().ledger.holding(id, now).cloned()
    }

    /// The sessions that are listed, in the order of their issue: not revoked, and not expired or
    /// still connected.
    #[must_use]
    pub fn list(&self) -> Vec<SessionView> {
        self.inner.tick();
        let now = self.inner.sources.now();
        self.inner.live.lock().ledger.list(now)
    }

    /// Changes of the list from now on. Follow first, then list. A follower that is too slow is
    /// told that it missed some and lists anew.
    #[must_use]
    pub fn follow(&self) -> broadcast::Receiver<SessionEvent> {
        self.inner.events.subscribe()
    }

    pub(super) async fn issue(
        &self,
        issue: Issue,
        used: Option<Write>,
    ) -> Result<Session, CredentialError> {
        self.change(move |ledger, now| {
            let (session, planned) = ledger.plan_issue(issue, now)?;
            // The grant comes first: if it was used, nothing else is written.
            Ok((session, used.into_iter().chain(planned).collect()))
        })
        .await
    }

    pub(super) async fn extend(
        &self,
        id: HostSessionId,
        lifetime: Duration,
    ) -> Result<Session, CredentialError> {
        self.change(move |ledger, now| ledger.plan_extend(id, lifetime, now)).await
    }

    /// Revokes a session: its credentials are refused from now on and its sockets close. Says
    /// whether there was one to revoke.
    ///
    /// # Errors
    /// When the file cannot be written; then nothing has changed.
    pub async fn revoke(&self, id: HostSessionId) -> Result<bool, CredentialError> {
        self.change(move |ledger, now| {
            let writes = ledger.plan_revoke(id, now);
            Ok((!writes.is_empty(), writes))
        })
        .await
    }

    /// Revokes every session but `keep`: those of `subject`, or everybody's. Says how many.
    ///
    /// # Errors
    /// When the file cannot be written; then nothing has changed.
    pub async fn revoke_others(
        &self,
        keep: HostSessionId,
        subject: Option<UserName>,
    ) -> Result<usize, CredentialError> {
        self.change(move |ledger, now| {
            let writes = ledger.plan_revoke_others(keep, subject.as_ref(), now);
            Ok((writes.len(), writes))
        })
        .await
    }

    /// Opens a socket on a session: it counts as connected until what is returned is dropped.
    ///
    /// # Errors
    /// When the session's credentials are not good any more.
    pub(super) async fn connect(&self, id: HostSessionId) -> Result<LiveSocket, Denial> {
        let now = self.inner.sources.now();
        let (socket, record) = {
            let mut live = self.inner.live.lock();
            let (socket, effects) = live.ledger.connect(id, now)?;
            let (sender, signal) = watch::channel(None);
            live.signals.insert(socket, sender);
            let record = self.inner.dispatch(&mut live, effects);
            (LiveSocket { id: socket, inner: Arc::clone(&self.inner), signal }, record)
        };
        self.inner.record(record, now).await;
        Ok(socket)
    }

    /// Looks at the clock: closes sockets whose session has run out, takes sessions that have run
    /// out from the list. Every open socket does so in time by itself ([`LiveSocket::ended`]).
    pub fn tick(&self) {
        self.inner.tick();
    }

    /// Looks at the clock whenever there is something to see, for as long as it is polled. Without
    /// it a session that runs out unconnected is reported as removed only when somebody lists.
    pub async fn keep_time(&self) {
        loop {
            self.inner.tick();
            let deadline = self.inner.live.lock().ledger.poll_deadline();
            self.inner.wait_for(deadline).await;
        }
    }

    /// Closes the file, so that it is whole. Changes fail from now on.
    pub async fn close(&self) {
        self.inner.file.lock().await.close().await;
    }

    /// Runs a change to its end, even if whoever asked for it goes away: once written it is also
    /// applied.
    async fn change<T, P>(&self, plan: P) -> Result<T, CredentialError>
    where
        T: Send + 'static,
        P: FnOnce(&Ledger, Timestamp) -> Result<(T, Vec<Write>), Denial> + Send + 'static,
    {
        let inner = Arc::clone(&self.inner);
        tokio::spawn(async move { inner.change(plan).await })
            .await
            .unwrap_or(Err(CredentialError::File(SessionFileError::Interrupted)))
    }

    #[cfg(test)]
    pub(super) fn check_counts(&self) {
        self.inner.live.lock().ledger.check_counts();
    }
}

impl Inner {
    async fn change<T, P>(&self, plan: P) -> Result<T, CredentialError>
    where
        P: FnOnce(&Ledger, Timestamp) -> Result<(T, Vec<Write>), Denial>,
    {
        let file = self.file.lock().await;
        let now = self.sources.now();
        let (answer, writes) = plan(&self.live.lock().ledger, now)?;
        file.write(&writes, now).await?;
        let record = {
            let mut live = self.live.lock();
            let effects = live.ledger.apply(&writes, now);
            self.dispatch(&mut live, effects)
        };
        if let Err(error) = file.write(&record, now).await {
            unrecorded(&error);
        }
        Ok(answer)
    }

    fn tick(&self) {
        let now = self.sources.now();
        let mut live = self.live.lock();
        let effects = live.ledger.tick(now);
        self.dispatch(&mut live, effects);
    }

    fn disconnect(&self, socket: SocketId) {
        let now = self.sources.now();
        let mut live = self.live.lock();
        live.signals.remove(&socket);
        let effects = live.ledger.disconnect(socket, now);
        self.dispatch(&mut live, effects);
    }

    /// Tells sockets and followers, in order, and returns what is to be recorded at leisure.
    fn dispatch(&self, live: &mut Live, effects: Vec<Effect>) -> Vec<Write> {
        let mut record = Vec::new();
        for effect in effects {
            match effect {
                Effect::Socket(socket, Outcome::Close(cause)) => {
                    if let Some(signal) = live.signals.get(&socket) {
                        signal.send_replace(Some(cause));
                    }
                }
                // A socket that waits for the old end looks again in time: see `ended`.
                Effect::Socket(_, Outcome::Moved { .. }) => {}
                // Nobody may be following.
                Effect::Listing(event) => drop(self.events.send(event)),
                Effect::Record(write) => record.push(write),
            }
        }
        record
    }

    /// Writes what is only for the list. A failure costs a date in it, no more.
    async fn record(&self, writes: Vec<Write>, now: Timestamp) {
        if writes.is_empty() {
            return;
        }
        if let Err(error) = self.file.lock().await.write(&writes, now).await {
            unrecorded(&error);
        }
    }

    async fn wait_for(&self, deadline: Option<Timestamp>) {
        let wait = deadline.map_or(LOOK_AGAIN, |at| self.sources.now().until(at));
        // One millisecond more: a wait that ends early would look in vain.
        tokio::time::sleep(wait.min(LOOK_AGAIN) + Duration::from_millis(1)).await;
    }
}

fn unrecorded(error: &CredentialError) {
    tracing::warn!(error = error as &dyn std::error::Error, "the time of a connection is not kept");
}
