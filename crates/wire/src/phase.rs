//! What people see of an environment, and the two clocks that keep it awake.

use std::fmt;

use serde::{Deserialize, Serialize};

/// What people see, derived from intent and observation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum Phase {
    /// No sandbox; the workspace is kept.
    Suspended,
    /// A sandbox is on its way.
    Starting,
    /// The sandbox said hello and its eager surfaces answer.
    Ready,
    /// The sandbox is paused in memory.
    Frozen,
    /// The sandbox is being drained or stopped.
    Suspending,
    /// Starting failed for good, or for now.
    Failed,
    /// Switched off by its owner or an operator.
    Disabled,
    /// Being prepared by a publish.
    Publishing,
    /// Deleted; it can be restored until its tombstone is reaped.
    Deleted,
}

impl Phase {
    /// The stable text, as in JSON, headers and metrics.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Suspended => "suspended",
            Self::Starting => "starting",
            Self::Ready => "ready",
            Self::Frozen => "frozen",
            Self::Suspending => "suspending",
            Self::Failed => "failed",
            Self::Disabled => "disabled",
            Self::Publishing => "publishing",
            Self::Deleted => "deleted",
        }
    }
}

impl fmt::Display for Phase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Which of an environment's two activity clocks a surface feeds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ClockKind {
    /// Every surface but the app's, and uploads.
    Agent,
    /// Visits of the app.
    App,
}

impl ClockKind {
    /// The stable text.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Agent => "agent",
            Self::App => "app",
        }
    }
}
