//! Signing up, signing in, and changing a password.

use std::net::IpAddr;

use wakeful_wire::{Timestamp, UserName};

use super::{AccountError, Accounts, Peer, SessionId, password};

/// By what somebody shows who they are, when signing in.
#[derive(Clone, Copy)]
pub enum Proof<'a> {
    /// A password.
    Password(&'a str),
    /// A bearer token.
    Token(&'a str),
}

impl std::fmt::Debug for Proof<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Password(_) => "Password(…)",
            Self::Token(_) => "Token(…)",
        })
    }
}

/// What a user's own page says of the account.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Account {
    /// The name.
    pub user: UserName,
    /// Since when.
    pub created_at: Timestamp,
    /// Whether there is a password; else only tokens sign in.
    pub has_password: bool,
}

impl Accounts {
    /// Takes a name. Without a password only tokens sign in.
    ///
    /// # Errors
    /// [`AccountError::Taken`]; [`AccountError::Throttled`] when too many came from that address;
    /// [`AccountError::Invalid`] for a password that cannot be one.
    pub async fn sign_up(
        &self,
        user: &UserName,
        password: Option<&str>,
        from: Option<IpAddr>,
    ) -> Result<(), AccountError> {
        if let Some(password) = password {
            password::check(password)?;
        }
        if self.account(user).await?.is_some() {
            return Err(AccountError::Taken);
        }
        let now = self.sources().now();
        let peer = from.map(Peer::of);
        self.inner
            .limits
            .lock()
            .sign_up(peer, now)
            .map_err(|retry_after| AccountError::Throttled { retry_after })?;
        let hash = match password {
            Some(password) => Some(self.inner.passwords.hash(password).await?),
            None => None,
        };
        let made = sqlx::query(
            "INSERT INTO users (name, password_hash, created_at) VALUES (?, ?, ?) \
             ON CONFLICT (name) DO NOTHING",
        )
        .bind(user.as_str())
        .bind(hash)
        .bind(now.0.cast_signed())
        .execute(self.inner.database.writer())
        .await?;
        if made.rows_affected() == 0 {
            return Err(AccountError::Taken);
        }
        self.inner.limits.lock().succeeded(user, peer, now);
        Ok(())
    }

    /// Gives a name back whose sign-up could not be completed.
    ///
    /// # Errors
    /// When the database cannot be written.
    pub async fn undo_sign_up(&self, user: &UserName) -> Result<(), AccountError> {
        sqlx::query("DELETE FROM users WHERE name = ?")
            .bind(user.as_str())
            .execute(self.inner.database.writer())
            .await?;
        self.tell_signed_out(user);
        Ok(())
    }

    /// Checks that somebody is who they say.
    ///
    /// # Errors
    /// [`AccountError::BadCredentials`], the same for an unknown user;
    /// [`AccountError::Throttled`] after too many wrong passwords. A wrong token is not counted:
    /// nobody guesses 256 bits, but a forgotten program may present an old one for days.
    pub async fn sign_in(
        &self,
        user: &UserName,
        proof: Proof<'_>,
        from: Option<IpAddr>,
    ) -> Result<(), AccountError> {
        let peer = from.map(Peer::of);
        match proof {
            Proof::Token(token) => {
                let owner = self.user_of_token(token).await?;
                if owner.as_ref() != Some(user) {
                    return Err(AccountError::BadCredentials);
                }
            }
            Proof::Password(password) => self.try_password(user, password, peer).await?,
        }
        let now = self.sources().now();
        self.inner.limits.lock().succeeded(user, peer, now);
        Ok(())
    }

    async fn try_password(
        &self,
        user: &UserName,
        password: &str,
        peer: Option<Peer>,
    ) -> Result<(), AccountError> {
        let throttled = |retry_after| AccountError::Throttled { retry_after };
        let now = self.sources().now();
        self.inner.limits.lock().may_try(user, peer, now).map_err(throttled)?;
        let stored = self.password_hash(user).await?;
        // An unknown user takes as long as a known one.
        if self.inner.passwords.verify(password, stored.flatten()).await? {
            return Ok(());
        }
        let now = self.sources().now();
        self.inner.limits.lock().failed(user, peer, now);
        Err(AccountError::BadCredentials)
    }

    async fn password_hash(&self, user: &UserName) -> Result<Option<Option<String>>, AccountError> {
        let row: Option<(Option<String>,)> =
            sqlx::query_as("SELECT password_hash FROM users WHERE name = ?")
                .bind(user.as_str())
                .fetch_optional(self.inner.database.reader())
                .await?;
        Ok(row.map(|(hash,)| hash))
    }

    /// What a user's own page says of the account; `None` for an unknown user.
    ///
    /// # Errors
    /// When the database cannot be asked.
    pub async fn account(&self, user: &UserName) -> Result<Option<Account>, AccountError> {
        let row: Option<(i64, bool)> = sqlx::query_as(
            "SELECT created_at, password_hash IS NOT NULL FROM users WHERE name = ?",
        )
        .bind(user.as_str())
        .fetch_optional(self.inner.database.reader())
        .await?;
        Ok(row.map(|(created_at, has_password)| Account {
            user: user.clone(),
            created_at: Timestamp(created_at.cast_unsigned()),
            has_password,
        }))
    }

    /// Sets a new password and ends every session but `keep`. `current` is asked for if there is
    /// one already.
    ///
    /// # Errors
    /// As [`Self::sign_in`] for `current`; [`AccountError::Invalid`] for the new one.
    pub async fn change_password(
        &self,
        user: &UserName,
        current: Option<&str>,
        new: &str,
        keep: Option<&SessionId>,
        from: Option<IpAddr>,
    ) -> Result<(), AccountError> {
        password::check(new)?;
        if self.password_hash(user).await?.flatten().is_some() {
            let peer = from.map(Peer::of);
            self.try_password(user, current.unwrap_or_default(), peer).await?;
        }
        let hash = self.inner.passwords.hash(new).await?;
        let mut transaction = self.inner.database.write().await?;
        let changed = sqlx::query("UPDATE users SET password_hash = ? WHERE name = ?")
            .bind(hash)
            .bind(user.as_str())
            .execute(&mut *transaction)
            .await?;
        if changed.rows_affected() == 0 {
            return Err(AccountError::NotFound);
        }
        sqlx::query("DELETE FROM sessions WHERE user = ? AND id IS NOT ?")
            .bind(user.as_str())
            .bind(keep.map(SessionId::as_str))
            .execute(&mut *transaction)
            .await?;
        transaction.commit().await?;
        self.tell_signed_out(user);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::accounts::testing::Bench;

    fn from(address: &str) -> Option<IpAddr> {
        Some(address.parse().unwrap())
    }

    #[tokio::test]
    async fn a_name_is_taken_once() {
        let bench = Bench::open().await;
        let user = bench.user("alice").await;
        let again = bench.accounts.sign_up(&user, Some("another password"), None).await;
        assert!(matches!(again, Err(AccountError::Taken)));
        let bob = UserName::new("bob").unwrap();
        let (first, second) = tokio::join!(
            bench.accounts.sign_up(&bob, None, None),
            bench.accounts.sign_up(&bob, None, None),
        );
        assert!(first.is_ok() != second.is_ok(), "exactly one gets it");
    }

    #[tokio::test]
    async fn wrong_passwords_are_slowed_and_the_right_one_is_slowed_with_them() {
        let bench = Bench::open().await;
        let user = bench.user("alice").await;
        let guesser = from("192.0.2.66");
        for _ in 0..8 {
            let wrong = bench.accounts.sign_in(&user, Proof::Password("guess"), guesser).await;
            assert!(matches!(wrong, Err(AccountError::BadCredentials)));
        }
        let right = Proof::Password("correct horse");
        let slowed = bench.accounts.sign_in(&user, right, guesser).await;
        let Err(AccountError::Throttled { retry_after }) = slowed else { panic!("{slowed:?}") };
        bench.clock.advance(retry_after);
        bench.accounts.sign_in(&user, right, guesser).await.unwrap();
    }

    #[tokio::test]
    async fn wrong_tokens_are_not_counted_as_guesses() {
        let bench = Bench::open().await;
        let user = bench.user("alice").await;
        for _ in 0..100 {
            let old = bench.accounts.sign_in(&user, Proof::Token("wk_old"), None).await;
            assert!(matches!(old, Err(AccountError::BadCredentials)));
        }
        bench.accounts.sign_in(&user, Proof::Password("correct horse"), None).await.unwrap();
    }

    #[tokio::test]
    async fn an_unknown_user_and_one_without_a_password_look_alike() {
        let bench = Bench::open().await;
        let tokens_only = UserName::new("robot").unwrap();
        bench.accounts.sign_up(&tokens_only, None, None).await.unwrap();
        for name in ["robot", "nobody"] {
            let user = UserName::new(name).unwrap();
            let answer = bench.accounts.sign_in(&user, Proof::Password("whatever"), None).await;
            assert!(matches!(answer, Err(AccountError::BadCredentials)), "{name}");
        }
    }

    #[tokio::test]
    async fn a_new_password_ends_the_other_sessions_and_keeps_this_one() {
        let bench = Bench::open().await;
        let user = bench.user("alice").await;
        let here = bench.accounts.open_session(&user, "here").await.unwrap();
        let there = bench.accounts.open_session(&user, "there").await.unwrap();
        let session = bench.accounts.session(&here).await.unwrap().unwrap();
        let mut signed_out = bench.accounts.signed_out();
        let change = |current, new| {
            bench.accounts.change_password(&user, current, new, Some(&session.id), None)
        };
        assert!(matches!(
            change(Some("wrong"), "battery staple").await,
            Err(AccountError::BadCredentials)
        ));
        assert!(matches!(
            change(Some("correct horse"), "short").await,
            Err(AccountError::Invalid { .. })
        ));
        change(Some("correct horse"), "battery staple").await.unwrap();
        assert!(bench.accounts.session(&here).await.unwrap().is_some());
        assert!(bench.accounts.session(&there).await.unwrap().is_none());
        assert_eq!(signed_out.recv().await.unwrap(), user);
        bench.clock.advance(Duration::from_secs(60));
        bench.accounts.sign_in(&user, Proof::Password("battery staple"), None).await.unwrap();
    }
}
