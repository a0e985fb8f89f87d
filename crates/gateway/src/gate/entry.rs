//! What is asked for, and the answer while it holds.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering::SeqCst},
    },
    time::Duration,
};

use wakeful_wire::{
    EnvId, SurfaceName,
    gate::{EnsureAnswer, EnsureRequest, GateState, LeaseKind, Principal},
};

use crate::leases::{Hold, Lease};

/// What an answer is cached under, and what one caller at a time asks for.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Key {
    /// The environment.
    pub env: EnvId,
    /// The surface.
    pub surface: SurfaceName,
    /// Who asks.
    pub principal: Option<Principal>,
    /// Whether this request may wake.
    pub intent: bool,
}

impl Key {
    /// The question to the control plane.
    #[must_use]
    pub fn request(&self) -> EnsureRequest {
        EnsureRequest {
            env: self.env,
            surface: self.surface.clone(),
            principal: self.principal.clone(),
            intent: self.intent,
        }
    }
}

/// An answer of the control plane while it holds. Shared by all cores; everything about it but its
/// end is fixed.
#[derive(Debug)]
pub struct Entry {
    pub(super) answer: EnsureAnswer,
    pub(super) valid_until: Duration,
    /// Set once, never cleared. An entry that is not in the gate's map is dead.
    pub(super) dead: AtomicBool,
    pub(super) hold: Arc<Hold>,
}

impl Entry {
    /// The answer.
    #[must_use]
    pub const fn answer(&self) -> &EnsureAnswer {
        &self.answer
    }

    /// When it ends by itself, since the gateway's start.
    #[must_use]
    pub const fn valid_until(&self) -> Duration {
        self.valid_until
    }

    /// Whether it still holds. For an admission ask [`Entry::admit`] instead: between this answer
    /// and a lease taken after it, a drain could begin.
    #[must_use]
    pub fn is_live(&self, now: Duration) -> bool {
        now < self.valid_until && !self.dead.load(SeqCst)
    }

    /// Admits a request, if the environment is ready and the answer still holds: the lease is
    /// counted first and the entry looked at afterwards, which is what makes it safe against a
    /// drain at the same moment (see [`crate::leases`]). The admission reaches the clock with the
    /// next report.
    ///
    /// `None`: ask the gate. Costs two atomic additions and two loads; takes no lock.
    #[must_use]
    pub fn admit(&self, now: Duration, kind: LeaseKind) -> Option<Lease> {
        if self.answer.state != GateState::Ready || now >= self.valid_until {
            return None;
        }
        self.checked(Lease::take(&self.hold, kind))
    }

    /// As [`Self::admit`] for a request that is to touch no clock ([`Lease::take_quiet`]).
    #[must_use]
    pub fn admit_quietly(&self, now: Duration) -> Option<Lease> {
        if self.answer.state != GateState::Ready || now >= self.valid_until {
            return None;
        }
        self.checked(Lease::take_quiet(&self.hold))
    }

    /// The second half of an admission: the lease is counted already.
    fn checked(&self, lease: Lease) -> Option<Lease> {
        if self.dead.load(SeqCst) {
            return None;
        }
        Some(lease)
    }

    /// The counters that its admissions count on.
    #[must_use]
    pub const fn hold(&self) -> &Arc<Hold> {
        &self.hold
    }

    pub(super) fn kill(&self) {
        self.dead.store(true, SeqCst);
    }
}
