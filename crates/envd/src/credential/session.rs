//! Sessions: what an access token and a socket stand for.

use wakeful_wire::{
    HostSessionId, Timestamp, UserName,
    host::{Denial, Scope, Scopes, SessionMethod, SessionView},
};

use super::key::Thumbprint;

/// The most characters of a session's label.
pub const LABEL_MAX: usize = 80;

/// One client's right to use this host, bound to the client's key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Session {
    /// Its id.
    pub id: HostSessionId,
    /// Its place among all sessions in the order of their issue. "Newer" means later in it: unlike
    /// a clock it never goes back.
    pub sequence: u64,
    /// Whose it is.
    pub subject: UserName,
    /// What it may do.
    pub scopes: Scopes,
    /// How it came to be.
    pub method: SessionMethod,
    /// The key that its credentials are bound to.
    pub key: Thumbprint,
    /// What its client calls itself.
    pub label: String,
    /// When it was issued.
    pub issued_at: Timestamp,
    /// When its credentials end.
    pub expires_at: Timestamp,
    /// When it was revoked, if it was.
    pub revoked_at: Option<Timestamp>,
    /// When it last went from no socket to one.
    pub last_connected_at: Option<Timestamp>,
}

impl Session {
    /// Whether its credentials are good now.
    ///
    /// # Errors
    /// [`Denial::SessionRevoked`] or [`Denial::SessionExpired`].
    pub fn holds(&self, now: Timestamp) -> Result<(), Denial> {
        if self.revoked_at.is_some() {
            Err(Denial::SessionRevoked)
        } else if self.expires_at <= now {
            Err(Denial::SessionExpired)
        } else {
            Ok(())
        }
    }

    /// Whether it may do this.
    ///
    /// # Errors
    /// [`Denial::ScopeMissing`].
    pub fn allows(&self, scope: Scope) -> Result<(), Denial> {
        if self.scopes.contains(scope) { Ok(()) } else { Err(Denial::ScopeMissing) }
    }

    /// Whether both stand for the same client with the same rights: key, subject and scopes (as a
    /// set) are the same. Only then may one take over the sockets of the other.
    #[must_use]
    pub fn is_same_client(&self, other: &Self) -> bool {
        self.key == other.key && self.subject == other.subject && self.scopes == other.scopes
    }

    /// As a list shows it, with this many sockets.
    #[must_use]
    pub fn view(&self, connections: u32) -> SessionView {
        SessionView {
            id: self.id,
            subject: self.subject.clone(),
            scopes: self.scopes.clone(),
            method: self.method,
            label: self.label.clone(),
            issued_at: self.issued_at,
            expires_at: self.expires_at,
            last_connected_at: self.last_connected_at,
            connections,
        }
    }
}

/// A label as it is kept: without control characters and bounded; `fallback` where nothing is left.
pub(super) fn label(text: Option<&str>, fallback: &str) -> String {
    let kept: String = text
        .unwrap_or_default()
        .trim()
        .chars()
        .filter(|c| !c.is_control())
        .take(LABEL_MAX)
        .collect();
    if kept.is_empty() { fallback.to_owned() } else { kept }
}
