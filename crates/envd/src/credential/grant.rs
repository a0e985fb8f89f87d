//! Checks the control plane's grants.

use std::{fmt, time::Duration};

use ring::hmac;
use wakeful_wire::{
    EnvId, Timestamp,
    host::{
        Denial,
        grant::{Grant, LIFETIME, MAC_LEN, SealedGrant},
    },
};

/// How far a grant's time may lie ahead of the host's.
const AHEAD_MAX: Duration = Duration::from_secs(30);

/// Takes the grants for one environment. Whether one was used before is not known here.
pub struct GrantGate {
    audience: EnvId,
    key: hmac::Key,
}

impl fmt::Debug for GrantGate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("GrantGate").field("audience", &self.audience).finish_non_exhaustive()
    }
}

impl GrantGate {
    /// A gate for the environment whose sandbox has this secret.
    #[must_use]
    pub fn new(audience: EnvId, sandbox_secret: &str) -> Self {
        Self { audience, key: hmac::Key::new(hmac::HMAC_SHA256, sandbox_secret.as_bytes()) }
    }

    /// Seals a grant as the control plane does, which holds the same secret.
    #[must_use]
    pub fn seal(&self, grant: &Grant) -> String {
        grant.seal(|signed| {
            let mut mac = [0; MAC_LEN];
            mac.copy_from_slice(hmac::sign(&self.key, signed).as_ref());
            mac
        })
    }

    /// Checks a grant: its shape, its MAC, its audience, its times, what it gives; in this order.
    ///
    /// # Errors
    /// A [`Denial`] for each way in which a grant can be wrong.
    pub fn open(&self, text: &str, now: Timestamp) -> Result<Grant, Denial> {
        let sealed = SealedGrant::parse(text).map_err(|_| Denial::GrantMalformed)?;
        // Compares in constant time.
        hmac::verify(&self.key, sealed.signed(), sealed.mac())
            .map_err(|_| Denial::GrantSignature)?;
        let grant = sealed.read().map_err(|_| Denial::GrantMalformed)?;
        if grant.audience != self.audience {
            return Err(Denial::GrantAudience);
        }
        if grant.expires_at > grant.issued_at.after(LIFETIME) {
            return Err(Denial::GrantMalformed);
        }
        if grant.issued_at > now.after(AHEAD_MAX) {
            return Err(Denial::GrantEarly);
        }
        if grant.expires_at <= now {
            return Err(Denial::GrantExpired);
        }
        if grant.scopes.is_empty() {
            return Err(Denial::GrantScope);
        }
        Ok(grant)
    }
}

#[cfg(test)]
mod tests {
    use wakeful_wire::host::Scopes;

    use super::*;
    use crate::credential::testing::{env, grant};

    #[test]
    fn only_a_grant_for_this_environment_in_its_minute_is_taken() {
        let gate = GrantGate::new(env(1), "secret");
        let good = grant(1, env(1), Timestamp(100_000));
        let seal = |grant: &Grant| gate.seal(grant);
        let foreign = GrantGate::new(env(1), "another").seal(&good);
        let long = Grant { expires_at: Timestamp(160_001), ..good.clone() };
        let empty = Grant { scopes: Scopes::default(), ..good.clone() };
        let table = [
            (seal(&good), 100_000, Ok(good.clone())),
            (seal(&good), 159_999, Ok(good.clone())),
            (seal(&good), 70_000, Ok(good.clone())),
            (seal(&good), 160_000, Err(Denial::GrantExpired)),
            (seal(&good), 69_999, Err(Denial::GrantEarly)),
            (seal(&grant(1, env(2), Timestamp(100_000))), 100_000, Err(Denial::GrantAudience)),
            (foreign, 100_000, Err(Denial::GrantSignature)),
            (seal(&good).replace("alice", "mallo"), 100_000, Err(Denial::GrantSignature)),
            (seal(&long), 100_000, Err(Denial::GrantMalformed)),
            (seal(&empty), 100_000, Err(Denial::GrantScope)),
            (String::new(), 100_000, Err(Denial::GrantMalformed)),
            ("wkg1.".repeat(1_000), 100_000, Err(Denial::GrantMalformed)),
        ];
        for (text, now, expected) in table {
            assert_eq!(gate.open(&text, Timestamp(now)), expected, "{text} at {now}");
        }
    }

    #[test]
    fn the_gate_prints_no_secret() {
        assert!(!format!("{:?}", GrantGate::new(env(1), "sesame")).contains("sesame"));
    }
}
