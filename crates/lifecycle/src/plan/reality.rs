//! What was seen, taken into the record: the only place where an observation changes it.

use wakeful_wire::ClockKind;

use super::{Draft, Moment, start};
use crate::{
    Clocks, Intent, Observation, Present, Record, Seen, Starts, Step, StopReason, StopStage,
    command::stop,
};

pub(super) fn take_in(
    next: &mut Record,
    observation: &Observation,
    clocks: &Clocks,
    moment: &Moment<'_>,
    draft: &mut Draft,
) {
    let Some(sandbox) = &next.sandbox else { return };
    let stopping = sandbox.stop.as_ref().is_some_and(|end| end.stage == StopStage::Stopping);
    match &observation.seen {
        // A doubtful answer changes nothing (absence must be confirmed).
        Seen::Unknown => {}
        Seen::Present(present) => present_now(next, present, observation, moment, draft),
        Seen::Absent if stopping => next.sandbox = None,
        Seen::Absent if !sandbox.launched => match &observation.fault {
            Some(fault) => {
                next.sandbox = None;
                start::failed(next, fault, moment);
            }
            // Committed, and then nothing: the step was lost with the process that should have run
            // it. It is idempotent, so it is simply due again.
            None if sandbox.stop.is_some() => next.sandbox = None,
            None => draft.steps.push(Step::Create(sandbox.reference(next.id))),
        },
        Seen::Absent => died(next, clocks, moment),
    }
}

fn present_now(
    next: &mut Record,
    present: &Present,
    observation: &Observation,
    moment: &Moment<'_>,
    draft: &mut Draft,
) {
    let now = moment.now;
    let policy = moment.policy;
    let Some(sandbox) = &mut next.sandbox else { return };
    sandbox.launched = true;
    if sandbox.stop.is_some() {
        return;
    }
    if present.ready {
        sandbox.unready_since = None;
        if sandbox.ready_since.is_none() {
            sandbox.ready_since = Some(now);
            next.starts.retry_at = None;
            next.starts.reason = None;
            if !sandbox.recovery {
                // Who waited for the start gets a whole idle timeout from its end. A recovery
                // never extends a clock.
                draft.touch = Some(ClockKind::Agent);
            }
        }
        if let Some(ready_since) = sandbox.ready_since
            && next.starts.failed > 0
        {
            let stable = ready_since.after(policy.stable_after);
            if stable <= now {
                next.starts = Starts::default();
            } else {
                draft.look(stable, "stable");
            }
        }
        return;
    }
    if let Some(fault) = &observation.fault {
        start::failed(next, fault, moment);
        stop(next, StopReason::StartFailed, policy, now);
        return;
    }
    if sandbox.ready_since.is_none() {
        let deadline = sandbox.created_at.after(policy.start_timeout);
        if deadline <= now {
            let fault = crate::StartFault {
                reason: slow_start(present, policy.start_timeout.as_secs()),
                permanent: false,
            };
            start::failed(next, &fault, moment);
            stop(next, StopReason::StartFailed, policy, now);
        } else {
            draft.look(deadline, "start_timeout");
        }
        return;
    }
    // Ready before, not now: a flap. Nothing is killed before the grace has passed (W16).
    let since = *sandbox.unready_since.get_or_insert(now);
    let deadline = since.after(policy.unready_grace);
    if deadline <= now {
        stop(next, StopReason::Unready, policy, now);
    } else {
        draft.look(deadline, "unready_grace");
    }
}

/// Why a start took too long, for people: the surfaces that do not answer.
fn slow_start(present: &Present, seconds: u64) -> String {
    let waiting: Vec<String> = present
        .surfaces
        .iter()
        .filter(|(_, status)| {
            status.eager && status.state != wakeful_wire::sandbox::SurfaceState::Ready
        })
        .map(|(name, status)| match &status.reason {
            Some(reason) => format!("{name} ({reason})"),
            None => name.to_string(),
        })
        .collect();
    format!("not ready after {seconds} s: {}", waiting.join(", "))
}

/// It was alive and is confirmed gone, and nobody here decided that.
fn died(next: &mut Record, clocks: &Clocks, moment: &Moment<'_>) {
    let Some(sandbox) = next.sandbox.take() else { return };
    if next.intent != Intent::Running {
        return;
    }
    if clocks.is_idle(moment.policy, moment.now) {
        // Nobody needs it: a recovery never extends a clock, so it simply sleeps.
        next.intent = Intent::Suspended;
        next.starts = Starts::default();
        return;
    }
    let stable = sandbox
        .ready_since
        .is_some_and(|ready| ready.after(moment.policy.stable_after) <= moment.now);
    if stable {
        next.starts = Starts::default();
    } else if sandbox.stop.is_none() {
        let fault = crate::StartFault {
            reason: "its processes ended unexpectedly".into(),
            permanent: false,
        };
        start::failed(next, &fault, moment);
    }
    next.starts.recovery = sandbox.stop.is_none();
}
