//! From the protocol's messages to what a thread keeps.

use agent_client_protocol::{
    schema::MaybeUndefined,
    v1::schema::{self as acp, ContentBlock, SessionUpdate, ToolCallContent},
};
use wakeful_wire::rpc::{
    Location, NoticeLevel, PermissionOption, PermissionOptionKind, PlanEntry, PlanPriority,
    PlanStatus, Role, StopReason, ToolContent, ToolKind, ToolPatch, ToolStatus, Usage,
};

use crate::{
    agent::limits::{NAME, PLAN_LINES, cut_end},
    thread::{command::AgentUpdate, limits::NAME_MAX},
};

/// What an update means for the thread; nothing for what a thread does not show.
pub(super) fn update(update: SessionUpdate) -> Option<AgentUpdate> {
    match update {
        SessionUpdate::UserMessageChunk(chunk) => text(Role::User, chunk),
        SessionUpdate::AgentMessageChunk(chunk) => text(Role::Agent, chunk),
        SessionUpdate::AgentThoughtChunk(chunk) => text(Role::Thought, chunk),
        SessionUpdate::ToolCall(call) => Some(AgentUpdate::Tool(tool_call(call))),
        SessionUpdate::ToolCallUpdate(change) => Some(AgentUpdate::Tool(tool_change(change))),
        SessionUpdate::Plan(plan) => {
            Some(AgentUpdate::Plan(plan.entries.into_iter().take(PLAN_LINES).map(line).collect()))
        }
        SessionUpdate::CurrentModeUpdate(mode) => {
            Some(AgentUpdate::Mode(cut_end(mode.current_mode_id.to_string(), NAME)))
        }
        SessionUpdate::SessionInfoUpdate(info) => match info.title {
            MaybeUndefined::Value(title) if !title.trim().is_empty() => {
                Some(AgentUpdate::Title(title))
            }
            MaybeUndefined::Value(_) | MaybeUndefined::Null | MaybeUndefined::Undefined => None,
        },
        SessionUpdate::UsageUpdate(usage) => Some(AgentUpdate::Usage(context(&usage))),
        SessionUpdate::Notice(notice) => Some(AgentUpdate::Notice {
            level: NoticeLevel::Info,
            text: match notice.description {
                Some(more) => format!("{}: {more}", notice.title),
                None => notice.title,
            },
        }),
        SessionUpdate::AvailableCommandsUpdate(_)
        | SessionUpdate::ConfigOptionUpdate(_)
        | SessionUpdate::CompactionUpdate(_)
        | SessionUpdate::CompactionSummaryChunk(_)
        | _ => None,
    }
}

fn text(role: Role, chunk: acp::ContentChunk) -> Option<AgentUpdate> {
    let text = plain(chunk.content);
    let message = chunk.message_id.map(|id| cut_end(id.to_string(), 128));
    (!text.is_empty()).then_some(AgentUpdate::Text { role, message, text })
}

/// A content block as text: what a thread cannot show is named.
fn plain(block: ContentBlock) -> String {
    match block {
        ContentBlock::Text(text) => text.text,
        ContentBlock::ResourceLink(link) => format!("[{}]({})", link.name, link.uri),
        ContentBlock::Resource(resource) => match resource.resource {
            acp::EmbeddedResourceResource::TextResourceContents(text) => text.text,
            acp::EmbeddedResourceResource::BlobResourceContents(blob) => {
                format!("[{}]", blob.uri)
            }
            _ => String::new(),
        },
        ContentBlock::Image(_) => "[an image, which is not shown]".to_owned(),
        ContentBlock::Audio(_) => "[a sound, which is not played]".to_owned(),
        _ => String::new(),
    }
}

fn tool_call(call: acp::ToolCall) -> ToolPatch {
    ToolPatch {
        id: call.tool_call_id.to_string(),
        title: Some(call.title),
        kind: Some(kind(call.kind)),
        status: Some(status(call.status)),
        content: Some(call.content.into_iter().map(content).collect()),
        locations: Some(call.locations.into_iter().map(location).collect()),
        raw_input: call.raw_input,
        raw_output: call.raw_output,
    }
}

/// What changed in a tool call; given fields replace.
pub(super) fn tool_change(change: acp::ToolCallUpdate) -> ToolPatch {
    let fields = change.fields;
    ToolPatch {
        id: change.tool_call_id.to_string(),
        title: fields.title,
        kind: fields.kind.map(kind),
        status: fields.status.map(status),
        content: fields.content.map(|all| all.into_iter().map(content).collect()),
        locations: fields.locations.map(|all| all.into_iter().map(location).collect()),
        raw_input: fields.raw_input,
        raw_output: fields.raw_output,
    }
}

const fn kind(kind: acp::ToolKind) -> ToolKind {
    match kind {
        acp::ToolKind::Read => ToolKind::Read,
        acp::ToolKind::Edit => ToolKind::Edit,
        acp::ToolKind::Delete => ToolKind::Delete,
        acp::ToolKind::Move => ToolKind::Move,
        acp::ToolKind::Search => ToolKind::Search,
        acp::ToolKind::Execute => ToolKind::Execute,
        acp::ToolKind::Think => ToolKind::Think,
        acp::ToolKind::Fetch => ToolKind::Fetch,
        acp::ToolKind::SwitchMode => ToolKind::SwitchMode,
        acp::ToolKind::Other | _ => ToolKind::Other,
    }
}

const fn status(status: acp::ToolCallStatus) -> ToolStatus {
    match status {
        acp::ToolCallStatus::Pending => ToolStatus::Pending,
        acp::ToolCallStatus::InProgress => ToolStatus::InProgress,
        acp::ToolCallStatus::Completed => ToolStatus::Completed,
        acp::ToolCallStatus::Failed => ToolStatus::Failed,
        _ => ToolStatus::Other,
    }
}

fn content(content: ToolCallContent) -> ToolContent {
    match content {
        ToolCallContent::Content(content) => ToolContent::Text { text: plain(content.content) },
        ToolCallContent::Diff(diff) => ToolContent::Diff {
            path: diff.path.to_string_lossy().into_owned(),
            old: diff.old_text,
            new: diff.new_text,
        },
        ToolCallContent::Terminal(terminal) => {
            ToolContent::Terminal { terminal: terminal.terminal_id.to_string() }
        }
        _ => ToolContent::Other,
    }
}

fn location(location: acp::ToolCallLocation) -> Location {
    Location { path: location.path.to_string_lossy().into_owned(), line: location.line }
}

fn line(entry: acp::PlanEntry) -> PlanEntry {
    PlanEntry {
        text: cut_end(entry.content, NAME),
        priority: match entry.priority {
            acp::PlanEntryPriority::High => PlanPriority::High,
            acp::PlanEntryPriority::Medium => PlanPriority::Medium,
            acp::PlanEntryPriority::Low => PlanPriority::Low,
            _ => PlanPriority::Other,
        },
        status: match entry.status {
            acp::PlanEntryStatus::Pending => PlanStatus::Pending,
            acp::PlanEntryStatus::InProgress => PlanStatus::InProgress,
            acp::PlanEntryStatus::Completed => PlanStatus::Completed,
            _ => PlanStatus::Other,
        },
    }
}

fn context(usage: &acp::UsageUpdate) -> Usage {
    let cost = usage.cost.as_ref().filter(|cost| cost.amount.is_finite() && cost.amount >= 0.0);
    Usage {
        context_used: Some(usage.used),
        context_size: Some(usage.size),
        // `as` saturates, which is what a cost beyond all numbers is.
        cost_micros: cost.map(|cost| (cost.amount * 1e6).round() as u64),
        currency: cost.map(|cost| cut_end(cost.currency.clone(), 16)),
        ..Usage::default()
    }
}

/// Why a turn ended, by the agent's word. Nothing: it says that it was cancelled.
pub(super) fn stop_reason(reason: &str) -> Option<StopReason> {
    match reason {
        "cancelled" => None,
        "end_turn" => Some(StopReason::EndTurn),
        "max_tokens" => Some(StopReason::MaxTokens),
        "max_turn_requests" => Some(StopReason::MaxTurnRequests),
        "refusal" => Some(StopReason::Refusal),
        _ => Some(StopReason::Other),
    }
}

/// The answers that an agent offers; one whose meaning is unknown is shown all the same.
pub(super) fn options(options: &serde_json::Value) -> Vec<PermissionOption> {
    let text = |option: &serde_json::Value, name: &str| {
        option.get(name).and_then(serde_json::Value::as_str).map(str::to_owned)
    };
    let read = |option: &serde_json::Value| {
        let id = text(option, "optionId")?;
        Some(PermissionOption {
            name: cut_end(text(option, "name").unwrap_or_else(|| id.clone()), NAME),
            id,
            kind: match text(option, "kind").as_deref() {
                Some("allow_once") => PermissionOptionKind::AllowOnce,
                Some("allow_always") => PermissionOptionKind::AllowAlways,
                Some("reject_once") => PermissionOptionKind::RejectOnce,
                Some("reject_always") => PermissionOptionKind::RejectAlways,
                _ => PermissionOptionKind::Other,
            },
        })
    };
    // An id that would be cut could not be chosen.
    let read = |option| read(option).filter(|read| read.id.len() <= NAME_MAX);
    options.as_array().map(|all| all.iter().filter_map(read).collect()).unwrap_or_default()
}

/// What a kind of tool is called where an answer for it is remembered.
pub(super) const fn key(kind: ToolKind) -> Option<&'static str> {
    match kind {
        ToolKind::Read => Some("read"),
        ToolKind::Edit => Some("edit"),
        ToolKind::Delete => Some("delete"),
        ToolKind::Move => Some("move"),
        ToolKind::Search => Some("search"),
        ToolKind::Execute => Some("execute"),
        ToolKind::Think => Some("think"),
        ToolKind::Fetch => Some("fetch"),
        ToolKind::SwitchMode => Some("switch_mode"),
        ToolKind::Other => None,
    }
}
