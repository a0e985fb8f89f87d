//! The environment server's own route (reserved surface `host`): credentials and what they open.
//!
//! A client shows a one-time credential (a [`grant`] of the control plane, or a pairing code) at
//! the token endpoint together with a DPoP proof (RFC 9449) and gets an access token that only the
//! holder of that key can use. A socket is opened with a one-use ticket and lives as long as the
//! session behind it: [`close`] says how it ends. Whatever is refused carries a [`Denial`], which
//! says why and what to do about it.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::{HostSessionId, Timestamp, UserName, newer};

mod denial;
mod descriptor;
pub mod grant;
mod scope;

pub use denial::{Denial, Remedy};
pub use descriptor::{Capabilities, DESCRIPTOR_PATH, Descriptor, Platform, capability};
pub use scope::{Scope, ScopeError, Scopes};

/// Close codes of a socket of the host surface that its session ends. Both are finer answers than
/// 4401 (not signed in): a client that meets 4401 alone knows only that it must sign in.
pub mod close {
    /// The session behind the socket was revoked: its credentials are dead, a retry with them is
    /// refused. The client waits for a person or its control plane.
    pub const SESSION_REVOKED: u16 = 4411;
    /// The session behind the socket ran out and no newer one took the socket over: the client
    /// renews first and then connects again.
    pub const SESSION_EXPIRED: u16 = 4412;
}

/// The name of the token endpoint below the host's address.
pub const TOKEN_PATH: &str = "/oauth/token";
/// The name of the ticket endpoint below the host's address.
pub const TICKET_PATH: &str = "/ticket";
/// The name of the socket below the host's address.
pub const SOCKET_PATH: &str = "/rpc";
/// The name of the endpoint that makes pairing codes, below the host's address.
pub const PAIRING_PATH: &str = "/pairing";
/// The header in which a gateway states the public address below which a host is reached, without
/// a slash at its end. A gateway removes it from whatever a client sends.
pub const PUBLIC_ADDRESS_HEADER: &str = "wakeful-public-address";
/// The header by which a host names itself in its refusals, so that a client can tell them from
/// those of a gateway on the way.
pub const HOST_HEADER: &str = "wakeful-host";
/// The `token_type` of every access token here.
pub const TOKEN_TYPE: &str = "DPoP";
/// The signature algorithms of proofs that a host takes, as `WWW-Authenticate` lists them.
pub const PROOF_ALGORITHMS: &str = "ES256 EdDSA";

/// A request at the token endpoint, with a proof in the `DPoP` header. The same fields arrive as a
/// form (RFC 6749) or as JSON.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "grant_type")]
pub enum TokenRequest {
    /// Exchanges a grant of the control plane.
    #[serde(rename = "urn:wakeful:oauth:grant")]
    Grant {
        /// The grant's text.
        grant: String,
        /// What the client calls itself, for the list of sessions.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        label: Option<String>,
    },
    /// Exchanges a pairing code.
    #[serde(rename = "urn:wakeful:oauth:pairing")]
    Pairing {
        /// The code as a person typed it.
        code: String,
        /// What the client calls itself, for the list of sessions.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        label: Option<String>,
    },
    /// Renews the access token of a paired client.
    #[serde(rename = "refresh_token")]
    Refresh {
        /// The refresh token.
        refresh_token: String,
    },
}

impl fmt::Debug for TokenRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (name, label) = match self {
            Self::Grant { label, .. } => ("Grant", label.as_deref()),
            Self::Pairing { label, .. } => ("Pairing", label.as_deref()),
            Self::Refresh { .. } => ("Refresh", None),
        };
        f.debug_struct(name).field("label", &label).finish_non_exhaustive()
    }
}

/// The answer of the token endpoint (RFC 6749 section 5.1). Sent with `Cache-Control: no-store`.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TokenResponse {
    /// The access token.
    pub access_token: String,
    /// [`TOKEN_TYPE`].
    pub token_type: String,
    /// The life of the access token in seconds, counted from the answer.
    pub expires_in: u64,
    /// What it may be used for.
    pub scope: Scopes,
    /// Renews the access token with a proof of the same key; only a paired client gets one. A
    /// client of an environment asks its control plane for another grant instead.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refresh_token: Option<String>,
    /// The session that it stands for.
    pub session: HostSessionId,
}

impl fmt::Debug for TokenResponse {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TokenResponse")
            .field("session", &self.session)
            .field("scope", &self.scope)
            .field("expires_in", &self.expires_in)
            .finish_non_exhaustive()
    }
}

/// The error answer of the token endpoint (RFC 6749 section 5.2): status 400, or the status of the
/// denial's [`Code`](crate::Code) where that is 403, or 429 or above.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TokenError {
    /// The error's name in OAuth.
    pub error: String,
    /// A sentence for people.
    pub error_description: String,
    /// Why exactly; absent where the host itself failed, and read as absent where a newer host has
    /// a reason that this release does not know.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "newer::known")]
    pub reason: Option<Denial>,
}

impl From<Denial> for TokenError {
    fn from(denial: Denial) -> Self {
        Self {
            error: denial.oauth_error().to_owned(),
            error_description: denial.sentence().to_owned(),
            reason: Some(denial),
        }
    }
}

/// A ticket for one upgrade. It is short-lived and used up by the first attempt, so it may stand in
/// an address; the access token may not.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TicketResponse {
    /// The ticket.
    pub ticket: String,
    /// Its life in seconds.
    pub expires_in: u64,
}

impl fmt::Debug for TicketResponse {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TicketResponse")
            .field("expires_in", &self.expires_in)
            .finish_non_exhaustive()
    }
}

/// Asks for a pairing code for another client. The host must be able to be
/// [paired with](capability::PAIRING).
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PairingRequest {
    /// A label for the session, if the client that enters gives none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
    /// What the client may do, at most what the asker may; absent: the same.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scopes: Option<Scopes>,
}

/// A pairing code.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PairingAnswer {
    /// The code, as it is shown to a person.
    pub code: String,
    /// When it ends.
    pub expires_at: Timestamp,
}

impl fmt::Debug for PairingAnswer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PairingAnswer")
            .field("expires_at", &self.expires_at)
            .finish_non_exhaustive()
    }
}

/// How a session came to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(
    feature = "schema",
    derive(schemars::JsonSchema),
    schemars(transform = crate::schema::open)
)]
#[serde(rename_all = "snake_case")]
pub enum SessionMethod {
    /// By a grant of the control plane.
    Grant,
    /// By a pairing code.
    Pairing,
    /// In a way that a newer host knows.
    #[serde(other)]
    Other,
}

impl SessionMethod {
    /// The stable text.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Grant => "grant",
            Self::Pairing => "pairing",
            Self::Other => "other",
        }
    }
}

/// A session as a list shows it. It is listed while it is not revoked and either not expired or
/// still connected; being listed says nothing about its credentials, which end at `expires_at`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SessionView {
    /// Its id.
    pub id: HostSessionId,
    /// Whose it is.
    pub subject: UserName,
    /// What it may do.
    pub scopes: Scopes,
    /// How it came to be.
    pub method: SessionMethod,
    /// What its client calls itself.
    pub label: String,
    /// When it was issued.
    pub issued_at: Timestamp,
    /// When its credentials end.
    pub expires_at: Timestamp,
    /// When it last went from no socket to one.
    pub last_connected_at: Option<Timestamp>,
    /// How many sockets it has.
    pub connections: u32,
}

/// A change of the list of sessions.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(
    feature = "schema",
    derive(schemars::JsonSchema),
    schemars(transform = crate::schema::open)
)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum SessionEvent {
    /// It is new, or something of it changed.
    Updated {
        /// The session.
        session: SessionView,
    },
    /// It is no longer listed.
    Removed {
        /// Its id.
        id: HostSessionId,
    },
    /// Something that a newer host knows; skipped.
    #[serde(other)]
    Unknown,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_request_is_told_by_its_grant_type_and_prints_no_secret() {
        let table = [
            (r#"{"grant_type":"urn:wakeful:oauth:grant","grant":"sesame"}"#, "Grant"),
            (
                r#"{"grant_type":"urn:wakeful:oauth:pairing","code":"sesame","label":"x"}"#,
                "Pairing",
            ),
            (r#"{"grant_type":"refresh_token","refresh_token":"sesame"}"#, "Refresh"),
        ];
        for (text, name) in table {
            let request: TokenRequest = serde_json::from_str(text).unwrap();
            let shown = format!("{request:?}");
            assert!(shown.starts_with(name) && !shown.contains("sesame"), "{shown}");
            assert_eq!(serde_json::to_string(&request).unwrap(), text);
        }
        assert!(serde_json::from_str::<TokenRequest>(r#"{"grant_type":"password"}"#).is_err());
    }

    #[test]
    fn a_token_error_says_its_reason() {
        let error = TokenError::from(Denial::GrantUsed);
        let json = serde_json::to_value(&error).unwrap();
        assert_eq!(json["error"], "invalid_grant");
        assert_eq!(json["reason"], "grant_used");
    }
}
