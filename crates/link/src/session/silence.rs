//! How long nothing was heard.

use std::time::Duration;

use crate::Instant;

/// After so many heartbeats of a host without a single frame its socket is called silent: two that
/// are late or lost mean nothing on a lossy way (spec client-runtime, W2).
pub const HEARTBEATS_MISSED: u32 = 3;
/// The shortest heartbeat that is believed. A host that promises less is held to no more, so that
/// a wrong number in its hello cannot make a client probe all the time.
pub const HEARTBEAT_LEAST: Duration = Duration::from_secs(1);
/// The longest heartbeat that is believed, so that silence is always noticed at some time.
pub const HEARTBEAT_MOST: Duration = Duration::from_secs(300);

/// Notices silence, once until something is heard again. Never ends anything: a host that is busy
/// is silent too.
#[derive(Debug)]
pub(super) struct Silence {
    heard: Instant,
    /// How much of it is silence; none before the hello.
    limit: Option<Duration>,
    is_told: bool,
}

impl Silence {
    /// Nothing is measured yet.
    pub(super) const fn new(now: Instant) -> Self {
        Self { heard: now, limit: None, is_told: false }
    }

    /// The host has said how long it is silent at most, in milliseconds.
    pub(super) fn begin(&mut self, heartbeat_ms: u64) {
        let heartbeat = Duration::from_millis(heartbeat_ms).clamp(HEARTBEAT_LEAST, HEARTBEAT_MOST);
        self.limit = Some(heartbeat * HEARTBEATS_MISSED);
    }

    /// A frame has come.
    pub(super) const fn handle_sign_of_life(&mut self, now: Instant) {
        self.heard = now;
        self.is_told = false;
    }

    /// When silence begins.
    pub(super) fn deadline(&self) -> Option<Instant> {
        if self.is_told { None } else { self.limit.map(|limit| self.heard.after(limit)) }
    }

    /// Whether silence begins now.
    pub(super) fn handle_timeout(&mut self, now: Instant) -> bool {
        let begins = self.deadline().is_some_and(|deadline| deadline <= now);
        self.is_told |= begins;
        begins
    }
}
