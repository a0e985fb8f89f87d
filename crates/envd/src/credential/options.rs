//! What an authority is made of.

use std::{fmt, path::PathBuf};

use super::{
    file::SessionFileError,
    grant::GrantGate,
    policy::{PolicyError, SessionPolicy},
    proof::ProofPolicy,
    replay::ReplayBounds,
    sources::Sources,
};

/// What an [`Authority`](super::Authority) is made of.
pub struct AuthorityOptions {
    /// The session file; `.wakeful/sessions.db` on the workspace. Its directory exists.
    pub path: PathBuf,
    /// Takes the control plane's grants. `None` on a host of its own, which is only paired with.
    pub grants: Option<GrantGate>,
    /// Mixed into the key that signs tokens. Every restart must bring the same one, or all tokens
    /// end. May be empty: see the module's own words on what it is for.
    pub pepper: Vec<u8>,
    /// Lifetimes and bounds of sessions.
    pub sessions: SessionPolicy,
    /// How far the clocks of clients may differ.
    pub proofs: ProofPolicy,
    /// How many proofs are remembered.
    pub replays: ReplayBounds,
    /// Time and randomness.
    pub sources: Sources,
}

impl AuthorityOptions {
    /// Options with every default, for a host that is only paired with.
    #[must_use]
    pub fn new(path: PathBuf, sources: Sources) -> Self {
        Self {
            path,
            grants: None,
            pepper: Vec::new(),
            sessions: SessionPolicy::default(),
            proofs: ProofPolicy::default(),
            replays: ReplayBounds::default(),
            sources,
        }
    }
}

impl fmt::Debug for AuthorityOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AuthorityOptions")
            .field("path", &self.path)
            .field("sessions", &self.sessions)
            .finish_non_exhaustive()
    }
}

/// Why an authority did not open.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// A setting makes no sense.
    #[error("a setting of sessions is wrong")]
    Policy(#[from] PolicyError),
    /// The session file cannot be used.
    #[error("the sessions cannot be opened")]
    File(#[from] SessionFileError),
}
