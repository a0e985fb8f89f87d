//! What is kept between runs: entries, credentials, lists and threads. One job after another.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use wakeful_wire::{HostId, rpc::ThreadId};

use super::{Happening, World};
use crate::{
    Failure, FailureReason, Instant,
    authorization::{RenewalId, Secret},
    effect::At,
    registry::{Entry, Token},
    shell::CachedShell,
    threads::{Held, StreamId, WriteId},
};

#[derive(Debug)]
pub(super) enum Job {
    LoadShell(At),
    SaveShell(At, Box<CachedShell>),
    LoadThread(At, StreamId),
    SaveThread(At, WriteId, ThreadId, Box<Held>),
    ForgetThread(At, WriteId, ThreadId),
    StoreRefresh(At, RenewalId, Secret),
    ForgetRefresh(At),
    Persist(Token, Box<Entry>, bool),
    Unpersist(Token),
    Clear(Token),
}

/// What is kept.
#[derive(Debug, Default)]
pub(in crate::link::tests) struct Store {
    pub(in crate::link::tests) entries: BTreeMap<HostId, Entry>,
    pub(in crate::link::tests) refresh: BTreeMap<HostId, String>,
    /// The refresh tokens that hosts know.
    pub(super) given: BTreeMap<HostId, String>,
    pub(in crate::link::tests) uncleared: BTreeSet<HostId>,
    pub(in crate::link::tests) lists: BTreeMap<HostId, CachedShell>,
    pub(in crate::link::tests) threads: BTreeMap<(HostId, ThreadId), Held>,
    /// How long a job takes, in milliseconds.
    pub(in crate::link::tests) takes: u64,
    /// Hosts that were cleared; what is written of them afterwards is a ghost.
    pub(in crate::link::tests) cleared: BTreeSet<HostId>,
    jobs: VecDeque<Job>,
}

impl Store {
    /// An entry and a credential that were there before.
    pub(in crate::link::tests) fn keep(&mut self, entry: Entry, refresh: &str) {
        self.refresh.insert(entry.host, refresh.to_owned());
        self.given.insert(entry.host, refresh.to_owned());
        self.entries.insert(entry.host, entry);
    }

    /// A host knows this client no longer.
    pub(in crate::link::tests) fn forget_given(&mut self, host: HostId) {
        self.given.remove(&host);
    }

    /// Whether anything of a host is kept.
    pub(in crate::link::tests) fn has(&self, host: HostId) -> bool {
        self.entries.contains_key(&host)
            || self.refresh.contains_key(&host)
            || self.lists.contains_key(&host)
            || self.threads.keys().any(|(held, _)| *held == host)
            || self.uncleared.contains(&host)
    }

    /// Does what is left to do, for nobody.
    pub(super) fn finish(&mut self) {
        while let Some(job) = self.jobs.pop_front() {
            self.write(&job);
        }
    }

    fn write(&mut self, job: &Job) {
        match job {
            Job::SaveShell(at, list) => {
                assert!(!self.cleared.contains(&at.host), "a list is saved after its removal");
                self.lists.insert(at.host, (**list).clone());
            }
            Job::SaveThread(at, _, thread, held) => {
                assert!(!self.cleared.contains(&at.host), "a thread is saved after its removal");
                self.threads.insert((at.host, *thread), (**held).clone());
            }
            Job::ForgetThread(at, _, thread) => {
                self.threads.remove(&(at.host, *thread));
            }
            Job::StoreRefresh(at, _, token) => {
                if self.entries.contains_key(&at.host) {
                    self.refresh.insert(at.host, token.reveal().to_owned());
                }
            }
            Job::ForgetRefresh(at) => {
                self.refresh.remove(&at.host);
            }
            Job::Persist(_, entry, drop_credentials) => {
                self.cleared.remove(&entry.host);
                self.entries.insert(entry.host, (**entry).clone());
                if *drop_credentials {
                    self.refresh.remove(&entry.host);
                }
            }
            Job::Unpersist(token) => {
                self.entries.remove(&token.host());
                self.refresh.remove(&token.host());
                self.uncleared.insert(token.host());
            }
            Job::Clear(token) => {
                let host = token.host();
                self.lists.remove(&host);
                self.threads.retain(|(held, _), _| *held != host);
                self.uncleared.remove(&host);
                self.cleared.insert(host);
            }
            Job::LoadShell(_) | Job::LoadThread(..) => {}
        }
    }
}

impl World {
    pub(super) fn job(&mut self, job: Job) {
        self.store.jobs.push_back(job);
        let takes = self.store.takes;
        self.later(takes, Happening::Stores);
    }

    /// The oldest job is done.
    pub(super) fn stores(&mut self, now: Instant) {
        let Some(job) = self.store.jobs.pop_front() else { return };
        self.store.write(&job);
        match job {
            Job::LoadShell(at) => {
                let cached = self.store.lists.get(&at.host).cloned();
                self.link.handle_cached_shell(now, at, cached);
            }
            Job::SaveShell(at, _) => self.link.handle_saved_shell(now, at),
            Job::LoadThread(at, stream) => {
                let cached = self.store.threads.get(&(at.host, stream.thread)).cloned();
                self.link.handle_cached_thread(now, at, stream, cached);
            }
            Job::SaveThread(at, write, ..) | Job::ForgetThread(at, write, _) => {
                self.link.handle_written_thread(now, at, write);
            }
            Job::StoreRefresh(at, renewal, _) => {
                let kept = self.store.entries.contains_key(&at.host).then_some(());
                let gone = || Failure::new(FailureReason::Authentication, "no longer paired");
                self.link.handle_stored_refresh(now, at, renewal, kept.ok_or_else(gone));
            }
            Job::ForgetRefresh(_) => {}
            Job::Persist(token, ..) => self.link.handle_persisted(now, token, Ok(())),
            Job::Unpersist(token) => self.link.handle_unpersisted(now, token, Ok(())),
            Job::Clear(token) => self.link.handle_cleared(now, token, Ok(())),
        }
    }
}
