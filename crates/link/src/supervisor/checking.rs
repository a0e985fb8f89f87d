//! The check of a session, and its replacement beside it.

use super::{
    Action, Check, Failure, Instant, ReleaseReason, Replacement, Supervisor,
    check::{Due, Trigger},
};
use crate::{AttemptId, FailureReason, supervisor::Attempt};

impl Supervisor {
    /// Looks whether the session lives, unless that is being done. A long suspension begins anew:
    /// what was under way was frozen with the client.
    pub(super) fn look(&mut self, now: Instant, trigger: Trigger) {
        let Some(session) = &self.session else { return };
        if !trigger.is_long()
            && let Some(check) = &mut self.check
        {
            check.join(now, trigger);
            return;
        }
        let (attempt, route) = (session.id, session.route);
        self.end_check();
        self.drop_replacement();
        self.checks += 1;
        self.check = Some(Check::begin(self.checks, now, trigger, route, &self.round_trip));
        self.state.verifying = true;
        self.push(Action::Probe { attempt, check: self.checks });
    }

    pub(super) fn silent(&mut self, now: Instant, id: AttemptId) {
        if self.session() == Some(id) {
            self.look(now, Trigger::Silence);
        }
    }

    pub(super) fn frame(&mut self, now: Instant, id: AttemptId) {
        if self.session() != Some(id) {
            return;
        }
        if let Some(check) = &mut self.check {
            check.heard(now);
            self.stop_asking();
            self.drop_replacement();
        }
    }

    pub(super) fn alive(&mut self, now: Instant, id: AttemptId, number: u64) {
        if self.session() != Some(id) {
            return;
        }
        // The answer to a probe of before a long suspension is a sign of life, but may have been
        // on its way since.
        let Some(check) = self.check.take_if(|check| check.number == number) else {
            self.frame(now, id);
            return;
        };
        self.round_trip.measured(now.since(check.started()));
        self.check = Some(check);
        self.end_check();
        self.drop_replacement();
        self.intent = None;
    }

    pub(super) fn host_answered(&mut self, now: Instant, number: u64) {
        let Some(check) = self.check.as_mut().filter(|check| check.number == number) else {
            return;
        };
        check.host_answered(now);
        self.stop_asking();
        self.check_timeout(now);
        // The verdict is still to come: what would follow it is begun beside the session.
        if let Some(check) = self.check.as_ref().filter(|check| check.has_evidence())
            && self.replacement.is_none()
        {
            let attempt = self.want(check.attended);
            self.replacement = Some(Replacement::UnderWay(attempt));
        }
    }

    pub(super) fn check_timeout(&mut self, now: Instant) {
        while let Some(check) = &mut self.check {
            let number = check.number;
            match check.poll_due(now) {
                None => return,
                Some(Due::Ask) => self.push(Action::AskHost { check: number }),
                Some(Due::DeadByEvidence) => {
                    let detail = "the host answers, but this connection does not";
                    let failure = Failure::new(FailureReason::Transport, detail);
                    self.check_failed(now, failure, true);
                }
                Some(Due::DeadBySilence) => {
                    let evidence = check.long;
                    let detail = "the connection did not answer in time";
                    let failure = Failure::new(FailureReason::Timeout, detail);
                    self.check_failed(now, failure, evidence);
                }
            }
        }
    }

    /// `regardless`: the socket is replaced even where the network is said to be gone.
    fn check_failed(&mut self, now: Instant, failure: Failure, regardless: bool) {
        let check = self.end_check();
        let attended = check.is_some_and(|check| check.attended);
        let lasting = self.session.as_ref().is_some_and(|session| session.is_lasting(now));
        self.session_ended(lasting);
        let failure = self.flaps.told(failure);
        match self.replacement.take() {
            Some(Replacement::Held(session)) => {
                // In one step, so that it is never not connected; and the new one first.
                if let Some(old) = self.session.take() {
                    self.push(Action::Unpublish { attempt: old.id });
                    self.publish(session);
                    self.push(Action::Release { attempt: old.id, why: ReleaseReason::Dead });
                }
            }
            Some(replacement) => {
                self.release(ReleaseReason::Dead);
                self.hand_over(now, replacement, failure);
            }
            None => {
                self.release(ReleaseReason::Dead);
                self.reconnect(now, failure, regardless, attended);
            }
        }
    }

    /// The session is gone; what was begun beside it takes its place.
    pub(super) fn hand_over(&mut self, now: Instant, replacement: Replacement, failure: Failure) {
        match replacement {
            Replacement::Held(session) => self.publish(session),
            Replacement::UnderWay(attempt) => {
                self.set_failure(failure);
                if let Some(route) = attempt.route {
                    self.take_way(route);
                }
                self.adopt(attempt);
            }
            // The attempt without a wait has been made.
            Replacement::Failed(failed) => self.fail(now, failed),
        }
    }

    /// The replacement's attempt failed, or its socket closed while it was held.
    pub(super) fn replacement_ended(&mut self, id: AttemptId, failure: Failure) {
        match &self.replacement {
            Some(Replacement::UnderWay(attempt)) if attempt.id == id => {
                self.replacement = Some(Replacement::Failed(failure));
            }
            Some(Replacement::Held(session)) if session.id == id => {
                self.push(Action::Release { attempt: id, why: ReleaseReason::Closed });
                self.replacement = Some(Replacement::Failed(failure));
            }
            Some(Replacement::UnderWay(_) | Replacement::Held(_) | Replacement::Failed(_))
            | None => {}
        }
    }

    pub(super) fn replacement_deadline(&self) -> Option<Instant> {
        match &self.replacement {
            Some(Replacement::UnderWay(attempt)) => attempt.deadline,
            Some(Replacement::Held(_) | Replacement::Failed(_)) | None => None,
        }
    }

    pub(super) fn replacement_timeout(&mut self, now: Instant) {
        if let Some(Replacement::UnderWay(attempt)) = &self.replacement
            && attempt.is_over(now)
        {
            let (id, failure) = (attempt.id, attempt.timeout());
            self.push(Action::Abandon { attempt: id });
            self.replacement = Some(Replacement::Failed(failure));
        }
    }

    /// The replacement's attempt, if it is this one.
    pub(super) fn replacing(&mut self, id: AttemptId) -> Option<&mut Attempt> {
        match &mut self.replacement {
            Some(Replacement::UnderWay(attempt)) if attempt.id == id => Some(attempt),
            Some(Replacement::UnderWay(_) | Replacement::Held(_) | Replacement::Failed(_))
            | None => None,
        }
    }

    pub(super) fn drop_replacement(&mut self) {
        let replacement = self.replacement.take();
        self.drop_replacement_of(replacement);
    }

    pub(super) fn drop_replacement_of(&mut self, replacement: Option<Replacement>) {
        match replacement {
            Some(Replacement::UnderWay(attempt)) => {
                self.push(Action::Abandon { attempt: attempt.id });
            }
            Some(Replacement::Held(session)) => {
                self.push(Action::Release { attempt: session.id, why: ReleaseReason::NotNeeded });
            }
            Some(Replacement::Failed(_)) | None => {}
        }
    }

    pub(super) fn end_check(&mut self) -> Option<Check> {
        self.stop_asking();
        self.state.verifying = false;
        self.check.take()
    }

    fn stop_asking(&mut self) {
        if let Some(check) = &mut self.check
            && check.stop_asking()
        {
            let check = check.number;
            self.push(Action::StopAsking { check });
        }
    }
}
