//! One client of the crowd: a link, and the client's end of its wires.

use std::collections::{BTreeMap, BTreeSet};

use wakeful_link::{
    At, AttemptId, Change, ConnectionPhase, DataStatus, Effect, Enter, Instant, Link, Options,
    authorization::Secret,
    http::Reply,
    registry::{Entry, Persisted},
    route::{Address, Route, Routes},
};
use wakeful_wire::{host::TOKEN_PATH, rpc::Omissions};

use super::{Dial, Event, Figures, host};

/// How a client was last seen.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Seen {
    connected: bool,
    live: bool,
}

#[derive(Debug)]
pub(super) struct Client {
    pub(super) link: Link,
    /// How long its way takes, in milliseconds.
    pub(super) latency: u64,
    place: usize,
    started: bool,
    /// Its sockets, opened or being opened.
    lines: BTreeMap<AttemptId, At>,
    /// Those of them that the host serves.
    served: BTreeSet<AttemptId>,
    /// When the last frame on its way arrives: frames keep their order.
    arrival: u64,
    /// When its clock is looked at next.
    due: Option<u64>,
    /// Whether the attempt under way was counted.
    counted: bool,
    seen: Seen,
}

impl Client {
    pub(super) fn new(place: usize, seed: u64, latency: u64) -> Self {
        let options = Options {
            key: format!("thumbprint-{place}"),
            label: "one of many".to_owned(),
            tickets: false,
            page: None,
            keep_alive: false,
            persist: false,
            omit: Omissions { families: true, older_settled: true },
        };
        Self {
            link: Link::new(Instant(0), seed, options),
            latency,
            place,
            started: false,
            lines: BTreeMap::new(),
            served: BTreeSet::new(),
            arrival: 0,
            due: None,
            counted: false,
            seen: Seen::default(),
        }
    }

    pub(super) const fn now(&self, time: u64) -> Instant {
        Instant(time)
    }

    /// Its clock is due; the first time that is its start.
    pub(super) fn due(&mut self, time: u64) {
        let now = self.now(time);
        self.due = None;
        if std::mem::replace(&mut self.started, true) {
            self.link.handle_timeout(now);
            return;
        }
        let address = Address::new(host::ADDRESS).unwrap_or_else(|_| unreachable!("an address"));
        let routes = Routes::of(Route::new(address));
        let entry = Entry::paired(host::id(), "host".to_owned(), routes);
        let persisted = Persisted { entries: vec![entry], ..Persisted::default() };
        let secret = Secret::new(format!("refresh.{}", self.place));
        self.link.start(now, persisted, [(host::id(), secret)]);
    }

    /// When to look at its clock, if that is sooner than is known.
    pub(super) fn take_due(&mut self, time: u64) -> Option<u64> {
        let due = self.link.poll_timeout()?.0.max(time);
        let sooner = self.due.is_none_or(|known| due < known);
        sooner.then(|| {
            self.due = Some(due);
            due
        })
    }

    /// The next thing that it wants carried.
    pub(super) fn poll(&mut self, time: u64, figures: &mut Figures) -> Option<Event> {
        loop {
            match self.link.poll_effect()? {
                Effect::Open { at, attempt, enter, known, .. } => {
                    self.attempts(time, figures);
                    self.lines.insert(attempt, at);
                    let token = match enter {
                        Enter::Access(access) => access.token.reveal().to_owned(),
                        Enter::Ticket(ticket) => ticket.reveal().to_owned(),
                    };
                    return Some(Event::Dials(attempt, Dial { token, known }));
                }
                Effect::Send { attempt, text, .. } => {
                    figures.bytes(text.len());
                    return Some(Event::Up(attempt, text));
                }
                Effect::Close { attempt, .. } => {
                    self.lines.remove(&attempt);
                    self.counted = false;
                    return Some(Event::Left(attempt));
                }
                Effect::Ask { ask, request, .. } => {
                    if request.path == TOKEN_PATH && !self.is_connected() {
                        self.attempts(time, figures);
                    }
                    return Some(Event::Arrives(ask, Box::new(request)));
                }
                Effect::Tell(Change::Connection(_) | Change::Shell(_)) => self.look(time, figures),
                Effect::Tell(_)
                | Effect::Withdraw { .. }
                | Effect::Follow { .. }
                | Effect::Unfollow { .. }
                | Effect::LoadShell { .. }
                | Effect::SaveShell { .. }
                | Effect::LoadThread { .. }
                | Effect::SaveThread { .. }
                | Effect::ForgetThread { .. }
                | Effect::StoreRefresh { .. }
                | Effect::ForgetRefresh { .. }
                | Effect::Persist { .. }
                | Effect::Unpersist { .. }
                | Effect::Clear { .. } => {}
            }
        }
    }

    /// Something of an attempt goes out: it counts once.
    fn attempts(&mut self, time: u64, figures: &mut Figures) {
        if !std::mem::replace(&mut self.counted, true) {
            figures.attempt(self.place, time);
        }
    }

    fn look(&mut self, time: u64, figures: &mut Figures) {
        let seen = Seen { connected: self.is_connected(), live: self.is_live() };
        if seen.connected && !self.seen.connected {
            self.counted = false;
            figures.connected(self.place, time);
        }
        if seen.live && !self.seen.live {
            figures.live(self.place, time);
        }
        self.seen = seen;
    }

    fn phase(&self) -> Option<ConnectionPhase> {
        self.link.connection(host::id()).map(|state| state.phase)
    }

    pub(super) fn is_connected(&self) -> bool {
        self.phase() == Some(ConnectionPhase::Connected)
    }

    pub(super) fn is_blocked(&self) -> bool {
        self.phase() == Some(ConnectionPhase::Blocked)
    }

    pub(super) fn is_live(&self) -> bool {
        self.link.shell(host::id()).is_some_and(|shell| shell.status == DataStatus::Live)
    }

    /// When what goes on the wire now arrives here.
    pub(super) const fn arrival(&mut self, time: u64) -> u64 {
        let at = time + self.latency;
        if at > self.arrival {
            self.arrival = at;
        }
        self.arrival
    }

    pub(super) fn serve(&mut self, attempt: AttemptId) {
        self.served.insert(attempt);
    }

    pub(super) fn served(&self) -> Vec<AttemptId> {
        self.served.iter().copied().collect()
    }

    pub(super) fn forget_served(&mut self) {
        self.served.clear();
    }

    pub(super) fn left(&mut self, attempt: AttemptId) {
        self.served.remove(&attempt);
    }

    /// An answer that brings no token ends the attempt that it was asked for.
    pub(super) const fn answered(&mut self, reply: &Reply) {
        if !matches!(reply, Reply::Answered(answer) if answer.status < 400) {
            self.counted = false;
        }
    }

    pub(super) fn opened(&mut self, now: Instant, attempt: AttemptId) {
        if let Some(at) = self.lines.get(&attempt) {
            self.link.handle_opened(now, *at, attempt);
        }
    }

    pub(super) fn not_opened(&mut self, now: Instant, attempt: AttemptId, reply: &Reply) {
        self.counted = false;
        if let Some(at) = self.lines.remove(&attempt) {
            self.link.handle_not_opened(now, at, attempt, reply);
        }
    }

    pub(super) fn heard(&mut self, now: Instant, attempt: AttemptId, text: &str) {
        if let Some(at) = self.lines.get(&attempt) {
            self.link.handle_text(now, *at, attempt, text);
        }
    }

    pub(super) fn closed(&mut self, now: Instant, attempt: AttemptId, code: Option<u16>) {
        self.counted = false;
        if let Some(at) = self.lines.remove(&attempt) {
            self.link.handle_closed(now, at, attempt, code, "");
        }
    }
}
