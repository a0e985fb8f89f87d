//! Going to sleep: the decision, the drain, and the point of no return.

use super::{Draft, Moment};
use crate::{
    Clocks, Drained, Intent, Observation, Record, Step, Stop, StopReason, StopStage, command::stop,
};

/// Decides about the end of a sandbox, and how far one that was decided goes.
pub(super) fn decide(
    next: &mut Record,
    observation: &Observation,
    clocks: &Clocks,
    moment: &Moment<'_>,
    draft: &mut Draft,
) {
    let (now, policy) = (moment.now, moment.policy);
    let Some(sandbox) = &mut next.sandbox else { return };
    let Some(end) = &mut sandbox.stop else {
        if next.intent == Intent::Suspended {
            stop(next, StopReason::Asked, policy, now);
        } else if next.intent == Intent::Running && sandbox.ready_since.is_some() {
            let waits = next.idle_not_before.filter(|at| *at > now);
            if let Some(at) = waits {
                draft.look(at, "idle");
            } else if clocks.is_idle(policy, now) {
                next.idle_not_before = None;
                stop(next, StopReason::Idle, policy, now);
                draft.loses_to_touch = true;
            } else {
                draft.look(clocks.look_again_at(policy, now), "idle");
            }
        }
        return;
    };
    let StopStage::Draining { deadline } = end.stage else { return };
    if end.reason == StopReason::Idle && !clocks.is_idle(policy, now) {
        // A touch or a lease came in between: it wins (W1).
        sandbox.stop = None;
        next.intent = Intent::Running;
        draft.look(clocks.look_again_at(policy, now), "idle");
        return;
    }
    let expired = deadline <= now;
    match (observation.drained, end.forced()) {
        (Drained::Yes, forced) => {
            end.stage = StopStage::Stopping;
            end.since = now;
            draft.loses_to_touch = !forced;
            if !forced {
                next.intent = Intent::Suspended;
            }
        }
        (Drained::Pending | Drained::Busy, true) if expired => {
            end.stage = StopStage::Stopping;
            end.since = now;
        }
        // Something is open, or a gateway does not answer: an idle suspend waits for another day.
        (Drained::Busy, false) => sandbox.stop = None,
        (Drained::Pending, false) if expired => sandbox.stop = None,
        (Drained::Pending | Drained::Busy, _) => draft.look(deadline, "drain"),
    }
    if sandbox.stop.is_none() {
        // Not at once again: whoever is busy reports it by the next keep-alive interval.
        let again = now.after(policy.drain_deadline);
        next.idle_not_before = Some(again);
        draft.look(again, "idle");
    }
}

/// The steps for an end that is under way, and the look that finds it finished.
pub(super) fn pursue(next: &Record, before: &Record, moment: &Moment<'_>, draft: &mut Draft) {
    let Some(sandbox) = &next.sandbox else { return };
    let Some(Stop { reason, stage, decided, .. }) = &sandbox.stop else { return };
    let forced = *reason != StopReason::Idle;
    let decided_before = before
        .sandbox
        .as_ref()
        .and_then(|old| old.stop.as_ref())
        .is_some_and(|old| old.decided == *decided && *decided <= before.generation);
    match stage {
        StopStage::Draining { deadline } => {
            if !decided_before {
                draft.steps.push(Step::Drain { env: next.id, decided: *decided, forced });
            }
            draft.look(*deadline, "drain");
        }
        StopStage::Stopping => {
            if !decided_before {
                // Gateways are told also when nobody waits for their answer.
                draft.steps.push(Step::Drain { env: next.id, decided: *decided, forced: true });
            }
            draft.steps.push(Step::Stop(sandbox.reference(next.id), *reason));
            draft.look(moment.now.after(moment.policy.step_retry), "stop");
        }
    }
}
