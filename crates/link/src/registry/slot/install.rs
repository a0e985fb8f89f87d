//! Entries that begin to hold, scopes that open and end, registrations that are over.

use super::{Kept, Shared, Slot, Step, Then};
use crate::registry::{Action, Change, Entry, OperationId, ScopeId, operation::Wish};

impl Slot {
    /// Makes an entry the one that holds. A scope that is open goes on under it if the connection
    /// is still one to its target; otherwise it ends before another is opened.
    pub(super) fn install(
        &mut self,
        entry: Entry,
        operation: Option<OperationId>,
        shared: &mut Shared,
    ) {
        let goes_on = entry.enabled
            && self.entry.as_ref().is_some_and(|known| entry.target.continues(&known.target));
        match self.scope {
            Some(_) if goes_on => {
                self.entry = Some(entry.clone());
                self.update(entry, shared);
                self.end(operation, shared);
            }
            Some(scope) => {
                self.scope = None;
                let then = Then::Install { entry: Box::new(entry), operation };
                self.close(scope, then, shared);
                shared.publish(Change::Changed(self.host));
            }
            None => self.settle(entry, operation, shared),
        }
    }

    /// Puts an entry in, and opens its scope, while none is open.
    pub(super) fn settle(
        &mut self,
        entry: Entry,
        operation: Option<OperationId>,
        shared: &mut Shared,
    ) {
        let is_new = self.entry.is_none();
        if is_new {
            self.since = ScopeId(shared.number());
        }
        if entry.enabled && !shared.closed && !self.is_given_up(&entry) {
            let scope = ScopeId(shared.number());
            self.scope = Some(scope);
            let entry = entry.clone();
            shared.actions.push_back(Action::Open { host: self.host, scope, entry });
        }
        self.entry = Some(entry);
        let change = if is_new { Change::Added } else { Change::Changed };
        shared.publish(change(self.host));
        self.end(operation, shared);
    }

    /// Whether this is an environment that is torn down next, because it has vanished meanwhile or
    /// is another user's now. Nobody dials for that time.
    fn is_given_up(&self, entry: &Entry) -> bool {
        let account = entry.target.account();
        account.is_some()
            && match &self.wish {
                Some(Wish::Present(listed)) => listed.target.account() != account,
                Some(Wish::Absent) => true,
                None => false,
            }
    }

    pub(super) fn update(&self, entry: Entry, shared: &mut Shared) {
        if let Some(scope) = self.scope {
            shared.actions.push_back(Action::Update { host: self.host, scope, entry });
        }
        shared.publish(Change::Changed(self.host));
    }

    pub(super) fn close(&mut self, scope: ScopeId, then: Then, shared: &mut Shared) {
        let save = !matches!(then, Then::Drop { .. });
        shared.actions.push_back(Action::Close { host: self.host, scope, save });
        self.step = Some(Step::Closing { scope, then });
    }

    /// The registration is over. Its data are deleted before anything else is begun, so that a new
    /// registration of the same host neither shows them nor loses what it has just loaded.
    pub(super) fn clear(
        &mut self,
        operation: Option<OperationId>,
        then: Option<Entry>,
        shared: &mut Shared,
    ) {
        if self.entry.take().is_some() {
            shared.publish(Change::Removed(self.host));
        }
        self.kept = Kept::Current;
        self.uncleared = true;
        let token = self.token(shared);
        shared.actions.push_back(Action::Clear { token });
        self.step = Some(Step::Clearing { token, operation, then: then.map(Box::new) });
    }
}
