//! What the parent answers for a host.
//!
//! Each answer is taken once, by the step that waits for it, and then the next thing is begun. All
//! of these say whether the answer was awaited; one that was not changes nothing.

use super::{Kept, Removal, Shared, Slot, Step, Then};
use crate::registry::{Change, OperationId, Refusal, ScopeId, Token};

impl Slot {
    pub(in crate::registry) fn persisted(
        &mut self,
        answered: Token,
        result: Result<(), String>,
        shared: &mut Shared,
    ) -> bool {
        match self.step.take() {
            Some(Step::Persisting { token, entry, operation }) if token == answered => {
                match (result, operation) {
                    (Ok(()), _) => {
                        self.kept = Kept::Current;
                        self.install(*entry, operation, shared);
                    }
                    (Err(detail), Some(id)) => {
                        self.finish(id, Err(Refusal::Unkept(detail)), shared);
                    }
                    // The platform's list is what counts, and it is read again after each start.
                    (Err(detail), None) => {
                        self.unkept(detail, shared);
                        self.install_unkept(*entry, shared);
                    }
                }
            }
            Some(Step::Remembering { token, operation }) if token == answered => {
                self.kept = match (&result, self.kept) {
                    (Ok(()), _) => Kept::Current,
                    (Err(_), Kept::Pairing) => Kept::Pairing,
                    (Err(_), Kept::Current | Kept::Older) => Kept::Older,
                };
                self.finish(operation, result.map_err(Refusal::Unkept), shared);
            }
            other => return self.unawaited(other),
        }
        self.advance(shared);
        true
    }

    pub(in crate::registry) fn unpersisted(
        &mut self,
        answered: Token,
        result: Result<(), String>,
        shared: &mut Shared,
    ) -> bool {
        match self.step.take() {
            Some(Step::Unpersisting { token, why }) if token == answered => match (result, why) {
                (Ok(()), Removal::Asked(id)) => self.tear_down(Some(id), shared),
                (Ok(()), Removal::Vanished) => self.tear_down(None, shared),
                // What is still kept comes back at the next start; so nothing else of it goes.
                (Err(detail), Removal::Asked(id)) => {
                    self.finish(id, Err(Refusal::Unkept(detail)), shared);
                }
                // Whoever has signed out, or deleted an environment, is not shown it because of a
                // full disk. What is kept is found again at the next start, as nobody's.
                (Err(detail), Removal::Vanished) => {
                    self.unkept(detail, shared);
                    self.tear_down(None, shared);
                }
            },
            other => return self.unawaited(other),
        }
        self.advance(shared);
        true
    }

    pub(in crate::registry) fn closed(&mut self, answered: ScopeId, shared: &mut Shared) -> bool {
        match self.step.take() {
            Some(Step::Closing { scope, then }) if scope == answered => match then {
                Then::Install { entry, operation } => self.settle(*entry, operation, shared),
                Then::Drop { operation } => self.clear(operation, None, shared),
                Then::Rest => {}
            },
            other => return self.unawaited(other),
        }
        self.advance(shared);
        true
    }

    pub(in crate::registry) fn cleared(
        &mut self,
        answered: Token,
        result: Result<(), String>,
        shared: &mut Shared,
    ) -> bool {
        match self.step.take() {
            Some(Step::Clearing { token, operation, then }) if token == answered => {
                match (result, then) {
                    (Ok(()), then) => {
                        self.uncleared = false;
                        match then {
                            Some(entry) => self.persist(*entry, operation, shared),
                            None => self.end(operation, shared),
                        }
                    }
                    // The registration is gone, whatever is left of its data.
                    (Err(detail), None) => {
                        self.unkept(detail, shared);
                        self.end(operation, shared);
                    }
                    (Err(detail), Some(_)) => match operation {
                        Some(id) => self.finish(id, Err(Refusal::Unkept(detail)), shared),
                        None => self.unkept(detail, shared),
                    },
                }
            }
            other => return self.unawaited(other),
        }
        self.advance(shared);
        true
    }

    fn unawaited(&mut self, step: Option<Step>) -> bool {
        self.step = step;
        false
    }

    fn tear_down(&mut self, operation: Option<OperationId>, shared: &mut Shared) {
        match self.scope.take() {
            Some(scope) => self.close(scope, Then::Drop { operation }, shared),
            None => self.clear(operation, None, shared),
        }
    }

    fn unkept(&self, detail: String, shared: &mut Shared) {
        shared.publish(Change::Unkept { host: self.host, detail });
    }
}
