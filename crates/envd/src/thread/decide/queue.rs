//! Prompts and turns, as people ask for them.

use wakeful_wire::rpc::{By, ClientId, EventBody, Outcome, Prompt, ThreadId, TurnId, WithdrawnWhy};

use super::{About, Fresh, draft::Draft, known};
use crate::thread::{
    command::Refused,
    limits::{PROMPT_MAX, PROMPT_PARTS_MAX, QUEUE_MAX},
};

/// Whether a prompt is one that can be taken.
pub(super) fn check(prompt: &Prompt) -> Result<(), Refused> {
    if prompt.parts.is_empty() {
        return Err(Refused::Invalid("prompt"));
    }
    if prompt.weight() > PROMPT_MAX || prompt.parts.len() > PROMPT_PARTS_MAX {
        return Err(Refused::TooLarge("prompt"));
    }
    Ok(())
}

/// Takes a prompt, and starts its turn if nothing is before it.
pub(super) fn prompt(
    draft: &mut Draft<'_>,
    id: ThreadId,
    prompt: &Prompt,
    fresh: Fresh,
) -> Result<About, Refused> {
    if let Some(known) = known(draft.state, prompt.client) {
        return Ok(known);
    }
    check(prompt)?;
    let thread = draft.present(id)?;
    if thread.queue.len() >= QUEUE_MAX {
        return Err(Refused::QueueFull);
    }
    let held = thread.held;
    revive(draft, id, By::Hand);
    draft.push(id, EventBody::PromptQueued { prompt: prompt.clone() });
    if held {
        draft.push(id, EventBody::QueueReleased {});
    }
    start_next(draft, id, fresh);
    Ok((Some(id), None))
}

/// Brings a thread back from where it was put aside, because something happens in it.
pub(super) fn revive(draft: &mut Draft<'_>, id: ThreadId, by: By) {
    let Ok(thread) = draft.present(id) else { return };
    let (archived, snoozed, settled) =
        (thread.archived_at.is_some(), thread.snoozed_until.is_some(), thread.settled.is_some());
    if archived {
        super::lists::restore_family(draft, id);
    }
    let by = if by == By::Hand { By::Rule } else { by };
    if snoozed {
        draft.push(id, EventBody::Unsnoozed { by });
    }
    if settled {
        draft.push(id, EventBody::Unsettled { by });
    }
}

/// Starts the turn of the first waiting prompt, if no turn runs and nothing holds the queue.
pub(super) fn start_next(draft: &mut Draft<'_>, id: ThreadId, fresh: Fresh) {
    let Ok(thread) = draft.present(id) else { return };
    if thread.turn.is_some() || thread.held {
        return;
    }
    if thread.queue.is_empty() {
        return;
    }
    // What was asked outside of a turn belongs to the segment that ends here.
    withdraw_all(draft, id, WithdrawnWhy::TurnEnded);
    let Ok(thread) = draft.present(id) else { return };
    let Some(first) = thread.queue.first() else { return };
    let body = EventBody::TurnStarted {
        turn: fresh.turn,
        segment: thread.segment.saturating_add(1),
        prompt: Prompt::clone(&first.prompt),
    };
    draft.push(id, body);
}

/// Takes a waiting prompt back.
pub(super) fn unqueue(
    draft: &mut Draft<'_>,
    id: ThreadId,
    client: ClientId,
) -> Result<About, Refused> {
    let thread = draft.present(id)?;
    if thread.queue.iter().any(|queued| queued.prompt.client == client) {
        draft.push(id, EventBody::PromptRemoved { client });
    } else if thread.turn.is_some_and(|turn| turn.prompt == client) {
        return Err(Refused::Begun);
    }
    Ok((Some(id), None))
}

/// Lets what waits go on.
pub(super) fn release(draft: &mut Draft<'_>, id: ThreadId, fresh: Fresh) -> Result<About, Refused> {
    if draft.present(id)?.held {
        revive(draft, id, By::Hand);
        draft.push(id, EventBody::QueueReleased {});
        start_next(draft, id, fresh);
    }
    Ok((Some(id), None))
}

/// Asks the running turn to end.
pub(super) fn cancel(
    draft: &mut Draft<'_>,
    id: ThreadId,
    turn: Option<TurnId>,
) -> Result<About, Refused> {
    let thread = draft.present(id)?;
    let running = thread.turn.filter(|running| turn.is_none_or(|turn| turn == running.id));
    let Some(running) = running else {
        let over = thread.last_turn.as_ref().is_some_and(|last| Some(last.id) == turn);
        return if over { Ok((Some(id), None)) } else { Err(Refused::NotRunning) };
    };
    if running.cancel_requested_at.is_none() {
        draft.push(id, EventBody::CancelRequested { turn: running.id });
        withdraw_all(draft, id, WithdrawnWhy::TurnEnded);
    }
    Ok((Some(id), None))
}

/// Withdraws every waiting permission.
pub(super) fn withdraw_all(draft: &mut Draft<'_>, id: ThreadId, why: WithdrawnWhy) {
    let Ok(thread) = draft.present(id) else { return };
    let waiting: Vec<_> = thread.permissions.iter().map(|held| (held.item, held.request)).collect();
    for (item, request) in waiting {
        draft.push(id, EventBody::PermissionWithdrawn { item, request, why });
    }
}

/// Ends the running turn, if one runs. What waits does not go on by this alone.
pub(super) fn end_turn(draft: &mut Draft<'_>, id: ThreadId, outcome: Outcome) {
    let Ok(thread) = draft.present(id) else { return };
    let Some(running) = thread.turn else { return };
    let asked = running.cancel_requested_at.is_some();
    let outcome = if asked && matches!(outcome, Outcome::Completed { .. }) {
        Outcome::Cancelled { obeyed: true }
    } else if asked && matches!(outcome, Outcome::Failed { .. }) {
        Outcome::Cancelled { obeyed: false }
    } else {
        outcome
    };
    withdraw_all(draft, id, WithdrawnWhy::TurnEnded);
    draft.push(id, EventBody::TurnEnded { turn: running.id, outcome });
}
