//! What is asked of the machine, and what it asks for.

use crate::{Failure, Instant};

use super::Secret;

/// One access token. Never reused, so a token of the past is never taken for a later one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TokenId(pub u64);

/// One caller that waits for a token. Never reused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct CallerId(pub u64);

/// One renewal. Never reused: what comes with another number than the present one is of the past
/// and changes nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RenewalId(pub u64);

/// What a request or a ticket is asked with, now. Whoever has it uses it at once and asks again
/// the next time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Access {
    /// Which token it is: to say that it was refused.
    pub id: TokenId,
    /// The public address of the host, without a slash at its end. Proofs are made for addresses
    /// below it.
    pub address: String,
    /// The token.
    pub token: Secret,
    /// When it ends.
    pub until: Instant,
    /// Whether it was held before it was asked for, rather than had for this caller.
    pub cached: bool,
}

/// What a caller needs.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Need {
    /// Whether a sleeping environment is woken for it. Who does not say so fails with
    /// [`Asleep`](crate::FailureReason::Asleep).
    pub wake: bool,
    /// The token that the host has just refused, if one was.
    pub rejected: Option<TokenId>,
}

/// What asking for a token leads to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Asked {
    /// A token that is good for a while. No request was needed.
    Held(Access),
    /// The caller waits for [`Action::Answer`] with this number, or leaves by
    /// [`Authorization::cancel`](super::Authorization::cancel).
    Waiting(CallerId),
    /// There is none to be had: nobody is signed in, or too many wait already.
    Refused(Failure),
}

/// What is shown at a token endpoint.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Credential {
    /// A grant of the control plane. It can be exchanged once.
    Grant(Secret),
    /// The refresh token of a paired host.
    Refresh(Secret),
}

/// What is to be done. In this order, without exception: a credential that is stored and then
/// forgotten must end up forgotten.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Action {
    /// Ask the control plane for a grant, and give what comes to
    /// [`handle_granted`](super::Authorization::handle_granted).
    Grant {
        /// For this renewal.
        renewal: RenewalId,
        /// Whether a sleeping environment is woken.
        wake: bool,
    },
    /// Ask the host's token endpoint, with a proof that is made for this request alone, and give
    /// what comes to [`handle_exchanged`](super::Authorization::handle_exchanged).
    Exchange {
        /// For this renewal.
        renewal: RenewalId,
        /// What is shown.
        credential: Credential,
        /// The host's public address, which the proof is made for.
        address: String,
        /// Whether a sleeping environment is woken.
        wake: bool,
    },
    /// Store the refresh token of a paired host durably, in place of the former one, and say so by
    /// [`handle_stored`](super::Authorization::handle_stored). It is not used before.
    Store {
        /// For this renewal.
        renewal: RenewalId,
        /// The refresh token.
        refresh_token: Secret,
    },
    /// Remove the stored refresh token of this host, also one whose storing is still under way.
    Forget,
    /// Give up whatever request is under way for a renewal. What it brings would change nothing.
    Cancel {
        /// The renewal.
        renewal: RenewalId,
    },
    /// Tell a caller what became of it.
    Answer {
        /// The caller.
        caller: CallerId,
        /// A token, or why there is none.
        answer: Result<Access, Failure>,
    },
    /// A renewal worked while a socket lives. The host moves the socket to the newer session by
    /// itself: nothing is to be done with the socket.
    Renewed {
        /// The newer token.
        access: Access,
    },
}
