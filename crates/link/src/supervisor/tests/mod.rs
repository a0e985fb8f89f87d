//! The supervisor in virtual time: what is told, and what it does.

mod asleep;
mod blocked;
mod budget;
mod check;
mod edges;
mod handover;
mod retry;
mod start;

use std::time::Duration;

use super::{ACTIONS_PER_CALL, Action, Input, ReleaseReason, Supervisor};
use crate::{
    AttemptId, Chance, ConnectionPhase, ConnectionState, Failure, FailureReason, Instant, Network,
    route::RouteClass,
};

/// One supervisor and its clock. The budget grants at once unless `stingy`.
pub(super) struct Bench {
    pub(super) supervisor: Supervisor,
    pub(super) now: Instant,
    pub(super) stingy: bool,
    log: Vec<(Instant, Action)>,
    last: AttemptId,
}

impl Bench {
    pub(super) fn new() -> Self {
        Self::seeded(1)
    }

    pub(super) fn seeded(seed: u64) -> Self {
        Self {
            supervisor: Supervisor::new(Chance::seeded(seed)),
            now: Instant(1_000_000),
            stingy: false,
            log: Vec::new(),
            last: AttemptId(0),
        }
    }

    /// Wanted, and the first attempt begun.
    pub(super) fn connecting() -> Self {
        let mut bench = Self::new();
        bench.tell(Input::Connect { wake: false });
        bench
    }

    /// A first session that became ready just now on this way; the log is empty.
    pub(super) fn connected(class: RouteClass) -> Self {
        let mut bench = Self::connecting();
        bench.become_ready(class);
        bench.take();
        bench
    }

    /// In backoff after `failures` in a row.
    pub(super) fn failed(failures: u32) -> Self {
        let mut bench = Self::connecting();
        for failure in 0..failures {
            if failure > 0 {
                bench.pass_to_retry();
            }
            bench.fail(FailureReason::Transport);
        }
        bench.take();
        bench
    }

    pub(super) fn state(&self) -> &ConnectionState {
        self.supervisor.state()
    }

    pub(super) fn phase(&self) -> ConnectionPhase {
        self.state().phase
    }

    pub(super) fn tell(&mut self, input: Input) {
        self.supervisor.handle(self.now, input);
        self.drain();
    }

    fn drain(&mut self) {
        let mut count = 0;
        while let Some(action) = self.supervisor.poll_action() {
            count += 1;
            assert!(count <= ACTIONS_PER_CALL, "{action:?} is the {count}th of one call");
            self.log.push((self.now, action));
            if let Action::Want { attempt, .. } = action {
                assert!(attempt > self.last, "numbers grow");
                self.last = attempt;
                if !self.stingy {
                    self.supervisor.handle(self.now, Input::Granted { attempt });
                }
            }
        }
    }

    /// Lets time pass, doing what is due on the way.
    pub(super) fn pass(&mut self, duration: Duration) {
        let end = self.now.after(duration);
        while let Some(due) = self.supervisor.poll_timeout().filter(|due| *due <= end) {
            self.now = self.now.max(due);
            self.supervisor.handle_timeout(self.now);
            self.drain();
            let next = self.supervisor.poll_timeout();
            assert!(next.is_none_or(|next| next > self.now), "{next:?} is past at {:?}", self.now);
        }
        self.now = end;
    }

    pub(super) fn pass_ms(&mut self, millis: u64) {
        self.pass(Duration::from_millis(millis));
    }

    /// Lets time pass up to the next attempt of the ladder. Returns how long it was.
    pub(super) fn pass_to_retry(&mut self) -> Duration {
        let retry_at = self.state().retry_at.expect("a retry is planned");
        let wait = self.now.until(retry_at);
        self.pass(wait);
        wait
    }

    /// The attempt that was wanted last.
    pub(super) fn last(&self) -> AttemptId {
        self.last
    }

    pub(super) fn become_ready(&mut self, class: RouteClass) {
        let attempt = self.last;
        self.tell(Input::Route { attempt, class });
        self.tell(Input::Ready { attempt });
    }

    pub(super) fn fail(&mut self, reason: FailureReason) {
        self.fail_with(Failure::new(reason, "it did not work"));
    }

    pub(super) fn fail_with(&mut self, failure: Failure) {
        self.tell(Input::Failed { attempt: self.last, failure });
    }

    /// The published session's socket closes.
    pub(super) fn close(&mut self, reason: FailureReason) {
        let attempt = self.supervisor.session().expect("a session");
        self.tell(Input::Closed { attempt, failure: Failure::new(reason, "the socket closed") });
    }

    /// A frame on the published session's socket.
    pub(super) fn frame(&mut self) {
        let attempt = self.supervisor.session().expect("a session");
        self.tell(Input::Frame { attempt });
    }

    /// What was to be done since the last look.
    pub(super) fn take(&mut self) -> Vec<Action> {
        std::mem::take(&mut self.log).into_iter().map(|(_, action)| action).collect()
    }

    /// The same with the time of each, in milliseconds after `since`.
    pub(super) fn take_since(&mut self, since: Instant) -> Vec<(u64, Action)> {
        std::mem::take(&mut self.log)
            .into_iter()
            .map(|(at, action)| (at.0 - since.0, action))
            .collect()
    }

    /// How many attempts began since the last look; the log is empty after it.
    pub(super) fn begun(&mut self) -> usize {
        self.take().iter().filter(|action| matches!(action, Action::Begin { .. })).count()
    }
}

/// `Begin` of the attempt wanted last, as it is expected now.
pub(super) fn begins(bench: &Bench, wake: bool) -> [Action; 2] {
    let attempt = bench.last();
    let deadline = bench.now.after(super::SETUP_BUDGET);
    let urgent = wake;
    [Action::Want { attempt, urgent }, Action::Begin { attempt, wake, deadline }]
}

pub(super) fn released(actions: &[Action]) -> Vec<(AttemptId, ReleaseReason)> {
    let one = |action: &Action| {
        if let Action::Release { attempt, why } = action { Some((*attempt, *why)) } else { None }
    };
    actions.iter().filter_map(one).collect()
}

/// Of each attempt that began, whether it may wake.
pub(super) fn wakes(actions: &[Action]) -> Vec<bool> {
    let one = |action: &Action| {
        if let Action::Begin { wake, .. } = action { Some(*wake) } else { None }
    };
    actions.iter().filter_map(one).collect()
}

/// Something that a table does to a bench.
pub(super) type Deed = fn(&mut Bench);

pub(super) const OFFLINE: Input = Input::Network(Network::Offline);
pub(super) const ONLINE: Input = Input::Network(Network::Online);
