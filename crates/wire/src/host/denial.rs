//! Why a host refused a credential, and what its client can do about it.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::Code;

/// What a client does about a [`Denial`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Remedy {
    /// Try once more with a fresh proof (and the nonce, if one was given).
    FreshProof,
    /// Get another access token first: by a grant, or by the refresh token.
    Renew,
    /// Ask a person, or the control plane, to let this client in again.
    SignIn,
    /// Try the same again later.
    Wait,
    /// None: the client itself is wrong.
    Nothing,
}

macro_rules! denials {
    ($($(#[$doc:meta])* $name:ident = $text:literal, $code:ident, $oauth:literal, $remedy:ident, $sentence:literal;)*) => {
        /// Why a credential was refused: one for each cause.
        ///
        /// Every text that it gives is for the outside. It tells the client what is wrong with what
        /// the client itself sent, and nothing of any other session.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
        #[cfg_attr(
            feature = "schema",
            derive(schemars::JsonSchema),
            schemars(transform = crate::schema::open)
        )]
        pub enum Denial {
            $($(#[$doc])* #[serde(rename = $text)] $name,)*
        }

        impl Denial {
            /// Every denial, in the order of its declaration.
            pub const ALL: &'static [Self] = &[$(Self::$name,)*];

            /// The stable text.
            #[must_use]
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$name => $text,)* }
            }

            /// The code of the answer, and with it the status.
            #[must_use]
            pub const fn code(self) -> Code {
                match self { $(Self::$name => Code::$code,)* }
            }

            /// The error's name in OAuth (RFC 6749, 6750, 9449).
            #[must_use]
            pub const fn oauth_error(self) -> &'static str {
                match self { $(Self::$name => $oauth,)* }
            }

            /// What the client does about it.
            #[must_use]
            pub const fn remedy(self) -> Remedy {
                match self { $(Self::$name => Remedy::$remedy,)* }
            }

            /// What happened and what to do, in a sentence for people. It is fit for a quoted
            /// string of a header.
            #[must_use]
            pub const fn sentence(self) -> &'static str {
                match self { $(Self::$name => $sentence,)* }
            }
        }
    };
}

denials! {
    /// No `DPoP` header, or more than one.
    ProofMissing = "proof_missing", Unauthenticated, "invalid_dpop_proof", FreshProof,
        "Send exactly one DPoP header with a proof of the client's key.";
    /// Longer than a proof may be.
    ProofTooLong = "proof_too_long", Unauthenticated, "invalid_dpop_proof", Nothing,
        "The DPoP proof is too long.";
    /// Not a signed JWT with the claims of a proof.
    ProofMalformed = "proof_malformed", Unauthenticated, "invalid_dpop_proof", Nothing,
        "The DPoP proof is not a compact JWT with jti, htm, htu and iat.";
    /// The header's `typ` is not `dpop+jwt`.
    ProofType = "proof_type", Unauthenticated, "invalid_dpop_proof", Nothing,
        "The DPoP proof's typ must be dpop+jwt.";
    /// An algorithm that is not taken, `none` and symmetric ones among them.
    ProofAlgorithm = "proof_algorithm", Unauthenticated, "invalid_dpop_proof", Nothing,
        "The DPoP proof must be signed with ES256 or EdDSA.";
    /// The key is missing, malformed or does not fit the algorithm.
    ProofKey = "proof_key", Unauthenticated, "invalid_dpop_proof", Nothing,
        "The DPoP proof's jwk is not a public key that fits its algorithm.";
    /// The header holds a private or secret key. That key must not be used any more.
    ProofPrivateKey = "proof_private_key", Unauthenticated, "invalid_dpop_proof", Nothing,
        "The DPoP proof's jwk holds a private key. Replace the key and send only its public part.";
    /// The signature does not fit.
    ProofSignature = "proof_signature", Unauthenticated, "invalid_dpop_proof", Nothing,
        "The DPoP proof's signature does not fit its key.";
    /// Made for another method.
    ProofMethod = "proof_method", Unauthenticated, "invalid_dpop_proof", FreshProof,
        "The DPoP proof was made for another method.";
    /// Made for another address.
    ProofUrl = "proof_url", Unauthenticated, "invalid_dpop_proof", FreshProof,
        "The DPoP proof was made for another address than the one this host is reached at.";
    /// Its time lies too far ahead.
    ProofEarly = "proof_early", Unauthenticated, "invalid_dpop_proof", FreshProof,
        "The DPoP proof's time lies ahead of the host's. Check the clocks of both (clock skew).";
    /// Its time lies too far back.
    ProofLate = "proof_late", Unauthenticated, "invalid_dpop_proof", FreshProof,
        "The DPoP proof is too old. If it is fresh, check the clocks of client and host (clock skew).";
    /// It does not name the access token that came with it.
    ProofToken = "proof_token", Unauthenticated, "invalid_dpop_proof", FreshProof,
        "The DPoP proof was not made for this access token (ath).";
    /// The host asks for a nonce in the proof.
    NonceRequired = "nonce_required", Unauthenticated, "use_dpop_nonce", FreshProof,
        "Use the nonce of the DPoP-Nonce header in the proof.";
    /// Seen before.
    ProofReplayed = "proof_replayed", Unauthenticated, "invalid_dpop_proof", FreshProof,
        "The DPoP proof was used before. Make a fresh one for each request.";
    /// More proofs than can be remembered; none is forgotten early for the sake of a new one.
    ProofsFull = "proofs_full", TooManyRequests, "temporarily_unavailable", Wait,
        "Too many requests. Try again in a minute or two.";

    /// No access token.
    TokenMissing = "token_missing", Unauthenticated, "invalid_token", Renew,
        "Send an access token with the DPoP authorization scheme.";
    /// Sent with another scheme than `DPoP`.
    TokenScheme = "token_scheme", Unauthenticated, "invalid_token", Nothing,
        "This access token is bound to a key: send it with the DPoP authorization scheme and a proof.";
    /// Not of a shape that this host issues.
    TokenMalformed = "token_malformed", Unauthenticated, "invalid_token", Renew,
        "This is no access token of this host.";
    /// The host did not sign it.
    TokenSignature = "token_signature", Unauthenticated, "invalid_token", Renew,
        "This host did not issue this access token.";
    /// A token of another kind, such as a refresh token where an access token belongs.
    TokenKind = "token_kind", Unauthenticated, "invalid_token", Nothing,
        "This token is of another kind than the request needs.";
    /// Past its end.
    TokenExpired = "token_expired", Unauthenticated, "invalid_token", Renew,
        "The access token has expired.";
    /// The proof's key is not the one that the token is bound to.
    TokenKey = "token_key", Unauthenticated, "invalid_token", Nothing,
        "The access token is bound to another key than the DPoP proof's.";
    /// Its session is gone.
    SessionUnknown = "session_unknown", Unauthenticated, "invalid_token", SignIn,
        "The session no longer exists. Connect this client again.";
    /// Its session was revoked.
    SessionRevoked = "session_revoked", Unauthenticated, "invalid_token", SignIn,
        "The session was revoked. Connect this client again.";
    /// Its session is past its end.
    SessionExpired = "session_expired", Unauthenticated, "invalid_token", SignIn,
        "The session has expired. Connect this client again.";
    /// The session may not do this.
    ScopeMissing = "scope_missing", Forbidden, "insufficient_scope", SignIn,
        "This session may not do that.";
    /// As many sessions as the host holds.
    SessionsFull = "sessions_full", Overloaded, "temporarily_unavailable", Wait,
        "This host holds as many sessions as it can. Revoke some, or try again later.";

    /// Not of a grant's shape.
    GrantMalformed = "grant_malformed", BadCredentials, "invalid_grant", SignIn,
        "This is no grant.";
    /// Nobody who may issue grants for this host did so.
    GrantSignature = "grant_signature", BadCredentials, "invalid_grant", SignIn,
        "The grant was not issued for this incarnation of the environment. Ask for another.";
    /// For another environment.
    GrantAudience = "grant_audience", BadCredentials, "invalid_grant", SignIn,
        "The grant is for another environment.";
    /// Its time lies too far ahead.
    GrantEarly = "grant_early", BadCredentials, "invalid_grant", SignIn,
        "The grant's time lies ahead of the host's. The clocks of platform and host differ (clock skew).";
    /// Past its end.
    GrantExpired = "grant_expired", BadCredentials, "invalid_grant", SignIn,
        "The grant has expired. Ask for another; if it is fresh, clocks differ (clock skew).";
    /// Exchanged before.
    GrantUsed = "grant_used", BadCredentials, "invalid_grant", SignIn,
        "The grant was used before. Ask for another.";
    /// It gives nothing that this host knows.
    GrantScope = "grant_scope", BadCredentials, "invalid_scope", SignIn,
        "The grant gives no scope that this host knows.";
    /// This host takes no grants.
    GrantUnsupported = "grant_unsupported", BadCredentials, "unsupported_grant_type", Nothing,
        "This host belongs to no platform: pair with it instead.";

    /// No such code.
    PairingWrong = "pairing_wrong", BadCredentials, "invalid_grant", SignIn,
        "This is no pairing code that is in force. Compare it with the one that the host shows.";
    /// Past its end.
    PairingExpired = "pairing_expired", BadCredentials, "invalid_grant", SignIn,
        "The pairing code has expired. Make another on the host.";
    /// Too many wrong codes were tried.
    PairingExhausted = "pairing_exhausted", TooManyRequests, "invalid_grant", SignIn,
        "Too many wrong pairing codes were tried. Make another on the host.";
    /// From farther away than the local network.
    PairingPeer = "pairing_peer", Forbidden, "unauthorized_client", Nothing,
        "Pairing is possible from this machine and its local network only.";

    /// Not of a ticket's shape.
    TicketMalformed = "ticket_malformed", Unauthenticated, "invalid_token", Nothing,
        "This is no ticket.";
    /// Not issued, or no longer known.
    TicketUnknown = "ticket_unknown", Unauthenticated, "invalid_token", Renew,
        "This host does not know the ticket. Ask for another.";
    /// Used before.
    TicketUsed = "ticket_used", Unauthenticated, "invalid_token", Renew,
        "The ticket was used before. Ask for another.";
    /// Past its end.
    TicketExpired = "ticket_expired", Unauthenticated, "invalid_token", Renew,
        "The ticket has expired. Ask for another.";
}

impl fmt::Display for Denial {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl std::error::Error for Denial {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_denial_has_its_own_text_and_a_sentence_fit_for_a_header() {
        let mut texts: Vec<_> = Denial::ALL.iter().map(|denial| denial.as_str()).collect();
        texts.sort_unstable();
        texts.dedup();
        assert_eq!(texts.len(), Denial::ALL.len());
        for denial in Denial::ALL {
            let sentence = denial.sentence();
            assert!(sentence.ends_with('.'), "{denial}");
            assert!(
                sentence.bytes().all(|b| matches!(b, 0x20..=0x7e) && b != b'"' && b != b'\\'),
                "{denial}"
            );
            let json = serde_json::to_string(denial).unwrap();
            assert_eq!(json, format!("\"{denial}\""));
        }
    }

    #[test]
    fn whatever_clocks_can_cause_says_so() {
        for denial in
            [Denial::ProofEarly, Denial::ProofLate, Denial::GrantEarly, Denial::GrantExpired]
        {
            assert!(denial.sentence().contains("clock skew"), "{denial}");
        }
    }
}
