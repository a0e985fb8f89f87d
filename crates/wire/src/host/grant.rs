//! Grants: what the control plane gives a signed-in person to enter one environment's host.
//!
//! As text: `wkg1.{id}.{audience}.{subject}.{scopes}.{issued}.{expires}.{mac}`, where the scopes
//! are joined by `+`, the times are milliseconds since the Unix epoch and the MAC is HMAC-SHA256 in
//! hexadecimal over everything before the last dot. The key is the sandbox's secret, which the
//! platform and `envd` share and the sandbox's programs do not have. Whoever seals or checks a
//! grant brings the MAC; this module only fixes what it is taken of.
//!
//! The issuer takes the times from the wall clock, not from the platform's own clock, which drifts
//! from it: `envd` has nothing else to compare with.

use std::{fmt, time::Duration};

use crate::{EnvId, GrantId, Timestamp, UserName};

use super::Scopes;

/// How long a grant can be exchanged.
pub const LIFETIME: Duration = Duration::from_secs(60);
/// The longest text of a grant, in bytes.
pub const TEXT_MAX: usize = 512;
/// Bytes of the MAC.
pub const MAC_LEN: usize = 32;

const PREFIX: &str = "wkg1";

/// What a grant says. It can be exchanged once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Grant {
    /// Names it, so that it is taken once.
    pub id: GrantId,
    /// The environment whose host it opens.
    pub audience: EnvId,
    /// Who enters.
    pub subject: UserName,
    /// What they may do there.
    pub scopes: Scopes,
    /// When it was issued.
    pub issued_at: Timestamp,
    /// When it ends.
    pub expires_at: Timestamp,
}

impl Grant {
    /// A grant that is issued now and lives for [`LIFETIME`].
    #[must_use]
    pub fn new(
        id: GrantId,
        audience: EnvId,
        subject: UserName,
        scopes: Scopes,
        now: Timestamp,
    ) -> Self {
        Self { id, audience, subject, scopes, issued_at: now, expires_at: now.after(LIFETIME) }
    }

    /// The grant as text. `mac` is HMAC-SHA256 with the sandbox's secret.
    #[must_use]
    pub fn seal(&self, mac: impl FnOnce(&[u8]) -> [u8; MAC_LEN]) -> String {
        let mut text = format!(
            "{PREFIX}.{}.{}.{}.{}.{}.{}",
            self.id,
            self.audience,
            self.subject,
            self.scopes.write('+'),
            self.issued_at.0,
            self.expires_at.0,
        );
        let mac = mac(text.as_bytes());
        text.push('.');
        for byte in mac {
            for digit in [byte >> 4, byte & 0xf] {
                text.extend(char::from_digit(u32::from(digit), 16));
            }
        }
        text
    }
}

/// The text has not the shape of a grant.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not a grant")]
pub struct GrantTextError;

/// A grant as it arrived. Nothing that it says counts before its MAC was checked.
pub struct SealedGrant<'a> {
    signed: &'a str,
    mac: [u8; MAC_LEN],
}

impl fmt::Debug for SealedGrant<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SealedGrant").finish_non_exhaustive()
    }
}

impl<'a> SealedGrant<'a> {
    /// Takes a grant's text apart.
    ///
    /// # Errors
    /// When it is longer than [`TEXT_MAX`] or has not a grant's outer shape.
    pub fn parse(text: &'a str) -> Result<Self, GrantTextError> {
        if text.len() > TEXT_MAX {
            return Err(GrantTextError);
        }
        let (signed, mac) = text.rsplit_once('.').ok_or(GrantTextError)?;
        if !signed.starts_with(PREFIX) {
            return Err(GrantTextError);
        }
        Ok(Self { signed, mac: parse_mac(mac).ok_or(GrantTextError)? })
    }

    /// What the MAC is taken of.
    #[must_use]
    pub const fn signed(&self) -> &[u8] {
        self.signed.as_bytes()
    }

    /// The MAC that came with it, to be compared in constant time.
    #[must_use]
    pub const fn mac(&self) -> &[u8; MAC_LEN] {
        &self.mac
    }

    /// What it says. Called after the MAC was checked.
    ///
    /// # Errors
    /// When a field is malformed.
    pub fn read(&self) -> Result<Grant, GrantTextError> {
        let mut fields = self.signed.split('.');
        let mut next = || fields.next().ok_or(GrantTextError);
        if next()? != PREFIX {
            return Err(GrantTextError);
        }
        let grant = Grant {
            id: next()?.parse().map_err(|_| GrantTextError)?,
            audience: next()?.parse().map_err(|_| GrantTextError)?,
            subject: next()?.parse().map_err(|_| GrantTextError)?,
            scopes: Scopes::parse(next()?, '+').map_err(|_| GrantTextError)?,
            issued_at: Timestamp(next()?.parse().map_err(|_| GrantTextError)?),
            expires_at: Timestamp(next()?.parse().map_err(|_| GrantTextError)?),
        };
        if fields.next().is_some() { Err(GrantTextError) } else { Ok(grant) }
    }
}

fn parse_mac(text: &str) -> Option<[u8; MAC_LEN]> {
    if text.len() != 2 * MAC_LEN {
        return None;
    }
    let mut mac = [0; MAC_LEN];
    for (byte, pair) in mac.iter_mut().zip(text.as_bytes().chunks_exact(2)) {
        let digit = |at: u8| char::from(at).to_digit(16).and_then(|digit| u8::try_from(digit).ok());
        *byte = digit(pair[0])? << 4 | digit(pair[1])?;
    }
    Some(mac)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::Scope;

    fn grant() -> Grant {
        Grant::new(
            "0199f0a0-7b5c-7c3e-9d2f-6a1b2c3d4e5f".parse().unwrap(),
            "1199f0a0-7b5c-7c3e-9d2f-6a1b2c3d4e5f".parse().unwrap(),
            UserName::new("alice").unwrap(),
            Scopes::from_iter([Scope::Write, Scope::Read]),
            Timestamp(1_000_000),
        )
    }

    #[test]
    fn a_grant_reads_as_it_was_sealed() {
        let text = grant().seal(|signed| {
            assert!(signed.ends_with(b".alice.read+write.1000000.1060000"));
            std::array::from_fn(|at| at as u8 * 8)
        });
        let sealed = SealedGrant::parse(&text).unwrap();
        assert_eq!(sealed.read(), Ok(grant()));
        assert_eq!(sealed.mac()[31], 248);
        assert!(text.as_bytes().starts_with(sealed.signed()));
        assert!(text.len() < TEXT_MAX);
    }

    #[test]
    fn texts_of_another_shape_are_refused() {
        let good = grant().seal(|_| [7; 32]);
        for bad in [
            "",
            ".",
            "wkg1",
            &good[1..],
            &good[..good.len() - 1],
            &good.replace("wkg1", "wkg2"),
            &format!("{good}{}", "0".repeat(TEXT_MAX)),
            &good.replace("0707", "07é7"),
        ] {
            assert!(SealedGrant::parse(bad).is_err(), "{bad}");
        }
        for bad in [
            good.replace("alice", "Alice"),
            good.replace("read+write", "read write"),
            good.replace("1000000", "-1"),
            good.replace(".alice", ""),
            good.replace(".alice", ".alice.alice"),
            good.replace("wkg1.", "wkg1x."),
        ] {
            let read = SealedGrant::parse(&bad).and_then(|sealed| sealed.read());
            assert_eq!(read, Err(GrantTextError), "{bad}");
        }
    }
}
