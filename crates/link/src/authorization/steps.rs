//! The steps of a renewal, from one answer to the next request.

use wakeful_wire::host::TokenResponse;

use crate::{Failure, FailureReason, Instant};

use super::{
    Access, Action, Authorization, CallerId, Credential, Entry, RenewalId, Reply, Secret, Way,
    exchange,
    renewal::{Brought, Renewal, Step},
};

impl Authorization {
    /// What came of [`Action::Grant`].
    pub fn handle_granted(&mut self, now: Instant, renewal: RenewalId, reply: &Reply) {
        let Some(Renewal { id, wake, step: step @ Step::Granting, .. }) = self.current(renewal)
        else {
            return;
        };
        let (renewal, wake) = (*id, *wake);
        match exchange::granted(reply) {
            Err(failure) => self.fail(now, failure),
            Ok(granted) => {
                let address = granted.address;
                *step = Step::Exchanging { address: address.clone() };
                match self.identity.check_grant(&granted.grant) {
                    Err(failure) => self.fail(now, failure),
                    Ok(()) => {
                        let credential = Credential::Grant(Secret::new(granted.grant));
                        let exchange = Action::Exchange { renewal, credential, address, wake };
                        self.actions.push_back(exchange);
                    }
                }
            }
        }
    }

    /// What came of [`Action::Exchange`]. A token's life is counted from this moment.
    pub fn handle_exchanged(&mut self, now: Instant, renewal: RenewalId, reply: &Reply) {
        let Some(Renewal { step: Step::Exchanging { address }, repeated, .. }) =
            self.current(renewal)
        else {
            return;
        };
        let address = address.clone();
        let repeats = !std::mem::replace(repeated, true);
        let paired = self.is_paired();
        match exchange::exchanged(reply, paired) {
            Err(refused) if refused.another_may_do && repeats => self.repeat(),
            Err(refused) => self.fail(now, refused.failure),
            Ok(token) => match self.identity.check_token(token.session) {
                Err(failure) => self.fail(now, failure),
                Ok(()) => self.bring(now, address, token),
            },
        }
    }

    /// What came of [`Action::Store`]. Where it failed, the refresh token is stored before the next
    /// renewal.
    pub fn handle_stored(&mut self, now: Instant, renewal: RenewalId, stored: Result<(), Failure>) {
        let Some(Renewal { step: Step::Storing { brought }, .. }) = self.current(renewal) else {
            return;
        };
        let brought = brought.take();
        if let Err(failure) = stored {
            return self.fail(now, failure);
        }
        if let Some(stored) = self.unstored.take()
            && let Some(Entry { way: Way::Paired { refresh_token, .. }, .. }) = &mut self.entry
        {
            *refresh_token = stored;
        }
        match brought {
            Some(brought) => self.succeed(now, brought),
            None => self.exchange_refresh_token(),
        }
    }

    /// Begins a renewal.
    pub(super) fn begin(&mut self, now: Instant, wake: bool) {
        if self.is_paired() {
            let step = Step::Storing { brought: None };
            let renewal = self.push_renewal(now, wake, step);
            match self.unstored.clone() {
                Some(refresh_token) => {
                    self.actions.push_back(Action::Store { renewal, refresh_token });
                }
                None => self.exchange_refresh_token(),
            }
        } else {
            let renewal = self.push_renewal(now, wake, Step::Granting);
            self.actions.push_back(Action::Grant { renewal, wake });
        }
    }

    /// The renewal under way has failed. Who waits is told why; but who would wake a sleeping
    /// environment waits on where the renewal only found it asleep.
    pub(super) fn fail(&mut self, now: Instant, failure: Failure) {
        let Some(renewal) = self.renewal.take() else { return };
        if let Some(live) = &mut self.live {
            live.failed(now);
        }
        let only_asleep = failure.reason == FailureReason::Asleep && !renewal.wake;
        if only_asleep && self.callers.any_wakes() {
            let unwaking = self.callers.take_unwaking();
            self.answer(unwaking, &Err(failure));
            self.begin(now, true);
        } else {
            let everybody = self.callers.take();
            self.answer(everybody, &Err(failure));
        }
    }

    /// Asks once more, after a refusal that another grant or another proof may avoid.
    fn repeat(&mut self) {
        if self.is_paired() {
            self.exchange_refresh_token();
        } else if let Some(current) = &mut self.renewal {
            current.step = Step::Granting;
            let (renewal, wake) = (current.id, current.wake);
            self.actions.push_back(Action::Grant { renewal, wake });
        }
    }

    fn exchange_refresh_token(&mut self) {
        if let Some(current) = &mut self.renewal
            && let Some(Entry { way: Way::Paired { address, refresh_token, .. }, .. }) = &self.entry
        {
            current.step = Step::Exchanging { address: address.clone() };
            self.actions.push_back(Action::Exchange {
                renewal: current.id,
                credential: Credential::Refresh(refresh_token.clone()),
                address: address.clone(),
                wake: current.wake,
            });
        }
    }

    /// A token is there. It is used at once, unless a newer refresh token came with it.
    fn bring(&mut self, now: Instant, address: String, token: TokenResponse) {
        let until = now.after(exchange::life(&token));
        let brought = Brought { address, token: Secret::new(token.access_token), until };
        let newer = token.refresh_token.map(Secret::new).filter(|newer| self.is_newer(newer));
        match (newer, &mut self.renewal) {
            (Some(refresh_token), Some(current)) => {
                current.step = Step::Storing { brought: Some(brought) };
                self.unstored = Some(refresh_token.clone());
                self.actions.push_back(Action::Store { renewal: current.id, refresh_token });
            }
            _ => self.succeed(now, brought),
        }
    }

    fn succeed(&mut self, now: Instant, brought: Brought) {
        self.renewal = None;
        let access = self.tokens.hold(brought.address, brought.token, brought.until);
        if let Some(live) = &mut self.live {
            live.renewed(now, access.until, &mut self.chance);
            self.actions.push_back(Action::Renewed { access: access.clone() });
        }
        let everybody = self.callers.take();
        self.answer(everybody, &Ok(access));
    }

    fn answer(
        &mut self,
        callers: impl Iterator<Item = CallerId>,
        answer: &Result<Access, Failure>,
    ) {
        let answers = callers.map(|caller| Action::Answer { caller, answer: answer.clone() });
        self.actions.extend(answers);
    }

    fn current(&mut self, renewal: RenewalId) -> Option<&mut Renewal> {
        self.renewal.as_mut().filter(|current| current.id == renewal)
    }

    const fn is_paired(&self) -> bool {
        matches!(self.entry, Some(Entry { way: Way::Paired { .. }, .. }))
    }

    /// Whether this is a refresh token to be stored: only a paired host's is kept.
    fn is_newer(&self, said: &Secret) -> bool {
        match &self.entry {
            Some(Entry { way: Way::Paired { refresh_token, .. }, .. }) => refresh_token != said,
            Some(Entry { way: Way::Environment { .. }, .. }) | None => false,
        }
    }
}
