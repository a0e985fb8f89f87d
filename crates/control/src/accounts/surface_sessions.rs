//! Cookies of private surfaces' own hosts, and the single-use tickets that they are got with.
//!
//! The main host's cookie never reaches a surface's host, where programs of a sandbox answer. A
//! browser that comes there without a cookie is sent to the main host with a nonce that its host
//! keeps in a cookie; the main host gives a ticket; the surface's host exchanges it. A ticket works
//! once, for a minute, for one host, and only in the browser whose nonce it was made with: one that
//! leaks signs nobody in, and nobody can be signed in to somebody else's account with it.

use std::time::Duration;

use wakeful_wire::{Timestamp, UserName};

use super::{AccountError, Accounts, SECRET_MAX, Session, SessionId, secret, sessions};

/// How long a ticket may be exchanged.
pub const TICKET_LIFETIME: Duration = Duration::from_secs(60);
/// The most tickets of one session that are open at once; a further one ends the oldest.
const TICKETS_MAX: i64 = 64;
/// How many cookies of one host a session keeps: two tabs that exchange at once keep theirs both.
const COOKIES_PER_HOST: i64 = 4;

/// What a ticket was exchanged for.
#[derive(Clone)]
pub struct SurfaceGrant {
    /// The value of the surface host's cookie. A secret.
    pub cookie: String,
    /// How long the browser keeps it. It ends earlier with the session that it was given for.
    pub max_age: Duration,
}

impl std::fmt::Debug for SurfaceGrant {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SurfaceGrant").field("max_age", &self.max_age).finish_non_exhaustive()
    }
}

/// A ticket's hash, session, host, hash of the nonce, and when it expires.
type TicketRow = (Vec<u8>, String, String, Vec<u8>, i64);

impl Accounts {
    /// Gives a ticket for `host`, to be exchanged by the browser that holds `nonce`.
    ///
    /// # Errors
    /// [`AccountError::Invalid`] for a nonce that is empty or too long.
    pub async fn issue_ticket(
        &self,
        session: &Session,
        host: &str,
        nonce: &str,
    ) -> Result<String, AccountError> {
        if nonce.is_empty() || nonce.len() > SECRET_MAX {
            return Err(AccountError::Invalid {
                field: "nonce",
                detail: "The nonce is missing or too long.".into(),
            });
        }
        let now = self.sources().now();
        let fresh = secret::draw("", self.sources());
        let mut transaction = self.inner.database.write().await?;
        sqlx::query("DELETE FROM tickets WHERE expires_at <= ?")
            .bind(now.0.cast_signed())
            .execute(&mut *transaction)
            .await?;
        sqlx::query(
            "DELETE FROM tickets WHERE id IN (SELECT id FROM tickets WHERE session = ? \
             ORDER BY expires_at DESC, id LIMIT -1 OFFSET ?)",
        )
        .bind(session.id.as_str())
        .bind(TICKETS_MAX - 1)
        .execute(&mut *transaction)
        .await?;
        let made = sqlx::query(
            "INSERT INTO tickets (id, hash, session, host, nonce_hash, expires_at) \
             SELECT ?, ?, id, ?, ?, ? FROM sessions WHERE id = ?",
        )
        .bind(&fresh.trace.id)
        .bind(fresh.trace.hash.as_slice())
        .bind(host)
        .bind(secret::hash(nonce).as_slice())
        .bind(now.after(TICKET_LIFETIME).0.cast_signed())
        .bind(session.id.as_str())
        .execute(&mut *transaction)
        .await?;
        if made.rows_affected() == 0 {
            // The session ended meanwhile.
            return Err(AccountError::BadCredentials);
        }
        transaction.commit().await?;
        Ok(fresh.text)
    }

    /// Exchanges a ticket. It is spent by this, whatever comes out. `None`: spent before, expired,
    /// made for another host or another browser, or its session has ended.
    ///
    /// # Errors
    /// When the database cannot be written.
    pub async fn redeem(
        &self,
        ticket: &str,
        nonce: &str,
        host: &str,
    ) -> Result<Option<SurfaceGrant>, AccountError> {
        if ticket.is_empty() || ticket.len() > SECRET_MAX || nonce.len() > SECRET_MAX {
            return Ok(None);
        }
        let now = self.sources().now();
        let trace = secret::trace(ticket);
        let mut transaction = self.inner.database.write().await?;
        let row: Option<TicketRow> = sqlx::query_as(
            "DELETE FROM tickets WHERE id = ? RETURNING hash, session, host, nonce_hash, expires_at",
        )
        .bind(&trace.id)
        .fetch_optional(&mut *transaction)
        .await?;
        let Some((hash, session, bound_host, nonce_hash, expires_at)) = row else {
            return Ok(None);
        };
        let fits = secret::matches(&hash, &trace.hash)
            & secret::matches(&nonce_hash, &secret::hash(nonce))
            & (bound_host == host)
            & (Timestamp(expires_at.cast_unsigned()) > now);
        if !fits {
            transaction.commit().await?;
            return Ok(None);
        }
        let fresh = secret::draw("", self.sources());
        sqlx::query(
            "DELETE FROM surface_sessions WHERE id IN (SELECT id FROM surface_sessions \
             WHERE session = ? AND host = ? ORDER BY created_at DESC, id LIMIT -1 OFFSET ?)",
        )
        .bind(&session)
        .bind(host)
        .bind(COOKIES_PER_HOST - 1)
        .execute(&mut *transaction)
        .await?;
        sqlx::query(
            "INSERT INTO surface_sessions (id, hash, session, host, created_at) \
             VALUES (?, ?, ?, ?, ?)",
        )
        .bind(&fresh.trace.id)
        .bind(fresh.trace.hash.as_slice())
        .bind(&session)
        .bind(host)
        .bind(now.0.cast_signed())
        .execute(&mut *transaction)
        .await?;
        transaction.commit().await?;
        Ok(Some(SurfaceGrant { cookie: fresh.text, max_age: sessions::SESSION_LIFETIME }))
    }

    /// The user that a surface host's cookie stands for. A visit there prolongs the session that
    /// the cookie was given for.
    pub(super) async fn user_of_surface_session(
        &self,
        value: &str,
        host: &str,
    ) -> Result<Option<UserName>, AccountError> {
        if value.is_empty() || value.len() > SECRET_MAX {
            return Ok(None);
        }
        let trace = secret::trace(value);
        let row: Option<(Vec<u8>, String, String, i64, i64)> = sqlx::query_as(
            "SELECT surface_sessions.hash, sessions.id, sessions.user, sessions.seen_at, \
             sessions.expires_at FROM surface_sessions \
             JOIN sessions ON sessions.id = surface_sessions.session \
             WHERE surface_sessions.id = ? AND surface_sessions.host = ?",
        )
        .bind(&trace.id)
        .bind(host)
        .fetch_optional(self.inner.database.reader())
        .await?;
        let Some((hash, session, user, seen_at, expires_at)) = row else { return Ok(None) };
        if !secret::matches(&hash, &trace.hash)
            || !self.visit(&SessionId::new(session), seen_at, expires_at).await?
        {
            return Ok(None);
        }
        UserName::new(&user).map(Some).map_err(|error| AccountError::failed(error.to_string()))
    }
}

#[cfg(test)]
mod tests {
    use wakeful_wire::gate::Credential;

    use super::*;
    use crate::accounts::testing::Bench;

    const HOST: &str = "e1-dev.apps.wakeful.localhost";

    struct SignedIn {
        bench: Bench,
        session: Session,
    }

    impl SignedIn {
        async fn new() -> Self {
            let bench = Bench::open().await;
            let user = bench.user("alice").await;
            let cookie = bench.accounts.open_session(&user, "Firefox").await.unwrap();
            let session = bench.accounts.session(&cookie).await.unwrap().unwrap();
            Self { bench, session }
        }

        async fn ticket(&self) -> String {
            self.bench.accounts.issue_ticket(&self.session, HOST, "nonce").await.unwrap()
        }

        async fn redeem(&self, ticket: &str, nonce: &str, host: &str) -> Option<SurfaceGrant> {
            self.bench.accounts.redeem(ticket, nonce, host).await.unwrap()
        }

        async fn admits(&self, value: &str, host: &str) -> bool {
            let credential = Credential::Surface { value: value.into(), host: host.into() };
            self.bench.accounts.authenticate(&credential).await.unwrap().is_some()
        }
    }

    #[tokio::test]
    async fn a_ticket_is_exchanged_once_for_a_cookie_of_its_host() {
        let it = SignedIn::new().await;
        let ticket = it.ticket().await;
        let grant = it.redeem(&ticket, "nonce", HOST).await.unwrap();
        assert!(it.redeem(&ticket, "nonce", HOST).await.is_none(), "single use");
        assert!(it.admits(&grant.cookie, HOST).await);
        assert!(!it.admits(&grant.cookie, "e2-dev.apps.wakeful.localhost").await);
        let session = it.bench.accounts.session(&grant.cookie).await.unwrap();
        assert!(session.is_none(), "a surface's cookie is none of the main host");
    }

    #[tokio::test]
    async fn a_ticket_works_for_its_host_its_browser_and_its_minute_alone() {
        let it = SignedIn::new().await;
        let ticket = it.ticket().await;
        assert!(it.redeem(&ticket, "nonce", "e2.apps.wakeful.localhost").await.is_none());
        assert!(it.redeem(&ticket, "nonce", HOST).await.is_none(), "a failed try spends it");
        let ticket = it.ticket().await;
        assert!(it.redeem(&ticket, "another", HOST).await.is_none());
        let ticket = it.ticket().await;
        it.bench.clock.advance(TICKET_LIFETIME - Duration::from_millis(1));
        assert!(it.redeem(&ticket, "nonce", HOST).await.is_some());
        let ticket = it.ticket().await;
        it.bench.clock.advance(TICKET_LIFETIME);
        assert!(it.redeem(&ticket, "nonce", HOST).await.is_none());
        assert!(it.redeem("", "nonce", HOST).await.is_none());
        assert!(it.bench.accounts.issue_ticket(&it.session, HOST, "").await.is_err());
    }

    #[tokio::test]
    async fn signing_out_ends_tickets_and_cookies_of_surfaces() {
        let it = SignedIn::new().await;
        let spent = it.ticket().await;
        let open = it.ticket().await;
        let grant = it.redeem(&spent, "nonce", HOST).await.unwrap();
        it.bench.accounts.end_session(&it.session.user, it.session.id.as_str()).await.unwrap();
        assert!(!it.admits(&grant.cookie, HOST).await);
        assert!(it.redeem(&open, "nonce", HOST).await.is_none());
        assert!(it.bench.accounts.issue_ticket(&it.session, HOST, "nonce").await.is_err());
    }

    #[tokio::test]
    async fn a_surfaces_cookie_lasts_as_long_as_its_session_and_prolongs_it() {
        let it = SignedIn::new().await;
        let ticket = it.ticket().await;
        let grant = it.redeem(&ticket, "nonce", HOST).await.unwrap();
        it.bench.clock.advance(sessions::SESSION_LIFETIME - Duration::from_secs(1));
        assert!(it.admits(&grant.cookie, HOST).await);
        it.bench.clock.advance(sessions::SESSION_LIFETIME - Duration::from_secs(1));
        assert!(it.admits(&grant.cookie, HOST).await);
        it.bench.clock.advance(sessions::SESSION_LIFETIME);
        assert!(!it.admits(&grant.cookie, HOST).await);
    }

    #[tokio::test]
    async fn two_tabs_that_exchange_at_once_are_both_signed_in() {
        let it = SignedIn::new().await;
        let (first, second) = (it.ticket().await, it.ticket().await);
        let first = it.redeem(&first, "nonce", HOST).await.unwrap();
        let second = it.redeem(&second, "nonce", HOST).await.unwrap();
        assert!(it.admits(&first.cookie, HOST).await && it.admits(&second.cookie, HOST).await);
        for _ in 0..COOKIES_PER_HOST {
            it.bench.clock.advance(Duration::from_secs(1));
            let ticket = it.ticket().await;
            it.redeem(&ticket, "nonce", HOST).await.unwrap();
        }
        assert!(!it.admits(&first.cookie, HOST).await, "old ones do not pile up");
    }
}
