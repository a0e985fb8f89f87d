//! What views read.

use std::sync::Arc;

use wakeful_wire::{
    HostId,
    rpc::{HostConfig, ShellRow, ThreadId},
};

use super::Link;
use crate::{
    ConnectionState, Instant,
    families::{FamilyView, Search},
    registry::Entry,
    route::Address,
    settled::{
        PageState,
        frontier::{HostRows, Shelf, shelf},
    },
    shell::{ShellList, ShellState},
    threads::ThreadState,
};

impl Link {
    /// The hosts that are known.
    pub fn entries(&self) -> impl Iterator<Item = &Entry> {
        self.registry.entries()
    }

    /// One of them.
    #[must_use]
    pub fn entry(&self, host: HostId) -> Option<&Entry> {
        self.registry.entry(host).ok()
    }

    /// What a host's connection is doing.
    #[must_use]
    pub fn connection(&self, host: HostId) -> Option<&ConnectionState> {
        self.hosts.get(&host).map(|held| held.link.connection())
    }

    /// The way that was last taken to a host. Absent before the first.
    #[must_use]
    pub fn way(&self, host: HostId) -> Option<&Address> {
        self.hosts.get(&host)?.link.way()
    }

    /// When the session ends that a host's socket stands on. It is renewed before.
    #[must_use]
    pub fn session_until(&self, host: HostId) -> Option<Instant> {
        self.hosts.get(&host)?.link.session_until()
    }

    /// How a host is set up, as it last said.
    #[must_use]
    pub fn config(&self, host: HostId) -> Option<&HostConfig> {
        self.hosts.get(&host)?.link.config()
    }

    /// A host's list as it is known at this moment: for looking up one thread, for checking a
    /// route, and for planning an action and its undoing.
    #[must_use]
    pub fn shell(&self, host: HostId) -> Option<&ShellState> {
        self.hosts.get(&host).map(|held| held.link.shell())
    }

    /// A host's list as it is shown beside those of other hosts: steady while they synchronize.
    #[must_use]
    pub fn shown(&self, host: HostId) -> Option<&ShellList> {
        self.steady.shown(host)
    }

    /// Whether the first frame may be painted.
    #[must_use]
    pub fn first_paint(&self, now: Instant) -> bool {
        self.steady.first_paint(now)
    }

    /// The row of a thread: of the list, else one that was read on demand.
    #[must_use]
    pub fn row(&self, host: HostId, thread: ThreadId) -> Option<&Arc<ShellRow>> {
        let link = &self.hosts.get(&host)?.link;
        link.families().row(link.rows(), thread).or_else(|| link.settled().row(thread))
    }

    /// The family of a thread.
    #[must_use]
    pub fn family(&self, host: HostId, thread: ThreadId) -> Option<FamilyView> {
        let link = &self.hosts.get(&host)?.link;
        Some(link.families().family(link.rows(), thread))
    }

    /// The search that was asked of a host.
    #[must_use]
    pub fn searched(&self, host: HostId) -> Option<&Search> {
        self.hosts.get(&host).map(|held| held.link.families().searched())
    }

    /// How many threads of a host are settled, those among them that its list leaves out.
    #[must_use]
    pub fn settled_count(&self, host: HostId) -> Option<u64> {
        let link = &self.hosts.get(&host)?.link;
        Some(link.settled().count(link.rows()))
    }

    /// How far the pages of a host's older settled threads are.
    #[must_use]
    pub fn settled_pages(&self, host: HostId) -> Option<&PageState> {
        self.hosts.get(&host).map(|held| held.link.settled().pages())
    }

    /// The settled threads of all hosts, as far as they are listed.
    #[must_use]
    pub fn shelf(&self) -> Shelf<HostId> {
        shelf(self.hosts.iter().map(|(host, held)| HostRows {
            host: *host,
            holds_at: held.link.settled().holds_at(),
            rows: held.link.settled().rows(held.link.rows()),
        }))
    }

    /// A thread that somebody looks at.
    #[must_use]
    pub fn thread(&self, host: HostId, thread: ThreadId) -> Option<&ThreadState> {
        self.hosts.get(&host)?.link.threads().thread(thread)
    }

    /// Whether a thread is held although nobody may look at it, because it runs.
    #[must_use]
    pub fn is_kept_alive(&self, host: HostId, thread: ThreadId) -> bool {
        self.hosts.get(&host).is_some_and(|held| held.link.threads().is_kept_alive(thread))
    }
}
