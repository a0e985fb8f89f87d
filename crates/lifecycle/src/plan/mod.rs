//! The one decision about an environment's future.

mod idle;
mod reality;
mod start;

#[cfg(test)]
mod tests;

use wakeful_wire::{ActivitySeq, ClockKind, Generation, Timestamp};

use crate::{
    Clocks, FreshSandbox, Intent, Observation, Policy, Record, Step, StopReason, command::stop,
};

/// When a plan is made, and by what numbers.
#[derive(Debug, Clone, Copy)]
pub struct Moment<'a> {
    /// The time.
    pub now: Timestamp,
    /// The numbers.
    pub policy: &'a Policy,
    /// For a sandbox that the plan may create.
    pub fresh: &'a FreshSandbox,
}

/// What a commit is conditional on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Guard {
    /// The generation of the record that was planned from.
    pub generation: Generation,
    /// The activity sequence that was planned from, where the change must lose to a touch.
    pub activity: Option<ActivitySeq>,
}

/// When to look at an environment again, and who wants it. Every wake-up is named.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LookAgain {
    /// When.
    pub at: Timestamp,
    /// Who asked: `idle`, `retry`, `start_timeout`, `unready_grace`, `drain`, `heal`, `stop`.
    pub why: &'static str,
}

/// A decision.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Plan {
    /// The record to commit, at the next generation; `None` to leave it as it is.
    pub change: Option<Record>,
    /// What the commit is conditional on.
    pub guard: Guard,
    /// What to run once it is committed (or at once, if there is nothing to commit).
    pub steps: Vec<Step>,
    /// When to look again; `None` when nothing but a command changes anything.
    pub look_again: Option<LookAgain>,
    /// A clock to touch with the commit: a start that somebody waited for has finished.
    pub touch: Option<ClockKind>,
}

/// What the parts of a plan put together.
#[derive(Debug, Default)]
struct Draft {
    steps: Vec<Step>,
    look: Option<LookAgain>,
    loses_to_touch: bool,
    touch: Option<ClockKind>,
}

impl Draft {
    /// The earliest wish to look again wins.
    fn look(&mut self, at: Timestamp, why: &'static str) {
        if self.look.is_none_or(|look| at < look.at) {
            self.look = Some(LookAgain { at, why });
        }
    }
}

/// Decides what happens to an environment next.
///
/// `base` is the record as it is stored: the commit is conditional on its generation. `record` is
/// the same after a command was applied, or the same. Calling it again with its own result and
/// unchanged surroundings changes nothing more, except that running steps may be repeated: a crash
/// at any point is recovered by planning again.
#[must_use]
pub fn plan(
    base: &Record,
    record: &Record,
    observation: &Observation,
    clocks: &Clocks,
    moment: &Moment<'_>,
) -> Plan {
    let mut next = record.clone();
    let mut draft = Draft::default();

    reality::take_in(&mut next, observation, clocks, moment, &mut draft);
    let unwanted = if next.intent == Intent::Deleted {
        Some(StopReason::Deleted)
    } else if next.disabled {
        Some(StopReason::Disabled)
    } else {
        None
    };
    if let Some(reason) = unwanted {
        // Who deletes or disables does not wait for what is open: its sockets are told.
        stop(&mut next, reason, moment.policy, moment.now);
        if let Some(end) = next.sandbox.as_mut().and_then(|sandbox| sandbox.stop.as_mut()) {
            end.stage = crate::StopStage::Stopping;
        }
    }
    start::heal(&mut next, moment, &mut draft);
    if start::wanted(&next) {
        start::begin(&mut next, clocks, moment, &mut draft);
    }
    idle::decide(&mut next, observation, clocks, moment, &mut draft);
    idle::pursue(&next, record, moment, &mut draft);
    if next.intent == Intent::Deleted && next.sandbox.is_none() {
        draft.steps.push(Step::Bury(next.id));
    }

    let guard =
        Guard { generation: base.generation, activity: draft.loses_to_touch.then_some(clocks.seq) };
    let change = (next != *base).then(|| {
        next.generation = base.generation.next();
        if next.phase() != base.phase() {
            next.since = moment.now;
        }
        next
    });
    Plan { change, guard, steps: draft.steps, look_again: draft.look, touch: draft.touch }
}
