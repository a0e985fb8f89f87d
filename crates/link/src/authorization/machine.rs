//! The machine, as callers, the supervisor and the shell see it.

use std::collections::VecDeque;

use wakeful_wire::host::{SessionView, TicketResponse};

use crate::{Chance, Failure, FailureReason, Instant};

use super::{
    Access, Action, Asked, CallerId, Entry, Need, RenewalId, Reply, Secret, Side, Ticket, TokenId,
    Way,
    callers::Callers,
    identity::Identity,
    live::Live,
    renewal::{Renewal, Step},
    tokens::Tokens,
};

/// The access tokens of one host: had once, shared, renewed in time. See the
/// [module](super) for how it is called.
#[derive(Debug)]
pub struct Authorization {
    pub(super) entry: Option<Entry>,
    /// A refresh token that the host gave and that could not be stored yet.
    pub(super) unstored: Option<Secret>,
    pub(super) identity: Identity,
    pub(super) tokens: Tokens,
    pub(super) callers: Callers,
    pub(super) renewal: Option<Renewal>,
    pub(super) live: Option<Live>,
    pub(super) chance: Chance,
    pub(super) actions: VecDeque<Action>,
    next_renewal: u64,
}

impl Authorization {
    /// Without a token yet; without an `entry`, nobody is signed in. `chance` spreads the renewals
    /// of live sockets.
    #[must_use]
    pub fn new(entry: Option<Entry>, chance: Chance) -> Self {
        let identity = entry.as_ref().map(|entry| Identity::of(&entry.way)).unwrap_or_default();
        Self {
            entry,
            unstored: None,
            identity,
            tokens: Tokens::default(),
            callers: Callers::default(),
            renewal: None,
            live: None,
            chance,
            actions: VecDeque::new(),
            next_renewal: 0,
        }
    }

    /// Asks for a token. One that is held and good for more than [`LIFE_LEFT`](super::LIFE_LEFT) is
    /// given at once; else the caller waits for the renewal that is under way, or begins one.
    pub fn access(&mut self, now: Instant, need: Need) -> Asked {
        if self.entry.is_none() {
            return Asked::Refused(signed_out());
        }
        if let Some(rejected) = need.rejected {
            self.reject(rejected);
        }
        if let Some(access) = self.tokens.usable(now) {
            return Asked::Held(access);
        }
        let Some(caller) = self.callers.join(need.wake) else {
            let detail = "Too much waits for credentials of this host.";
            return Asked::Refused(Failure::new(FailureReason::Overloaded, detail));
        };
        if self.renewal.is_none() {
            self.begin(now, need.wake);
        }
        Asked::Waiting(caller)
    }

    /// A caller leaves. The renewal that it waited for goes on: others may wait for it, or will.
    pub fn cancel(&mut self, caller: CallerId) {
        self.callers.leave(caller);
    }

    /// The host does not take this token. Throws that one away, and none that came after it.
    pub fn reject(&mut self, token: TokenId) {
        self.tokens.evict(token);
    }

    /// What came of a ticket request that was made with `used`, within
    /// [`TICKET_LIMIT`](super::TICKET_LIMIT).
    ///
    /// Silence says nothing of a token, until it is the third in a row
    /// ([`SILENCES_MAX`](super::SILENCES_MAX)). Neither does a host that has too much to do, nor a
    /// proof that could not be made. After any other failure the token is replaced, within the same
    /// attempt unless it was had for it (spec client-runtime 4.3).
    pub fn handle_ticket(&mut self, used: &Access, reply: &Reply) -> Ticket {
        if self.entry.is_none() || self.tokens.is_of_the_past(used.id) {
            return Ticket::Failed(signed_out());
        }
        let failure = match reply.read::<TicketResponse>(Side::Host) {
            Ok(ticket) => {
                self.tokens.answered(used.id);
                return Ticket::Taken(ticket);
            }
            Err(failure) => failure,
        };
        let keeps = if reply.is_silence() {
            !self.tokens.silent(used.id)
        } else {
            matches!(reply, Reply::Unproven(_)) || failure.reason == FailureReason::Overloaded
        };
        if keeps {
            return Ticket::Failed(failure);
        }
        self.tokens.evict(used.id);
        if used.cached { Ticket::Again } else { Ticket::Failed(failure) }
    }

    /// The session that the host showed on a socket. A client must not go on as somebody else.
    ///
    /// # Errors
    /// [`FailureReason::Authentication`] if it is another account's, or another pairing's, than
    /// before: the socket is to be closed. The token that is held is thrown away.
    pub fn handle_session(&mut self, session: &SessionView) -> Result<(), Failure> {
        if self.entry.is_none() {
            return Err(signed_out());
        }
        let checked = self.identity.check_session(session);
        if checked.is_err() {
            self.tokens.evict_held();
        }
        checked
    }

    /// A socket lives on a session that ends at `until`, or none lives any more. Said once for each
    /// socket: the machine itself counts on from there. For the session that a token stands for,
    /// `until` is the [end of that token](Access::until); for a paired host too, where the renewal
    /// also extends the pairing, so that one in use never runs out.
    ///
    /// A renewal begins within the last minute. If it fails, others follow until `until`, not
    /// closer than [`RENEWAL_SPACING`](super::RENEWAL_SPACING); then nothing more happens here.
    pub fn handle_live(&mut self, now: Instant, until: Option<Instant>) {
        let until = until.filter(|_| self.entry.is_some());
        if self.live.as_ref().map(Live::until) != until {
            self.live = until.map(|until| Live::new(now, until, &mut self.chance));
        }
    }

    /// When the session of the live socket ends, the latest renewal taken in.
    #[must_use]
    pub fn live_until(&self) -> Option<Instant> {
        self.live.as_ref().map(Live::until)
    }

    /// Another account signed in, another key is used, or the host was paired with anew. The same
    /// entry as before changes nothing. Else everything that was had before is as after
    /// [`Self::sign_out`], but what is stored stays.
    pub fn enter(&mut self, entry: Entry) {
        if self.entry.as_ref() != Some(&entry) {
            self.begin_anew();
            self.identity = Identity::of(&entry.way);
            self.entry = Some(entry);
        }
    }

    /// Nobody is signed in any more. No token of before is given out, used or stored afterwards,
    /// whatever still arrives; what is stored is removed. Whoever waits is told.
    pub fn sign_out(&mut self) {
        let stored = self.entry.as_ref().is_some_and(|entry| match entry.way {
            Way::Environment { .. } => false,
            Way::Paired { .. } => true,
        });
        self.begin_anew();
        self.identity = Identity::default();
        self.entry = None;
        if stored {
            self.actions.push_back(Action::Forget);
        }
    }

    /// What is to be done next. At most an answer for each caller and a handful of others wait.
    pub fn poll_action(&mut self) -> Option<Action> {
        self.actions.pop_front()
    }

    /// When to call [`Self::handle_timeout`] at the latest.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Instant> {
        match &self.renewal {
            Some(renewal) => Some(renewal.deadline),
            None => self.live.as_ref().and_then(Live::due),
        }
    }

    /// Time has passed. Harmless at any moment.
    pub fn handle_timeout(&mut self, now: Instant) {
        if let Some(renewal) = self.renewal.as_ref().filter(|renewal| renewal.deadline <= now) {
            self.actions.push_back(Action::Cancel { renewal: renewal.id });
            let detail = "Credentials for this host could not be had in time.";
            self.fail(now, Failure::new(FailureReason::Timeout, detail));
        }
        let is_due = self.live.as_ref().and_then(Live::due).is_some_and(|due| due <= now);
        if is_due && self.renewal.is_none() {
            // Its socket lives: nothing has to be woken.
            self.begin(now, false);
        }
    }

    pub(super) fn push_renewal(&mut self, now: Instant, wake: bool, step: Step) -> RenewalId {
        let id = RenewalId(self.next_renewal);
        self.next_renewal += 1;
        self.renewal = Some(Renewal::new(id, now, wake, step));
        id
    }

    /// Ends whatever is under way, and takes back what has not been done yet.
    fn begin_anew(&mut self) {
        self.actions.retain_mut(|action| match action {
            Action::Answer { answer, .. } => {
                if answer.is_ok() {
                    *answer = Err(signed_out());
                }
                true
            }
            Action::Cancel { .. } | Action::Forget => true,
            Action::Grant { .. }
            | Action::Exchange { .. }
            | Action::Store { .. }
            | Action::Renewed { .. } => false,
        });
        if let Some(renewal) = self.renewal.take() {
            self.actions.push_back(Action::Cancel { renewal: renewal.id });
        }
        for caller in self.callers.take() {
            self.actions.push_back(Action::Answer { caller, answer: Err(signed_out()) });
        }
        self.unstored = None;
        self.live = None;
        self.tokens.begin_anew();
    }
}

fn signed_out() -> Failure {
    let detail = "There are no credentials for this host: sign in, or pair with it.";
    Failure::new(FailureReason::Authentication, detail)
}
