//! What can be asked of threads, and how it is refused.

use wakeful_wire::{
    Code, Timestamp,
    rpc::{
        ClientId, Epoch, Exit, NoticeLevel, Outcome, PermissionOption, PlanEntry, Prompt, Remember,
        RequestId, Role, Seq, ThreadId, ToolPatch, TurnId, Usage, WithdrawnWhy,
    },
};

/// What a person, an agent or the host itself wants to happen. [`Self::Agent`], [`Self::Start`] and
/// [`Self::Tick`] are never what somebody sent over a socket.
#[derive(Debug, Clone, PartialEq)]
pub enum Command {
    /// Makes a thread.
    Create(Create),
    /// Gives it a title.
    Rename {
        /// The thread.
        thread: ThreadId,
        /// The title.
        title: String,
    },
    /// Pins it, or no longer.
    Pin {
        /// The thread.
        thread: ThreadId,
        /// Whether it is to be pinned.
        pinned: bool,
    },
    /// Puts it aside until a moment, or brings it back.
    Snooze {
        /// The thread.
        thread: ThreadId,
        /// Until when; absent: it comes back now.
        until: Option<Timestamp>,
    },
    /// Puts it aside as done, or no longer.
    Settle {
        /// The thread.
        thread: ThreadId,
        /// Whether it is to be settled.
        settled: bool,
    },
    /// Takes it and its subagents out of the shell. Refused while one of them is live.
    Archive {
        /// The thread.
        thread: ThreadId,
    },
    /// Brings it back from the archive, with all of its family that lies above or below it.
    Restore {
        /// The thread.
        thread: ThreadId,
    },
    /// Deletes it and its subagents; running turns are cancelled.
    Delete {
        /// The thread.
        thread: ThreadId,
    },
    /// Sends a prompt. Taken once per client id.
    Prompt {
        /// The thread.
        thread: ThreadId,
        /// The prompt.
        prompt: Prompt,
    },
    /// Takes a waiting prompt back.
    Unqueue {
        /// The thread.
        thread: ThreadId,
        /// The prompt.
        client: ClientId,
    },
    /// Lets what waits go on after a turn that did not complete.
    Release {
        /// The thread.
        thread: ThreadId,
    },
    /// Asks the running turn to end.
    Cancel {
        /// The thread.
        thread: ThreadId,
        /// The turn; absent: whichever runs.
        turn: Option<TurnId>,
    },
    /// Answers a permission.
    Answer {
        /// The thread.
        thread: ThreadId,
        /// The request.
        request: RequestId,
        /// The option, by the agent's id.
        option: String,
        /// How far the answer is remembered.
        remember: Option<Remember>,
    },
    /// Forgets a remembered answer.
    Forget {
        /// Where it holds.
        place: Place,
        /// What was asked.
        key: String,
    },
    /// Asks for another mode of the agent.
    SetMode {
        /// The thread.
        thread: ThreadId,
        /// The mode, by the agent's id.
        mode: String,
    },
    /// What an agent reports.
    Agent(Append),
    /// The host started: whatever a crash or a stop left open is closed.
    Start {
        /// This start.
        epoch: Epoch,
    },
    /// Time passed: what is snoozed comes back, what is old is settled.
    Tick,
}

/// A thread to be made.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Create {
    /// Its id, drawn by the client so that a repeated request makes one thread; absent: drawn here.
    pub thread: Option<ThreadId>,
    /// The thread that it is a subagent of.
    pub parent: Option<ThreadId>,
    /// The directory of the workspace that it works in; empty: the workspace itself.
    pub project: String,
    /// The agent's name in the template.
    pub agent: String,
    /// Its title.
    pub title: Option<String>,
    /// Its first prompt.
    pub prompt: Option<Prompt>,
    /// Makes a deleted id anew (an import). Without it a deleted id is refused.
    pub anew: bool,
}

/// Where a remembered answer holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Place {
    /// In one thread.
    Thread(ThreadId),
    /// In every thread of a project and an agent.
    Project {
        /// The project.
        project: String,
        /// The agent.
        agent: String,
    },
}

/// What an agent reports of one thread, in order.
#[derive(Debug, Clone, PartialEq)]
pub struct Append {
    /// The thread.
    pub thread: ThreadId,
    /// The turn that it belongs to. If that turn no longer runs, the whole is refused as stale.
    /// Absent: it came outside of a turn.
    pub turn: Option<TurnId>,
    /// What is reported.
    pub updates: Vec<AgentUpdate>,
}

/// One thing that an agent reports. Too large parts are cut (`limits` says how), never refused.
#[derive(Debug, Clone, PartialEq)]
pub enum AgentUpdate {
    /// A piece of text. It goes on with the message of the same id; without an id, with the message
    /// before, until something else comes between.
    Text {
        /// Whose words.
        role: Role,
        /// The agent's id of the message.
        message: Option<String>,
        /// The text.
        text: String,
    },
    /// A tool call, or what changed in one.
    Tool(ToolPatch),
    /// Output of a terminal.
    Terminal {
        /// Its id.
        terminal: String,
        /// Output.
        text: String,
        /// Present when its command has ended.
        exit: Option<Exit>,
    },
    /// The plan, whole.
    Plan(Vec<PlanEntry>),
    /// Something to know.
    Notice {
        /// How serious.
        level: NoticeLevel,
        /// The text.
        text: String,
    },
    /// The agent asks for a permission. A remembered answer is given at once.
    Permission {
        /// The request, drawn by the caller.
        request: RequestId,
        /// The tool call that it is for.
        tool: Option<ToolPatch>,
        /// For people.
        title: String,
        /// The answers that the agent offers.
        options: Vec<PermissionOption>,
        /// Requests of one key can share a remembered answer.
        key: Option<String>,
    },
    /// A permission is no longer asked for. Without effect if none waits.
    Withdrawn {
        /// The request.
        request: RequestId,
        /// Why.
        why: WithdrawnWhy,
    },
    /// The agent's title for the thread. Without effect if a person gave one.
    Title(String),
    /// The agent's mode.
    Mode(String),
    /// The agent's own session.
    Session(String),
    /// What it has used.
    Usage(Usage),
    /// The turn of the append ended. If a person had asked for it, a completed turn counts as
    /// cancelled. The next waiting prompt's turn starts with it, if the turn completed.
    TurnEnded(Outcome),
    /// The agent's process for this thread ended; a turn that still runs has failed.
    AgentEnded {
        /// Why, for people.
        why: String,
    },
}

/// What became of a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Taken {
    /// The newest event that it caused; for a repeated prompt, the one that took it. It is durable.
    pub seq: Seq,
    /// The thread it was about.
    pub thread: Option<ThreadId>,
    /// Whether it caused anything now.
    pub changed: bool,
}

/// Why a command was not taken. Nothing happened.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    /// There is no such thread.
    #[error("there is no such thread")]
    UnknownThread,
    /// The thread is deleted.
    #[error("the thread was deleted")]
    Deleted,
    /// The thread, or one below it, is still live.
    #[error("the thread or one of its subagents is still working")]
    Live,
    /// The prompt's turn has begun.
    #[error("the agent is already working on it")]
    Begun,
    /// No such turn runs.
    #[error("no such turn is running")]
    NotRunning,
    /// The turn of an append no longer runs.
    #[error("the turn is over")]
    Stale,
    /// No such permission waits.
    #[error("nobody waits for this answer")]
    NoSuchRequest,
    /// Too many prompts wait.
    #[error("too many prompts are waiting in this thread")]
    QueueFull,
    /// A bound other than a size was reached.
    #[error("too many {0}")]
    TooMany(&'static str),
    /// Something is too large.
    #[error("the {0} is too large")]
    TooLarge(&'static str),
    /// Something holds a value that it may not hold.
    #[error("the {0} is not valid")]
    Invalid(&'static str),
}

impl Refused {
    /// The stable code.
    #[must_use]
    pub const fn code(&self) -> Code {
        match self {
            Self::UnknownThread | Self::NoSuchRequest => Code::NotFound,
            Self::Deleted => Code::Gone,
            Self::Live | Self::Begun | Self::NotRunning | Self::Stale => Code::Conflict,
            Self::QueueFull | Self::TooMany(_) => Code::TooManyRequests,
            Self::TooLarge(_) => Code::TooLarge,
            Self::Invalid(_) => Code::Invalid,
        }
    }
}
