//! A thread with a window of its content: what a client shows of one thread.

use serde::{Deserialize, Serialize};

use super::{Event, EventBody, Segment, Seq, Thread};

/// Where a window of a thread begins: the page before it ends just before this item. Opaque to
/// people, exact for the host.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PageCursor {
    /// The thread's creation, so that a page of an earlier thread of the same id is never mixed in.
    pub created: Seq,
    /// The segment.
    pub segment: u32,
    /// The item in it.
    pub item: u32,
}

/// A run of content, oldest first.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Page {
    /// The segments. The first one may begin at a later item, and the last one may be the beginning
    /// of one whose rest the asker has.
    pub segments: Vec<Segment>,
    /// Where to go on towards the beginning; absent: this is the beginning.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before: Option<PageCursor>,
    /// The thread's newest event that is in it.
    #[serde(default)]
    pub seq: Seq,
}

/// A thread and a window of its content that reaches to now.
///
/// An older page of the *newest* segment is read at another moment than the window is at, and
/// events may go to items of either. `missed` and `merged` keep that exact: no event is applied
/// twice to an item, and a page that lacks an event which the window has let pass is refused.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Detail {
    /// The small state. Its `seq` is what the whole value is at.
    pub thread: Thread,
    /// The content.
    pub page: Page,
    /// The newest event that may have changed an item before the window, in the segment in which
    /// the window begins.
    #[serde(default)]
    pub missed: Seq,
    /// Pages of the newest segment that were read after what the window is at, newest last: items
    /// below a number are at a sequence already. Of several the last one that holds an item counts.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub merged: Vec<(u32, Seq)>,
}

/// What taking in an event did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Applied {
    /// It changed the value, or at least its `seq`.
    Changed,
    /// It had been taken in before, or is of another thread.
    Ignored,
}

/// What putting an older page before the window did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Prepended {
    /// It is in.
    Done,
    /// It does not end where the window begins, or was read before events that the window has let
    /// pass. Nothing changed; ask again.
    Stale,
}

impl Detail {
    /// A thread with a window that is at the same sequence. Where the window begins inside a
    /// segment, nothing is known of what is before it, so a page that was read before this moment
    /// does not fit.
    #[must_use]
    pub fn new(thread: Thread, page: Page) -> Self {
        let partial = page.segments.first().is_some_and(|first| first.skipped > 0);
        let missed = if partial { thread.seq } else { Seq::ZERO };
        Self { thread, page, missed, merged: Vec::new() }
    }

    /// Takes in one event. An event that is not newer, or of another thread, changes nothing.
    pub fn apply(&mut self, event: &Event) -> Applied {
        if event.thread != Some(self.thread.id) || event.seq <= self.thread.seq {
            return Applied::Ignored;
        }
        self.thread.apply(event);
        self.page.seq = event.seq;
        if matches!(event.body, EventBody::ThreadCreated { .. }) || self.thread.deleted {
            self.page.segments.clear();
            self.page.before = None;
            self.merged.clear();
        }
        if let EventBody::TurnStarted { segment, .. } = &event.body {
            self.page.segments.push(Segment::new(*segment));
            self.merged.clear();
        }
        if !self.thread.deleted {
            self.apply_to_newest(event);
        }
        Applied::Changed
    }

    fn apply_to_newest(&mut self, event: &Event) {
        if self.page.segments.is_empty() {
            self.page.segments.push(Segment::new(self.thread.segment));
        }
        let Some(newest) = self.page.segments.last_mut() else { return };
        let all = matches!(event.body, EventBody::TurnEnded { .. } | EventBody::AgentEnded { .. });
        let item = event.body.item();
        if all && newest.skipped > 0 || item.is_some_and(|item| item < newest.skipped) {
            self.missed = event.seq;
        }
        let merged = &self.merged;
        let has_it = |item: u32| {
            let mut layers = merged.iter().rev();
            layers.find(|(below, _)| item < *below).is_some_and(|(_, at)| event.seq <= *at)
        };
        if !item.is_some_and(has_it) {
            newest.apply_beside(event, has_it);
        }
        if self.merged.iter().all(|(_, at)| *at <= event.seq) {
            self.merged.clear();
        }
    }

    /// Puts the older page that was asked for with `asked` before the window.
    pub fn prepend(&mut self, asked: PageCursor, mut older: Page) -> Prepended {
        if self.page.before != Some(asked) {
            return Prepended::Stale;
        }
        let newest = self.page.segments.len() == 1;
        // The page's last segment and the window's first are halves of one segment.
        if let (Some(last), Some(first)) =
            (older.segments.last_mut(), self.page.segments.first_mut())
            && last.number == first.number
        {
            if last.next_item() != first.skipped || older.seq < self.missed {
                return Prepended::Stale;
            }
            if newest {
                self.merged.push((first.skipped, older.seq));
            }
            let rest = std::mem::take(&mut first.items);
            first.skipped = last.skipped;
            first.items = std::mem::take(&mut last.items);
            first.items.extend(rest);
            older.segments.pop();
        }
        self.page.before = older.before;
        self.page.segments.splice(..0, older.segments);
        Prepended::Done
    }
}
