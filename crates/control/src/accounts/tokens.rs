//! Bearer tokens, by which programs show who they are.

use std::time::Duration;

use wakeful_wire::{Timestamp, UserName};

use super::{AccountError, Accounts, SECRET_MAX, secret};

/// Every token begins with this, so that an app's own bearer tokens are told from the platform's.
pub const TOKEN_PREFIX: &str = "wk_";
/// The most tokens of one user.
const TOKENS_MAX: i64 = 100;
/// The most characters of a token's name.
const LABEL_MAX: usize = 80;
/// "Last used" is kept no finer than this, so that a busy program does not write at every call.
const USED_STEP: Duration = Duration::from_secs(60);

/// A token just made. Its text is not kept and never shown again.
#[derive(Clone)]
pub struct NewToken {
    /// The token itself.
    pub text: String,
    /// What is kept of it.
    pub view: TokenView,
}

impl std::fmt::Debug for NewToken {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("NewToken").field("view", &self.view).finish_non_exhaustive()
    }
}

/// What is known of a token.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TokenView {
    /// Names it, and gives nothing of it away.
    pub id: String,
    /// What its owner called it.
    pub name: String,
    /// When it was made.
    pub created_at: Timestamp,
    /// When it was last used, to the minute.
    pub used_at: Option<Timestamp>,
}

impl Accounts {
    /// Makes a token.
    ///
    /// # Errors
    /// [`AccountError::Invalid`] for a name that is empty or too long, or for a token too many.
    pub async fn create_token(
        &self,
        user: &UserName,
        name: &str,
    ) -> Result<NewToken, AccountError> {
        let name = name.trim();
        let length = name.chars().count();
        if length == 0 || length > LABEL_MAX || name.chars().any(char::is_control) {
            return Err(AccountError::Invalid {
                field: "name",
                detail: format!("A token needs a name of at most {LABEL_MAX} characters."),
            });
        }
        let now = self.sources().now();
        let fresh = secret::draw(TOKEN_PREFIX, self.sources());
        let mut transaction = self.inner.database.write().await?;
        let count: i64 = sqlx::query_scalar("SELECT count(*) FROM tokens WHERE user = ?")
            .bind(user.as_str())
            .fetch_one(&mut *transaction)
            .await?;
        if count >= TOKENS_MAX {
            return Err(AccountError::Invalid {
                field: "name",
                detail: format!("There are {TOKENS_MAX} tokens already. Revoke one first."),
            });
        }
        sqlx::query(
            "INSERT INTO tokens (id, hash, user, label, created_at) VALUES (?, ?, ?, ?, ?)",
        )
        .bind(&fresh.trace.id)
        .bind(fresh.trace.hash.as_slice())
        .bind(user.as_str())
        .bind(name)
        .bind(now.0.cast_signed())
        .execute(&mut *transaction)
        .await?;
        transaction.commit().await?;
        let view =
            TokenView { id: fresh.trace.id, name: name.to_owned(), created_at: now, used_at: None };
        Ok(NewToken { text: fresh.text, view })
    }

    /// A user's tokens, newest first.
    ///
    /// # Errors
    /// When the database cannot be asked.
    pub async fn tokens(&self, user: &UserName) -> Result<Vec<TokenView>, AccountError> {
        let rows: Vec<(String, String, i64, Option<i64>)> = sqlx::query_as(
            "SELECT id, label, created_at, used_at FROM tokens WHERE user = ? \
             ORDER BY created_at DESC, id",
        )
        .bind(user.as_str())
        .fetch_all(self.inner.database.reader())
        .await?;
        let view =
            |(id, name, created_at, used_at): (String, String, i64, Option<i64>)| TokenView {
                id,
                name,
                created_at: Timestamp(created_at.cast_unsigned()),
                used_at: used_at.map(|at| Timestamp(at.cast_unsigned())),
            };
        Ok(rows.into_iter().map(view).collect())
    }

    /// Ends a token.
    ///
    /// # Errors
    /// [`AccountError::NotFound`] when this user has none of that id.
    pub async fn revoke_token(&self, user: &UserName, id: &str) -> Result<(), AccountError> {
        let ended = sqlx::query("DELETE FROM tokens WHERE id = ? AND user = ?")
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

    /// Ends the token that somebody shows, at their own wish.
    ///
    /// # Errors
    /// [`AccountError::NotFound`] when it is none of this user's (any more).
    pub async fn give_back_token(&self, user: &UserName, text: &str) -> Result<(), AccountError> {
        self.revoke_token(user, &secret::trace(text).id).await
    }

    pub(super) async fn user_of_token(&self, text: &str) -> Result<Option<UserName>, AccountError> {
        if !text.starts_with(TOKEN_PREFIX) || text.len() > SECRET_MAX {
            return Ok(None);
        }
        let trace = secret::trace(text);
        let row: Option<(Vec<u8>, String, Option<i64>)> =
            sqlx::query_as("SELECT hash, user, used_at FROM tokens WHERE id = ?")
                .bind(&trace.id)
                .fetch_optional(self.inner.database.reader())
                .await?;
        let Some((hash, user, used_at)) = row else { return Ok(None) };
        if !secret::matches(&hash, &trace.hash) {
            return Ok(None);
        }
        let now = self.sources().now();
        let used = used_at.map(|at| Timestamp(at.cast_unsigned()));
        let sighting = self.inner.sightings.lock().take(&trace.id, used, now, USED_STEP);
        if sighting {
            sqlx::query("UPDATE tokens SET used_at = ? WHERE id = ?")
                .bind(now.0.cast_signed())
                .bind(&trace.id)
                .execute(self.inner.database.writer())
                .await?;
        }
        UserName::new(&user).map(Some).map_err(|error| AccountError::failed(error.to_string()))
    }
}

#[cfg(test)]
mod tests {
    use wakeful_wire::gate::{Credential, SignedInBy};

    use super::*;
    use crate::accounts::testing::Bench;

    #[tokio::test]
    async fn a_token_that_is_given_back_stands_for_nobody() {
        let bench = Bench::open().await;
        let (user, other) = (bench.user("alice").await, bench.user("bob").await);
        let token = bench.accounts.create_token(&user, "laptop").await.unwrap();
        let refused = bench.accounts.give_back_token(&other, &token.text).await;
        assert!(matches!(refused, Err(AccountError::NotFound)));
        bench.accounts.give_back_token(&user, &token.text).await.unwrap();
        let credential = Credential::Token(token.text);
        assert_eq!(bench.accounts.authenticate(&credential).await.unwrap(), None);
    }

    #[tokio::test]
    async fn a_token_stands_for_its_user_until_it_is_revoked() {
        let bench = Bench::open().await;
        let user = bench.user("alice").await;
        let other = bench.user("bob").await;
        let token = bench.accounts.create_token(&user, " laptop ").await.unwrap();
        assert!(token.text.starts_with("wk_"));
        assert_eq!(token.view.name, "laptop");
        assert!(!format!("{token:?}").contains(&token.text));
        let credential = Credential::Token(token.text.clone());
        let principal = bench.accounts.authenticate(&credential).await.unwrap().unwrap();
        assert_eq!((principal.user, principal.by), (user.clone(), SignedInBy::Token));
        assert!(bench.accounts.tokens(&user).await.unwrap()[0].used_at.is_some());

        let foreign = bench.accounts.revoke_token(&other, &token.view.id).await;
        assert!(matches!(foreign, Err(AccountError::NotFound)));
        bench.accounts.revoke_token(&user, &token.view.id).await.unwrap();
        assert!(bench.accounts.authenticate(&credential).await.unwrap().is_none());
    }

    #[tokio::test]
    async fn a_token_that_only_shares_its_id_is_nobodys() {
        let bench = Bench::open().await;
        let user = bench.user("alice").await;
        let token = bench.accounts.create_token(&user, "laptop").await.unwrap();
        sqlx::query("UPDATE tokens SET hash = zeroblob(32)")
            .execute(bench.database.writer())
            .await
            .unwrap();
        let credential = Credential::Token(token.text);
        assert!(bench.accounts.authenticate(&credential).await.unwrap().is_none());
    }

    #[tokio::test]
    async fn no_token_is_kept_in_the_database() {
        let bench = Bench::open().await;
        let user = bench.user("alice").await;
        let token = bench.accounts.create_token(&user, "laptop").await.unwrap();
        let bare = &token.text[TOKEN_PREFIX.len()..];
        let found: i64 = sqlx::query_scalar(
            "SELECT count(*) FROM tokens WHERE instr(id, ?1) OR instr(hash, CAST(?1 AS BLOB))",
        )
        .bind(bare)
        .fetch_one(bench.database.reader())
        .await
        .unwrap();
        assert_eq!(found, 0);
    }

    #[tokio::test]
    async fn names_and_numbers_of_tokens_are_bounded() {
        let bench = Bench::open().await;
        let user = bench.user("alice").await;
        for bad in ["", "  ", "a\nb", &"x".repeat(81)] {
            assert!(bench.accounts.create_token(&user, bad).await.is_err(), "{bad:?}");
        }
        for n in 0..TOKENS_MAX {
            bench.accounts.create_token(&user, &n.to_string()).await.unwrap();
        }
        assert!(bench.accounts.create_token(&user, "one more").await.is_err());
    }
}
