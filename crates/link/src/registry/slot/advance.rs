//! What is begun for a host, one thing after the other.

use super::{Kept, Removal, Shared, Slot, Step, Then};
use crate::{
    registry::{
        Action, Entry, OperationId, Refusal, Target, Token,
        operation::{Operation, RouteChange, Wish},
    },
    route::RoutesError,
};

impl Slot {
    /// Takes what is kept: perhaps an entry, and perhaps a note that the data of an earlier
    /// registration are still to be cleared.
    pub(in crate::registry) fn restore(
        &mut self,
        entry: Option<Entry>,
        uncleared: bool,
        shared: &mut Shared,
    ) {
        match entry {
            Some(entry) if !uncleared => self.install(entry, None, shared),
            entry => self.clear(None, entry, shared),
        }
    }

    /// Deletes what is kept of a host that nobody here has a right to. It is never installed.
    pub(in crate::registry) fn forget(&mut self, shared: &mut Shared) {
        self.unpersist(Removal::Vanished, shared);
    }

    /// What a platform's list says. It replaces what an earlier one said and was not begun, and
    /// goes before everything that waits.
    pub(in crate::registry) fn wish(&mut self, wish: Wish, shared: &mut Shared) {
        self.wish = Some(wish);
        self.advance(shared);
    }

    /// Puts an operation behind those that wait. The caller has looked whether there is room.
    pub(in crate::registry) fn ask(
        &mut self,
        id: OperationId,
        operation: Operation,
        shared: &mut Shared,
    ) {
        self.queue.push_back((id, operation));
        self.advance(shared);
    }

    /// Begins what is next, if nothing is under way.
    pub(in crate::registry) fn advance(&mut self, shared: &mut Shared) {
        while self.step.is_none() {
            if shared.closed {
                self.rest(shared);
                return;
            }
            if let Some(wish) = self.wish.take() {
                self.follow_wish(wish, shared);
            } else if let Some((id, operation)) = self.queue.pop_front() {
                self.begin(id, operation, shared);
            } else {
                return;
            }
        }
    }

    /// The registry ends: what has not begun never will, and the scope is closed.
    fn rest(&mut self, shared: &mut Shared) {
        self.wish = None;
        while let Some((id, _)) = self.queue.pop_front() {
            self.finish(id, Err(Refusal::NotRunning), shared);
        }
        if let Some(scope) = self.scope.take() {
            self.close(scope, Then::Rest, shared);
        }
    }

    fn follow_wish(&mut self, wish: Wish, shared: &mut Shared) {
        let account = self.entry.as_ref().and_then(|entry| entry.target.account());
        match wish {
            Wish::Absent => {
                if account.is_some() {
                    self.unpersist(Removal::Vanished, shared);
                }
            }
            Wish::Present(mut listed) => {
                if account.is_some() && account != listed.target.account() {
                    // Lists, drafts and queued messages of one user are never another's: the
                    // registration goes with everything before the wish is looked at again.
                    self.wish = Some(Wish::Present(listed));
                    self.unpersist(Removal::Vanished, shared);
                    return;
                }
                // A list knows neither of the two.
                if let Some(known) = &self.entry {
                    listed.enabled = known.enabled;
                    listed.paused = known.paused;
                }
                if !self.has(&listed) {
                    self.persist(*listed, None, shared);
                }
            }
        }
    }

    fn begin(&mut self, id: OperationId, operation: Operation, shared: &mut Shared) {
        let managed = self.entry.as_ref().is_some_and(|entry| entry.target.account().is_some());
        match operation {
            Operation::Register(_) | Operation::Remove | Operation::Routes(_) if managed => {
                self.finish(id, Err(Refusal::Managed), shared);
            }
            Operation::Register(entry) => self.replace(id, *entry, shared),
            Operation::Remove if self.entry.is_none() => self.finish(id, Ok(()), shared),
            Operation::Remove => self.unpersist(Removal::Asked(id), shared),
            Operation::Pause(paused) => self.pause(id, paused, shared),
            Operation::Enable(enabled) => match self.entry.clone() {
                None => self.finish(id, Err(Refusal::NotRegistered), shared),
                Some(entry) => self.replace(id, Entry { enabled, ..entry }, shared),
            },
            Operation::Routes(change) => self.change_routes(id, change, shared),
        }
    }

    /// Whether an entry is the one that holds, and is kept.
    fn has(&self, entry: &Entry) -> bool {
        self.kept == Kept::Current && self.entry.as_ref() == Some(entry)
    }

    /// Whether to keep this entry is to put an environment in the place of a pairing.
    fn is_shadowed_by(&self, entry: &Entry) -> bool {
        let is_pairing = |known: &Entry| known.target.account().is_none();
        entry.target.account().is_some()
            && (self.kept == Kept::Pairing || self.entry.as_ref().is_some_and(is_pairing))
    }

    /// Installs an entry that could not be kept.
    pub(super) fn install_unkept(&mut self, entry: Entry, shared: &mut Shared) {
        self.kept = if self.is_shadowed_by(&entry) { Kept::Pairing } else { Kept::Older };
        self.install(entry, None, shared);
    }

    /// Keeps and installs an entry, unless it is the one that is there.
    fn replace(&mut self, id: OperationId, entry: Entry, shared: &mut Shared) {
        if self.has(&entry) {
            self.finish(id, Ok(()), shared);
        } else {
            self.persist(entry, Some(id), shared);
        }
    }

    /// A pause holds at once: a person who wants no connection does not wait for a disk.
    fn pause(&mut self, id: OperationId, paused: bool, shared: &mut Shared) {
        let Some(entry) = self.entry.as_mut() else {
            return self.finish(id, Err(Refusal::NotRegistered), shared);
        };
        if entry.paused == paused && self.kept == Kept::Current {
            return self.finish(id, Ok(()), shared);
        }
        entry.paused = paused;
        let entry = entry.clone();
        self.update(entry.clone(), shared);
        let token = self.token(shared);
        let drop_credentials = self.kept == Kept::Pairing;
        shared.actions.push_back(Action::Persist { token, entry, drop_credentials });
        self.step = Some(Step::Remembering { token, operation: id });
    }

    fn change_routes(&mut self, id: OperationId, change: RouteChange, shared: &mut Shared) {
        let Some(mut entry) = self.entry.clone() else {
            return self.finish(id, Err(Refusal::NotRegistered), shared);
        };
        let Target::Paired { routes } = &mut entry.target else {
            return self.finish(id, Err(Refusal::Managed), shared);
        };
        let (changed, removes) = match change {
            RouteChange::Add(route) => (routes.add(route), false),
            RouteChange::Remove(address) => (routes.remove(&address), true),
            RouteChange::Order(order) => (routes.reorder(&order), false),
        };
        match changed {
            Ok(()) => self.replace(id, entry, shared),
            Err(RoutesError::None) if removes => self.unpersist(Removal::Asked(id), shared),
            Err(error) => self.finish(id, Err(Refusal::Routes(error)), shared),
        }
    }

    pub(super) fn persist(
        &mut self,
        entry: Entry,
        operation: Option<OperationId>,
        shared: &mut Shared,
    ) {
        if self.uncleared {
            return self.clear(operation, Some(entry), shared);
        }
        let drop_credentials = self.is_shadowed_by(&entry);
        let token = self.token(shared);
        shared.actions.push_back(Action::Persist { token, entry: entry.clone(), drop_credentials });
        self.step = Some(Step::Persisting { token, entry: Box::new(entry), operation });
    }

    fn unpersist(&mut self, why: Removal, shared: &mut Shared) {
        let token = self.token(shared);
        shared.actions.push_back(Action::Unpersist { token });
        self.step = Some(Step::Unpersisting { token, why });
    }

    pub(super) const fn token(&self, shared: &mut Shared) -> Token {
        Token { host: self.host, number: shared.number() }
    }

    pub(super) fn end(&self, operation: Option<OperationId>, shared: &mut Shared) {
        if let Some(id) = operation {
            self.finish(id, Ok(()), shared);
        }
    }

    pub(super) fn finish(
        &self,
        operation: OperationId,
        outcome: Result<(), Refusal>,
        shared: &mut Shared,
    ) {
        shared.actions.push_back(Action::Finish { host: self.host, operation, outcome });
    }
}
