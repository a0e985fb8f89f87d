//! How a host is entered, and as whom.

use wakeful_wire::{HostSessionId, UserName};

use super::Secret;

/// With what this client enters a host. Tokens that were had with another one are never used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// The thumbprint of the key that proofs are made with. Tokens are bound to that key.
    pub key: String,
    /// The way in.
    pub way: Way,
}

/// The two ways to a token.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Way {
    /// By grants of the control plane that this client is signed in to.
    Environment {
        /// Who is signed in, where the client knows. Else it is whoever the first grant is for.
        account: Option<UserName>,
    },
    /// By the refresh token that pairing brought.
    Paired {
        /// The host's public address, without a slash at its end.
        address: String,
        /// The refresh token, as it is stored.
        refresh_token: Secret,
        /// The session that pairing made, where the client kept it. It stays the same for as long
        /// as the pairing lasts.
        session: Option<HostSessionId>,
    },
}
