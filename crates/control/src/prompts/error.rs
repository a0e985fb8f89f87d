//! Why a prompt is not kept, or not given back.

use wakeful_lifecycle::port::StoreError;
use wakeful_wire::Code;

use super::store::WAITING_MAX;
use crate::engine::EngineError;

/// Why a prompt was not kept, found or withdrawn.
#[derive(Debug, thiserror::Error)]
pub enum PromptError {
    /// A field holds what it may not hold.
    #[error("invalid {field}")]
    Invalid {
        /// The field.
        field: &'static str,
        /// What is wrong, for the outside.
        detail: &'static str,
    },
    /// It is over this many bytes.
    #[error("over {0} bytes")]
    TooLarge(usize),
    /// Too many wait for this environment already.
    #[error("too many prompts wait")]
    TooMany,
    /// There is another prompt with this client id.
    #[error("another prompt has this id")]
    Another,
    /// There is none with this client id.
    #[error("there is no such prompt")]
    NotFound,
    /// The host has taken or refused it, or is being asked just now.
    #[error("it does not wait any more")]
    Settled,
    /// The environment refuses it, or cannot be asked.
    #[error(transparent)]
    Engine(#[from] EngineError),
    /// The database failed.
    #[error("the database failed")]
    Store(#[from] StoreError),
}

impl PromptError {
    pub(super) fn broken(error: serde_json::Error) -> Self {
        Self::Store(StoreError::Failed(error.to_string()))
    }

    /// The stable code.
    #[must_use]
    pub const fn code(&self) -> Code {
        match self {
            Self::Invalid { .. } => Code::Invalid,
            Self::TooLarge(_) => Code::TooLarge,
            Self::TooMany => Code::TooManyRequests,
            Self::Another => Code::Conflict,
            Self::NotFound => Code::NotFound,
            Self::Settled => Code::WrongPhase,
            Self::Engine(error) => error.code(),
            Self::Store(_) => Code::Internal,
        }
    }

    /// A sentence for the outside, where there is more to say than the code says.
    #[must_use]
    pub fn detail(&self) -> Option<String> {
        match self {
            Self::Invalid { detail, .. } => Some((*detail).to_owned()),
            Self::TooLarge(max) => Some(format!(
                "A prompt may have at most {max} bytes. Put what is longer into a file."
            )),
            Self::TooMany => Some(format!(
                "{WAITING_MAX} prompts wait for this environment already. Try again later."
            )),
            Self::Another => Some("Another prompt was sent with this id. Draw a new one.".into()),
            Self::NotFound => Some("There is no prompt of that id, or not any more.".into()),
            Self::Settled => Some("It is with the host already.".into()),
            Self::Engine(error) => error.detail(),
            Self::Store(_) => None,
        }
    }
}
