//! What the gate keeps of one key, and how often it may be asked for.

use std::{sync::Arc, time::Duration};

use wakeful_wire::{Phase, gate::EnsureAnswer};

use super::{Entry, LoadId};

#[derive(Debug)]
pub(super) struct Slot {
    /// The question that is open.
    pub(super) loading: Option<LoadId>,
    /// Whether something happened since that question was put which its answer may not know of,
    /// and which no generation tells.
    pub(super) outdated: bool,
    /// The last answer, dead or alive.
    pub(super) entry: Option<Arc<Entry>>,
    /// The last question that failed.
    pub(super) failed: Option<LoadId>,
    /// Whether the next question has to wait for its turn: always, unless the last one was
    /// answered by "ready". An answer that ran out or died is asked for again at once.
    pub(super) paced: bool,
    /// Questions that may be put without waiting. One comes back each `other_ttl`.
    pub(super) tokens: u8,
    pub(super) refilled: Duration,
}

/// The first question and, when news arrive, one more at once; then one each `other_ttl`.
pub(super) const TOKENS: u8 = 2;

impl Slot {
    pub(super) fn refill(&mut self, now: Duration, pace: Duration) {
        while self.tokens < TOKENS && now >= self.refilled.saturating_add(pace) {
            self.tokens += 1;
            self.refilled = self.refilled.saturating_add(pace);
        }
        if self.tokens == TOKENS {
            self.refilled = now;
        }
    }

    /// Nothing that it says or will say on a question put before now counts any longer.
    pub(super) fn kill(&mut self) {
        self.outdated = true;
        if let Some(entry) = &self.entry {
            entry.kill();
        }
    }

    /// Whether forgetting it loses nothing: no question is open, no answer holds, and the pace at
    /// which it may be asked has no memory any more.
    pub(super) fn is_spent(&self, now: Duration, idle: Duration) -> bool {
        let over = |entry: &Arc<Entry>| !entry.is_live(now);
        self.loading.is_none()
            && self.entry.as_ref().is_none_or(over)
            && now >= self.refilled.saturating_add(idle)
    }
}

/// Whether an event's phase could be news to somebody who got this answer. Steps on the way to
/// ready are not: they would only spend the question that the end of the way is worth.
pub(super) fn worth_asking(phase: Phase, answer: &EnsureAnswer) -> bool {
    match phase {
        Phase::Starting | Phase::Suspending | Phase::Publishing => phase != answer.phase,
        Phase::Ready
        | Phase::Suspended
        | Phase::Frozen
        | Phase::Failed
        | Phase::Disabled
        | Phase::Deleted => true,
    }
}
