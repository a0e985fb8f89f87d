//! What a command makes happen: a pure function of the state, the time and fresh ids.
//!
//! The rules, in one place:
//!
//! - **Once.** A client id that was ever taken is answered with the event that took it. A state
//!   that is already as wanted is answered without an event.
//! - **One turn at a time** in a thread. A prompt that comes while one runs waits; prompts start in
//!   the order in which they were taken. The end of a completed turn and the start of the next are
//!   one decision, so no crash can part them.
//! - **The queue waits for a person** after a turn that was cancelled, failed or was cut: what
//!   waits was written in the belief that the work before it would be done. Releasing it, or
//!   sending another prompt, lets it go on, in order.
//! - **Nothing runs twice by itself.** A turn that a crash cut is marked, never sent again.
//! - **Writing to a thread brings it back** from the archive, from being snoozed and from being
//!   settled: a prompt that was on its way is never lost to a list being tidied.
//! - **Cancelled is our fact.** Once a person has asked for the end of a turn, an end that the agent
//!   calls complete counts as cancelled.

mod agent;
mod draft;
mod lists;
mod queue;
mod start;
mod text;

use std::time::Duration;

use wakeful_wire::{
    Timestamp,
    rpc::{ClientId, Event, EventBody, Seq, ThreadId, TurnId},
};

use self::draft::Draft;
use super::{
    command::{Command, Create, Place, Refused},
    limits::{DEPTH_MAX, NAME_MAX, PROJECT_MAX, THREADS_MAX, TITLE_MAX},
    state::State,
};

/// Ids that a decision may use; drawn anew for each.
#[derive(Debug, Clone, Copy)]
pub struct Fresh {
    /// For a thread.
    pub thread: ThreadId,
    /// For a turn.
    pub turn: TurnId,
}

/// What the host itself decides by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Policy {
    /// A top-level thread in which nobody did anything for so long, and in whose family nothing
    /// happens, is settled by rule. Absent: never.
    pub settle_after: Option<Duration>,
}

impl Default for Policy {
    fn default() -> Self {
        Self { settle_after: Some(Duration::from_secs(7 * 24 * 3600)) }
    }
}

/// What a command makes happen.
#[derive(Debug, Clone, PartialEq)]
pub struct Decision {
    /// The events, numbered from the state's head on, to be written together or not at all.
    pub events: Vec<Event>,
    /// The thread it is about.
    pub thread: Option<ThreadId>,
    /// Where `events` is empty: the event that already did it, if one is known.
    pub already: Option<Seq>,
}

/// Decides a command. The state is not changed; the caller writes the events and applies them.
///
/// # Errors
/// Why the command is not taken. Nothing happens then.
pub fn decide(
    state: &State,
    command: &Command,
    policy: Policy,
    now: Timestamp,
    fresh: Fresh,
) -> Result<Decision, Refused> {
    let mut draft = Draft::new(state, now);
    let (thread, already) = match command {
        Command::Create(create) => create_thread(&mut draft, create, fresh)?,
        Command::Prompt { thread, prompt } => queue::prompt(&mut draft, *thread, prompt, fresh)?,
        Command::Unqueue { thread, client } => queue::unqueue(&mut draft, *thread, *client)?,
        Command::Release { thread } => queue::release(&mut draft, *thread, fresh)?,
        Command::Cancel { thread, turn } => queue::cancel(&mut draft, *thread, *turn)?,
        Command::Answer { thread, request, option, remember } => {
            agent::answer(&mut draft, *thread, *request, option, *remember)?
        }
        Command::Forget { place, key } => forget(&mut draft, place, key)?,
        Command::SetMode { thread, mode } => {
            if mode.is_empty() || mode.len() > NAME_MAX {
                return Err(Refused::Invalid("mode"));
            }
            let held = draft.present(*thread)?;
            let wanted = held.mode_wanted.as_ref().or(held.mode.as_ref());
            if wanted != Some(mode) {
                draft.push(*thread, EventBody::ModeRequested { mode: mode.clone() });
            }
            (Some(*thread), None)
        }
        Command::Rename { thread, title } => lists::rename(&mut draft, *thread, title)?,
        Command::Pin { thread, pinned } => lists::pin(&mut draft, *thread, *pinned)?,
        Command::Snooze { thread, until } => lists::snooze(&mut draft, *thread, *until)?,
        Command::Settle { thread, settled } => lists::settle(&mut draft, *thread, *settled)?,
        Command::Archive { thread } => lists::archive(&mut draft, *thread)?,
        Command::Restore { thread } => lists::restore(&mut draft, *thread)?,
        Command::Delete { thread } => lists::delete(&mut draft, *thread)?,
        Command::Agent(append) => agent::append(&mut draft, append, fresh)?,
        Command::Start { epoch } => start::start(&mut draft, *epoch),
        Command::Tick => lists::tick(&mut draft, policy),
    };
    Ok(Decision { events: draft.into_events(), thread, already })
}

/// The thread that a decision is about, and the event that already did it.
type About = (Option<ThreadId>, Option<Seq>);

fn create_thread(draft: &mut Draft<'_>, create: &Create, fresh: Fresh) -> Result<About, Refused> {
    if let Some(prompt) = &create.prompt {
        if let Some(known) = known(draft.state, prompt.client) {
            return Ok(known);
        }
        queue::check(prompt)?;
    }
    let id = create.thread.unwrap_or(fresh.thread);
    match draft.state.thread(id) {
        Some(held) if held.deleted && !create.anew => return Err(Refused::Deleted),
        Some(held) if !held.deleted => {
            return match &create.prompt {
                Some(prompt) => queue::prompt(draft, id, prompt, fresh),
                None => Ok((Some(id), Some(held.created))),
            };
        }
        Some(_) | None => {}
    }
    check_create(create)?;
    if draft.state.threads.len() >= THREADS_MAX {
        return Err(Refused::TooMany("threads"));
    }
    let root = match create.parent {
        None => id,
        Some(parent) => {
            let above = draft.present(parent)?.root;
            if parent == id || depth(draft.state, parent) + 1 >= DEPTH_MAX {
                return Err(Refused::TooMany("levels of subagents"));
            }
            above
        }
    };
    if let Some(parent) = create.parent
        && !draft.present(parent)?.is_active()
    {
        // An active thread never hangs below one that is out of the list.
        lists::restore_family(draft, parent);
    }
    draft.push(
        id,
        EventBody::ThreadCreated {
            parent: create.parent,
            root,
            project: create.project.clone(),
            agent: create.agent.clone(),
            title: create.title.clone().filter(|title| !title.is_empty()),
        },
    );
    if let Some(prompt) = &create.prompt {
        return queue::prompt(draft, id, prompt, fresh);
    }
    Ok((Some(id), None))
}

fn check_create(create: &Create) -> Result<(), Refused> {
    if create.agent.is_empty() || create.agent.len() > NAME_MAX || create.agent.contains('\0') {
        return Err(Refused::Invalid("agent"));
    }
    let project = &create.project;
    let inside = project.is_empty()
        || project.split('/').all(|part| !part.is_empty() && part != "." && part != "..");
    if project.len() > PROJECT_MAX || project.contains('\0') || !inside {
        return Err(Refused::Invalid("project"));
    }
    if create.title.as_ref().is_some_and(|title| title.len() > TITLE_MAX) {
        return Err(Refused::TooLarge("title"));
    }
    Ok(())
}

/// How many threads are above this one.
fn depth(state: &State, id: ThreadId) -> usize {
    let above = std::iter::successors(Some(id), |id| state.thread(*id)?.parent);
    above.take(DEPTH_MAX + 1).count() - 1
}

/// What is answered for a prompt that was taken before.
fn known(state: &State, client: ClientId) -> Option<About> {
    state.prompt(client).map(|(thread, seq)| (Some(thread), Some(seq)))
}

fn forget(draft: &mut Draft<'_>, place: &Place, key: &str) -> Result<About, Refused> {
    match place {
        Place::Thread(thread) => {
            let held = draft.present(*thread)?;
            if held.remembered.iter().any(|(held, _)| held == key) {
                let body =
                    EventBody::AnswerForgotten { project: None, agent: None, key: key.to_owned() };
                draft.push(*thread, body);
            }
            Ok((Some(*thread), None))
        }
        Place::Project { project, agent } => {
            let held = super::state::remembered_key(project, agent, key);
            if draft.state.remembered.contains_key(&held) {
                draft.push_host(EventBody::AnswerForgotten {
                    project: Some(project.clone()),
                    agent: Some(agent.clone()),
                    key: key.to_owned(),
                });
            }
            Ok((None, None))
        }
    }
}
