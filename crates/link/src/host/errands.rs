//! Requests over HTTP: each with a token that is good at that moment, and sent once more with
//! another where the host did not take it.

use serde::Serialize;
use wakeful_wire::{
    Code, Problem,
    api::GrantRequest,
    host::{DESCRIPTOR_PATH, Descriptor, TOKEN_PATH, TokenRequest},
    rpc::{PageCursor, ThreadId},
};

use super::HostLink;
use crate::{
    AttemptId, Failure, FailureReason, Instant,
    authorization::{Access, Action, Asked, CallerId, Credential, HttpPolicy, Need, RenewalId},
    effect::{Effect, Way},
    families::{Read, ReadAnswer, ReadWhat},
    http::{HttpAnswer, Proof, Reply, Request, Side},
    registry::Target,
    shell::{self, Fetched},
    threads,
};

/// What a request is for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Purpose {
    /// The ticket of an attempt.
    Ticket(AttemptId),
    /// The descriptor, for a check.
    Descriptor(u64),
    /// A grant of the control plane.
    Grant(RenewalId),
    /// A token for a grant or a refresh token.
    Exchange(RenewalId),
    /// The list.
    Shell(shell::FetchId),
    /// An older page of a thread.
    Page(threads::FetchId),
    /// Rows of a family, or a search.
    Families(Read),
    /// Older settled threads, or their counts.
    Settled(Read),
}

/// A request that is waited for.
#[derive(Debug)]
pub(super) struct Errand {
    purpose: Purpose,
    /// What is sent, once there is a token; absent where it was sent already and never needs one.
    request: Option<Request>,
    /// The caller that waits for a token.
    caller: Option<CallerId>,
    /// The token that it was sent with.
    access: Option<Access>,
    /// Whether a token was refused already.
    again: bool,
}

impl HostLink {
    fn draw(&mut self) -> u64 {
        self.drawn += 1;
        self.drawn
    }

    /// Waits for what comes of a request from here on. `request` is what is still to be sent, with
    /// a token.
    fn enlist(&mut self, purpose: Purpose, request: Option<Request>) -> u64 {
        let number = self.draw();
        let errand = Errand { purpose, request, caller: None, access: None, again: false };
        self.errands.insert(number, errand);
        number
    }

    /// Sends a request that brings its own proof, the way that was taken last.
    pub(super) fn send(&mut self, request: Request, purpose: Purpose) -> u64 {
        self.send_by(self.way.clone(), request, purpose)
    }

    fn send_by(&mut self, way: Option<Way>, request: Request, purpose: Purpose) -> u64 {
        let number = self.enlist(purpose, None);
        if let Some(way) = way {
            let ask = self.ask(number);
            self.effects.push_back(Effect::Ask { ask, way, request });
        }
        number
    }

    /// Reads something of the host, with a token. It wakes nothing, and its failure is no word on
    /// the connection.
    pub(super) fn read(
        &mut self,
        now: Instant,
        path: String,
        etag: Option<String>,
        purpose: Purpose,
    ) {
        if self.attempts.is_empty() {
            let detail = "This host is not connected.";
            let failure = Failure::new(FailureReason::Transport, detail);
            return self.deliver(now, purpose, Err(failure));
        }
        let request = Request { etag, ..Request::get(path, Proof::None) };
        let number = self.enlist(purpose, Some(request));
        self.advance(now, number);
    }

    /// Asks for a token for an errand.
    fn advance(&mut self, now: Instant, number: u64) {
        let Some(errand) = self.errands.get_mut(&number) else { return };
        let rejected = errand.access.take().filter(|_| errand.again).map(|access| access.id);
        match self.authorization.access(now, Need { wake: false, rejected }) {
            Asked::Held(access) => self.dispatch(now, number, access),
            Asked::Waiting(caller) => errand.caller = Some(caller),
            Asked::Refused(failure) => self.give_up(now, number, failure),
        }
    }

    fn dispatch(&mut self, now: Instant, number: u64, access: Access) {
        let ask = self.ask(number);
        let Some(errand) = self.errands.get_mut(&number) else { return };
        let (Some(request), Some(way)) = (errand.request.clone(), self.way.clone()) else {
            let detail = "There is no way to this host yet.";
            return self.give_up(now, number, Failure::new(FailureReason::Transport, detail));
        };
        errand.access = Some(access.clone());
        errand.caller = None;
        let request = Request { proof: Proof::Access(access), ..request };
        self.effects.push_back(Effect::Ask { ask, way, request });
    }

    fn give_up(&mut self, now: Instant, number: u64, failure: Failure) {
        if let Some(errand) = self.errands.remove(&number) {
            self.deliver(now, errand.purpose, Err(failure));
        }
    }

    /// Nobody waits for these any more.
    pub(super) fn withdraw(&mut self, which: impl Fn(&Purpose) -> bool) {
        let numbers: Vec<u64> = self
            .errands
            .iter()
            .filter(|(_, errand)| which(&errand.purpose))
            .map(|(number, _)| *number)
            .collect();
        for number in numbers {
            self.withdraw_one(number);
        }
    }

    pub(super) fn withdraw_one(&mut self, number: u64) {
        let Some(errand) = self.errands.remove(&number) else { return };
        match errand.caller {
            Some(caller) => self.authorization.cancel(caller),
            None => self.effects.push_back(Effect::Withdraw { ask: self.ask(number) }),
        }
    }

    /// Asks the host who it is, by a fresh request.
    pub(super) fn ask_host(&mut self, check: u64) {
        let request = Request::get(DESCRIPTOR_PATH, Proof::None);
        self.send(request, Purpose::Descriptor(check));
    }

    /// Does what the tokens need.
    pub(super) fn authorize(&mut self, now: Instant, action: Action) {
        match action {
            Action::Grant { renewal, wake } => self.ask_for_grant(renewal, wake),
            Action::Exchange { renewal, credential, address, wake } => {
                let request = match credential {
                    Credential::Grant(grant) => TokenRequest::Grant {
                        grant: grant.reveal().to_owned(),
                        label: Some(self.options.label.clone()),
                    },
                    Credential::Refresh(token) => {
                        TokenRequest::Refresh { refresh_token: token.reveal().to_owned() }
                    }
                };
                let request = Request {
                    wake,
                    limit: crate::authorization::RENEWAL_LIMIT,
                    ..Request::post(TOKEN_PATH, Proof::Key { address }, json(&request))
                };
                self.send(request, Purpose::Exchange(renewal));
            }
            Action::Store { renewal, refresh_token } => {
                self.effects.push_back(Effect::StoreRefresh {
                    at: self.at,
                    renewal,
                    refresh_token,
                });
            }
            Action::Forget => self.effects.push_back(Effect::ForgetRefresh { at: self.at }),
            Action::Cancel { renewal } => self.withdraw(|purpose| match purpose {
                Purpose::Grant(held) | Purpose::Exchange(held) => *held == renewal,
                Purpose::Ticket(_)
                | Purpose::Descriptor(_)
                | Purpose::Shell(_)
                | Purpose::Page(_)
                | Purpose::Families(_)
                | Purpose::Settled(_) => false,
            }),
            Action::Answer { caller, answer } => self.answered(now, caller, answer),
            // The host has moved the socket to the newer session by itself.
            Action::Renewed { .. } => {}
        }
    }

    fn ask_for_grant(&mut self, renewal: RenewalId, wake: bool) {
        let Some((platform, env)) = self.grantor() else { return };
        let body = json(&GrantRequest { scopes: None, wake });
        let request = Request {
            wake,
            limit: crate::authorization::RENEWAL_LIMIT,
            ..Request::post(format!("/api/environments/{env}/grant"), Proof::None, body)
        };
        let way = Way { address: platform.clone(), platform: Some(platform) };
        self.send_by(Some(way), request, Purpose::Grant(renewal));
    }

    fn answered(&mut self, now: Instant, caller: CallerId, answer: Result<Access, Failure>) {
        if let Some(attempt) = self.attempt_of(caller) {
            match answer {
                Ok(access) => self.entered(now, attempt, access),
                Err(failure) => self.fail(now, attempt, failure),
            }
            return;
        }
        let waits = |errand: &Errand| errand.caller == Some(caller);
        let found = self.errands.iter().find(|(_, errand)| waits(errand));
        let Some(number) = found.map(|(number, _)| *number) else { return };
        match answer {
            Ok(access) => self.dispatch(now, number, access),
            Err(failure) => self.give_up(now, number, failure),
        }
    }

    pub(crate) fn handle_reply(&mut self, now: Instant, number: u64, reply: Reply) {
        let Some(errand) = self.errands.get_mut(&number) else { return };
        if let (Reply::Answered(answer), Some(_), Some(_)) =
            (&reply, &errand.request, &errand.access)
            && HttpPolicy::retry(answer.status, answer.challenge.as_deref(), errand.again)
        {
            errand.again = true;
            self.advance(now, number);
        } else if let Some(errand) = self.errands.remove(&number) {
            self.deliver(now, errand.purpose, Ok(reply));
        }
        self.settle(now);
    }

    /// Brings what came to whoever asked for it.
    fn deliver(&mut self, now: Instant, purpose: Purpose, came: Result<Reply, Failure>) {
        match (purpose, came) {
            (Purpose::Ticket(attempt), Ok(reply)) => self.handle_ticket(now, attempt, &reply),
            (Purpose::Ticket(attempt), Err(failure)) => self.fail(now, attempt, failure),
            (Purpose::Descriptor(check), came) => self.described(now, check, came),
            (Purpose::Grant(renewal), Ok(reply)) => {
                self.authorization.handle_granted(now, renewal, &reply);
            }
            (Purpose::Exchange(renewal), Ok(reply)) => {
                self.authorization.handle_exchanged(now, renewal, &reply);
            }
            // Neither needs a token, so neither fails for want of one.
            (Purpose::Grant(_) | Purpose::Exchange(_), Err(_)) => {}
            (Purpose::Shell(fetch), came) => {
                let fetched = came.and_then(|reply| fetched(&reply));
                let snapshot = match &fetched {
                    Ok(Fetched::Snapshot { snapshot, .. }) => Some(snapshot.cursor),
                    Ok(Fetched::NotModified) | Err(_) => None,
                };
                self.shell.handle_fetched(now, fetch, fetched);
                if let Some(cursor) = snapshot {
                    self.handle_replaced(now, cursor);
                }
                self.note_generation(now);
            }
            (Purpose::Page(fetch), came) => {
                let gone = came.as_ref().is_ok_and(|reply| self.is_gone(reply));
                match self.threads.awaiting(fetch).filter(|_| gone) {
                    Some(stream) => self.threads.handle_gone(now, stream),
                    None => {
                        let page = came.and_then(|reply| reply.read(Side::Host));
                        self.threads.handle_page(now, fetch, page);
                    }
                }
            }
            (Purpose::Families(read), came) => {
                let answer = self.read_answer(&read.what, came);
                self.families.handle_read(now, read.id, read.generation, answer);
            }
            (Purpose::Settled(read), came) => {
                let answer = self.read_answer(&read.what, came);
                self.settled.handle_read(now, read.id, read.generation, answer);
            }
        }
    }

    /// An answer is evidence that the host lives if it names this host, and no other.
    fn described(&mut self, now: Instant, check: u64, came: Result<Reply, Failure>) {
        use crate::supervisor::Input;

        let descriptor = came.and_then(|reply| reply.read::<Descriptor>(Side::Host));
        let expected = descriptor.is_ok_and(|descriptor| descriptor.id == self.host());
        let input =
            if expected { Input::HostAnswered { check } } else { Input::HostFailed { check } };
        self.supervisor.handle(now, input);
    }

    fn read_answer(
        &self,
        what: &ReadWhat,
        came: Result<Reply, Failure>,
    ) -> Result<ReadAnswer, Failure> {
        let reply = came?;
        match what {
            ReadWhat::Family { .. } if self.is_gone(&reply) => Ok(ReadAnswer::Gone),
            ReadWhat::Family { .. } | ReadWhat::Settled { .. } => {
                reply.read(Side::Host).map(ReadAnswer::Rows)
            }
            ReadWhat::Counts => reply.read(Side::Host).map(ReadAnswer::Counts),
            ReadWhat::Search { .. } => reply.read(Side::Host).map(ReadAnswer::Found),
        }
    }

    /// Whether this host itself, and nobody on the way, says that what was asked for is not there.
    fn is_gone(&self, reply: &Reply) -> bool {
        let Reply::Answered(answer) = reply else { return false };
        answer.host == Some(self.host())
            && serde_json::from_slice::<Problem>(&answer.body)
                .is_ok_and(|problem| matches!(problem.code, Code::NotFound | Code::Gone))
    }
}

/// What a read of the list brought.
fn fetched(reply: &Reply) -> Result<Fetched, Failure> {
    if let Reply::Answered(HttpAnswer { status: 304, .. }) = reply {
        return Ok(Fetched::NotModified);
    }
    let snapshot = reply.read(Side::Host)?;
    let etag = match reply {
        Reply::Answered(answer) => answer.etag.clone(),
        Reply::TimedOut | Reply::Unreachable(_) | Reply::Unproven(_) => None,
    };
    Ok(Fetched::Snapshot { snapshot, etag })
}

fn json(value: &impl Serialize) -> serde_json::Value {
    serde_json::to_value(value).unwrap_or_default()
}

/// The path of a read on demand.
pub(super) fn path_of(what: &ReadWhat) -> String {
    match what {
        ReadWhat::Family { thread } => format!("/threads/{thread}/family"),
        ReadWhat::Settled { below, limit } => {
            format!("/shell/settled?at={}&thread={}&limit={limit}", below.at.0, below.thread)
        }
        ReadWhat::Counts => "/shell/counts".to_owned(),
        ReadWhat::Search { q, limit } => format!("/search?q={}&limit={limit}", encoded(q)),
    }
}

/// The path of an older page of a thread.
pub(super) fn page_path(thread: ThreadId, before: PageCursor) -> String {
    let PageCursor { created, segment, item } = before;
    format!("/threads/{thread}/page?created={created}&segment={segment}&item={item}")
}

/// A text as it stands in a query (RFC 3986 section 2.1).
fn encoded(text: &str) -> String {
    use std::fmt::Write as _;

    let mut query = String::with_capacity(text.len());
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            query.push(char::from(byte));
        } else {
            // Writing to a string cannot fail.
            let _ = write!(query, "%{byte:02X}");
        }
    }
    query
}

impl HostLink {
    /// Whose grants open this host; nothing for a paired one.
    fn grantor(&self) -> Option<(crate::route::Address, wakeful_wire::EnvId)> {
        match &self.target {
            Target::Environment { account, env } => Some((account.platform.clone(), *env)),
            Target::Paired { .. } => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_that_are_searched_for_cannot_become_other_parameters() {
        let what = ReadWhat::Search { q: "a&limit=9 ü/#?%".to_owned(), limit: 20 };
        assert_eq!(path_of(&what), "/search?q=a%26limit%3D9%20%C3%BC%2F%23%3F%25&limit=20");
    }
}
