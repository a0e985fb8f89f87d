//! One thread as it is shown here: what is known of it, and how much of that was told.

use wakeful_link::{DataStatus, Failure, threads::ThreadState};
use wakeful_wire::{
    Timestamp,
    rpc::{
        Detail, Outcome, PendingPermission, QueuedPrompt, RequestId, Segment, Seq, ThreadId, TurnId,
    },
};

use super::{change::Change, told::Told};

/// How many of the newest segments a terminal shows of a thread that was not shown before.
const FIRST_SEGMENTS: usize = 10;
/// How many segments are shown at a time of what is earlier.
const EARLIER_SEGMENTS: usize = 5;

/// A shown thread.
#[derive(Debug)]
pub(super) struct Shown {
    thread: ThreadId,
    /// Whether a kept copy is shown before the host was reached, and only the newest content at
    /// first: as a terminal does, where the rest can be asked for.
    screen: bool,
    told: Told,
    /// The creation and the newest event of what was told.
    at: Option<(Seq, Seq)>,
    /// The first content that was told: segment and item.
    oldest: Option<(u32, u32)>,
    /// Whether what was told so far was never confirmed by the host.
    kept: bool,
    status: DataStatus,
    error: Option<Failure>,
    now: Known,
    /// Whether somebody waits for an earlier page.
    earlier: bool,
}

/// What of the thread's small state is needed here.
#[derive(Debug, Default)]
struct Known {
    running: Option<(TurnId, Timestamp)>,
    pending: Vec<PendingPermission>,
    queue: Vec<QueuedPrompt>,
    held: bool,
    last: Option<Outcome>,
}

/// What becomes of a wish for earlier content.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Earlier {
    /// It was shown.
    Shown,
    /// A page is to be loaded.
    Load,
    /// There is none: all of the thread was shown.
    Beginning,
    /// Nothing is known of the thread yet.
    Unknown,
}

impl Shown {
    /// A thread of which nothing is known. `screen`: for a terminal, where what was kept is shown
    /// at once.
    pub(super) fn new(thread: ThreadId, screen: bool) -> Self {
        Self {
            thread,
            screen,
            told: Told::default(),
            at: None,
            oldest: None,
            kept: false,
            status: DataStatus::Empty,
            error: None,
            now: Known::default(),
            earlier: false,
        }
    }

    /// The thread.
    pub(super) const fn thread(&self) -> ThreadId {
        self.thread
    }

    /// Whether all that is known was taken in, and is what the host has.
    pub(super) fn is_live(&self) -> bool {
        self.status == DataStatus::Live
    }

    /// How current it is.
    pub(super) const fn status(&self) -> DataStatus {
        self.status
    }

    /// Why it is not brought up to date on a healthy connection.
    pub(super) const fn error(&self) -> Option<&Failure> {
        self.error.as_ref()
    }

    /// Whether anything of it was told.
    pub(super) const fn is_told(&self) -> bool {
        !self.told.is_new()
    }

    /// Whether the thread was deleted.
    pub(super) fn is_gone(&self) -> bool {
        self.status == DataStatus::Deleted
    }

    /// The turn that runs.
    pub(super) fn running(&self) -> Option<TurnId> {
        self.now.running.map(|(turn, _)| turn)
    }

    /// Since when it runs.
    pub(super) fn running_since(&self) -> Option<Timestamp> {
        self.now.running.map(|(_, since)| since)
    }

    /// What the agent waits for, the oldest first.
    pub(super) fn pending(&self) -> &[PendingPermission] {
        &self.now.pending
    }

    /// Whether a permission still waits.
    pub(super) fn is_pending(&self, request: RequestId) -> bool {
        self.pending().iter().any(|pending| pending.request == request)
    }

    /// The prompts that wait for their turn, in order.
    pub(super) fn queue(&self) -> &[QueuedPrompt] {
        &self.now.queue
    }

    /// Whether they wait for a person.
    pub(super) const fn is_held(&self) -> bool {
        self.now.held
    }

    /// How the last turn ended, once nothing goes on by itself any more: no turn, no permission, no
    /// prompt but those that wait for a person. The outer nothing: something still goes on, or it
    /// is not known yet.
    pub(super) fn idle(&self) -> Option<Option<&Outcome>> {
        let now = &self.now;
        let waits = now.queue.is_empty() || now.held;
        let idle = self.is_live() && now.running.is_none() && now.pending.is_empty() && waits;
        idle.then_some(now.last.as_ref())
    }

    /// The newest event that was taken in.
    pub(super) fn seq(&self) -> Seq {
        self.at.map_or(Seq::ZERO, |(_, seq)| seq)
    }

    /// Takes in what is known of the thread now, and says what is new by it.
    pub(super) fn look(&mut self, state: &ThreadState, changes: &mut Vec<Change>) {
        let gone = self.is_gone();
        self.status = state.status;
        self.error.clone_from(&state.error);
        if self.is_gone() {
            self.now = Known::default();
            if !gone && self.is_told() {
                changes.push(Change::Deleted);
            }
            return;
        }
        let Some(detail) = state.detail() else { return };
        let live = self.is_live();
        if !self.is_told() && !live && !self.screen {
            return;
        }
        if !self.is_told() {
            self.begin(detail);
            if !live {
                self.kept = true;
                changes.push(Change::Kept);
            }
        }
        self.tell(detail, changes);
        if live && std::mem::take(&mut self.kept) {
            changes.push(Change::Current);
        }
    }

    fn begin(&mut self, detail: &Detail) {
        let segments = &detail.page.segments;
        let left_out = if self.screen { segments.len().saturating_sub(FIRST_SEGMENTS) } else { 0 };
        if let Some(first) = segments.get(left_out) {
            self.oldest = Some((first.number, first.skipped));
            if left_out > 0 {
                self.told.begin_at(first.number);
            }
        }
    }

    fn tell(&mut self, detail: &Detail, changes: &mut Vec<Change>) {
        let thread = &detail.thread;
        let went_back =
            self.at.is_some_and(|(made, seq)| made == thread.created && seq > thread.seq);
        if went_back || self.told.is_ahead_of(detail) {
            self.told.rewind(detail, changes);
        }
        self.told.tell(detail, changes);
        self.at = Some((thread.created, thread.seq));
        let first = detail.page.segments.first().map(|first| (first.number, first.skipped));
        self.oldest = self.oldest.or(first);
        self.now = Known {
            running: thread.turn.map(|turn| (turn.id, turn.started_at)),
            pending: thread.permissions.clone(),
            queue: thread.queue.clone(),
            held: thread.held,
            last: thread.last_turn.as_ref().map(|turn| turn.outcome.clone()),
        };
    }

    /// What is asked for is to be shown again: an answer was lost on its way.
    pub(super) const fn ask_again(&mut self) {
        self.told.ask_again();
    }

    /// A person wants earlier content.
    pub(super) fn show_earlier(
        &mut self,
        state: Option<&ThreadState>,
        changes: &mut Vec<Change>,
    ) -> Earlier {
        let Some((state, detail)) =
            state.and_then(|state| state.detail().map(|detail| (state, detail)))
        else {
            return Earlier::Unknown;
        };
        let segments = earlier(&detail.page.segments, self.oldest);
        self.earlier = false;
        let left_out = segments.len().saturating_sub(EARLIER_SEGMENTS);
        let Some(shown) = segments.get(left_out..).filter(|shown| !shown.is_empty()) else {
            self.earlier = state.page.has_more;
            return if state.page.has_more { Earlier::Load } else { Earlier::Beginning };
        };
        self.oldest = shown.first().map(|first| (first.number, first.skipped));
        changes.push(Change::Earlier);
        Told::past(shown, changes);
        changes.push(Change::EarlierEnd);
        Earlier::Shown
    }

    /// What came of the page that was asked for, once something did: the reason why not.
    pub(super) fn look_earlier(
        &mut self,
        state: &ThreadState,
        changes: &mut Vec<Change>,
    ) -> Option<String> {
        if !self.earlier || state.page.loading {
            return None;
        }
        if let Some(error) = &state.page.error {
            self.earlier = false;
            return Some(error.detail.clone());
        }
        let has_come = state
            .detail()
            .is_some_and(|detail| !earlier(&detail.page.segments, self.oldest).is_empty());
        if has_come {
            self.show_earlier(Some(state), changes);
        }
        None
    }
}

/// The content before a place.
fn earlier(segments: &[Segment], oldest: Option<(u32, u32)>) -> Vec<Segment> {
    let Some((number, item)) = oldest else { return Vec::new() };
    let before = |segment: &&Segment| {
        segment.number < number || segment.number == number && segment.skipped < item
    };
    let cut = |segment: &Segment| {
        if segment.number < number {
            return segment.clone();
        }
        let many = usize::try_from(item.saturating_sub(segment.skipped)).unwrap_or(usize::MAX);
        let items = segment.items.iter().take(many).cloned().collect();
        Segment { turn: None, items, ..segment.clone() }
    };
    segments.iter().filter(before).map(cut).collect()
}
