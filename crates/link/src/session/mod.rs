//! The protocol of one socket.
//!
//! # Theory of operation
//!
//! A [`Session`] stands for exactly one socket and is dropped with it. Nothing in it can be carried
//! over to another socket: its call ids, its open calls and its queues end when it does, so what an
//! old socket still delivers finds nobody (spec client-runtime 5.3, last line). Whoever holds
//! several sessions tells them apart by [`AttemptId`](crate::AttemptId).
//!
//! An open socket proves nothing. A session is ready when the host's hello has come and named the
//! host that was expected; before that no call is taken and no silence is measured, since the
//! attempt has a limit of its own (seed, Transport health and data freshness are separate).
//!
//! # Order of calling
//!
//! After each `handle_…`, [`Session::call`], [`Session::cancel`] and [`Session::probe`] drain
//! [`Session::poll_frame`] and [`Session::poll_event`], then ask [`Session::poll_timeout`].
//!
//! # What is absent
//!
//! A session never closes its socket, never repeats a call and never connects again. It reports:
//! the supervisor decides.
//!
//! # Bounds
//!
//! | what | bound | at it |
//! |---|---|---|
//! | open calls | [`CALLS_MAX`] | the next one is refused as overloaded |
//! | a request | [`CLIENT_FRAME_MAX`] | it is refused and not sent |
//! | a host's frame | [`FRAME_MAX`] | whoever reads the socket ends it |
//! | frames that wait to be sent | a request and a cancellation for each open call, one probe | - |
//! | events that wait to be read | those of one frame | - |
//!
//! [`CALLS_MAX`]: wakeful_wire::rpc::CALLS_MAX
//! [`CLIENT_FRAME_MAX`]: wakeful_wire::rpc::CLIENT_FRAME_MAX

mod calls;
mod close;
mod event;
mod hello;
mod outbox;
mod problem;
mod silence;

#[cfg(test)]
#[cfg(not(target_arch = "wasm32"))]
mod properties;
#[cfg(test)]
pub(crate) mod tests;

use std::collections::VecDeque;

use wakeful_wire::{
    HostId,
    rpc::{Call, CallId, ClientFrame, Hello, HostConfig, ServerFrame},
};

use self::{calls::Calls, outbox::Outbox, silence::Silence};
pub use self::{
    close::failure_of_close,
    event::{CallEvent, SessionEvent},
    problem::{Effect, failure_of},
    silence::{HEARTBEAT_LEAST, HEARTBEAT_MOST, HEARTBEATS_MISSED},
};
use crate::{Failure, FailureReason, Instant};

/// The longest frame of a host that is taken, in bytes. It is refused where the socket is read, so
/// that it is never held whole. Far above what a host sends at once; it only keeps a broken one
/// from filling the memory.
pub const FRAME_MAX: usize = 64 * 1024 * 1024;

/// How far a session is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    /// The hello is awaited.
    Opening,
    /// It can be used.
    Ready,
    /// The socket is closed, or what came over it cannot be relied on.
    Over,
}

/// The protocol of one socket; see the [module](self) for the order of calling.
#[derive(Debug)]
pub struct Session {
    expected: HostId,
    stage: Stage,
    /// What is known of the host from an earlier socket.
    known: Option<Box<Hello>>,
    /// The newest configuration's revision.
    revision: u64,
    calls: Calls,
    outbox: Outbox,
    silence: Silence,
    events: VecDeque<SessionEvent>,
}

impl Session {
    /// A socket that has just opened, and is to lead to the `expected` host.
    #[must_use]
    pub fn new(now: Instant, expected: HostId) -> Self {
        Self {
            expected,
            stage: Stage::Opening,
            known: None,
            revision: 0,
            calls: Calls::default(),
            outbox: Outbox::default(),
            silence: Silence::new(now),
            events: VecDeque::new(),
        }
    }

    /// The same for a client that has told the host by what it knows it: the host may greet with
    /// less.
    #[must_use]
    pub fn knowing(mut self, known: Option<Box<Hello>>) -> Self {
        self.known = known;
        self
    }

    /// Whether calls are taken.
    #[must_use]
    pub fn is_ready(&self) -> bool {
        self.stage == Stage::Ready
    }

    /// How many calls are open: those that nobody waits for any more count until the host has
    /// answered them.
    #[must_use]
    pub fn open_calls(&self) -> usize {
        self.calls.len()
    }

    /// Takes a text frame. Any frame is a sign of life. One of a type that this release does not
    /// know is skipped, and so is whatever belongs to no open call.
    ///
    /// # Errors
    /// If the socket is of no use: the frame is not one of this protocol
    /// ([`FailureReason::Remote`]), another host answers ([`FailureReason::Configuration`]), or it
    /// speaks another protocol ([`FailureReason::Unsupported`]). The session is over; its socket is
    /// to be closed.
    pub fn handle_frame(&mut self, now: Instant, text: &str) -> Result<(), Failure> {
        if self.stage == Stage::Over {
            return Ok(());
        }
        self.silence.handle_sign_of_life(now);
        let taken = match serde_json::from_str(text) {
            Ok(frame) => self.take(frame),
            Err(_) => Err(hello::unreadable(text)),
        };
        if taken.is_err() {
            self.end();
        }
        taken
    }

    fn take(&mut self, frame: ServerFrame) -> Result<(), Failure> {
        match frame {
            ServerFrame::Hello(hello) => return self.greet(hello),
            ServerFrame::HelloAgain(again) => {
                let hello = hello::whole(*again, self.known.take())?;
                return self.greet(hello);
            }
            _ if self.stage != Stage::Ready => return Ok(()),
            ServerFrame::Config { config } => self.take_config(config),
            ServerFrame::Response { id, result } => {
                self.take_last_word(CallEvent::Response { id, result });
            }
            ServerFrame::Error { id, problem } => {
                self.take_last_word(CallEvent::Failed { id, problem });
            }
            ServerFrame::End { id } => self.take_last_word(CallEvent::End { id }),
            ServerFrame::Item { id, item } => {
                if self.calls.is_awaited(id) {
                    self.events.push_back(SessionEvent::Call(CallEvent::Item { id, item }));
                }
            }
            ServerFrame::Alive { id, head } => {
                self.events.push_back(SessionEvent::Alive { check: id.0, head });
                self.events.push_back(SessionEvent::Head(head));
            }
            ServerFrame::Heartbeat { head } => self.events.push_back(SessionEvent::Head(head)),
            ServerFrame::Unknown => {}
        }
        Ok(())
    }

    /// A configuration is whole, so revisions that were never seen leave no gap; one that is not
    /// newer changes nothing.
    fn take_config(&mut self, config: HostConfig) {
        if config.revision > self.revision {
            self.revision = config.revision;
            self.events.push_back(SessionEvent::Config(config));
        }
    }

    fn take_last_word(&mut self, event: CallEvent) {
        if self.calls.over(event.id()) {
            self.events.push_back(SessionEvent::Call(event));
        }
    }

    /// The host has greeted, for the first time or once more.
    fn greet(&mut self, hello: Box<Hello>) -> Result<(), Failure> {
        if self.stage == Stage::Opening {
            hello::check(&hello, self.expected)?;
            self.stage = Stage::Ready;
            self.revision = hello.config.revision;
            self.silence.begin(hello.heartbeat_ms);
            let head = hello.head;
            self.events.push_back(SessionEvent::Ready(hello));
            self.events.push_back(SessionEvent::Head(head));
        }
        Ok(())
    }

    /// Sends a call.
    ///
    /// # Errors
    /// If the session is not ready ([`FailureReason::Transport`]), as many calls are open as one
    /// socket may have ([`FailureReason::Overloaded`]), or the request is longer than a host takes
    /// ([`FailureReason::Configuration`]). Then nothing is sent.
    pub fn call(&mut self, call: &Call) -> Result<CallId, Failure> {
        if self.stage != Stage::Ready {
            return Err(Failure::new(FailureReason::Transport, "The connection is not ready."));
        }
        let id = self.calls.free()?;
        self.outbox.request(id, call)?;
        self.calls.open(id, call.is_subscription());
        Ok(id)
    }

    /// Nobody waits for this call any more: none of its events come. A subscription is ended at the
    /// host. A command may still happen, and counts as open until the host has answered it; the
    /// host is not asked to forget it, because then its id could never be told to be free.
    pub fn cancel(&mut self, id: CallId) {
        if self.calls.leave(id) {
            self.outbox.cancel(id);
        }
    }

    /// Asks whether the socket delivers. Goes ahead of everything that waits to be sent, and takes
    /// the place of a probe that still does.
    pub fn probe(&mut self, check: u32) {
        if self.stage == Stage::Ready {
            self.outbox.probe(check);
        }
    }

    /// The next frame to send.
    pub fn poll_frame(&mut self) -> Option<String> {
        self.outbox.next()
    }

    /// What happened.
    pub fn poll_event(&mut self) -> Option<SessionEvent> {
        self.events.pop_front()
    }

    /// When to call [`Self::handle_timeout`] at the latest.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Instant> {
        if self.stage == Stage::Ready { self.silence.deadline() } else { None }
    }

    /// Time has passed.
    pub fn handle_timeout(&mut self, now: Instant) {
        if self.stage == Stage::Ready && self.silence.handle_timeout(now) {
            self.events.push_back(SessionEvent::Silent);
        }
    }

    /// The socket closed, with a code and a reason if it was closed properly. Returns what that
    /// means for the connection. What was heard before is still told: an answer that came counts.
    pub fn handle_closed(&mut self, code: Option<u16>, reason: &str) -> Failure {
        self.end();
        failure_of_close(code, reason)
    }

    fn end(&mut self) {
        self.stage = Stage::Over;
        self.outbox = Outbox::default();
        self.calls = Calls::default();
    }
}

fn text_of(frame: &ClientFrame) -> Option<String> {
    serde_json::to_string(frame).ok()
}
