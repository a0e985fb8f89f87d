//! Attempts: from the way to the hello, each step once.

use wakeful_wire::{
    host::{TICKET_PATH, close},
    rpc::{Hello, HostConfig},
};

use super::{HostLink, Wish, errands::Purpose};
use crate::{
    AttemptId, Failure, FailureReason, Instant, Stage,
    authorization::{Access, Asked, CallerId, HttpPolicy, Need, Secret, Ticket, TokenId},
    effect::{Effect, Enter, Way},
    http::{Method, Proof, Reply, Request, Side},
    route::RouteAttempt,
    session::{Session, SessionEvent, failure_of_close},
    supervisor::{Action, Input, ReleaseReason},
};

/// An attempt under way, or the session that it became.
#[derive(Debug)]
pub(super) struct Opening {
    wake: bool,
    deadline: Instant,
    tried: RouteAttempt,
    /// The token that the host refused, once: another is had in the same attempt.
    refused: Option<TokenId>,
    access: Option<Access>,
    /// Whether the host has greeted: from then on it is a session, which can only close.
    ready: bool,
    /// What it said of itself.
    hello: Option<Box<Hello>>,
    step: Step,
}

#[derive(Debug)]
enum Step {
    /// A token is waited for.
    Token(CallerId),
    /// A ticket is.
    Ticket(u64),
    /// The socket is being opened.
    Socket,
    /// It is open.
    Open(Box<Session>),
}

impl Opening {
    pub(super) fn poll_timeout(&self) -> Option<Instant> {
        match &self.step {
            Step::Open(session) => session.poll_timeout(),
            Step::Token(_) | Step::Ticket(_) | Step::Socket => None,
        }
    }
}

impl HostLink {
    /// Does what the supervisor wants.
    pub(super) fn carry(&mut self, now: Instant, action: Action) {
        match action {
            Action::Want { attempt, urgent } => {
                self.wishes.push_back(Wish::Want { attempt, urgent });
            }
            Action::Begin { attempt, wake, deadline } => self.begin(now, attempt, wake, deadline),
            Action::Abandon { attempt } => {
                self.wishes.push_back(Wish::Done { attempt });
                self.drop_attempt(now, attempt);
            }
            Action::Publish { attempt, .. } => self.publish(now, attempt),
            Action::Unpublish { .. } => self.unpublish(now),
            Action::Release { attempt, why } => {
                self.wishes.push_back(Wish::Done { attempt });
                if self.attempts.remove(&attempt).is_some() && why != ReleaseReason::Closed {
                    self.effects.push_back(Effect::Close { at: self.at, attempt });
                }
                self.handle_fewer(now);
            }
            Action::Probe { attempt, check } => {
                if let Some(session) = self.session_mut(attempt) {
                    session.probe(u32::try_from(check).unwrap_or(u32::MAX));
                }
            }
            Action::AskHost { check } => self.ask_host(check),
            Action::StopAsking { check } => {
                self.withdraw(|purpose| *purpose == Purpose::Descriptor(check));
            }
        }
    }

    fn begin(&mut self, now: Instant, attempt: AttemptId, wake: bool, deadline: Instant) {
        let tried = RouteAttempt::of_page(self.options.page);
        let step = Step::Socket;
        let opening = Opening {
            wake,
            deadline,
            tried,
            refused: None,
            access: None,
            ready: false,
            hello: None,
            step,
        };
        self.attempts.insert(attempt, opening);
        self.threads.handle_connecting(now);
        self.take_way(now, attempt);
    }

    /// Takes the best way that this attempt has not tried.
    fn take_way(&mut self, now: Instant, attempt: AttemptId) {
        let Some(opening) = self.attempts.get(&attempt) else { return };
        let picked = self.routes.as_ref().and_then(|routes| routes.pick(&opening.tried));
        let Some(route) = picked else {
            let detail = "There is no way to this host.";
            return self.fail(now, attempt, Failure::new(FailureReason::Configuration, detail));
        };
        let way = Way { address: route.address().clone(), platform: self.platform.clone() };
        let class = route.class();
        self.way = Some(way);
        self.supervisor.handle(now, Input::Route { attempt, class });
        self.stage(now, attempt, Stage::Preparing);
        self.enter(now, attempt);
    }

    fn stage(&mut self, now: Instant, attempt: AttemptId, stage: Stage) {
        self.supervisor.handle(now, Input::Stage { attempt, stage });
    }

    /// Asks for a token.
    fn enter(&mut self, now: Instant, attempt: AttemptId) {
        let Some(opening) = self.attempts.get_mut(&attempt) else { return };
        let need = Need { wake: opening.wake, rejected: opening.refused };
        match self.authorization.access(now, need) {
            Asked::Held(access) => self.entered(now, attempt, access),
            Asked::Waiting(caller) => opening.step = Step::Token(caller),
            Asked::Refused(failure) => self.fail(now, attempt, failure),
        }
    }

    /// The attempt that waits for this caller's token.
    pub(super) fn attempt_of(&self, caller: CallerId) -> Option<AttemptId> {
        let waits = |opening: &Opening| matches!(opening.step, Step::Token(held) if held == caller);
        self.attempts.iter().find(|(_, opening)| waits(opening)).map(|(attempt, _)| *attempt)
    }

    /// There is a token: the connection is prepared.
    pub(super) fn entered(&mut self, now: Instant, attempt: AttemptId, access: Access) {
        let Some(opening) = self.attempts.get_mut(&attempt) else { return };
        opening.access = Some(access.clone());
        self.shell.handle_prepared(now);
        if self.options.tickets {
            let limit = opening.deadline.since(now).min(crate::authorization::TICKET_LIMIT);
            let request = Request {
                method: Method::Post,
                wake: opening.wake,
                limit,
                ..Request::get(TICKET_PATH, Proof::Access(access))
            };
            let number = self.send(request, Purpose::Ticket(attempt));
            if let Some(opening) = self.attempts.get_mut(&attempt) {
                opening.step = Step::Ticket(number);
            }
        } else {
            self.dial(now, attempt, Enter::Access(access));
        }
    }

    /// What came of asking for a ticket.
    pub(super) fn handle_ticket(&mut self, now: Instant, attempt: AttemptId, reply: &Reply) {
        let Some(opening) = self.attempts.get_mut(&attempt) else { return };
        let Some(access) = opening.access.clone() else { return };
        match self.authorization.handle_ticket(&access, reply) {
            Ticket::Taken(ticket) => {
                self.dial(now, attempt, Enter::Ticket(Secret::new(ticket.ticket)));
            }
            Ticket::Again => self.enter(now, attempt),
            Ticket::Failed(failure) => self.fail(now, attempt, failure),
        }
    }

    fn dial(&mut self, now: Instant, attempt: AttemptId, enter: Enter) {
        let (Some(opening), Some(way)) = (self.attempts.get_mut(&attempt), self.way.clone()) else {
            return;
        };
        opening.step = Step::Socket;
        let wake = opening.wake;
        let known = self.known.as_ref().and_then(|known| known.tag.clone());
        self.effects.push_back(Effect::Open { at: self.at, attempt, way, wake, enter, known });
        self.stage(now, attempt, Stage::Opening);
    }

    pub(crate) fn handle_opened(&mut self, now: Instant, attempt: AttemptId) {
        let host = self.host();
        let Some(opening) = self.attempts.get_mut(&attempt) else { return };
        if matches!(opening.step, Step::Socket) {
            let session = Session::new(now, host).knowing(self.known.clone());
            opening.step = Step::Open(Box::new(session));
            self.stage(now, attempt, Stage::Synchronizing);
            self.settle(now);
        }
    }

    /// There is no socket: what the upgrade was answered with, or why it was not answered.
    pub(crate) fn handle_not_opened(&mut self, now: Instant, attempt: AttemptId, reply: &Reply) {
        let Some(opening) = self.attempts.get_mut(&attempt) else { return };
        if !matches!(opening.step, Step::Socket) {
            return;
        }
        let access = opening.access.as_ref();
        let failure = match reply {
            Reply::Answered(answer) => {
                let already = opening.refused.is_some();
                let challenge = answer.challenge.as_deref();
                if let Some(access) = access
                    && HttpPolicy::retry(answer.status, challenge, already)
                {
                    opening.refused = Some(access.id);
                    self.enter(now, attempt);
                    return self.settle(now);
                }
                answer.failure(Side::Host)
            }
            Reply::TimedOut | Reply::Unreachable(_) | Reply::Unproven(_) => {
                match reply.read::<()>(Side::Host) {
                    Err(failure) => failure,
                    Ok(()) => Failure::new(FailureReason::Transport, "There is no socket."),
                }
            }
        };
        let elsewhere = matches!(failure.reason, FailureReason::Network | FailureReason::Timeout);
        if elsewhere && self.leaves_way(attempt) {
            self.take_way(now, attempt);
        } else {
            self.fail(now, attempt, failure);
        }
        self.settle(now);
    }

    /// Counts the present way as tried; whether there is another.
    fn leaves_way(&mut self, attempt: AttemptId) -> bool {
        let (Some(opening), Some(way)) = (self.attempts.get_mut(&attempt), &self.way) else {
            return false;
        };
        opening.tried.fail(&way.address);
        self.routes.as_ref().is_some_and(|routes| routes.pick(&opening.tried).is_some())
    }

    pub(crate) fn handle_text(&mut self, now: Instant, attempt: AttemptId, text: &str) {
        let Some(session) = self.session_mut(attempt) else { return };
        let taken = session.handle_frame(now, text);
        self.asked = None;
        self.supervisor.handle(now, Input::Frame { attempt });
        if let Err(failure) = taken {
            self.effects.push_back(Effect::Close { at: self.at, attempt });
            self.gone(now, attempt, failure);
        }
        self.settle(now);
    }

    /// A sign of life without content.
    pub(crate) fn handle_life(&mut self, now: Instant, attempt: AttemptId) {
        self.asked = None;
        self.supervise(now, Input::Frame { attempt });
    }

    pub(crate) fn handle_closed(
        &mut self,
        now: Instant,
        attempt: AttemptId,
        code: Option<u16>,
        reason: &str,
    ) {
        let failure = match self.session_mut(attempt) {
            Some(session) => session.handle_closed(code, reason),
            None => failure_of_close(code, reason),
        };
        if self.attempts.contains_key(&attempt) {
            // What an ended session stands for is not taken again, if the host said so.
            if failure.reason == FailureReason::Authentication
                || code == Some(close::SESSION_EXPIRED)
            {
                let access = self.attempts.get(&attempt).and_then(|held| held.access.as_ref());
                if let Some(access) = access {
                    self.authorization.reject(access.id);
                }
            }
            self.gone(now, attempt, failure);
        }
        self.settle(now);
    }

    /// A socket is gone by itself.
    fn gone(&mut self, now: Instant, attempt: AttemptId, failure: Failure) {
        if self.attempts.get(&attempt).is_some_and(|opening| opening.ready) {
            self.supervisor.handle(now, Input::Closed { attempt, failure });
        } else {
            self.fail(now, attempt, failure);
        }
    }

    /// The attempt has not worked: nothing of it is left.
    pub(super) fn fail(&mut self, now: Instant, attempt: AttemptId, failure: Failure) {
        self.wishes.push_back(Wish::Done { attempt });
        self.drop_attempt(now, attempt);
        self.supervisor.handle(now, Input::Failed { attempt, failure });
    }

    /// Ends whatever an attempt has begun.
    fn drop_attempt(&mut self, now: Instant, attempt: AttemptId) {
        let Some(opening) = self.attempts.remove(&attempt) else { return };
        match opening.step {
            Step::Token(caller) => self.authorization.cancel(caller),
            Step::Ticket(number) => self.withdraw_one(number),
            Step::Socket | Step::Open(_) => {
                self.effects.push_back(Effect::Close { at: self.at, attempt });
            }
        }
        self.handle_fewer(now);
    }

    /// An attempt or a session is no more: nothing is on its way for lists and threads by it.
    fn handle_fewer(&mut self, now: Instant) {
        if self.attempts.values().all(|opening| opening.ready) {
            self.shell.handle_unprepared(now);
        }
        if self.attempts.is_empty() {
            self.threads.handle_disconnected(now);
        }
    }
}

impl HostLink {
    pub(super) fn session_mut(&mut self, attempt: AttemptId) -> Option<&mut Session> {
        match &mut self.attempts.get_mut(&attempt)?.step {
            Step::Open(session) => Some(session),
            Step::Token(_) | Step::Ticket(_) | Step::Socket => None,
        }
    }

    /// The next thing that happened on a socket.
    pub(super) fn next_event(&mut self) -> Option<(AttemptId, SessionEvent)> {
        self.attempts.iter_mut().find_map(|(attempt, opening)| match &mut opening.step {
            Step::Open(session) => session.poll_event().map(|event| (*attempt, event)),
            Step::Token(_) | Step::Ticket(_) | Step::Socket => None,
        })
    }

    pub(super) fn send_frames(&mut self) {
        let at = self.at;
        for (attempt, opening) in &mut self.attempts {
            let Step::Open(session) = &mut opening.step else { continue };
            while let Some(text) = session.poll_frame() {
                self.effects.push_back(Effect::Send { at, attempt: *attempt, text });
            }
        }
    }

    /// Whose token the published session was opened with, for as long as it lives.
    pub(super) fn access_of(&self, attempt: AttemptId) -> Option<&Access> {
        self.attempts.get(&attempt)?.access.as_ref()
    }

    /// The host has greeted. Who it says that this client is, is checked before anything else.
    pub(super) fn greeted(&mut self, now: Instant, attempt: AttemptId, hello: Box<Hello>) {
        if let Err(failure) = self.authorization.handle_session(&hello.session) {
            return self.fail(now, attempt, failure);
        }
        let Some(opening) = self.attempts.get_mut(&attempt) else { return };
        opening.ready = true;
        self.known = Some(hello.clone());
        opening.hello = Some(hello);
        self.wishes.push_back(Wish::Done { attempt });
        self.supervisor.handle(now, Input::Ready { attempt });
    }

    /// The configuration changed on a session that is not published: it is what holds once it is.
    pub(super) fn configured(&mut self, attempt: AttemptId, config: HostConfig) {
        if let Some(hello) =
            self.attempts.get_mut(&attempt).and_then(|opening| opening.hello.as_mut())
        {
            hello.config = config;
        }
    }

    /// What the host of a session said of itself.
    pub(super) fn hello_of(&self, attempt: AttemptId) -> Option<&Hello> {
        self.attempts.get(&attempt)?.hello.as_deref()
    }
}
