//! What a person asks for, or a program for one.

use wakeful_wire::HostId;

use super::{
    Action, Entry, HOSTS_MAX, OperationId, Refusal, Registry, Slot,
    operation::{Operation, RouteChange},
};
use crate::route::{Address, Route};

impl Registry {
    /// Registers a paired host: the entry is kept, then installed, in place of the one that is
    /// there. An equal one changes nothing. Where the new one has every way to the host that the
    /// old one had, the connection goes on; otherwise the old scope ends before the new one opens.
    ///
    /// # Errors
    /// [`Refusal::Managed`] for environments, [`Refusal::Full`] beyond [`HOSTS_MAX`],
    /// [`Refusal::Busy`], [`Refusal::NotRunning`]. Nothing was begun then.
    pub fn register(&mut self, entry: Entry) -> Result<OperationId, Refusal> {
        self.running()?;
        let known = self.slots.get(&entry.host);
        let claimed = known.is_some_and(|slot| slot.claim().is_some());
        if entry.target.account().is_some() || claimed {
            return Err(Refusal::Managed);
        }
        if known.is_none() && self.slots.len() >= HOSTS_MAX {
            return Err(Refusal::Full);
        }
        let host = entry.host;
        self.slots.entry(host).or_insert_with(|| Slot::new(host));
        self.ask(host, Operation::Register(Box::new(entry.bounded())))
    }

    /// Removes a paired host and everything that is kept of it: first the kept entry and its
    /// credentials, and if that fails nothing else; then its scope, the entry, and its data. None
    /// if no such host is registered.
    ///
    /// # Errors
    /// [`Refusal::Managed`] for environments, [`Refusal::Busy`], [`Refusal::NotRunning`].
    pub fn remove(&mut self, host: HostId) -> Result<Option<OperationId>, Refusal> {
        self.ask_unless_managed(host, Operation::Remove)
    }

    /// Adds a way to a paired host. None if no such host is registered.
    ///
    /// # Errors
    /// As [`remove`](Self::remove).
    pub fn add_route(
        &mut self,
        host: HostId,
        route: Route,
    ) -> Result<Option<OperationId>, Refusal> {
        self.ask_unless_managed(host, Operation::Routes(RouteChange::Add(route)))
    }

    /// Takes away a way to a paired host. The host is removed with its last one. None if no such
    /// host is registered.
    ///
    /// # Errors
    /// As [`remove`](Self::remove).
    pub fn remove_route(
        &mut self,
        host: HostId,
        address: Address,
    ) -> Result<Option<OperationId>, Refusal> {
        self.ask_unless_managed(host, Operation::Routes(RouteChange::Remove(address)))
    }

    /// Puts the ways to a paired host into the order that a person chose. None if no such host is
    /// registered.
    ///
    /// # Errors
    /// As [`remove`](Self::remove).
    pub fn reorder_routes(
        &mut self,
        host: HostId,
        order: Vec<Address>,
    ) -> Result<Option<OperationId>, Refusal> {
        self.ask_unless_managed(host, Operation::Routes(RouteChange::Order(order)))
    }

    /// Ends a host's connection and its attempts. Registration, credentials, caches and drafts
    /// stay, and the pause lasts until [`resume`](Self::resume), also over a new start. It holds
    /// even if it cannot be kept; the operation's end tells so. None if no such host is registered.
    ///
    /// # Errors
    /// [`Refusal::Busy`], [`Refusal::NotRunning`].
    pub fn pause(&mut self, host: HostId) -> Result<Option<OperationId>, Refusal> {
        self.ask_known(host, Operation::Pause(true))
    }

    /// Wants the connection of a paused host again. None if no such host is registered.
    ///
    /// # Errors
    /// As [`pause`](Self::pause).
    pub fn resume(&mut self, host: HostId) -> Result<Option<OperationId>, Refusal> {
        self.ask_known(host, Operation::Pause(false))
    }

    /// Lets a host take part, or not: without, it has no scope, and everything of it is kept. None
    /// if no such host is registered.
    ///
    /// # Errors
    /// As [`pause`](Self::pause).
    pub fn enable(&mut self, host: HostId, enabled: bool) -> Result<Option<OperationId>, Refusal> {
        self.ask_known(host, Operation::Enable(enabled))
    }

    /// Tries a host again now. False, and nothing is done, if it is not registered, paused, or
    /// without a scope at the moment.
    pub fn retry(&mut self, host: HostId) -> bool {
        let slot = self.slots.get(&host);
        let desired = slot.and_then(Slot::entry).is_some_and(Entry::is_desired);
        match slot.and_then(Slot::scope) {
            Some(scope) if desired => {
                self.shared.actions.push_back(Action::Retry { host, scope });
                true
            }
            Some(_) | None => false,
        }
    }

    pub(super) fn running(&self) -> Result<(), Refusal> {
        if self.started && !self.shared.closed { Ok(()) } else { Err(Refusal::NotRunning) }
    }

    fn ask_unless_managed(
        &mut self,
        host: HostId,
        operation: Operation,
    ) -> Result<Option<OperationId>, Refusal> {
        self.running()?;
        if self.slots.get(&host).is_some_and(|slot| slot.claim().is_some()) {
            return Err(Refusal::Managed);
        }
        self.ask_known(host, operation)
    }

    fn ask_known(
        &mut self,
        host: HostId,
        operation: Operation,
    ) -> Result<Option<OperationId>, Refusal> {
        self.running()?;
        // A host that is still on its way in, or out, is asked in its turn.
        let known = self.slots.get(&host).is_some_and(|s| s.entry().is_some() || !s.is_idle());
        if known { self.ask(host, operation).map(Some) } else { Ok(None) }
    }

    fn ask(&mut self, host: HostId, operation: Operation) -> Result<OperationId, Refusal> {
        let slot = self.slots.get_mut(&host).ok_or(Refusal::NotRegistered)?;
        if !slot.has_room() {
            return Err(Refusal::Busy);
        }
        let id = OperationId(self.shared.number());
        slot.ask(id, operation, &mut self.shared);
        self.forget_if_vacant(host);
        Ok(id)
    }
}
