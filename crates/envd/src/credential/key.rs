//! Public keys of clients, as a proof's header carries them (RFC 7517), and their thumbprints
//! (RFC 7638).

use std::{fmt, str::FromStr};

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use ring::{digest, signature};
use serde::{Deserialize, de::IgnoredAny};
use serde_json::Value;
use wakeful_wire::host::Denial;

/// A signature algorithm of a proof. There are no others, least of all `none` and symmetric ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Algorithm {
    /// ECDSA over P-256 with SHA-256.
    Es256,
    /// Ed25519.
    EdDsa,
}

impl Algorithm {
    pub(super) fn named(name: &str) -> Option<Self> {
        match name {
            "ES256" => Some(Self::Es256),
            "EdDSA" => Some(Self::EdDsa),
            _ => None,
        }
    }
}

/// The SHA-256 thumbprint of a client's public key: what sessions are bound to.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Thumbprint([u8; 32]);

impl Thumbprint {
    /// The hash itself.
    #[must_use]
    pub const fn bytes(&self) -> &[u8; 32] {
        &self.0
    }

    #[cfg(test)]
    pub(super) const fn of_bytes(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }
}

impl fmt::Display for Thumbprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&URL_SAFE_NO_PAD.encode(self.0))
    }
}

impl fmt::Debug for Thumbprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// The text is not a thumbprint.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not a thumbprint: expected 32 bytes in base64url")]
pub struct ThumbprintError;

impl FromStr for Thumbprint {
    type Err = ThumbprintError;

    fn from_str(text: &str) -> Result<Self, ThumbprintError> {
        field(text).map(Self).ok_or(ThumbprintError)
    }
}

/// A client's public key.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum PublicKey {
    P256 { x: [u8; 32], y: [u8; 32] },
    Ed25519 { x: [u8; 32] },
}

/// A JSON Web Key as it came, before anything was made of it. A member given twice is an error.
#[derive(Deserialize)]
pub(super) struct Jwk {
    kty: Option<Value>,
    crv: Option<Value>,
    x: Option<Value>,
    y: Option<Value>,
    // Members that only private or secret keys have (RFC 7518 sections 6.2.2, 6.3.2, 6.4.1).
    d: Option<IgnoredAny>,
    k: Option<IgnoredAny>,
    p: Option<IgnoredAny>,
    q: Option<IgnoredAny>,
    dp: Option<IgnoredAny>,
    dq: Option<IgnoredAny>,
    qi: Option<IgnoredAny>,
    oth: Option<IgnoredAny>,
}

impl PublicKey {
    /// Takes the public key out of a JSON Web Key.
    pub(super) fn from_jwk(jwk: &Jwk) -> Result<Self, Denial> {
        let secrets = [&jwk.d, &jwk.k, &jwk.p, &jwk.q, &jwk.dp, &jwk.dq, &jwk.qi, &jwk.oth];
        if secrets.iter().any(|member| member.is_some()) {
            return Err(Denial::ProofPrivateKey);
        }
        let text =
            |value: &Option<Value>| value.as_ref().and_then(Value::as_str).map(str::to_owned);
        let bytes = |value: &Option<Value>| field(&text(value)?);
        let read = || match (text(&jwk.kty)?.as_str(), text(&jwk.crv)?.as_str()) {
            ("EC", "P-256") => Some(Self::P256 { x: bytes(&jwk.x)?, y: bytes(&jwk.y)? }),
            ("OKP", "Ed25519") => Some(Self::Ed25519 { x: bytes(&jwk.x)? }),
            _ => None,
        };
        read().ok_or(Denial::ProofKey)
    }

    /// Its RFC 7638 thumbprint: the hash of its required members in their fixed order.
    pub(super) fn thumbprint(&self) -> Thumbprint {
        let encode = |bytes: &[u8; 32]| URL_SAFE_NO_PAD.encode(bytes);
        let canonical = match self {
            Self::P256 { x, y } => {
                format!(r#"{{"crv":"P-256","kty":"EC","x":"{}","y":"{}"}}"#, encode(x), encode(y))
            }
            Self::Ed25519 { x } => {
                format!(r#"{{"crv":"Ed25519","kty":"OKP","x":"{}"}}"#, encode(x))
            }
        };
        Thumbprint(sha256(canonical.as_bytes()))
    }

    /// Whether it is a key for this algorithm.
    pub(super) const fn fits(&self, algorithm: Algorithm) -> bool {
        matches!(
            (self, algorithm),
            (Self::P256 { .. }, Algorithm::Es256) | (Self::Ed25519 { .. }, Algorithm::EdDsa)
        )
    }

    /// Whether the signature is this key's over the message.
    pub(super) fn verifies(&self, message: &[u8], sign: &[u8]) -> bool {
        match self {
            Self::P256 { x, y } => {
                let mut point = [4; 65];
                point[1..33].copy_from_slice(x);
                point[33..].copy_from_slice(y);
                signature::UnparsedPublicKey::new(&signature::ECDSA_P256_SHA256_FIXED, point)
                    .verify(message, sign)
                    .is_ok()
            }
            Self::Ed25519 { x } => signature::UnparsedPublicKey::new(&signature::ED25519, x)
                .verify(message, sign)
                .is_ok(),
        }
    }
}

/// The SHA-256 of some bytes.
pub(super) fn sha256(bytes: &[u8]) -> [u8; 32] {
    let mut hash = [0; 32];
    hash.copy_from_slice(digest::digest(&digest::SHA256, bytes).as_ref());
    hash
}

/// 32 bytes of canonical base64url without padding.
fn field(text: &str) -> Option<[u8; 32]> {
    if text.len() != 43 {
        return None;
    }
    URL_SAFE_NO_PAD.decode(text).ok()?.try_into().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thumbprints_are_those_of_the_standards() {
        // RFC 8037 appendix A.3 and RFC 9449 section 6.1.
        let table = [
            (
                r#"{"kty":"OKP","crv":"Ed25519","x":"11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"}"#,
                "kPrK_qmxVWaYVA9wwBF6Iuo3vVzz7TxHCTwXBygrS4k",
            ),
            (
                r#"{"kty":"EC","x":"l8tFrhx-34tV3hRICRDY9zCkDlpBhF42UQUfWVAWBFs","y":"9VE4jf_Ok_o64zbTTlcuNJajHmt6v9TDVrU0CdvGRDA","crv":"P-256"}"#,
                "0ZcOCORZNYy-DWpqq30jZyJGHTN0d2HglBV3uiguA4I",
            ),
        ];
        for (jwk, thumbprint) in table {
            let key = PublicKey::from_jwk(&serde_json::from_str(jwk).unwrap()).unwrap();
            assert_eq!(key.thumbprint().to_string(), thumbprint);
            assert_eq!(thumbprint.parse(), Ok(key.thumbprint()));
        }
    }

    #[test]
    fn only_whole_public_keys_are_taken() {
        let x = "11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo";
        let okp = |rest: &str| format!(r#"{{"kty":"OKP","crv":"Ed25519"{rest}}}"#);
        let table = [
            (okp(&format!(r#","x":"{x}","d":"{x}""#)), Denial::ProofPrivateKey),
            (r#"{"kty":"oct","k":"c2VjcmV0"}"#.into(), Denial::ProofPrivateKey),
            (r#"{"kty":"RSA","n":"AQ","e":"AQAB"}"#.into(), Denial::ProofKey),
            (r#"{"kty":"RSA","n":"AQ","e":"AQAB","dp":1}"#.into(), Denial::ProofPrivateKey),
            (okp(""), Denial::ProofKey),
            (okp(r#","x":7"#), Denial::ProofKey),
            (okp(&format!(r#","x":"{x}=""#)), Denial::ProofKey),
            (okp(&format!(r#","x":"{}""#, &x[1..])), Denial::ProofKey),
            // The last character holds bits beyond the 32 bytes.
            (okp(&format!(r#","x":"{}p""#, &x[..42])), Denial::ProofKey),
            (format!(r#"{{"kty":"EC","crv":"P-256","x":"{x}"}}"#), Denial::ProofKey),
            (format!(r#"{{"kty":"EC","crv":"P-384","x":"{x}","y":"{x}"}}"#), Denial::ProofKey),
            ("{}".into(), Denial::ProofKey),
        ];
        for (jwk, denial) in table {
            let parsed: Jwk = serde_json::from_str(&jwk).unwrap();
            assert_eq!(PublicKey::from_jwk(&parsed).err(), Some(denial), "{jwk}");
        }
        let twice = okp(&format!(r#","x":"{x}","x":"{x}""#));
        assert!(serde_json::from_str::<Jwk>(&twice).is_err());
    }

    #[test]
    fn a_point_off_the_curve_verifies_nothing() {
        let key = PublicKey::P256 { x: [1; 32], y: [1; 32] };
        assert!(!key.verifies(b"message", &[1; 64]));
        assert!(!key.verifies(b"message", &[]));
    }
}
