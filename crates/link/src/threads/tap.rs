//! What a stream takes in, item by item, for a consumer that passes items on.
//!
//! Most consumers read the state. One that tells a program what happened, event by event, cannot:
//! a state does not say by which events it came about.

use wakeful_wire::rpc::{Event, ThreadItem};

use super::Held;

/// Most events that wait to be taken. At one more all of them give way to one snapshot.
pub const TAPPED_MAX: usize = 16_384;

/// What was taken in and nobody has taken out.
#[derive(Debug, Default)]
pub(super) struct Tap {
    items: Vec<ThreadItem>,
    /// Events in `items`, and other items as one each.
    weight: usize,
    /// Whether what was here gave way.
    overflown: bool,
}

impl Tap {
    /// A snapshot, or a mark.
    pub(super) fn push(&mut self, item: ThreadItem) {
        self.add(item, 1);
    }

    /// Events, as far as they were new.
    pub(super) fn push_events(&mut self, events: Vec<Event>) {
        let weight = events.len();
        if weight > 0 {
            self.add(ThreadItem::Events { events }, weight);
        }
    }

    fn add(&mut self, item: ThreadItem, weight: usize) {
        self.weight = self.weight.saturating_add(weight);
        if self.weight > TAPPED_MAX {
            self.overflown = true;
        }
        if self.overflown {
            self.items.clear();
        } else {
            self.items.push(item);
        }
    }

    /// All that waits, in order. What gave way is told by what is held now; `live` says whether
    /// that is current.
    pub(super) fn take(&mut self, held: Option<&Held>, live: bool) -> Vec<ThreadItem> {
        let taken = std::mem::take(self);
        if !taken.overflown {
            return taken.items;
        }
        let Some(Held { detail, cursor }) = held else { return Vec::new() };
        let cursor = *cursor;
        let snapshot = ThreadItem::Snapshot { cursor, detail: Box::new((**detail).clone()) };
        std::iter::once(snapshot)
            .chain(live.then_some(ThreadItem::Synchronized { cursor }))
            .collect()
    }
}
