//! The registry beside a store, and beside scopes that end when they are told to.

mod ending;
mod late;
mod platform;
#[cfg(not(target_arch = "wasm32"))]
mod properties;
mod register;
mod remove;
mod row;
mod start;

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use uuid::Uuid;
use wakeful_wire::{EnvId, HostId, UserName};

use super::*;
use crate::route::{Route, Routes};

/// What the parent would have: a store, scopes, and what is kept of hosts. Each answer is given by
/// the test, and the two things that must never happen are looked for at every action.
#[derive(Debug, Default)]
pub(super) struct Bench {
    pub(super) registry: Registry,
    /// What waits for an answer, oldest first.
    pub(super) waiting: VecDeque<Action>,
    pub(super) seen: Vec<Action>,
    pub(super) kept: BTreeMap<HostId, Entry>,
    pub(super) notes: BTreeSet<HostId>,
    /// Scopes of which something runs.
    pub(super) running: BTreeMap<HostId, ScopeId>,
    /// Hosts of which something is cached, and by which scope last.
    pub(super) cached: BTreeMap<HostId, ScopeId>,
}

impl Bench {
    pub(super) fn started() -> Self {
        Self::with([], [])
    }

    pub(super) fn with(
        entries: impl IntoIterator<Item = Entry>,
        accounts: impl IntoIterator<Item = Account>,
    ) -> Self {
        let kept = entries.into_iter().map(|entry| (entry.host, entry)).collect();
        let mut bench = Self { kept, ..Self::default() };
        bench.registry.start(Persisted {
            entries: bench.kept.values().cloned().collect(),
            uncleared: Vec::new(),
            accounts: accounts.into_iter().collect(),
        });
        bench.drain();
        bench
    }

    /// Takes what the registry asks for, without answering.
    pub(super) fn drain(&mut self) {
        while let Some(action) = self.registry.poll_action() {
            match &action {
                Action::Open { host, scope, .. } => {
                    let before = self.running.insert(*host, *scope);
                    assert_eq!(before, None, "two scopes of one host");
                    assert!(!self.notes.contains(host), "opened over data of before");
                    self.cached.insert(*host, *scope);
                }
                Action::Update { host, scope, .. } | Action::Retry { host, scope } => {
                    assert_eq!(self.running.get(host), Some(scope), "of a scope that is open");
                }
                Action::Persist { .. }
                | Action::Unpersist { .. }
                | Action::Close { .. }
                | Action::Clear { .. } => {
                    let host = subject(&action);
                    let busy = self.waiting.iter().any(|other| subject(other) == host);
                    assert!(!busy, "two steps of one host at once");
                    self.waiting.push_back(action.clone());
                }
                Action::Finish { .. } | Action::Publish(_) => {}
            }
            self.seen.push(action);
        }
    }

    /// Answers what has waited longest for this host.
    pub(super) fn answer(&mut self, host: HostId, result: Result<(), String>) {
        self.drain();
        let at = self.waiting.iter().position(|action| subject(action) == Some(host)).unwrap();
        let action = self.waiting.remove(at).unwrap();
        let done = result.is_ok();
        let awaited = match action {
            Action::Persist { token, entry, .. } => {
                if done {
                    self.kept.insert(host, entry);
                }
                self.registry.handle_persisted(token, result)
            }
            Action::Unpersist { token } => {
                if done {
                    self.kept.remove(&host);
                    self.notes.insert(host);
                }
                self.registry.handle_unpersisted(token, result)
            }
            Action::Close { scope, save, .. } => {
                if save && self.registry.accepts(host, scope) {
                    self.cached.insert(host, scope);
                }
                self.running.remove(&host);
                self.registry.handle_closed(host, scope)
            }
            Action::Clear { token } => {
                if done {
                    self.cached.remove(&host);
                    self.notes.remove(&host);
                }
                self.registry.handle_cleared(token, result)
            }
            Action::Open { .. }
            | Action::Update { .. }
            | Action::Retry { .. }
            | Action::Finish { .. }
            | Action::Publish(_) => unreachable!("needs no answer"),
        };
        assert!(awaited);
        self.drain();
    }

    /// Answers everything, as if nothing ever failed.
    pub(super) fn settle(&mut self) {
        self.drain();
        while let Some(host) = self.waiting.front().and_then(subject) {
            self.answer(host, Ok(()));
        }
    }

    /// What was asked for since the last look, in words.
    pub(super) fn trace(&mut self) -> Vec<String> {
        self.drain();
        self.seen.drain(..).filter_map(|action| words(&action)).collect()
    }

    pub(super) fn changes(&mut self) -> Vec<Change> {
        self.drain();
        let published = |action| if let Action::Publish(one) = action { Some(one) } else { None };
        self.seen.drain(..).filter_map(published).collect()
    }

    pub(super) fn finished(&self) -> impl Iterator<Item = (OperationId, &Result<(), Refusal>)> {
        self.seen.iter().filter_map(|action| {
            if let Action::Finish { operation, outcome, .. } = action {
                Some((*operation, outcome))
            } else {
                None
            }
        })
    }

    pub(super) fn outcome(&self, id: OperationId) -> Option<Result<(), Refusal>> {
        self.finished().find(|(operation, _)| *operation == id).map(|(_, outcome)| outcome.clone())
    }

    pub(super) fn scope(&self, host: HostId) -> ScopeId {
        self.registry.scope(host).unwrap().unwrap()
    }

    pub(super) fn hosts(&self) -> Vec<HostId> {
        self.registry.entries().map(|entry| entry.host).collect()
    }
}

/// The token that an action is answered with.
pub(super) fn token(action: &Action) -> Option<Token> {
    if let Action::Persist { token, .. } | Action::Unpersist { token } | Action::Clear { token } =
        action
    {
        Some(*token)
    } else {
        None
    }
}

/// The host that an action is about.
pub(super) fn subject(action: &Action) -> Option<HostId> {
    match action {
        Action::Persist { token, .. } | Action::Unpersist { token } | Action::Clear { token } => {
            Some(token.host())
        }
        Action::Open { host, .. }
        | Action::Update { host, .. }
        | Action::Retry { host, .. }
        | Action::Close { host, .. }
        | Action::Finish { host, .. } => Some(*host),
        Action::Publish(_) => None,
    }
}

fn words(action: &Action) -> Option<String> {
    Some(match action {
        Action::Persist { drop_credentials: true, .. } => "persist, drop credentials".to_owned(),
        Action::Persist { .. } => "persist".to_owned(),
        Action::Unpersist { .. } => "unpersist".to_owned(),
        Action::Open { .. } => "open".to_owned(),
        Action::Update { .. } => "update".to_owned(),
        Action::Retry { .. } => "retry".to_owned(),
        Action::Close { save: true, .. } => "close, save".to_owned(),
        Action::Close { .. } => "close".to_owned(),
        Action::Clear { .. } => "clear".to_owned(),
        Action::Finish { outcome: Ok(()), .. } => "done".to_owned(),
        Action::Finish { outcome: Err(_), .. } => "refused".to_owned(),
        Action::Publish(_) => return None,
    })
}

pub(super) fn host(number: u128) -> HostId {
    HostId::from_uuid(Uuid::from_u128(number))
}

pub(super) fn env(number: u128) -> EnvId {
    EnvId::from_uuid(Uuid::from_u128(number))
}

pub(super) fn platform(name: &str) -> Address {
    Address::new(&format!("https://{name}.example")).unwrap()
}

pub(super) fn user(name: &str) -> UserName {
    UserName::new(name).unwrap()
}

pub(super) fn account(at: &str, name: &str) -> Account {
    Account { platform: platform(at), user: user(name) }
}

pub(super) fn route(address: &str) -> Route {
    Route::new(Address::new(address).unwrap())
}

pub(super) fn paired(number: u128, addresses: &[&str]) -> Entry {
    let mut routes = Routes::of(route(addresses[0]));
    for address in &addresses[1..] {
        routes.add(route(address)).unwrap();
    }
    Entry::paired(host(number), format!("host {number}"), routes)
}

pub(super) fn environment(number: u128, at: &str, name: &str) -> Entry {
    Entry::environment(account(at, name), env(number), format!("env {number}"))
}

pub(super) fn list(numbers: impl IntoIterator<Item = u128>) -> Vec<(EnvId, String)> {
    numbers.into_iter().map(|number| (env(number), format!("env {number}"))).collect()
}

pub(super) fn full() -> Result<(), String> {
    Err("disk is full".to_owned())
}

pub(super) fn unkept() -> Refusal {
    Refusal::Unkept("disk is full".to_owned())
}
