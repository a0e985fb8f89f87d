//! The control socket: what the platform asks of this sandbox.

mod dial;
pub(crate) mod line;
mod unproven;

use std::{os::fd::AsFd, sync::Arc, time::Duration};

use subtle::ConstantTimeEq;
use tokio::{
    io::AsyncReadExt,
    net::{UnixListener, UnixStream},
    sync::{Semaphore, mpsc, oneshot, watch},
};
use wakeful_wire::{
    SurfaceName,
    sandbox::{Ask, AskKind, EnvdStatus, Refusal, Reply},
};

use crate::{environment::Environment, supervisor::Event};
use dial::Dials;
use unproven::{Trial, Unproven};

/// How many connections with the secret are served at once.
const CONNECTIONS_MAX: usize = 1024;
/// How many more of them wait for a place; beyond, they are refused.
const WAITING_MAX: usize = 4096;
/// How long an asker may take to send its line.
const ASK_TIME: Duration = Duration::from_secs(2);
/// How long it may take to take one of ours.
const LINE_TIME: Duration = Duration::from_secs(10);
/// The pause after a failed accept: for want of descriptors it would fail again at once.
const ACCEPT_PAUSE: Duration = Duration::from_millis(20);

/// What every connection needs.
#[derive(Clone)]
pub(crate) struct Control {
    secret: Arc<str>,
    status: watch::Receiver<Arc<EnvdStatus>>,
    events: mpsc::Sender<Event>,
    places: Arc<Semaphore>,
    line: Arc<Semaphore>,
    dials: Arc<Dials>,
    environment: Environment,
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
        environment: Environment,
    ) -> Self {
        Self {
            secret: secret.into(),
            status,
            events,
            places: Arc::new(Semaphore::new(CONNECTIONS_MAX)),
            line: Arc::new(Semaphore::new(WAITING_MAX)),
            dials: Arc::default(),
            environment,
        }
    }

    /// Serves the socket for as long as the runtime lives.
    ///
    /// Every process of this user can connect, other sandboxes' among them, so a connection takes
    /// a place only with the secret, and those that have not shown it yet are few.
    pub(crate) async fn serve(self, listener: UnixListener) {
        let unproven = Arc::new(Unproven::default());
        loop {
            match listener.accept().await {
                Ok((stream, _)) => {
                    let (control, trial) = (self.clone(), unproven.admit().await);
                    tokio::spawn(control.connection(stream, trial));
                    // What it has sent already is read before the next one is accepted.
                    tokio::task::yield_now().await;
                }
                Err(_) => tokio::time::sleep(ACCEPT_PAUSE).await,
            }
        }
    }

    async fn connection(self, mut stream: UnixStream, mut trial: Trial) {
        let asked = tokio::select! {
            biased;
            asked = tokio::time::timeout(ASK_TIME, line::read(&mut stream)) => asked,
            () = trial.evicted() => return,
        };
        let Ok(Some(asked)) = asked else { return };
        let refusal = match serde_json::from_slice::<Ask>(&asked) {
            Err(_) => Refusal::Unknown,
            Ok(ask) if !self.is_authorized(&ask) => Refusal::Unauthorized,
            Ok(Ask { ask, .. }) => {
                drop(trial);
                let Ok(in_line) = Arc::clone(&self.line).try_acquire_owned() else {
                    let reason = "too many connections are asked for at once".to_owned();
                    write(&mut stream, &Reply::Refused(Refusal::Connect { reason })).await;
                    return;
                };
                let Ok(_place) = Arc::clone(&self.places).acquire_owned().await else { return };
                drop(in_line);
                return self.answer(stream, ask).await;
            }
        };
        // A new socket has room for these few bytes, so nobody can hold this up.
        write(&mut stream, &Reply::Refused(refusal)).await;
    }

    /// Answers who has shown the secret.
    async fn answer(mut self, mut stream: UnixStream, ask: AskKind) {
        let reply = match ask {
            AskKind::Watch => return self.watch(stream).await,
            AskKind::Dial { surface } if surface == SurfaceName::host() => {
                match self.environment.dial() {
                    Ok(theirs) => return hand_over(&stream, &theirs).await,
                    Err(refusal) => Reply::Refused(refusal),
                }
            }
            AskKind::Dial { surface } => {
                let port = self.ask(|answer| Event::Dial { surface, answer }).await;
                let dialled = match port {
                    Ok(port) => self.dials.dial(port).await,
                    Err(refusal) => Err(refusal),
                };
                match dialled {
                    Ok(upstream) => return hand_over(&stream, &upstream).await,
                    Err(refusal) => Reply::Refused(refusal),
                }
            }
            AskKind::Start { surface } => {
                match self.ask(|answer| Event::Start { surface, answer }).await {
                    Ok(()) => Reply::Done,
                    Err(refusal) => Reply::Refused(refusal),
                }
            }
            AskKind::Drain { hold_ms } => {
                match self.environment.drain(Duration::from_millis(hold_ms)) {
                    Ok(turns) => Reply::Drained { turns },
                    Err(refusal) => Reply::Refused(refusal),
                }
            }
            AskKind::Deliver { call } => match self.environment.deliver(*call).await {
                Ok(taken) => Reply::Taken(taken),
                Err(refusal) => Reply::Refused(refusal),
            },
            AskKind::Status => {
                let status = self.status.borrow().as_ref().clone();
                Reply::Status(status)
            }
            AskKind::Stop { grace_ms } => {
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

/// Sends a connected descriptor. Who does not take it in time goes without.
async fn hand_over(stream: &UnixStream, connected: &impl AsFd) {
    let sending = dial::pass(stream, connected, &Reply::Done);
    let _left = tokio::time::timeout(LINE_TIME, sending).await;
}

async fn write(stream: &mut UnixStream, reply: &Reply) -> bool {
    let written = tokio::time::timeout(LINE_TIME, line::write(stream, reply)).await;
    matches!(written, Ok(Ok(())))
}
