//! The hosts that this client knows, one connection scope each.
//!
//! # What is decided here
//!
//! Which hosts there are, and when a scope begins and ends. A host has at most one scope, and a
//! scope one socket: a scope is opened only when the one before has told that nothing of it runs
//! any more. What becomes of the connection inside a scope is the supervisor's.
//!
//! # What can happen at once
//!
//! All that is done for one host is a row: an entry is kept before it is installed, a scope ends
//! before its data are deleted, and they are deleted before the host is registered again. While one
//! step is awaited, what is asked waits behind it. Different hosts never wait for each other.
//!
//! A person's operations are done in the order in which they were asked. What a platform's list
//! says is no operation but a wish: only the latest counts, so no row of lists builds up behind a
//! slow disk.
//!
//! # Late answers
//!
//! Answers carry the token or the scope that they belong to. The registry drops those that nothing
//! waits for, and [`Registry::accepts`] tells everybody else whether a scope may still write.
//! Between the two steps of a removal the store keeps a note, so that a client that ends in
//! between clears the rest at its next start.
//!
//! # What waits without a deadline
//!
//! Nothing here has a clock. Whoever keeps entries and ends scopes bounds that work and answers
//! also when it failed. If an answer never came, its host alone would stand still, and refuse what
//! is asked beyond [`QUEUE_MAX`] as busy.

mod action;
mod commands;
mod entry;
mod operation;
mod platform;
mod slot;

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};

use wakeful_wire::{HostId, UserName};

pub use action::{Action, Change, Following, OperationId, Refusal, ScopeId, Token};
pub use entry::{Account, Entry, LABEL_MAX, Target};
pub use slot::QUEUE_MAX;

use crate::{Network, route::Address};
use slot::{Shared, Slot};

/// The most hosts of a client, those on their way out included.
pub const HOSTS_MAX: usize = 1_000;

/// What was kept, as it is read at the start. An unreadable store is not an empty one: whoever
/// cannot read it starts nothing.
#[derive(Debug, Clone, Default)]
pub struct Persisted {
    /// The entries, each host once.
    pub entries: Vec<Entry>,
    /// Hosts whose entry was deleted and whose data are still to be cleared. At most [`HOSTS_MAX`]
    /// are taken; the store has the others at the next start.
    pub uncleared: Vec<HostId>,
    /// Who is signed in, at most one user of each platform. Environments of anybody else go, with
    /// their data: the account changed while this client was not running.
    pub accounts: Vec<Account>,
}

/// The hosts that this client knows.
///
/// The commands and `handle_…` take in what is asked and what happened, `poll_action` gives out
/// what is to be done, and everything else reads. After each call, poll until nothing is left.
#[derive(Debug, Default)]
pub struct Registry {
    slots: BTreeMap<HostId, Slot>,
    accounts: BTreeMap<Address, UserName>,
    shared: Shared,
    started: bool,
    network: Network,
}

impl Registry {
    /// A registry that has not started.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes what was kept, and opens a scope for every host that is enabled, all at once. A second
    /// start, and one after the end, does nothing.
    pub fn start(&mut self, persisted: Persisted) {
        if self.started || self.shared.closed {
            return;
        }
        self.started = true;
        self.accounts =
            persisted.accounts.into_iter().map(|one| (one.platform, one.user)).collect();
        let mut entries = BTreeMap::new();
        let mut over_limit = 0;
        for entry in persisted.entries {
            if entries.len() == HOSTS_MAX && !entries.contains_key(&entry.host) {
                over_limit += 1;
            } else {
                entries.entry(entry.host).or_insert_with(|| entry.bounded());
            }
        }
        if over_limit > 0 {
            let contested = BTreeSet::new();
            self.shared.publish(Change::LeftOut { platform: None, over_limit, contested });
        }
        let uncleared: BTreeSet<HostId> = persisted.uncleared.into_iter().take(HOSTS_MAX).collect();
        let hosts: BTreeSet<HostId> = entries.keys().chain(&uncleared).copied().collect();
        for host in hosts {
            let entry = entries.remove(&host);
            let account = entry.as_ref().and_then(|entry| entry.target.account());
            let foreign =
                account.is_some_and(|one| self.accounts.get(&one.platform) != Some(&one.user));
            let slot = self.slots.entry(host).or_insert_with(|| Slot::new(host));
            if foreign {
                slot.forget(&mut self.shared);
            } else {
                slot.restore(entry, uncleared.contains(&host), &mut self.shared);
            }
        }
    }

    /// Ends everything: scopes close, what waits is refused, and nothing is begun any more, also
    /// not by answers that come later. What is under way is brought to its end.
    pub fn close(&mut self) {
        self.shared.closed = true;
        for slot in self.slots.values_mut() {
            slot.advance(&mut self.shared);
        }
    }

    /// Whether the registry was ended, and nothing of it runs any more.
    #[must_use]
    pub fn is_closed(&self) -> bool {
        self.shared.closed
            && self.slots.values().all(|slot| slot.is_idle() && slot.scope().is_none())
    }

    /// The entry of a [`Action::Persist`] is kept, or is not, for a reason in words for people.
    /// False if that was not awaited.
    pub fn handle_persisted(&mut self, token: Token, result: Result<(), String>) -> bool {
        self.answer(token.host, |slot, shared| slot.persisted(token, result, shared))
    }

    /// The entry of an [`Action::Unpersist`] is deleted, or is not, for a reason in words for
    /// people. False if that was not awaited.
    pub fn handle_unpersisted(&mut self, token: Token, result: Result<(), String>) -> bool {
        self.answer(token.host, |slot, shared| slot.unpersisted(token, result, shared))
    }

    /// Nothing of a scope runs any more, after [`Action::Close`]. False if that was not awaited.
    pub fn handle_closed(&mut self, host: HostId, scope: ScopeId) -> bool {
        self.answer(host, |slot, shared| slot.closed(scope, shared))
    }

    /// The data of an [`Action::Clear`] are deleted, or are not, for a reason in words for people.
    /// False if that was not awaited.
    pub fn handle_cleared(&mut self, token: Token, result: Result<(), String>) -> bool {
        self.answer(token.host, |slot, shared| slot.cleared(token, result, shared))
    }

    /// What the device says of its network. It is published if it is something else than before,
    /// whether or not there is any host.
    pub fn handle_network(&mut self, network: Network) {
        if self.network != network {
            self.network = network;
            self.shared.publish(Change::Network(network));
        }
    }

    /// The next thing to be done, oldest first.
    pub fn poll_action(&mut self) -> Option<Action> {
        self.shared.actions.pop_front()
    }

    /// What the device said last of its network.
    #[must_use]
    pub const fn network(&self) -> Network {
        self.network
    }

    /// The hosts that are registered, by id.
    pub fn entries(&self) -> impl Iterator<Item = &Entry> {
        self.slots.values().filter_map(Slot::entry)
    }

    /// What holds of a host.
    ///
    /// # Errors
    /// [`Refusal::NotRegistered`].
    pub fn entry(&self, host: HostId) -> Result<&Entry, Refusal> {
        self.slots.get(&host).and_then(Slot::entry).ok_or(Refusal::NotRegistered)
    }

    /// The scope that is open for a host. None while one takes over from another, and for a host
    /// that is not enabled.
    ///
    /// # Errors
    /// [`Refusal::NotRegistered`].
    pub fn scope(&self, host: HostId) -> Result<Option<ScopeId>, Refusal> {
        self.entry(host)?;
        Ok(self.slots.get(&host).and_then(Slot::scope))
    }

    /// Where somebody stands who has read `host` up to the scope `seen`, or has just begun. Whoever
    /// comes late is told the scope that is open now.
    #[must_use]
    pub fn follow(&self, host: HostId, seen: Option<ScopeId>) -> Following {
        let Some(slot) = self.slots.get(&host).filter(|slot| slot.entry().is_some()) else {
            return Following::Ended;
        };
        if seen.is_some_and(|seen| seen < slot.since()) {
            return Following::Ended;
        }
        match slot.scope() {
            None => Following::Between,
            Some(scope) if seen == Some(scope) => Following::Current,
            Some(scope) => Following::Moved(scope),
        }
    }

    /// Whether what a scope brings may be written: a renewed credential, a list, a thread. Not any
    /// more once its successor is open, or its host removed.
    #[must_use]
    pub fn accepts(&self, host: HostId, scope: ScopeId) -> bool {
        self.slots.get(&host).is_some_and(|slot| slot.accepts(scope))
    }

    fn answer(&mut self, host: HostId, take: impl FnOnce(&mut Slot, &mut Shared) -> bool) -> bool {
        let Some(slot) = self.slots.get_mut(&host) else {
            return false;
        };
        let awaited = take(slot, &mut self.shared);
        self.forget_if_vacant(host);
        awaited
    }

    fn forget_if_vacant(&mut self, host: HostId) {
        if self.slots.get(&host).is_some_and(Slot::is_vacant) {
            self.slots.remove(&host);
        }
    }
}
