//! What is new in a thread, as text for a person at a terminal.

use wakeful_wire::rpc::{
    AnsweredBy, Exit, NoticeLevel, Outcome, PendingPermission, PermissionOption, PermissionState,
    PlanEntry, PlanStatus, Prompt, PromptPart, Role, StopReason, ToolCall, ToolContent, ToolKind,
    ToolStatus, Usage, WithdrawnWhy,
};

use super::{
    change::{Change, Place},
    diff::{self, Line},
    harmless::{Harmless, harmless, one_line},
};

/// The longest title, in characters.
const TITLE_MAX: usize = 200;
/// How many lines of one change of a file are shown.
const DIFF_LINES_MAX: usize = 80;
/// How many lines of what a tool says are shown.
const TEXT_LINES_MAX: usize = 40;

/// How something looks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Look {
    Plain,
    Dim,
    Bold,
    Red,
    Green,
    Yellow,
    Cyan,
}

impl Look {
    const fn code(self) -> &'static str {
        match self {
            Self::Plain => "",
            Self::Dim => "\u{1b}[2m",
            Self::Bold => "\u{1b}[1m",
            Self::Red => "\u{1b}[31m",
            Self::Green => "\u{1b}[32m",
            Self::Yellow => "\u{1b}[33m",
            Self::Cyan => "\u{1b}[36m",
        }
    }
}

/// Makes text of changes. Keeps what is open on the screen: a text or an output that goes on.
#[derive(Debug)]
pub(super) struct Render {
    colours: bool,
    /// Whether a person can answer here.
    answers: bool,
    open: Option<Open>,
    out: String,
}

/// What goes on where the cursor is.
#[derive(Debug)]
struct Open {
    place: Place,
    harmless: Harmless,
    /// Stands before each line.
    margin: &'static str,
    look: Look,
    at_line_start: bool,
}

impl Render {
    /// With or without colours, for somebody who can answer here or not.
    pub(super) const fn new(colours: bool, answers: bool) -> Self {
        Self { colours, answers, open: None, out: String::new() }
    }

    /// Ends an open line, so that something else can be written.
    pub(super) fn close(&mut self) -> String {
        self.end_open();
        std::mem::take(&mut self.out)
    }

    /// The text of some changes.
    pub(super) fn render(&mut self, changes: &[Change]) -> String {
        for change in changes {
            self.change(change);
        }
        std::mem::take(&mut self.out)
    }

    fn change(&mut self, change: &Change) {
        match change {
            Change::Thread { agent, project } => {
                let place =
                    if project.is_empty() { String::new() } else { format!(" in {project}") };
                self.line(Look::Dim, &one_line(&format!("thread with {agent}{place}"), TITLE_MAX));
            }
            Change::Titled(title) => {
                self.line(Look::Bold, &format!("# {}", one_line(title, TITLE_MAX)));
            }
            Change::Mode(mode) => {
                self.line(Look::Dim, &format!("mode: {}", one_line(mode, TITLE_MAX)));
            }
            Change::Archived(true) => self.line(Look::Dim, "the thread is in the archive"),
            Change::Archived(false) => self.line(Look::Dim, "the thread is back from the archive"),
            Change::LeftOut => {
                let how = if self.answers { " (`/older` shows it)" } else { "" };
                self.line(Look::Dim, &format!("… earlier content is left out{how}"));
            }
            Change::Kept => {
                self.line(Look::Yellow, "── as it was when this machine last saw it");
            }
            Change::Current => self.line(Look::Dim, "── up to date"),
            Change::Earlier => self.line(Look::Dim, "── earlier"),
            Change::EarlierEnd => self.line(Look::Dim, "── end of what is earlier"),
            Change::Rewound => self.line(
                Look::Yellow,
                "the host was restored from an older copy: what follows replaces what was shown",
            ),
            Change::Queued(prompt) => {
                self.line(Look::Dim, &format!("waits: {}", one_line(&plain(prompt), TITLE_MAX)));
            }
            Change::Held(true) => {
                self.line(Look::Yellow, "prompts wait until somebody lets them go on");
            }
            Change::Held(false) => {}
            Change::Prompt(prompt) => {
                self.end_open();
                self.block("> ", Look::Cyan, &plain(prompt), usize::MAX);
            }
            Change::Text { place, role, more } => {
                let (margin, look) = match role {
                    Role::Agent => ("", Look::Plain),
                    Role::Thought | Role::Other => ("", Look::Dim),
                    Role::User => ("> ", Look::Cyan),
                };
                self.stream(*place, margin, look, more);
            }
            Change::Tool { call, line, diffs, texts, .. } => self.tool(call, *line, diffs, texts),
            Change::Terminal { place, left_out, more, exit } => {
                if *left_out > 0 {
                    self.line(Look::Dim, &format!("  │ … {left_out} bytes are left out"));
                }
                if !more.is_empty() {
                    self.stream(*place, "  │ ", Look::Plain, more);
                }
                if let Some(exit) = exit {
                    self.exit(*exit);
                }
            }
            Change::Plan(entries) => self.plan(entries),
            Change::Notice { level, text } => {
                let (look, word) = match level {
                    NoticeLevel::Info | NoticeLevel::Other => (Look::Dim, "note: "),
                    NoticeLevel::Warning => (Look::Yellow, "warning: "),
                    NoticeLevel::Error => (Look::Red, "error: "),
                };
                self.end_open();
                self.block("", look, &format!("{word}{text}"), TEXT_LINES_MAX);
            }
            Change::Asked(asked) => self.asked(asked),
            Change::Settled { title, options, state, .. } => self.settled(title, options, state),
            Change::Cancelling => self.line(Look::Dim, "the turn is asked to end"),
            Change::Ended { outcome, .. } => self.ended(outcome),
            Change::Usage(usage) => {
                let text = describe_usage(usage);
                if !text.is_empty() {
                    self.line(Look::Dim, &text);
                }
            }
            Change::Deleted => self.line(Look::Yellow, "the thread was deleted"),
        }
    }

    fn styled(&mut self, look: Look, text: &str) {
        if self.colours && look != Look::Plain && !text.is_empty() {
            self.out.push_str(look.code());
            self.out.push_str(text);
            self.out.push_str("\u{1b}[0m");
        } else {
            self.out.push_str(text);
        }
    }

    fn end_open(&mut self) {
        if self.open.take().is_some_and(|open| !open.at_line_start) {
            self.out.push('\n');
        }
    }

    /// One line. The text is harmless already.
    fn line(&mut self, look: Look, text: &str) {
        self.end_open();
        self.styled(look, text);
        self.out.push('\n');
    }

    /// A text of its own, at most `max` lines of it, each behind a margin.
    fn block(&mut self, margin: &str, look: Look, text: &str, max: usize) {
        let text = harmless(text);
        let count = text.lines().count();
        for line in text.lines().take(max) {
            self.styled(look, &format!("{margin}{line}"));
            self.out.push('\n');
        }
        if count > max {
            self.styled(Look::Dim, &format!("{margin}… {} more lines", count - max));
            self.out.push('\n');
        }
    }

    /// A piece of something that goes on.
    fn stream(&mut self, place: Place, margin: &'static str, look: Look, more: &str) {
        let mut open = match self.open.take() {
            Some(open) if open.place == place => open,
            other => {
                self.open = other;
                self.end_open();
                let harmless = Harmless::default();
                Open { place, harmless, margin, look, at_line_start: true }
            }
        };
        for line in open.harmless.push(more).split_inclusive('\n') {
            if open.at_line_start {
                self.styled(Look::Dim, open.margin);
            }
            let text = line.strip_suffix('\n');
            self.styled(open.look, text.unwrap_or(line));
            if text.is_some() {
                self.out.push('\n');
            }
            open.at_line_start = text.is_some();
        }
        self.open = Some(open);
    }

    fn tool(&mut self, call: &ToolCall, line: bool, diffs: &[ToolContent], texts: &[String]) {
        self.end_open();
        let (look, sign) = match call.status {
            ToolStatus::Pending => (Look::Dim, "○"),
            ToolStatus::InProgress => (Look::Cyan, "▶"),
            ToolStatus::Completed => (Look::Green, "✓"),
            ToolStatus::Failed => (Look::Red, "✗"),
            ToolStatus::Interrupted => (Look::Yellow, "⊘"),
            ToolStatus::Other => (Look::Dim, "?"),
        };
        let named = if call.title.is_empty() { &call.id } else { &call.title };
        if line {
            self.styled(look, sign);
            let title = one_line(named, TITLE_MAX);
            let status = tool_status(call.status);
            self.out.push_str(&format!(" {}: {title}{status}\n", tool_kind(call.kind)));
        }
        for content in diffs {
            if let ToolContent::Diff { path, old, new } = content {
                self.diff(path, old.as_deref(), new);
            }
        }
        for text in texts {
            self.block("  ", Look::Dim, text, TEXT_LINES_MAX);
        }
    }

    fn diff(&mut self, path: &str, old: Option<&str>, new: &str) {
        let new_file = if old.is_none() { " (new)" } else { "" };
        self.line(Look::Bold, &format!("  {}{new_file}", one_line(path, TITLE_MAX)));
        let lines = diff::lines(old.unwrap_or_default(), new);
        for line in lines.iter().take(DIFF_LINES_MAX) {
            let (look, text) = match line {
                Line::Place(old, new) => (Look::Cyan, format!("@@ -{old} +{new} @@")),
                Line::Stays(text) => (Look::Plain, format!(" {text}")),
                Line::Goes(text) => (Look::Red, format!("-{text}")),
                Line::Comes(text) => (Look::Green, format!("+{text}")),
            };
            // A lone carriage return would begin a line that looks like one of ours.
            self.line(look, &format!("  {}", harmless(&text).replace('\n', "\u{fffd}")));
        }
        if let Some(more) = lines.len().checked_sub(DIFF_LINES_MAX).filter(|more| *more > 0) {
            self.line(Look::Dim, &format!("  … {more} more lines"));
        }
    }

    fn exit(&mut self, exit: Exit) {
        match exit {
            Exit { signal: Some(signal), .. } => {
                self.line(Look::Red, &format!("  └ ended by signal {signal}"));
            }
            Exit { code: Some(0), .. } => self.line(Look::Dim, "  └ ended with 0"),
            Exit { code: Some(code), .. } => {
                self.line(Look::Red, &format!("  └ ended with {code}"));
            }
            Exit { .. } => self.line(Look::Dim, "  └ ended"),
        }
    }

    fn plan(&mut self, entries: &[PlanEntry]) {
        self.line(Look::Bold, "plan");
        for entry in entries {
            let (look, sign) = match entry.status {
                PlanStatus::Pending | PlanStatus::Other => (Look::Plain, "[ ]"),
                PlanStatus::InProgress => (Look::Cyan, "[>]"),
                PlanStatus::Completed => (Look::Dim, "[x]"),
            };
            self.line(look, &format!("  {sign} {}", one_line(&entry.text, TITLE_MAX)));
        }
    }

    fn asked(&mut self, asked: &PendingPermission) {
        self.end_open();
        // Whole: who answers must see all of what they allow.
        self.block("? ", Look::Yellow, &asked.title, usize::MAX);
        for (number, option) in (1..).zip(&asked.options) {
            self.line(Look::Plain, &format!("  {number}  {}", one_line(&option.name, TITLE_MAX)));
        }
        if self.answers {
            let remember = if asked.key.is_some() {
                "; with `!` behind it, it is remembered for this thread"
            } else {
                ""
            };
            self.line(Look::Dim, &format!("  answer with a number{remember}"));
        }
    }

    fn settled(&mut self, title: &str, options: &[PermissionOption], state: &PermissionState) {
        let what = match state {
            PermissionState::Pending => return,
            PermissionState::Answered { option, by } => {
                let found = options.iter().find(|offered| offered.id == *option);
                let name = one_line(found.map_or(option, |offered| &offered.name), TITLE_MAX);
                match by {
                    AnsweredBy::Hand | AnsweredBy::Other => name,
                    AnsweredBy::Remembered => format!("{name} (remembered)"),
                }
            }
            PermissionState::Withdrawn { why } => match why {
                WithdrawnWhy::SettledElsewhere => "settled elsewhere",
                WithdrawnWhy::TurnEnded => "the turn ended",
                WithdrawnWhy::AgentEnded => "the agent went away",
                WithdrawnWhy::Other => "no longer asked for",
            }
            .to_owned(),
            PermissionState::Other => "no longer asked for".to_owned(),
        };
        self.line(Look::Dim, &format!("? {}: {what}", one_line(title, TITLE_MAX)));
    }

    fn ended(&mut self, outcome: &Outcome) {
        let (look, text) = match outcome {
            Outcome::Completed { reason } => match reason {
                StopReason::EndTurn => (Look::Green, "done".to_owned()),
                StopReason::MaxTokens => (Look::Yellow, "ended: the output was full".to_owned()),
                StopReason::MaxTurnRequests => {
                    (Look::Yellow, "ended: too many requests to the model in one turn".to_owned())
                }
                StopReason::Refusal => (Look::Yellow, "ended: the agent refused".to_owned()),
                StopReason::Other => (Look::Green, "ended".to_owned()),
            },
            Outcome::Cancelled { obeyed: true } => (Look::Yellow, "cancelled".to_owned()),
            Outcome::Cancelled { obeyed: false } => (
                Look::Yellow,
                "cancelled: the agent did not obey in time and was stopped".to_owned(),
            ),
            Outcome::Failed { message } => {
                (Look::Red, format!("failed: {}", one_line(message, 2_000)))
            }
            Outcome::Cut => (
                Look::Red,
                "cut: the host was stopped or crashed; send the prompt again to go on".to_owned(),
            ),
            Outcome::Other => (Look::Yellow, "ended".to_owned()),
        };
        self.line(look, &format!("── {text}"));
    }
}

/// Texts and links of a prompt.
fn plain(prompt: &Prompt) -> String {
    let mut text = String::new();
    for part in &prompt.parts {
        if !text.is_empty() {
            text.push('\n');
        }
        match part {
            PromptPart::Text { text: part } => text.push_str(part),
            PromptPart::Link { uri, name } => {
                text.push_str(&format!("[{}]({uri})", name.as_deref().unwrap_or("file")));
            }
            PromptPart::Other => text.push('…'),
        }
    }
    text
}

const fn tool_kind(kind: ToolKind) -> &'static str {
    match kind {
        ToolKind::Read => "read",
        ToolKind::Edit => "edit",
        ToolKind::Delete => "delete",
        ToolKind::Move => "move",
        ToolKind::Search => "search",
        ToolKind::Execute => "execute",
        ToolKind::Think => "think",
        ToolKind::Fetch => "fetch",
        ToolKind::SwitchMode => "switch mode",
        ToolKind::Other => "tool",
    }
}

const fn tool_status(status: ToolStatus) -> &'static str {
    match status {
        ToolStatus::Pending | ToolStatus::InProgress | ToolStatus::Completed => "",
        ToolStatus::Failed => " (failed)",
        ToolStatus::Interrupted => " (interrupted)",
        ToolStatus::Other => " (?)",
    }
}

fn describe_usage(usage: &Usage) -> String {
    let mut parts = Vec::new();
    if let Some(tokens) = usage.input_tokens {
        parts.push(format!("{tokens} tokens read"));
    }
    if let Some(tokens) = usage.output_tokens {
        parts.push(format!("{tokens} written"));
    }
    match (usage.context_used, usage.context_size) {
        (Some(used), Some(size)) => parts.push(format!("context {used} of {size}")),
        (Some(used), None) => parts.push(format!("context {used}")),
        (None, _) => {}
    }
    if let Some(micros) = usage.cost_micros {
        let currency = one_line(usage.currency.as_deref().unwrap_or_default(), 8);
        let cost = format!("{}.{:06} {currency}", micros / 1_000_000, micros % 1_000_000);
        parts.push(cost.trim_end().to_owned());
    }
    parts.join(", ")
}
