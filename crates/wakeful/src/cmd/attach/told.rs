//! What has been shown of a thread, and thus what of its present state is new.
//!
//! Changes are always the difference between the thread as it is and what was shown, however the
//! state came about: by an event, by a snapshot, or by many events that a snapshot stands for. So
//! nothing is shown twice, and nothing is left out that the state still holds.

use wakeful_wire::rpc::{
    ClientId, Detail, Exit, Item, ItemBody, PermissionState, PlanEntry, RequestId, Segment, Seq,
    Thread, ToolCall, ToolContent, ToolKind, ToolStatus, TurnId, Usage,
};

use super::change::{Change, Place};

/// What has been shown.
#[derive(Debug, Default)]
pub(super) struct Told {
    /// The thread's creation; nothing before anything was shown.
    created: Option<Seq>,
    title: Option<String>,
    mode: Option<String>,
    archived: bool,
    queue: Vec<ClientId>,
    held: bool,
    cancelling: Option<TurnId>,
    asked: Option<RequestId>,
    usage: Option<Usage>,
    /// The segment that was shown last. The ones before it are done with.
    segment: Option<u32>,
    ended: bool,
    /// Segments before this one are not shown by themselves.
    floor: u32,
    /// The number of the first of `items`.
    first: u32,
    items: Vec<ToldItem>,
}

#[derive(Debug)]
struct ToldItem {
    /// The event that opened it: two items with one number are told apart by it.
    opened: Seq,
    body: ToldBody,
}

/// How much of an item was shown.
#[derive(Debug)]
enum ToldBody {
    /// All there is.
    Whole,
    /// So many bytes.
    Text(usize),
    /// A tool.
    Tool(Box<ToldTool>),
    /// So many bytes, left out ones included; and whether its end was.
    Terminal(u64, bool),
    /// These lines.
    Plan(Vec<PlanEntry>),
    /// Whether its end was.
    Permission(bool),
}

#[derive(Debug, Default)]
struct ToldTool {
    line: Option<(ToolKind, String, ToolStatus)>,
    diffs: Vec<ToolContent>,
    texts: Vec<String>,
}

impl Told {
    /// What is new in `detail`. Afterwards it counts as shown.
    pub(super) fn tell(&mut self, detail: &Detail, out: &mut Vec<Change>) {
        let thread = &detail.thread;
        if self.created != Some(thread.created) {
            let created = Some(thread.created);
            *self = Self { created, floor: self.floor, ..Self::default() };
            let (agent, project) = (thread.agent.clone(), thread.project.clone());
            out.push(Change::Thread { agent, project });
        }
        self.tell_label(thread, out);
        self.tell_queue(thread, out);
        self.tell_segments(&detail.page.segments, detail.page.before.is_some(), out);
        self.tell_control(thread, out);
    }

    /// Takes the thread as shown without telling anything but that it went back: a log that was
    /// restored holds less than was shown.
    pub(super) fn rewind(&mut self, detail: &Detail, out: &mut Vec<Change>) {
        *self = Self::default();
        self.tell(detail, &mut Vec::new());
        // What waits for an answer is to be seen again.
        self.asked = None;
        out.push(Change::Rewound);
    }

    /// Whether the thread holds less than was shown.
    pub(super) fn is_ahead_of(&self, detail: &Detail) -> bool {
        self.created == Some(detail.thread.created)
            && self.segment.is_some_and(|segment| segment > detail.thread.segment)
    }

    fn tell_label(&mut self, thread: &Thread, out: &mut Vec<Change>) {
        if let Some(title) = &thread.title
            && self.title.as_ref() != Some(title)
        {
            self.title = Some(title.clone());
            out.push(Change::Titled(title.clone()));
        }
        if let Some(mode) = &thread.mode
            && self.mode.as_ref() != Some(mode)
        {
            self.mode = Some(mode.clone());
            out.push(Change::Mode(mode.clone()));
        }
        let archived = thread.archived_at.is_some();
        if std::mem::replace(&mut self.archived, archived) != archived {
            out.push(Change::Archived(archived));
        }
    }

    /// A prompt that begins its turn at once is told as the turn's, not as one that waits.
    fn tell_queue(&mut self, thread: &Thread, out: &mut Vec<Change>) {
        self.queue.retain(|told| thread.queue.iter().any(|held| held.prompt.client == *told));
        if thread.turn.is_none() && !thread.held {
            return;
        }
        for waiting in &thread.queue {
            if !self.queue.contains(&waiting.prompt.client) {
                self.queue.push(waiting.prompt.client);
                out.push(Change::Queued((*waiting.prompt).clone()));
            }
        }
    }

    /// Tells segments by themselves, apart from whatever else was shown.
    pub(super) fn past(segments: &[Segment], out: &mut Vec<Change>) {
        Self::default().tell_segments(segments, false, out);
    }

    /// Segments before this one are not shown, where nothing was yet.
    pub(super) const fn begin_at(&mut self, segment: u32) {
        self.floor = segment;
    }

    /// What waits for an answer is to be told again.
    pub(super) const fn ask_again(&mut self) {
        self.asked = None;
    }

    /// Whether nothing was shown.
    pub(super) const fn is_new(&self) -> bool {
        self.created.is_none()
    }

    fn tell_segments(&mut self, segments: &[Segment], more: bool, out: &mut Vec<Change>) {
        let floor = self.floor;
        for segment in segments.iter().filter(|segment| segment.number >= floor) {
            match self.segment {
                Some(told) if segment.number < told => continue,
                Some(told) if segment.number == told => {
                    if segment.skipped > self.next_item() {
                        out.push(Change::LeftOut);
                        self.items.clear();
                        self.first = segment.skipped;
                    }
                }
                told => {
                    let gap = match told {
                        Some(told) => segment.number > told + 1 || segment.skipped > 0,
                        None => {
                            let first = segments.first().map(|first| first.number);
                            more || segment.skipped > 0 || first != Some(segment.number)
                        }
                    };
                    if gap {
                        out.push(Change::LeftOut);
                    }
                    self.segment = Some(segment.number);
                    self.ended = false;
                    self.first = segment.skipped;
                    self.items.clear();
                }
            }
            for item in segment.skipped.max(self.first)..segment.next_item() {
                self.tell_item(segment, item, out);
            }
            self.tell_end(segment, out);
        }
    }

    fn tell_end(&mut self, segment: &Segment, out: &mut Vec<Change>) {
        let outcome = segment.turn.as_ref().and_then(|turn| turn.outcome.as_ref());
        if let Some(outcome) = outcome
            && !self.ended
        {
            self.ended = true;
            out.push(Change::Ended { segment: segment.number, outcome: outcome.clone() });
        }
    }

    fn next_item(&self) -> u32 {
        self.first.saturating_add(u32::try_from(self.items.len()).unwrap_or(u32::MAX))
    }

    /// Tells what is new of an item, and of those before it that were never told.
    fn tell_item(&mut self, segment: &Segment, number: u32, out: &mut Vec<Change>) {
        if self.segment.is_none() {
            self.segment = Some(segment.number);
            self.first = segment.skipped;
        }
        for number in number.min(self.next_item())..=number {
            let Some(item) = at(segment.skipped, number).and_then(|at| segment.items.get(at))
            else {
                continue;
            };
            let Some(told) = at(self.first, number) else { continue };
            if self.items.get(told).is_some_and(|told| told.opened != item.seq) {
                self.items.truncate(told);
                self.ended = false;
                out.push(Change::Rewound);
            }
            if told == self.items.len() {
                self.items.push(ToldItem { opened: item.seq, body: ToldBody::new(item, out) });
            }
            let place = Place { segment: segment.number, item: number };
            if let Some(told) = self.items.get_mut(told) {
                told.body.tell(place, item, out);
            }
        }
    }

    /// What stands below the content: the end of the turn, and what a person is asked for.
    fn tell_control(&mut self, thread: &Thread, out: &mut Vec<Change>) {
        if let Some(turn) = &thread.turn
            && turn.cancel_requested_at.is_some()
            && self.cancelling != Some(turn.id)
        {
            self.cancelling = Some(turn.id);
            out.push(Change::Cancelling);
        }
        if thread.turn.is_none()
            && let Some(usage) = &thread.usage
            && self.usage.as_ref() != Some(usage)
        {
            self.usage = Some(usage.clone());
            out.push(Change::Usage(usage.clone()));
        }
        if std::mem::replace(&mut self.held, thread.held) != thread.held {
            out.push(Change::Held(thread.held));
        }
        if let Some(oldest) = thread.permissions.first()
            && self.asked != Some(oldest.request)
        {
            self.asked = Some(oldest.request);
            out.push(Change::Asked(Box::new(oldest.clone())));
        }
    }
}

/// Where the item of a number stands behind the first.
fn at(first: u32, number: u32) -> Option<usize> {
    number.checked_sub(first).and_then(|place| usize::try_from(place).ok())
}

impl ToldBody {
    /// An item of which nothing was shown; one that never changes is shown here.
    fn new(item: &Item, out: &mut Vec<Change>) -> Self {
        match &item.body {
            ItemBody::Prompt { prompt } => {
                out.push(Change::Prompt(prompt.clone()));
                Self::Whole
            }
            ItemBody::Notice { level, text } => {
                out.push(Change::Notice { level: *level, text: text.clone() });
                Self::Whole
            }
            ItemBody::Text { .. } => Self::Text(0),
            ItemBody::Tool { .. } => Self::Tool(Box::default()),
            ItemBody::Terminal { .. } => Self::Terminal(0, false),
            ItemBody::Plan { .. } => Self::Plan(Vec::new()),
            ItemBody::Permission { .. } => Self::Permission(false),
            ItemBody::Unknown => Self::Whole,
        }
    }

    fn tell(&mut self, place: Place, item: &Item, out: &mut Vec<Change>) {
        match (self, &item.body) {
            (Self::Text(told), ItemBody::Text { role, text }) => {
                if let Some(more) = text.get(*told..).filter(|more| !more.is_empty()) {
                    out.push(Change::Text { place, role: *role, more: more.to_owned() });
                }
                *told = text.len();
            }
            (Self::Tool(told), ItemBody::Tool { tool }) => out.extend(told.tell(place, tool)),
            (Self::Terminal(told, ended), ItemBody::Terminal { text, dropped, exit, .. }) => {
                let (left_out, more) = newest(*told, *dropped, text);
                *told = dropped.saturating_add(text.len() as u64);
                let exit: Option<Exit> = exit.filter(|_| !*ended);
                *ended |= exit.is_some();
                if left_out > 0 || !more.is_empty() || exit.is_some() {
                    out.push(Change::Terminal { place, left_out, more: more.to_owned(), exit });
                }
            }
            (Self::Plan(told), ItemBody::Plan { entries }) => {
                if told != entries {
                    told.clone_from(entries);
                    out.push(Change::Plan(entries.clone()));
                }
            }
            (Self::Permission(told), ItemBody::Permission { title, options, state, .. }) => {
                if *state != PermissionState::Pending && !*told {
                    *told = true;
                    out.push(Change::Settled {
                        place,
                        title: title.clone(),
                        options: options.clone(),
                        state: state.clone(),
                    });
                }
            }
            // An item never becomes another kind.
            (
                Self::Whole
                | Self::Text(_)
                | Self::Tool(_)
                | Self::Terminal(..)
                | Self::Plan(_)
                | Self::Permission(_),
                _,
            ) => {}
        }
    }
}

/// The output of a terminal after the first `told` bytes: how many are not held any more, and the
/// rest.
fn newest(told: u64, dropped: u64, held: &str) -> (u64, &str) {
    let skip = usize::try_from(told.saturating_sub(dropped)).unwrap_or(usize::MAX);
    let more = if skip >= held.len() { "" } else { held.get(skip..).unwrap_or_default() };
    (dropped.saturating_sub(told), more)
}

impl ToldTool {
    /// A change of a file is told as soon as it is there: a person may have to judge it. Texts,
    /// which are replaced while a tool runs, are told when it is done.
    fn tell(&mut self, place: Place, tool: &ToolCall) -> Option<Change> {
        let now = (tool.kind, tool.title.clone(), tool.status);
        let line = self.line.as_ref() != Some(&now);
        self.line = Some(now);
        let mut diffs = Vec::new();
        let mut texts = Vec::new();
        for content in &tool.content {
            match content {
                ToolContent::Diff { .. } if !self.diffs.contains(content) => {
                    diffs.push(content.clone());
                }
                ToolContent::Text { text }
                    if !tool.status.is_open() && !self.texts.contains(text) =>
                {
                    texts.push(text.clone());
                }
                ToolContent::Diff { .. }
                | ToolContent::Text { .. }
                | ToolContent::Terminal { .. }
                | ToolContent::Other => {}
            }
        }
        self.diffs.extend(diffs.iter().cloned());
        self.texts.extend(texts.iter().cloned());
        let call = Box::new(ToolCall { content: Vec::new(), ..tool.clone() });
        (line || !diffs.is_empty() || !texts.is_empty()).then_some(Change::Tool {
            place,
            call,
            line,
            diffs,
            texts,
        })
    }
}
