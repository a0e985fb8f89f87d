//! What is new in a thread to whoever watches it.

use wakeful_wire::rpc::{
    Exit, NoticeLevel, Outcome, PendingPermission, PermissionOption, PermissionState, PlanEntry,
    Prompt, Role, ToolCall, ToolContent, Usage,
};

/// Where in a thread something stands: the segment and the item in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Place {
    /// The segment.
    pub(super) segment: u32,
    /// The item.
    pub(super) item: u32,
}

/// One thing that has not been shown yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Change {
    /// The thread that follows; the first change there is, and again when its id was made anew.
    Thread {
        /// The agent's name.
        agent: String,
        /// The directory of the workspace; empty for the workspace itself.
        project: String,
    },
    /// Its title.
    Titled(String),
    /// The agent's mode.
    Mode(String),
    /// It went into the archive, or came back.
    Archived(bool),
    /// Content before this is left out.
    LeftOut,
    /// The host's log is older than what was shown, or has gone another way: it was restored.
    Rewound,
    /// A prompt waits for its turn.
    Queued(Prompt),
    /// The queue waits for a person, or no longer.
    Held(bool),
    /// A turn began with this prompt.
    Prompt(Prompt),
    /// More of a text.
    Text {
        /// The text's item.
        place: Place,
        /// Whose words.
        role: Role,
        /// What is new of it.
        more: String,
    },
    /// A tool call began or changed.
    Tool {
        /// Its item.
        place: Place,
        /// What is known of it; its content is left to the next two.
        call: Box<ToolCall>,
        /// Whether its line (kind, title, status) is new.
        line: bool,
        /// Changes of files, as far as they are new.
        diffs: Vec<ToolContent>,
        /// What it says at its end, as far as that is new.
        texts: Vec<String>,
    },
    /// More output of a terminal, or its end.
    Terminal {
        /// Its item.
        place: Place,
        /// How many bytes before `more` are not held any more.
        left_out: u64,
        /// What is new of its output.
        more: String,
        /// How its command ended, if that is new.
        exit: Option<Exit>,
    },
    /// The agent's plan, whole.
    Plan(Vec<PlanEntry>),
    /// Something to know.
    Notice {
        /// How serious.
        level: NoticeLevel,
        /// The text.
        text: String,
    },
    /// The permission that is now to be answered. One at a time, the oldest first.
    Asked(Box<PendingPermission>),
    /// A permission is no longer asked for.
    Settled {
        /// Its item.
        place: Place,
        /// What it was about.
        title: String,
        /// The answers that were offered.
        options: Vec<PermissionOption>,
        /// What came of it.
        state: PermissionState,
    },
    /// A person wants the running turn to end.
    Cancelling,
    /// The turn of a segment ended.
    Ended {
        /// The segment.
        segment: u32,
        /// How.
        outcome: Outcome,
    },
    /// What the agent has used. Told between turns.
    Usage(Usage),
    /// What follows was kept from an earlier time, and is not known to be the newest.
    Kept,
    /// What was shown as kept is what the host has, with what was added since.
    Current,
    /// Earlier content follows, out of its order.
    Earlier,
    /// It ends here.
    EarlierEnd,
    /// The thread is gone.
    Deleted,
}
