//! Random histories against a small account of what may be there.

use std::{collections::BTreeMap, time::Duration};

use wakeful_wire::Phase;

use super::{
    ACTIONS_PER_CALL, Action, Foreground, INTENT_LASTS, Input, SETUP_BUDGET, Supervisor,
    WAKING_ATTEMPTS,
    backoff::{CEILINGS, DELAY_LEAST, DELAY_MOST, RETRY_AFTER_MOST, RETRY_AFTER_SPREAD},
};
use crate::{
    AttemptId, Chance, ConnectionPhase, Failure, FailureClass, FailureReason, Instant, Network,
    Stage, route::RouteClass,
};

/// What became of an attempt, as the account has it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Life {
    Wanted,
    Granted,
    Begun,
    /// Ended before it was ready.
    Over,
    /// Ended after it had begun, so that it may become ready too late.
    Stray,
    Ready,
    Released,
}

/// What may be there, kept from the actions alone.
#[derive(Debug, Default)]
struct Account {
    lives: BTreeMap<AttemptId, Life>,
    published: Option<AttemptId>,
    generation: u64,
    checks: u64,
    asking: Option<u64>,
    /// How many attempts may still wake, and until when.
    waking: u8,
    waking_until: Instant,
}

impl Account {
    fn life(&self, attempt: AttemptId) -> Life {
        *self.lives.get(&attempt).unwrap_or_else(|| panic!("{attempt:?} was never wanted"))
    }

    fn set(&mut self, attempt: AttemptId, life: Life) {
        self.lives.insert(attempt, life);
    }

    fn count(&self, lives: &[Life]) -> usize {
        // Only the last ones can be alive; the rest are checked when they end.
        self.lives.values().rev().take(4).filter(|life| lives.contains(life)).count()
    }

    fn done(&mut self, now: Instant, action: Action) {
        match action {
            Action::Want { attempt, urgent: _ } => {
                let last = self.lives.last_key_value().map_or(0, |(last, _)| last.0);
                assert_eq!(attempt.0, last + 1, "numbered in order");
                self.set(attempt, Life::Wanted);
            }
            Action::Begin { attempt, wake, deadline } => {
                assert_eq!(self.life(attempt), Life::Granted, "wanted and granted");
                assert_eq!(deadline, now.after(SETUP_BUDGET));
                if wake {
                    assert!(self.waking > 0 && now < self.waking_until, "a person's intent");
                    self.waking -= 1;
                }
                self.set(attempt, Life::Begun);
            }
            Action::Abandon { attempt } => {
                let stray = match self.life(attempt) {
                    Life::Wanted | Life::Granted => Life::Over,
                    Life::Begun => Life::Stray,
                    other @ (Life::Over | Life::Stray | Life::Ready | Life::Released) => {
                        panic!("{attempt:?} is abandoned, but {other:?}")
                    }
                };
                self.set(attempt, stray);
            }
            Action::Publish { attempt, generation } => {
                assert_eq!(self.published, None, "one session");
                assert_eq!(self.life(attempt), Life::Ready);
                self.generation += 1;
                assert_eq!(generation, self.generation);
                self.published = Some(attempt);
                self.waking = 0;
            }
            Action::Unpublish { attempt } => assert_eq!(self.published.take(), Some(attempt)),
            Action::Release { attempt, why: _ } => {
                assert_eq!(self.life(attempt), Life::Ready, "released once, and only if ready");
                assert_ne!(self.published, Some(attempt), "unpublished first");
                self.set(attempt, Life::Released);
            }
            Action::Probe { attempt, check } => {
                assert_eq!(self.published, Some(attempt));
                assert_eq!(check, self.checks + 1);
                assert_eq!(self.asking, None, "the last check is over");
                self.checks = check;
            }
            Action::AskHost { check } => {
                assert_eq!(check, self.checks);
                self.asking = Some(check);
            }
            Action::StopAsking { check } => assert_eq!(self.asking.take(), Some(check)),
        }
    }
}

/// Whether this may begin an attempt where none is under way and nothing is connected.
#[expect(clippy::wildcard_enum_match_arm, reason = "whatever is not named begins nothing")]
fn may_begin(phase: ConnectionPhase, input: Option<&Input>) -> bool {
    use ConnectionPhase::{Asleep, Available, Backoff, Blocked, Offline};
    let Some(input) = input else { return phase == Backoff };
    match input {
        Input::Connect { wake } => {
            matches!(phase, Available | Backoff | Blocked) || (*wake && phase == Asleep)
        }
        Input::RetryNow { .. } => phase != Available,
        Input::Network(network) => {
            *network != Network::Offline && matches!(phase, Offline | Backoff | Blocked)
        }
        Input::Foreground(_) => matches!(phase, Backoff | Blocked),
        Input::CredentialsChanged { .. } => phase == Blocked,
        Input::Environment(Phase::Ready) => matches!(phase, Asleep | Backoff | Blocked),
        Input::Reachable => phase == Backoff,
        _ => false,
    }
}

struct World {
    supervisor: Supervisor,
    account: Account,
    chance: Chance,
    now: Instant,
}

impl World {
    fn new(seed: u64) -> Self {
        let mut chance = Chance::seeded(seed);
        Self {
            supervisor: Supervisor::new(chance.split()),
            account: Account::default(),
            chance,
            now: Instant(0),
        }
    }

    fn pick(&mut self, below: u64) -> u64 {
        self.chance.draw() % below
    }

    fn flip(&mut self) -> bool {
        self.pick(2) == 0
    }

    /// Most often one of the last attempts, at times one of long ago or of never.
    fn attempt(&mut self) -> AttemptId {
        let last = self.account.lives.len() as u64;
        let back = self.pick(4);
        match self.pick(20) {
            0 => AttemptId(self.chance.draw()),
            1 => AttemptId(self.chance.draw() % (last + 2)),
            2..=9 => self.account.published.unwrap_or(AttemptId(last)),
            _ => AttemptId(last.saturating_sub(back / 2)),
        }
    }

    fn check(&mut self) -> u64 {
        let back = u64::from(self.pick(5) == 0);
        self.account.checks.saturating_sub(back)
    }

    fn failure(&mut self) -> Failure {
        let all = FailureReason::ALL;
        // Most often transient, or it would rest most of the time.
        let reason = if self.pick(3) == 0 {
            all[self.pick(all.len() as u64) as usize]
        } else {
            FailureReason::Transport
        };
        let mut failure = Failure::new(reason, "it did not work");
        if self.pick(6) == 0 {
            failure.retry_after = Some(Duration::from_millis(self.pick(8_000_000)));
        }
        if self.pick(6) == 0 {
            failure.phase = Some(self.phase());
        }
        failure
    }

    fn phase(&mut self) -> Phase {
        const PHASES: [Phase; 5] =
            [Phase::Ready, Phase::Starting, Phase::Suspended, Phase::Frozen, Phase::Deleted];
        PHASES[self.pick(5) as usize]
    }

    fn input(&mut self) -> Input {
        let attempt = self.attempt();
        match self.pick(40) {
            0..=1 => Input::Connect { wake: self.flip() },
            2 if self.pick(3) == 0 => Input::Disconnect,
            3 => Input::RetryNow { wake: self.flip() },
            4..=5 => Input::Network(match self.pick(3) {
                0 => Network::Offline,
                1 => Network::Online,
                _ => Network::Unknown,
            }),
            6 => Input::PathChanged,
            7 => Input::CredentialsChanged { bound: self.flip() },
            8 => Input::Foreground(match self.pick(3) {
                0 => Foreground::Desk,
                1 => Foreground::Short,
                _ => Foreground::Long,
            }),
            9..=10 => Input::Environment(self.phase()),
            11 => Input::Reachable,
            12..=18 => Input::Granted { attempt },
            19 => Input::Stage {
                attempt,
                stage: [Stage::Waiting, Stage::Opening, Stage::Synchronizing]
                    [self.pick(3) as usize],
            },
            20..=21 => Input::Route {
                attempt,
                class: [RouteClass::Loopback, RouteClass::Lan, RouteClass::Tailnet]
                    [self.pick(3) as usize],
            },
            22..=27 => Input::Ready { attempt },
            28..=29 => Input::Failed { attempt, failure: self.failure() },
            30..=31 => Input::Closed { attempt, failure: self.failure() },
            32 => Input::Frame { attempt },
            33 => Input::Alive { attempt, check: self.check() },
            34..=35 => Input::Silent { attempt },
            36..=37 => Input::HostAnswered { check: self.check() },
            _ => Input::HostFailed { check: self.check() },
        }
    }

    /// Enters into the account what is told; `false` if the outside could not say it: an attempt
    /// becomes ready once, and ends once.
    #[expect(clippy::wildcard_enum_match_arm, reason = "the rest is not accounted for")]
    fn tell(&mut self, input: &Input) -> bool {
        let now = self.now;
        match input {
            Input::Connect { wake: true } if self.account.published.is_none() => {
                self.account.waking = WAKING_ATTEMPTS;
                self.account.waking_until = now.after(INTENT_LASTS);
            }
            Input::RetryNow { wake } if self.supervisor.state().desired => {
                self.account.waking = if *wake { WAKING_ATTEMPTS } else { 0 };
                self.account.waking_until = now.after(INTENT_LASTS);
            }
            Input::Disconnect | Input::Foreground(Foreground::Long) => self.account.waking = 0,
            Input::Granted { attempt }
                if self.account.lives.get(attempt) == Some(&Life::Wanted) =>
            {
                self.account.set(*attempt, Life::Granted);
            }
            Input::Ready { attempt } => match self.account.lives.get(attempt) {
                Some(Life::Begun | Life::Stray) => self.account.set(*attempt, Life::Ready),
                Some(Life::Over | Life::Ready | Life::Released) => return false,
                Some(Life::Wanted | Life::Granted) | None => {}
            },
            Input::Failed { attempt, .. } | Input::Closed { attempt, .. } => {
                if let Some(Life::Wanted | Life::Granted | Life::Begun | Life::Stray) =
                    self.account.lives.get(attempt)
                {
                    self.account.set(*attempt, Life::Over);
                }
            }
            _ => {}
        }
        true
    }

    fn step(&mut self) {
        let before = self.supervisor.state().clone();
        let input = (self.pick(4) != 0).then(|| self.input());
        if input.is_none() {
            self.advance();
        }
        if let Some(input) = &input
            && !self.tell(input)
        {
            return;
        }
        match input.clone() {
            Some(input) => self.supervisor.handle(self.now, input),
            None => self.supervisor.handle_timeout(self.now),
        }
        let actions: Vec<_> = std::iter::from_fn(|| self.supervisor.poll_action()).collect();
        assert!(actions.len() <= ACTIONS_PER_CALL, "{input:?} gave {actions:?}");
        let resting =
            !matches!(before.phase, ConnectionPhase::Connecting | ConnectionPhase::Connected);
        for action in &actions {
            if resting && let Action::Want { .. } = action {
                assert!(
                    may_begin(before.phase, input.as_ref()),
                    "{input:?} began an attempt in {:?}",
                    before.phase,
                );
            }
            self.account.done(self.now, *action);
        }
        if input.is_none() {
            let next = self.supervisor.poll_timeout();
            assert!(next.is_none_or(|next| next > self.now), "{next:?} at {:?}", self.now);
        }
        self.see(before.phase, input.as_ref());
    }

    /// Lets some time pass: none, a little, up to the next deadline, or past it.
    fn advance(&mut self) {
        let due = self.supervisor.poll_timeout();
        let millis = match self.pick(6) {
            0 => 0,
            1..=3 => due.map_or(1_000, |due| self.now.until(due).as_millis() as u64),
            4 => self.pick(3_000),
            _ => self.pick(100_000),
        };
        self.now = self.now.after(Duration::from_millis(millis));
    }

    fn see(&self, before: ConnectionPhase, input: Option<&Input>) {
        let state = self.supervisor.state();
        let under_way = self.account.count(&[Life::Wanted, Life::Granted, Life::Begun]);
        let ready = self.account.count(&[Life::Ready]);
        assert_eq!(self.supervisor.session(), self.account.published);
        assert_eq!(state.generation, self.account.generation);
        assert_eq!(state.phase == ConnectionPhase::Connected, self.account.published.is_some());
        assert_eq!(state.desired, state.phase != ConnectionPhase::Available);
        assert_eq!(state.stage.is_some(), state.phase == ConnectionPhase::Connecting);
        assert_eq!(state.retry_at.is_some(), state.phase == ConnectionPhase::Backoff);
        if state.verifying {
            assert_eq!(state.phase, ConnectionPhase::Connected);
            assert!(under_way + ready <= 2, "at most a replacement beside the session");
        } else {
            assert_eq!(self.account.asking, None);
            let connecting = state.phase == ConnectionPhase::Connecting;
            assert_eq!(under_way, usize::from(connecting), "{:?}", state.phase);
            assert_eq!(ready, usize::from(self.account.published.is_some()));
        }
        if state.phase == ConnectionPhase::Available {
            assert_eq!(self.supervisor.poll_timeout(), None);
        }
        self.see_wait(before, input);
    }

    /// A wait that a failure has just begun keeps to the ladder and to what was asked for.
    fn see_wait(&self, before: ConnectionPhase, input: Option<&Input>) {
        let (Some(retry_at), ConnectionPhase::Connecting | ConnectionPhase::Connected) =
            (self.supervisor.state().retry_at, before)
        else {
            return;
        };
        let wait = self.now.until(retry_at);
        let asked = match input {
            Some(Input::Failed { failure, .. } | Input::Closed { failure, .. })
                if failure.class() == FailureClass::Transient =>
            {
                failure.retry_after
            }
            _ => None,
        };
        let rung = self.supervisor.state().attempt as usize;
        assert!(rung > 0, "a failure is counted");
        assert!(wait >= DELAY_LEAST);
        match asked {
            // A replacement that had failed decides by its own failure.
            None => assert!(wait <= RETRY_AFTER_MOST + RETRY_AFTER_SPREAD),
            Some(asked) => {
                assert!(wait >= asked.min(RETRY_AFTER_MOST) || before == ConnectionPhase::Connected)
            }
        }
        if asked.is_none() && before == ConnectionPhase::Connecting {
            let ceiling = CEILINGS.get(rung - 1).copied().unwrap_or(DELAY_MOST);
            assert!(wait <= ceiling, "{wait:?} on rung {rung}");
        }
    }

    /// Everything that became ready was released, once, when nobody wants it any more.
    fn end(&mut self) {
        self.supervisor.handle(self.now, Input::Disconnect);
        while let Some(action) = self.supervisor.poll_action() {
            self.account.done(self.now, action);
        }
        self.see(ConnectionPhase::Available, None);
        for (attempt, life) in &self.account.lives {
            assert!(
                matches!(life, Life::Over | Life::Stray | Life::Released),
                "{attempt:?} is left {life:?}",
            );
        }
    }
}

/// One random history of so many steps, in parts that begin anew.
pub(crate) fn run(seed: u64, steps: u64) {
    const PART: u64 = 1_000;
    let mut chance = Chance::seeded(seed);
    let mut left = steps;
    while left > 0 {
        let mut world = World::new(chance.draw());
        let part = left.min(PART);
        for _ in 0..part {
            world.step();
        }
        world.end();
        left -= part;
    }
}

/// How many steps an ordinary run takes.
const STEPS: u64 = 100_000;

#[test]
fn random_histories_keep_to_one_owner_one_session_and_one_release() {
    run(0x5eed, STEPS);
}
