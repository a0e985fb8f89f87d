//! What the engine's operations can fail with.

use wakeful_lifecycle::{
    Refused,
    port::{DriverError, StoreError, WorkspaceError},
};
use wakeful_wire::{Code, TemplateName};

/// Why an operation on an environment or a project was not done.
#[derive(Debug, thiserror::Error)]
pub enum EngineError {
    /// There is no such environment or project.
    #[error("there is no such environment or project")]
    NotFound,
    /// The record's phase does not allow it.
    #[error("refused")]
    Refused(#[source] Refused),
    /// There is no such template.
    #[error("there is no template `{0}`")]
    UnknownTemplate(TemplateName),
    /// A program of the template is not installed.
    #[error("the template `{template}` cannot run here: {reason}")]
    MissingProgram {
        /// The template.
        template: TemplateName,
        /// What is missing and how to install it, for people.
        reason: String,
    },
    /// There is no such surface.
    #[error("there is no such surface")]
    NoSurface,
    /// The store failed.
    #[error("the store failed")]
    Store(#[source] StoreError),
    /// The driver failed.
    #[error("the driver failed")]
    Driver(#[source] DriverError),
    /// The workspace failed.
    #[error("the workspace failed")]
    Workspace(#[source] WorkspaceError),
    /// Others were faster too often in a row.
    #[error("too much happens to this environment at once")]
    Contended,
}

impl EngineError {
    /// The stable code.
    #[must_use]
    pub const fn code(&self) -> Code {
        match self {
            Self::NotFound | Self::NoSurface => Code::NotFound,
            Self::Refused(Refused::Gone) => Code::Gone,
            Self::Refused(Refused::Disabled) => Code::EnvironmentDisabled,
            Self::Refused(Refused::WrongPhase) => Code::WrongPhase,
            Self::Refused(Refused::Failed) => Code::EnvironmentFailed,
            Self::UnknownTemplate(_) | Self::MissingProgram { .. } => Code::Invalid,
            Self::Store(_) | Self::Driver(_) | Self::Workspace(_) | Self::Contended => {
                Code::Internal
            }
        }
    }

    /// A sentence that may be shown to the outside, where there is more to say than the code says.
    #[must_use]
    pub fn detail(&self) -> Option<String> {
        match self {
            Self::UnknownTemplate(_) | Self::MissingProgram { .. } | Self::Contended => {
                Some(self.to_string())
            }
            Self::NoSurface => Some("The environment has no surface of that name.".into()),
            Self::Refused(why) => Some(format!("Not now: {why}.")),
            Self::NotFound | Self::Store(_) | Self::Driver(_) | Self::Workspace(_) => None,
        }
    }
}

impl From<StoreError> for EngineError {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}
