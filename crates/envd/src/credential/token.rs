//! The texts that a host signs for its clients: access tokens and refresh tokens.
//!
//! `wkh1.{claims}.{mac}`: the claims as JSON and an HMAC-SHA256 of everything before the last dot,
//! both in base64url. A token alone opens nothing: it is bound to the client's key and names a
//! session, which must still be there.

use std::fmt;

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use ring::hmac;
use serde::{Deserialize, Serialize};
use wakeful_wire::{
    HostSessionId, Timestamp, UserName,
    host::{Denial, Scopes, SessionMethod},
};

use super::{key::Thumbprint, session::Session};

/// The longest token that is looked at, in bytes.
pub const TOKEN_MAX: usize = 2_048;

const PREFIX: &str = "wkh1";

/// What a token is good for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum TokenKind {
    /// Requests and tickets.
    Access,
    /// Another access token of the same session.
    Refresh,
}

/// What a token says.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Claims {
    pub(super) kind: TokenKind,
    pub(super) sid: HostSessionId,
    pub(super) sub: UserName,
    pub(super) scope: Scopes,
    pub(super) method: SessionMethod,
    jkt: String,
    iat: Timestamp,
    /// Absent in a refresh token: it lives as long as its session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    exp: Option<Timestamp>,
}

impl Claims {
    /// The key that the token is bound to.
    ///
    /// # Errors
    /// When the claim is malformed, which a token that this host signed never is.
    pub(super) fn key(&self) -> Result<Thumbprint, Denial> {
        self.jkt.parse().map_err(|_| Denial::TokenMalformed)
    }

    /// Whether this is what the host signed for this very session.
    pub(super) fn describe(&self, session: &Session) -> bool {
        self.sid == session.id
            && self.sub == session.subject
            && self.scope == session.scopes
            && self.method == session.method
            && self.key() == Ok(session.key)
    }
}

/// Signs tokens and knows its own again.
pub(super) struct TokenKey(hmac::Key);

impl fmt::Debug for TokenKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("TokenKey")
    }
}

impl TokenKey {
    /// The key that `stored` and `pepper` make together.
    pub(super) fn new(stored: &[u8; 32], pepper: &[u8]) -> Self {
        let mix = hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, stored), pepper);
        Self(hmac::Key::new(hmac::HMAC_SHA256, mix.as_ref()))
    }

    /// An access token of a session. It ends at `expires_at`, or with its session if that is
    /// sooner.
    pub(super) fn access(
        &self,
        session: &Session,
        now: Timestamp,
        expires_at: Timestamp,
    ) -> String {
        self.sign(TokenKind::Access, session, now, Some(expires_at.min(session.expires_at)))
    }

    /// A refresh token of a session.
    pub(super) fn refresh(&self, session: &Session, now: Timestamp) -> String {
        self.sign(TokenKind::Refresh, session, now, None)
    }

    fn sign(
        &self,
        kind: TokenKind,
        session: &Session,
        iat: Timestamp,
        exp: Option<Timestamp>,
    ) -> String {
        let claims = Claims {
            kind,
            sid: session.id,
            sub: session.subject.clone(),
            scope: session.scopes.clone(),
            method: session.method,
            jkt: session.key.to_string(),
            iat,
            exp,
        };
        let claims = serde_json::to_vec(&claims).expect("claims are texts and numbers");
        let mut text = format!("{PREFIX}.{}", URL_SAFE_NO_PAD.encode(claims));
        let mac = hmac::sign(&self.0, text.as_bytes());
        text.push('.');
        URL_SAFE_NO_PAD.encode_string(mac.as_ref(), &mut text);
        text
    }

    /// Reads a token: its shape, its signature, what it says, its kind, its end; in this order.
    /// Whether its session is still there is not known here.
    ///
    /// # Errors
    /// A [`Denial`] for each way in which a token can be wrong.
    pub(super) fn read(
        &self,
        text: &str,
        kind: TokenKind,
        now: Timestamp,
    ) -> Result<Claims, Denial> {
        if text.len() > TOKEN_MAX || !text.starts_with(PREFIX) {
            return Err(Denial::TokenMalformed);
        }
        let (signed, mac) = text.rsplit_once('.').ok_or(Denial::TokenMalformed)?;
        let mac = URL_SAFE_NO_PAD.decode(mac).map_err(|_| Denial::TokenMalformed)?;
        // Compares in constant time.
        hmac::verify(&self.0, signed.as_bytes(), &mac).map_err(|_| Denial::TokenSignature)?;
        let claims = signed
            .strip_prefix(PREFIX)
            .and_then(|rest| rest.strip_prefix('.'))
            .and_then(|claims| URL_SAFE_NO_PAD.decode(claims).ok())
            .ok_or(Denial::TokenMalformed)?;
        let claims: Claims = serde_json::from_slice(&claims).map_err(|_| Denial::TokenMalformed)?;
        if claims.kind != kind {
            return Err(Denial::TokenKind);
        }
        if claims.exp.is_some_and(|exp| exp <= now) {
            return Err(Denial::TokenExpired);
        }
        Ok(claims)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::credential::testing::session;

    #[test]
    fn a_token_reads_as_it_was_signed_until_it_ends() {
        let key = TokenKey::new(&[1; 32], b"");
        let session = session(1, "alice");
        let text = key.access(&session, Timestamp(0), Timestamp(1_000));
        let read = |now| key.read(&text, TokenKind::Access, Timestamp(now));
        let claims = read(999).unwrap();
        assert_eq!((claims.sid, claims.key()), (session.id, Ok(session.key)));
        assert_eq!(read(1_000), Err(Denial::TokenExpired));
        let long = key.access(&session, Timestamp(0), Timestamp(u64::MAX));
        let end = session.expires_at;
        assert_eq!(key.read(&long, TokenKind::Access, end), Err(Denial::TokenExpired));
    }

    #[test]
    fn other_texts_are_told_apart() {
        let key = TokenKey::new(&[1; 32], b"");
        let session = session(1, "alice");
        let text = key.access(&session, Timestamp(0), Timestamp(1_000));
        let mut other = text.clone().into_bytes();
        other[8] ^= 1;
        let other = String::from_utf8(other).unwrap();
        let pepper = TokenKey::new(&[1; 32], b"p").access(&session, Timestamp(0), Timestamp(9));
        let long = format!("{text}{}", "A".repeat(TOKEN_MAX));
        let table = [
            ("", Denial::TokenMalformed),
            ("wkh1", Denial::TokenMalformed),
            ("wkh1.", Denial::TokenSignature),
            ("wkh1..", Denial::TokenSignature),
            ("wkh1.a.!", Denial::TokenMalformed),
            ("Bearer", Denial::TokenMalformed),
            (&text[..text.len() - 2], Denial::TokenMalformed),
            (&other, Denial::TokenSignature),
            (&pepper, Denial::TokenSignature),
            (&long, Denial::TokenMalformed),
            (&key.refresh(&session, Timestamp(0)), Denial::TokenKind),
        ];
        for (text, denial) in table {
            let read = key.read(text, TokenKind::Access, Timestamp(5));
            assert_eq!(read, Err(denial), "{text}");
        }
        let as_refresh = key.read(&text, TokenKind::Refresh, Timestamp(5));
        assert_eq!(as_refresh, Err(Denial::TokenKind));
    }
}
