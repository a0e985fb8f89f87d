//! How threads are kept in order: titles, pins, what is put aside, what goes.

use wakeful_wire::{
    Timestamp,
    rpc::{By, EventBody, Outcome, Thread, ThreadId},
};

use super::{About, Policy, draft::Draft, queue};
use crate::thread::{
    command::Refused,
    limits::{TICK_MAX, TITLE_MAX},
};

pub(super) fn rename(draft: &mut Draft<'_>, id: ThreadId, title: &str) -> Result<About, Refused> {
    let title = title.trim();
    if title.is_empty() {
        return Err(Refused::Invalid("title"));
    }
    if title.len() > TITLE_MAX {
        return Err(Refused::TooLarge("title"));
    }
    let thread = draft.present(id)?;
    if thread.title.as_deref() != Some(title) || thread.titled_by != Some(By::Hand) {
        draft.push(id, EventBody::Titled { title: title.to_owned(), by: By::Hand });
    }
    Ok((Some(id), None))
}

pub(super) fn pin(draft: &mut Draft<'_>, id: ThreadId, pinned: bool) -> Result<About, Refused> {
    if draft.present(id)?.pinned != pinned {
        draft.push(id, if pinned { EventBody::Pinned {} } else { EventBody::Unpinned {} });
    }
    Ok((Some(id), None))
}

pub(super) fn snooze(
    draft: &mut Draft<'_>,
    id: ThreadId,
    until: Option<Timestamp>,
) -> Result<About, Refused> {
    let held = draft.present(id)?.snoozed_until;
    match until {
        Some(until) if until <= draft.now => return Err(Refused::Invalid("moment")),
        Some(until) if held != Some(until) => draft.push(id, EventBody::Snoozed { until }),
        None if held.is_some() => draft.push(id, EventBody::Unsnoozed { by: By::Hand }),
        Some(_) | None => {}
    }
    Ok((Some(id), None))
}

pub(super) fn settle(draft: &mut Draft<'_>, id: ThreadId, settled: bool) -> Result<About, Refused> {
    let thread = draft.present(id)?;
    if thread.settled.is_some() != settled {
        if settled && !thread.is_idle() {
            return Err(Refused::Live);
        }
        let by = By::Hand;
        draft.push(
            id,
            if settled { EventBody::Settled { by } } else { EventBody::Unsettled { by } },
        );
    }
    Ok((Some(id), None))
}

pub(super) fn archive(draft: &mut Draft<'_>, id: ThreadId) -> Result<About, Refused> {
    draft.present(id)?;
    let family = draft.state.subtree(id);
    let live = |id: &ThreadId| draft.present(*id).is_ok_and(|thread| !thread.is_idle());
    if family.iter().any(live) {
        return Err(Refused::Live);
    }
    for id in family {
        if draft.present(id).is_ok_and(Thread::is_active) {
            draft.push(id, EventBody::Archived {});
        }
    }
    Ok((Some(id), None))
}

pub(super) fn restore(draft: &mut Draft<'_>, id: ThreadId) -> Result<About, Refused> {
    draft.present(id)?;
    restore_family(draft, id);
    Ok((Some(id), None))
}

/// Restores whatever is in the archive above and below a thread, and the thread.
pub(super) fn restore_family(draft: &mut Draft<'_>, id: ThreadId) {
    let above = std::iter::successors(Some(id), |id| draft.state.thread(*id)?.parent);
    let mut family: Vec<_> = above.take(crate::thread::limits::DEPTH_MAX).collect();
    family.reverse();
    family.extend(draft.state.subtree(id).into_iter().skip(1));
    for id in family {
        if draft.present(id).is_ok_and(|thread| !thread.is_active()) {
            draft.push(id, EventBody::Restored {});
        }
    }
}

pub(super) fn delete(draft: &mut Draft<'_>, id: ThreadId) -> Result<About, Refused> {
    let Some(entry) = draft.entry(id) else { return Err(Refused::UnknownThread) };
    if entry.thread.deleted {
        return Ok((Some(id), Some(entry.thread.seq)));
    }
    // Those below first, so that at no point a thread is there whose parent is gone.
    for id in draft.state.subtree(id).into_iter().rev() {
        if draft.present(id).is_ok() {
            queue::end_turn(draft, id, Outcome::Cancelled { obeyed: false });
            draft.push(id, EventBody::Deleted {});
        }
    }
    Ok((Some(id), None))
}

/// Brings back what was snoozed until now, and settles what is old.
pub(super) fn tick(draft: &mut Draft<'_>, policy: Policy) -> About {
    let now = draft.now;
    let due = |thread: &&Thread| {
        !thread.deleted && thread.snoozed_until.is_some_and(|until| until <= now)
    };
    let mut back: Vec<_> =
        draft.state.threads().filter(due).map(|t| (t.snoozed_until, t.id)).collect();
    back.sort_unstable();
    for (_, id) in back.into_iter().take(TICK_MAX) {
        draft.push(id, EventBody::Unsnoozed { by: By::Rule });
    }
    let Some(after) = policy.settle_after else { return (None, None) };
    let old = |thread: &&Thread| {
        thread.is_active()
            && thread.parent.is_none()
            && thread.settled.is_none()
            && !thread.pinned
            && thread.snoozed_until.is_none()
            && now.since(thread.active_at) >= after
    };
    let still = |id: ThreadId| {
        let idle = |id: ThreadId| draft.present(id).map_or(true, Thread::is_idle);
        draft.state.subtree(id).into_iter().all(idle)
    };
    let mut settle: Vec<_> = draft.state.threads().filter(old).collect();
    settle.retain(|thread| still(thread.id));
    settle.sort_unstable_by_key(|thread| (thread.active_at, thread.id));
    let room = TICK_MAX.saturating_sub(draft.len());
    let settle: Vec<_> = settle.into_iter().take(room).map(|thread| thread.id).collect();
    for id in settle {
        draft.push(id, EventBody::Settled { by: By::Rule });
    }
    (None, None)
}
