//! What the boundary asks for and reports.

use serde_json::Value;
use wakeful_wire::{
    Problem,
    rpc::{Call, CallId},
};

use crate::{AttemptId, Failure, Instant, session::Effect};

/// Names a request or a stream. Never used again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Token(pub(super) u64);

/// Names a subscription. Never used again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SubscriptionId(pub(super) u64);

/// Names one call on its way to a session. Never used again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Sending(pub(super) u64);

/// Why a request or a stream did not succeed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{failure}")]
pub struct CallFailure {
    /// Why.
    pub failure: Failure,
    /// Whether it may have happened all the same.
    pub effect: Effect,
}

impl CallFailure {
    /// It certainly did not happen.
    pub(super) const fn certain(failure: Failure) -> Self {
        Self { failure, effect: Effect::None }
    }

    /// It may have happened.
    pub(super) const fn uncertain(failure: Failure) -> Self {
        Self { failure, effect: Effect::Unknown }
    }
}

impl From<CallFailure> for Failure {
    fn from(failed: CallFailure) -> Self {
        failed.failure
    }
}

/// How a subscription ended for good.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Over {
    /// What it was about was never there or is deleted ([`Code::NotFound`], [`Code::Gone`]).
    ///
    /// [`Code::NotFound`]: wakeful_wire::Code::NotFound
    /// [`Code::Gone`]: wakeful_wire::Code::Gone
    Gone(Problem),
    /// It failed, and nobody said what to do about that; or what came of it cannot be read.
    Failed(Failure),
}

/// What is to be done, in order.
#[derive(Debug, Clone, PartialEq)]
pub enum Action {
    /// Give this call to this session, and the answer to [`handle_sent`]. If the session is gone,
    /// nothing: then that has been, or will be, said by [`handle_unpublished`].
    ///
    /// [`handle_sent`]: super::Boundary::handle_sent
    /// [`handle_unpublished`]: super::Boundary::handle_unpublished
    Send {
        /// The session.
        attempt: AttemptId,
        /// Names this sending.
        sending: Sending,
        /// The call.
        call: Box<Call>,
    },
    /// Tell this session that nobody waits for this call any more.
    Cancel {
        /// The session.
        attempt: AttemptId,
        /// The call.
        id: CallId,
    },
    /// A request or a stream is over. The value is what the host answered; null where a stream has
    /// ended.
    Finished {
        /// Which one.
        token: Token,
        /// What came of it.
        outcome: Result<Value, CallFailure>,
    },
    /// The next item of a stream.
    StreamItem {
        /// Which one.
        token: Token,
        /// The item.
        item: Value,
    },
    /// Build this subscription's input from what is held now, and give it to [`handle_input`],
    /// at once or when it can be built.
    ///
    /// [`handle_input`]: super::Boundary::handle_input
    Build {
        /// Which one.
        subscription: SubscriptionId,
    },
    /// This subscription is on the current session: every item from here on comes of the input that
    /// was built last.
    Started {
        /// Which one.
        subscription: SubscriptionId,
    },
    /// The next item of a subscription.
    Item {
        /// Which one.
        subscription: SubscriptionId,
        /// The item.
        item: Value,
    },
    /// The session that carried this subscription is gone. It waits for the next one; this is no
    /// error of the subscription.
    Lost {
        /// Which one.
        subscription: SubscriptionId,
    },
    /// The host refused or ended this subscription while the session goes on.
    Failed {
        /// Which one.
        subscription: SubscriptionId,
        /// Why.
        failure: Failure,
        /// When it begins anew on this session; absent: on the next one.
        again_at: Option<Instant>,
    },
    /// This subscription is over for good.
    Over {
        /// Which one.
        subscription: SubscriptionId,
        /// How.
        over: Over,
    },
}

impl Action {
    /// Whether it is to be done to a session, and is void without it.
    pub(super) const fn is_for_session(&self) -> bool {
        match self {
            Self::Send { .. } | Self::Cancel { .. } => true,
            Self::Finished { .. }
            | Self::StreamItem { .. }
            | Self::Build { .. }
            | Self::Started { .. }
            | Self::Item { .. }
            | Self::Lost { .. }
            | Self::Failed { .. }
            | Self::Over { .. } => false,
        }
    }
}
