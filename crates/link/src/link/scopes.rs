//! Scopes: opened and closed as the registry says.

use wakeful_wire::HostId;

use super::{Held, Link};
use crate::{
    ConnectionPhase, Instant, Network,
    effect::{At, Change, Effect},
    host::HostLink,
    registry::{Action, Entry, ScopeId},
    supervisor::Input,
};

impl Link {
    pub(super) fn register_action(&mut self, now: Instant, action: Action) {
        match action {
            Action::Persist { token, entry, drop_credentials } => {
                let entry = Box::new(entry);
                self.effects.push_back(Effect::Persist { token, entry, drop_credentials });
            }
            Action::Unpersist { token } => self.effects.push_back(Effect::Unpersist { token }),
            // A secret in memory stays: the host may have been paired with anew meanwhile, and
            // without an entry nothing is opened with it.
            Action::Clear { token } => self.effects.push_back(Effect::Clear { token }),
            Action::Open { host, scope, entry } => self.open(now, host, scope, &entry),
            Action::Update { host, scope, entry } => {
                if self.is_current(host, scope) {
                    let entry = self.focused(entry);
                    self.with(now, host, |link| link.update(now, &entry));
                }
            }
            Action::Retry { host, scope } => {
                if self.is_current(host, scope) {
                    self.with(now, host, |link| {
                        link.supervise(now, Input::RetryNow { wake: false });
                    });
                }
            }
            Action::Close { host, scope, save } => {
                if self.is_current(host, scope) {
                    if let Some(held) = self.hosts.get_mut(&host) {
                        held.closing = true;
                    }
                    self.with(now, host, |link| link.close(now, save));
                    self.steady.handle_removed(now, host);
                } else {
                    self.registry.handle_closed(host, scope);
                }
            }
            Action::Finish { host, operation, outcome } => {
                self.tell(Change::Operation { host, operation, outcome });
            }
            Action::Publish(change) => self.tell(Change::Hosts(change)),
        }
    }

    fn is_current(&self, host: HostId, scope: ScopeId) -> bool {
        self.hosts.get(&host).is_some_and(|held| held.link.at() == At { host, scope })
    }

    /// The entry as this client treats it: one that it does not look at is not connected to.
    fn focused(&self, mut entry: Entry) -> Entry {
        entry.paused |= self.focus.as_ref().is_some_and(|focus| !focus.contains(&entry.host));
        entry
    }

    fn open(&mut self, now: Instant, host: HostId, scope: ScopeId, entry: &Entry) {
        let at = At { host, scope };
        let refresh = self.secrets.get(&host).cloned();
        let options = self.options.clone();
        let link = HostLink::open(at, entry, refresh, options, self.chance.split());
        let held = Held { link, phase: ConnectionPhase::Available, closing: false };
        self.hosts.insert(host, held);
        let entry = self.focused(entry.clone());
        let network = self.network;
        let phase = self.phase_of(&entry);
        self.with(now, host, |link| {
            if network != Network::Unknown {
                link.supervise(now, Input::Network(network));
            }
            if let Some(phase) = phase {
                link.supervise(now, Input::Environment(phase));
            }
            if entry.is_desired() {
                link.supervise(now, Input::Connect { wake: false });
            }
        });
    }

    /// Lets go of a scope that has ended and stored what it had. Whether there was one.
    pub(super) fn end_closed(&mut self, now: Instant) -> bool {
        let ended = |held: &&Held| held.closing && held.link.is_stored();
        let Some(at) = self.hosts.values().find(ended).map(|held| held.link.at()) else {
            return false;
        };
        self.drain(now, at.host);
        self.hosts.remove(&at.host);
        self.budget.forget(now, at.host);
        self.steady.handle_removed(now, at.host);
        self.registry.handle_closed(at.host, at.scope);
        true
    }
}
