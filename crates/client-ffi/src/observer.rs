//! Telling an application what has changed: one thread, one change after another, never under a
//! lock.

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread::ThreadId,
    time::Duration,
};

use tokio::{
    runtime::{Builder, Runtime},
    sync::{
        Notify,
        broadcast::{self, error::RecvError},
        oneshot,
    },
};
use wakeful_link as link;

use crate::error::ClientError;

/// How long an end waits for a call of the observer that is under way.
const END_TIME: Duration = Duration::from_secs(5);

/// What has changed. It says where to look; what holds now is read from the session.
#[derive(Debug, Clone, PartialEq, Eq, uniffi::Enum)]
pub enum Change {
    /// Which hosts there are, or what is kept of one.
    Hosts,
    /// The connection to a server, by its address.
    Server {
        /// The server.
        server: String,
    },
    /// A host's connection.
    Connection {
        /// The host.
        host: String,
    },
    /// A host's agents, or what else it says of itself.
    Configuration {
        /// The host.
        host: String,
    },
    /// A host's list: its state, or its rows as they are at this moment.
    Threads {
        /// The host.
        host: String,
    },
    /// The rows of hosts as [`threads`](crate::ClientSession::threads) lists them.
    Lists,
    /// A thread that is open.
    Thread {
        /// The host.
        host: String,
        /// The thread.
        thread: String,
    },
    /// The observer was too slow, so changes were left out: everything is to be read anew.
    Missed,
}

impl Change {
    /// What the link says; nothing where that is not for observers.
    fn of(change: link::Change) -> Option<Self> {
        match change {
            link::Change::Hosts(_) => Some(Self::Hosts),
            link::Change::Platform(server) => Some(Self::Server { server: server.to_string() }),
            link::Change::Connection(host) => Some(Self::Connection { host: host.to_string() }),
            link::Change::Configuration(host) => {
                Some(Self::Configuration { host: host.to_string() })
            }
            link::Change::Shell(host) | link::Change::Rows(host) => {
                Some(Self::Threads { host: host.to_string() })
            }
            link::Change::Lists => Some(Self::Lists),
            link::Change::Thread { host, thread } => {
                Some(Self::Thread { host: host.to_string(), thread: thread.to_string() })
            }
            link::Change::Operation { .. }
            | link::Change::Absence { .. }
            | link::Change::Answered { .. } => None,
        }
    }
}

/// What an observer failed with. It changes nothing: the next change is told all the same.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error, uniffi::Error)]
#[uniffi(flat_error)]
pub enum ObserverError {
    /// It raised or threw something.
    #[error("the observer failed: {0}")]
    Failed(String),
}

impl From<uniffi::UnexpectedUniFFICallbackError> for ObserverError {
    fn from(error: uniffi::UnexpectedUniFFICallbackError) -> Self {
        Self::Failed(crate::error::words(&error.reason))
    }
}

/// Told what changes. Implemented by the application.
#[uniffi::export(with_foreign)]
pub trait Observer: Send + Sync {
    /// Something has changed. Always called on the same thread, which is the client's own, and for
    /// one change at a time; no lock of the client is held, so the session can be read from here.
    /// While it runs further changes wait; of more than 4096 the oldest go, and
    /// [`Change::Missed`] is told in their place.
    ///
    /// # Errors
    /// Whatever it fails with is logged and otherwise ignored.
    fn changed(&self, change: Change) -> Result<(), ObserverError>;
}

/// The thread that tells an observer.
#[derive(Debug)]
pub(crate) struct Observing {
    stop: Arc<Stop>,
    thread: ThreadId,
    done: oneshot::Receiver<()>,
}

/// That an observer is to be told nothing any more.
#[derive(Debug, Default)]
struct Stop {
    said: AtomicBool,
    stirred: Notify,
}

impl Observing {
    /// Begins to tell an observer what comes.
    pub(crate) fn begin(
        observer: Arc<dyn Observer>,
        changes: broadcast::Receiver<link::Change>,
    ) -> Result<Self, ClientError> {
        let broken = |error: std::io::Error| ClientError::storage(error.into());
        let stop = Arc::<Stop>::default();
        let (says, done) = oneshot::channel();
        // For waiting alone: it has no threads, and outlives the client's own runtime.
        let waiting = Builder::new_current_thread().build().map_err(broken)?;
        let until = Arc::clone(&stop);
        let telling = move || {
            tell(&*observer, changes, &waiting, &until);
            // The observer is the application's: whoever waits for the end may rely on it that
            // nothing of it runs any more.
            let _panicked = catch_unwind(AssertUnwindSafe(move || drop(observer)));
            let _unheard = says.send(());
        };
        let name = "wakeful-observer".to_owned();
        let thread = std::thread::Builder::new().name(name).spawn(telling).map_err(broken)?;
        Ok(Self { stop, thread: thread.thread().id(), done })
    }

    /// No call begins from now on.
    pub(crate) fn stop(&self) {
        self.stop.said.store(true, Ordering::Release);
        self.stop.stirred.notify_one();
    }

    /// Whether this is called by the observer itself.
    pub(crate) fn is_here(&self) -> bool {
        std::thread::current().id() == self.thread
    }

    /// Waits until nothing of the observer runs any more, no longer than [`END_TIME`].
    pub(crate) async fn ended(self) {
        self.stop();
        let _in_time = tokio::time::timeout(END_TIME, self.done).await;
    }
}

/// Tells an observer until the client ends or nobody wants it any more.
fn tell(
    observer: &dyn Observer,
    mut changes: broadcast::Receiver<link::Change>,
    waiting: &Runtime,
    stop: &Stop,
) {
    loop {
        let change = waiting.block_on(async {
            tokio::select! {
                () = stop.stirred.notified() => None,
                change = changes.recv() => Some(change),
            }
        });
        let change = match change {
            Some(Ok(change)) => Change::of(change),
            Some(Err(RecvError::Lagged(_))) => Some(Change::Missed),
            Some(Err(RecvError::Closed)) | None => return,
        };
        if stop.said.load(Ordering::Acquire) {
            return;
        }
        let Some(change) = change else { continue };
        match catch_unwind(AssertUnwindSafe(|| observer.changed(change))) {
            Ok(Ok(())) => {}
            Ok(Err(error)) => tracing::warn!(%error, "an observer was told of a change"),
            Err(_) => tracing::warn!("an observer panicked when it was told of a change"),
        }
    }
}

#[cfg(test)]
mod tests;
