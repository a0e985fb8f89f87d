//! The rows of one host: what is shown, what is live, and why they may differ.

use std::time::Duration;

use wakeful_wire::rpc::Cursor;

use crate::{ConnectionPhase, DataStatus, Instant};

/// How long a connected host's rows wait for its snapshot at most. A snapshot that never comes must
/// not freeze a list: after this the rows follow whatever comes, and a late snapshot moves them. It
/// is longer than a slow phone takes to load a large list, and short of what a person takes for
/// broken.
pub const STEADY_CAP: Duration = Duration::from_secs(10);

/// What is known of one host at one moment, after whatever happened has been taken in by its
/// connection *and* its list. One value, because two signals of one state can be an update apart.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Seen<R> {
    /// What the connection is doing.
    pub phase: ConnectionPhase,
    /// How many attempts in a row, this one included.
    pub attempt: u32,
    /// The connection's generation: one more with each session.
    pub session: u64,
    /// How current the rows are. Live only if they are synchronized with that session.
    pub status: DataStatus,
    /// The cursor that the newest snapshot of the host says it is at, over HTTP or the socket.
    /// Changes that were applied to it do not move this. Absent while there are only cached rows.
    pub snapshot: Option<Cursor>,
    /// The rows; absent while nothing is known.
    pub rows: Option<R>,
}

impl<R> Seen<R> {
    const fn is_connection(&self) -> bool {
        matches!(self.phase, ConnectionPhase::Connecting | ConnectionPhase::Connected)
    }

    const fn is_connected(&self) -> bool {
        matches!(self.phase, ConnectionPhase::Connected)
    }

    fn is_live(&self) -> bool {
        self.is_connected() && self.status == DataStatus::Live
    }

    /// Whether this is another connection, or attempt at one, than `before` was.
    fn is_another(&self, before: &Self) -> bool {
        if !self.is_connection() || !before.is_connection() {
            return self.is_connection();
        }
        match (before.is_connected(), self.is_connected()) {
            (false, true) => false,
            (true, false) => true,
            (false, false) => self.attempt != before.attempt,
            (true, true) => self.session != before.session,
        }
    }
}

/// Whether shown rows follow the live ones.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum Stage {
    /// They do.
    #[default]
    Following,
    /// They wait for the host.
    Waiting,
    /// The host is there. They wait for others that are nearly there, to change together.
    Ready,
}

/// One host.
#[derive(Debug, Clone)]
pub(super) struct Hold<R> {
    seen: Option<Seen<R>>,
    shown: Option<R>,
    stage: Stage,
    /// The snapshot that was there when the connection began: another one is this connection's.
    base: Option<Cursor>,
    /// Whether this connection's snapshot has come, or it was synchronized.
    paid: bool,
    /// Whether this connection was waited for long enough.
    capped: bool,
    /// Since when a connected host is waited for.
    since: Option<Instant>,
    /// A person moved a row: follow until live.
    moved: bool,
}

impl<R: Clone + PartialEq> Hold<R> {
    pub(super) const fn new() -> Self {
        Self {
            seen: None,
            shown: None,
            stage: Stage::Following,
            base: None,
            paid: false,
            capped: false,
            since: None,
            moved: false,
        }
    }

    pub(super) const fn stage(&self) -> Stage {
        self.stage
    }

    pub(super) const fn shown(&self) -> Option<&R> {
        self.shown.as_ref()
    }

    pub(super) fn live(&self) -> Option<&R> {
        self.seen.as_ref()?.rows.as_ref()
    }

    /// Takes in what is known now. Returns whether what is shown changed.
    pub(super) fn handle(&mut self, now: Instant, seen: Seen<R>) -> bool {
        let begins = match &self.seen {
            Some(before) => seen.is_another(before),
            None => seen.is_connection(),
        };
        if begins {
            self.base = self.seen.take().and_then(|before| before.snapshot);
            self.paid = false;
            self.capped = false;
        }
        if seen.is_connection() && (seen.snapshot != self.base || seen.is_live()) {
            self.paid = true;
        }
        if seen.is_live() {
            self.moved = false;
        }
        self.seen = Some(seen);
        self.decide(now)
    }

    /// A person moved or removed a row. Returns whether what is shown changed.
    pub(super) fn handle_moved(&mut self, now: Instant) -> bool {
        self.moved = !self.seen.as_ref().is_some_and(Seen::is_live);
        self.stage = Stage::Following;
        self.decide(now)
    }

    /// Time has passed. Returns whether what is shown changed.
    pub(super) fn handle_timeout(&mut self, now: Instant) -> bool {
        if self.cap().is_none_or(|cap| cap > now) {
            return false;
        }
        self.capped = true;
        self.decide(now)
    }

    /// When the host is no longer waited for.
    pub(super) fn cap(&self) -> Option<Instant> {
        self.since.filter(|_| self.stage == Stage::Waiting).map(|since| since.after(STEADY_CAP))
    }

    /// Whatever was waited for: show what is live. Returns whether what is shown changed.
    pub(super) fn release(&mut self) -> bool {
        self.stage = Stage::Following;
        self.since = None;
        self.follow()
    }

    fn is_waited_for(&self) -> bool {
        let Some(seen) = &self.seen else { return false };
        let comes = match seen.phase {
            ConnectionPhase::Connected => true,
            // A retry can take minutes.
            ConnectionPhase::Connecting => seen.attempt <= 1,
            ConnectionPhase::Available
            | ConnectionPhase::Offline
            | ConnectionPhase::Backoff
            | ConnectionPhase::Blocked
            | ConnectionPhase::Asleep => false,
        };
        comes && !self.paid && !self.capped && !self.moved
    }

    fn decide(&mut self, now: Instant) -> bool {
        self.stage = match (self.stage, self.is_waited_for()) {
            (_, true) => Stage::Waiting,
            (Stage::Waiting, false) => Stage::Ready,
            (stage @ (Stage::Ready | Stage::Following), false) => stage,
        };
        match self.stage {
            Stage::Waiting => {
                if self.seen.as_ref().is_some_and(Seen::is_connected) {
                    self.since.get_or_insert(now);
                }
                // Cached rows that are read late are better than none.
                if self.shown.is_none() { self.follow() } else { false }
            }
            Stage::Ready => false,
            Stage::Following => self.release(),
        }
    }

    fn follow(&mut self) -> bool {
        let live = self.live();
        if live == self.shown.as_ref() {
            return false;
        }
        self.shown = live.cloned();
        true
    }
}
