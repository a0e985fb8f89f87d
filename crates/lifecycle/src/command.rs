//! Wishes: what a request, a person or the platform wants of an environment.
//!
//! A command changes the record and nothing else; [`plan`](crate::plan::plan) then does the rest.
//! Applying and planning go into one commit.

use wakeful_wire::{Timestamp, gate::FailureKind};

use crate::{Failure, Intent, Policy, Record, Starts, Stop, StopReason, StopStage};

/// A wish.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Command {
    /// A request with intent came. It does not clear a failure before its time, so that a crowd at
    /// a failed door does not become a crowd of starts.
    Wake,
    /// A person asked for it: also clears a failure.
    WakeNow,
    /// A person asked that it sleeps now, or the platform ends cleanly.
    Suspend,
    /// A person asked for a fresh sandbox.
    Restart,
    /// To be removed. Idempotent, accepted in every phase.
    Delete,
    /// Undo a deletion whose burial has not happened yet.
    Undelete,
    /// Switch off.
    Disable,
    /// Switch on again. It does not wake what slept before (W21).
    Enable,
    /// A gateway reports that a request to a ready sandbox failed. It changes nothing by itself:
    /// the look at the sandbox that follows decides.
    Failed(FailureKind),
}

/// Why a command does not apply.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    /// It is deleted.
    #[error("the environment is deleted")]
    Gone,
    /// It is switched off.
    #[error("the environment is disabled")]
    Disabled,
    /// It is already, or not at all, what the command wants.
    #[error("not possible in this phase")]
    WrongPhase,
    /// It is failed, and it is not yet time to try again.
    #[error("the environment cannot start")]
    Failed,
}

/// Applies a command. `None` when the record is already as wanted.
///
/// # Errors
/// [`Refused`] when the record's phase does not allow it; the record is then unchanged.
pub fn apply(
    record: &Record,
    command: Command,
    policy: &Policy,
    now: Timestamp,
) -> Result<Option<Record>, Refused> {
    let mut next = record.clone();
    match command {
        Command::Delete => next.intent = Intent::Deleted,
        Command::Undelete if record.intent == Intent::Deleted => next.intent = Intent::Suspended,
        Command::Undelete => return Err(Refused::WrongPhase),
        _ if record.intent == Intent::Deleted => return Err(Refused::Gone),
        Command::Disable if record.disabled => return Err(Refused::WrongPhase),
        Command::Disable => next.disabled = true,
        Command::Enable if !record.disabled => return Err(Refused::WrongPhase),
        Command::Enable => {
            next.disabled = false;
            next.intent = Intent::Suspended;
        }
        Command::Failed(_) => {}
        _ if record.disabled => return Err(Refused::Disabled),
        Command::Wake => wake(&mut next, false, now)?,
        Command::WakeNow => wake(&mut next, true, now)?,
        Command::Suspend => {
            next.intent = Intent::Suspended;
            next.failure = None;
            next.starts = Starts::default();
            stop(&mut next, StopReason::Asked, policy, now);
        }
        Command::Restart if record.publishing => return Err(Refused::WrongPhase),
        Command::Restart => {
            next.intent = Intent::Running;
            next.failure = None;
            next.starts = Starts::default();
            stop(&mut next, StopReason::Restart, policy, now);
        }
    }
    Ok((next != *record).then_some(next))
}

fn wake(next: &mut Record, asked: bool, now: Timestamp) -> Result<(), Refused> {
    if let Some(failure) = &next.failure {
        let healed = failure.heal_at.is_some_and(|at| at <= now);
        if !asked && !healed {
            return Err(Refused::Failed);
        }
        next.failure = None;
        next.starts = Starts::default();
    }
    next.intent = Intent::Running;
    next.starts.recovery = false;
    if let Some(sandbox) = &mut next.sandbox {
        sandbox.recovery = false;
        let abort = sandbox.stop.as_ref().is_some_and(|stop| {
            // What idleness decided, anybody averts; what a person decided, a person.
            matches!(stop.stage, StopStage::Draining { .. })
                && (stop.reason == StopReason::Idle || (asked && stop.reason == StopReason::Asked))
        });
        if abort {
            sandbox.stop = None;
        }
    }
    Ok(())
}

/// Decides the end of the sandbox, if there is one and its end is not under way already.
/// One that gateways may be sending requests to is drained first.
pub(crate) fn stop(next: &mut Record, reason: StopReason, policy: &Policy, now: Timestamp) {
    let decided = next.generation.next();
    let Some(sandbox) = &mut next.sandbox else { return };
    let stage = match (&sandbox.stop, sandbox.ready_since) {
        (Some(Stop { stage: StopStage::Stopping, .. }), _) => StopStage::Stopping,
        (Some(Stop { stage: StopStage::Draining { .. }, .. }), _) | (None, Some(_)) => {
            StopStage::Draining { deadline: now.after(policy.drain_deadline) }
        }
        (None, None) => StopStage::Stopping,
    };
    if sandbox.stop.as_ref().is_some_and(|stop| stop.reason == reason && stop.stage == stage) {
        return;
    }
    sandbox.stop = Some(Stop { reason, stage, decided, since: now });
}

/// Marks the record as failed.
pub(crate) fn fail(
    next: &mut Record,
    reason: String,
    permanent: bool,
    heal: Option<Timestamp>,
    now: Timestamp,
) {
    next.failure = Some(Failure {
        reason,
        permanent,
        attempts: next.starts.failed,
        since: now,
        heal_at: heal,
    });
}
