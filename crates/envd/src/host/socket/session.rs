//! The task of one socket.

use std::{collections::HashMap, future::Future, pin::Pin};

use axum::extract::ws::{Message, Utf8Bytes, WebSocket};
use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use bytes::Bytes;
use futures::{
    SinkExt as _, StreamExt as _,
    future::BoxFuture,
    stream::{FuturesUnordered, SplitSink, SplitStream},
};
use tokio::{
    sync::watch,
    time::{Instant, Sleep, sleep_until, timeout},
};
use tokio_util::sync::{CancellationToken, DropGuard};
use wakeful_wire::{
    Code, HostSessionId, Problem,
    host::Descriptor,
    rpc::{Call, CallId, Hello, HelloAgain, HostConfig, PROTOCOL, ServerFrame},
    time::millis,
};

use super::{
    calls::{Calls, Key, Kind},
    encode,
    ending::{CLOSE_TIME, Ending},
    heard::{Heard, understand},
    outbox::{Next, Outbox},
    pulls::Pulls,
    pulse::{Due, Pulse},
    subscription::{Pulled, Source},
    work::{self, Done},
};
use crate::{
    credential::{CloseCause, LiveSocket},
    host::{Farewell, Host},
};

/// What interrupts the carrying.
enum Step {
    /// A frame of the client.
    Heard(Utf8Bytes),
    /// The configuration has changed.
    Configured,
    /// The session behind the socket has ended.
    SessionEnded(CloseCause),
    /// It is over.
    Over(Ending),
}

/// What happened while carrying.
enum Happened {
    Outside(Step),
    Read(Option<Result<Message, axum::Error>>),
    Written(Result<(), axum::Error>),
    Done(Key, Done),
    Pulled(Option<(Key, Pulled)>),
    Time,
}

/// A command that is being carried out.
type Working = BoxFuture<'static, (Key, Done)>;

/// One socket.
pub(super) struct Session {
    host: Host,
    sink: SplitSink<WebSocket, Message>,
    stream: SplitStream<WebSocket>,
    calls: Calls,
    outbox: Outbox,
    pulls: Pulls,
    pulse: Pulse,
    /// Commands that are being carried out. Dropping one does not end it.
    working: FuturesUnordered<Working>,
    /// Ends the wait of a command that waits at the gate.
    gates: HashMap<Key, CancellationToken>,
    gone: CancellationToken,
    /// Ends them all with the socket.
    _gone: DropGuard,
    /// A frame is being written; the item's subscription, if it is one.
    writing: Option<Option<Key>>,
    /// The revocation of this socket's own session that was asked for on it.
    revoking: Option<Key>,
    config: watch::Receiver<HostConfig>,
    /// The newest revision that the client was told.
    revision: u64,
    /// What the client knows the host by.
    known: Option<String>,
}

impl Session {
    pub(super) fn new(host: Host, socket: WebSocket, known: Option<String>) -> Self {
        let (sink, stream) = socket.split();
        let config = host.0.parts.config.clone();
        let pulse = Pulse::new(host.0.parts.heartbeat, Instant::now());
        let gone = CancellationToken::new();
        Self {
            host,
            sink,
            stream,
            calls: Calls::default(),
            outbox: Outbox::default(),
            pulls: Pulls::default(),
            pulse,
            working: FuturesUnordered::new(),
            gates: HashMap::new(),
            _gone: gone.clone().drop_guard(),
            gone,
            writing: None,
            revoking: None,
            config,
            revision: 0,
            known,
        }
    }

    /// Serves it to its end.
    pub(super) async fn run(mut self, mut live: LiveSocket) {
        let hello = self.hello(&live);
        let mut timer = Box::pin(sleep_until(self.pulse.poll_deadline(Instant::now())));
        let mut farewell = self.host.0.farewell.subscribe();
        let mut config = Some(self.config.clone());
        let mut ending = self.write(Message::Text(hello.into()), None).err();
        while ending.is_none() {
            // Made anew after each frame of the client, not for each item that is sent.
            let step = {
                let outside = std::pin::pin!(outside(&mut live, &mut farewell, &mut config));
                self.carry(outside, timer.as_mut()).await
            };
            match step {
                Step::Heard(text) => ending = self.hear(&text, &live),
                Step::Configured => self.outbox.config(),
                Step::SessionEnded(cause) => {
                    if cause == CloseCause::Revoked && self.revoking.is_some() {
                        let _in_time = timeout(CLOSE_TIME, self.answer_revocation()).await;
                    }
                    ending = Some(Ending::session(cause));
                }
                Step::Over(over) => ending = Some(over),
            }
        }
        let Self { sink, stream, .. } = self;
        ending.unwrap_or(Ending::Lost).carry_out(sink, stream, live).await;
    }

    /// Reads, pulls and writes until something happens that is not only carried.
    async fn carry(
        &mut self,
        mut outside: Pin<&mut impl Future<Output = Step>>,
        mut timer: Pin<&mut Sleep>,
    ) -> Step {
        loop {
            self.ask();
            if let Err(ending) = self.write_next() {
                return Step::Over(ending);
            }
            let reads = self.outbox.reads();
            if !reads {
                self.pulse.handle_heard(Instant::now());
            }
            let happened = tokio::select! {
                step = outside.as_mut() => Happened::Outside(step),
                written = self.sink.flush(), if self.writing.is_some() => Happened::Written(written),
                read = self.stream.next(), if reads => Happened::Read(read),
                Some((key, done)) = self.working.next(), if !self.working.is_empty() => {
                    Happened::Done(key, done)
                }
                pulled = self.pulls.next(), if self.pulls.is_waiting() => Happened::Pulled(pulled),
                () = timer.as_mut() => Happened::Time,
            };
            match happened {
                Happened::Outside(step) => return step,
                Happened::Written(Ok(())) => {
                    self.pulse.handle_written(Instant::now());
                    if let Some(key) = self.writing.take().flatten() {
                        self.pulls.handle_written(key);
                    }
                }
                Happened::Written(Err(_)) | Happened::Read(None) => {
                    return Step::Over(Ending::Lost);
                }
                Happened::Read(Some(Err(error))) => return Step::Over(Ending::failed(error)),
                Happened::Read(Some(Ok(message))) => {
                    self.pulse.handle_heard(Instant::now());
                    match message {
                        Message::Text(text) => return Step::Heard(text),
                        Message::Binary(_) => return Step::Over(Ending::BINARY),
                        Message::Close(_) => return Step::Over(Ending::ByClient),
                        // Answered by the WebSocket itself.
                        Message::Ping(_) | Message::Pong(_) => {}
                    }
                }
                Happened::Done(key, done) => self.handle_done(key, done),
                Happened::Pulled(Some((key, pulled))) => self.handle_pulled(key, pulled),
                Happened::Pulled(None) => {}
                Happened::Time => {
                    let now = Instant::now();
                    while let Some(due) = self.pulse.poll(now) {
                        match due {
                            Due::Heartbeat => {
                                self.outbox.heartbeat();
                                self.outbox.ping();
                            }
                            Due::Ping => self.outbox.ping(),
                            Due::Silent => return Step::Over(Ending::SILENT),
                            Due::Stuck => return Step::Over(Ending::Lost),
                        }
                    }
                    timer.as_mut().reset(self.pulse.poll_deadline(now));
                }
            }
        }
    }

    /// Asks subscriptions for items as long as there is room for them.
    fn ask(&mut self) {
        while self.outbox.has_room() {
            match self.pulls.ask() {
                Some(Some((key, pulled))) => self.handle_pulled(key, pulled),
                Some(None) => {}
                None => return,
            }
        }
    }

    fn write_next(&mut self) -> Result<(), Ending> {
        if self.writing.is_some() {
            return Ok(());
        }
        let head = || self.host.0.parts.threads.cursor();
        let mut next = self.outbox.poll();
        if next == Some(Next::Config) && self.config.borrow().revision <= self.revision {
            next = self.outbox.poll();
        }
        let (message, key) = match next {
            None => return Ok(()),
            Some(Next::Ping) => (Message::Ping(Bytes::new()), None),
            Some(Next::Alive(id)) => (text(&ServerFrame::Alive { id, head: head() }), None),
            Some(Next::Heartbeat) => (text(&ServerFrame::Heartbeat { head: head() }), None),
            Some(Next::Config) => {
                let config = self.config.borrow().clone();
                self.revision = config.revision;
                (text(&ServerFrame::Config { config }), None)
            }
            Some(Next::Answer(text)) => (Message::Text(text.into()), None),
            Some(Next::Item(key, text)) => (Message::Text(text.into()), Some(key)),
        };
        self.write(message, key)
    }

    /// Begins to write a frame; none is being written.
    fn write(&mut self, message: Message, key: Option<Key>) -> Result<(), Ending> {
        let bytes = match &message {
            Message::Text(text) => text.len(),
            Message::Binary(_) | Message::Ping(_) | Message::Pong(_) | Message::Close(_) => 0,
        };
        self.pulse.handle_writing(Instant::now(), bytes);
        self.writing = Some(key);
        self.sink.start_send_unpin(message).map_err(|_| Ending::Lost)
    }

    fn hello(&mut self, live: &LiveSocket) -> String {
        let parts = &self.host.0.parts;
        let config = self.config.borrow().clone();
        self.revision = config.revision;
        let session = live.session();
        let mut listed = parts.authority.sessions().list().into_iter();
        let listed = listed.find(|listed| listed.id == session.id);
        let session = listed.unwrap_or_else(|| session.view(1));
        let (head, heartbeat_ms) = (parts.threads.cursor(), millis(parts.heartbeat));
        let tag = tag(&parts.descriptor, &config, heartbeat_ms);
        if self.known.as_ref() == Some(&tag) {
            let host = parts.descriptor.id;
            return encode::frame(&ServerFrame::HelloAgain(Box::new(HelloAgain {
                protocol: PROTOCOL,
                host,
                tag,
                session,
                head,
            })));
        }
        encode::frame(&ServerFrame::Hello(Box::new(Hello {
            protocol: PROTOCOL,
            host: parts.descriptor.clone(),
            capabilities: parts.descriptor.capabilities.clone(),
            config,
            session,
            head,
            heartbeat_ms,
            tag: Some(tag),
        })))
    }

    /// Takes in a frame of the client; says how the socket ends, if it does.
    fn hear(&mut self, text: &str, live: &LiveSocket) -> Option<Ending> {
        match understand(text) {
            Heard::Call(id, call) => self.call(id, call, live),
            Heard::Cancel(id) => self.cancel(id),
            Heard::Probe(id) => self.outbox.alive(id),
            Heard::Refused(id, problem) => self.outbox.answer(encode::error(id, problem)),
            Heard::Skipped => {}
            Heard::Broken(ending) => return Some(ending),
        }
        None
    }

    fn call(&mut self, id: CallId, call: Call, live: &LiveSocket) {
        let session = live.session();
        let begun = match session.allows(call.scope()) {
            Ok(()) => self.begin(id, call, session.id),
            Err(denial) => Err(Problem::new(Code::Forbidden).detail(denial.sentence())),
        };
        if let Err(problem) = begun {
            self.outbox.answer(encode::error(id, problem));
        }
    }

    fn begin(&mut self, id: CallId, call: Call, own: HostSessionId) -> Result<(), Problem> {
        let kind = if call.is_subscription() { Kind::Subscription } else { Kind::Command };
        let key = self.calls.open(id, kind)?;
        match Source::of(&call, &self.host.0.parts) {
            Some(Ok(source)) => self.pulls.add(key, id, source),
            Some(Err(problem)) => {
                self.calls.over(key);
                return Err(problem);
            }
            None => {
                if matches!(&call, Call::SessionRevoke(revoke) if revoke.session == own) {
                    self.revoking = Some(key);
                }
                let gate = self.gone.child_token();
                self.gates.insert(key, gate.clone());
                self.working.push(work::begin(&self.host, call, own, key, gate));
            }
        }
        Ok(())
    }

    fn cancel(&mut self, id: CallId) {
        match self.calls.cancel(id) {
            Some((key, Kind::Subscription)) => {
                self.pulls.cancel(key);
                self.outbox.forget(key);
                self.outbox.answer(encode::frame(&ServerFrame::End { id }));
            }
            Some((key, Kind::Command)) => {
                if let Some(gate) = self.gates.remove(&key) {
                    gate.cancel();
                }
            }
            None => {}
        }
    }

    fn handle_done(&mut self, key: Key, done: Done) {
        self.gates.remove(&key);
        if let Some(id) = self.calls.over(key) {
            self.outbox.answer(match done {
                Ok(result) => encode::frame(&ServerFrame::Response { id, result }),
                Err(problem) => encode::error(id, problem),
            });
        }
    }

    fn handle_pulled(&mut self, key: Key, pulled: Pulled) {
        let last = match pulled {
            Pulled::Item(text) => return self.outbox.item(key, text),
            Pulled::End => None,
            Pulled::Failed(problem) => Some(problem),
            Pulled::Cancelled => return,
        };
        if let Some(id) = self.calls.over(key) {
            self.outbox.answer(match last {
                None => encode::frame(&ServerFrame::End { id }),
                Some(problem) => encode::error(id, problem),
            });
        }
    }

    /// Who revokes their own session hears that it was done before the socket closes.
    async fn answer_revocation(&mut self) -> Result<(), axum::Error> {
        while self.revoking.is_some_and(|key| self.gates.contains_key(&key)) {
            let Some((key, done)) = self.working.next().await else { break };
            self.handle_done(key, done);
        }
        while let Some(answer) = self.outbox.poll_answer() {
            self.sink.send(Message::Text(answer.into())).await?;
        }
        Ok(())
    }
}

fn text(frame: &ServerFrame) -> Message {
    Message::Text(encode::frame(frame).into())
}

/// Waits for what comes neither from the client nor from what it asked for.
async fn outside(
    live: &mut LiveSocket,
    farewell: &mut watch::Receiver<Option<Farewell>>,
    config: &mut Option<watch::Receiver<HostConfig>>,
) -> Step {
    tokio::select! {
        cause = live.ended() => Step::SessionEnded(cause),
        said = said(farewell) => Step::Over(said),
        () = changed(config) => Step::Configured,
    }
}

async fn said(farewell: &mut watch::Receiver<Option<Farewell>>) -> Ending {
    match farewell.wait_for(Option::is_some).await {
        Ok(said) => said.as_ref().map_or(Ending::Lost, Ending::host),
        Err(_) => Ending::Lost,
    }
}

/// Waits for a change; for ever once whoever changes it is gone.
async fn changed(config: &mut Option<watch::Receiver<HostConfig>>) {
    if let Some(receiver) = config
        && receiver.changed().await.is_ok()
    {
        return;
    }
    *config = None;
    std::future::pending().await
}

/// Stands for what a hello says of the host: equal only where all of it is.
fn tag(descriptor: &Descriptor, config: &HostConfig, heartbeat_ms: u64) -> String {
    let whole = serde_json::to_vec(&(descriptor, config, heartbeat_ms)).unwrap_or_default();
    let digest = ring::digest::digest(&ring::digest::SHA256, &whole);
    URL_SAFE_NO_PAD.encode(&digest.as_ref()[..12])
}
