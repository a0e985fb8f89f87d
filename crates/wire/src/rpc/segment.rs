//! What one turn shows.

use serde::{Deserialize, Serialize};

use super::RequestId;
use super::{
    AnsweredBy, ClientId, Event, EventBody, Exit, NoticeLevel, Outcome, PermissionOption,
    PlanEntry, Prompt, Role, Seq, ToolCall, ToolStatus, TurnId, WithdrawnWhy,
};
use crate::Timestamp;

/// How much of a terminal's output an item keeps, in bytes: the newest.
pub const TERMINAL_KEPT: usize = 256 * 1024;

/// What one turn shows, and what came after it before the next. Derived from its own events alone.
///
/// When the next turn begins, a segment stands as it is: a tool that still runs then, in the
/// background, goes on as a new item of the next segment.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Segment {
    /// Its number in the thread.
    pub number: u32,
    /// Its turn; absent in segment 0.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub turn: Option<TurnSummary>,
    /// How many items at its beginning are left out of this window.
    #[serde(default)]
    pub skipped: u32,
    /// Its items from number `skipped` on.
    pub items: Vec<Item>,
}

/// The turn of a segment.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TurnSummary {
    /// The turn.
    pub id: TurnId,
    /// The prompt that it answers.
    pub prompt: ClientId,
    /// When it began.
    pub started_at: Timestamp,
    /// When it ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended_at: Option<Timestamp>,
    /// How it ended; absent while it runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outcome: Option<Outcome>,
}

/// One thing that a segment shows.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Item {
    /// The event that opened it.
    pub seq: Seq,
    /// When it was opened.
    pub at: Timestamp,
    /// What it is.
    pub body: ItemBody,
}

/// What an item is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(
    feature = "schema",
    derive(schemars::JsonSchema),
    schemars(transform = crate::schema::open)
)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum ItemBody {
    /// What a person sent.
    Prompt {
        /// The prompt.
        prompt: Prompt,
    },
    /// A text, as far as it has come.
    Text {
        /// Whose words.
        role: Role,
        /// The text.
        text: String,
    },
    /// A tool call.
    Tool {
        /// What is known.
        tool: ToolCall,
    },
    /// A terminal.
    Terminal {
        /// Its id.
        terminal: String,
        /// The newest of its output, at most [`TERMINAL_KEPT`] bytes.
        text: String,
        /// How many bytes before that were left out.
        #[serde(default)]
        dropped: u64,
        /// Present when its command has ended.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        exit: Option<Exit>,
    },
    /// The agent's plan.
    Plan {
        /// Its lines.
        entries: Vec<PlanEntry>,
    },
    /// Something to know.
    Notice {
        /// How serious.
        level: NoticeLevel,
        /// The text.
        text: String,
    },
    /// A permission.
    Permission {
        /// The request.
        request: RequestId,
        /// The tool call that it is for, by the agent's id.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        tool: Option<String>,
        /// For people.
        title: String,
        /// The answers that the agent offers.
        options: Vec<PermissionOption>,
        /// How far it is.
        state: PermissionState,
    },
    /// Opened by an event that this release does not know, or never opened at all.
    #[serde(other)]
    Unknown,
}

/// How far a permission is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(
    feature = "schema",
    derive(schemars::JsonSchema),
    schemars(transform = crate::schema::open)
)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum PermissionState {
    /// The agent waits.
    Pending,
    /// Answered.
    Answered {
        /// The option, by the agent's id.
        option: String,
        /// Who chose.
        by: AnsweredBy,
    },
    /// No longer asked for.
    Withdrawn {
        /// Why.
        why: WithdrawnWhy,
    },
    /// Something that a newer peer knows.
    #[serde(other)]
    Other,
}

impl Segment {
    /// An empty segment.
    #[must_use]
    pub fn new(number: u32) -> Self {
        Self { number, ..Self::default() }
    }

    /// The number that the next new item gets.
    #[must_use]
    pub fn next_item(&self) -> u32 {
        self.skipped.saturating_add(u32::try_from(self.items.len()).unwrap_or(u32::MAX))
    }

    /// Takes in one event of this segment. Total: an event that fits nowhere changes nothing.
    ///
    /// Unlike a thread it cannot tell a repeated event from a new one; [`super::Detail`] does, by
    /// the thread's sequence.
    pub fn apply(&mut self, event: &Event) {
        self.apply_beside(event, |_| false);
    }

    /// The same, where some items have the event already: what concerns the whole segment leaves
    /// those as they are. Whoever calls has made sure that the event's own item is none of them.
    pub(super) fn apply_beside(&mut self, event: &Event, has_it: impl Fn(u32) -> bool) {
        match &event.body {
            EventBody::TurnStarted { turn, prompt, .. } => {
                self.turn = Some(TurnSummary {
                    id: *turn,
                    prompt: prompt.client,
                    started_at: event.at,
                    ended_at: None,
                    outcome: None,
                });
                self.open(0, event, || ItemBody::Prompt { prompt: prompt.clone() });
            }
            EventBody::TurnEnded { turn, outcome } => {
                if let Some(held) = self.turn.as_mut().filter(|held| held.id == *turn) {
                    held.ended_at = Some(event.at);
                    held.outcome = Some(outcome.clone());
                    if outcome.interrupts() {
                        self.interrupt_tools(has_it);
                    }
                }
            }
            EventBody::AgentEnded { .. } => self.interrupt_tools(has_it),
            EventBody::Text { item, role, text, .. } => {
                let open = || ItemBody::Text { role: *role, text: String::new() };
                if let Some(ItemBody::Text { text: held, .. }) = self.open(*item, event, open) {
                    held.push_str(text);
                }
            }
            EventBody::Tool { item, tool } => {
                let open = || ItemBody::Tool { tool: ToolCall::default() };
                if let Some(ItemBody::Tool { tool: held }) = self.open(*item, event, open) {
                    held.update(tool);
                }
            }
            EventBody::Terminal { item, terminal, text, exit } => {
                let open = || ItemBody::Terminal {
                    terminal: terminal.clone(),
                    text: String::new(),
                    dropped: 0,
                    exit: None,
                };
                if let Some(ItemBody::Terminal { text: held, dropped, exit: ended, .. }) =
                    self.open(*item, event, open)
                {
                    held.push_str(text);
                    *dropped += keep_newest(held, TERMINAL_KEPT);
                    *ended = exit.or(*ended);
                }
            }
            EventBody::Plan { item, entries } => {
                let open = || ItemBody::Plan { entries: Vec::new() };
                if let Some(ItemBody::Plan { entries: held }) = self.open(*item, event, open) {
                    held.clone_from(entries);
                }
            }
            EventBody::Notice { item, level, text } => {
                self.open(*item, event, || ItemBody::Notice { level: *level, text: text.clone() });
            }
            EventBody::PermissionRequested { item, request, tool, title, options, .. } => {
                self.open(*item, event, || ItemBody::Permission {
                    request: *request,
                    tool: tool.clone(),
                    title: title.clone(),
                    options: options.clone(),
                    state: PermissionState::Pending,
                });
            }
            EventBody::PermissionAnswered { item, request, option, by, .. } => {
                let answered = PermissionState::Answered { option: option.clone(), by: *by };
                self.settle_permission(*item, *request, answered);
            }
            EventBody::PermissionWithdrawn { item, request, why } => {
                let withdrawn = PermissionState::Withdrawn { why: *why };
                self.settle_permission(*item, *request, withdrawn);
            }
            EventBody::HostStarted { .. }
            | EventBody::AnswerRemembered { .. }
            | EventBody::AnswerForgotten { .. }
            | EventBody::ThreadCreated { .. }
            | EventBody::Titled { .. }
            | EventBody::Pinned {}
            | EventBody::Unpinned {}
            | EventBody::Snoozed { .. }
            | EventBody::Unsnoozed { .. }
            | EventBody::Archived {}
            | EventBody::Restored {}
            | EventBody::Deleted {}
            | EventBody::Settled { .. }
            | EventBody::Unsettled { .. }
            | EventBody::PromptQueued { .. }
            | EventBody::PromptRemoved { .. }
            | EventBody::QueueReleased {}
            | EventBody::CancelRequested { .. }
            | EventBody::ModeRequested { .. }
            | EventBody::ModeChanged { .. }
            | EventBody::SessionBound { .. }
            | EventBody::UsageReported { .. }
            | EventBody::Unknown(_) => {}
        }
    }

    /// The item of that number, made by `body` if it is the next. Nothing for an item before this
    /// window; items that were passed over (a newer peer's) are filled in as unknown.
    fn open(
        &mut self,
        item: u32,
        event: &Event,
        body: impl FnOnce() -> ItemBody,
    ) -> Option<&mut ItemBody> {
        const GAP_MAX: u32 = 4_096;
        let place = usize::try_from(item.checked_sub(self.skipped)?).ok()?;
        if item > self.next_item().saturating_add(GAP_MAX) {
            return None;
        }
        let empty = || Item { seq: event.seq, at: event.at, body: ItemBody::Unknown };
        while self.items.len() < place {
            self.items.push(empty());
        }
        if self.items.len() == place {
            self.items.push(Item { body: body(), ..empty() });
        }
        self.items.get_mut(place).map(|item| &mut item.body)
    }

    fn settle_permission(&mut self, item: u32, request: RequestId, to: PermissionState) {
        let place = item.checked_sub(self.skipped).and_then(|place| usize::try_from(place).ok());
        let found = place.and_then(|place| self.items.get_mut(place)).map(|item| &mut item.body);
        if let Some(ItemBody::Permission { request: held, state, .. }) = found
            && *held == request
        {
            *state = to;
        }
    }

    fn interrupt_tools(&mut self, has_it: impl Fn(u32) -> bool) {
        for (number, item) in (self.skipped..).zip(&mut self.items) {
            if let ItemBody::Tool { tool } = &mut item.body
                && tool.status.is_open()
                && !has_it(number)
            {
                tool.status = ToolStatus::Interrupted;
            }
        }
    }

    /// Leaves out the items before number `first`, so that the window begins there.
    pub fn skip_to(&mut self, first: u32) {
        let many = usize::try_from(first.saturating_sub(self.skipped)).unwrap_or(usize::MAX);
        let many = many.min(self.items.len());
        self.items.drain(..many);
        self.skipped += u32::try_from(many).unwrap_or(u32::MAX);
    }
}

/// Cuts a text from the front to at most `max` bytes, between characters. Returns how many bytes
/// went.
fn keep_newest(text: &mut String, max: usize) -> u64 {
    let Some(over) = text.len().checked_sub(max).filter(|over| *over > 0) else { return 0 };
    let cut = (over..=text.len()).find(|at| text.is_char_boundary(*at)).unwrap_or(text.len());
    text.drain(..cut);
    u64::try_from(cut).unwrap_or(u64::MAX)
}
