//! What the tests of credentials have in common: clients with keys, a clock to set, randomness
//! that replays.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use ring::{
    rand::SystemRandom,
    signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, Ed25519KeyPair, KeyPair as _},
};
use serde_json::{Value, json};
use uuid::Uuid;
use wakeful_wire::{
    EnvId, GrantId, HostSessionId, Timestamp, UserName,
    host::{Scope, Scopes, SessionMethod, grant::Grant},
};

use super::{HttpAddress, Session, Sources, Thumbprint, key::sha256};

pub(super) const START: Timestamp = Timestamp(1_700_000_000_000);

pub(super) fn session_id(n: u64) -> HostSessionId {
    HostSessionId::from_uuid(Uuid::from_u64_pair(1, n))
}

pub(super) fn env(n: u64) -> EnvId {
    EnvId::from_uuid(Uuid::from_u64_pair(2, n))
}

pub(super) fn key(n: u8) -> Thumbprint {
    Thumbprint::of_bytes([n; 32])
}

pub(super) fn user(name: &str) -> UserName {
    UserName::new(name).unwrap()
}

pub(super) fn scopes() -> Scopes {
    Scopes::from_iter([Scope::Read, Scope::Write])
}

/// A session of one hour since the epoch.
pub(super) fn session(sequence: u64, subject: &str) -> Session {
    Session {
        id: session_id(sequence),
        sequence,
        subject: user(subject),
        scopes: scopes(),
        method: SessionMethod::Grant,
        key: key(1),
        label: "laptop".into(),
        issued_at: Timestamp(0),
        expires_at: Timestamp(3_600_000),
        revoked_at: None,
        last_connected_at: None,
    }
}

pub(super) fn grant(n: u64, audience: EnvId, now: Timestamp) -> Grant {
    let id = GrantId::from_uuid(Uuid::from_u64_pair(3, n));
    Grant::new(id, audience, user("alice"), scopes(), now)
}

/// A clock that stands until it is set.
#[derive(Clone)]
pub(super) struct TestClock(Arc<AtomicU64>);

impl TestClock {
    pub(super) fn new() -> Self {
        Self(Arc::new(AtomicU64::new(START.0)))
    }

    pub(super) fn now(&self) -> Timestamp {
        Timestamp(self.0.load(Ordering::SeqCst))
    }

    pub(super) fn set(&self, now: Timestamp) {
        self.0.store(now.0, Ordering::SeqCst);
    }

    pub(super) fn advance(&self, by: Duration) {
        self.set(self.now().after(by));
    }

    /// This clock, and bytes that never come twice and replay.
    pub(super) fn sources(&self) -> Sources {
        let clock = self.clone();
        let drawn = AtomicU64::new(0);
        Sources::new(
            move || clock.now(),
            move |bytes| {
                let seed = sha256(&drawn.fetch_add(1, Ordering::SeqCst).to_be_bytes());
                for (at, byte) in bytes.iter_mut().enumerate() {
                    *byte = seed[at % seed.len()];
                }
            },
        )
    }
}

enum Pair {
    P256(EcdsaKeyPair),
    Ed25519(Ed25519KeyPair),
}

/// A client with a key of its own.
pub(super) struct Client {
    pair: Pair,
}

impl Client {
    pub(super) fn p256() -> Self {
        let random = SystemRandom::new();
        let algorithm = &ECDSA_P256_SHA256_FIXED_SIGNING;
        let document = EcdsaKeyPair::generate_pkcs8(algorithm, &random).unwrap();
        let pair = EcdsaKeyPair::from_pkcs8(algorithm, document.as_ref(), &random).unwrap();
        Self { pair: Pair::P256(pair) }
    }

    pub(super) fn ed25519(seed: u8) -> Self {
        let pair = Ed25519KeyPair::from_seed_unchecked(&[seed; 32]).unwrap();
        Self { pair: Pair::Ed25519(pair) }
    }

    pub(super) fn jwk(&self) -> Value {
        match &self.pair {
            Pair::P256(pair) => {
                let point = pair.public_key().as_ref();
                let (x, y) = point[1..].split_at(32);
                json!({"kty": "EC", "crv": "P-256", "x": b64(x), "y": b64(y)})
            }
            Pair::Ed25519(pair) => {
                json!({"kty": "OKP", "crv": "Ed25519", "x": b64(pair.public_key().as_ref())})
            }
        }
    }

    pub(super) fn header(&self) -> Value {
        let algorithm = match &self.pair {
            Pair::P256(_) => "ES256",
            Pair::Ed25519(_) => "EdDSA",
        };
        json!({"typ": "dpop+jwt", "alg": algorithm, "jwk": self.jwk()})
    }

    /// A JWT of exactly these texts.
    pub(super) fn sign_texts(&self, header: &str, claims: &str) -> String {
        let signed = format!("{}.{}", b64(header.as_bytes()), b64(claims.as_bytes()));
        let signature = match &self.pair {
            Pair::P256(pair) => {
                let signature = pair.sign(&SystemRandom::new(), signed.as_bytes()).unwrap();
                b64(signature.as_ref())
            }
            Pair::Ed25519(pair) => b64(pair.sign(signed.as_bytes()).as_ref()),
        };
        format!("{signed}.{signature}")
    }

    pub(super) fn sign(&self, header: &Value, claims: &Value) -> String {
        self.sign_texts(&header.to_string(), &claims.to_string())
    }

    /// A proof as it should be.
    pub(super) fn proof(&self, claims: &Value) -> String {
        self.sign(&self.header(), claims)
    }
}

/// The claims of a proof as they should be.
pub(super) fn claims(
    jti: &str,
    method: &str,
    address: &HttpAddress,
    token: Option<&str>,
    now: Timestamp,
) -> Value {
    let mut claims = json!({
        "jti": jti,
        "htm": method,
        "htu": address.to_string(),
        "iat": now.0 / 1_000,
    });
    if let Some(token) = token {
        claims["ath"] = b64(&sha256(token.as_bytes())).into();
    }
    claims
}

pub(super) fn b64(bytes: &[u8]) -> String {
    URL_SAFE_NO_PAD.encode(bytes)
}
