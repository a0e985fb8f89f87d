//! What a person does.

use std::collections::BTreeSet;

use wakeful_wire::{
    HostId,
    rpc::{Call, ThreadId, ThreadItem},
};

use super::{Held, Link};
use crate::{
    Failure, FailureReason, Instant,
    authorization::Secret,
    boundary::Token,
    families::{Absence, MountId},
    registry::{Account, Entry, OperationId, Refusal},
    route::Address,
    settled::PageState,
    supervisor::Input,
    threads::ConsumerId,
};

impl Link {
    /// Registers a host that was paired with. It is kept before it is connected to; what becomes of
    /// it is told by [`Change::Operation`](crate::Change::Operation).
    ///
    /// # Errors
    /// [`Refusal`]; nothing has changed then.
    pub fn register(
        &mut self,
        now: Instant,
        entry: Entry,
        refresh: Secret,
    ) -> Result<OperationId, Refusal> {
        let host = entry.host;
        let registered = self.registry.register(entry)?;
        self.secrets.insert(host, refresh);
        self.settle(now);
        Ok(registered)
    }

    /// Removes a paired host, with its credentials, what is cached of it and what belongs to it.
    ///
    /// # Errors
    /// [`Refusal`]; an environment comes and goes with its platform's list.
    pub fn remove(&mut self, now: Instant, host: HostId) -> Result<Option<OperationId>, Refusal> {
        let removed = self.registry.remove(host);
        self.settle(now);
        removed
    }

    /// No connection to a host for now; everything else stays, and it is remembered.
    ///
    /// # Errors
    /// [`Refusal`].
    pub fn pause(&mut self, now: Instant, host: HostId) -> Result<Option<OperationId>, Refusal> {
        let paused = self.registry.pause(host);
        self.settle(now);
        paused
    }

    /// Connects to a paused host again.
    ///
    /// # Errors
    /// [`Refusal`].
    pub fn resume(&mut self, now: Instant, host: HostId) -> Result<Option<OperationId>, Refusal> {
        let resumed = self.registry.resume(host);
        self.settle(now);
        resumed
    }

    /// Tries a host again now. False if there is none.
    pub fn retry(&mut self, now: Instant, host: HostId) -> bool {
        let known = self.registry.retry(host);
        self.settle(now);
        known
    }

    /// A person needs a host: it may be woken. False if there is none.
    pub fn intend(&mut self, now: Instant, host: HostId) -> bool {
        let known = self.with(now, host, |link| link.handle_intent(now)).is_some();
        self.settle(now);
        known
    }

    /// A person does something with a host: its environment is in use.
    pub fn handle_active(&mut self, now: Instant, host: HostId) {
        self.with(now, host, |link| link.handle_active(now));
        self.settle(now);
    }

    /// Somebody signed in at a platform; whoever was before is signed out.
    pub fn sign_in(&mut self, now: Instant, account: Account) {
        let platform = account.platform.clone();
        if self.account_of(&platform).is_some_and(|before| before.user != account.user) {
            // Not running any more: then there is nobody to sign out.
            let _ended = self.registry.sign_out(&platform);
        }
        self.leave_platform(now, &platform);
        self.follow_platform(now, account);
        self.signal_platform(now, &platform, None, &Input::CredentialsChanged { bound: true });
        self.settle(now);
    }

    /// Somebody signed out of a platform: its environments go with everything that is kept of
    /// them. Paired hosts and other platforms are not touched.
    ///
    /// # Errors
    /// [`Refusal::NotRunning`].
    pub fn sign_out(&mut self, now: Instant, platform: &Address) -> Result<(), Refusal> {
        self.leave_platform(now, platform);
        let out = self.registry.sign_out(platform);
        self.settle(now);
        out
    }

    /// Makes a request over a host's present session. It is never repeated here;
    /// [`Change::Answered`](crate::Change::Answered) says what came of it. Nothing if there is no such host.
    pub fn call(&mut self, now: Instant, host: HostId, call: Call) -> Option<Token> {
        if moves_rows(&call) {
            self.steady.handle_moved(now, host);
        }
        let token = self.with(now, host, |link| link.call(now, call));
        self.settle(now);
        token
    }

    /// Asks for the first item of a stream over a host's present session, such as a list that a
    /// host tells by a subscription alone. Answered like [`Self::call`]; the stream ends with it.
    pub fn first(&mut self, now: Instant, host: HostId, call: Call) -> Option<Token> {
        let token = self.with(now, host, |link| link.first(now, call));
        self.settle(now);
        token
    }

    /// Somebody looks at a thread from now on.
    ///
    /// # Errors
    /// Too many are looked at, or there is no such host.
    pub fn mount(
        &mut self,
        now: Instant,
        host: HostId,
        thread: ThreadId,
    ) -> Result<ConsumerId, Failure> {
        let mounted = self.with(now, host, |link| link.mount(now, thread));
        self.settle(now);
        mounted.unwrap_or_else(|| Err(no_host()))
    }

    /// For a consumer that passes on what happens in a thread that it has mounted: from now on the
    /// items of its stream wait for [`Self::take_tapped`]. Whether there is such a stream.
    pub fn tap(&mut self, host: HostId, thread: ThreadId) -> bool {
        self.hosts.get_mut(&host).is_some_and(|held| held.link.tap(thread))
    }

    /// What a tapped stream has taken in since this was last asked, in order; see
    /// [`Threads::take_tapped`](crate::threads::Threads::take_tapped).
    pub fn take_tapped(&mut self, host: HostId, thread: ThreadId) -> Vec<ThreadItem> {
        self.hosts.get_mut(&host).map(|held| held.link.take_tapped(thread)).unwrap_or_default()
    }

    /// Somebody no longer looks.
    pub fn unmount(&mut self, now: Instant, host: HostId, consumer: ConsumerId) {
        self.with(now, host, |link| link.unmount(now, consumer));
        self.settle(now);
    }

    /// A person wants older content of a thread. Whether a page is asked for now.
    pub fn load_older(&mut self, now: Instant, host: HostId, thread: ThreadId) -> bool {
        let asked = self.with(now, host, |link| link.load_older(now, thread));
        self.settle(now);
        asked.unwrap_or_default()
    }

    /// Somebody needs every active thread of a family.
    ///
    /// # Errors
    /// Too many are needed, or there is no such host.
    pub fn mount_family(
        &mut self,
        now: Instant,
        host: HostId,
        thread: ThreadId,
    ) -> Result<MountId, Failure> {
        let mounted = self.with(now, host, |link| link.mount_family(now, thread));
        self.settle(now);
        mounted.unwrap_or_else(|| Err(no_host()))
    }

    /// Somebody no longer needs it.
    pub fn unmount_family(&mut self, now: Instant, host: HostId, mount: MountId) {
        self.with(now, host, |link| link.unmount_family(now, mount));
        self.settle(now);
    }

    /// Whether a thread that no row shows is gone. Where it is not known the host is asked, and
    /// [`Change::Absence`](crate::Change::Absence) says what it answered.
    pub fn absence(&mut self, now: Instant, host: HostId, thread: ThreadId) -> Absence {
        let absence = self.with(now, host, |link| link.absence(now, thread));
        self.settle(now);
        absence.unwrap_or(Absence::Unknown)
    }

    /// A person searches a host's threads; it takes the place of the search before.
    pub fn search(&mut self, now: Instant, host: HostId, q: &str, limit: usize) {
        self.with(now, host, |link| link.search(now, q, limit));
        self.settle(now);
    }

    /// Nobody searches any more.
    pub fn end_search(&mut self, now: Instant, host: HostId) {
        self.with(now, host, |link| link.end_search(now));
        self.settle(now);
    }

    /// A person wants more of the older settled threads: the pages that let the shelf go on, and
    /// those that could not be read.
    pub fn load_older_settled(&mut self, now: Instant) {
        let failed = |held: &Held| matches!(held.link.settled().pages(), PageState::Failed(_));
        let failed = self.hosts.iter().filter(|(_, held)| failed(held)).map(|(host, _)| *host);
        let mut wanted: BTreeSet<HostId> = failed.collect();
        wanted.extend(self.shelf().next);
        for host in wanted {
            self.with(now, host, |link| link.load_older_settled(now));
        }
        self.settle(now);
    }

    /// Whether a row of a host may be moved in a list now.
    ///
    /// # Errors
    /// Its rows wait: the plan would use keys that the host may have replaced.
    pub fn may_move(&self, host: HostId) -> Result<(), Failure> {
        if self.steady.may_move(host) {
            Ok(())
        } else {
            let detail = "The list is being brought up to date. Try again in a moment.";
            Err(Failure::new(FailureReason::Overloaded, detail))
        }
    }
}

fn no_host() -> Failure {
    Failure::new(FailureReason::Unusable, "There is no such host here.")
}

/// Whether a command moves or removes a row, or undoes that (seed, steady shells).
const fn moves_rows(call: &Call) -> bool {
    match call {
        Call::ThreadPin(_)
        | Call::ThreadSnooze(_)
        | Call::ThreadSettle(_)
        | Call::ThreadArchive(_)
        | Call::ThreadRestore(_)
        | Call::ThreadDelete(_) => true,
        Call::ShellSubscribe(_)
        | Call::ThreadSubscribe(_)
        | Call::SessionSubscribe(_)
        | Call::ThreadCreate(_)
        | Call::ThreadRename(_)
        | Call::ThreadPrompt(_)
        | Call::ThreadUnqueue(_)
        | Call::ThreadRelease(_)
        | Call::ThreadCancel(_)
        | Call::ThreadAnswer(_)
        | Call::ThreadForget(_)
        | Call::ThreadMode(_)
        | Call::Activity(_)
        | Call::SessionRevoke(_)
        | Call::SessionRevokeOthers(_) => false,
    }
}
