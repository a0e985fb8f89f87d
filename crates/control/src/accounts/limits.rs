//! How often somebody may fail to sign in, or sign up.
//!
//! Whoever guesses passwords is slowed per account and per address; the owner of an account is not
//! locked out by it. An account has one allowance for the addresses that it was never signed in
//! from, which all guessers share, and one for each address that it was. Addresses behind one
//! proxy look alike, so the allowance per address is wide.

use std::{collections::HashMap, hash::Hash, net::IpAddr, time::Duration};

use wakeful_wire::{Timestamp, UserName, time::millis};

/// Where a request came from, as far as limits are concerned: an IPv4 address, or an IPv6 network
/// of 64 bits, of which whoever has one address has them all.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Peer(IpAddr);

impl Peer {
    /// The peer that an address belongs to.
    #[must_use]
    pub fn of(address: IpAddr) -> Self {
        match address.to_canonical() {
            IpAddr::V4(v4) => Self(v4.into()),
            IpAddr::V6(v6) => {
                let network = u128::from(v6) & (u128::MAX << 64);
                Self(IpAddr::V6(network.into()))
            }
        }
    }
}

/// An allowance: so many at once, and one more after each `every`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Allowance {
    /// How many at once. At least one.
    pub burst: u32,
    /// How long until there is one more.
    pub every: Duration,
}

/// Counts events of many keys against one allowance. Holds at most [`Throttle::KEYS`] keys; beyond,
/// the one that is nearest to its full allowance is forgotten.
#[derive(Debug)]
pub struct Throttle<K> {
    allowance: Allowance,
    /// Per key, when its allowance is full again.
    full_at: HashMap<K, Timestamp>,
}

impl<K: Eq + Hash + Clone> Throttle<K> {
    /// The most keys that are held.
    pub const KEYS: usize = 16_384;

    /// Nothing has happened yet.
    #[must_use]
    pub fn new(allowance: Allowance) -> Self {
        Self { allowance, full_at: HashMap::new() }
    }

    /// Whether one more may happen now.
    ///
    /// # Errors
    /// How long until it may. More than zero.
    pub fn check(&self, key: &K, now: Timestamp) -> Result<(), Duration> {
        let Some(full_at) = self.full_at.get(key) else { return Ok(()) };
        let spent = now.until(*full_at);
        let room = self.allowance.every.saturating_mul(self.allowance.burst.saturating_sub(1));
        match spent.saturating_sub(room) {
            Duration::ZERO => Ok(()),
            wait => Err(wait),
        }
    }

    /// One has happened.
    pub fn count(&mut self, key: &K, now: Timestamp) {
        if self.full_at.len() >= Self::KEYS && !self.full_at.contains_key(key) {
            self.forget_one(now);
        }
        let full_at = self.full_at.entry(key.clone()).or_insert(now);
        *full_at = (*full_at).max(now).after(self.allowance.every);
    }

    fn forget_one(&mut self, now: Timestamp) {
        self.full_at.retain(|_, full_at| *full_at > now);
        if self.full_at.len() >= Self::KEYS {
            let least = self.full_at.iter().min_by_key(|(_, full_at)| **full_at);
            if let Some(key) = least.map(|(key, _)| key.clone()) {
                self.full_at.remove(&key);
            }
        }
    }
}

/// The limits in force.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LimitSettings {
    /// Wrong passwords for one account.
    pub account: Allowance,
    /// Wrong passwords from one address, whichever the account.
    pub peer: Allowance,
    /// New users from one address within an hour.
    pub sign_ups_per_hour: u32,
}

impl Default for LimitSettings {
    fn default() -> Self {
        Self {
            account: Allowance { burst: 8, every: Duration::from_secs(10) },
            peer: Allowance { burst: 60, every: Duration::from_secs(5) },
            sign_ups_per_hour: 60,
        }
    }
}

/// Whose allowance a wrong password is counted against.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Account {
    user: UserName,
    /// The address, where the account was signed in from it before.
    known: Option<Peer>,
}

/// Counts wrong passwords and new users.
#[derive(Debug)]
pub struct Limits {
    accounts: Throttle<Account>,
    peers: Throttle<Peer>,
    sign_ups: Throttle<Peer>,
    /// From where an account was signed in.
    known: HashMap<(UserName, Peer), Timestamp>,
}

impl Limits {
    /// Nothing has happened yet.
    #[must_use]
    pub fn new(settings: LimitSettings) -> Self {
        let hourly = settings.sign_ups_per_hour.max(1);
        let sign_ups = Allowance { burst: hourly, every: Duration::from_secs(3_600) / hourly };
        Self {
            accounts: Throttle::new(settings.account),
            peers: Throttle::new(settings.peer),
            sign_ups: Throttle::new(sign_ups),
            known: HashMap::new(),
        }
    }

    fn account(&self, user: &UserName, peer: Option<Peer>) -> Account {
        let known = peer.filter(|peer| self.known.contains_key(&(user.clone(), *peer)));
        Account { user: user.clone(), known }
    }

    /// Whether a password may be tried.
    ///
    /// # Errors
    /// How long to wait.
    pub fn may_try(
        &self,
        user: &UserName,
        peer: Option<Peer>,
        now: Timestamp,
    ) -> Result<(), Duration> {
        self.accounts.check(&self.account(user, peer), now)?;
        peer.map_or(Ok(()), |peer| self.peers.check(&peer, now))
    }

    /// A wrong password was tried.
    pub fn failed(&mut self, user: &UserName, peer: Option<Peer>, now: Timestamp) {
        let account = self.account(user, peer);
        self.accounts.count(&account, now);
        if let Some(peer) = peer {
            self.peers.count(&peer, now);
        }
    }

    /// The account was signed in from there.
    pub fn succeeded(&mut self, user: &UserName, peer: Option<Peer>, now: Timestamp) {
        let Some(peer) = peer else { return };
        if self.known.len() >= Throttle::<Peer>::KEYS {
            let oldest = self.known.iter().min_by_key(|(_, at)| **at);
            if let Some(key) = oldest.map(|(key, _)| key.clone()) {
                self.known.remove(&key);
            }
        }
        self.known.insert((user.clone(), peer), now);
    }

    /// Counts a new user.
    ///
    /// # Errors
    /// How long to wait; it is then not counted.
    pub fn sign_up(&mut self, peer: Option<Peer>, now: Timestamp) -> Result<(), Duration> {
        let Some(peer) = peer else { return Ok(()) };
        self.sign_ups.check(&peer, now)?;
        self.sign_ups.count(&peer, now);
        Ok(())
    }
}

/// Whole seconds, rounded up, as `Retry-After` has them.
#[must_use]
pub fn retry_after_s(wait: Duration) -> u64 {
    millis(wait).div_ceil(1_000).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn user(name: &str) -> UserName {
        UserName::new(name).unwrap()
    }

    fn peer(address: &str) -> Option<Peer> {
        Some(Peer::of(address.parse().unwrap()))
    }

    fn seconds(s: u64) -> Timestamp {
        Timestamp(s * 1_000)
    }

    #[test]
    fn addresses_of_one_ipv6_network_are_one_peer() {
        assert_eq!(peer("2001:db8::1"), peer("2001:db8::ffff:2"));
        assert_ne!(peer("2001:db8::1"), peer("2001:db8:0:1::1"));
        assert_ne!(peer("192.0.2.1"), peer("192.0.2.2"));
        assert_eq!(peer("::ffff:192.0.2.1"), peer("192.0.2.1"));
    }

    #[test]
    fn an_allowance_is_spent_and_comes_back() {
        let every = Duration::from_secs(10);
        let mut throttle = Throttle::new(Allowance { burst: 3, every });
        for _ in 0..3 {
            assert_eq!(throttle.check(&1, seconds(0)), Ok(()));
            throttle.count(&1, seconds(0));
        }
        assert_eq!(throttle.check(&1, seconds(0)), Err(every));
        assert_eq!(throttle.check(&2, seconds(0)), Ok(()));
        assert_eq!(throttle.check(&1, seconds(4)), Err(Duration::from_secs(6)));
        assert_eq!(throttle.check(&1, seconds(10)), Ok(()));
        throttle.count(&1, seconds(10));
        assert_eq!(throttle.check(&1, seconds(10)), Err(every));
    }

    #[test]
    fn many_keys_are_forgotten_from_the_least_spent_on() {
        let mut throttle = Throttle::new(Allowance { burst: 1, every: Duration::from_secs(9) });
        throttle.count(&usize::MAX, seconds(0));
        throttle.count(&usize::MAX, seconds(0));
        for key in 0..Throttle::<usize>::KEYS + 10 {
            throttle.count(&key, seconds(0));
        }
        assert_eq!(throttle.full_at.len(), Throttle::<usize>::KEYS);
        assert!(throttle.check(&usize::MAX, seconds(0)).is_err());
    }

    #[test]
    fn one_persons_typos_do_not_lock_out_another_behind_the_same_proxy() {
        let mut limits = Limits::new(LimitSettings::default());
        let proxy = peer("10.0.0.1");
        for _ in 0..20 {
            limits.failed(&user("alice"), proxy, seconds(0));
        }
        assert!(limits.may_try(&user("alice"), proxy, seconds(0)).is_err());
        assert_eq!(limits.may_try(&user("bob"), proxy, seconds(0)), Ok(()));
    }

    #[test]
    fn a_thousand_sources_slow_themselves_and_not_the_owner() {
        let mut limits = Limits::new(LimitSettings::default());
        let home = peer("198.51.100.7");
        limits.succeeded(&user("alice"), home, seconds(0));
        for n in 0..1_000_u32 {
            let source = peer(&std::net::Ipv4Addr::from(0x0a00_0000 + n).to_string());
            limits.failed(&user("alice"), source, seconds(1));
        }
        assert!(limits.may_try(&user("alice"), peer("10.9.9.9"), seconds(2)).is_err());
        assert_eq!(limits.may_try(&user("alice"), home, seconds(2)), Ok(()));
    }

    #[test]
    fn one_address_cannot_try_every_account() {
        let mut limits = Limits::new(LimitSettings::default());
        let source = peer("203.0.113.9");
        for n in 0..60 {
            limits.failed(&user(&format!("u{n}")), source, seconds(0));
        }
        assert!(limits.may_try(&user("another"), source, seconds(0)).is_err());
        assert_eq!(limits.may_try(&user("another"), peer("203.0.113.8"), seconds(0)), Ok(()));
    }

    #[test]
    fn sign_ups_of_one_address_are_bounded_by_the_hour() {
        let settings = LimitSettings { sign_ups_per_hour: 2, ..LimitSettings::default() };
        let mut limits = Limits::new(settings);
        let source = peer("203.0.113.9");
        assert_eq!(limits.sign_up(source, seconds(0)), Ok(()));
        assert_eq!(limits.sign_up(source, seconds(0)), Ok(()));
        assert_eq!(limits.sign_up(source, seconds(0)), Err(Duration::from_secs(1_800)));
        assert_eq!(limits.sign_up(peer("203.0.113.8"), seconds(0)), Ok(()));
        assert_eq!(limits.sign_up(source, seconds(1_800)), Ok(()));
    }

    #[test]
    fn a_wait_is_told_in_whole_seconds_rounded_up() {
        assert_eq!(retry_after_s(Duration::from_millis(1)), 1);
        assert_eq!(retry_after_s(Duration::from_millis(1_001)), 2);
    }
}
