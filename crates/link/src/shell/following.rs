//! One session's part: what its hello said, and how far its subscription is.

use std::time::Duration;

use wakeful_wire::{
    host::{Capabilities, capability},
    rpc::{Cursor, Omissions, Seq},
};

use super::{
    ShellList,
    gap::GapWatch,
    provenance::{Terms, allowed},
};
use crate::{Failure, FailureReason, Instant};

/// How long a list is still called live while it is looked whether something was missed.
pub const LOOK_PATIENCE: Duration = Duration::from_secs(10);
/// How long after it has ended for good a subscription is made anew. Twice as long each further time
/// before changes have come.
pub const REST_LEAST: Duration = Duration::from_secs(1);
/// How long at most.
pub const REST_MOST: Duration = Duration::from_secs(300);
/// After so many failures of one session that went on from held rows, the whole list is asked for:
/// the host may be unable to go on from just there.
pub const RESUMES_MAX: u32 = 2;

/// How far the subscription is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stage {
    /// It waits for the read over HTTP.
    Loading,
    /// Its first item is awaited.
    Awaiting,
    /// It has begun; the marker may be owed.
    Following {
        /// Whether the marker is owed.
        owed: bool,
    },
    /// It has ended for good, and is made anew then.
    Resting(Instant),
}

/// One session's part.
#[derive(Debug)]
pub(super) struct Following {
    /// What rows must be like.
    pub(super) terms: Terms,
    /// Whether the host says when everything has been delivered.
    pub(super) marks: bool,
    /// When the session became ready.
    pub(super) since: Instant,
    /// How far the subscription is.
    pub(super) stage: Stage,
    /// Whether the rows are what the host has, as far as is known.
    pub(super) live: bool,
    /// Until when that is believed without the subscription.
    pub(super) look_until: Option<Instant>,
    /// Whether the held rows are no base for this session, whatever was said of them.
    pub(super) distrusts: bool,
    /// Watches for missed events.
    pub(super) watch: GapWatch,
    failed_resumes: u32,
    rests: u32,
}

impl Following {
    /// A session that became ready now.
    pub(super) fn new(
        now: Instant,
        wanted: Omissions,
        capabilities: &Capabilities,
        release: &str,
        head: Cursor,
    ) -> Self {
        let mut watch = GapWatch::default();
        watch.handle_head(head.seq);
        let omit = allowed(wanted, capabilities);
        Self {
            terms: Terms { release: release.to_owned(), omit, epoch: head.epoch },
            marks: capabilities.has(capability::SYNCHRONIZED),
            since: now,
            stage: Stage::Loading,
            live: false,
            look_until: None,
            distrusts: false,
            watch,
            failed_resumes: 0,
            rests: 0,
        }
    }

    /// Whether a subscription is open.
    pub(super) const fn is_subscribed(&self) -> bool {
        match self.stage {
            Stage::Awaiting | Stage::Following { .. } => true,
            Stage::Loading | Stage::Resting(_) => false,
        }
    }

    /// The place to compare heads with; nothing while that would say nothing.
    pub(super) fn held(&self, list: Option<&ShellList>) -> Option<Seq> {
        let cursor = list?.cursor();
        let settled = self.live && self.stage == Stage::Following { owed: false };
        (settled && cursor.epoch == self.terms.epoch).then_some(cursor.seq)
    }

    /// The rows are what the host has.
    pub(super) const fn handle_live(&mut self) {
        self.stage = Stage::Following { owed: false };
        self.live = true;
        self.look_until = None;
        self.failed_resumes = 0;
    }

    /// Whether what comes is still a replay.
    pub(super) fn is_replaying(&self) -> bool {
        self.stage == Stage::Following { owed: true }
    }

    /// Changes were taken in.
    pub(super) const fn handle_changes(&mut self) {
        self.watch.handle_progress();
        self.rests = 0;
    }

    /// Rows have changed. Before the marker that shows that something was missing.
    pub(super) fn handle_behind(&mut self) {
        if self.is_replaying() {
            self.live = false;
        }
    }

    /// The host sent the whole list.
    pub(super) const fn handle_snapshot(&mut self) {
        self.distrusts = false;
        self.failed_resumes = 0;
        self.live = false;
        self.look_until = None;
        self.stage = Stage::Following { owed: true };
    }

    /// It is looked whether something was missed: the subscription begins anew.
    pub(super) fn handle_look(&mut self, now: Instant) {
        self.stage = Stage::Awaiting;
        self.look_until = Some(now.after(LOOK_PATIENCE));
    }

    /// The subscription failed and will be tried again.
    pub(super) fn handle_failed(&mut self, failure: &Failure, resumed: bool) {
        self.stage = Stage::Awaiting;
        self.live = false;
        self.look_until = None;
        if resumed && failure.reason == FailureReason::Remote {
            self.failed_resumes += 1;
            self.distrusts |= self.failed_resumes >= RESUMES_MAX;
        }
    }

    /// The subscription is over, and is to be made anew later.
    pub(super) fn handle_ended(&mut self, now: Instant) {
        let rest = REST_LEAST.saturating_mul(1 << self.rests.min(16)).min(REST_MOST);
        self.rests = self.rests.saturating_add(1);
        self.stage = Stage::Resting(now.after(rest));
        self.live = false;
        self.look_until = None;
    }
}
