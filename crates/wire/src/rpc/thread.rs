//! The small state of one thread: all that decisions, lists and controls need, and no content.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::{
    AnsweredBy, By, ClientId, Event, EventBody, Outcome, PermissionOption, Prompt, Remember,
    RequestId, Seq, ThreadId, ToolStatus, TurnId, Usage,
};
use crate::Timestamp;

/// How many running tools of a segment are counted; further ones are not.
const OPEN_TOOLS_MAX: usize = 256;

/// How many answers are remembered in one thread; at more, the oldest is forgotten.
const REMEMBERED_MAX: usize = 256;

/// The state of one thread, derived from its events.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Thread {
    /// The thread.
    pub id: ThreadId,
    /// The event that made it. A cursor below it knows an earlier thread of the same id.
    pub created: Seq,
    /// Its newest event.
    pub seq: Seq,
    /// When it was made.
    pub created_at: Timestamp,
    /// When somebody last did something: wrote, answered, began or ended a turn.
    pub active_at: Timestamp,
    /// The thread that it is a subagent of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<ThreadId>,
    /// The top-level thread of its family.
    pub root: ThreadId,
    /// The directory of the workspace that it works in; empty: the workspace itself.
    pub project: String,
    /// The agent's name in the template.
    pub agent: String,
    /// Its title.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// Who gave the title.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub titled_by: Option<By>,
    /// Whether it is pinned.
    #[serde(default)]
    pub pinned: bool,
    /// Until when it is snoozed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub snoozed_until: Option<Timestamp>,
    /// Since when it is in the archive.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub archived_at: Option<Timestamp>,
    /// Whether it is gone.
    #[serde(default)]
    pub deleted: bool,
    /// Put aside as done.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub settled: Option<Settled>,
    /// Prompts that wait for their turn, in order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub queue: Vec<QueuedPrompt>,
    /// Whether the queue waits for a person, because a turn did not complete.
    #[serde(default)]
    pub held: bool,
    /// The running turn.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub turn: Option<RunningTurn>,
    /// The turn that ended last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_turn: Option<EndedTurn>,
    /// The newest segment; 0 until the first turn.
    #[serde(default)]
    pub segment: u32,
    /// What the agent waits for, in order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub permissions: Vec<PendingPermission>,
    /// Answers that hold in this thread: key and whether it allows.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub remembered: Vec<(String, bool)>,
    /// Items of the newest segment that are tools still running.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub open_tools: Vec<u32>,
    /// The mode that a person wants and the agent has not confirmed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mode_wanted: Option<String>,
    /// The agent's mode.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mode: Option<String>,
    /// The agent's own session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<AgentSession>,
    /// What the agent has used.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage: Option<Usage>,
}

/// Put aside as done.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Settled {
    /// When.
    pub at: Timestamp,
    /// By hand or by rule.
    #[serde(default)]
    pub by: By,
}

/// A prompt that waits for its turn.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct QueuedPrompt {
    /// The event that took it.
    pub seq: Seq,
    /// When it was taken.
    pub at: Timestamp,
    /// The prompt. Shared, because threads are copied often and prompts are large.
    pub prompt: Arc<Prompt>,
}

/// A turn that runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct RunningTurn {
    /// The turn.
    pub id: TurnId,
    /// The prompt that it answers.
    pub prompt: ClientId,
    /// When it began.
    pub started_at: Timestamp,
    /// Since when a person wants it to end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cancel_requested_at: Option<Timestamp>,
}

/// A turn that ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct EndedTurn {
    /// The turn.
    pub id: TurnId,
    /// The prompt that it answered.
    pub prompt: ClientId,
    /// When it ended.
    pub at: Timestamp,
    /// How.
    pub outcome: Outcome,
}

/// A permission that waits for an answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PendingPermission {
    /// The request.
    pub request: RequestId,
    /// Its item in the newest segment.
    pub item: u32,
    /// Since when.
    pub at: Timestamp,
    /// The tool call that it is for, by the agent's id.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool: Option<String>,
    /// For people.
    pub title: String,
    /// The answers that the agent offers.
    pub options: Vec<PermissionOption>,
    /// Requests of one key can share a remembered answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
}

/// The agent's own session.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct AgentSession {
    /// The agent's id of it.
    pub id: String,
    /// Whether a process of the agent has it open.
    pub live: bool,
}

impl Thread {
    /// The thread that an event makes, or nothing if the event makes none.
    #[must_use]
    pub fn created(event: &Event) -> Option<Self> {
        let EventBody::ThreadCreated { parent, root, project, agent, title } = &event.body else {
            return None;
        };
        Some(Self {
            id: event.thread?,
            created: event.seq,
            seq: event.seq,
            created_at: event.at,
            active_at: event.at,
            parent: *parent,
            root: *root,
            project: project.clone(),
            agent: agent.clone(),
            title: title.clone(),
            titled_by: title.as_ref().map(|_| By::Hand),
            pinned: false,
            snoozed_until: None,
            archived_at: None,
            deleted: false,
            settled: None,
            queue: Vec::new(),
            held: false,
            turn: None,
            last_turn: None,
            segment: 0,
            permissions: Vec::new(),
            remembered: Vec::new(),
            open_tools: Vec::new(),
            mode_wanted: None,
            mode: None,
            session: None,
            usage: None,
        })
    }

    /// Whether it is neither in the archive nor gone: such threads are in the shell.
    #[must_use]
    pub const fn is_active(&self) -> bool {
        self.archived_at.is_none() && !self.deleted
    }

    /// Whether a turn runs or a prompt waits.
    #[must_use]
    pub const fn is_live(&self) -> bool {
        self.turn.is_some() || !self.queue.is_empty()
    }

    /// Whether nothing happens in it and nobody is waited for: no turn, no prompt, no permission,
    /// no work in the background.
    #[must_use]
    pub const fn is_idle(&self) -> bool {
        !self.is_live() && self.permissions.is_empty() && self.open_tools.is_empty()
    }

    /// Takes in one event of this thread. Total: an event that fits nowhere changes only `seq`.
    /// An event that is not newer than `seq` changes nothing, so a repeated one is harmless.
    pub fn apply(&mut self, event: &Event) {
        if event.seq <= self.seq {
            return;
        }
        if let Some(anew) = Self::created(event) {
            *self = anew;
            return;
        }
        self.seq = event.seq;
        if !self.deleted {
            self.apply_body(event);
        }
    }

    fn apply_body(&mut self, event: &Event) {
        let at = event.at;
        match &event.body {
            EventBody::Titled { title, by } => {
                self.title = Some(title.clone());
                self.titled_by = Some(*by);
            }
            EventBody::Pinned {} => self.pinned = true,
            EventBody::Unpinned {} => self.pinned = false,
            EventBody::Snoozed { until } => self.snoozed_until = Some(*until),
            EventBody::Unsnoozed { .. } => self.snoozed_until = None,
            EventBody::Archived {} => self.archived_at = Some(at),
            EventBody::Restored {} => {
                self.archived_at = None;
                self.active_at = at;
            }
            EventBody::Deleted {} => self.delete(at),
            EventBody::Settled { by } => self.settled = Some(Settled { at, by: *by }),
            EventBody::Unsettled { .. } => {
                self.settled = None;
                self.active_at = at;
            }
            EventBody::PromptQueued { prompt } => {
                let prompt = Arc::new(prompt.clone());
                self.queue.push(QueuedPrompt { seq: event.seq, at, prompt });
                self.active_at = at;
            }
            EventBody::PromptRemoved { client } => self.unqueue(*client),
            EventBody::QueueReleased {} => self.held = false,
            EventBody::TurnStarted { turn, segment, prompt } => {
                self.unqueue(prompt.client);
                self.held = false;
                self.segment = *segment;
                self.open_tools.clear();
                self.active_at = at;
                self.turn = Some(RunningTurn {
                    id: *turn,
                    prompt: prompt.client,
                    started_at: at,
                    cancel_requested_at: None,
                });
            }
            EventBody::CancelRequested { turn } => {
                if let Some(running) = self.turn.as_mut().filter(|running| running.id == *turn) {
                    running.cancel_requested_at.get_or_insert(at);
                }
            }
            EventBody::TurnEnded { turn, outcome } => self.end_turn(*turn, outcome, at),
            EventBody::Tool { item, tool } => self.tool(*item, tool.status),
            EventBody::PermissionRequested { item, request, tool, title, options, key } => {
                self.active_at = at;
                self.permissions.push(PendingPermission {
                    request: *request,
                    item: *item,
                    at,
                    tool: tool.clone(),
                    title: title.clone(),
                    options: options.clone(),
                    key: key.clone(),
                });
            }
            EventBody::PermissionAnswered { request, remember, allow, by, .. } => {
                if *by == AnsweredBy::Hand {
                    self.active_at = at;
                }
                self.answered(*request, *remember, *allow);
            }
            EventBody::PermissionWithdrawn { request, .. } => {
                self.permissions.retain(|pending| pending.request != *request);
            }
            EventBody::AnswerForgotten { project: None, key, .. } => {
                self.remembered.retain(|(held, _)| held != key);
            }
            EventBody::ModeRequested { mode } => self.mode_wanted = Some(mode.clone()),
            EventBody::ModeChanged { mode } => {
                self.mode = Some(mode.clone());
                self.mode_wanted = None;
            }
            EventBody::SessionBound { session } => {
                self.session = Some(AgentSession { id: session.clone(), live: true });
            }
            EventBody::AgentEnded { .. } => {
                self.open_tools.clear();
                if let Some(session) = &mut self.session {
                    session.live = false;
                }
            }
            EventBody::UsageReported { usage } => self.usage = Some(usage.clone()),
            EventBody::HostStarted { .. }
            | EventBody::AnswerRemembered { .. }
            | EventBody::ThreadCreated { .. }
            | EventBody::AnswerForgotten { .. }
            | EventBody::Text { .. }
            | EventBody::Terminal { .. }
            | EventBody::Plan { .. }
            | EventBody::Notice { .. }
            | EventBody::Unknown(_) => {}
        }
    }

    fn unqueue(&mut self, client: ClientId) {
        self.queue.retain(|queued| queued.prompt.client != client);
        if self.queue.is_empty() {
            self.held = false;
        }
    }

    fn end_turn(&mut self, turn: TurnId, outcome: &Outcome, at: Timestamp) {
        let Some(running) = self.turn.take_if(|running| running.id == turn) else { return };
        self.active_at = at;
        if outcome.interrupts() {
            self.open_tools.clear();
        }
        self.held = !outcome.lets_the_queue_go_on() && !self.queue.is_empty();
        self.last_turn = Some(EndedTurn {
            id: running.id,
            prompt: running.prompt,
            at,
            outcome: outcome.clone(),
        });
    }

    fn tool(&mut self, item: u32, status: Option<ToolStatus>) {
        let Some(status) = status else { return };
        if status != ToolStatus::InProgress {
            self.open_tools.retain(|open| *open != item);
        } else if self.open_tools.len() < OPEN_TOOLS_MAX && !self.open_tools.contains(&item) {
            self.open_tools.push(item);
        }
    }

    fn answered(&mut self, request: RequestId, remember: Option<Remember>, allow: Option<bool>) {
        let Some(place) = self.permissions.iter().position(|held| held.request == request) else {
            return;
        };
        let answered = self.permissions.remove(place);
        let (Some(Remember::Thread), Some(allow), Some(key)) = (remember, allow, answered.key)
        else {
            return;
        };
        self.remembered.retain(|(held, _)| *held != key);
        if self.remembered.len() >= REMEMBERED_MAX {
            self.remembered.remove(0);
        }
        self.remembered.push((key, allow));
    }

    /// Leaves what is known of a thread from its creation and its deletion alone: what was between
    /// is removed from the log, and the state must not depend on whether it has been yet.
    fn delete(&mut self, at: Timestamp) {
        let made = Event {
            seq: self.created,
            at: self.created_at,
            thread: Some(self.id),
            body: EventBody::ThreadCreated {
                parent: self.parent,
                root: self.root,
                project: std::mem::take(&mut self.project),
                agent: std::mem::take(&mut self.agent),
                title: None,
            },
        };
        if let Some(bare) = Self::created(&made) {
            *self = Self { seq: self.seq, active_at: at, deleted: true, ..bare };
        }
    }
}
