//! Why accounts refuse or fail.

use std::time::Duration;

use wakeful_lifecycle::port::StoreError;
use wakeful_wire::Code;

use super::retry_after_s;

/// Why accounts refuse or fail.
#[derive(Debug, thiserror::Error)]
pub enum AccountError {
    /// The name is taken.
    #[error("the name is taken")]
    Taken,
    /// Name and password or token do not match. It does not say which of them is wrong.
    #[error("wrong user, password or token")]
    BadCredentials,
    /// Too many tries.
    #[error("too many tries")]
    Throttled {
        /// How long to wait.
        retry_after: Duration,
    },
    /// A value that may not stand there.
    #[error("invalid {field}")]
    Invalid {
        /// The field.
        field: &'static str,
        /// What is wrong with it, for the outside.
        detail: String,
    },
    /// Too many passwords are being checked already.
    #[error("too many sign-ins at once")]
    Overloaded,
    /// There is no such token or session of this user.
    #[error("there is no such thing")]
    NotFound,
    /// The database failed.
    #[error("the database failed")]
    Store(#[source] StoreError),
}

impl AccountError {
    pub(super) fn failed(reason: String) -> Self {
        Self::Store(StoreError::Failed(reason))
    }

    /// The stable code.
    #[must_use]
    pub const fn code(&self) -> Code {
        match self {
            Self::Taken => Code::Conflict,
            Self::BadCredentials => Code::BadCredentials,
            Self::Throttled { .. } => Code::TooManyRequests,
            Self::Invalid { .. } => Code::Invalid,
            Self::Overloaded => Code::Overloaded,
            Self::NotFound => Code::NotFound,
            Self::Store(_) => Code::Internal,
        }
    }

    /// A sentence for the outside.
    #[must_use]
    pub fn detail(&self) -> Option<String> {
        match self {
            Self::Taken => Some("That name is taken. Choose another, or sign in.".into()),
            Self::BadCredentials => Some("The user, password or token is wrong.".into()),
            Self::Throttled { retry_after } => Some(format!(
                "Too many tries. Wait {} seconds and try again.",
                retry_after_s(*retry_after)
            )),
            Self::Invalid { detail, .. } => Some(detail.clone()),
            Self::Overloaded => Some("Too many people sign in just now. Try again.".into()),
            Self::NotFound | Self::Store(_) => None,
        }
    }

    /// When to try again.
    #[must_use]
    pub const fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::Throttled { retry_after } => Some(*retry_after),
            Self::Overloaded => Some(Duration::from_secs(1)),
            Self::Taken
            | Self::BadCredentials
            | Self::Invalid { .. }
            | Self::NotFound
            | Self::Store(_) => None,
        }
    }
}

impl From<sqlx::Error> for AccountError {
    fn from(error: sqlx::Error) -> Self {
        Self::failed(error.to_string())
    }
}

impl From<StoreError> for AccountError {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}
