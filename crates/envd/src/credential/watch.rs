//! What becomes of one live socket while sessions come and go.
//!
//! Three things can end or change what a socket stands on, and they can meet in any order: its
//! session is revoked, its session runs out, a newer session of the same client is issued. The
//! rules, each of which a test below breaks one by one:
//!
//! - A newer session of the same key, subject and scopes takes the socket over. Scopes are compared
//!   as sets; a wider or a narrower session takes nothing over.
//! - A takeover that meets the end of the old session wins: the socket closes for expiry only when
//!   the clock is looked at ([`Watch::handle_tick`]) and no newer session came before.
//! - Revocation of the current session closes and never moves, whatever other sessions there are.
//!   Revocation of a session that the socket has left does nothing.
//! - Once it is told to close, a socket takes part in nothing any more. It still counts as connected
//!   until it is gone, so its session stays listed until then.

use wakeful_wire::{HostSessionId, Timestamp, host::close};

use super::session::Session;

/// Why a socket must close.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum CloseCause {
    /// Its session was revoked.
    Revoked,
    /// Its session ran out.
    Expired,
}

impl CloseCause {
    /// The close code.
    #[must_use]
    pub const fn code(self) -> u16 {
        match self {
            Self::Revoked => close::SESSION_REVOKED,
            Self::Expired => close::SESSION_EXPIRED,
        }
    }

    /// The reason text of the close frame.
    #[must_use]
    pub const fn reason(self) -> &'static str {
        match self {
            Self::Revoked => "session_revoked",
            Self::Expired => "session_expired",
        }
    }
}

/// What a socket is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// It stands on another session from now on. Nothing is sent to the client.
    Moved {
        /// The session that it left.
        from: HostSessionId,
        /// The session that it stands on.
        to: HostSessionId,
    },
    /// It must close.
    Close(CloseCause),
}

/// One socket's hold on its session: a machine without clock and without IO.
#[derive(Debug, Clone)]
pub struct Watch {
    current: Session,
    closing: Option<CloseCause>,
}

impl Watch {
    /// A socket that opens on this session.
    #[must_use]
    pub const fn new(session: Session) -> Self {
        Self { current: session, closing: None }
    }

    /// The session that it stands on, as it was when it was last heard of.
    #[must_use]
    pub const fn current(&self) -> &Session {
        &self.current
    }

    /// Why it was told to close, if it was.
    #[must_use]
    pub const fn closing(&self) -> Option<CloseCause> {
        self.closing
    }

    /// When its session runs out: the next moment at which [`Self::handle_tick`] has work.
    #[must_use]
    pub fn poll_deadline(&self) -> Option<Timestamp> {
        self.closing.is_none().then_some(self.current.expires_at)
    }

    /// A session was issued, or was there already when the socket opened.
    pub fn handle_issued(&mut self, session: &Session, now: Timestamp) -> Option<Outcome> {
        let takes_over = self.closing.is_none()
            && session.sequence > self.current.sequence
            && session.is_same_client(&self.current)
            && session.holds(now).is_ok();
        if !takes_over {
            return None;
        }
        let from = self.current.id;
        self.current = session.clone();
        Some(Outcome::Moved { from, to: session.id })
    }

    /// The life of a session was extended.
    pub fn handle_extended(&mut self, id: HostSessionId, expires_at: Timestamp) {
        if self.current.id == id && self.closing.is_none() {
            self.current.expires_at = expires_at;
        }
    }

    /// A session was revoked.
    pub fn handle_revoked(&mut self, id: HostSessionId) -> Option<Outcome> {
        (self.current.id == id).then(|| self.close(CloseCause::Revoked)).flatten()
    }

    /// It is this late.
    pub fn handle_tick(&mut self, now: Timestamp) -> Option<Outcome> {
        (self.current.expires_at <= now).then(|| self.close(CloseCause::Expired)).flatten()
    }

    fn close(&mut self, cause: CloseCause) -> Option<Outcome> {
        if self.closing.is_some() {
            return None;
        }
        self.closing = Some(cause);
        Some(Outcome::Close(cause))
    }
}

#[cfg(test)]
mod tests {
    use wakeful_wire::host::{Scope, Scopes};

    use super::*;
    use crate::credential::testing::{key, session};

    const HOUR: u64 = 3_600_000;

    fn at(ms: u64) -> Timestamp {
        Timestamp(ms)
    }

    fn newer(sequence: u64, issued_at: u64) -> Session {
        Session {
            issued_at: at(issued_at),
            expires_at: at(issued_at + HOUR),
            ..session(sequence, "alice")
        }
    }

    #[test]
    fn a_newer_session_of_the_same_client_takes_the_socket_over() {
        let old = newer(1, 0);
        let new = newer(2, HOUR - 60_000);
        let mut watch = Watch::new(old.clone());
        let moved = watch.handle_issued(&new, at(HOUR - 60_000));
        assert_eq!(moved, Some(Outcome::Moved { from: old.id, to: new.id }));
        assert_eq!(watch.handle_tick(at(HOUR)), None);
        assert_eq!(watch.poll_deadline(), Some(new.expires_at));
        assert_eq!(watch.handle_tick(new.expires_at), Some(Outcome::Close(CloseCause::Expired)));
    }

    #[test]
    fn nobody_else_takes_a_socket_over() {
        let wider = Scopes::from_iter([Scope::Read, Scope::Write, Scope::Approve]);
        let narrower = Scopes::from_iter([Scope::Read]);
        let table = [
            ("another key", Session { key: key(9), ..newer(2, 10) }),
            ("another subject", Session { subject: session(2, "bob").subject, ..newer(2, 10) }),
            ("wider", Session { scopes: wider, ..newer(2, 10) }),
            ("narrower", Session { scopes: narrower, ..newer(2, 10) }),
            ("revoked", Session { revoked_at: Some(at(10)), ..newer(2, 10) }),
            ("expired", Session { expires_at: at(10), ..newer(2, 10) }),
            ("older", Session { sequence: 0, ..newer(2, 10) }),
            ("itself", newer(1, 0)),
        ];
        for (what, other) in table {
            let mut watch = Watch::new(newer(1, 0));
            assert_eq!(watch.handle_issued(&other, at(10)), None, "{what}");
            assert_eq!(watch.handle_tick(at(HOUR)), Some(Outcome::Close(CloseCause::Expired)));
        }
    }

    #[test]
    fn scopes_in_another_order_are_the_same() {
        let other: Scopes = "write read".parse().unwrap();
        let mut watch = Watch::new(newer(1, 0));
        assert!(watch.handle_issued(&Session { scopes: other, ..newer(2, 10) }, at(10)).is_some());
    }

    #[test]
    fn a_takeover_at_the_very_end_wins() {
        let mut watch = Watch::new(newer(1, 0));
        assert!(watch.handle_issued(&newer(2, HOUR), at(HOUR)).is_some());
        assert_eq!(watch.handle_tick(at(HOUR)), None);
    }

    #[test]
    fn revocation_closes_the_current_session_only() {
        let (old, new) = (newer(1, 0), newer(2, 10));
        let mut watch = Watch::new(old.clone());
        watch.handle_issued(&new, at(10));
        assert_eq!(watch.handle_revoked(old.id), None);
        assert_eq!(watch.handle_revoked(new.id), Some(Outcome::Close(CloseCause::Revoked)));
    }

    #[test]
    fn a_closing_socket_takes_part_in_nothing() {
        let old = newer(1, 0);
        let mut watch = Watch::new(old.clone());
        assert!(watch.handle_revoked(old.id).is_some());
        assert_eq!(watch.handle_issued(&newer(2, 10), at(10)), None);
        assert_eq!(watch.handle_revoked(old.id), None);
        assert_eq!(watch.handle_tick(at(2 * HOUR)), None);
        assert_eq!(watch.poll_deadline(), None);
        assert_eq!(watch.closing(), Some(CloseCause::Revoked));
    }

    #[test]
    fn an_extended_session_keeps_its_socket() {
        let old = newer(1, 0);
        let mut watch = Watch::new(old.clone());
        watch.handle_extended(old.id, at(2 * HOUR));
        assert_eq!(watch.handle_tick(at(HOUR)), None);
        assert!(watch.handle_tick(at(2 * HOUR)).is_some());
    }

    #[test]
    fn each_cause_has_its_own_code() {
        assert_ne!(CloseCause::Revoked.code(), CloseCause::Expired.code());
    }
}
