//! What is to be done about a waiting prompt, and what an attempt meant.

use std::time::Duration;

use tokio::time::Instant;
use wakeful_lifecycle::port::DeliverError;
use wakeful_wire::{
    Phase, Problem, Timestamp,
    rpc::{Seq, Taken},
    time::millis,
};

/// How long a delivered or refused prompt is remembered: who repeats it within that time is told
/// what became of it.
pub const REMEMBERED: Duration = Duration::from_secs(7 * 24 * 3_600);

/// A waiting prompt wakes its environment at most this often, beside its acceptance.
pub(super) const WAKE_AGAIN: Duration = Duration::from_secs(60);

/// The first pause after a host did not take a prompt, and the longest.
const PAUSE_MIN: Duration = Duration::from_millis(200);
const PAUSE_MAX: Duration = Duration::from_secs(30);

/// What is to be done about the first waiting prompt of an environment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Act {
    /// Hand it to the host.
    Deliver,
    /// Wake the environment.
    Wake,
    /// Look again when the environment has changed, or at this moment.
    Wait(Option<Instant>),
}

/// Decides by the environment's phase and when this prompt last woke it.
pub(super) fn act(phase: Phase, woken: Option<Instant>, now: Instant) -> Act {
    match phase {
        Phase::Ready => Act::Deliver,
        Phase::Suspended | Phase::Frozen => match woken.map(|at| at + WAKE_AGAIN) {
            Some(again) if again > now => Act::Wait(Some(again)),
            Some(_) | None => Act::Wake,
        },
        // On its way, or held back by what only a person or a plan changes.
        Phase::Starting
        | Phase::Suspending
        | Phase::Failed
        | Phase::Disabled
        | Phase::Publishing
        | Phase::Deleted => Act::Wait(None),
    }
}

/// What an attempt meant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Outcome {
    /// The host has it, now or since an attempt before.
    Delivered(Seq),
    /// It never will.
    Refused(Problem),
    /// Unknown, or not now, for this reason.
    Later(String),
}

/// Reads the host's answer.
pub(super) fn outcome(answer: Result<Taken, DeliverError>) -> Outcome {
    match answer {
        Ok(taken) => Outcome::Delivered(taken.seq),
        Err(DeliverError::Refused(problem)) => Outcome::Refused(problem),
        Err(DeliverError::Later(reason)) => Outcome::Later(reason),
    }
}

/// The pause after so many failed attempts in a row.
pub(super) fn pause(failures: u32) -> Duration {
    let doublings = failures.saturating_sub(1).min(16);
    (PAUSE_MIN * 2_u32.pow(doublings)).min(PAUSE_MAX)
}

/// What was settled before this moment is forgotten.
pub(super) fn forgotten_before(now: Timestamp) -> Timestamp {
    Timestamp(now.0.saturating_sub(millis(REMEMBERED)))
}

#[cfg(test)]
mod tests {
    use wakeful_wire::Code;

    use super::*;

    #[test]
    fn a_prompt_is_delivered_to_what_is_ready_and_wakes_what_sleeps_once_a_minute() {
        let now = Instant::now() + Duration::from_secs(3_600);
        let ago = |seconds| Some(now - Duration::from_secs(seconds));
        let again = Act::Wait(Some(now + Duration::from_secs(1)));
        let table = [
            (Phase::Ready, None, Act::Deliver),
            (Phase::Ready, ago(1), Act::Deliver),
            (Phase::Suspended, None, Act::Wake),
            (Phase::Suspended, ago(59), again),
            (Phase::Suspended, ago(60), Act::Wake),
            (Phase::Frozen, None, Act::Wake),
            (Phase::Starting, None, Act::Wait(None)),
            (Phase::Suspending, None, Act::Wait(None)),
            (Phase::Failed, None, Act::Wait(None)),
            (Phase::Disabled, None, Act::Wait(None)),
            (Phase::Publishing, None, Act::Wait(None)),
            (Phase::Deleted, None, Act::Wait(None)),
        ];
        for (phase, woken, expected) in table {
            assert_eq!(act(phase, woken, now), expected, "{phase} {woken:?}");
        }
    }

    #[test]
    fn an_answer_settles_a_prompt_and_no_answer_does_not() {
        let taken = |changed| Ok(Taken { seq: Seq(4), thread: None, changed });
        let problem = Problem::new(Code::NotFound);
        let table = [
            (taken(true), Outcome::Delivered(Seq(4))),
            (taken(false), Outcome::Delivered(Seq(4))),
            (Err(DeliverError::Refused(problem.clone())), Outcome::Refused(problem)),
            (Err(DeliverError::Later("x".into())), Outcome::Later("x".into())),
        ];
        for (answer, expected) in table {
            assert_eq!(outcome(answer), expected);
        }
    }

    #[test]
    fn pauses_double_up_to_half_a_minute() {
        let table = [(1, 200), (2, 400), (3, 800), (8, 25_600), (9, 30_000), (u32::MAX, 30_000)];
        for (failures, pause_ms) in table {
            assert_eq!(pause(failures), Duration::from_millis(pause_ms), "{failures}");
        }
    }

    #[test]
    fn what_was_settled_a_week_ago_is_forgotten() {
        let week = 7 * 86_400_000;
        assert_eq!(forgotten_before(Timestamp(week + 5)), Timestamp(5));
        assert_eq!(forgotten_before(Timestamp(5)), Timestamp(0));
    }
}
