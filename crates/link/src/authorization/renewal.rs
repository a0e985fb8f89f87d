//! One renewal: from the first request to the token.

use std::time::Duration;

use crate::Instant;

use super::{RenewalId, Secret};

/// How long a renewal may take altogether. It outlives the attempt that began it, and the next
/// attempt finds it under way. A platform that wakes an environment answers sooner.
pub const RENEWAL_LIMIT: Duration = Duration::from_secs(30);

#[derive(Debug)]
pub(super) struct Renewal {
    pub(super) id: RenewalId,
    /// Whether it wakes a sleeping environment.
    pub(super) wake: bool,
    pub(super) deadline: Instant,
    pub(super) step: Step,
    /// Whether another grant or proof was tried after a refusal. Only one is.
    pub(super) repeated: bool,
}

#[derive(Debug)]
pub(super) enum Step {
    /// A grant is awaited.
    Granting,
    /// A token is awaited.
    Exchanging {
        /// The host's public address.
        address: String,
    },
    /// A refresh token is being stored.
    Storing {
        /// What is used once it is; nothing where the refresh token itself is to be used next.
        brought: Option<Brought>,
    },
}

/// A token that was had, and is not in use yet.
#[derive(Debug)]
pub(super) struct Brought {
    pub(super) address: String,
    pub(super) token: Secret,
    pub(super) until: Instant,
}

impl Renewal {
    pub(super) fn new(id: RenewalId, now: Instant, wake: bool, step: Step) -> Self {
        let deadline = now.after(RENEWAL_LIMIT);
        Self { id, wake, deadline, step, repeated: false }
    }
}
