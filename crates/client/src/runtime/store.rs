//! What is kept: entries, lists, threads, refresh tokens. One job after another, in the order in
//! which the link asked for them.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::Path,
    sync::Weak,
};

use tokio::sync::{mpsc, oneshot};
use wakeful_link::{
    At, Failure, FailureReason,
    authorization::{RenewalId, Secret},
    registry::{self, Entry, Target},
    route::{Address, Route, Routes},
    shell::CachedShell,
    threads::{Held, StreamId, WriteId},
};
use wakeful_wire::{HostId, Timestamp, rpc::ThreadId};

use super::{Shared, Storing};
use crate::{cache::Cache, clock, credentials::PairedHosts};

/// The name of a host's entry among what belongs to it.
const ENTRY: &str = "entry";

/// Something to read or write.
#[derive(Debug)]
pub(super) enum Job {
    LoadShell {
        at: At,
    },
    /// The list was live until this moment.
    ConfirmShell {
        host: HostId,
        at: Timestamp,
    },
    /// Tells when everything before is done.
    Flush(oneshot::Sender<()>),
    SaveShell {
        at: At,
        shell: Box<CachedShell>,
    },
    LoadThread {
        at: At,
        stream: StreamId,
    },
    SaveThread {
        at: At,
        write: WriteId,
        thread: ThreadId,
        held: Box<Held>,
    },
    ForgetThread {
        at: At,
        write: WriteId,
        thread: ThreadId,
    },
    StoreRefresh {
        at: At,
        renewal: RenewalId,
        refresh_token: Secret,
    },
    ForgetRefresh {
        at: At,
    },
    Persist {
        token: registry::Token,
        entry: Box<Entry>,
        drop_credentials: bool,
    },
    Unpersist {
        token: registry::Token,
    },
    Clear {
        token: registry::Token,
    },
}

/// What was kept.
#[derive(Debug, Default)]
pub(super) struct Kept {
    pub(super) entries: Vec<Entry>,
    pub(super) uncleared: Vec<HostId>,
    pub(super) secrets: Vec<(HostId, Secret)>,
}

/// Where things are kept.
#[derive(Debug)]
pub(super) struct Store {
    cache: Option<Cache>,
    paired: PairedHosts,
}

impl Store {
    pub(super) async fn open(cache: Option<&Path>, paired: PairedHosts) -> anyhow::Result<Self> {
        let cache = match cache {
            None => None,
            Some(directory) => match Cache::open(directory).await {
                Ok(cache) => Some(cache),
                // Without a cache everything works, only later.
                Err(error) => {
                    tracing::warn!(%error, "nothing is cached");
                    None
                }
            },
        };
        Ok(Self { cache, paired })
    }

    /// What was kept before this run. Which hosts are paired with is said by the file of
    /// credentials alone.
    pub(super) async fn kept(&self) -> anyhow::Result<Kept> {
        let (mut stored, mut uncleared) = (BTreeMap::new(), BTreeSet::new());
        if let Some(cache) = &self.cache {
            stored = cache.owned_by_all::<Entry>(ENTRY).await?.into_iter().collect();
            uncleared = cache.doomed().await?.into_iter().collect();
        }
        let mut kept = Kept::default();
        for host in self.paired.list()? {
            let Ok(address) = Address::new(&host.address) else { continue };
            let id = host.host;
            let entry = match stored.remove(&id) {
                Some(entry) if leads_to(&entry, &address) => Entry { enabled: true, ..entry },
                // None yet, or of a pairing before this one.
                stored => Entry {
                    paused: stored.is_some_and(|entry| entry.paused),
                    ..Entry::paired(id, host.name.clone(), Routes::of(Route::new(address)))
                },
            };
            kept.entries.push(Entry { label: host.name, ..entry });
            kept.secrets.push((id, Secret::new(host.refresh_token)));
        }
        for (host, entry) in stored {
            match entry.target {
                Target::Environment { .. } => kept.entries.push(entry),
                // Another program has forgotten it.
                Target::Paired { .. } => drop(uncleared.insert(host)),
            }
        }
        kept.uncleared = uncleared.into_iter().collect();
        Ok(kept)
    }

    /// Begins to take jobs. Ends when nobody can send any more.
    pub(super) fn run(self, shared: Weak<Shared>) -> Storing {
        let (sender, mut jobs) = mpsc::unbounded_channel();
        tokio::spawn(async move {
            while let Some(job) = jobs.recv().await {
                self.carry(&shared, job).await;
            }
        });
        sender
    }

    async fn carry(&self, shared: &Weak<Shared>, job: Job) {
        match job {
            Job::LoadShell { at } => {
                let cached = match &self.cache {
                    Some(cache) => cache.shell(at.host).await.unwrap_or_default(),
                    None => None,
                };
                if let Some(cache) = &self.cache
                    && let Ok(Some(as_of)) = cache.shell_confirmed_at(at.host).await
                    && let Some(shared) = shared.upgrade()
                {
                    shared.freshness.lock().load(at.host, as_of);
                }
                put(shared, |link, now| link.handle_cached_shell(now, at, cached));
            }
            Job::ConfirmShell { host, at } => {
                if let Some(cache) = &self.cache {
                    note(cache.confirm_shell(host, at).await);
                }
            }
            Job::Flush(done) => {
                // Whoever waited may have given up.
                let _unheard = done.send(());
            }
            Job::SaveShell { at, shell } => {
                if let Some(cache) = &self.cache {
                    note(cache.save_shell(at.host, &shell).await);
                    note(cache.confirm_shell(at.host, clock::now()).await);
                }
                put(shared, |link, now| link.handle_saved_shell(now, at));
            }
            Job::LoadThread { at, stream } => {
                let cached = match &self.cache {
                    Some(cache) => {
                        let read = cache.thread(at.host, stream.thread, clock::now()).await;
                        read.unwrap_or_default()
                    }
                    None => None,
                };
                put(shared, |link, now| link.handle_cached_thread(now, at, stream, cached));
            }
            Job::SaveThread { at, write, thread, held } => {
                if let Some(cache) = &self.cache {
                    note(cache.save_thread(at.host, thread, &held, clock::now()).await);
                }
                put(shared, |link, now| link.handle_written_thread(now, at, write));
            }
            Job::ForgetThread { at, write, thread } => {
                if let Some(cache) = &self.cache {
                    note(cache.forget_thread(at.host, thread).await);
                }
                put(shared, |link, now| link.handle_written_thread(now, at, write));
            }
            Job::StoreRefresh { at, renewal, refresh_token } => {
                let stored = match self.paired.renew(at.host, refresh_token.reveal()) {
                    Ok(true) => Ok(()),
                    Ok(false) => {
                        let detail = "This host is no longer paired with.";
                        Err(Failure::new(FailureReason::Authentication, detail))
                    }
                    Err(error) => {
                        Err(Failure::new(FailureReason::Configuration, format!("{error:#}")))
                    }
                };
                put(shared, |link, now| link.handle_stored_refresh(now, at, renewal, stored));
            }
            Job::ForgetRefresh { at } => note(self.paired.forget(at.host).map(drop)),
            Job::Persist { token, entry, drop_credentials } => {
                let kept = self.persist(&entry, drop_credentials).await;
                put(shared, |link, now| link.handle_persisted(now, token, said(kept)));
            }
            Job::Unpersist { token } => {
                let gone = self.unpersist(token.host()).await;
                put(shared, |link, now| link.handle_unpersisted(now, token, said(gone)));
            }
            Job::Clear { token } => {
                let cleared = match &self.cache {
                    Some(cache) => cache.clear(token.host()).await.map_err(anyhow::Error::from),
                    None => Ok(()),
                };
                put(shared, |link, now| link.handle_cleared(now, token, said(cleared)));
            }
        }
    }

    async fn persist(&self, entry: &Entry, drop_credentials: bool) -> anyhow::Result<()> {
        if let Some(cache) = &self.cache {
            cache.keep_owned(entry.host, ENTRY, entry).await?;
        }
        if drop_credentials {
            self.paired.forget(entry.host)?;
        }
        Ok(())
    }

    async fn unpersist(&self, host: HostId) -> anyhow::Result<()> {
        // First what opens the host: without it the entry is not taken up again.
        self.paired.forget(host)?;
        if let Some(cache) = &self.cache {
            cache.remove_owned(host, ENTRY, true).await?;
        }
        Ok(())
    }
}

/// Whether an entry is of a paired host with this way among its own.
fn leads_to(entry: &Entry, address: &Address) -> bool {
    match &entry.target {
        Target::Paired { routes } => routes.has(address),
        Target::Environment { .. } => false,
    }
}

fn put(shared: &Weak<Shared>, take: impl FnOnce(&mut wakeful_link::Link, wakeful_link::Instant)) {
    if let Some(shared) = shared.upgrade() {
        shared.put(take);
    }
}

fn said(done: anyhow::Result<()>) -> Result<(), String> {
    done.map_err(|error| format!("{error:#}"))
}

/// A copy that could not be kept is loaded anew one day.
fn note<E: std::fmt::Display>(done: Result<(), E>) {
    if let Err(error) = done {
        tracing::warn!(%error, "a copy could not be kept");
    }
}
