//! A refusal: the error answer of a handler, before it is known what it will look like.

use std::time::Duration;

use axum::response::{IntoResponse, Response};
use http::StatusCode;
use wakeful_wire::{Code, Phase, Problem};

use crate::{
    accounts::AccountError, engine::EngineError, files::FileError, prompts::PromptError,
    variables::VariableError,
};

/// The error answer of a handler. It travels in the response's extensions to the one place that
/// gives it a form.
#[derive(Debug, Clone)]
pub struct Refusal {
    /// What is said.
    pub problem: Box<Problem>,
    /// When to try again.
    pub retry_after: Option<Duration>,
}

impl Refusal {
    /// With the code's own words.
    #[must_use]
    pub fn new(code: Code) -> Self {
        Self { problem: Box::new(Problem::new(code)), retry_after: None }
    }

    /// With a sentence for the outside.
    #[must_use]
    pub fn because(code: Code, detail: impl Into<String>) -> Self {
        Self { problem: Box::new(Problem::new(code).detail(detail)), retry_after: None }
    }

    /// A field holds what it may not hold.
    #[must_use]
    pub fn invalid(field: impl Into<String>, detail: impl Into<String>) -> Self {
        let problem = Problem::new(Code::Invalid).detail(detail).field(field.into());
        Self { problem: Box::new(problem), retry_after: None }
    }

    /// With the environment's phase.
    #[must_use]
    pub fn phase(mut self, phase: Phase) -> Self {
        *self.problem = self.problem.phase(phase);
        self
    }

    /// With when to try again.
    #[must_use]
    pub const fn after(mut self, wait: Duration) -> Self {
        self.retry_after = Some(wait);
        self
    }

    /// The code.
    #[must_use]
    pub const fn code(&self) -> Code {
        self.problem.code
    }

    /// The sentence, or the code's title.
    #[must_use]
    pub fn sentence(&self) -> &str {
        self.problem.detail.as_deref().unwrap_or(&self.problem.title)
    }

    fn of(code: Code, detail: Option<String>, error: &(dyn std::error::Error + 'static)) -> Self {
        if code == Code::Internal {
            // The outside is told nothing of it, so it must stand in the log.
            tracing::error!(error, "a request failed");
        }
        match detail {
            Some(detail) => Self::because(code, detail),
            None => Self::new(code),
        }
    }
}

impl From<EngineError> for Refusal {
    fn from(error: EngineError) -> Self {
        Self::of(error.code(), error.detail(), &error)
    }
}

impl From<AccountError> for Refusal {
    fn from(error: AccountError) -> Self {
        let mut refusal = Self::of(error.code(), error.detail(), &error);
        refusal.retry_after = error.retry_after();
        if let AccountError::Invalid { field, .. } = error {
            *refusal.problem = refusal.problem.field(field);
        }
        refusal
    }
}

impl From<VariableError> for Refusal {
    fn from(error: VariableError) -> Self {
        let mut refusal = Self::of(error.code(), error.detail(), &error);
        if let VariableError::Invalid { field, .. } = error {
            *refusal.problem = refusal.problem.field(field);
        }
        refusal
    }
}

impl From<PromptError> for Refusal {
    fn from(error: PromptError) -> Self {
        let mut refusal = Self::of(error.code(), error.detail(), &error);
        if let PromptError::Invalid { field, .. } = error {
            *refusal.problem = refusal.problem.field(field);
        }
        refusal
    }
}

impl From<FileError> for Refusal {
    fn from(error: FileError) -> Self {
        let mut refusal = Self::of(error.code(), error.detail(), &error);
        if matches!(error, FileError::Reserved) {
            *refusal.problem = refusal.problem.field("path");
        }
        refusal
    }
}

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        let status = StatusCode::from_u16(self.problem.status);
        let mut response = status.unwrap_or(StatusCode::INTERNAL_SERVER_ERROR).into_response();
        response.extensions_mut().insert(self);
        response
    }
}
