//! Starting: when, how often, and when to give up.

use super::{Draft, Moment};
use crate::{Clocks, Intent, Record, Sandbox, StartFault, Starts, Step, Woken, command::fail};

/// Whether a sandbox should exist and none does.
pub(super) fn wanted(next: &Record) -> bool {
    next.intent == Intent::Running
        && !next.disabled
        && !next.publishing
        && next.failure.is_none()
        && next.sandbox.is_none()
}

/// Begins a start, or waits for its time.
pub(super) fn begin(next: &mut Record, clocks: &Clocks, moment: &Moment<'_>, draft: &mut Draft) {
    let now = moment.now;
    if next.starts.failed > 0 && clocks.is_idle(moment.policy, now) {
        // Whoever wanted it has left, and it does not start: no endless retry (W19).
        next.intent = Intent::Suspended;
        next.starts = Starts::default();
        return;
    }
    if let Some(at) = next.starts.retry_at
        && at > now
    {
        draft.look(at, "retry");
        return;
    }
    let sandbox = Sandbox {
        uid: moment.fresh.uid,
        secret: moment.fresh.secret.clone(),
        created_at: now,
        launched: false,
        ready_since: None,
        unready_since: None,
        recovery: next.starts.recovery,
        stop: None,
    };
    if sandbox.recovery {
        let by = "its processes ended while somebody needed them".to_owned();
        next.woken = Some(Woken { at: now, by });
    }
    draft.steps.push(Step::Create(sandbox.reference(next.id)));
    draft.look(now.after(moment.policy.start_timeout), "start_timeout");
    next.sandbox = Some(sandbox);
}

/// Takes in that a start failed: the next try's time, or the end of trying.
pub(super) fn failed(next: &mut Record, fault: &StartFault, moment: &Moment<'_>) {
    let policy = moment.policy;
    next.starts.failed += 1;
    next.starts.reason = Some(fault.reason.clone());
    next.starts.retry_at = Some(moment.now.after(policy.retry_pause(next.starts.failed)));
    if next.intent != Intent::Running {
        return;
    }
    if fault.permanent {
        // A person has to change something; their wake or restart clears it.
        fail(next, fault.reason.clone(), true, None, moment.now);
    } else if next.starts.failed >= policy.start_attempts {
        let heal = moment.now.after(policy.heal_after);
        fail(next, fault.reason.clone(), false, Some(heal), moment.now);
    }
}

/// A failure for a passing reason heals: it becomes plain sleep, and the next visit tries again.
pub(super) fn heal(next: &mut Record, moment: &Moment<'_>, draft: &mut Draft) {
    let Some(at) = next.failure.as_ref().and_then(|failure| failure.heal_at) else { return };
    if at > moment.now {
        draft.look(at, "heal");
    } else if next.intent == Intent::Running {
        next.failure = None;
        next.starts = Starts::default();
        next.intent = Intent::Suspended;
    }
}
