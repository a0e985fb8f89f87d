//! What becomes of attempts and sessions.

use wakeful_wire::Phase;

use super::{
    Action, Attempt, ConnectionPhase, Failure, Instant, ReleaseReason, Replacement, Session,
    Supervisor, backoff::believed,
};
use crate::{AttemptId, FailureClass, Stage, route::RouteClass};

impl Supervisor {
    pub(super) fn granted(&mut self, now: Instant, id: AttemptId) {
        if let Some(attempt) = self.attempt.as_mut().filter(|it| it.id == id && !it.has_begun()) {
            let wake = self.intent.as_mut().is_some_and(|intent| intent.spend(now));
            let deadline = attempt.begin(now, wake);
            self.state.stage = Some(attempt.stage);
            self.push(Action::Begin { attempt: id, wake, deadline });
        } else if let Some(Replacement::UnderWay(attempt)) = &mut self.replacement
            && attempt.id == id
            && !attempt.has_begun()
        {
            // Nobody asked for it, so it wakes nothing.
            let deadline = attempt.begin(now, false);
            self.push(Action::Begin { attempt: id, wake: false, deadline });
        }
    }

    pub(super) fn stage(&mut self, id: AttemptId, stage: Stage) {
        if stage == Stage::Waiting {
            // Who has begun waits no more.
        } else if let Some(attempt) =
            self.attempt.as_mut().filter(|it| it.id == id && it.has_begun())
        {
            attempt.stage = stage;
            self.state.stage = Some(stage);
        } else if let Some(attempt) = self.replacing(id).filter(|it| it.has_begun()) {
            attempt.stage = stage;
        }
    }

    pub(super) fn routed(&mut self, id: AttemptId, class: RouteClass) {
        if let Some(attempt) = self.attempt.as_mut().filter(|it| it.id == id && it.has_begun()) {
            attempt.route = Some(class);
        } else if let Some(attempt) = self.replacing(id).filter(|it| it.has_begun()) {
            attempt.route = Some(class);
            return;
        } else {
            return;
        }
        self.take_way(class);
    }

    /// The way to the host is this one from now on. What was measured on another says nothing.
    pub(super) fn take_way(&mut self, class: RouteClass) {
        if self.route.replace(class) != Some(class) {
            self.round_trip.forget();
        }
    }

    pub(super) fn ready(&mut self, now: Instant, id: AttemptId) {
        if let Some(attempt) = self.attempt.take_if(|it| it.id == id && it.has_begun()) {
            self.publish(attempt.became_ready(now));
        } else if let Some(attempt) = self.replacing(id).filter(|it| it.has_begun()) {
            let held = attempt.clone().became_ready(now);
            self.replacement = Some(Replacement::Held(held));
        } else if self.is_past(id) {
            self.push(Action::Release { attempt: id, why: ReleaseReason::Late });
        }
    }

    /// Whether this attempt was made once and is nothing now.
    fn is_past(&self, id: AttemptId) -> bool {
        let held = match &self.replacement {
            Some(Replacement::Held(session)) => Some(session.id),
            Some(Replacement::UnderWay(attempt)) => Some(attempt.id),
            Some(Replacement::Failed(_)) | None => None,
        };
        let present = [self.session(), self.attempt.as_ref().map(|it| it.id), held];
        (1..=self.attempts).contains(&id.0) && !present.contains(&Some(id))
    }

    pub(super) fn publish(&mut self, session: Session) {
        self.take_way(session.route);
        self.intent = None;
        self.not_before = None;
        self.hurry.clear();
        self.state.generation += 1;
        self.state.phase = ConnectionPhase::Connected;
        self.state.stage = None;
        self.state.retry_at = None;
        self.state.last_failure = None;
        let generation = self.state.generation;
        self.push(Action::Publish { attempt: session.id, generation });
        self.session = Some(session);
    }

    /// An attempt failed, or a socket closed.
    pub(super) fn ended(&mut self, now: Instant, id: AttemptId, failure: Failure) {
        if self.session() == Some(id) {
            self.session_closed(now, failure);
        } else if let Some(attempt) = self.attempt.take_if(|it| it.id == id) {
            self.attempt_failed(now, &attempt, failure);
        } else {
            self.replacement_ended(id, failure);
        }
    }

    pub(super) fn attempt_timeout(&mut self, now: Instant) {
        if let Some(attempt) = self.attempt.take_if(|it| it.is_over(now)) {
            self.push(Action::Abandon { attempt: attempt.id });
            let failure = attempt.timeout();
            self.attempt_failed(now, &attempt, failure);
        }
    }

    fn attempt_failed(&mut self, now: Instant, attempt: &Attempt, failure: Failure) {
        let asleep = failure.class() == FailureClass::Asleep;
        if asleep && !attempt.wake && self.may_wake(now) {
            // A person asked meanwhile.
            self.found_asleep(&failure);
            self.try_start(now, true);
        } else {
            self.fail(now, failure);
        }
    }

    fn session_closed(&mut self, now: Instant, failure: Failure) {
        let check = self.end_check();
        let replacement = self.replacement.take();
        let lasting = self.session.as_ref().is_some_and(|session| session.is_lasting(now));
        self.release(ReleaseReason::Closed);
        match failure.class() {
            FailureClass::Asleep => {
                self.drop_replacement_of(replacement);
                self.session_slept(now, lasting, failure);
            }
            FailureClass::Blocked => {
                self.session_ended(lasting);
                self.drop_replacement_of(replacement);
                self.fail(now, failure);
            }
            FailureClass::Transient => {
                self.session_ended(lasting);
                let failure = self.flaps.told(failure);
                match (replacement, check) {
                    (None, None) => self.fail(now, failure),
                    (None, Some(check)) => {
                        let evidence = check.has_evidence();
                        self.reconnect(now, failure, evidence, check.attended);
                    }
                    (Some(replacement), _) => self.hand_over(now, replacement, failure),
                }
            }
        }
    }

    fn session_slept(&mut self, now: Instant, lasting: bool, failure: Failure) {
        if lasting {
            self.session_ended(true);
        }
        if self.may_wake(now) {
            self.found_asleep(&failure);
            self.try_start(now, true);
        } else {
            self.fail(now, failure);
        }
    }

    /// A session ended by itself or by a check. One that lasted proves that the connection works.
    pub(super) fn session_ended(&mut self, lasting: bool) {
        self.flaps.ended(lasting);
        if lasting {
            self.ladder.reset();
            self.state.attempt = 0;
        }
    }

    /// The first attempt after a failed check has no wait: it was found out while somebody looked.
    /// Not where the other side asked to wait, and not for ever without a lasting session.
    /// `evidence`: the host answers, so that a missing network means nothing.
    pub(super) fn reconnect(
        &mut self,
        now: Instant,
        failure: Failure,
        evidence: bool,
        urgent: bool,
    ) {
        if failure.retry_after.is_some() {
            self.fail(now, failure);
        } else if self.is_held_offline() && !evidence {
            self.set_failure(failure);
            self.set_waiting(ConnectionPhase::Offline, None);
        } else if self.flaps.haste() {
            self.set_failure(failure);
            self.start(now, urgent);
        } else {
            self.fail(now, failure);
        }
    }

    /// There is neither a session nor an attempt any more: waits for what the failure calls for.
    pub(super) fn fail(&mut self, now: Instant, failure: Failure) {
        match failure.class() {
            FailureClass::Asleep => {
                self.found_asleep(&failure);
                self.fall_asleep();
            }
            FailureClass::Blocked => {
                self.intent = None;
                let attempt = self.state.attempt;
                self.set_failure(failure);
                self.set_waiting(ConnectionPhase::Blocked, None);
                self.state.attempt = attempt;
            }
            FailureClass::Transient => {
                let delay = self.ladder.climb(&mut self.chance, failure.retry_after);
                self.not_before = believed(&mut self.chance, failure.retry_after)
                    .map(|asked| now.after(asked.min(delay)));
                self.set_failure(failure);
                if self.is_held_offline() {
                    self.set_waiting(ConnectionPhase::Offline, None);
                } else {
                    self.set_waiting(ConnectionPhase::Backoff, Some(now.after(delay)));
                }
            }
        }
    }

    fn found_asleep(&mut self, failure: &Failure) {
        self.state.environment = match (failure.phase, self.state.environment) {
            (Some(said), _) => Some(said),
            // It was awake when last heard of, and is not.
            (None, Some(Phase::Ready | Phase::Starting) | None) => Some(Phase::Suspended),
            (None, known) => known,
        };
    }

    /// Sleep is no failure, and nobody needs it.
    pub(super) fn fall_asleep(&mut self) {
        self.intent = None;
        self.state.last_failure = None;
        self.set_waiting(ConnectionPhase::Asleep, None);
    }
}
