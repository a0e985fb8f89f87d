//! The key of this installation, which its access tokens are bound to, and proofs by it (RFC 9449).

use std::{fmt, path::Path};

use anyhow::Context as _;
use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use ring::{
    digest,
    rand::SystemRandom,
    signature::{Ed25519KeyPair, KeyPair as _},
};
use serde_json::json;
use uuid::Uuid;

use super::private_file;

/// A key pair. Its private half never leaves this machine.
pub struct ClientKey(Ed25519KeyPair);

impl fmt::Debug for ClientKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ClientKey(…)")
    }
}

impl ClientKey {
    /// The key in a file; drawn and written if there is none.
    ///
    /// # Errors
    /// The file cannot be read or written, or holds no key.
    pub fn open(file: &Path) -> anyhow::Result<Self> {
        let stored = match private_file::read(file)? {
            Some(stored) => stored,
            None => {
                let drawn = Ed25519KeyPair::generate_pkcs8(&SystemRandom::new())
                    .map_err(|_| anyhow::anyhow!("no key can be drawn on this machine"))?;
                private_file::write(file, drawn.as_ref())?;
                drawn.as_ref().to_vec()
            }
        };
        Ed25519KeyPair::from_pkcs8(&stored)
            .map(Self)
            .map_err(|_| anyhow::anyhow!("it holds no key of this program"))
            .with_context(|| format!("{} cannot be used; remove it and pair again", file.display()))
    }

    /// The key's thumbprint (RFC 7638), by which tokens are bound to it.
    #[must_use]
    pub fn thumbprint(&self) -> String {
        let x = base64(self.0.public_key().as_ref());
        let canonical = format!(r#"{{"crv":"Ed25519","kty":"OKP","x":"{x}"}}"#);
        base64(digest::digest(&digest::SHA256, canonical.as_bytes()).as_ref())
    }

    /// A proof for one request at `address` (without query), and for the access token that it
    /// carries. `now` is the wall clock in seconds.
    #[must_use]
    pub fn proof(&self, method: &str, address: &str, token: Option<&str>, now: u64) -> String {
        let header = json!({
            "typ": "dpop+jwt",
            "alg": "EdDSA",
            "jwk": { "kty": "OKP", "crv": "Ed25519", "x": base64(self.0.public_key().as_ref()) },
        });
        let mut claims = json!({
            "jti": base64(Uuid::new_v4().as_bytes()),
            "htm": method,
            "htu": address,
            "iat": now,
        });
        if let Some(token) = token {
            claims["ath"] =
                base64(digest::digest(&digest::SHA256, token.as_bytes()).as_ref()).into();
        }
        let head = base64(header.to_string().as_bytes());
        let signed = format!("{head}.{}", base64(claims.to_string().as_bytes()));
        let signature = self.0.sign(signed.as_bytes());
        format!("{signed}.{}", base64(signature.as_ref()))
    }
}

fn base64(bytes: &[u8]) -> String {
    URL_SAFE_NO_PAD.encode(bytes)
}

#[cfg(test)]
mod tests {
    use wakeful_envd::credential::{HttpAddress, ProofPolicy, ProofTarget, verify};
    use wakeful_wire::{Timestamp, host::Denial};

    use super::*;

    #[test]
    fn a_host_takes_its_proofs_for_what_they_were_made_for_and_for_nothing_else() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("key");
        let key = ClientKey::open(&file).unwrap();
        let again = ClientKey::open(&file).unwrap();
        let base = HttpAddress::parse("http://wakeful.localhost:7878/api/host/x").unwrap();
        let address = base.below("/shell").unwrap();
        let now = Timestamp(1_790_000_000_000);
        let url = "http://wakeful.localhost:7878/api/host/x/shell";
        let check = |proof: &str, method: &str, token: Option<&str>| {
            let target =
                ProofTarget { method, address: &address, access_token: token, nonces: None };
            verify(proof, &target, &ProofPolicy::default(), now)
        };
        let proof = key.proof("GET", url, Some("token"), 1_790_000_000);
        let held = check(&proof, "GET", Some("token")).unwrap();
        let other = again.proof("GET", url, None, 1_790_000_000);
        assert_eq!(check(&other, "GET", None).unwrap().key(), held.key(), "one key per file");
        assert_eq!(check(&proof, "POST", Some("token")).unwrap_err(), Denial::ProofMethod);
        assert_eq!(check(&proof, "GET", Some("other")).unwrap_err(), Denial::ProofToken);
        let elsewhere = key.proof("GET", "http://elsewhere/shell", None, 1_790_000_000);
        assert_eq!(check(&elsewhere, "GET", None).unwrap_err(), Denial::ProofUrl);
    }
}
