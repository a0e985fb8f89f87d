//! The control socket: what the platform asks of this sandbox.

mod dial;
mod line;

use std::{sync::Arc, time::Duration};

use subtle::ConstantTimeEq;
use tokio::{
    io::AsyncReadExt,
    net::{UnixListener, UnixStream},
    sync::{Semaphore, mpsc, oneshot, watch},
};
use wakeful_wire::sandbox::{Ask, AskKind, EnvdStatus, Refusal, Reply};

use crate::supervisor::Event;

/// How many connections are served at once; further ones wait in the socket's backlog.
const CONNECTIONS_MAX: usize = 1024;
/// How long an asker may take to send its line, or to take one of ours.
const LINE_TIME: Duration = Duration::from_secs(10);
/// The pause after a failed accept: for want of descriptors it would fail again at once.
const ACCEPT_PAUSE: Duration = Duration::from_millis(20);

/// What every connection needs.
#[derive(Clone)]
pub(crate) struct Control {
    secret: Arc<str>,
    status: watch::Receiver<Arc<EnvdStatus>>,
    events: mpsc::Sender<Event>,
}

impl std::fmt::Debug for Control {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Control").finish_non_exhaustive()
    }
}

impl Control {
    pub(crate) fn new(
        secret: &str,
        status: watch::Receiver<Arc<EnvdStatus>>,
        events: mpsc::Sender<Event>,
    ) -> Self {
        Self { secret: secret.into(), status, events }
    }

    /// Serves the socket for as long as the runtime lives.
    pub(crate) async fn serve(self, listener: UnixListener) {
        let room = Arc::new(Semaphore::new(CONNECTIONS_MAX));
        while let Ok(permit) = Arc::clone(&room).acquire_owned().await {
            match listener.accept().await {
                Ok((stream, _)) => {
                    let control = self.clone();
                    tokio::spawn(async move {
                        control.connection(stream).await;
                        drop(permit);
                    });
                }
                Err(_) => tokio::time::sleep(ACCEPT_PAUSE).await,
            }
        }
    }

    async fn connection(mut self, mut stream: UnixStream) {
        let asked = tokio::time::timeout(LINE_TIME, line::read(&mut stream)).await;
        let Ok(Some(asked)) = asked else { return };
        let reply = match serde_json::from_slice::<Ask>(&asked) {
            Err(_) => Reply::Refused(Refusal::Unknown),
            Ok(ask) if !self.is_authorized(&ask) => Reply::Refused(Refusal::Unauthorized),
            Ok(Ask { ask: AskKind::Watch, .. }) => return self.watch(stream).await,
            Ok(Ask { ask: AskKind::Dial { surface }, .. }) => {
                let port = self.ask(|answer| Event::Dial { surface, answer }).await;
                let dialled = match port {
                    Ok(port) => dial::dial(port).await,
                    Err(refusal) => Err(refusal),
                };
                match dialled {
                    Ok(upstream) => {
                        let sending = dial::pass(&stream, &upstream, &Reply::Done);
                        let _left = tokio::time::timeout(LINE_TIME, sending).await;
                        return;
                    }
                    Err(refusal) => Reply::Refused(refusal),
                }
            }
            Ok(Ask { ask: AskKind::Start { surface }, .. }) => {
                match self.ask(|answer| Event::Start { surface, answer }).await {
                    Ok(()) => Reply::Done,
                    Err(refusal) => Reply::Refused(refusal),
                }
            }
            Ok(Ask { ask: AskKind::Status, .. }) => {
                let status = self.status.borrow().as_ref().clone();
                Reply::Status(status)
            }
            Ok(Ask { ask: AskKind::Stop { grace_ms }, .. }) => {
                // Answered before it begins: afterwards this process may be gone.
                write(&mut stream, &Reply::Done).await;
                let grace = Duration::from_millis(grace_ms);
                let _ending = self.events.send(Event::Stop { grace }).await;
                return;
            }
        };
        write(&mut stream, &reply).await;
    }

    fn is_authorized(&self, ask: &Ask) -> bool {
        self.secret.as_bytes().ct_eq(ask.secret.as_bytes()).into()
    }

    /// Asks the supervisor, which answers nothing more once it takes everything down.
    async fn ask<T>(
        &self,
        event: impl FnOnce(oneshot::Sender<Result<T, Refusal>>) -> Event,
    ) -> Result<T, Refusal> {
        if self.status.borrow().stopping {
            return Err(Refusal::Stopping);
        }
        let (answer, answered) = oneshot::channel();
        self.events.send(event(answer)).await.map_err(|_| Refusal::Stopping)?;
        answered.await.unwrap_or(Err(Refusal::Stopping))
    }

    /// A line now and after each change, until the watcher leaves. One that takes no line in time
    /// is left: it connects again and gets the newest.
    async fn watch(&mut self, mut stream: UnixStream) {
        loop {
            let status = self.status.borrow_and_update().as_ref().clone();
            if !write(&mut stream, &Reply::Status(status)).await {
                return;
            }
            let mut nothing = [0; 1];
            tokio::select! {
                changed = self.status.changed() => if changed.is_err() { return },
                // A watcher has nothing more to say; this is how its departure is noticed.
                _ = stream.read(&mut nothing) => return,
            }
        }
    }
}

async fn write(stream: &mut UnixStream, reply: &Reply) -> bool {
    let written = tokio::time::timeout(LINE_TIME, line::write(stream, reply)).await;
    matches!(written, Ok(Ok(())))
}
