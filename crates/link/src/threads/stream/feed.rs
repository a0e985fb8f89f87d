//! What a subscription delivers, and how it is taken in.

use std::sync::Arc;

use wakeful_wire::rpc::{Cursor, Detail, Event, ThreadItem};

use super::{Around, Feed, Stream};
use crate::{Failure, FailureReason, threads::Held};

impl Stream {
    /// Takes in an item, whole. What comes before the subscription's first item is of an earlier
    /// one: it comes again.
    pub(in crate::threads) fn handle_item(&mut self, item: ThreadItem, around: &mut Around<'_>) {
        let delivers = matches!(self.feed, Feed::Open | Feed::Live);
        let asked = matches!(self.feed, Feed::Asked(_));
        match item {
            ThreadItem::Snapshot { cursor, detail } if asked || delivers => {
                self.handle_snapshot(cursor, *detail, around);
            }
            ThreadItem::Resumed { cursor } if asked || delivers => {
                self.handle_resumed(cursor, around);
            }
            ThreadItem::Events { events } if delivers => self.handle_events(&events, around),
            ThreadItem::Synchronized { cursor } if delivers => {
                if let Some(held) = &mut self.state.held {
                    held.confirm(cursor);
                    self.feed = Feed::Live;
                    self.tapped(ThreadItem::Synchronized { cursor });
                }
                self.publish(true, around);
            }
            ThreadItem::Deleted { .. } if asked || delivers => self.handle_gone(around),
            ThreadItem::Snapshot { .. }
            | ThreadItem::Resumed { .. }
            | ThreadItem::Events { .. }
            | ThreadItem::Synchronized { .. }
            | ThreadItem::Deleted { .. }
            | ThreadItem::Unknown => {}
        }
    }

    /// A snapshot replaces what is held, also where its number is lower.
    fn handle_snapshot(&mut self, cursor: Cursor, detail: Detail, around: &mut Around<'_>) {
        if detail.thread.id != self.id.thread {
            self.distrust("The host sent another thread than the one that was asked for.", around);
            return;
        }
        if detail.thread.deleted {
            self.handle_gone(around);
            return;
        }
        if cursor.seq < self.seq() {
            self.behind.reset();
        }
        // The window is another one, so a page before the earlier one has no place.
        self.cancel_page(around);
        self.loaded = false;
        self.distrusted = false;
        self.state.error = None;
        if self.tap.is_some() {
            self.tapped(ThreadItem::Snapshot { cursor, detail: Box::new(detail.clone()) });
        }
        self.state.held = Some(Held { detail: Arc::new(detail), cursor });
        self.feed = Feed::Open;
        self.handle_changed(around);
        self.publish(true, around);
    }

    fn handle_resumed(&mut self, cursor: Cursor, around: &mut Around<'_>) {
        let asked = !matches!(self.feed, Feed::Asked(None));
        match &mut self.state.held {
            // Events between what is held and where the host goes on would be missing.
            Some(held) if asked && cursor.seq <= held.cursor.seq => {
                held.confirm(cursor);
                self.state.error = None;
                self.feed = Feed::Open;
                self.tapped(ThreadItem::Resumed { cursor });
                self.publish(true, around);
            }
            Some(_) | None => {
                self.distrust("The host went on from where this client is not.", around);
            }
        }
    }

    fn handle_events(&mut self, events: &[Event], around: &mut Around<'_>) {
        let Some(held) = &mut self.state.held else { return };
        if let Some(tap) = &mut self.tap {
            tap.push_events(held.new_of(events));
        }
        if !held.take_in(events) {
            return;
        }
        if held.detail.thread.deleted {
            self.handle_gone(around);
            return;
        }
        self.handle_changed(around);
        self.publish(true, around);
    }

    /// An item could not be read, so something is missing from here on.
    pub(in crate::threads) fn handle_unreadable(&mut self, around: &mut Around<'_>) {
        if matches!(self.feed, Feed::Asked(_) | Feed::Open | Feed::Live) {
            self.distrust("The host sent something about this thread that is unreadable.", around);
        }
    }

    /// Asks for a snapshot at once, and takes nothing in until it has come. Where that was asked for
    /// already, it is left to the next session.
    fn distrust(&mut self, detail: &str, around: &mut Around<'_>) {
        if std::mem::replace(&mut self.distrusted, true) {
            self.feed = Feed::Failed;
            self.state.error = Some(Failure::new(FailureReason::Remote, detail));
            self.publish(true, around);
        } else {
            self.resubscribe(around);
            self.publish(false, around);
        }
    }
}
