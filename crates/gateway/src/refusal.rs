//! Refusals: every way in which a request does not end in the program's own answer.
//!
//! A [`Refusal`] says what happened, once. How it looks on the wire (status and JSON, a page, or a
//! WebSocket's close code) is decided in [`crate::rescue`], and nowhere else.

use std::{borrow::Cow, time::Duration};

use wakeful_wire::{
    Code, Phase, Problem,
    gate::{EnsureAnswer, FailureAnswer, FailureKind, GateState},
};

use crate::{admit::AdmitError, framing::FramingError, holding::Overloaded, route::RouteError};

/// Whose doing a refusal is. Status and log level follow from it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Origin {
    /// The visitor's: logged at debug.
    Client,
    /// The environment's, its program's or its phase: logged at info.
    Environment,
    /// Wakeful's own: logged at error.
    Wakeful,
}

impl Origin {
    /// The stable text, for the access log.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Client => "client",
            Self::Environment => "environment",
            Self::Wakeful => "wakeful",
        }
    }
}

/// Why a request does not get the program's own answer. Every text in it is for the outside.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    /// The stable code.
    pub code: Code,
    /// What happened and what to do, where the code's title does not say enough.
    pub detail: Option<Cow<'static, str>>,
    /// The environment's phase, where it is about one.
    pub phase: Option<Phase>,
    /// When to try again, where that makes sense.
    pub retry_after: Option<Duration>,
}

/// How soon to try again where nobody said.
const RETRY: Duration = Duration::from_secs(1);

impl Refusal {
    /// A refusal in its code's own words.
    #[must_use]
    pub fn new(code: Code) -> Self {
        let retry_after = (code.retryable() && code.status() == 503).then_some(RETRY);
        Self { code, detail: None, phase: None, retry_after }
    }

    /// With a sentence for people.
    #[must_use]
    pub fn detail(mut self, detail: impl Into<Cow<'static, str>>) -> Self {
        self.detail = Some(detail.into());
        self
    }

    /// With the environment's phase.
    #[must_use]
    pub const fn phase(mut self, phase: Phase) -> Self {
        self.phase = Some(phase);
        self
    }

    /// With the time to try again after.
    #[must_use]
    pub const fn retry_after(mut self, after: Duration) -> Self {
        self.retry_after = Some(after);
        self
    }

    /// What the gate's answer means for a request that is not held any longer; `None` if it is
    /// ready. `waited`: the request was held, so that an environment that is gone now was there
    /// when it came.
    #[must_use]
    pub fn of_answer(answer: &EnsureAnswer, waited: bool) -> Option<Self> {
        let code = match answer.state {
            GateState::Ready => return None,
            GateState::Starting | GateState::SurfaceStarting => Code::Starting,
            GateState::SurfaceFailed => Code::SurfaceFailed,
            GateState::Asleep => Code::Asleep,
            GateState::Failed => Code::EnvironmentFailed,
            GateState::Disabled => Code::EnvironmentDisabled,
            GateState::Gone | GateState::NotFound if waited => Code::Gone,
            GateState::Gone | GateState::NotFound => Code::NotFound,
        };
        // What is not there has no phase to tell, also not that it was there once.
        if code == Code::NotFound {
            return Some(Self::new(code));
        }
        let mut refusal = Self::new(code).phase(answer.phase);
        refusal.detail = answer.reason.clone().map(Cow::Owned);
        // An environment that cannot start says when its next start is tried, if one is.
        if (refusal.retry_after.is_some() || code == Code::EnvironmentFailed)
            && let Some(after) = answer.retry_after_ms
        {
            refusal.retry_after = Some(Duration::from_millis(after));
        }
        Some(refusal)
    }

    /// A request that had been admitted failed between gateway and program. `answer` is what the
    /// control plane said to the report; `None` if it could not be asked.
    #[must_use]
    pub fn of_failure(kind: FailureKind, answer: Option<FailureAnswer>) -> Self {
        if answer.is_some_and(|answer| answer.restart) {
            return Self::new(Code::Restarting)
                .detail("The sandbox that served this environment is gone and a new one starts.");
        }
        Self::new(Code::UpstreamFailed).detail(match kind {
            FailureKind::Connect => "The program took no connection.",
            FailureKind::BeforeHead => "The program ended the connection without an answer.",
            FailureKind::MidStream => "The program ended its answer before it was complete.",
            FailureKind::Malformed => "The program's answer was not HTTP.",
            FailureKind::Handshake => "The program did not complete the upgrade.",
        })
    }

    /// The environment was deleted while it had this request.
    #[must_use]
    pub fn deleted() -> Self {
        Self::new(Code::Gone).phase(Phase::Deleted)
    }

    /// The control plane could not be asked.
    #[must_use]
    pub fn control_unavailable() -> Self {
        Self::new(Code::ControlUnavailable)
    }

    /// Whose doing it is.
    #[must_use]
    pub const fn origin(&self) -> Origin {
        match self.code {
            Code::BadRequest
            | Code::BadTarget
            | Code::Invalid
            | Code::Unauthenticated
            | Code::BadCredentials
            | Code::Forbidden
            | Code::CrossOrigin
            | Code::NotFound
            | Code::MethodNotAllowed
            | Code::Unsupported
            | Code::Conflict
            | Code::WrongPhase
            | Code::Gone
            | Code::TooLarge
            | Code::UnsupportedMedia
            | Code::Misdirected
            | Code::TooManyRequests
            | Code::HeadersTooLarge => Origin::Client,
            Code::EnvironmentDisabled
            | Code::UpstreamFailed
            | Code::EnvironmentFailed
            | Code::SurfaceFailed
            | Code::Asleep
            | Code::Starting
            | Code::Restarting
            | Code::NoSpace => Origin::Environment,
            Code::Internal | Code::Overloaded | Code::ControlUnavailable => Origin::Wakeful,
        }
    }

    /// The close code that tells a browser's socket why it was refused, since a refused upgrade
    /// tells it nothing (`design.md`, "Sockets that are refused"). `None`: the handshake itself is
    /// at fault, and gets its plain status.
    #[must_use]
    pub const fn close_code(&self) -> Option<u16> {
        match self.code {
            Code::Unauthenticated | Code::BadCredentials => Some(4401),
            Code::Forbidden | Code::CrossOrigin => Some(4403),
            Code::NotFound | Code::Gone => Some(4404),
            Code::EnvironmentDisabled => Some(4423),
            Code::Asleep
            | Code::Starting
            | Code::Restarting
            | Code::Overloaded
            | Code::ControlUnavailable => Some(4503),
            Code::UpstreamFailed
            | Code::EnvironmentFailed
            | Code::SurfaceFailed
            | Code::Internal
            | Code::NoSpace => Some(1011),
            Code::BadRequest
            | Code::BadTarget
            | Code::Invalid
            | Code::MethodNotAllowed
            | Code::Unsupported
            | Code::Conflict
            | Code::WrongPhase
            | Code::TooLarge
            | Code::UnsupportedMedia
            | Code::Misdirected
            | Code::TooManyRequests
            | Code::HeadersTooLarge => None,
        }
    }

    /// The body of the JSON answer.
    #[must_use]
    pub fn problem(&self) -> Problem {
        let mut problem = Problem::new(self.code);
        problem.detail = self.detail.as_deref().map(str::to_owned);
        problem.phase = self.phase;
        problem.retry |= self.retry_after.is_some();
        problem
    }
}

impl From<RouteError> for Refusal {
    fn from(error: RouteError) -> Self {
        Self::new(error.code()).detail(match error {
            RouteError::HostCount => "A request needs exactly one Host.",
            RouteError::HostSyntax => "The Host is malformed.",
            RouteError::Target => "The request target is malformed.",
            RouteError::Escape => {
                "The path holds a dot segment, a backslash or a NUL, raw or encoded. Resolve it \
                 before sending it."
            }
            RouteError::Misdirected => {
                "This server does not serve that host name. Set --domain or public_url if it \
                 should."
            }
            RouteError::Unknown => "There is nothing here, or not for you.",
        })
    }
}

impl From<AdmitError> for Refusal {
    fn from(error: AdmitError) -> Self {
        Self::new(error.code()).detail(error.sentence())
    }
}

impl From<FramingError> for Refusal {
    fn from(error: FramingError) -> Self {
        Self::new(error.code()).detail(error.sentence())
    }
}

impl From<Overloaded> for Refusal {
    fn from(_: Overloaded) -> Self {
        Self::new(Code::Overloaded)
    }
}

#[cfg(test)]
mod tests;
