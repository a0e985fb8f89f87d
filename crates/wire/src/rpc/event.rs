//! One entry of a host's log.

use serde::{Deserialize, Deserializer, Serialize};

use super::{
    AnsweredBy, By, ClientId, Epoch, Exit, NoticeLevel, Outcome, PermissionOption, PlanEntry,
    Prompt, Remember, RequestId, Role, Seq, ThreadId, ToolPatch, TurnId, Usage, WithdrawnWhy,
};
use crate::Timestamp;

/// One entry of a host's log.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Event {
    /// Its place.
    pub seq: Seq,
    /// When it was decided, by the host's clock. Never the order: that is `seq`.
    pub at: Timestamp,
    /// Its thread; absent for what concerns the host.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub thread: Option<ThreadId>,
    /// What happened.
    pub body: EventBody,
}

macro_rules! bodies {
    ($($(#[$doc:meta])* $name:ident = $kind:literal { $($(#[$field_doc:meta])* $field:ident: $type:ty,)* })*) => {
        /// What happened. The module says how older and newer peers read it.
        #[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
        #[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
        #[serde(tag = "kind")]
        pub enum EventBody {
            $($(#[$doc])* #[serde(rename = $kind)] $name { $($(#[$field_doc])* $field: $type,)* },)*
            /// A kind that this release does not know, kept whole.
            #[serde(untagged)]
            Unknown(UnknownBody),
        }

        impl EventBody {
            /// Every kind that this release knows.
            pub const KINDS: &'static [&'static str] = &[$($kind,)*];

            /// The stable text of its kind; empty if it has none.
            #[must_use]
            pub fn kind(&self) -> &str {
                match self {
                    $(Self::$name { .. } => $kind,)*
                    Self::Unknown(body) => body.kind(),
                }
            }
        }
    };
}

bodies! {
    /// The host started. Belongs to no thread.
    HostStarted = "host_started" {
        /// This start.
        epoch: Epoch,
    }
    /// An answer is remembered for every thread of a project and an agent. Belongs to no thread.
    AnswerRemembered = "answer_remembered" {
        /// The project.
        project: String,
        /// The agent.
        agent: String,
        /// What was asked.
        key: String,
        /// Whether it allows.
        allow: bool,
    }
    /// A remembered answer was forgotten. Belongs to no thread where it held for a project.
    AnswerForgotten = "answer_forgotten" {
        /// The project; absent: the thread's own.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        project: Option<String>,
        /// The agent; absent: the thread's own.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        agent: Option<String>,
        /// What was asked.
        key: String,
    }
    /// The thread came to be, or an id that was deleted came to be anew.
    ThreadCreated = "thread_created" {
        /// The thread that it is a subagent of.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        parent: Option<ThreadId>,
        /// The top-level thread of its family; itself where it has no parent.
        root: ThreadId,
        /// The directory of the workspace that it works in; empty: the workspace itself.
        project: String,
        /// The agent's name in the template.
        agent: String,
        /// Its title, if it was given one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        title: Option<String>,
    }
    /// It has another title.
    Titled = "titled" {
        /// The title.
        title: String,
        /// Whose wish it was. A title by hand is not replaced by an agent's.
        #[serde(default)]
        by: By,
    }
    /// Pinned.
    Pinned = "pinned" {}
    /// No longer pinned.
    Unpinned = "unpinned" {}
    /// Put aside until a moment.
    Snoozed = "snoozed" {
        /// When it comes back.
        until: Timestamp,
    }
    /// Back from being snoozed.
    Unsnoozed = "unsnoozed" {
        /// By hand, or because the moment came or somebody wrote.
        #[serde(default)]
        by: By,
    }
    /// Out of the shell, kept whole.
    Archived = "archived" {}
    /// Back from the archive.
    Restored = "restored" {}
    /// Gone. Its earlier events are removed from the log in time.
    Deleted = "deleted" {}
    /// Put aside as done.
    Settled = "settled" {
        /// By hand or by rule.
        #[serde(default)]
        by: By,
    }
    /// No longer put aside as done.
    Unsettled = "unsettled" {
        /// By hand, or because somebody wrote.
        #[serde(default)]
        by: By,
    }
    /// A prompt was taken.
    PromptQueued = "prompt_queued" {
        /// The prompt.
        prompt: Prompt,
    }
    /// A prompt was taken back before its turn began.
    PromptRemoved = "prompt_removed" {
        /// The prompt.
        client: ClientId,
    }
    /// What waits may go on, after a turn that did not complete.
    QueueReleased = "queue_released" {}
    /// A turn began, and with it a segment.
    TurnStarted = "turn_started" {
        /// The turn.
        turn: TurnId,
        /// The segment.
        segment: u32,
        /// The prompt that it answers, which leaves the queue; item 0 of the segment.
        prompt: Prompt,
    }
    /// A person wants the turn to end.
    CancelRequested = "cancel_requested" {
        /// The turn.
        turn: TurnId,
    }
    /// A turn ended.
    TurnEnded = "turn_ended" {
        /// The turn.
        turn: TurnId,
        /// How.
        outcome: Outcome,
    }
    /// A piece of text, added to its item.
    Text = "text" {
        /// The item.
        item: u32,
        /// Whose words.
        role: Role,
        /// The text.
        text: String,
        /// The agent's id of the message, in the event that opens the item.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        message: Option<String>,
    }
    /// A tool call began or changed.
    Tool = "tool" {
        /// The item.
        item: u32,
        /// What is known.
        tool: ToolPatch,
    }
    /// Output of a terminal, added to its item.
    Terminal = "terminal" {
        /// The item.
        item: u32,
        /// The terminal's id.
        terminal: String,
        /// Output, as text; bytes that are no text have been replaced.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        text: String,
        /// Present when its command has ended.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        exit: Option<Exit>,
    }
    /// The agent's plan, whole; it replaces the one before.
    Plan = "plan" {
        /// The item.
        item: u32,
        /// Its lines.
        entries: Vec<PlanEntry>,
    }
    /// Something to know about this thread, said by the host or the agent.
    Notice = "notice" {
        /// The item.
        item: u32,
        /// How serious.
        #[serde(default)]
        level: NoticeLevel,
        /// The text.
        text: String,
    }
    /// The agent asks for a permission.
    PermissionRequested = "permission_requested" {
        /// The item.
        item: u32,
        /// The request.
        request: RequestId,
        /// The tool call that it is for, by the agent's id.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        tool: Option<String>,
        /// For people.
        title: String,
        /// The answers that the agent offers.
        options: Vec<PermissionOption>,
        /// Requests of one key can share a remembered answer; absent: never remembered.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        key: Option<String>,
    }
    /// The permission was answered.
    PermissionAnswered = "permission_answered" {
        /// The item.
        item: u32,
        /// The request.
        request: RequestId,
        /// The option that was chosen, by the agent's id.
        option: String,
        /// Who chose.
        #[serde(default)]
        by: AnsweredBy,
        /// What is remembered: how far, and whether it allows.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        remember: Option<Remember>,
        /// Whether it allows; absent where that cannot be told.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        allow: Option<bool>,
    }
    /// The permission is no longer asked for.
    PermissionWithdrawn = "permission_withdrawn" {
        /// The item.
        item: u32,
        /// The request.
        request: RequestId,
        /// Why.
        why: WithdrawnWhy,
    }
    /// A person wants the agent in another mode.
    ModeRequested = "mode_requested" {
        /// The mode, by the agent's id.
        mode: String,
    }
    /// The agent is in this mode.
    ModeChanged = "mode_changed" {
        /// The mode, by the agent's id.
        mode: String,
    }
    /// The agent works in this session of its own from now on.
    SessionBound = "session_bound" {
        /// The agent's id of it.
        session: String,
    }
    /// The agent's process for this thread ended. What it had open is interrupted.
    AgentEnded = "agent_ended" {
        /// Why, for people.
        why: String,
    }
    /// What the agent has used.
    UsageReported = "usage_reported" {
        /// The figures.
        usage: Usage,
    }
}

impl EventBody {
    /// The item of the newest segment that it opens or changes.
    #[must_use]
    pub const fn item(&self) -> Option<u32> {
        match self {
            Self::Text { item, .. }
            | Self::Tool { item, .. }
            | Self::Terminal { item, .. }
            | Self::Plan { item, .. }
            | Self::Notice { item, .. }
            | Self::PermissionRequested { item, .. }
            | Self::PermissionAnswered { item, .. }
            | Self::PermissionWithdrawn { item, .. } => Some(*item),
            Self::TurnStarted { .. } => Some(0),
            Self::HostStarted { .. }
            | Self::AnswerRemembered { .. }
            | Self::AnswerForgotten { .. }
            | Self::ThreadCreated { .. }
            | Self::Titled { .. }
            | Self::Pinned {}
            | Self::Unpinned {}
            | Self::Snoozed { .. }
            | Self::Unsnoozed { .. }
            | Self::Archived {}
            | Self::Restored {}
            | Self::Deleted {}
            | Self::Settled { .. }
            | Self::Unsettled { .. }
            | Self::PromptQueued { .. }
            | Self::PromptRemoved { .. }
            | Self::QueueReleased {}
            | Self::CancelRequested { .. }
            | Self::TurnEnded { .. }
            | Self::ModeRequested { .. }
            | Self::ModeChanged { .. }
            | Self::SessionBound { .. }
            | Self::AgentEnded { .. }
            | Self::UsageReported { .. }
            | Self::Unknown(_) => None,
        }
    }
}

/// The body of an event of a kind that this release does not know.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub struct UnknownBody(serde_json::Map<String, serde_json::Value>);

impl UnknownBody {
    /// What stands in a log where a row cannot be read.
    #[must_use]
    pub fn unreadable() -> Self {
        Self([("kind".to_owned(), "unreadable".into())].into_iter().collect())
    }

    /// Its kind; empty if it names none.
    #[must_use]
    pub fn kind(&self) -> &str {
        self.0.get("kind").and_then(serde_json::Value::as_str).unwrap_or_default()
    }
}

impl<'de> Deserialize<'de> for UnknownBody {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let body = Self(serde_json::Map::deserialize(deserializer)?);
        match body.kind() {
            "" => Err(serde::de::Error::custom("an event without a kind")),
            known if EventBody::KINDS.contains(&known) => {
                Err(serde::de::Error::custom(format_args!("an unreadable event of kind `{known}`")))
            }
            _ => Ok(body),
        }
    }
}

#[cfg(feature = "schema")]
impl schemars::JsonSchema for UnknownBody {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "UnknownBody".into()
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({
            "description": "An event of a kind that this release does not know: kept whole, without effect.",
            "type": "object",
            "properties": {
                "kind": { "type": "string", "minLength": 1, "not": { "enum": EventBody::KINDS } },
            },
            "required": ["kind"],
        })
    }
}
