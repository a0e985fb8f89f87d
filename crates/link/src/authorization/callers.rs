//! Who waits for the renewal that is under way.

use std::collections::BTreeMap;

use super::CallerId;

/// Most callers that wait for one host's token at a time. Whoever comes beyond is refused at once:
/// so many can only be a loop.
pub const CALLERS_MAX: usize = 1_024;

#[derive(Debug, Default)]
pub(super) struct Callers {
    next: u64,
    /// Each caller, and whether it wakes a sleeping environment.
    waiting: BTreeMap<CallerId, bool>,
}

impl Callers {
    /// Has a caller wait; nothing if too many do.
    pub(super) fn join(&mut self, wake: bool) -> Option<CallerId> {
        if self.waiting.len() >= CALLERS_MAX {
            return None;
        }
        let caller = CallerId(self.next);
        self.next += 1;
        self.waiting.insert(caller, wake);
        Some(caller)
    }

    pub(super) fn leave(&mut self, caller: CallerId) {
        self.waiting.remove(&caller);
    }

    pub(super) fn any_wakes(&self) -> bool {
        self.waiting.values().any(|wake| *wake)
    }

    /// Everybody, in the order in which they came. Nobody waits afterwards.
    pub(super) fn take(&mut self) -> impl Iterator<Item = CallerId> + use<> {
        std::mem::take(&mut self.waiting).into_keys()
    }

    /// Those that wake nothing. Those that do go on waiting.
    pub(super) fn take_unwaking(&mut self) -> impl Iterator<Item = CallerId> + use<> {
        let (waking, rest) =
            std::mem::take(&mut self.waiting).into_iter().partition(|(_, wake)| *wake);
        self.waiting = waking;
        let rest: BTreeMap<CallerId, bool> = rest;
        rest.into_keys()
    }
}
