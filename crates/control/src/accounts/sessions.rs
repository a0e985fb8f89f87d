//! Sessions: one per browser that signed in, by the main host's cookie.

use std::time::Duration;

use wakeful_wire::{Timestamp, UserName};

use super::{AccountError, Accounts, SECRET_MAX, secret};

/// A session ends after so long without a visit.
pub const SESSION_LIFETIME: Duration = Duration::from_secs(30 * 24 * 3_600);
/// A visit prolongs its session no more often than this.
const SLIDE_STEP: Duration = Duration::from_secs(3_600);
/// The most sessions of one user; a further one ends the oldest.
const SESSIONS_MAX: i64 = 100;
/// The most characters that are kept of what a browser calls itself.
const BROWSER_MAX: usize = 200;

/// Names a session, and gives nothing of its cookie away.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct SessionId(String);

impl SessionId {
    pub(super) const fn new(id: String) -> Self {
        Self(id)
    }

    /// The id as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// A session that holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Session {
    /// Its id.
    pub id: SessionId,
    /// Whose it is.
    pub user: UserName,
}

/// What a user's own page says of a session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionView {
    /// Its id.
    pub id: SessionId,
    /// What the browser called itself.
    pub browser: String,
    /// When it began.
    pub created_at: Timestamp,
    /// The last visit, to the hour.
    pub seen_at: Timestamp,
    /// When it ends if nobody visits.
    pub expires_at: Timestamp,
}

impl Accounts {
    /// Begins a session and returns the cookie's value. `browser` is what the browser calls itself.
    ///
    /// # Errors
    /// When the database cannot be written.
    pub async fn open_session(
        &self,
        user: &UserName,
        browser: &str,
    ) -> Result<String, AccountError> {
        let now = self.sources().now();
        let fresh = secret::draw("", self.sources());
        let browser: String =
            browser.chars().filter(|c| !c.is_control()).take(BROWSER_MAX).collect();
        let mut transaction = self.inner.database.write().await?;
        sqlx::query("DELETE FROM sessions WHERE expires_at <= ?")
            .bind(now.0.cast_signed())
            .execute(&mut *transaction)
            .await?;
        sqlx::query(
            "DELETE FROM sessions WHERE id IN (SELECT id FROM sessions WHERE user = ? \
             ORDER BY created_at DESC, id LIMIT -1 OFFSET ?)",
        )
        .bind(user.as_str())
        .bind(SESSIONS_MAX - 1)
        .execute(&mut *transaction)
        .await?;
        sqlx::query(
            "INSERT INTO sessions (id, hash, user, browser, created_at, seen_at, expires_at) \
             VALUES (?, ?, ?, ?, ?, ?, ?)",
        )
        .bind(&fresh.trace.id)
        .bind(fresh.trace.hash.as_slice())
        .bind(user.as_str())
        .bind(browser)
        .bind(now.0.cast_signed())
        .bind(now.0.cast_signed())
        .bind(now.after(SESSION_LIFETIME).0.cast_signed())
        .execute(&mut *transaction)
        .await?;
        transaction.commit().await?;
        Ok(fresh.text)
    }

    /// The session that a cookie's value stands for; `None` if it has ended or never was.
    ///
    /// # Errors
    /// When the database cannot be asked.
    pub async fn session(&self, value: &str) -> Result<Option<Session>, AccountError> {
        if value.is_empty() || value.len() > SECRET_MAX {
            return Ok(None);
        }
        let trace = secret::trace(value);
        let row: Option<(Vec<u8>, String, i64, i64)> =
            sqlx::query_as("SELECT hash, user, seen_at, expires_at FROM sessions WHERE id = ?")
                .bind(&trace.id)
                .fetch_optional(self.inner.database.reader())
                .await?;
        let Some((hash, user, seen_at, expires_at)) = row else { return Ok(None) };
        if !secret::matches(&hash, &trace.hash) {
            return Ok(None);
        }
        let id = SessionId(trace.id);
        if !self.visit(&id, seen_at, expires_at).await? {
            return Ok(None);
        }
        let user = UserName::new(&user).map_err(|error| AccountError::failed(error.to_string()))?;
        Ok(Some(Session { id, user }))
    }

    /// Whether a session holds still; prolongs it now and then.
    pub(super) async fn visit(
        &self,
        id: &SessionId,
        seen_at: i64,
        expires_at: i64,
    ) -> Result<bool, AccountError> {
        let now = self.sources().now();
        if Timestamp(expires_at.cast_unsigned()) <= now {
            return Ok(false);
        }
        let seen = Some(Timestamp(seen_at.cast_unsigned()));
        let sighting = self.inner.sightings.lock().take(id.as_str(), seen, now, SLIDE_STEP);
        if sighting {
            sqlx::query("UPDATE sessions SET seen_at = ?, expires_at = ? WHERE id = ?")
                .bind(now.0.cast_signed())
                .bind(now.after(SESSION_LIFETIME).0.cast_signed())
                .bind(id.as_str())
                .execute(self.inner.database.writer())
                .await?;
        }
        Ok(true)
    }

    /// A user's sessions, the last visited first.
    ///
    /// # Errors
    /// When the database cannot be asked.
    pub async fn sessions(&self, user: &UserName) -> Result<Vec<SessionView>, AccountError> {
        let rows: Vec<(String, String, i64, i64, i64)> = sqlx::query_as(
            "SELECT id, browser, created_at, seen_at, expires_at FROM sessions \
             WHERE user = ? AND expires_at > ? ORDER BY seen_at DESC, created_at DESC, id",
        )
        .bind(user.as_str())
        .bind(self.sources().now().0.cast_signed())
        .fetch_all(self.inner.database.reader())
        .await?;
        let time = |at: i64| Timestamp(at.cast_unsigned());
        Ok(rows
            .into_iter()
            .map(|(id, browser, created_at, seen_at, expires_at)| SessionView {
                id: SessionId(id),
                browser,
                created_at: time(created_at),
                seen_at: time(seen_at),
                expires_at: time(expires_at),
            })
            .collect())
    }

    /// Ends one session of a user, with every cookie of a surface's host that was given for it.
    ///
    /// # Errors
    /// [`AccountError::NotFound`] when this user has none of that id.
    pub async fn end_session(&self, user: &UserName, id: &str) -> Result<(), AccountError> {
        let ended = sqlx::query("DELETE FROM sessions WHERE id = ? AND user = ?")
            .bind(id)
            .bind(user.as_str())
            .execute(self.inner.database.writer())
            .await?;
        if ended.rows_affected() == 0 {
            return Err(AccountError::NotFound);
        }
        self.tell_signed_out(user);
        Ok(())
    }

    /// Ends every session of a user.
    ///
    /// # Errors
    /// When the database cannot be written.
    pub async fn end_all_sessions(&self, user: &UserName) -> Result<(), AccountError> {
        sqlx::query("DELETE FROM sessions WHERE user = ?")
            .bind(user.as_str())
            .execute(self.inner.database.writer())
            .await?;
        self.tell_signed_out(user);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::accounts::testing::Bench;

    #[tokio::test]
    async fn a_session_slides_with_visits_and_ends_without() {
        let bench = Bench::open().await;
        let user = bench.user("alice").await;
        let cookie = bench.accounts.open_session(&user, "Firefox").await.unwrap();
        bench.clock.advance(SESSION_LIFETIME - Duration::from_secs(1));
        assert!(bench.accounts.session(&cookie).await.unwrap().is_some());
        bench.clock.advance(SESSION_LIFETIME - Duration::from_secs(1));
        assert!(bench.accounts.session(&cookie).await.unwrap().is_some());
        bench.clock.advance(SESSION_LIFETIME);
        assert!(bench.accounts.session(&cookie).await.unwrap().is_none());
        assert!(bench.accounts.sessions(&user).await.unwrap().is_empty());
    }

    #[tokio::test]
    async fn values_that_are_no_cookie_are_nobodys() {
        let bench = Bench::open().await;
        for value in ["", "x", &"x".repeat(1_000), "\u{0}", "é"] {
            assert!(bench.accounts.session(value).await.unwrap().is_none(), "{value:?}");
        }
    }

    #[tokio::test]
    async fn signing_out_ends_one_and_signing_out_everywhere_ends_all() {
        let bench = Bench::open().await;
        let alice = bench.user("alice").await;
        let bob = bench.user("bob").await;
        let mut cookies = Vec::new();
        for browser in ["a", "b", "c"] {
            cookies.push(bench.accounts.open_session(&alice, browser).await.unwrap());
        }
        let bobs = bench.accounts.open_session(&bob, "d").await.unwrap();
        let first = bench.accounts.session(&cookies[0]).await.unwrap().unwrap();
        let foreign = bench.accounts.end_session(&bob, first.id.as_str()).await;
        assert!(matches!(foreign, Err(AccountError::NotFound)));
        bench.accounts.end_session(&alice, first.id.as_str()).await.unwrap();
        assert!(bench.accounts.session(&cookies[0]).await.unwrap().is_none());
        assert!(bench.accounts.session(&cookies[1]).await.unwrap().is_some());
        bench.accounts.end_all_sessions(&alice).await.unwrap();
        for cookie in &cookies {
            assert!(bench.accounts.session(cookie).await.unwrap().is_none());
        }
        assert!(bench.accounts.session(&bobs).await.unwrap().is_some());
    }

    #[tokio::test]
    async fn a_session_too_many_ends_the_oldest() {
        let bench = Bench::open().await;
        let user = bench.user("alice").await;
        let first = bench.accounts.open_session(&user, "first").await.unwrap();
        for _ in 0..SESSIONS_MAX {
            bench.clock.advance(Duration::from_secs(1));
            bench.accounts.open_session(&user, "more").await.unwrap();
        }
        assert!(bench.accounts.session(&first).await.unwrap().is_none());
        assert_eq!(bench.accounts.sessions(&user).await.unwrap().len(), 100);
    }
}
