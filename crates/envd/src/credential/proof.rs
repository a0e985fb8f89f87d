//! DPoP proofs (RFC 9449 section 4.3): that a request was made by the holder of a key.

use std::{fmt, time::Duration};

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use serde::{
    Deserialize,
    de::{DeserializeOwned, IgnoredAny},
};
use subtle::ConstantTimeEq as _;
use wakeful_wire::{Timestamp, host::Denial};

use super::{
    address::HttpAddress,
    key::{Algorithm, Jwk, PublicKey, Thumbprint, sha256},
};

/// The longest proof that is looked at, in bytes.
pub const PROOF_MAX: usize = 4_096;
/// The longest `jti`, in bytes.
const JTI_MAX: usize = 256;

/// How far a proof's time may differ from the host's.
///
/// A proof carries the time of the client's clock. Both bounds leave room for clocks that differ,
/// and for requests that a gateway holds while their environment wakes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ProofPolicy {
    /// How old a proof may be.
    pub age_max: Duration,
    /// How far its time may lie ahead.
    pub ahead_max: Duration,
}

impl Default for ProofPolicy {
    fn default() -> Self {
        Self { age_max: Duration::from_secs(120), ahead_max: Duration::from_secs(60) }
    }
}

/// What a proof must have been made for.
#[derive(Clone, Copy)]
pub struct ProofTarget<'a> {
    /// The request's method.
    pub method: &'a str,
    /// The request's public address.
    pub address: &'a HttpAddress,
    /// The access token that came with it, where one did: then the proof must name it (`ath`).
    pub access_token: Option<&'a str>,
    /// The nonces that are taken, where the host asks for one. `None` takes any proof, whether or
    /// not it holds a nonce.
    pub nonces: Option<&'a [&'a str]>,
}

impl fmt::Debug for ProofTarget<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ProofTarget")
            .field("method", &self.method)
            .field("address", &self.address)
            .finish_non_exhaustive()
    }
}

/// A proof that holds. It must still be remembered, so that it is taken once: see
/// [`ReplayCache`](super::ReplayCache).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Proof {
    key: Thumbprint,
    id: [u8; 32],
    takeable_until: Timestamp,
}

impl Proof {
    /// The thumbprint of the key that made it.
    #[must_use]
    pub const fn key(&self) -> Thumbprint {
        self.key
    }

    /// Names it among all proofs of all keys.
    pub(super) const fn id(&self) -> [u8; 32] {
        self.id
    }

    /// The last moment at which it could be taken.
    pub(super) const fn takeable_until(&self) -> Timestamp {
        self.takeable_until
    }
}

#[derive(Deserialize)]
struct Header {
    typ: Option<String>,
    alg: Option<String>,
    jwk: Option<Jwk>,
    crit: Option<IgnoredAny>,
}

#[derive(Deserialize)]
struct Claims {
    jti: String,
    htm: String,
    htu: String,
    iat: f64,
    ath: Option<String>,
    nonce: Option<String>,
}

/// Checks one `DPoP` header's value. Whether it was used before is not checked here.
///
/// # Errors
/// A [`Denial`] for each way in which a proof can be wrong. Nothing that it claims is looked at
/// before its signature holds.
pub fn verify(
    text: &str,
    target: &ProofTarget<'_>,
    policy: &ProofPolicy,
    now: Timestamp,
) -> Result<Proof, Denial> {
    let (key, claims) = open(text)?;
    if claims.jti.is_empty() || claims.jti.len() > JTI_MAX {
        return Err(Denial::ProofMalformed);
    }
    if claims.htm != target.method {
        return Err(Denial::ProofMethod);
    }
    match HttpAddress::parse(&claims.htu) {
        Ok(address) if address == *target.address => {}
        Ok(_) | Err(_) => return Err(Denial::ProofUrl),
    }
    let made_at = moment(claims.iat).ok_or(Denial::ProofMalformed)?;
    if made_at > now.after(policy.ahead_max) {
        return Err(Denial::ProofEarly);
    }
    let takeable_until = made_at.after(policy.age_max);
    if takeable_until < now {
        return Err(Denial::ProofLate);
    }
    if let Some(token) = target.access_token {
        let hash = URL_SAFE_NO_PAD.encode(sha256(token.as_bytes()));
        let named = claims.ath.ok_or(Denial::ProofToken)?;
        if !bool::from(named.as_bytes().ct_eq(hash.as_bytes())) {
            return Err(Denial::ProofToken);
        }
    }
    if let Some(nonces) = target.nonces
        && !claims.nonce.is_some_and(|nonce| nonces.contains(&nonce.as_str()))
    {
        return Err(Denial::NonceRequired);
    }
    let key = key.thumbprint();
    let mut id = Vec::with_capacity(32 + claims.jti.len());
    id.extend_from_slice(key.bytes());
    id.extend_from_slice(claims.jti.as_bytes());
    Ok(Proof { key, id: sha256(&id), takeable_until })
}

/// The key and the claims of a proof whose signature holds.
fn open(text: &str) -> Result<(PublicKey, Claims), Denial> {
    if text.is_empty() {
        return Err(Denial::ProofMissing);
    }
    if text.len() > PROOF_MAX {
        return Err(Denial::ProofTooLong);
    }
    let (signed, signature) = text.rsplit_once('.').ok_or(Denial::ProofMalformed)?;
    let (header, claims) = signed.split_once('.').ok_or(Denial::ProofMalformed)?;
    let header = decode(header)?;
    let header: Header = object(&header)?;
    if header.typ.as_deref() != Some("dpop+jwt") {
        return Err(Denial::ProofType);
    }
    let algorithm =
        header.alg.as_deref().and_then(Algorithm::named).ok_or(Denial::ProofAlgorithm)?;
    // An extension that must be understood is not.
    if header.crit.is_some() {
        return Err(Denial::ProofMalformed);
    }
    let key = PublicKey::from_jwk(&header.jwk.ok_or(Denial::ProofKey)?)?;
    if !key.fits(algorithm) {
        return Err(Denial::ProofKey);
    }
    let claims = decode(claims)?;
    if !key.verifies(signed.as_bytes(), &decode(signature)?) {
        return Err(Denial::ProofSignature);
    }
    Ok((key, object(&claims)?))
}

fn decode(part: &str) -> Result<Vec<u8>, Denial> {
    URL_SAFE_NO_PAD.decode(part).map_err(|_| Denial::ProofMalformed)
}

fn object<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, Denial> {
    // A derived reader would take an array, too.
    if bytes.trim_ascii_start().first() != Some(&b'{') {
        return Err(Denial::ProofMalformed);
    }
    serde_json::from_slice(bytes).map_err(|_| Denial::ProofMalformed)
}

/// Seconds since the Unix epoch, maybe with a fraction, as a moment.
fn moment(seconds: f64) -> Option<Timestamp> {
    // Within this bound a double holds every millisecond exactly.
    const BOUND: f64 = 4_503_599_627_370.0;
    if !(0.0..=BOUND).contains(&seconds) {
        return None;
    }
    Duration::try_from_secs_f64(seconds).ok().map(|since| Timestamp::default().after(since))
}
