//! One host's list of threads: loaded early, resumed exactly, saved at a measured pace.
//!
//! # Where rows come from
//!
//! What is stored is shown first. As soon as a connection is prepared, the list may be read over
//! HTTP; the session's hello then confirms what was read, or it is replaced. The subscription begins
//! when that read has ended, so its answer never lands on rows that the socket has moved on. From
//! then on only the subscription changes rows. See [`Shell::handle_fetched`] and
//! [`Shell::handle_items`].
//!
//! # What is downloaded
//!
//! | held rows | before hello | after hello |
//! |---|---|---|
//! | none, or no base for this session | the list over HTTP | a resume from that, or a snapshot |
//! | stored, with the tag that stands for them | a conditional read | a resume |
//! | stored, without | nothing | a resume |
//! | of an earlier session of this run | nothing | a resume |
//!
//! # Conventions
//!
//! After each `handle_…` the parent takes all actions from [`Shell::poll_action`]; their number is
//! bounded by what one input causes. [`Shell::handle_timeout`] is called at [`Shell::poll_timeout`]
//! at the latest, and may be called at any time.

mod action;
mod cached;
mod following;
mod gap;
mod items;
mod list;
mod load;
mod next;
mod provenance;
mod saving;
mod state;

#[cfg(test)]
mod bench;
#[cfg(all(test, not(target_arch = "wasm32")))]
mod properties;
#[cfg(test)]
mod tests;

use std::collections::VecDeque;

use wakeful_wire::{
    host::Capabilities,
    rpc::{Cursor, Omissions, ShellItem, ShellSubscribe},
};

use self::{
    cached::READER,
    following::{Following, Stage},
    load::Load,
    provenance::{Guess, Origin, Provenance, both},
    saving::Saving,
};
use crate::{Failure, Instant};

pub use self::{
    action::{Action, FetchId, Fetched},
    cached::CachedShell,
    following::{LOOK_PATIENCE, REST_LEAST, REST_MOST, RESUMES_MAX},
    gap::GAP_GRACE,
    list::{ROWS_MAX, ShellList},
    load::{CACHE_PATIENCE, ETAG_MAX, FETCH_PATIENCE, RESUME_PATIENCE},
    saving::{SAVE_DELAY, SAVE_SPACING},
    state::ShellState,
};

/// Whether anything is still to be done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Life {
    Open,
    /// Only what has changed is still stored.
    Finished,
    /// Nothing, ever.
    Removed,
}

/// One host's list.
#[derive(Debug)]
pub struct Shell {
    wanted: Omissions,
    persist: bool,
    life: Life,
    state: ShellState,
    provenance: Provenance,
    /// Whether it is known what is stored.
    cache_read: bool,
    /// What the last hello said, or what is stored suggests.
    guess: Option<Guess>,
    /// A connection is prepared that is not ready yet.
    prepared: bool,
    load: Load,
    following: Option<Following>,
    saving: Saving,
    fetches: u64,
    actions: VecDeque<Action>,
    changed: bool,
}

impl Shell {
    /// The list of a host of which nothing is known yet. `omit` says which rows this client can do
    /// without; `persist` whether rows are stored, so that [`Self::handle_cached`] will come.
    #[must_use]
    pub fn new(omit: Omissions, persist: bool) -> Self {
        Self {
            wanted: omit,
            persist,
            life: Life::Open,
            state: ShellState::default(),
            provenance: Provenance::default(),
            cache_read: !persist,
            guess: None,
            prepared: false,
            load: Load::Unasked,
            following: None,
            saving: Saving::default(),
            fetches: 0,
            actions: VecDeque::new(),
            changed: false,
        }
    }

    /// What views see.
    #[must_use]
    pub const fn state(&self) -> &ShellState {
        &self.state
    }

    /// What is to be done next.
    pub fn poll_action(&mut self) -> Option<Action> {
        self.actions.pop_front()
    }

    /// Whether all that was to be stored is. After [`Self::finish`] the parent waits for it, within
    /// its own bound.
    #[must_use]
    pub const fn is_stored(&self) -> bool {
        self.saving.is_idle()
    }

    /// What the subscription is to be made with, on the present session: from the held rows, if they
    /// are a base, else from nothing. Asked for each time that it begins.
    #[must_use]
    pub fn subscription_input(&self) -> ShellSubscribe {
        let omit = match &self.following {
            Some(following) => following.terms.omit,
            None => self.expected().omit,
        };
        ShellSubscribe { cursor: self.base(), omit }
    }

    /// What is stored, or that nothing is. Rows that came from the host meanwhile are newer and stay.
    pub fn handle_cached(&mut self, now: Instant, cached: Option<CachedShell>) {
        if self.life != Life::Open {
            return;
        }
        self.cache_read = true;
        if let Some(cached) = cached
            && self.state.list.is_none()
        {
            let CachedShell { snapshot, build, reader, etag, partial } = cached;
            let understood = reader == READER;
            if understood && self.guess.is_none() {
                let omit = both(snapshot.omitted, self.wanted);
                self.guess = Some(Guess { build: Some(build.clone()), omit });
            }
            self.provenance = Provenance {
                origin: Origin::Cached,
                build: understood.then_some(build),
                etag: etag.filter(|_| understood),
                stored: true,
                partial,
            };
            self.state.list = Some(ShellList::of(snapshot));
            self.changed = true;
        }
        self.proceed(now);
    }

    /// A connection is prepared: requests over HTTP can be made, although there is no session yet.
    pub fn handle_prepared(&mut self, now: Instant) {
        if self.life != Life::Open {
            return;
        }
        self.prepared = true;
        if self.following.is_none() && matches!(self.load, Load::Answered | Load::Ended) {
            self.end_load();
        }
        self.proceed(now);
    }

    /// What was prepared is given up.
    pub fn handle_unprepared(&mut self, now: Instant) {
        if self.life != Life::Open {
            return;
        }
        self.prepared = false;
        if self.following.is_none() {
            self.end_load();
        }
        self.proceed(now);
    }

    /// A session is ready: what its hello says. Replaces the session before, if there is one.
    pub fn handle_connected(
        &mut self,
        now: Instant,
        capabilities: &Capabilities,
        release: &str,
        head: Cursor,
    ) {
        if self.life != Life::Open {
            return;
        }
        if self.following.is_some() {
            self.leave();
        }
        self.prepared = false;
        let following = Following::new(now, self.wanted, capabilities, release, head);
        let omit = following.terms.omit;
        self.guess = Some(Guess { build: Some(release.to_owned()), omit });
        self.following = Some(following);
        self.settle();
        self.proceed(now);
    }

    /// The session is gone. Rows stay, and what has changed is stored at once.
    pub fn handle_disconnected(&mut self, now: Instant) {
        if self.life != Life::Open || self.following.is_none() {
            return;
        }
        self.leave();
        self.proceed(now);
    }

    /// A read over HTTP has ended. Before the hello its rows are shown and count as a guess. A
    /// failure is no error of the list: the socket may still bring it.
    pub fn handle_fetched(&mut self, now: Instant, id: FetchId, result: Result<Fetched, Failure>) {
        if self.life != Life::Open {
            return;
        }
        if !matches!(&self.load, Load::Asked(asked) if asked.id == id) {
            return;
        }
        let Load::Asked(asked) = std::mem::take(&mut self.load) else { return };
        let confirmed = asked.etag.is_some() && asked.etag == self.provenance.etag;
        self.load = match result {
            Ok(Fetched::NotModified) if confirmed => {
                if self.provenance.origin == Origin::Unconfirmed {
                    self.provenance.origin = Origin::Early;
                }
                Load::Answered
            }
            Ok(Fetched::Snapshot { snapshot, etag }) => {
                let etag = etag.filter(|etag| etag.len() <= ETAG_MAX);
                self.replace(*snapshot, Origin::Early, asked.build, etag);
                Load::Answered
            }
            Ok(Fetched::NotModified) | Err(_) => Load::Ended,
        };
        self.settle();
        self.proceed(now);
    }

    /// The boundary has made the subscription: its first item is awaited.
    pub fn handle_started(&mut self, now: Instant) {
        if let Some(following) = &mut self.following
            && matches!(following.stage, Stage::Following { .. })
        {
            following.handle_look(now);
            self.proceed(now);
        }
    }

    /// An item of the subscription.
    pub fn handle_item(&mut self, now: Instant, item: ShellItem) {
        self.handle_items(now, [item]);
    }

    /// Items of the subscription that came together: views see them as one change.
    pub fn handle_items(&mut self, now: Instant, items: impl IntoIterator<Item = ShellItem>) {
        for item in items {
            self.take(now, item);
        }
        self.proceed(now);
    }

    /// The subscription has failed on a healthy session; the boundary tries it again when it sees
    /// fit.
    pub fn handle_subscription_failed(&mut self, now: Instant, failure: Failure) {
        let resumed = self.base().is_some();
        let Some(following) = self.following.as_mut().filter(|following| following.is_subscribed())
        else {
            return;
        };
        following.handle_failed(&failure, resumed);
        self.state.error = Some(failure);
        self.changed = true;
        self.proceed(now);
    }

    /// The subscription could not be opened, or is over for good: the boundary does not try again.
    /// [`Action::Subscribe`] comes anew, later each time ([`REST_LEAST`], [`REST_MOST`]).
    pub fn handle_subscription_ended(&mut self, now: Instant, failure: Failure) {
        self.handle_subscription_failed(now, failure);
        if let Some(following) = &mut self.following
            && following.is_subscribed()
        {
            following.handle_ended(now);
            self.proceed(now);
        }
    }

    /// An item could not be read. What is held may lack something, so the whole list is asked for,
    /// later each time ([`REST_LEAST`], [`REST_MOST`]).
    pub fn handle_defect(&mut self, now: Instant, failure: Failure) {
        self.defect(now, failure);
        self.proceed(now);
    }

    /// The host's newest event, as the answer to a probe or a heartbeat says it.
    pub fn handle_head(&mut self, now: Instant, head: Cursor) {
        if let Some(following) = &mut self.following
            && head.epoch == following.terms.epoch
        {
            following.watch.handle_head(head.seq);
            self.proceed(now);
        }
    }

    /// A save has ended, well or not. If not, the next change is stored with what was not.
    pub fn handle_saved(&mut self, now: Instant) {
        self.saving.handle_saved();
        self.proceed(now);
    }

    /// The client ends: stores what has changed, and does nothing else any more.
    pub fn finish(&mut self, now: Instant) {
        if self.life == Life::Open {
            self.prepared = false;
            self.leave();
            self.life = Life::Finished;
            self.proceed(now);
        }
    }

    /// The host is removed from this client: everything is forgotten, and nothing is ever stored
    /// again. A save that runs is the parent's to end before it clears the store.
    pub fn handle_removed(&mut self, now: Instant) {
        if self.life == Life::Removed {
            return;
        }
        self.prepared = false;
        self.leave();
        self.life = Life::Removed;
        self.changed |= self.state.list.take().is_some();
        self.provenance = Provenance::default();
        self.proceed(now);
    }

    /// When [`Self::handle_timeout`] is to be called at the latest.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Instant> {
        let load = match &self.load {
            Load::Cache(until) => Some(*until),
            Load::Asked(asked) => Some(asked.until()),
            Load::Unasked | Load::Answered | Load::Ended => None,
        };
        let following = self.following.as_ref();
        let stage = following.and_then(|following| match following.stage {
            Stage::Loading if matches!(self.load, Load::Asked(_)) && self.base().is_some() => {
                Some(following.since.after(RESUME_PATIENCE))
            }
            Stage::Resting(until) => Some(until),
            Stage::Loading | Stage::Awaiting | Stage::Following { .. } => None,
        });
        let look = following.and_then(|following| following.look_until);
        let gap = following.and_then(|following| following.watch.poll_timeout());
        Instant::earliest([load, stage, look, gap, self.saving.poll_timeout()])
    }

    /// Does what is due.
    pub fn handle_timeout(&mut self, now: Instant) {
        if let Load::Asked(asked) = &self.load
            && asked.until() <= now
        {
            self.cancel_load();
        }
        if let Some(following) = &mut self.following {
            if following.watch.handle_timeout(now) {
                following.handle_look(now);
                self.actions.push_back(Action::Resubscribe);
            }
            if following.look_until.is_some_and(|until| until <= now) {
                following.look_until = None;
                following.live = false;
            }
            if matches!(following.stage, Stage::Resting(until) if until <= now) {
                following.stage = Stage::Awaiting;
                self.actions.push_back(Action::Subscribe);
            }
        }
        self.proceed(now);
    }
}
