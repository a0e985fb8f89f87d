//! What events, items and rows are made of.

use serde::{Deserialize, Serialize};

use super::ClientId;

/// What a person sends to an agent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Prompt {
    /// Drawn by the sender; taken once.
    pub client: ClientId,
    /// The content, in order.
    pub parts: Vec<PromptPart>,
}

impl Prompt {
    /// A prompt of one text.
    #[must_use]
    pub fn text(client: ClientId, text: impl Into<String>) -> Self {
        Self { client, parts: vec![PromptPart::Text { text: text.into() }] }
    }

    /// Its texts, one after another.
    #[must_use]
    pub fn plain(&self) -> String {
        let mut all = String::new();
        for part in &self.parts {
            if let PromptPart::Text { text } = part {
                if !all.is_empty() {
                    all.push('\n');
                }
                all.push_str(text);
            }
        }
        all
    }

    /// How much it weighs against the limit on prompts, in bytes.
    #[must_use]
    pub fn weight(&self) -> usize {
        let part = |part: &PromptPart| match part {
            PromptPart::Text { text } => text.len(),
            PromptPart::Link { uri, name } => uri.len() + name.as_ref().map_or(0, String::len),
            PromptPart::Other => 0,
        };
        self.parts.iter().map(|each| part(each) + 16).sum()
    }
}

/// One piece of a prompt. Files and pictures are uploaded to the workspace and linked.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(
    feature = "schema",
    derive(schemars::JsonSchema),
    schemars(transform = crate::schema::open)
)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum PromptPart {
    /// Text.
    Text {
        /// The text.
        text: String,
    },
    /// A link to a file of the workspace or elsewhere.
    Link {
        /// Where.
        uri: String,
        /// What it is called.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        name: Option<String>,
    },
    /// Something that a newer peer knows.
    #[serde(other)]
    Other,
}

/// Whose words a text is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(
    feature = "schema",
    derive(schemars::JsonSchema),
    schemars(transform = crate::schema::open)
)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// A person's, as the agent reports it.
    User,
    /// The agent's.
    Agent,
    /// The agent's thinking.
    Thought,
    /// Something that a newer peer knows.
    #[serde(other)]
    Other,
}

/// Who did something that a person or a rule can do.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(
    feature = "schema",
    derive(schemars::JsonSchema),
    schemars(transform = crate::schema::open)
)]
#[serde(rename_all = "snake_case")]
pub enum By {
    /// A person.
    #[default]
    Hand,
    /// A rule of the host.
    Rule,
    /// The agent.
    Agent,
    /// Something that a newer peer knows.
    #[serde(other)]
    Other,
}

/// How a turn ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(
    feature = "schema",
    derive(schemars::JsonSchema),
    schemars(transform = crate::schema::open)
)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Outcome {
    /// The agent ended it and said why.
    Completed {
        /// Why.
        reason: StopReason,
    },
    /// A person cancelled it.
    Cancelled {
        /// False: the agent did not obey in time and was stopped.
        obeyed: bool,
    },
    /// It failed.
    Failed {
        /// What happened, for people.
        message: String,
    },
    /// A crash or a stop of the host cut it. It can be sent again by a person; the host never does,
    /// because its tools may have run.
    Cut,
    /// Something that a newer peer knows.
    #[serde(other)]
    Other,
}

impl Outcome {
    /// Whether what waits in the queue goes on by itself after such an end. After a cancel, a
    /// failure or a cut it waits for a person.
    #[must_use]
    pub const fn lets_the_queue_go_on(&self) -> bool {
        matches!(self, Self::Completed { .. })
    }

    /// Whether the agent was torn away from its work: whatever was still open is interrupted.
    #[must_use]
    pub const fn interrupts(&self) -> bool {
        match self {
            Self::Cancelled { .. } | Self::Failed { .. } | Self::Cut => true,
            Self::Completed { .. } | Self::Other => false,
        }
    }
}

/// Why an agent ended a turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(
    feature = "schema",
    derive(schemars::JsonSchema),
    schemars(transform = crate::schema::open)
)]
#[serde(rename_all = "snake_case")]
pub enum StopReason {
    /// It was done.
    EndTurn,
    /// The model's output was full.
    MaxTokens,
    /// Too many requests to the model in one turn.
    MaxTurnRequests,
    /// It refused.
    Refusal,
    /// Something that a newer peer or agent knows.
    #[serde(other)]
    Other,
}

/// What kind of tool ran.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(
    feature = "schema",
    derive(schemars::JsonSchema),
    schemars(transform = crate::schema::open)
)]
#[serde(rename_all = "snake_case")]
pub enum ToolKind {
    /// Reads.
    Read,
    /// Changes files.
    Edit,
    /// Deletes.
    Delete,
    /// Moves or renames.
    Move,
    /// Searches.
    Search,
    /// Runs a command.
    Execute,
    /// Thinks.
    Think,
    /// Fetches from elsewhere.
    Fetch,
    /// Changes the agent's mode.
    SwitchMode,
    /// Anything else.
    #[default]
    #[serde(other)]
    Other,
}

/// How far a tool is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(
    feature = "schema",
    derive(schemars::JsonSchema),
    schemars(transform = crate::schema::open)
)]
#[serde(rename_all = "snake_case")]
pub enum ToolStatus {
    /// Not begun, or waiting for a permission.
    #[default]
    Pending,
    /// Running.
    InProgress,
    /// Done.
    Completed,
    /// Failed.
    Failed,
    /// The agent went away, or its turn was torn off, before the tool ended.
    Interrupted,
    /// Something that a newer peer knows.
    #[serde(other)]
    Other,
}

impl ToolStatus {
    /// Whether the tool may still do something.
    #[must_use]
    pub const fn is_open(self) -> bool {
        matches!(self, Self::Pending | Self::InProgress)
    }
}

/// One piece of what a tool shows.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(
    feature = "schema",
    derive(schemars::JsonSchema),
    schemars(transform = crate::schema::open)
)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum ToolContent {
    /// Text.
    Text {
        /// The text.
        text: String,
    },
    /// A change of a file.
    Diff {
        /// The file.
        path: String,
        /// What it held; absent for a new file.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        old: Option<String>,
        /// What it holds.
        new: String,
    },
    /// A terminal; its output is an item of its own with the same id.
    Terminal {
        /// The terminal's id.
        terminal: String,
    },
    /// Something that a newer peer knows.
    #[serde(other)]
    Other,
}

/// A place that a tool works on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Location {
    /// The file.
    pub path: String,
    /// The line, from 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub line: Option<u32>,
}

/// What is known of a tool call.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ToolCall {
    /// The agent's id of it, unique in its session.
    pub id: String,
    /// For people.
    #[serde(default)]
    pub title: String,
    /// What kind of tool.
    #[serde(default)]
    pub kind: ToolKind,
    /// How far it is.
    #[serde(default)]
    pub status: ToolStatus,
    /// What it shows.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub content: Vec<ToolContent>,
    /// What it works on.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub locations: Vec<Location>,
    /// What it was given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub raw_input: Option<serde_json::Value>,
    /// What it gave.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub raw_output: Option<serde_json::Value>,
}

impl ToolCall {
    /// Takes over every field that the patch gives; a given field replaces.
    pub fn update(&mut self, patch: &ToolPatch) {
        self.id.clone_from(&patch.id);
        if let Some(title) = &patch.title {
            self.title.clone_from(title);
        }
        self.kind = patch.kind.unwrap_or(self.kind);
        self.status = patch.status.unwrap_or(self.status);
        if let Some(content) = &patch.content {
            self.content.clone_from(content);
        }
        if let Some(locations) = &patch.locations {
            self.locations.clone_from(locations);
        }
        if patch.raw_input.is_some() {
            self.raw_input.clone_from(&patch.raw_input);
        }
        if patch.raw_output.is_some() {
            self.raw_output.clone_from(&patch.raw_output);
        }
    }
}

/// A new tool call, or what changed in one.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ToolPatch {
    /// The agent's id of the call.
    pub id: String,
    /// For people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// What kind of tool.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kind: Option<ToolKind>,
    /// How far it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<ToolStatus>,
    /// What it shows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub content: Option<Vec<ToolContent>>,
    /// What it works on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub locations: Option<Vec<Location>>,
    /// What it was given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub raw_input: Option<serde_json::Value>,
    /// What it gave.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub raw_output: Option<serde_json::Value>,
}

/// How a terminal's command ended.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Exit {
    /// Its exit code.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<i32>,
    /// The signal that ended it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signal: Option<i32>,
}

/// One line of an agent's plan.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PlanEntry {
    /// What is to be done.
    pub text: String,
    /// How important.
    #[serde(default)]
    pub priority: PlanPriority,
    /// How far.
    #[serde(default)]
    pub status: PlanStatus,
}

/// How important a line of a plan is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(
    feature = "schema",
    derive(schemars::JsonSchema),
    schemars(transform = crate::schema::open)
)]
#[serde(rename_all = "snake_case")]
pub enum PlanPriority {
    /// High.
    High,
    /// Medium.
    #[default]
    Medium,
    /// Low.
    Low,
    /// Something that a newer peer knows.
    #[serde(other)]
    Other,
}

/// How far a line of a plan is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(
    feature = "schema",
    derive(schemars::JsonSchema),
    schemars(transform = crate::schema::open)
)]
#[serde(rename_all = "snake_case")]
pub enum PlanStatus {
    /// Not begun.
    #[default]
    Pending,
    /// Under way.
    InProgress,
    /// Done.
    Completed,
    /// Something that a newer peer knows.
    #[serde(other)]
    Other,
}

/// One answer that an agent offers for a permission.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PermissionOption {
    /// The agent's id of it.
    pub id: String,
    /// The agent's name of it, shown as it is.
    pub name: String,
    /// What it means.
    pub kind: PermissionOptionKind,
}

/// What an answer to a permission means.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(
    feature = "schema",
    derive(schemars::JsonSchema),
    schemars(transform = crate::schema::open)
)]
#[serde(rename_all = "snake_case")]
pub enum PermissionOptionKind {
    /// This time.
    AllowOnce,
    /// From now on, kept by the agent.
    AllowAlways,
    /// Not this time.
    RejectOnce,
    /// Never, kept by the agent.
    RejectAlways,
    /// Something that a newer peer or agent knows.
    #[serde(other)]
    Other,
}

impl PermissionOptionKind {
    /// Whether it allows, or nothing if that cannot be told.
    #[must_use]
    pub const fn allows(self) -> Option<bool> {
        match self {
            Self::AllowOnce | Self::AllowAlways => Some(true),
            Self::RejectOnce | Self::RejectAlways => Some(false),
            Self::Other => None,
        }
    }
}

/// How far an answer is remembered by the host.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(
    feature = "schema",
    derive(schemars::JsonSchema),
    schemars(transform = crate::schema::open)
)]
#[serde(rename_all = "snake_case")]
pub enum Remember {
    /// In this thread.
    Thread,
    /// In every thread of the same project and agent.
    Project,
    /// Something that a newer peer knows; remembered nowhere.
    #[serde(other)]
    Other,
}

/// Who answered a permission.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(
    feature = "schema",
    derive(schemars::JsonSchema),
    schemars(transform = crate::schema::open)
)]
#[serde(rename_all = "snake_case")]
pub enum AnsweredBy {
    /// A person, now.
    #[default]
    Hand,
    /// An earlier answer that was remembered.
    Remembered,
    /// Something that a newer peer knows.
    #[serde(other)]
    Other,
}

/// Why a permission is no longer asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(
    feature = "schema",
    derive(schemars::JsonSchema),
    schemars(transform = crate::schema::open)
)]
#[serde(rename_all = "snake_case")]
pub enum WithdrawnWhy {
    /// The agent went on without our answer: somebody answered elsewhere.
    SettledElsewhere,
    /// The turn ended or was cancelled.
    TurnEnded,
    /// The agent went away.
    AgentEnded,
    /// Something that a newer peer knows.
    #[serde(other)]
    Other,
}

/// How serious a notice is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(
    feature = "schema",
    derive(schemars::JsonSchema),
    schemars(transform = crate::schema::open)
)]
#[serde(rename_all = "snake_case")]
pub enum NoticeLevel {
    /// Good to know.
    #[default]
    Info,
    /// Something was left out or went wrong without consequence.
    Warning,
    /// Something failed.
    Error,
    /// Something that a newer peer knows.
    #[serde(other)]
    Other,
}

/// What an agent has used, as it last said. Each given figure replaces.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Usage {
    /// Tokens read, in total.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input_tokens: Option<u64>,
    /// Tokens written, in total.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output_tokens: Option<u64>,
    /// Tokens in the context now.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub context_used: Option<u64>,
    /// Tokens that the context holds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub context_size: Option<u64>,
    /// Cost in millionths of the currency.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost_micros: Option<u64>,
    /// The currency, as an ISO 4217 code.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub currency: Option<String>,
}
