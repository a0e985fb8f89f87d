//! One host: what is registered, which scope is open, and what is being done about it.

mod advance;
mod answers;
mod install;

use std::collections::VecDeque;

use wakeful_wire::HostId;

use super::{
    Account, Action, Change, Entry, OperationId, ScopeId, Token,
    operation::{Operation, Wish},
};

/// The most operations of one host that wait. One more is refused as busy.
pub const QUEUE_MAX: usize = 16;

/// What all hosts share: the numbers, and what is asked of the parent.
#[derive(Debug, Default)]
pub(super) struct Shared {
    pub(super) actions: VecDeque<Action>,
    /// After the end no scope is opened and no operation begun.
    pub(super) closed: bool,
    numbered: u64,
}

impl Shared {
    /// The next number, of whatever it is. Never the same twice.
    pub(super) const fn number(&mut self) -> u64 {
        self.numbered += 1;
        self.numbered
    }

    pub(super) fn publish(&mut self, change: Change) {
        self.actions.push_back(Action::Publish(change));
    }
}

/// What is awaited. One thing at a time, and nothing else is begun for the host meanwhile.
#[derive(Debug)]
enum Step {
    /// The new entry is being kept; then it is installed.
    Persisting { token: Token, entry: Box<Entry>, operation: Option<OperationId> },
    /// The entry is being kept, and holds already.
    Remembering { token: Token, operation: OperationId },
    /// The kept entry and the credentials are being deleted.
    Unpersisting { token: Token, why: Removal },
    /// A scope is ending.
    Closing { scope: ScopeId, then: Then },
    /// Everything else that is kept of the host is being deleted; then the entry is kept that was
    /// held up by it, if there is one.
    Clearing { token: Token, operation: Option<OperationId>, then: Option<Box<Entry>> },
}

/// Why a registration goes.
#[derive(Debug, Clone, Copy)]
enum Removal {
    /// A person asked for it, and is told if it does not work.
    Asked(OperationId),
    /// Its platform has it no longer, or not for this user. Nothing holds that up.
    Vanished,
}

/// What comes after the end of a scope.
#[derive(Debug)]
enum Then {
    /// The entry that replaces the one of the scope.
    Install { entry: Box<Entry>, operation: Option<OperationId> },
    /// The registration goes.
    Drop { operation: Option<OperationId> },
    /// Nothing: the registry ends.
    Rest,
}

/// What the store has of the entry that holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kept {
    /// The same, as far as is known.
    Current,
    /// An older one: keeping this one failed, and is tried again when something is asked.
    Older,
    /// The pairing that this environment shadows, with its credentials; likewise.
    Pairing,
}

/// One host.
#[derive(Debug)]
pub(super) struct Slot {
    host: HostId,
    entry: Option<Entry>,
    kept: Kept,
    /// The scope that is open and was not told to close.
    scope: Option<ScopeId>,
    /// Every scope of this registration has a higher number, every one of an earlier registration
    /// of the host a lower one.
    since: ScopeId,
    step: Option<Step>,
    wish: Option<Wish>,
    queue: VecDeque<(OperationId, Operation)>,
    /// Data of an earlier registration are still there. They may be another user's, so nothing is
    /// registered over them.
    uncleared: bool,
}

impl Slot {
    pub(super) const fn new(host: HostId) -> Self {
        Self {
            host,
            entry: None,
            kept: Kept::Current,
            scope: None,
            since: ScopeId(0),
            step: None,
            wish: None,
            queue: VecDeque::new(),
            uncleared: false,
        }
    }

    pub(super) const fn entry(&self) -> Option<&Entry> {
        self.entry.as_ref()
    }

    pub(super) const fn scope(&self) -> Option<ScopeId> {
        self.scope
    }

    pub(super) const fn since(&self) -> ScopeId {
        self.since
    }

    /// Whether there is nothing left to know of the host.
    pub(super) fn is_vacant(&self) -> bool {
        self.entry.is_none() && !self.uncleared && self.is_idle()
    }

    /// Whether nothing is under way, and nothing waits.
    pub(super) fn is_idle(&self) -> bool {
        self.step.is_none() && self.wish.is_none() && self.queue.is_empty()
    }

    /// Whether another operation may wait.
    pub(super) fn has_room(&self) -> bool {
        self.queue.len() < QUEUE_MAX
    }

    /// Whether what this scope brings may still be written: while it is open, and while it ends
    /// and its host stays.
    pub(super) fn accepts(&self, scope: ScopeId) -> bool {
        let ending = match &self.step {
            Some(Step::Closing { scope, then: Then::Install { .. } | Then::Rest }) => Some(*scope),
            Some(
                Step::Closing { then: Then::Drop { .. }, .. }
                | Step::Persisting { .. }
                | Step::Remembering { .. }
                | Step::Unpersisting { .. }
                | Step::Clearing { .. },
            )
            | None => None,
        };
        self.scope == Some(scope) || ending == Some(scope)
    }

    /// The account whose environment this is, as far as has been decided: what a list said counts
    /// before it is done, and one that is on its way out is nobody's.
    pub(super) fn claim(&self) -> Option<&Account> {
        match (&self.wish, &self.step) {
            (Some(Wish::Present(entry)), _)
            | (
                None,
                Some(
                    Step::Persisting { entry, .. }
                    | Step::Closing { then: Then::Install { entry, .. }, .. }
                    | Step::Clearing { then: Some(entry), .. },
                ),
            ) => entry.target.account(),
            (Some(Wish::Absent), _)
            | (
                None,
                Some(
                    Step::Unpersisting { why: Removal::Vanished, .. }
                    | Step::Closing { then: Then::Drop { .. }, .. }
                    | Step::Clearing { then: None, .. },
                ),
            ) => None,
            (
                None,
                Some(
                    Step::Unpersisting { why: Removal::Asked(_), .. }
                    | Step::Closing { then: Then::Rest, .. }
                    | Step::Remembering { .. },
                )
                | None,
            ) => self.entry.as_ref().and_then(|entry| entry.target.account()),
        }
    }
}
