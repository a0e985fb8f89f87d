//! What is to be done for a connection.

use crate::{AttemptId, Instant};

/// Something is to be done, in this order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Action {
    /// Ask the budget for this attempt; answer with `Granted`.
    Want {
        /// Which.
        attempt: AttemptId,
        /// A person waits for it.
        urgent: bool,
    },
    /// Prepare, open, and await the host's hello, once: nobody below tries again.
    Begin {
        /// Which.
        attempt: AttemptId,
        /// Whether it may wake a sleeping environment.
        wake: bool,
        /// When it is abandoned if it is not ready: for all of its steps together.
        deadline: Instant,
    },
    /// End this attempt, whatever it has begun, and its wish at the budget.
    Abandon {
        /// Which.
        attempt: AttemptId,
    },
    /// This is the session from now on.
    Publish {
        /// The attempt that it came from.
        attempt: AttemptId,
        /// Its number, one more than the last.
        generation: u64,
    },
    /// This is the session no more.
    Unpublish {
        /// The attempt that it came from.
        attempt: AttemptId,
    },
    /// Close that socket, if it is not gone already. Exactly once for each that became ready.
    Release {
        /// The attempt that it came from.
        attempt: AttemptId,
        /// Why.
        why: ReleaseReason,
    },
    /// Send the no-work request on that session.
    Probe {
        /// The session.
        attempt: AttemptId,
        /// Answer with this number.
        check: u64,
    },
    /// Ask the host for its descriptor by a fresh request, beside those still under way.
    AskHost {
        /// Answer with this number.
        check: u64,
    },
    /// End what [`Action::AskHost`] has under way for this check.
    StopAsking {
        /// The check.
        check: u64,
    },
}

/// Why a session's socket is released.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ReleaseReason {
    /// The connection is wanted no more.
    Disconnected,
    /// It is gone already.
    Closed,
    /// A check found it dead.
    Dead,
    /// The credentials that it was opened with changed.
    CredentialsChanged,
    /// It was opened beside a session that turned out to live, or that ended for a reason which
    /// holds for it as well.
    NotNeeded,
    /// It became ready after it was abandoned.
    Late,
}
