//! The loop: connects, subscribes, reads, and comes back after whatever breaks.

use std::{future::Future, time::Duration};

use serde_json::Value;
use tokio::{
    sync::mpsc,
    time::{Instant, sleep_until},
};
use wakeful_wire::rpc::{Call, CallId, ClientId, ServerFrame, ThreadItem};

use super::{
    super::backoff::Backoff,
    exit,
    screen::{Connection, Screen, Sink},
    session::{Input, Reaction, Session},
};
use crate::host::{Ended, HostClient, HostError, HostSocket};

/// No pause between two tries is longer.
const PAUSE_MAX: Duration = Duration::from_secs(30);

/// Closed: the environment goes to sleep.
const SUSPENDING: u16 = 4503;
/// Closed: the session was revoked.
const REVOKED: u16 = 4411;
/// Closed: the access token is too old; another one can be had.
const EXPIRED: u16 = 4412;

/// A host as the loop needs it.
pub(super) trait Host {
    /// Its sockets.
    type Socket: Socket;
    /// Opens one, after its hello.
    async fn connect(&self, wake: bool) -> Result<Self::Socket, HostError>;
}

/// A socket as the loop needs it.
pub(super) trait Socket {
    /// Sends a call.
    async fn request(&mut self, call: &Call) -> Result<CallId, Ended>;
    /// The next frame. Dropping the future loses nothing.
    async fn next(&mut self) -> Result<ServerFrame, Ended>;
    /// Closes it.
    async fn close(self);
}

impl Host for HostClient {
    type Socket = HostSocket;

    async fn connect(&self, wake: bool) -> Result<HostSocket, HostError> {
        Self::connect(self, wake).await
    }
}

impl Socket for HostSocket {
    async fn request(&mut self, call: &Call) -> Result<CallId, Ended> {
        Self::request(self, call).await
    }

    async fn next(&mut self) -> Result<ServerFrame, Ended> {
        Self::next(self).await
    }

    async fn close(self) {
        Self::close(self).await;
    }
}

/// What the loop works with.
#[derive(Debug)]
pub(super) struct Follow<'a, S, C, R> {
    /// Decides.
    pub(super) session: Session,
    /// Prints.
    pub(super) screen: Screen<S>,
    /// What a person does.
    pub(super) inputs: &'a mut mpsc::Receiver<Input>,
    /// Draws the ids of prompts.
    pub(super) fresh: C,
    /// A number between 0 and 1.
    pub(super) chance: R,
}

/// How a socket, or the try to open one, ended.
enum Over {
    /// `attach` ends with this exit code.
    Leave(u8),
    /// The environment sleeps or goes to sleep.
    Asleep,
    /// Another socket is needed at once.
    Renew,
    /// It broke off.
    Lost(String),
}

impl From<Ended> for Over {
    fn from(ended: Ended) -> Self {
        match ended.code {
            Some(SUSPENDING) => Self::Asleep,
            Some(EXPIRED) => Self::Renew,
            Some(_) | None => Self::Lost(ended.to_string()),
        }
    }
}

impl<S, C, R> Follow<'_, S, C, R>
where
    S: Sink,
    C: FnMut() -> ClientId,
    R: FnMut() -> f64,
{
    /// Follows until there is a reason to end; returns the exit code.
    ///
    /// # Errors
    /// The host cannot be reached at the first try, refuses, has revoked the session, says what
    /// cannot be read; or standard output is closed.
    pub(super) async fn run<H: Host>(mut self, host: &H) -> anyhow::Result<u8> {
        let mut backoff = Backoff::endless(PAUSE_MAX);
        let mut was_connected = false;
        loop {
            let over = match self.connect(host).await? {
                Ok(mut socket) => {
                    was_connected = true;
                    self.screen.connection(Connection::Connected)?;
                    let over = self.serve(&mut socket, &mut backoff).await;
                    let leaves = !matches!(over, Ok(Over::Lost(_) | Over::Asleep));
                    if leaves {
                        socket.close().await;
                    }
                    over?
                }
                Err(Opening::Leave(code)) => Over::Leave(code),
                Err(Opening::Failed(error)) => over_of(error, was_connected)?,
            };
            self.session.handle_lost();
            self.screen.close()?;
            let pause = backoff.pause((self.chance)()).unwrap_or(PAUSE_MAX);
            let seconds = pause.as_secs_f64();
            match over {
                Over::Leave(code) => return Ok(code),
                Over::Asleep => {
                    self.screen.connection(Connection::Asleep)?;
                    if !self.session.options().wake {
                        self.screen.note("asleep (`--wake` wakes it)")?;
                        return Ok(exit::ASLEEP);
                    }
                    self.screen.note(&format!("asleep, waking it in {seconds:.1} s"))?;
                }
                // Not without end: a host that renews nothing is as good as gone.
                Over::Renew => self.screen.connection(Connection::Lost)?,
                Over::Lost(why) => {
                    self.screen.connection(Connection::Lost)?;
                    let text = format!("connection lost, trying again in {seconds:.1} s ({why})");
                    self.screen.note(&text)?;
                }
            }
            if let Some(code) = self.wait(sleep_until(Instant::now() + pause)).await?.err() {
                return Ok(code);
            }
        }
    }

    /// Waits for something and takes what a person does meanwhile. The inner error: the person
    /// leaves, with this exit code.
    async fn wait<F: Future>(&mut self, what: F) -> anyhow::Result<Result<F::Output, u8>> {
        tokio::pin!(what);
        loop {
            let input = tokio::select! {
                output = &mut what => return Ok(Ok(output)),
                input = next(self.inputs) => input,
            };
            if let Some(code) = self.input(input)? {
                return Ok(Err(code));
            }
        }
    }

    async fn connect<H: Host>(&mut self, host: &H) -> anyhow::Result<Result<H::Socket, Opening>> {
        let wake = self.session.options().wake;
        Ok(match self.wait(host.connect(wake)).await? {
            Ok(opened) => opened.map_err(Opening::Failed),
            Err(code) => Err(Opening::Leave(code)),
        })
    }

    /// Takes what a person does; the exit code if it ends.
    fn input(&mut self, input: Input) -> anyhow::Result<Option<u8>> {
        let reaction = self.session.handle_input(input, Instant::now(), &mut self.fresh);
        self.react(reaction)
    }

    fn react(&mut self, reaction: Reaction) -> anyhow::Result<Option<u8>> {
        match reaction {
            Reaction::Nothing => Ok(None),
            Reaction::Note(text) => self.screen.note(&text).map(|()| None),
            Reaction::Leave(code) => self.screen.close().map(|()| Some(code)),
        }
    }

    /// Follows on one socket, to its end.
    async fn serve<K: Socket>(
        &mut self,
        socket: &mut K,
        backoff: &mut Backoff,
    ) -> anyhow::Result<Over> {
        let subscription = match socket.request(&self.session.subscribe()).await {
            Ok(subscription) => subscription,
            Err(ended) => return over(ended),
        };
        loop {
            while let Some(call) = self.session.next_call() {
                match socket.request(call).await {
                    Ok(id) => self.session.handle_sent(id),
                    Err(ended) => return over(ended),
                }
            }
            if let Some(code) = self.session.finished() {
                self.screen.close()?;
                return Ok(Over::Leave(code));
            }
            let frame = tokio::select! {
                frame = socket.next() => frame,
                input = next(self.inputs) => {
                    if let Some(code) = self.input(input)? {
                        return Ok(Over::Leave(code));
                    }
                    continue;
                }
            };
            let frame = match frame {
                Ok(frame) => frame,
                Err(ended) => return over(ended),
            };
            if let Some(over) = self.frame(subscription, frame)? {
                return Ok(over);
            }
            if self.session.following().is_synchronized() {
                backoff.reset();
            }
        }
    }

    /// Takes in a frame.
    fn frame(&mut self, subscription: CallId, frame: ServerFrame) -> anyhow::Result<Option<Over>> {
        let reaction = match frame {
            ServerFrame::Item { id, item } if id == subscription => {
                self.item(item)?;
                Reaction::Nothing
            }
            ServerFrame::End { id } if id == subscription => {
                let ended = "the host ended the stream".to_owned();
                return Ok(self.session.finished().is_none().then_some(Over::Lost(ended)));
            }
            ServerFrame::Error { id, problem } if id == subscription => {
                let error = HostError::from(problem);
                return over_of(error, true).map(Some);
            }
            ServerFrame::Response { id, result } => {
                self.session.handle_answer(id, Ok(serde_json::from_value(result).ok()))
            }
            ServerFrame::Error { id, problem } => self.session.handle_answer(id, Err(problem)),
            ServerFrame::Item { .. }
            | ServerFrame::End { .. }
            | ServerFrame::Hello(_)
            | ServerFrame::HelloAgain(_)
            | ServerFrame::Config { .. }
            | ServerFrame::Alive { .. }
            | ServerFrame::Heartbeat { .. }
            | ServerFrame::Unknown => Reaction::Nothing,
        };
        Ok(self.react(reaction)?.map(Over::Leave))
    }

    fn item(&mut self, item: Value) -> anyhow::Result<()> {
        let item: ThreadItem =
            serde_json::from_value(item).map_err(|error| HostError::Garbled(error.to_string()))?;
        self.screen.item(self.session.following(), &item)?;
        let changes = self.session.handle_item(item);
        self.screen.changes(&changes)
    }
}

/// Why there is no socket.
enum Opening {
    Leave(u8),
    Failed(HostError),
}

/// What follows from a socket's end.
///
/// # Errors
/// There is no coming back.
fn over(ended: Ended) -> anyhow::Result<Over> {
    if ended.code == Some(REVOKED) {
        let why = "this session was revoked at the host; attach again, or pair again first";
        return Err(anyhow::Error::new(ended).context(why));
    }
    Ok(ended.into())
}

/// What follows from an error. Who was never connected is told at once that nothing is there.
///
/// # Errors
/// There is no coming back.
fn over_of(error: HostError, was_connected: bool) -> anyhow::Result<Over> {
    match &error {
        HostError::Unreachable(_) if !was_connected => Err(error.into()),
        _ if error.is_passing() => Ok(Over::Lost(error.to_string())),
        HostError::Asleep { .. } => Ok(Over::Asleep),
        HostError::Unreachable(_)
        | HostError::Refused(_)
        | HostError::Garbled(_)
        | HostError::NotPaired(_) => Err(error.into()),
    }
}

/// What a person does next; waits for ever where nobody is.
async fn next(inputs: &mut mpsc::Receiver<Input>) -> Input {
    match inputs.recv().await {
        Some(input) => input,
        None => std::future::pending().await,
    }
}
