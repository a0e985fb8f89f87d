//! Why something at a host did not work.

use wakeful_wire::{Code, Phase, Problem};

use crate::output::printable;

/// Why a request to a host did not work.
#[derive(Debug, thiserror::Error)]
pub enum HostError {
    /// The environment sleeps, or is on its way, and this request does not wait for it.
    #[error("the environment is {}", .phase.map_or("asleep", Phase::as_str))]
    Asleep {
        /// Its phase, where it was said.
        phase: Option<Phase>,
    },
    /// It was refused.
    #[error("{} ({})", printable(.0.detail.as_deref().unwrap_or(&.0.title)), .0.code)]
    Refused(Box<Problem>),
    /// No answer came.
    #[error("{0}")]
    Unreachable(String),
    /// The answer is not one of a host.
    #[error("the host's answer cannot be read: {0}")]
    Garbled(String),
    /// The host does not know this client any more.
    #[error("{0} does not know this machine any more: pair with it again (`wakeful pair`)")]
    NotPaired(String),
}

impl HostError {
    /// Whether another try may work without anybody changing anything.
    #[must_use]
    pub fn is_passing(&self) -> bool {
        match self {
            Self::Unreachable(_) => true,
            Self::Asleep { phase } => {
                matches!(phase, Some(Phase::Starting | Phase::Suspending | Phase::Ready))
            }
            Self::Refused(problem) => problem.retry,
            Self::Garbled(_) | Self::NotPaired(_) => false,
        }
    }
}

impl From<Problem> for HostError {
    fn from(problem: Problem) -> Self {
        if matches!(problem.code, Code::Asleep | Code::Starting | Code::Restarting) {
            let on_its_way = (problem.code != Code::Asleep).then_some(Phase::Starting);
            Self::Asleep { phase: problem.phase.or(on_its_way) }
        } else {
            Self::Refused(Box::new(problem))
        }
    }
}

/// How a socket ended.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the connection ended{}", said(.code, .reason))]
pub struct Ended {
    /// The close code; nothing if it broke off.
    pub code: Option<u16>,
    /// Why, for people.
    pub reason: String,
}

fn said(code: &Option<u16>, reason: &str) -> String {
    let reason = printable(reason);
    match code {
        Some(code) if reason.is_empty() => format!(" ({code})"),
        Some(code) => format!(": {reason} ({code})"),
        None if reason.is_empty() => String::new(),
        None => format!(": {reason}"),
    }
}

impl Ended {
    /// It broke off.
    pub(super) fn broke(reason: impl Into<String>) -> Self {
        Self { code: None, reason: reason.into() }
    }
}
