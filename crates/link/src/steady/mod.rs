//! Lists that do not jump while hosts come up to date one after another.
//!
//! Each host synchronizes at its own time. A list that followed every one would move once per host
//! at each start and each return to the foreground. So a host's rows stay as *shown* until its
//! connection's snapshot has come, it is synchronized, or it is disconnected, and hosts that get
//! there within [`WINDOW`] of each other change together (seed, Each environment synchronizes at its
//! own time).
//!
//! # Who is waited for
//!
//! A host that still owes its connection's snapshot, and is connected or on its first attempt. Not
//! one on a retry, which can take minutes, and not a connected one for longer than [`STEADY_CAP`].
//!
//! # The window
//!
//! It opens when the first host is ready while another is waited for. It closes after [`WINDOW`], or
//! as soon as nobody is waited for, and is never extended: then every host that is ready changes, in
//! one step. A host that is ready later opens the next one.
//!
//! # What a hold must not do
//!
//! It stops changes that the person did not cause, and no others. While rows wait, moving one in the
//! list is refused ([`Steady::may_move`]), because its plan would use order keys that the host may
//! have replaced. Every other action on a row reads [`Steady::live`] before it reads anything of the
//! thread, and so does whoever looks for one thread. A command that moves or removes a row is told
//! by [`Steady::handle_moved`], and its host's rows follow until they are live.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use wakeful_wire::HostId;

use crate::Instant;

mod hold;
mod paint;

#[cfg(test)]
#[cfg(not(target_arch = "wasm32"))]
mod properties;
#[cfg(test)]
mod tests;

pub use hold::{STEADY_CAP, Seen};
pub use paint::PAINT_LIMIT;

use hold::{Hold, Stage};
use paint::FirstPaint;

/// How long a host that is ready waits for others. Hosts of one person mostly answer within this of
/// each other, and a person who looks at the list does not wait longer for fresh rows.
pub const WINDOW: Duration = Duration::from_secs(2);

/// What is to be done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Action {
    /// The shown rows of these hosts changed, in one step. Read them by [`Steady::shown`].
    Changed(BTreeSet<HostId>),
    /// The first frame may be painted. Comes once.
    Paint,
}

/// The lists of all hosts. `R` is a host's rows, cheap to clone and to compare, such as an `Arc` of
/// the shell's state. Knows as many hosts as the registry holds.
#[derive(Debug, Clone)]
pub struct Steady<R> {
    hosts: BTreeMap<HostId, Hold<R>>,
    /// When those that are ready change.
    window: Option<Instant>,
    paint: FirstPaint,
    changed: BTreeSet<HostId>,
    paints: bool,
}

impl<R: Clone + PartialEq> Steady<R> {
    /// No host yet. The wait for the first frame begins.
    #[must_use]
    pub fn new(now: Instant) -> Self {
        Self {
            hosts: BTreeMap::new(),
            window: None,
            paint: FirstPaint::new(now),
            changed: BTreeSet::new(),
            paints: false,
        }
    }

    /// The enabled hosts at the start, whose cached lists the first frame waits for. Only the first
    /// call counts.
    pub fn handle_enabled(&mut self, now: Instant, enabled: impl IntoIterator<Item = HostId>) {
        self.paint.handle_hosts(enabled);
        self.handle_timeout(now);
    }

    /// A host's cached list has been read, or there is none. What was read is told first, by
    /// [`handle_host`](Self::handle_host).
    pub fn handle_cache_read(&mut self, now: Instant, host: HostId) {
        self.paint.handle_read(host);
        self.handle_timeout(now);
    }

    /// What is known of a host now.
    pub fn handle_host(&mut self, now: Instant, host: HostId, seen: Seen<R>) {
        self.expire(now);
        let hold = self.hosts.entry(host).or_insert_with(Hold::new);
        if hold.handle(now, seen) {
            self.changed.insert(host);
        }
        self.settle(now);
    }

    /// A host was removed or disabled: its rows are gone at once.
    pub fn handle_removed(&mut self, now: Instant, host: HostId) {
        if self.hosts.remove(&host).is_some_and(|hold| hold.shown().is_some()) {
            self.changed.insert(host);
        }
        self.paint.handle_read(host);
        self.handle_timeout(now);
    }

    /// A person sent a command that moves or removes a row of this host: settle, snooze, pin,
    /// archive, delete, or what undoes one of them. Its rows follow the live ones until they are
    /// live, because a person must see what he does.
    pub fn handle_moved(&mut self, now: Instant, host: HostId) {
        self.expire(now);
        if self.hosts.get_mut(&host).is_some_and(|hold| hold.handle_moved(now)) {
            self.changed.insert(host);
        }
        self.settle(now);
    }

    /// The rows that a list shows.
    #[must_use]
    pub fn shown(&self, host: HostId) -> Option<&R> {
        self.hosts.get(&host)?.shown()
    }

    /// The rows as the client knows them at this moment: for looking up one thread, for checking a
    /// route, and for planning an action and its undoing.
    #[must_use]
    pub fn live(&self, host: HostId) -> Option<&R> {
        self.hosts.get(&host)?.live()
    }

    /// Whether a row of this host may be moved in a list: not while its rows wait.
    #[must_use]
    pub fn may_move(&self, host: HostId) -> bool {
        self.hosts.get(&host).is_some_and(|hold| hold.stage() == Stage::Following)
    }

    /// Whether the first frame may be painted.
    #[must_use]
    pub fn first_paint(&self, now: Instant) -> bool {
        self.paint.is_ready(now)
    }

    /// Deadlines that have passed.
    fn expire(&mut self, now: Instant) {
        for (host, hold) in &mut self.hosts {
            if hold.handle_timeout(now) {
                self.changed.insert(*host);
            }
        }
        self.settle(now);
    }

    /// Opens or closes the window.
    fn settle(&mut self, now: Instant) {
        self.paints |= self.paint.begins(now);
        let any = |stage| self.hosts.values().any(|hold| hold.stage() == stage);
        if !any(Stage::Ready) {
            self.window = None;
        } else if !any(Stage::Waiting) || self.window.is_some_and(|closes| closes <= now) {
            self.window = None;
            for (host, hold) in &mut self.hosts {
                if hold.stage() == Stage::Ready && hold.release() {
                    self.changed.insert(*host);
                }
            }
        } else if self.window.is_none() {
            self.window = Some(now.after(WINDOW));
        }
    }

    /// Time has passed.
    pub fn handle_timeout(&mut self, now: Instant) {
        self.expire(now);
    }

    /// When to call [`handle_timeout`](Self::handle_timeout) at the latest.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Instant> {
        let caps = self.hosts.values().map(Hold::cap);
        Instant::earliest(caps.chain([self.window, self.paint.poll_timeout()]))
    }

    /// What to do next.
    pub fn poll_action(&mut self) -> Option<Action> {
        if !self.changed.is_empty() {
            return Some(Action::Changed(std::mem::take(&mut self.changed)));
        }
        std::mem::take(&mut self.paints).then_some(Action::Paint)
    }
}
