//! A client: all of its hosts and platforms, one budget, one set of lists.
//!
//! The shell around it carries [`Effect`]s out, brings back what came of them, and passes on what
//! the device says. Views read the link and are told what changed.
//!
//! After each call of a `handle_…` or a command the shell empties [`Link::poll_effect`], and calls
//! [`Link::handle_timeout`] no later than at [`Link::poll_timeout`].

mod people;
mod platforms;
mod scopes;
mod shelled;
mod views;

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use wakeful_wire::HostId;

use crate::{
    Chance, ConnectionPhase, Instant, Network,
    authorization::Secret,
    effect::{At, Change, Effect},
    host::{HostLink, Options, Wish},
    registry::{Account, Persisted, Registry, ScopeId},
    route::Address,
    shell::ShellList,
    steady::{self, Steady},
    supervisor::{Budget, Foreground, Input},
};

use self::platforms::Followed;

/// A client.
#[derive(Debug)]
pub struct Link {
    options: Options,
    chance: Chance,
    registry: Registry,
    hosts: BTreeMap<HostId, Held>,
    /// Refresh tokens of paired hosts, for the scopes that are opened.
    secrets: BTreeMap<HostId, Secret>,
    platforms: BTreeMap<Address, Followed>,
    budget: Budget,
    steady: Steady<ShellList>,
    /// If there, other hosts are not connected to by this client, though they are known.
    focus: Option<BTreeSet<HostId>>,
    network: Network,
    drawn: u64,
    lists: BTreeMap<u64, (Address, crate::platform::StreamId)>,
    effects: VecDeque<Effect>,
}

/// A host's scope, and whether it is on its way out.
#[derive(Debug)]
struct Held {
    link: HostLink,
    phase: ConnectionPhase,
    closing: bool,
}

impl Link {
    /// A client that has not started. `seed` is drawn by the shell, so that no two clients wait
    /// alike; where two shells draw the same, their keys still differ.
    #[must_use]
    pub fn new(now: Instant, seed: u64, options: Options) -> Self {
        // FNV-1a: the key is public, and only has to make a difference.
        let of_key = options.key.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
        });
        Self {
            options,
            chance: Chance::seeded(seed ^ of_key),
            registry: Registry::new(),
            hosts: BTreeMap::new(),
            secrets: BTreeMap::new(),
            platforms: BTreeMap::new(),
            budget: Budget::new(now),
            steady: Steady::new(now),
            focus: None,
            network: Network::Unknown,
            drawn: 0,
            lists: BTreeMap::new(),
            effects: VecDeque::new(),
        }
    }

    /// Connects to these hosts alone, though all are known: for a client that shows one of them.
    /// To be called before [`Self::start`].
    pub fn focus(&mut self, hosts: impl IntoIterator<Item = HostId>) {
        self.focus = Some(hosts.into_iter().collect());
    }

    /// Begins with what was kept. `secrets` are the refresh tokens of paired hosts.
    pub fn start(
        &mut self,
        now: Instant,
        persisted: Persisted,
        secrets: impl IntoIterator<Item = (HostId, Secret)>,
    ) {
        self.secrets.extend(secrets);
        let accounts = persisted.accounts.clone();
        let enabled: Vec<HostId> =
            persisted.entries.iter().filter(|one| one.enabled).map(|one| one.host).collect();
        self.registry.start(persisted);
        self.steady.handle_enabled(now, enabled);
        for account in accounts {
            self.follow_platform(now, account);
        }
        self.settle(now);
    }

    /// Ends everything. What has changed is stored; [`Self::is_closed`] says when it is.
    pub fn close(&mut self, now: Instant) {
        for followed in self.platforms.values_mut() {
            followed.platform.handle_unwanted();
        }
        self.registry.close();
        self.settle(now);
    }

    /// Whether nothing runs any more.
    #[must_use]
    pub fn is_closed(&self) -> bool {
        self.registry.is_closed() && self.effects.is_empty()
    }

    /// What is to be done next.
    pub fn poll_effect(&mut self) -> Option<Effect> {
        self.effects.pop_front()
    }

    /// When to call [`Self::handle_timeout`] at the latest.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Instant> {
        let hosts = self.hosts.values().map(|held| held.link.poll_timeout());
        let platforms = self.platforms.values().map(|followed| followed.platform.poll_timeout());
        Instant::earliest(
            hosts.chain(platforms).chain([self.budget.poll_timeout(), self.steady.poll_timeout()]),
        )
    }

    /// Time has passed. Harmless at any moment.
    pub fn handle_timeout(&mut self, now: Instant) {
        self.budget.handle_timeout(now);
        self.steady.handle_timeout(now);
        for followed in self.platforms.values_mut() {
            followed.platform.handle_timeout(now);
        }
        let due: Vec<HostId> = self
            .hosts
            .iter()
            .filter(|(_, held)| held.link.poll_timeout().is_some_and(|at| at <= now))
            .map(|(host, _)| *host)
            .collect();
        for host in due {
            self.with(now, host, |link| link.handle_timeout(now));
        }
        self.settle(now);
    }

    /// What the device says of its network.
    pub fn handle_network(&mut self, now: Instant, network: Network) {
        self.network = network;
        self.registry.handle_network(network);
        for followed in self.platforms.values_mut() {
            followed.platform.handle_network(now, network);
        }
        self.signal(now, &Input::Network(network));
    }

    /// The way into the network is another one.
    pub fn handle_path_changed(&mut self, now: Instant) {
        self.signal(now, &Input::PathChanged);
    }

    /// The client came to the foreground, or the device back from a suspension.
    pub fn handle_foreground(&mut self, now: Instant, foreground: Foreground) {
        for followed in self.platforms.values_mut() {
            followed.platform.handle_foreground(now, foreground);
        }
        self.signal(now, &Input::Foreground(foreground));
    }

    fn signal(&mut self, now: Instant, input: &Input) {
        for host in self.hosts.keys().copied().collect::<Vec<_>>() {
            self.with(now, host, |link| link.supervise(now, input.clone()));
        }
        self.settle(now);
    }

    /// Lets a host take something in, and carries on what follows from it.
    fn with<R>(
        &mut self,
        now: Instant,
        host: HostId,
        take: impl FnOnce(&mut HostLink) -> R,
    ) -> Option<R> {
        let held = self.hosts.get_mut(&host)?;
        let taken = take(&mut held.link);
        self.drain(now, host);
        Some(taken)
    }

    /// The same for one scope of it; nothing if that is over.
    fn with_scope<R>(
        &mut self,
        now: Instant,
        at: At,
        take: impl FnOnce(&mut HostLink) -> R,
    ) -> Option<R> {
        let current = self.hosts.get(&at.host).is_some_and(|held| held.link.at() == at);
        let taken = if current { self.with(now, at.host, take) } else { None };
        self.settle(now);
        taken
    }

    /// Carries on what a host said.
    fn drain(&mut self, now: Instant, host: HostId) {
        let Some(held) = self.hosts.get_mut(&host) else { return };
        while let Some(wish) = held.link.poll_wish() {
            match wish {
                Wish::Want { attempt, urgent } => self.budget.want(now, host, attempt, urgent),
                Wish::Done { attempt } => self.budget.finished(now, host, attempt),
            }
        }
        while let Some(effect) = held.link.poll_effect() {
            self.effects.push_back(effect);
        }
        let phase = held.link.connection().phase;
        let connected = phase == ConnectionPhase::Connected;
        let came = connected && held.phase != phase;
        held.phase = phase;
        if !held.closing {
            self.steady.handle_host(now, host, held.link.seen());
            if held.link.is_cache_read() {
                self.steady.handle_cache_read(now, host);
            }
        }
        if came {
            self.handle_reached(now, host);
        }
    }

    /// A host was reached: others on the same way can probably be reached as well.
    fn handle_reached(&mut self, now: Instant, host: HostId) {
        let Ok(entry) = self.registry.entry(host) else { return };
        let Some(account) = entry.target.account().cloned() else { return };
        self.signal_platform(now, &account.platform, Some(host), &Input::Reachable);
    }

    /// Carries everything on, until nothing is left to be said.
    fn settle(&mut self, now: Instant) {
        loop {
            if let Some((host, attempt)) = self.budget.poll_granted() {
                self.with(now, host, |link| link.supervise(now, Input::Granted { attempt }));
            } else if let Some(action) = self.registry.poll_action() {
                self.register_action(now, action);
            } else if let Some((platform, action)) = self.next_of_platforms() {
                self.carry_platform(now, &platform, action);
            } else if let Some(action) = self.steady.poll_action() {
                let (steady::Action::Changed(_) | steady::Action::Paint) = action;
                self.tell(Change::Lists);
            } else if !self.end_closed(now) {
                break;
            }
        }
    }

    fn tell(&mut self, change: Change) {
        let told = Effect::Tell(change);
        if !self.effects.contains(&told) {
            self.effects.push_back(told);
        }
    }

    fn account_of(&self, platform: &Address) -> Option<Account> {
        let user = self.registry.user(platform)?.clone();
        Some(Account { platform: platform.clone(), user })
    }

    /// The host whose scope this is.
    fn host_of(&self, scope: ScopeId) -> Option<At> {
        self.hosts.values().map(|held| held.link.at()).find(|at| at.scope == scope)
    }
}
