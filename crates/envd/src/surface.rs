//! One surface's process as a machine: what happened goes in, what to do comes out.
//!
//! Time is an argument. After any input, poll commands until there is none; call
//! [`SurfaceMachine::handle_timeout`] at the tick that [`SurfaceMachine::poll_timeout`] names
//! (earlier does no harm).

use std::{collections::VecDeque, time::Duration};

use wakeful_wire::sandbox::{SurfaceState, SurfaceStatus};

use crate::budget::{AfterEnd, Budget, BudgetPolicy};

/// A moment: the time since `envd` started.
pub(crate) type Tick = Duration;

/// So many probes in a row must succeed: an open port is not a ready program.
const SUCCESSES: u8 = 2;
/// The shortest and the longest pause between two probes. In between, a pause is an eighth of the
/// time since the start, so that probing adds at most that share to a program's own start.
const PAUSE: (Duration, Duration) = (Duration::from_millis(2), Duration::from_millis(250));
/// The first try's time; each try that runs out of it doubles it up to a second. A program that
/// swallows the requests of its first moments would else cost a whole second for each.
const TRY: (Duration, Duration) = (Duration::from_millis(250), Duration::from_secs(1));

/// What happened to a surface.
#[derive(Debug, Clone)]
pub(crate) enum Input {
    /// Somebody wants it to run. `insist` is a person's own request to start it, which does not
    /// wait out the pause after it was given up.
    Wanted {
        /// Whether to start at once.
        insist: bool,
    },
    /// The command of [`Command::Spawn`] runs.
    Spawned {
        /// Its process.
        pid: u32,
    },
    /// The command of [`Command::Spawn`] could not be run.
    NotSpawned {
        /// Why, for people.
        reason: String,
    },
    /// A probe came back.
    Probed {
        /// The start that it was made for.
        start: u32,
        /// What it found.
        outcome: ProbeOutcome,
    },
    /// The process has ended.
    Ended {
        /// The start that it belonged to.
        start: u32,
        /// How, for people.
        how: String,
    },
    /// What the process wrote last, known a moment after its end.
    LastWords {
        /// The start that it belonged to.
        start: u32,
        /// The text; may be empty.
        text: String,
    },
}

/// What a readiness probe found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ProbeOutcome {
    /// It answers as it should.
    Answers,
    /// It does not, yet.
    Not {
        /// Why, for people.
        reason: String,
    },
    /// It took the connection and was silent for the whole try.
    Silent,
}

/// What the shell is to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Command {
    /// Run the surface's command, as start number `start`.
    Spawn {
        /// Counts from 1.
        start: u32,
    },
    /// Probe once.
    Probe {
        /// The start that it is for.
        start: u32,
        /// When to break it off.
        timeout: Duration,
    },
}

/// Whether a connection can be made now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Availability {
    /// Yes.
    Ready,
    /// It is on its way.
    Coming,
    /// It is not, and will not be by waiting.
    GivenUp {
        /// Why, for people.
        reason: String,
    },
}

#[derive(Debug, Clone)]
enum Step {
    Stopped,
    Spawning,
    Probing {
        since: Tick,
        pid: u32,
        successes: u8,
        silences: u32,
        next: Option<Tick>,
        last: Option<String>,
    },
    Ready {
        pid: u32,
    },
    Waiting {
        until: Tick,
        reason: String,
    },
    GivenUp {
        since: Tick,
        reason: String,
    },
}

/// One surface's process.
#[derive(Debug)]
pub(crate) struct SurfaceMachine {
    eager: bool,
    starts: u32,
    step: Step,
    budget: Budget,
    commands: VecDeque<Command>,
}

impl SurfaceMachine {
    /// An eager surface asks to be spawned at once.
    pub(crate) fn new(eager: bool, policy: BudgetPolicy) -> Self {
        let mut machine = Self {
            eager,
            starts: 0,
            step: Step::Stopped,
            budget: Budget::new(policy),
            commands: VecDeque::new(),
        };
        if eager {
            machine.spawn();
        }
        machine
    }

    fn spawn(&mut self) {
        self.starts = self.starts.saturating_add(1);
        self.step = Step::Spawning;
        self.commands.push_back(Command::Spawn { start: self.starts });
    }

    /// Takes in what happened. Answers about an earlier start are dropped.
    pub(crate) fn handle_input(&mut self, now: Tick, input: Input) {
        match input {
            Input::Wanted { insist } => self.wanted(now, insist),
            Input::Spawned { pid } => {
                if matches!(self.step, Step::Spawning) {
                    self.step = Step::Probing {
                        since: now,
                        pid,
                        successes: 0,
                        silences: 0,
                        next: Some(now + PAUSE.0),
                        last: None,
                    };
                }
            }
            Input::NotSpawned { reason } => self.ended(now, reason),
            Input::Probed { start, outcome } if start == self.starts => self.probed(now, outcome),
            Input::Ended { start, how } if start == self.starts => self.ended(now, how),
            Input::LastWords { start, text } if start == self.starts => self.last_words(&text),
            Input::Probed { .. } | Input::Ended { .. } | Input::LastWords { .. } => {}
        }
    }

    fn wanted(&mut self, now: Tick, insist: bool) {
        match &self.step {
            Step::Stopped => self.spawn(),
            // The restarts of the window stay counted: a program that ends again at once is given
            // up again at once, so visits cannot make it loop.
            Step::GivenUp { since, .. } => {
                if insist || now.saturating_sub(*since) >= self.budget.policy().longest {
                    self.spawn();
                }
            }
            Step::Spawning | Step::Probing { .. } | Step::Ready { .. } | Step::Waiting { .. } => {}
        }
    }

    fn probed(&mut self, now: Tick, outcome: ProbeOutcome) {
        let Step::Probing { since, pid, successes, silences, next, last } = &mut self.step else {
            return;
        };
        match outcome {
            ProbeOutcome::Answers => {
                *successes += 1;
                if *successes >= SUCCESSES {
                    self.step = Step::Ready { pid: *pid };
                    return;
                }
                *next = Some(now);
                return;
            }
            ProbeOutcome::Not { reason } => *last = Some(reason),
            ProbeOutcome::Silent => {
                *silences += 1;
                *last = Some("it takes connections, but does not answer yet".to_owned());
            }
        }
        *successes = 0;
        *next = Some(now + (now.saturating_sub(*since) / 8).clamp(PAUSE.0, PAUSE.1));
    }

    fn ended(&mut self, now: Tick, how: String) {
        match &self.step {
            Step::Spawning | Step::Probing { .. } | Step::Ready { .. } => {}
            Step::Stopped | Step::Waiting { .. } | Step::GivenUp { .. } => return,
        }
        self.step = match self.budget.ended(now) {
            AfterEnd::Restart(wait) => Step::Waiting { until: now + wait, reason: how },
            AfterEnd::GiveUp => Step::GivenUp { since: now, reason: how },
        };
    }

    fn last_words(&mut self, text: &str) {
        if text.is_empty() {
            return;
        }
        match &mut self.step {
            Step::Waiting { reason, .. } | Step::GivenUp { reason, .. } => {
                reason.push_str("; it wrote last: ");
                reason.push_str(text);
            }
            Step::Stopped | Step::Spawning | Step::Probing { .. } | Step::Ready { .. } => {}
        }
    }

    /// Time has come to `now`.
    pub(crate) fn handle_timeout(&mut self, now: Tick) {
        match &mut self.step {
            Step::Waiting { until, .. } if *until <= now => self.spawn(),
            Step::Probing { next, silences, .. } if next.is_some_and(|at| at <= now) => {
                *next = None;
                let timeout = TRY.0.saturating_mul(1 << (*silences).min(8)).min(TRY.1);
                self.commands.push_back(Command::Probe { start: self.starts, timeout });
            }
            Step::Stopped
            | Step::Spawning
            | Step::Probing { .. }
            | Step::Ready { .. }
            | Step::Waiting { .. }
            | Step::GivenUp { .. } => {}
        }
    }

    /// The next thing to do.
    pub(crate) fn poll_command(&mut self) -> Option<Command> {
        self.commands.pop_front()
    }

    /// When time matters next.
    pub(crate) fn poll_timeout(&self) -> Option<Tick> {
        match &self.step {
            Step::Waiting { until, .. } => Some(*until),
            Step::Probing { next, .. } => *next,
            Step::Stopped | Step::Spawning | Step::Ready { .. } | Step::GivenUp { .. } => None,
        }
    }

    /// Whether a connection can be made now.
    pub(crate) fn availability(&self) -> Availability {
        match &self.step {
            Step::Ready { .. } => Availability::Ready,
            Step::GivenUp { reason, .. } => Availability::GivenUp { reason: reason.clone() },
            Step::Stopped | Step::Spawning | Step::Probing { .. } | Step::Waiting { .. } => {
                Availability::Coming
            }
        }
    }

    /// The status as the platform sees it, with the port that the shell has allocated.
    pub(crate) fn status(&self, port: u16) -> SurfaceStatus {
        let (state, pid, reason) = match &self.step {
            Step::Stopped => (SurfaceState::Stopped, None, None),
            Step::Spawning => (SurfaceState::Starting, None, None),
            Step::Probing { pid, last, .. } => (SurfaceState::Starting, Some(*pid), last.clone()),
            Step::Ready { pid } => (SurfaceState::Ready, Some(*pid), None),
            Step::Waiting { reason, .. } => (SurfaceState::Restarting, None, Some(reason.clone())),
            Step::GivenUp { reason, .. } => (SurfaceState::GivenUp, None, Some(reason.clone())),
        };
        SurfaceStatus { state, eager: self.eager, port, pid, starts: self.starts, reason }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(millis: u64) -> Duration {
        Duration::from_millis(millis)
    }

    fn not(reason: &str) -> ProbeOutcome {
        ProbeOutcome::Not { reason: reason.to_owned() }
    }

    /// Drives the machine to the next probe at or after `now` and answers when it was made.
    fn next_probe(machine: &mut SurfaceMachine) -> (Tick, Duration) {
        let at = machine.poll_timeout().expect("a probe is due");
        machine.handle_timeout(at);
        match machine.poll_command() {
            Some(Command::Probe { timeout, .. }) => (at, timeout),
            other => panic!("expected a probe, got {other:?}"),
        }
    }

    fn started() -> SurfaceMachine {
        let mut machine = SurfaceMachine::new(true, BudgetPolicy::default());
        assert_eq!(machine.poll_command(), Some(Command::Spawn { start: 1 }));
        machine.handle_input(ms(0), Input::Spawned { pid: 7 });
        machine
    }

    fn probed(machine: &mut SurfaceMachine, now: Tick, start: u32, outcome: ProbeOutcome) {
        machine.handle_input(now, Input::Probed { start, outcome });
    }

    #[test]
    fn two_successes_in_a_row_make_a_surface_ready() {
        let mut machine = started();
        for outcome in [ProbeOutcome::Answers, not("404"), ProbeOutcome::Answers] {
            let (at, _) = next_probe(&mut machine);
            probed(&mut machine, at, 1, outcome);
            assert_eq!(machine.availability(), Availability::Coming);
        }
        let (at, _) = next_probe(&mut machine);
        probed(&mut machine, at, 1, ProbeOutcome::Answers);
        assert_eq!(machine.availability(), Availability::Ready);
        assert_eq!(machine.status(80).state, SurfaceState::Ready);
        assert_eq!(machine.poll_timeout(), None, "a ready surface is not probed again");
    }

    #[test]
    fn a_lazy_surface_starts_when_it_is_wanted_and_only_once() {
        let mut machine = SurfaceMachine::new(false, BudgetPolicy::default());
        assert_eq!(machine.poll_command(), None);
        assert_eq!(machine.status(0).state, SurfaceState::Stopped);
        machine.handle_input(ms(5), Input::Wanted { insist: false });
        machine.handle_input(ms(5), Input::Wanted { insist: true });
        assert_eq!(machine.poll_command(), Some(Command::Spawn { start: 1 }));
        assert_eq!(machine.poll_command(), None);
    }

    #[test]
    fn a_try_grows_to_a_second_only_while_the_program_is_silent() {
        let mut machine = started();
        let mut timeouts = Vec::new();
        for _ in 0..4 {
            let (at, timeout) = next_probe(&mut machine);
            timeouts.push(timeout);
            probed(&mut machine, at + timeout, 1, ProbeOutcome::Silent);
        }
        assert_eq!(timeouts, [ms(250), ms(500), ms(1000), ms(1000)]);
    }

    #[test]
    fn pauses_between_probes_follow_the_time_since_the_start() {
        let mut machine = started();
        for (now, pause) in [(0, 2), (80, 10), (800, 100), (60_000, 250)] {
            machine.handle_timeout(ms(now) + PAUSE.1);
            while machine.poll_command().is_some() {}
            probed(&mut machine, ms(now), 1, not("no"));
            assert_eq!(machine.poll_timeout(), Some(ms(now + pause)), "at {now}");
        }
    }

    #[test]
    fn an_end_restarts_and_too_many_give_up_with_the_reason() {
        let mut machine = started();
        for start in 1..=5 {
            machine.handle_input(ms(0), Input::Ended { start, how: "status 1".to_owned() });
            assert_eq!(machine.status(0).state, SurfaceState::Restarting);
            let at = machine.poll_timeout().unwrap();
            machine.handle_timeout(at - ms(1));
            assert_eq!(machine.poll_command(), None, "not before its time");
            machine.handle_timeout(at);
            assert_eq!(machine.poll_command(), Some(Command::Spawn { start: start + 1 }));
            machine.handle_input(at, Input::Spawned { pid: 8 });
        }
        machine.handle_input(ms(9), Input::Ended { start: 6, how: "status 1".to_owned() });
        machine.handle_input(ms(9), Input::LastWords { start: 6, text: "no module".to_owned() });
        let reason = "status 1; it wrote last: no module".to_owned();
        assert_eq!(machine.availability(), Availability::GivenUp { reason });
        assert_eq!(machine.poll_timeout(), None);
    }

    #[test]
    fn a_surface_that_was_given_up_starts_once_when_somebody_asks() {
        let policy = BudgetPolicy { restarts: 0, ..BudgetPolicy::default() };
        let given_up = || {
            let mut machine = SurfaceMachine::new(true, policy);
            machine.poll_command();
            machine.handle_input(ms(0), Input::NotSpawned { reason: "no".to_owned() });
            assert_eq!(machine.status(0).state, SurfaceState::GivenUp);
            machine
        };
        let table = [
            (ms(0), true, true),
            (policy.longest - ms(1), false, false),
            (policy.longest, false, true),
        ];
        for (now, insist, starts) in table {
            let mut machine = given_up();
            machine.handle_input(now, Input::Wanted { insist });
            assert_eq!(machine.poll_command().is_some(), starts, "{now:?} {insist}");
            machine.handle_input(now, Input::NotSpawned { reason: "no".to_owned() });
            assert_eq!(machine.status(0).state, SurfaceState::GivenUp);
        }
    }

    #[test]
    fn answers_about_an_earlier_start_are_dropped() {
        let mut machine = started();
        machine.handle_input(ms(0), Input::Ended { start: 1, how: "gone".to_owned() });
        let at = machine.poll_timeout().unwrap();
        machine.handle_timeout(at);
        machine.poll_command();
        machine.handle_input(at, Input::Spawned { pid: 9 });
        probed(&mut machine, at, 1, ProbeOutcome::Answers);
        probed(&mut machine, at, 1, ProbeOutcome::Answers);
        machine.handle_input(at, Input::Ended { start: 1, how: "gone".to_owned() });
        machine.handle_input(at, Input::LastWords { start: 1, text: "old".to_owned() });
        let status = machine.status(0);
        assert_eq!((status.state, status.pid, status.starts), (SurfaceState::Starting, Some(9), 2));
    }
}
