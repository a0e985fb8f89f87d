//! Plans of the persisted half: they look and change nothing.

use std::time::Duration;

use wakeful_wire::{HostSessionId, Timestamp, UserName, host::Denial};

use super::{Issue, Ledger, Write};
use crate::credential::session::Session;

impl Ledger {
    /// Plans a new session.
    ///
    /// # Errors
    /// [`Denial::SessionsFull`] when there is no room and no unconnected session of the same
    /// subject that could make room.
    pub(in crate::credential) fn plan_issue(
        &self,
        issue: Issue,
        now: Timestamp,
    ) -> Result<(Session, Vec<Write>), Denial> {
        let mut writes: Vec<Write> = self.room(&issue.subject, now)?.into_iter().collect();
        let session = Session {
            id: issue.id,
            sequence: self.last_sequence + 1,
            subject: issue.subject,
            scopes: issue.scopes,
            method: issue.method,
            key: issue.key,
            label: issue.label,
            issued_at: now,
            expires_at: now.after(issue.lifetime),
            revoked_at: None,
            last_connected_at: None,
        };
        writes.push(Write::Insert(session.clone()));
        if issue.replaces {
            // After the insert: a socket of the same client moves before its old session ends.
            let replaced = |other: &Session| {
                other.subject == session.subject && other.method == session.method
            };
            writes.extend(self.revocations(replaced, now));
        }
        Ok((session, writes))
    }

    /// What to drop so that one more session fits.
    fn room(&self, subject: &UserName, now: Timestamp) -> Result<Option<Write>, Denial> {
        if self.sessions.len() < self.sessions_max {
            return Ok(None);
        }
        let unconnected = || self.sessions.values().filter(|s| self.connections(s.id) == 0);
        let dead = unconnected().find(|s| s.holds(now).is_err());
        let own = || unconnected().filter(|s| s.subject == *subject).min_by_key(|s| s.sequence);
        let dropped = dead.or_else(own).ok_or(Denial::SessionsFull)?;
        Ok(Some(Write::Forget { id: dropped.id }))
    }

    /// Plans a longer life for a session. A life is never made shorter.
    ///
    /// # Errors
    /// When its credentials are not good any more.
    pub(in crate::credential) fn plan_extend(
        &self,
        id: HostSessionId,
        lifetime: Duration,
        now: Timestamp,
    ) -> Result<(Session, Vec<Write>), Denial> {
        let session = self.holding(id, now)?;
        let expires_at = session.expires_at.max(now.after(lifetime));
        let extended = Session { expires_at, ..session.clone() };
        Ok((extended, vec![Write::Extend { id, expires_at }]))
    }

    /// Plans the revocation of one session; of none if it is not there or revoked already.
    pub(in crate::credential) fn plan_revoke(
        &self,
        id: HostSessionId,
        now: Timestamp,
    ) -> Vec<Write> {
        self.revocations(|session| session.id == id, now)
    }

    /// Plans the revocation of every session but one, of one subject or of everybody.
    pub(in crate::credential) fn plan_revoke_others(
        &self,
        keep: HostSessionId,
        subject: Option<&UserName>,
        now: Timestamp,
    ) -> Vec<Write> {
        self.revocations(
            |session| {
                session.id != keep && subject.is_none_or(|subject| session.subject == *subject)
            },
            now,
        )
    }

    fn revocations(&self, which: impl Fn(&Session) -> bool, now: Timestamp) -> Vec<Write> {
        self.sessions
            .values()
            .filter(|session| session.revoked_at.is_none() && which(session))
            .map(|session| Write::Revoke { id: session.id, at: now })
            .collect()
    }
}
