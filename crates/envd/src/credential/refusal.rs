//! What goes wrong with credentials: a denial, or a failure of the host itself. The two are never
//! taken for one another: a client that cannot tell them apart throws good credentials away.

use wakeful_wire::{
    Code, Problem,
    host::{Denial, PROOF_ALGORITHMS, TokenError},
};

use super::file::SessionFileError;

/// Why an operation on credentials did not happen.
#[derive(Debug, thiserror::Error)]
pub enum CredentialError {
    /// What the client showed was refused. Nothing happened.
    #[error("refused: {0}")]
    Denied(#[from] Denial),
    /// The session file failed.
    #[error("the sessions cannot be stored")]
    File(#[from] SessionFileError),
}

impl CredentialError {
    /// The code of the answer.
    #[must_use]
    pub const fn code(&self) -> Code {
        match self {
            Self::Denied(denial) => denial.code(),
            Self::File(_) => Code::Internal,
        }
    }

    /// The denial, if it is one.
    #[must_use]
    pub const fn denial(&self) -> Option<Denial> {
        match self {
            Self::Denied(denial) => Some(*denial),
            Self::File(_) => None,
        }
    }

    /// The body of an answer, with nothing internal in it.
    #[must_use]
    pub fn problem(&self) -> Problem {
        let problem = Problem::new(self.code());
        match self {
            Self::Denied(denial) => problem.detail(denial.sentence()),
            Self::File(_) => problem,
        }
    }

    /// The body of an answer of the token endpoint, with nothing internal in it.
    #[must_use]
    pub fn token_error(&self) -> TokenError {
        match self {
            Self::Denied(denial) => (*denial).into(),
            Self::File(_) => TokenError {
                error: "server_error".to_owned(),
                error_description: "The host cannot store sessions at the moment.".to_owned(),
                reason: None,
            },
        }
    }

    /// The status of that answer: 400 (RFC 6749 section 5.2), or what its code says where trying
    /// later or somebody else is the remedy.
    #[must_use]
    pub const fn token_status(&self) -> u16 {
        let status = self.code().status();
        if status >= 429 || status == 403 { status } else { 400 }
    }
}

/// The value of `WWW-Authenticate` on a 401 or 403 answer (RFC 9449 section 7.1). A request without
/// any credential is told only what to bring (RFC 6750 section 3.1).
#[must_use]
pub fn challenge(denial: Denial) -> String {
    if denial == Denial::TokenMissing {
        return format!("DPoP algs=\"{PROOF_ALGORITHMS}\"");
    }
    format!(
        "DPoP error=\"{}\", error_description=\"{}\", algs=\"{PROOF_ALGORITHMS}\"",
        denial.oauth_error(),
        denial.sentence(),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_of_the_host_is_internal_and_says_nothing_of_it() {
        let error = CredentialError::from(SessionFileError::Sqlite(sqlx::Error::PoolClosed));
        assert_eq!((error.code(), error.denial()), (Code::Internal, None));
        assert_eq!((error.token_status(), error.problem().detail), (500, None));
        assert_eq!(error.token_error().error, "server_error");
    }

    #[test]
    fn a_challenge_names_the_scheme_and_why() {
        assert_eq!(challenge(Denial::TokenMissing), "DPoP algs=\"ES256 EdDSA\"");
        let expired = challenge(Denial::TokenExpired);
        assert!(expired.starts_with("DPoP error=\"invalid_token\", error_description=\""));
    }

    #[test]
    fn the_token_endpoint_answers_400_unless_waiting_helps() {
        let status = |denial: Denial| CredentialError::from(denial).token_status();
        assert_eq!(status(Denial::GrantUsed), 400);
        assert_eq!(status(Denial::ProofMissing), 400);
        assert_eq!(status(Denial::PairingPeer), 403);
        assert_eq!(status(Denial::PairingExhausted), 429);
        assert_eq!(status(Denial::SessionsFull), 503);
    }
}
