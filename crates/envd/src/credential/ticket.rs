//! One-use tickets for opening a socket: a browser cannot send headers with an upgrade.

use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    time::Duration,
};

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use wakeful_wire::{HostSessionId, Timestamp, host::Denial};

use super::key::sha256;

/// How long a ticket can be used.
pub const TICKET_LIFETIME: Duration = Duration::from_secs(60);
/// Tickets of one session that are known at a time; a further one makes the oldest unknown.
const PER_SESSION: usize = 8;
/// Tickets that are known at a time; a further one makes the one that ends first unknown.
const TOTAL: usize = 16_384;
/// How long after its end a ticket is still known as used or expired.
const REMEMBERED: Duration = Duration::from_secs(60);

const PREFIX: &str = "wkt1.";

#[derive(Debug)]
struct Known {
    session: HostSessionId,
    expires_at: Timestamp,
    is_used: bool,
}

/// The tickets that were issued and are neither used nor forgotten.
///
/// Only their hashes are kept, and only in memory: after a restart no ticket is known, so none can
/// be used twice. A client then asks for another.
#[derive(Debug, Default)]
pub(super) struct Tickets {
    known: BTreeMap<[u8; 32], Known>,
    by_end: BTreeSet<(Timestamp, [u8; 32])>,
    per_session: BTreeMap<HostSessionId, VecDeque<[u8; 32]>>,
}

impl Tickets {
    /// A ticket for a session, made of 32 random bytes.
    pub(super) fn issue(
        &mut self,
        session: HostSessionId,
        secret: &[u8; 32],
        now: Timestamp,
    ) -> String {
        self.forget_old(now);
        let text = format!("{PREFIX}{}", URL_SAFE_NO_PAD.encode(secret));
        let hash = sha256(text.as_bytes());
        let crowd = self.per_session.entry(session).or_default();
        let surplus = if crowd.len() >= PER_SESSION { crowd.front().copied() } else { None };
        if let Some(oldest) = surplus {
            self.forget(&oldest);
        }
        while self.known.len() >= TOTAL
            && let Some((_, first)) = self.by_end.first().copied()
        {
            self.forget(&first);
        }
        let expires_at = now.after(TICKET_LIFETIME);
        self.per_session.entry(session).or_default().push_back(hash);
        self.by_end.insert((expires_at, hash));
        self.known.insert(hash, Known { session, expires_at, is_used: false });
        text
    }

    /// Uses a ticket up and says whose it is. The first attempt uses it up, whatever comes of it.
    ///
    /// # Errors
    /// A [`Denial`] for each way in which a ticket can be wrong. The session's own state is not
    /// known here.
    pub(super) fn redeem(&mut self, text: &str, now: Timestamp) -> Result<HostSessionId, Denial> {
        let body = text.strip_prefix(PREFIX).ok_or(Denial::TicketMalformed)?;
        if body.len() != 43 {
            return Err(Denial::TicketMalformed);
        }
        // Found by its hash: how long the search takes tells nothing of any other ticket.
        let hash = sha256(text.as_bytes());
        let known = self.known.get_mut(&hash).ok_or(Denial::TicketUnknown)?;
        if known.is_used {
            return Err(Denial::TicketUsed);
        }
        known.is_used = true;
        if known.expires_at <= now {
            return Err(Denial::TicketExpired);
        }
        Ok(known.session)
    }

    fn forget_old(&mut self, now: Timestamp) {
        while let Some((expires_at, hash)) = self.by_end.first().copied()
            && expires_at.after(REMEMBERED) <= now
        {
            self.forget(&hash);
        }
    }

    fn forget(&mut self, hash: &[u8; 32]) {
        let Some(known) = self.known.remove(hash) else { return };
        self.by_end.remove(&(known.expires_at, *hash));
        if let Some(crowd) = self.per_session.get_mut(&known.session) {
            crowd.retain(|other| other != hash);
            if crowd.is_empty() {
                self.per_session.remove(&known.session);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::credential::testing::session_id;

    fn bytes(n: u32) -> [u8; 32] {
        let mut bytes = [0; 32];
        bytes[..4].copy_from_slice(&n.to_be_bytes());
        bytes
    }

    #[test]
    fn a_ticket_is_good_once_and_for_a_minute() {
        let mut tickets = Tickets::default();
        let ticket = tickets.issue(session_id(1), &bytes(1), Timestamp(0));
        assert_eq!(tickets.redeem(&ticket, Timestamp(59_999)), Ok(session_id(1)));
        assert_eq!(tickets.redeem(&ticket, Timestamp(59_999)), Err(Denial::TicketUsed));
        let late = tickets.issue(session_id(1), &bytes(2), Timestamp(0));
        assert_eq!(tickets.redeem(&late, Timestamp(60_000)), Err(Denial::TicketExpired));
        // Setting the clock back does not revive it.
        assert_eq!(tickets.redeem(&late, Timestamp(1)), Err(Denial::TicketUsed));
        tickets.issue(session_id(2), &bytes(3), Timestamp(120_000));
        assert_eq!(tickets.redeem(&late, Timestamp(120_000)), Err(Denial::TicketUnknown));
        assert_eq!(tickets.known.len(), 1);
    }

    #[test]
    fn other_texts_are_no_tickets() {
        let mut tickets = Tickets::default();
        let ticket = tickets.issue(session_id(1), &bytes(1), Timestamp(0));
        for bad in ["", "wkt1.", &ticket[1..], &ticket[..ticket.len() - 1], &format!("{ticket}A")] {
            assert_eq!(tickets.redeem(bad, Timestamp(0)), Err(Denial::TicketMalformed), "{bad}");
        }
        let unknown = ticket.replace("AAAAAQ", "AAAAAg");
        assert_ne!(unknown, ticket);
        assert_eq!(tickets.redeem(&unknown, Timestamp(0)), Err(Denial::TicketUnknown));
    }

    #[test]
    fn a_ticket_too_many_makes_the_oldest_of_its_session_unknown() {
        let mut tickets = Tickets::default();
        let other = tickets.issue(session_id(9), &bytes(99), Timestamp(0));
        let first = tickets.issue(session_id(1), &bytes(0), Timestamp(0));
        let mut last = String::new();
        for n in 1..=8 {
            last = tickets.issue(session_id(1), &bytes(n), Timestamp(0));
        }
        assert_eq!(tickets.redeem(&first, Timestamp(0)), Err(Denial::TicketUnknown));
        assert_eq!(tickets.redeem(&last, Timestamp(0)), Ok(session_id(1)));
        assert_eq!(tickets.redeem(&other, Timestamp(0)), Ok(session_id(9)));
    }

    #[test]
    fn the_number_of_tickets_is_bounded() {
        let mut tickets = Tickets::default();
        for n in 0..u32::try_from(TOTAL).unwrap() + 10 {
            tickets.issue(session_id(u64::from(n)), &bytes(n), Timestamp(u64::from(n) / 1_000));
        }
        assert_eq!(tickets.known.len(), TOTAL);
        assert_eq!(tickets.by_end.len(), TOTAL);
        assert_eq!(tickets.per_session.len(), TOTAL);
    }
}
