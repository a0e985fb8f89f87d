//! Passwords: what may be one, and its hash.
//!
//! Hashing takes memory and time on purpose, so it runs on the blocking pool, few at once, and a
//! crowd of sign-ins is refused rather than queued without end.

use std::sync::Arc;

use argon2::{
    Argon2, Params,
    password_hash::{PasswordHasher as _, PasswordVerifier as _, phc::PasswordHash},
};
use tokio::sync::Semaphore;

use super::{AccountError, Sources};

/// The least characters of a password.
pub const PASSWORD_MIN: usize = 8;
/// The most bytes of a password.
pub const PASSWORD_MAX: usize = 1_024;

/// How many passwords are hashed at once.
const AT_ONCE: usize = 2;
/// How many wait for that, including those that are hashed.
const WAITING: usize = 64;

/// What hashing costs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HashCost {
    /// Memory in KiB. At least 8.
    pub memory_kib: u32,
    /// Passes over it. At least one.
    pub passes: u32,
}

impl Default for HashCost {
    fn default() -> Self {
        Self { memory_kib: Params::DEFAULT_M_COST, passes: Params::DEFAULT_T_COST }
    }
}

/// Checks what somebody wants as a password.
///
/// # Errors
/// [`AccountError::Invalid`] with what is wrong, for people.
pub(super) fn check(password: &str) -> Result<(), AccountError> {
    if password.chars().count() < PASSWORD_MIN {
        return Err(AccountError::Invalid {
            field: "password",
            detail: format!("A password needs at least {PASSWORD_MIN} characters."),
        });
    }
    if password.len() > PASSWORD_MAX {
        return Err(AccountError::Invalid {
            field: "password",
            detail: format!("A password has at most {PASSWORD_MAX} bytes."),
        });
    }
    Ok(())
}

/// Hashes and verifies passwords.
#[derive(Debug)]
pub(super) struct Passwords {
    cost: HashCost,
    sources: Sources,
    at_once: Arc<Semaphore>,
    waiting: Arc<Semaphore>,
    /// What the password of a user who has none is compared with, so that an answer takes as long
    /// as for one who has.
    nobody: tokio::sync::OnceCell<String>,
}

impl Passwords {
    pub(super) fn new(cost: HashCost, sources: Sources) -> Self {
        Self {
            cost,
            sources,
            at_once: Arc::new(Semaphore::new(AT_ONCE)),
            waiting: Arc::new(Semaphore::new(WAITING)),
            nobody: tokio::sync::OnceCell::new(),
        }
    }

    fn argon(&self) -> Result<Argon2<'static>, AccountError> {
        let params = Params::new(self.cost.memory_kib, self.cost.passes, 1, None)
            .map_err(|error| AccountError::failed(error.to_string()))?;
        Ok(Argon2::new(argon2::Algorithm::Argon2id, argon2::Version::V0x13, params))
    }

    async fn run<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, AccountError> {
        let waiting = Arc::clone(&self.waiting).try_acquire_owned();
        let waiting = waiting.map_err(|_| AccountError::Overloaded)?;
        let turn = Arc::clone(&self.at_once).acquire_owned().await;
        let turn = turn.map_err(|error| AccountError::failed(error.to_string()))?;
        let done = tokio::task::spawn_blocking(move || {
            // Held by the work itself: a client that leaves does not make room for another.
            let _held = (waiting, turn);
            work()
        });
        done.await.map_err(|error| AccountError::failed(error.to_string()))
    }

    /// The PHC string of a password.
    pub(super) async fn hash(&self, password: &str) -> Result<String, AccountError> {
        let argon = self.argon()?;
        let mut salt = [0; 16];
        self.sources.fill(&mut salt);
        let password = password.to_owned();
        let hash: Result<PasswordHash, _> =
            self.run(move || argon.hash_password_with_salt(password.as_bytes(), &salt)).await?;
        hash.map(|hash| hash.to_string()).map_err(|error| AccountError::failed(error.to_string()))
    }

    /// Whether a password fits a PHC string. `None` takes as long and fits nothing.
    pub(super) async fn verify(
        &self,
        password: &str,
        stored: Option<String>,
    ) -> Result<bool, AccountError> {
        if password.len() > PASSWORD_MAX {
            return Ok(false);
        }
        let (stored, real) = match stored {
            Some(stored) => (stored, true),
            None => (self.nobody.get_or_try_init(|| self.hash("nobody")).await?.clone(), false),
        };
        let argon = self.argon()?;
        let password = password.to_owned();
        self.run(move || {
            let fits = PasswordHash::new(&stored)
                .is_ok_and(|hash| argon.verify_password(password.as_bytes(), &hash).is_ok());
            fits && real
        })
        .await
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::accounts::testing::{CHEAP, counting_sources};

    #[tokio::test]
    async fn a_password_fits_its_own_hash_and_no_other() {
        let passwords = Passwords::new(CHEAP, counting_sources());
        let first = passwords.hash("correct horse").await.unwrap();
        let second = passwords.hash("correct horse").await.unwrap();
        assert_ne!(first, second, "each has its own salt");
        assert!(first.starts_with("$argon2id$"));
        assert!(passwords.verify("correct horse", Some(first.clone())).await.unwrap());
        assert!(!passwords.verify("correct horsf", Some(first)).await.unwrap());
        assert!(!passwords.verify("nobody", None).await.unwrap());
        assert!(!passwords.verify("x", Some("not a hash".into())).await.unwrap());
    }

    #[tokio::test]
    async fn beyond_the_bound_a_crowd_is_refused() {
        let passwords = Passwords::new(CHEAP, counting_sources());
        let held = passwords.waiting.acquire_many(64).await.unwrap();
        let refused = passwords.hash("correct horse").await;
        assert!(matches!(refused, Err(AccountError::Overloaded)));
        drop(held);
        assert!(passwords.hash("correct horse").await.is_ok());
    }

    #[test]
    fn what_may_be_a_password() {
        assert!(check("12345678").is_ok());
        assert!(check("ééééééééé").is_ok());
        assert!(check("1234567").is_err());
        assert!(check(&"x".repeat(1_025)).is_err());
    }
}
