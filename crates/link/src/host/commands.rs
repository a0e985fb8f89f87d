//! What a person does with a host, and what views read of it.

use std::time::Duration;

use wakeful_wire::rpc::{Call, HostConfig, ThreadId, ThreadItem};

use super::HostLink;
use crate::{
    AttemptId, ConnectionState, Failure, Instant,
    authorization::RenewalId,
    boundary::Token,
    families::{Absence, Families, MountId, ShellRows},
    route::Address,
    settled::SettledThreads,
    shell::{CachedShell, Shell, ShellList, ShellState},
    steady::Seen,
    supervisor::Input,
    threads::{ConsumerId, Held, StreamId, Threads, WriteId},
};

/// A person's presence is told at most this often: a host counts whoever is there for longer.
const ACTIVITY_SPACING: Duration = Duration::from_secs(60);

impl HostLink {
    pub(crate) const fn connection(&self) -> &ConnectionState {
        self.supervisor.state()
    }

    pub(crate) fn session(&self) -> Option<AttemptId> {
        self.supervisor.session()
    }

    pub(crate) fn way(&self) -> Option<&Address> {
        self.way.as_ref().map(|way| &way.address)
    }

    pub(crate) fn session_until(&self) -> Option<Instant> {
        self.authorization.live_until()
    }

    pub(crate) const fn config(&self) -> Option<&HostConfig> {
        self.config.as_ref()
    }

    pub(crate) const fn shell(&self) -> &ShellState {
        self.shell.state()
    }

    pub(crate) const fn threads(&self) -> &Threads {
        &self.threads
    }

    pub(crate) const fn families(&self) -> &Families {
        &self.families
    }

    pub(crate) const fn settled(&self) -> &SettledThreads {
        &self.settled
    }

    /// The rows of the list.
    pub(crate) fn rows(&self) -> &ShellRows {
        rows_of(&self.shell)
    }

    /// What the lists side by side need to know of it.
    pub(crate) fn seen(&self) -> Seen<ShellList> {
        let (connection, shell) = (self.supervisor.state(), self.shell.state());
        Seen {
            phase: connection.phase,
            attempt: connection.attempt,
            session: connection.generation,
            status: shell.status,
            snapshot: self.gate.snapshot,
            rows: shell.list.clone(),
        }
    }

    /// Whether it is known what is cached of the list.
    pub(crate) const fn is_cache_read(&self) -> bool {
        self.cache_read
    }

    /// Whether all that was to be stored is.
    pub(crate) fn is_stored(&self) -> bool {
        self.shell.is_stored() && (!self.saves || self.threads.is_stored())
    }

    pub(crate) fn handle_cached_shell(&mut self, now: Instant, cached: Option<CachedShell>) {
        self.cache_read = true;
        self.shell.handle_cached(now, cached);
        self.handle_rows(now);
        self.settle(now);
    }

    pub(crate) fn handle_saved_shell(&mut self, now: Instant) {
        self.shell.handle_saved(now);
        self.settle(now);
    }

    pub(crate) fn handle_cached_thread(
        &mut self,
        now: Instant,
        stream: StreamId,
        cached: Option<Held>,
    ) {
        self.threads.handle_cached(now, stream, cached);
        self.settle(now);
    }

    pub(crate) fn handle_written_thread(&mut self, now: Instant, write: WriteId) {
        self.threads.handle_written(write);
        self.settle(now);
    }

    pub(crate) fn handle_stored_refresh(
        &mut self,
        now: Instant,
        renewal: RenewalId,
        stored: Result<(), Failure>,
    ) {
        self.authorization.handle_stored(now, renewal, stored);
        self.settle(now);
    }

    /// Makes a request over the session that is current now. It is never repeated.
    pub(crate) fn call(&mut self, now: Instant, call: Call) -> Token {
        let token = self.boundary.request(now, call);
        if self.session().is_some() {
            self.asked.get_or_insert(now);
        }
        self.settle(now);
        token
    }

    /// The first item of a stream over the session that is current now; then the stream ends.
    pub(crate) fn first(&mut self, now: Instant, call: Call) -> Token {
        let token = self.boundary.stream(call);
        self.firsts.insert(token);
        self.settle(now);
        token
    }

    /// A person does something here: the environment is in use.
    pub(crate) fn handle_active(&mut self, now: Instant) {
        let due = self.active.is_none_or(|told| now.since(told) >= ACTIVITY_SPACING);
        if due && self.session().is_some() {
            self.active = Some(now);
            let token = self.boundary.request(now, Call::Activity(wakeful_wire::rpc::Empty {}));
            // Nobody waits for the answer.
            self.settle(now);
            self.boundary.give_up(token);
        }
    }

    /// A person needs this host: it may be woken.
    pub(crate) fn handle_intent(&mut self, now: Instant) {
        let input = if self.supervisor.state().desired {
            Input::RetryNow { wake: true }
        } else {
            Input::Connect { wake: true }
        };
        self.supervise(now, input);
    }

    pub(crate) fn mount(&mut self, now: Instant, thread: ThreadId) -> Result<ConsumerId, Failure> {
        let mounted = self.threads.mount(now, thread);
        self.settle(now);
        mounted
    }

    pub(crate) fn tap(&mut self, thread: ThreadId) -> bool {
        self.threads.tap(thread)
    }

    pub(crate) fn take_tapped(&mut self, thread: ThreadId) -> Vec<ThreadItem> {
        self.threads.take_tapped(thread)
    }

    pub(crate) fn unmount(&mut self, now: Instant, consumer: ConsumerId) {
        self.threads.unmount(now, consumer);
        self.settle(now);
    }

    pub(crate) fn load_older(&mut self, now: Instant, thread: ThreadId) -> bool {
        let asked = self.threads.load_older(now, thread);
        self.settle(now);
        asked
    }

    pub(crate) fn mount_family(
        &mut self,
        now: Instant,
        thread: ThreadId,
    ) -> Result<MountId, Failure> {
        let mounted = self.families.mount(now, rows_of(&self.shell), thread);
        self.settle(now);
        mounted
    }

    pub(crate) fn unmount_family(&mut self, now: Instant, mount: MountId) {
        self.families.unmount(mount);
        self.settle(now);
    }

    /// Whether a thread that has no row is gone. Asks the host where it is not known.
    pub(crate) fn absence(&mut self, now: Instant, thread: ThreadId) -> Absence {
        let absence = self.families.absence(now, rows_of(&self.shell), thread);
        self.settle(now);
        absence
    }

    pub(crate) fn search(&mut self, now: Instant, q: &str, limit: usize) {
        self.families.search(now, q, limit);
        self.settle(now);
    }

    pub(crate) fn end_search(&mut self, now: Instant) {
        self.families.end_search();
        self.settle(now);
    }

    pub(crate) fn load_older_settled(&mut self, now: Instant) {
        self.settled.load_more(now);
        self.settle(now);
    }
}

/// The rows of a list; none while there is no list.
fn rows_of(shell: &Shell) -> &ShellRows {
    static NONE: ShellRows = ShellRows::new();
    shell.state().list.as_ref().map_or(&NONE, ShellList::map)
}
