//! One thread as it is followed: its state and the position it is at, always together.

use wakeful_wire::rpc::{
    Applied, Cursor, Detail, Event, EventBody, Outcome, PageCursor, PendingPermission, RequestId,
    Seq, ThreadId, ThreadItem, TurnId,
};

use super::{
    change::Change,
    told::{Told, Touched},
};

/// A followed thread.
#[derive(Debug)]
pub(super) struct Following {
    thread: ThreadId,
    /// The state and what it is at.
    held: Option<(Detail, Cursor)>,
    told: Told,
    synchronized: bool,
    gone: bool,
}

impl Following {
    /// A thread of which nothing is known.
    pub(super) fn new(thread: ThreadId) -> Self {
        Self { thread, held: None, told: Told::default(), synchronized: false, gone: false }
    }

    /// The thread.
    pub(super) const fn thread(&self) -> ThreadId {
        self.thread
    }

    /// What a subscription goes on from.
    pub(super) fn cursor(&self) -> Option<Cursor> {
        self.held.as_ref().map(|(_, cursor)| *cursor)
    }

    /// Whether all that had happened when the subscription began has been taken in.
    pub(super) const fn is_synchronized(&self) -> bool {
        self.synchronized
    }

    /// Whether the thread was deleted.
    pub(super) const fn is_gone(&self) -> bool {
        self.gone
    }

    /// The turn that runs.
    pub(super) fn running(&self) -> Option<TurnId> {
        self.held.as_ref().and_then(|(detail, _)| detail.thread.turn).map(|turn| turn.id)
    }

    /// What the agent waits for, the oldest first.
    pub(super) fn pending(&self) -> &[PendingPermission] {
        self.held.as_ref().map_or(&[], |(detail, _)| &detail.thread.permissions)
    }

    /// Whether a permission still waits.
    pub(super) fn is_pending(&self, request: RequestId) -> bool {
        self.pending().iter().any(|pending| pending.request == request)
    }

    /// How the last turn ended, once nothing goes on by itself any more: no turn, no permission, no
    /// prompt but those that wait for a person. The outer nothing: something still goes on, or it
    /// is not known yet.
    pub(super) fn idle(&self) -> Option<Option<&Outcome>> {
        let (detail, _) = self.held.as_ref().filter(|_| self.synchronized)?;
        let thread = &detail.thread;
        let waits = thread.queue.is_empty() || thread.held;
        (thread.turn.is_none() && thread.permissions.is_empty() && waits)
            .then(|| thread.last_turn.as_ref().map(|turn| &turn.outcome))
    }

    /// Whether an event has not been taken in.
    pub(super) fn is_new(&self, event: &Event) -> bool {
        event.thread == Some(self.thread)
            && self.held.as_ref().is_some_and(|(detail, _)| event.seq > detail.thread.seq)
    }

    /// The socket is gone: what is held stands, and is not known to be the newest.
    pub(super) const fn handle_lost(&mut self) {
        self.synchronized = false;
    }

    /// Takes in an item of the subscription, and says what is new by it.
    pub(super) fn handle_item(&mut self, item: ThreadItem) -> Vec<Change> {
        let mut changes = Vec::new();
        match item {
            ThreadItem::Snapshot { cursor, detail } => {
                self.gone = false;
                self.synchronized = false;
                self.replace(cursor, *detail, &mut changes);
            }
            ThreadItem::Resumed { cursor } => {
                self.synchronized = false;
                if let Some((_, held)) = &mut self.held {
                    held.epoch = cursor.epoch;
                }
            }
            ThreadItem::Events { events } => {
                for event in &events {
                    self.apply(event, &mut changes);
                }
            }
            ThreadItem::Synchronized { cursor } => {
                if let Some((_, held)) = &mut self.held {
                    held.epoch = cursor.epoch;
                    held.seq = held.seq.max(cursor.seq);
                    self.synchronized = true;
                    changes.push(Change::Synchronized);
                }
            }
            ThreadItem::Deleted { seq } => {
                if let Some((_, held)) = &mut self.held {
                    held.seq = held.seq.max(seq);
                }
                self.gone = true;
                changes.push(Change::Deleted);
            }
            ThreadItem::Unknown => {}
        }
        changes
    }

    fn replace(&mut self, cursor: Cursor, detail: Detail, changes: &mut Vec<Change>) {
        let went_back = self.held.as_ref().is_some_and(|(held, _)| {
            held.thread.created == detail.thread.created && held.thread.seq > detail.thread.seq
        });
        if went_back || self.told.is_ahead_of(&detail) {
            self.told.rewind(&detail, changes);
        }
        self.told.tell(&detail, Touched::All, changes);
        let (held, _) = self.held.insert((detail, cursor));
        keep_newest(held);
    }

    fn apply(&mut self, event: &Event, changes: &mut Vec<Change>) {
        let Some((detail, cursor)) = &mut self.held else { return };
        if detail.apply(event) == Applied::Ignored {
            return;
        }
        cursor.seq = event.seq;
        self.told.tell(detail, touched(&event.body), changes);
        keep_newest(detail);
    }

    /// The newest event that is held.
    pub(super) fn seq(&self) -> Seq {
        self.cursor().map_or(Seq::ZERO, |cursor| cursor.seq)
    }
}

/// Leaves only the newest segment: the ones before it have been told and never change.
fn keep_newest(detail: &mut Detail) {
    let page = &mut detail.page;
    let Some(older) = page.segments.len().checked_sub(1).filter(|older| *older > 0) else {
        return;
    };
    page.segments.drain(..older);
    if let Some(newest) = page.segments.first() {
        let (created, segment) = (detail.thread.created, newest.number);
        page.before = Some(PageCursor { created, segment, item: newest.skipped });
    }
}

/// What an event can have changed.
fn touched(body: &EventBody) -> Touched {
    match (body, body.item()) {
        // A new segment, or the open tools of the present one.
        (EventBody::TurnStarted { .. }, _)
        | (EventBody::TurnEnded { .. } | EventBody::AgentEnded { .. }, _)
        | (EventBody::ThreadCreated { .. } | EventBody::Deleted {}, _) => Touched::All,
        (_, Some(item)) => Touched::Item(item),
        (_, None) => Touched::Thread,
    }
}
