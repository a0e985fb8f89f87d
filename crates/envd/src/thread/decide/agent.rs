//! What agents report, and what they are answered.

use wakeful_wire::rpc::{
    AnsweredBy, By, EventBody, NoticeLevel, Outcome, PermissionOption, PermissionOptionKind,
    Remember, RequestId, Role, ThreadId, WithdrawnWhy,
};

use super::{About, Fresh, draft::Draft, queue, text};
use crate::thread::{
    command::{AgentUpdate, Append, Refused},
    limits::{
        APPEND_MAX, CHUNK_MAX, NAME_MAX, OPTIONS_MAX, PART_MAX, PERMISSIONS_MAX, TERMINAL_MAX,
        TITLE_MAX,
    },
    state::remembered_key,
};

/// Takes in what an agent reports.
pub(super) fn append(
    draft: &mut Draft<'_>,
    append: &Append,
    fresh: Fresh,
) -> Result<About, Refused> {
    if append.updates.len() > APPEND_MAX {
        return Err(Refused::TooMany("updates"));
    }
    let id = append.thread;
    let thread = draft.present(id)?;
    if append.turn.is_some() && append.turn != thread.turn.map(|turn| turn.id) {
        return Err(Refused::Stale);
    }
    for update in &append.updates {
        take(draft, id, append.turn.is_some(), update)?;
    }
    queue_goes_on(draft, append, fresh);
    Ok((Some(id), None))
}

/// Starts the next turn if this append ended one.
fn queue_goes_on(draft: &mut Draft<'_>, append: &Append, fresh: Fresh) {
    let ended = |update: &AgentUpdate| {
        matches!(update, AgentUpdate::TurnEnded(_) | AgentUpdate::AgentEnded { .. })
    };
    if append.updates.iter().any(ended) {
        queue::start_next(draft, append.thread, fresh);
    }
}

fn take(
    draft: &mut Draft<'_>,
    id: ThreadId,
    in_turn: bool,
    update: &AgentUpdate,
) -> Result<(), Refused> {
    match update {
        AgentUpdate::Text { role, message, text } => {
            if !in_turn {
                queue::revive(draft, id, By::Agent);
            }
            take_text(draft, id, *role, message.as_deref(), text);
        }
        AgentUpdate::Tool(patch) => take_tool(draft, id, patch),
        AgentUpdate::Terminal { terminal, text, exit } => {
            let body = |item, text: &str, exit| EventBody::Terminal {
                item,
                terminal: text::cut(terminal, NAME_MAX),
                text: text.to_owned(),
                exit,
            };
            take_terminal(draft, id, terminal, text, *exit, body);
        }
        AgentUpdate::Plan(entries) => {
            let item = draft.numbering(id).plan();
            draft.push(id, EventBody::Plan { item, entries: text::plan(entries) });
        }
        AgentUpdate::Notice { level, text } => {
            let item = draft.numbering(id).next();
            let text = text::cut(text, PART_MAX);
            draft.push(id, EventBody::Notice { item, level: *level, text });
        }
        AgentUpdate::Permission { request, tool, title, options, key } => {
            if !in_turn {
                queue::revive(draft, id, By::Agent);
            }
            if let Some(patch) = tool {
                take_tool(draft, id, patch);
            }
            let tool = tool.as_ref().map(|patch| text::cut(&patch.id, NAME_MAX));
            ask(draft, id, *request, tool, title, options, key.as_deref())?;
        }
        AgentUpdate::Withdrawn { request, why } => withdraw(draft, id, *request, *why),
        AgentUpdate::Title(title) => {
            let title = text::cut(title.trim(), TITLE_MAX);
            let thread = draft.present(id)?;
            let theirs = thread.titled_by == Some(By::Hand);
            if !theirs && !title.is_empty() && thread.title.as_ref() != Some(&title) {
                draft.push(id, EventBody::Titled { title, by: By::Agent });
            }
        }
        AgentUpdate::Mode(mode) => {
            let mode = text::cut(mode, NAME_MAX);
            let thread = draft.present(id)?;
            if thread.mode.as_ref() != Some(&mode) || thread.mode_wanted.is_some() {
                draft.push(id, EventBody::ModeChanged { mode });
            }
        }
        AgentUpdate::Session(session) => {
            let session = text::cut(session, NAME_MAX);
            let thread = draft.present(id)?;
            if thread.session.as_ref().is_none_or(|held| held.id != session || !held.live) {
                draft.push(id, EventBody::SessionBound { session });
            }
        }
        AgentUpdate::Usage(usage) => {
            if draft.present(id)?.usage.as_ref() != Some(usage) {
                draft.push(id, EventBody::UsageReported { usage: usage.clone() });
            }
        }
        AgentUpdate::TurnEnded(outcome) => {
            if !in_turn {
                return Err(Refused::NotRunning);
            }
            queue::end_turn(draft, id, outcome.clone());
        }
        AgentUpdate::AgentEnded { why } => {
            let why = text::cut(why, PART_MAX);
            queue::withdraw_all(draft, id, WithdrawnWhy::AgentEnded);
            queue::end_turn(draft, id, Outcome::Failed { message: why.clone() });
            draft.push(id, EventBody::AgentEnded { why });
        }
    }
    Ok(())
}

fn take_text(draft: &mut Draft<'_>, id: ThreadId, role: Role, message: Option<&str>, text: &str) {
    let message = message.map(|message| text::cut(message, NAME_MAX));
    for piece in text::pieces(text, CHUNK_MAX) {
        let numbering = draft.numbering(id);
        let item = numbering.text(role, message.as_deref(), piece.len());
        let opens = item == numbering.next();
        draft.push(
            id,
            EventBody::Text {
                item,
                role,
                text: piece.to_owned(),
                message: message.clone().filter(|_| opens),
            },
        );
    }
}

fn take_tool(draft: &mut Draft<'_>, id: ThreadId, patch: &wakeful_wire::rpc::ToolPatch) {
    let tool = text::tool(patch);
    let item = draft.numbering(id).tool(&tool.id);
    draft.push(id, EventBody::Tool { item, tool });
}

/// Output over the bound is left out, said so once; the exit is always kept.
fn take_terminal(
    draft: &mut Draft<'_>,
    id: ThreadId,
    terminal: &str,
    output: &str,
    exit: Option<wakeful_wire::rpc::Exit>,
    body: impl Fn(u32, &str, Option<wakeful_wire::rpc::Exit>) -> EventBody,
) {
    let terminal = text::cut(terminal, NAME_MAX);
    for piece in text::pieces(output, CHUNK_MAX) {
        let (item, had) = draft.numbering(id).terminal(&terminal);
        if had >= TERMINAL_MAX {
            break;
        }
        draft.push(id, body(item, piece, None));
        let (_, has) = draft.numbering(id).terminal(&terminal);
        if has >= TERMINAL_MAX {
            let item = draft.numbering(id).next();
            let text = "further output of this terminal is left out".to_owned();
            draft.push(id, EventBody::Notice { item, level: NoticeLevel::Warning, text });
        }
    }
    if exit.is_some() || output.is_empty() {
        let (item, _) = draft.numbering(id).terminal(&terminal);
        draft.push(id, body(item, "", exit));
    }
}

fn ask(
    draft: &mut Draft<'_>,
    id: ThreadId,
    request: RequestId,
    tool: Option<String>,
    title: &str,
    options: &[PermissionOption],
    key: Option<&str>,
) -> Result<(), Refused> {
    let thread = draft.present(id)?;
    if thread.permissions.iter().any(|held| held.request == request) {
        return Ok(());
    }
    if thread.permissions.len() >= PERMISSIONS_MAX {
        return Err(Refused::TooMany("waiting permissions"));
    }
    if options.is_empty() {
        return Err(Refused::Invalid("list of options"));
    }
    let shown = |option: &PermissionOption| PermissionOption {
        id: text::cut(&option.id, NAME_MAX),
        name: text::cut(&option.name, TITLE_MAX),
        kind: option.kind,
    };
    let options: Vec<_> = options.iter().take(OPTIONS_MAX).map(shown).collect();
    // A key that had to be cut could stand for two questions: such a one is not remembered.
    let key = key.filter(|key| key.len() <= TITLE_MAX && !key.contains('\0')).map(str::to_owned);
    let allow = key.as_deref().and_then(|key| remembered(draft, id, key));
    let chosen = allow.and_then(|allow| choose(&options, allow)).map(|option| option.id.clone());
    let item = draft.numbering(id).next();
    draft.push(
        id,
        EventBody::PermissionRequested {
            item,
            request,
            tool,
            title: text::cut(title, PART_MAX),
            options,
            key,
        },
    );
    if let Some(option) = chosen {
        let by = AnsweredBy::Remembered;
        let body =
            EventBody::PermissionAnswered { item, request, option, by, remember: None, allow };
        draft.push(id, body);
    }
    Ok(())
}

/// What was answered before: in this thread, else in its project.
fn remembered(draft: &Draft<'_>, id: ThreadId, key: &str) -> Option<bool> {
    let thread = draft.present(id).ok()?;
    let here = thread.remembered.iter().find(|(held, _)| held == key).map(|(_, allow)| *allow);
    here.or_else(|| {
        let held = remembered_key(&thread.project, &thread.agent, key);
        draft.state.remembered.get(&held).copied()
    })
}

/// The option that says it, for this time if there is one: the host keeps its own memory, so the
/// agent need not.
fn choose(options: &[PermissionOption], allow: bool) -> Option<&PermissionOption> {
    let kinds = if allow {
        [PermissionOptionKind::AllowOnce, PermissionOptionKind::AllowAlways]
    } else {
        [PermissionOptionKind::RejectOnce, PermissionOptionKind::RejectAlways]
    };
    kinds.into_iter().find_map(|kind| options.iter().find(|option| option.kind == kind))
}

fn withdraw(draft: &mut Draft<'_>, id: ThreadId, request: RequestId, why: WithdrawnWhy) {
    let Ok(thread) = draft.present(id) else { return };
    let held = thread.permissions.iter().find(|held| held.request == request);
    if let Some(item) = held.map(|held| held.item) {
        draft.push(id, EventBody::PermissionWithdrawn { item, request, why });
    }
}

/// A person answers. An answer that is remembered also answers what waits in this thread under the
/// same key.
pub(super) fn answer(
    draft: &mut Draft<'_>,
    id: ThreadId,
    request: RequestId,
    option: &str,
    remember: Option<Remember>,
) -> Result<About, Refused> {
    let thread = draft.present(id)?;
    let pending = thread.permissions.iter().find(|held| held.request == request);
    let pending = pending.ok_or(Refused::NoSuchRequest)?.clone();
    let chosen = pending.options.iter().find(|held| held.id == option);
    let allow = chosen.ok_or(Refused::Invalid("option"))?.kind.allows();
    let remember = remember
        .filter(|_| pending.key.is_some() && allow.is_some())
        .filter(|remember| *remember != Remember::Other);
    draft.push(
        id,
        EventBody::PermissionAnswered {
            item: pending.item,
            request,
            option: option.to_owned(),
            by: AnsweredBy::Hand,
            remember,
            allow,
        },
    );
    if let (Some(Remember::Project), Some(key), Some(allow)) =
        (remember, pending.key.clone(), allow)
    {
        let thread = draft.present(id)?;
        let (project, agent) = (thread.project.clone(), thread.agent.clone());
        draft.push_host(EventBody::AnswerRemembered { project, agent, key, allow });
    }
    if remember.is_some()
        && let Some(allow) = allow
    {
        answer_alike(draft, id, pending.key.as_deref(), allow);
    }
    Ok((Some(id), None))
}

fn answer_alike(draft: &mut Draft<'_>, id: ThreadId, key: Option<&str>, allow: bool) {
    let Ok(thread) = draft.present(id) else { return };
    let alike: Vec<_> = thread
        .permissions
        .iter()
        .filter(|held| held.key.as_deref() == key)
        .filter_map(|held| {
            let option = choose(&held.options, allow)?.id.clone();
            Some((held.item, held.request, option))
        })
        .collect();
    for (item, request, option) in alike {
        let by = AnsweredBy::Remembered;
        let allow = Some(allow);
        let body =
            EventBody::PermissionAnswered { item, request, option, by, remember: None, allow };
        draft.push(id, body);
    }
}
