//! Pairing with a host on the same machine or network by a short code that a person carries over.

use std::{
    fmt,
    net::{IpAddr, Ipv4Addr, Ipv6Addr},
    time::Duration,
};

use subtle::ConstantTimeEq as _;
use wakeful_wire::{
    Timestamp, UserName,
    host::{Denial, Scopes},
};

/// How long a code can be used.
pub const CODE_LIFETIME: Duration = Duration::from_secs(300);
/// The characters of a code, without the dash that it is shown with.
pub const CODE_LEN: usize = 8;
/// Wrong codes after which a code that is in force dies.
pub const TRIES: u32 = 10;
/// Codes in force at a time; a further one replaces the oldest.
const CODES: usize = 4;

/// Thirty-two letters and digits of which none is taken for another: no 0, 1, I, O.
const ALPHABET: &[u8; 32] = b"23456789ABCDEFGHJKLMNPQRSTUVWXYZ";

/// What a code gives to whoever brings it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PairingOffer {
    /// As whom they enter.
    pub subject: UserName,
    /// What they may do. Whoever makes the code cannot give what they do not have; that is for the
    /// caller to check.
    pub scopes: Scopes,
    /// A label for the session, if the client gives none.
    pub label: String,
}

/// A code, to be shown to a person once. It prints itself as `ABCD-EFGH`.
#[derive(Clone, PartialEq, Eq)]
pub struct PairingCode([u8; CODE_LEN]);

impl PairingCode {
    fn draw(random: [u8; CODE_LEN]) -> Self {
        // 32 divides 256: every code is equally likely.
        Self(random.map(|byte| ALPHABET[usize::from(byte % 32)]))
    }

    /// Reads what a person typed: in either case, with or without dashes and spaces.
    fn typed(text: &str) -> Option<Self> {
        if text.len() > 4 * CODE_LEN {
            return None;
        }
        let kept: Vec<u8> = text
            .bytes()
            .filter(|b| !matches!(b, b'-' | b' '))
            .map(|b| b.to_ascii_uppercase())
            .collect();
        let code: [u8; CODE_LEN] = kept.try_into().ok()?;
        code.iter().all(|b| ALPHABET.contains(b)).then_some(Self(code))
    }
}

impl fmt::Display for PairingCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, byte) in self.0.iter().enumerate() {
            if at == CODE_LEN / 2 {
                f.write_str("-")?;
            }
            write!(f, "{}", char::from(*byte))?;
        }
        Ok(())
    }
}

impl fmt::Debug for PairingCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("PairingCode")
    }
}

#[derive(Debug)]
struct Open {
    code: PairingCode,
    offer: PairingOffer,
    expires_at: Timestamp,
    tries_left: u32,
}

/// The codes that are in force. Kept in memory only: a restart ends them all.
///
/// A code has 40 bits and dies after [`TRIES`] wrong ones, so a guesser's chance is one in a
/// hundred billion. The price is that a guesser on the network can spoil a code; a person then
/// makes another.
#[derive(Debug, Default)]
pub(super) struct Pairing {
    open: Vec<Open>,
}

impl Pairing {
    /// Makes a code of eight random bytes.
    pub(super) fn offer(
        &mut self,
        offer: PairingOffer,
        random: [u8; CODE_LEN],
        now: Timestamp,
    ) -> (PairingCode, Timestamp) {
        self.open.retain(|open| open.expires_at > now && open.tries_left > 0);
        if self.open.len() >= CODES {
            self.open.remove(0);
        }
        let code = PairingCode::draw(random);
        let expires_at = now.after(CODE_LIFETIME);
        self.open.push(Open { code: code.clone(), offer, expires_at, tries_left: TRIES });
        (code, expires_at)
    }

    /// Uses a code up.
    ///
    /// # Errors
    /// [`Denial::PairingWrong`] for any other text, [`Denial::PairingExpired`] after its end,
    /// [`Denial::PairingExhausted`] after too many wrong codes. A text that cannot be a code is not
    /// counted as a try.
    pub(super) fn redeem(&mut self, text: &str, now: Timestamp) -> Result<PairingOffer, Denial> {
        let code = PairingCode::typed(text).ok_or(Denial::PairingWrong)?;
        // Every code is compared, in a time that does not depend on where they differ.
        let mut found = None;
        for (at, open) in self.open.iter().enumerate() {
            if bool::from(open.code.0.ct_eq(&code.0)) {
                found = Some(at);
            }
        }
        let Some(at) = found else {
            for open in &mut self.open {
                open.tries_left = open.tries_left.saturating_sub(1);
            }
            let is_spoilt = !self.open.is_empty() && self.open.iter().all(|o| o.tries_left == 0);
            return Err(if is_spoilt { Denial::PairingExhausted } else { Denial::PairingWrong });
        };
        let open = self.open.remove(at);
        if open.tries_left == 0 {
            self.open.insert(at, open);
            Err(Denial::PairingExhausted)
        } else if open.expires_at <= now {
            Err(Denial::PairingExpired)
        } else {
            Ok(open.offer)
        }
    }
}

/// Whether a peer is near enough to pair: this machine, or its local network by private (RFC 1918),
/// unique local (RFC 4193) or link-local addresses. Shared address space (RFC 6598), which overlay
/// networks use, is not near.
#[must_use]
pub fn is_near(peer: IpAddr) -> bool {
    match peer {
        IpAddr::V4(peer) => is_near_v4(peer),
        IpAddr::V6(peer) => peer.to_ipv4_mapped().map_or_else(|| is_near_v6(peer), is_near_v4),
    }
}

const fn is_near_v4(peer: Ipv4Addr) -> bool {
    peer.is_loopback() || peer.is_private() || peer.is_link_local()
}

const fn is_near_v6(peer: Ipv6Addr) -> bool {
    peer.is_loopback() || peer.is_unique_local() || peer.is_unicast_link_local()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn offer() -> PairingOffer {
        PairingOffer {
            subject: UserName::new("owner").unwrap(),
            scopes: Scopes::all(),
            label: "phone".into(),
        }
    }

    fn pairing() -> (Pairing, PairingCode) {
        let mut pairing = Pairing::default();
        let (code, expires_at) = pairing.offer(offer(), [0, 1, 2, 3, 4, 5, 6, 255], Timestamp(0));
        assert_eq!(expires_at, Timestamp(300_000));
        (pairing, code)
    }

    #[test]
    fn a_code_is_good_once_however_it_is_typed() {
        for typed in ["2345-678Z", "2345678z", " 23 45 - 67 8z "] {
            let (mut pairing, code) = pairing();
            assert_eq!(code.to_string(), "2345-678Z");
            assert_eq!(pairing.redeem(typed, Timestamp(299_999)), Ok(offer()));
            assert_eq!(pairing.redeem(typed, Timestamp(299_999)), Err(Denial::PairingWrong));
        }
    }

    #[test]
    fn a_code_ends_after_five_minutes() {
        let (mut pairing, code) = pairing();
        let late = pairing.redeem(&code.to_string(), Timestamp(300_000));
        assert_eq!(late, Err(Denial::PairingExpired));
        // Setting the clock back does not revive it.
        assert_eq!(pairing.redeem(&code.to_string(), Timestamp(0)), Err(Denial::PairingWrong));
    }

    #[test]
    fn a_code_dies_of_too_many_wrong_ones() {
        let (mut pairing, code) = pairing();
        for _ in 1..TRIES {
            assert_eq!(pairing.redeem("22222222", Timestamp(0)), Err(Denial::PairingWrong));
        }
        assert_eq!(pairing.redeem("22222222", Timestamp(0)), Err(Denial::PairingExhausted));
        for _ in 0..2 {
            let right = pairing.redeem(&code.to_string(), Timestamp(0));
            assert_eq!(right, Err(Denial::PairingExhausted));
        }
        let (fresh, _) = pairing.offer(offer(), [9; 8], Timestamp(0));
        assert_eq!(pairing.redeem(&fresh.to_string(), Timestamp(0)), Ok(offer()));
    }

    #[test]
    fn what_cannot_be_a_code_is_no_try() {
        let (mut pairing, code) = pairing();
        for bad in ["", "2345", "2345678ZZ", "2345678O", "2345678é", &"-".repeat(100)] {
            for _ in 0..TRIES {
                assert_eq!(pairing.redeem(bad, Timestamp(0)), Err(Denial::PairingWrong), "{bad}");
            }
        }
        assert!(pairing.redeem(&code.to_string(), Timestamp(0)).is_ok());
    }

    #[test]
    fn a_code_too_many_replaces_the_oldest() {
        let (mut pairing, first) = pairing();
        for n in 1..=4 {
            pairing.offer(offer(), [n; 8], Timestamp(0));
        }
        assert_eq!(pairing.redeem(&first.to_string(), Timestamp(0)), Err(Denial::PairingWrong));
        assert_eq!(pairing.open.len(), CODES);
    }

    #[test]
    fn a_code_is_not_printed_by_chance() {
        let (_, code) = pairing();
        assert_eq!(format!("{code:?}"), "PairingCode");
    }

    #[test]
    fn near_is_this_machine_and_its_network() {
        let near = ["127.0.0.1", "127.9.9.9", "::1", "10.1.2.3", "172.16.0.1", "172.31.255.255"];
        let also = ["192.168.1.1", "169.254.1.1", "fe80::1", "fd00::1", "::ffff:192.168.1.1"];
        for peer in near.iter().chain(&also) {
            assert!(is_near(peer.parse().unwrap()), "{peer}");
        }
        let far = ["8.8.8.8", "172.32.0.1", "100.64.0.1", "2001:db8::1", "::ffff:8.8.8.8", "::"];
        for peer in far.iter().chain(&["0.0.0.0"]) {
            assert!(!is_near(peer.parse().unwrap()), "{peer}");
        }
    }
}
