//! What people, the device and the platform say.

use wakeful_wire::Phase;

use super::{
    Action, ConnectionPhase, Failure, Foreground, Instant, Intent, Network, ReleaseReason,
    SIGNAL_SPREAD, Supervisor, check::Trigger,
};
use crate::FailureReason;

impl Supervisor {
    pub(super) fn connect(&mut self, now: Instant, wake: bool) {
        self.state.desired = true;
        if wake && self.session.is_none() {
            self.intent = Some(Intent::expressed(now));
        }
        match self.state.phase {
            // Nothing is tried on an environment that the platform says sleeps.
            ConnectionPhase::Available if !wake && self.announced.is_some_and(Self::sleeps) => {
                self.set_waiting(ConnectionPhase::Asleep, None);
            }
            ConnectionPhase::Available => self.try_start(now, wake),
            ConnectionPhase::Asleep if wake => self.try_start(now, true),
            ConnectionPhase::Backoff => self.start(now, wake),
            ConnectionPhase::Blocked if !self.is_held_offline() => self.start(now, wake),
            // It goes before the others from now on.
            ConnectionPhase::Connecting if wake && self.is_in_line(false) => self.start(now, true),
            ConnectionPhase::Connecting
            | ConnectionPhase::Connected
            | ConnectionPhase::Offline
            | ConnectionPhase::Asleep
            | ConnectionPhase::Blocked => {}
        }
    }

    pub(super) fn disconnect(&mut self) {
        self.end_check();
        self.drop_replacement();
        self.give_up_attempt();
        self.release(ReleaseReason::Disconnected);
        self.intent = None;
        self.ladder.reset();
        self.flaps = super::Flaps::default();
        self.hurry.clear();
        self.not_before = None;
        self.state.desired = false;
        self.state.last_failure = None;
        self.set_waiting(ConnectionPhase::Available, None);
    }

    /// Tries once even where the network is said to be gone: such reports are often wrong.
    pub(super) fn retry_now(&mut self, now: Instant, wake: bool) {
        if !self.state.desired {
            return;
        }
        self.intent = wake.then(|| Intent::expressed(now));
        self.flaps.attended();
        if self.session.is_some() {
            self.look(now, Trigger::RetryNow);
            return;
        }
        self.ladder.reset();
        self.state.last_failure = None;
        if self.is_in_line(true) {
            self.state.attempt = 1;
        } else {
            self.start(now, true);
        }
    }

    pub(super) fn network(&mut self, now: Instant, network: Network) {
        if std::mem::replace(&mut self.state.network, network) == network {
            return;
        }
        let gone = network == Network::Offline;
        match self.state.phase {
            ConnectionPhase::Connected => self.look(now, Trigger::Network),
            ConnectionPhase::Connecting if self.is_held_offline() && !self.is_attempt_near() => {
                self.give_up_attempt();
                self.set_waiting(ConnectionPhase::Offline, None);
            }
            ConnectionPhase::Backoff if self.is_held_offline() => {
                self.set_waiting(ConnectionPhase::Offline, None);
            }
            ConnectionPhase::Backoff | ConnectionPhase::Offline | ConnectionPhase::Blocked
                if !gone =>
            {
                self.hurry(now, std::time::Duration::ZERO);
            }
            ConnectionPhase::Backoff
            | ConnectionPhase::Offline
            | ConnectionPhase::Blocked
            | ConnectionPhase::Connecting
            | ConnectionPhase::Available
            | ConnectionPhase::Asleep => {}
        }
    }

    /// An attempt's socket is bound to the old way, so it is begun anew. A wait is not shortened,
    /// however often the way changes.
    pub(super) fn path_changed(&mut self, now: Instant) {
        if self.session.is_some() {
            self.look(now, Trigger::Path);
        } else if self.attempt.as_ref().is_some_and(super::Attempt::has_begun) {
            self.start(now, false);
        }
    }

    pub(super) fn credentials_changed(&mut self, now: Instant, bound: bool) {
        match self.state.phase {
            ConnectionPhase::Connected if bound => {
                self.end_check();
                self.drop_replacement();
                self.release(ReleaseReason::CredentialsChanged);
                self.try_start(now, false);
            }
            ConnectionPhase::Connecting
                if bound && self.attempt.as_ref().is_some_and(super::Attempt::has_begun) =>
            {
                self.start(now, false);
            }
            ConnectionPhase::Blocked if !self.is_held_offline() => self.start(now, false),
            ConnectionPhase::Blocked
            | ConnectionPhase::Connected
            | ConnectionPhase::Connecting
            | ConnectionPhase::Available
            | ConnectionPhase::Offline
            | ConnectionPhase::Backoff
            | ConnectionPhase::Asleep => {}
        }
    }

    pub(super) fn foreground(&mut self, now: Instant, foreground: Foreground) {
        let long = foreground == Foreground::Long;
        self.flaps.attended();
        if long {
            // Whoever wanted it to wake has been away since.
            self.intent = None;
        }
        match self.state.phase {
            ConnectionPhase::Connected => self.look(now, Trigger::Foreground(foreground)),
            ConnectionPhase::Backoff => {
                self.ladder.reset();
                self.start(now, false);
            }
            ConnectionPhase::Blocked => {
                self.ladder.reset();
                if self.is_held_offline() {
                    self.state.attempt = 0;
                } else {
                    self.start(now, false);
                }
            }
            ConnectionPhase::Offline => {
                self.ladder.reset();
                self.state.attempt = 0;
            }
            ConnectionPhase::Connecting if long => {
                self.ladder.reset();
                if self.is_in_line(true) || self.is_in_line(false) {
                    self.state.attempt = 1;
                } else {
                    self.start(now, false);
                }
            }
            ConnectionPhase::Connecting | ConnectionPhase::Available | ConnectionPhase::Asleep => {}
        }
    }

    /// The socket itself says that its environment is about to sleep, so a session is not touched
    /// by what the platform says.
    pub(super) fn environment(&mut self, now: Instant, phase: Phase) {
        self.announced = Some(phase);
        let known = self.state.environment.replace(phase);
        let ready = phase == Phase::Ready;
        match self.state.phase {
            ConnectionPhase::Asleep if ready => self.hurry(now, SIGNAL_SPREAD),
            ConnectionPhase::Backoff if ready && known != Some(Phase::Ready) => {
                self.hurry(now, SIGNAL_SPREAD);
            }
            ConnectionPhase::Backoff | ConnectionPhase::Offline | ConnectionPhase::Connecting
                if Self::sleeps(phase) && !self.may_wake(now) && !self.is_waking() =>
            {
                self.give_up_attempt();
                self.fall_asleep();
            }
            ConnectionPhase::Blocked if self.is_unusable() && ready => {
                self.hurry(now, SIGNAL_SPREAD);
            }
            ConnectionPhase::Blocked if self.is_unusable() && Self::sleeps(phase) => {
                self.fall_asleep();
            }
            ConnectionPhase::Backoff
            | ConnectionPhase::Offline
            | ConnectionPhase::Connecting
            | ConnectionPhase::Blocked
            | ConnectionPhase::Connected
            | ConnectionPhase::Available
            | ConnectionPhase::Asleep => {}
        }
    }

    pub(super) fn reachable(&mut self, now: Instant) {
        if self.state.phase == ConnectionPhase::Backoff {
            self.hurry(now, SIGNAL_SPREAD);
        }
    }

    /// Takes the session out of what is published and closes its socket.
    pub(super) fn release(&mut self, why: ReleaseReason) {
        if let Some(session) = self.session.take() {
            self.push(Action::Unpublish { attempt: session.id });
            self.push(Action::Release { attempt: session.id, why });
        }
    }

    /// Whether the attempt waits for the budget in that line.
    fn is_in_line(&self, urgent: bool) -> bool {
        self.attempt
            .as_ref()
            .is_some_and(|attempt| attempt.urgent == urgent && !attempt.has_begun())
    }

    fn is_attempt_near(&self) -> bool {
        let route = self.attempt.as_ref().and_then(|attempt| attempt.route);
        route.is_some_and(super::RouteClass::is_near)
    }

    fn is_waking(&self) -> bool {
        self.attempt.as_ref().is_some_and(|attempt| attempt.wake)
    }

    fn is_unusable(&self) -> bool {
        let reason = self.state.last_failure.as_ref().map(|failure: &Failure| failure.reason);
        reason == Some(FailureReason::Unusable)
    }
}
