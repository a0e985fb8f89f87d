//! The plan over tables of record, observation, clocks and time.

use std::time::Duration;

use wakeful_wire::{ActivitySeq, ClockKind, Phase, SurfaceName, Timestamp, gate::LeaseKind};

use super::{Guard, Moment, Plan, plan};
use crate::{
    Clocks, Command, Drained, Intent, Lease, Observation, Policy, Present, Record, Refused, Seen,
    StartFault, Step, StopReason, StopStage, apply,
    testing::{a_fresh_sandbox, a_holder, a_project},
};

const T0: Timestamp = Timestamp(1_800_000_000_000);

/// A record with its clocks on one timeline: applies plans as a store without races would.
struct Bench {
    record: Record,
    clocks: Clocks,
    policy: Policy,
    now: Timestamp,
}

impl Bench {
    fn new() -> Self {
        let (_, record) = a_project("alice", T0);
        Self { record, clocks: Clocks::default(), policy: Policy::default(), now: T0 }
    }

    /// One that is ready, touched just now.
    fn ready() -> Self {
        let mut bench = Self::new();
        bench.wake();
        bench.see(ready());
        assert_eq!(bench.record.phase(), Phase::Ready);
        bench
    }

    fn wait(&mut self, duration: Duration) -> &mut Self {
        self.now = self.now.after(duration);
        self
    }

    fn plan(&self, observation: &Observation) -> Plan {
        let fresh = a_fresh_sandbox();
        let moment = Moment { now: self.now, policy: &self.policy, fresh: &fresh };
        plan(&self.record, &self.record, observation, &self.clocks, &moment)
    }

    fn take(&mut self, made: &Plan) {
        if let Some(next) = &made.change {
            assert_eq!(next.generation, self.record.generation.next());
            self.record = next.clone();
        }
        if let Some(clock) = made.touch {
            self.clocks.touch(clock, self.now);
        }
    }

    fn observe(&mut self, observation: &Observation) -> Plan {
        let made = self.plan(observation);
        self.take(&made);
        made
    }

    fn see(&mut self, seen: Seen) -> Plan {
        self.observe(&Observation::of(seen))
    }

    fn command(&mut self, command: Command) -> Result<Plan, Refused> {
        let wished = apply(&self.record, command, &self.policy, self.now)?;
        let next = wished.unwrap_or_else(|| self.record.clone());
        let fresh = a_fresh_sandbox();
        let moment = Moment { now: self.now, policy: &self.policy, fresh: &fresh };
        let made = plan(&self.record, &next, &Observation::unknown(), &self.clocks, &moment);
        self.take(&made);
        Ok(made)
    }

    fn wake(&mut self) -> Plan {
        // As the gate does it: the touch first, and the wake planned with it.
        self.clocks.touch(ClockKind::Agent, self.now);
        self.command(Command::Wake).unwrap()
    }

    fn drained(&mut self, drained: Drained) -> Plan {
        self.observe(&Observation { drained, ..Observation::of(ready()) })
    }

    fn stage(&self) -> Option<(StopReason, StopStage)> {
        let stop = self.record.sandbox.as_ref()?.stop.as_ref()?;
        Some((stop.reason, stop.stage))
    }

    /// Waits past both clocks and has the drain decided.
    fn fall_idle(&mut self) -> Plan {
        self.wait(self.policy.idle_agent);
        let made = self.see(ready());
        assert!(matches!(self.stage(), Some((StopReason::Idle, StopStage::Draining { .. }))));
        made
    }
}

fn ready() -> Seen {
    Seen::Present(Present { ready: true, ..Present::default() })
}

fn unready() -> Seen {
    Seen::Present(Present::default())
}

fn passing() -> StartFault {
    StartFault { reason: "no luck".into(), permanent: false }
}

fn creates(made: &Plan) -> usize {
    made.steps.iter().filter(|step| matches!(step, Step::Create(_))).count()
}

fn stops(made: &Plan) -> usize {
    made.steps.iter().filter(|step| matches!(step, Step::Stop(..))).count()
}

#[test]
fn a_wake_starts_one_sandbox_and_a_second_wake_none() {
    let mut bench = Bench::new();
    assert_eq!(creates(&bench.wake()), 1);
    assert_eq!(bench.record.phase(), Phase::Starting);
    let uid = bench.record.sandbox.as_ref().unwrap().uid;
    let again = bench.wake();
    assert_eq!((creates(&again), again.change), (0, None));
    assert_eq!(bench.record.sandbox.as_ref().unwrap().uid, uid);
}

#[test]
fn a_start_that_the_platform_forgot_is_done_again_with_the_same_uid() {
    let mut bench = Bench::new();
    bench.wake();
    let uid = bench.record.sandbox.as_ref().unwrap().uid;
    let made = bench.see(Seen::Absent);
    assert!(matches!(&made.steps[..], [Step::Create(sandbox)] if sandbox.uid == uid));
    assert_eq!(bench.record.starts.failed, 0, "it never ran, so it has not failed");
}

#[test]
fn a_finished_start_touches_the_agent_clock_and_a_recovery_does_not() {
    let mut bench = Bench::new();
    bench.wake();
    bench.wait(Duration::from_secs(40));
    assert_eq!(bench.see(ready()).touch, Some(ClockKind::Agent));

    bench.wait(Duration::from_secs(90));
    let made = bench.see(Seen::Absent);
    assert_eq!(creates(&made), 1, "it died while somebody needed it");
    assert_eq!(bench.see(ready()).touch, None, "a recovery extends no clock");
}

#[test]
fn a_doubtful_look_changes_nothing() {
    let mut bench = Bench::ready();
    bench.wait(Duration::from_secs(5));
    let made = bench.see(Seen::Unknown);
    assert_eq!((made.change, made.steps), (None, Vec::new()));
}

#[test]
fn a_death_is_recovered_only_while_somebody_needs_it() {
    let mut bench = Bench::ready();
    let old = bench.record.sandbox.as_ref().unwrap().uid;
    bench.wait(Duration::from_secs(120));
    let made = bench.see(Seen::Absent);
    assert_eq!(creates(&made), 1);
    assert_ne!(bench.record.sandbox.as_ref().unwrap().uid, old, "a new incarnation, a new uid");

    let mut bench = Bench::ready();
    bench.wait(bench.policy.idle_agent);
    let made = bench.see(Seen::Absent);
    assert_eq!((creates(&made), bench.record.phase()), (0, Phase::Suspended));
}

#[test]
fn failed_starts_are_retried_with_growing_pauses_and_then_given_up() {
    let mut bench = Bench::new();
    bench.wake();
    let mut pauses = Vec::new();
    while bench.record.failure.is_none() {
        let fault = Some(passing());
        let made = bench.observe(&Observation { fault, ..Observation::of(Seen::Absent) });
        if bench.record.failure.is_some() {
            assert_eq!(creates(&made), 0);
            break;
        }
        assert_eq!(bench.record.phase(), Phase::Starting);
        assert_eq!(bench.record.starts.reason.as_deref(), Some("no luck"), "visibly");
        let look = made.look_again.unwrap();
        assert_eq!(look.why, "retry");
        pauses.push(look.at.since(bench.now).as_secs());
        bench.now = look.at;
        bench.clocks.touch(ClockKind::Agent, bench.now);
        assert_eq!(creates(&bench.see(Seen::Absent)), 1);
    }
    assert_eq!(pauses, [1, 2, 4, 8]);
    assert_eq!(bench.record.phase(), Phase::Failed);
    assert_eq!(bench.record.failure.as_ref().unwrap().attempts, 5);
}

#[test]
fn nobody_waiting_ends_the_retries() {
    let mut bench = Bench::new();
    bench.wake();
    let fault = Some(passing());
    bench.observe(&Observation { fault, ..Observation::of(Seen::Absent) });
    bench.wait(bench.policy.idle_agent);
    assert_eq!(creates(&bench.see(Seen::Absent)), 0);
    assert_eq!(bench.record.phase(), Phase::Suspended);
}

#[test]
fn a_permanent_reason_fails_at_once_and_only_a_person_clears_it() {
    let mut bench = Bench::new();
    bench.wake();
    let fault = Some(StartFault { reason: "not installed".into(), permanent: true });
    bench.observe(&Observation { fault, ..Observation::of(Seen::Absent) });
    assert_eq!(bench.record.phase(), Phase::Failed);
    bench.wait(Duration::from_secs(24 * 3600));
    bench.see(Seen::Absent);
    assert_eq!(bench.record.phase(), Phase::Failed);
    assert_eq!(bench.command(Command::Wake), Err(Refused::Failed));
    assert_eq!(creates(&bench.command(Command::WakeNow).unwrap()), 1);
}

#[test]
fn a_passing_failure_heals_into_sleep_and_the_next_visit_tries_again() {
    let mut bench = Bench::new();
    bench.policy.start_attempts = 1;
    bench.wake();
    let fault = Some(passing());
    let made = bench.observe(&Observation { fault, ..Observation::of(Seen::Absent) });
    assert_eq!(bench.record.phase(), Phase::Failed);
    assert_eq!(made.look_again.map(|look| look.why), Some("heal"));
    assert_eq!(bench.command(Command::Wake), Err(Refused::Failed), "a crowd starts nothing");
    bench.now = made.look_again.unwrap().at;
    bench.see(Seen::Absent);
    assert_eq!(bench.record.phase(), Phase::Suspended);
    assert_eq!(creates(&bench.wake()), 1);
}

#[test]
fn a_start_that_takes_too_long_is_taken_down_and_tried_again() {
    let mut bench = Bench::new();
    bench.wake();
    let made = bench.see(unready());
    assert_eq!(made.look_again.map(|look| look.why), Some("start_timeout"));
    bench.now = made.look_again.unwrap().at;
    assert_eq!(stops(&bench.see(unready())), 1);
    assert_eq!(bench.record.phase(), Phase::Starting);
    assert_eq!(bench.record.starts.failed, 1);
    bench.see(Seen::Absent);
    bench.wait(Duration::from_secs(1));
    assert_eq!(creates(&bench.see(Seen::Absent)), 1);
}

#[test]
fn a_readiness_flap_kills_nothing_before_the_grace() {
    let mut bench = Bench::ready();
    bench.wait(Duration::from_secs(10));
    let made = bench.see(unready());
    assert_eq!((stops(&made), bench.record.phase()), (0, Phase::Ready));
    assert_eq!(made.look_again.map(|look| look.why), Some("unready_grace"));
    bench.wait(Duration::from_secs(59));
    assert_eq!(stops(&bench.see(unready())), 0);
    bench.see(ready());
    bench.wait(Duration::from_secs(59));
    assert_eq!(stops(&bench.see(unready())), 0, "the grace begins anew");
    bench.wait(Duration::from_secs(60));
    bench.see(unready());
    assert!(matches!(bench.stage(), Some((StopReason::Unready, _))));
}

#[test]
fn idleness_drains_and_then_stops_and_each_loses_to_a_touch() {
    let mut bench = Bench::ready();
    let seq = bench.clocks.seq;
    let made = bench.fall_idle();
    let decided = bench.record.generation;
    assert_eq!(made.guard.activity, Some(seq), "a touch in between wins");
    assert_eq!(made.steps, [Step::Drain { env: bench.record.id, decided, forced: false }]);
    assert_eq!(bench.record.phase(), Phase::Suspending);
    assert_eq!(stops(&bench.drained(Drained::Pending)), 0);
    let made = bench.drained(Drained::Yes);
    assert_eq!(made.guard.activity, Some(seq));
    assert_eq!(stops(&made), 1);
    bench.see(Seen::Absent);
    assert_eq!((bench.record.phase(), &bench.record.sandbox), (Phase::Suspended, &None));
}

#[test]
fn a_touch_while_draining_keeps_the_sandbox() {
    let mut bench = Bench::ready();
    let uid = bench.record.sandbox.as_ref().unwrap().uid;
    bench.fall_idle();
    bench.clocks.touch(ClockKind::App, bench.now);
    let made = bench.drained(Drained::Yes);
    assert_eq!((stops(&made), bench.record.phase()), (0, Phase::Ready));
    assert_eq!(bench.record.sandbox.as_ref().unwrap().uid, uid);
}

#[test]
fn a_wake_while_draining_keeps_the_sandbox_and_one_while_stopping_is_queued() {
    let mut bench = Bench::ready();
    let uid = bench.record.sandbox.as_ref().unwrap().uid;
    bench.fall_idle();
    assert_eq!(creates(&bench.wake()), 0);
    assert_eq!(bench.record.phase(), Phase::Ready);
    assert_eq!(bench.record.sandbox.as_ref().unwrap().uid, uid);

    bench.fall_idle();
    bench.drained(Drained::Yes);
    let made = bench.wake();
    assert_eq!(creates(&made), 0, "never two at once");
    assert_eq!(bench.record.intent, Intent::Running);
    let made = bench.see(Seen::Absent);
    assert_eq!(creates(&made), 1);
    assert_ne!(bench.record.sandbox.as_ref().unwrap().uid, uid);
}

#[test]
fn something_open_or_a_silent_gateway_gives_an_idle_suspend_up() {
    let mut bench = Bench::ready();
    bench.fall_idle();
    bench.drained(Drained::Busy);
    assert_eq!((bench.record.phase(), bench.stage()), (Phase::Ready, None));
    bench.see(ready());
    assert_eq!(bench.stage(), None, "not at once again");
    bench.wait(bench.policy.drain_deadline);
    bench.see(ready());
    assert!(matches!(bench.stage(), Some((StopReason::Idle, _))), "and it is tried again");
    bench.wait(bench.policy.drain_deadline);
    bench.drained(Drained::Pending);
    assert_eq!((bench.record.phase(), bench.stage()), (Phase::Ready, None));
}

#[test]
fn a_lease_holds_and_the_look_comes_when_it_would_lapse() {
    let mut bench = Bench::ready();
    let lapse = Duration::from_secs(3600);
    bench.clocks.report(
        Lease {
            holder: a_holder(),
            surface: SurfaceName::app(),
            kind: LeaseKind::Socket,
            count: 1,
            since: bench.now,
            expires_at: bench.now.after(lapse),
        },
        bench.now,
    );
    let until = bench.now.after(lapse);
    bench.wait(bench.policy.idle_agent);
    let made = bench.see(ready());
    assert_eq!(bench.stage(), None);
    assert_eq!(made.look_again.map(|look| look.at), Some(until));
    bench.now = until;
    bench.see(ready());
    assert!(matches!(bench.stage(), Some((StopReason::Idle, _))));
}

#[test]
fn an_extension_holds() {
    let mut bench = Bench::ready();
    bench.clocks.extend(bench.now.after(Duration::from_secs(7200)));
    bench.wait(Duration::from_secs(7199));
    bench.see(ready());
    assert_eq!(bench.stage(), None);
    bench.wait(Duration::from_secs(1));
    bench.see(ready());
    assert!(bench.stage().is_some());
}

#[test]
fn a_person_suspends_in_every_phase_and_what_is_open_delays_it_no_longer_than_the_deadline() {
    let mut bench = Bench::ready();
    let made = bench.command(Command::Suspend).unwrap();
    assert!(matches!(made.steps[..], [Step::Drain { forced: true, .. }]));
    assert_eq!(made.guard.activity, None, "a touch does not avert it");
    assert_eq!(stops(&bench.drained(Drained::Busy)), 0);
    bench.wait(bench.policy.drain_deadline);
    assert_eq!(stops(&bench.drained(Drained::Busy)), 1);

    let mut bench = Bench::new();
    bench.wake();
    assert_eq!(stops(&bench.command(Command::Suspend).unwrap()), 1, "also while starting");
    bench.see(Seen::Absent);
    assert_eq!(bench.record.phase(), Phase::Suspended);
    assert_eq!(bench.command(Command::Suspend).unwrap().change, None, "and again");
}

#[test]
fn a_visit_after_a_person_suspended_is_queued_behind_the_stop() {
    let mut bench = Bench::ready();
    bench.command(Command::Suspend).unwrap();
    bench.wake();
    assert!(bench.stage().is_some(), "a visit does not undo what a person asked");
    assert_eq!(stops(&bench.drained(Drained::Yes)), 1);
    assert_eq!(creates(&bench.see(Seen::Absent)), 1, "but it is served by one more wake");
}

#[test]
fn a_restart_replaces_the_sandbox_from_every_phase_that_has_one() {
    let mut bench = Bench::ready();
    let uid = bench.record.sandbox.as_ref().unwrap().uid;
    bench.command(Command::Restart).unwrap();
    assert_eq!(bench.record.phase(), Phase::Starting);
    bench.drained(Drained::Yes);
    assert_eq!(creates(&bench.see(Seen::Absent)), 1);
    assert_ne!(bench.record.sandbox.as_ref().unwrap().uid, uid);

    let mut bench = Bench::new();
    assert_eq!(creates(&bench.command(Command::Restart).unwrap()), 1, "suspended");
}

#[test]
fn a_deletion_in_any_phase_stops_what_runs_and_is_buried_after_that() {
    let mut bench = Bench::new();
    bench.wake();
    let made = bench.command(Command::Delete).unwrap();
    assert_eq!((stops(&made), bench.record.phase()), (1, Phase::Deleted));
    assert_eq!(bench.command(Command::Delete).unwrap().change, None, "twice is once");
    // The late "ready" is ignored.
    bench.see(ready());
    assert_eq!(bench.record.phase(), Phase::Deleted);
    let made = bench.see(Seen::Absent);
    assert_eq!(made.steps, [Step::Bury(bench.record.id)]);
    assert_eq!(bench.command(Command::Wake), Err(Refused::Gone));

    let mut bench = Bench::ready();
    assert_eq!(stops(&bench.command(Command::Delete).unwrap()), 1, "it waits for nothing open");
}

#[test]
fn a_deletion_that_is_not_buried_yet_can_be_undone() {
    let mut bench = Bench::ready();
    bench.command(Command::Delete).unwrap();
    bench.command(Command::Undelete).unwrap();
    assert_eq!(bench.see(Seen::Absent).steps, []);
    assert_eq!(bench.record.phase(), Phase::Suspended);
}

#[test]
fn disabling_stops_it_and_enabling_wakes_nothing() {
    let mut bench = Bench::ready();
    assert_eq!(stops(&bench.command(Command::Disable).unwrap()), 1);
    assert_eq!(bench.record.phase(), Phase::Disabled);
    assert_eq!(bench.command(Command::Disable), Err(Refused::WrongPhase));
    assert_eq!(bench.command(Command::Wake), Err(Refused::Disabled));
    bench.see(Seen::Absent);
    let made = bench.command(Command::Enable).unwrap();
    assert_eq!((creates(&made), bench.record.phase()), (0, Phase::Suspended));
    assert_eq!(bench.command(Command::Enable), Err(Refused::WrongPhase));
}

#[test]
fn a_stop_is_pursued_until_the_sandbox_is_confirmed_gone() {
    let mut bench = Bench::ready();
    bench.fall_idle();
    bench.drained(Drained::Yes);
    for seen in [ready(), unready(), Seen::Unknown] {
        let made = bench.see(seen);
        assert_eq!(stops(&made), 1);
        assert_eq!(made.look_again.map(|look| look.why), Some("stop"));
    }
}

#[test]
fn planning_again_from_the_result_changes_nothing_more() {
    let observations = [
        Observation::of(Seen::Absent),
        Observation::of(ready()),
        Observation::of(unready()),
        Observation::unknown(),
    ];
    for observation in &observations {
        for command in [Command::Wake, Command::Suspend, Command::Restart, Command::Delete] {
            let mut bench = Bench::ready();
            bench.command(command).unwrap();
            bench.observe(observation);
            // A confirmed absence may be followed by a start; from there on it is stable.
            bench.observe(observation);
            let again = bench.plan(observation);
            assert_eq!(again.change, None, "{command:?} {observation:?}");
        }
    }
}

#[test]
fn a_commit_names_the_generation_that_it_was_planned_from() {
    let bench = Bench::ready();
    let made = bench.plan(&Observation::of(ready()));
    assert_eq!(made.guard, Guard { generation: bench.record.generation, activity: None });
    assert_ne!(bench.clocks.seq, ActivitySeq(0));
}
