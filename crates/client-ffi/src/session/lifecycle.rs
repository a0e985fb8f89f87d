//! Start and end.

use std::{future::Future, sync::Arc};

use parking_lot::{Mutex, RwLock};
use tokio::runtime::{Builder, Handle, Runtime};
use wakeful_client::{runtime::Client, signals};

use super::{ClientSession, Live};
use crate::{
    config::ClientConfig,
    error::ClientError,
    observer::{Observer, Observing},
};

/// Threads that carry a client's work. It waits much more than it computes.
const WORKERS: usize = 2;

#[uniffi::export]
impl ClientSession {
    /// Starts a client: reads what is kept, and begins to connect. `observer`, if there is one, is
    /// told of every change from the start on.
    ///
    /// # Errors
    /// [`ClientError::Invalid`] for a configuration that cannot be meant, [`ClientError::Storage`]
    /// where its files cannot be read or made.
    #[uniffi::constructor]
    pub async fn start(
        config: ClientConfig,
        observer: Option<Arc<dyn Observer>>,
    ) -> Result<Arc<Self>, ClientError> {
        let runtime = OwnRuntime::new()?;
        let watch = config.watch_machine;
        let starting = async move {
            let setup = config.setup()?;
            let (key, paired) = (Arc::clone(&setup.key), setup.paired.clone());
            let label = setup.label.clone();
            let client = Client::start(setup).await.map_err(ClientError::storage)?;
            let changes = client.changes();
            let signals = watch.then(|| signals::attach(&client));
            Ok::<_, ClientError>((client, key, paired, label, changes, signals))
        };
        let started = runtime.run(starting).await??;
        let (client, key, paired, label, changes, signals) = started;
        let observing = match observer {
            Some(observer) => Some(Observing::begin(observer, changes)?),
            None => None,
        };
        let live = Live {
            client,
            key,
            paired,
            label,
            opened: Mutex::default(),
            _signals: signals,
            runtime,
        };
        let live = RwLock::new(Some(Arc::new(live)));
        Ok(Arc::new(Self { live, observing: Mutex::new(observing) }))
    }

    /// Ends the client: stores what has changed, closes connections, and lets the observer go,
    /// within ten seconds. No call of the observer begins once this was called, and where it is not
    /// the observer itself that closes, none runs any more when this returns. Whatever else is
    /// awaited then fails with [`ClientError::Closed`], and so does everything afterwards. A second
    /// time is harmless.
    pub async fn close(&self) {
        let observing = self.observing.lock().take();
        if let Some(observing) = &observing {
            observing.stop();
        }
        let taken = self.live.write().take();
        let Some(live) = taken else { return };
        let observing = observing.filter(|observing| !observing.is_here());
        let handle = live.runtime.handle().clone();
        let ending = async move {
            live.client.close().await;
            if let Some(observing) = observing {
                observing.ended().await;
            }
            live.runtime.apart()
        };
        // What is still awaited ends with the runtime, which is dropped here, or where it ended if
        // nobody waits for that any more.
        drop(handle.spawn(ending).await);
    }

    /// Whether the client was closed.
    #[must_use]
    pub fn is_closed(&self) -> bool {
        self.live.read().is_none()
    }
}

impl ClientSession {
    /// Does something that waits, on the client's own runtime. It goes on to its end even if
    /// nobody waits for it any more.
    pub(super) async fn run<R: Send + 'static, F>(
        &self,
        work: impl FnOnce(Arc<Live>) -> F,
    ) -> Result<R, ClientError>
    where
        F: Future<Output = Result<R, ClientError>> + Send + 'static,
    {
        let live = self.live()?;
        let handle = live.runtime.handle().clone();
        let working = handle.spawn(work(live));
        working.await.unwrap_or_else(|error| Err(broken(&error)))
    }
}

impl Drop for ClientSession {
    fn drop(&mut self) {
        if let Some(observing) = self.observing.get_mut() {
            observing.stop();
        }
        if let Some(live) = self.live.get_mut().take()
            && let Some(runtime) = live.runtime.take()
        {
            runtime.shutdown_background();
        }
    }
}

/// A runtime that can be let go anywhere, also inside of itself.
#[derive(Debug)]
pub(super) struct OwnRuntime {
    runtime: Mutex<Option<Runtime>>,
    handle: Handle,
}

impl OwnRuntime {
    fn new() -> Result<Self, ClientError> {
        let runtime = Builder::new_multi_thread()
            .worker_threads(WORKERS)
            .thread_name("wakeful-client")
            .enable_all()
            .build()
            .map_err(|error| ClientError::storage(error.into()))?;
        let handle = runtime.handle().clone();
        Ok(Self { runtime: Mutex::new(Some(runtime)), handle })
    }

    pub(super) const fn handle(&self) -> &Handle {
        &self.handle
    }

    /// Takes the runtime out; whoever has it ends it.
    fn take(&self) -> Option<Runtime> {
        self.runtime.lock().take()
    }

    /// Takes the runtime out; it ends with what is returned.
    fn apart(&self) -> Self {
        Self { runtime: Mutex::new(self.take()), handle: self.handle.clone() }
    }

    async fn run<F>(&self, work: F) -> Result<F::Output, ClientError>
    where
        F: Future<Output: Send + 'static> + Send + 'static,
    {
        self.handle.spawn(work).await.map_err(|error| broken(&error))
    }
}

impl Drop for OwnRuntime {
    fn drop(&mut self) {
        if let Some(runtime) = self.take() {
            runtime.shutdown_background();
        }
    }
}

fn broken(error: &tokio::task::JoinError) -> ClientError {
    if error.is_cancelled() { ClientError::Closed } else { ClientError::Internal }
}
