//! What comes of a request over HTTP, and what it means where it is not what was asked for.

use std::{fmt, time::Duration};

use serde::de::DeserializeOwned;
use wakeful_wire::{HostId, Problem, host::TokenError};

use crate::{Failure, FailureReason, session::failure_of};

use super::policy::names_our_scheme;

/// The longest body that is looked at, in bytes. A shell stops reading there.
pub const ANSWER_MAX: usize = 64 << 20;
/// Most letters of the other side's words in a failure.
const WORDS_MAX: usize = 500;
/// What a refused proof may also be due to. Said where the refusal does not say it itself.
const CLOCKS: &str = "Check the clocks of both sides (clock skew).";

/// What came of a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reply {
    /// An answer came, whatever it says.
    Answered(HttpAnswer),
    /// None came in time.
    TimedOut,
    /// No connection could be made, or it broke before the answer was whole. The text is a sentence
    /// for people.
    Unreachable(String),
    /// It was not sent, because no proof could be made. The text is a sentence for people.
    Unproven(String),
}

/// An answer over HTTP, as far as it matters here. A shell follows no redirect: it hands it over.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct HttpAnswer {
    /// Its status. 0 for a redirect that a browser hides.
    pub status: u16,
    /// Which host says in its refusal that it is its own, and not of a gateway on the way.
    pub host: Option<HostId>,
    /// `ETag`.
    pub etag: Option<String>,
    /// `Content-Type`.
    pub content_type: Option<String>,
    /// `WWW-Authenticate`; several are joined by commas.
    pub challenge: Option<String>,
    /// `Retry-After`, where it is a number of seconds.
    pub retry_after: Option<Duration>,
    /// The body; cut one byte above [`ANSWER_MAX`] where it is longer.
    pub body: Vec<u8>,
}

impl fmt::Debug for HttpAnswer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The body may hold a credential.
        f.debug_struct("HttpAnswer")
            .field("status", &self.status)
            .field("content_type", &self.content_type)
            .field("body_len", &self.body.len())
            .finish_non_exhaustive()
    }
}

/// Who was asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Side {
    /// The control plane.
    Platform,
    /// The host itself, maybe through a gateway.
    Host,
}

impl Side {
    const fn name(self) -> &'static str {
        match self {
            Self::Platform => "The platform",
            Self::Host => "The host",
        }
    }
}

impl Reply {
    /// What was asked for.
    ///
    /// # Errors
    /// Why it did not come. A page where data belong, or a redirect, is somebody on the way who
    /// wants a sign-in first, and means [`FailureReason::Authentication`].
    pub fn read<T: DeserializeOwned>(&self, side: Side) -> Result<T, Failure> {
        match self {
            Self::Answered(answer) => answer.read(side),
            Self::TimedOut => {
                let detail = format!("{} did not answer in time.", side.name());
                Err(Failure::new(FailureReason::Timeout, detail))
            }
            Self::Unreachable(detail) => Err(Failure::new(FailureReason::Network, clipped(detail))),
            Self::Unproven(detail) => {
                Err(Failure::new(FailureReason::Configuration, clipped(detail)))
            }
        }
    }

    /// Whether nothing was heard of the other side.
    pub(super) const fn is_silence(&self) -> bool {
        matches!(self, Self::TimedOut | Self::Unreachable(_))
    }
}

impl HttpAnswer {
    fn read<T: DeserializeOwned>(&self, side: Side) -> Result<T, Failure> {
        let asked_for = if self.is_success() && !self.is_too_long() {
            serde_json::from_slice(&self.body).ok()
        } else {
            None
        };
        asked_for.ok_or_else(|| self.failure(side))
    }

    /// Why this answer is not what was asked for: of any request to a host or its platform, and of
    /// an upgrade that was refused.
    #[must_use]
    pub fn failure(&self, side: Side) -> Failure {
        let failure = if self.is_success() {
            self.of_another_form(side)
        } else if self.is_redirect() {
            sign_in_page(side)
        } else if let Some(problem) = self.json::<Problem>() {
            failure_of(&problem)
        } else if let Some(error) = self.json::<TokenError>() {
            Failure::new(self.reason_of_status(), error.error_description)
        } else {
            let detail = format!("{} answered with status {}.", side.name(), self.status);
            Failure::new(self.reason_of_status(), detail)
        };
        self.completed(failure)
    }

    /// The error of a token endpoint, if that is what the answer is.
    pub(super) fn token_error(&self) -> Option<TokenError> {
        let refused = !self.is_success() && !self.is_redirect();
        refused.then(|| self.json()).flatten()
    }

    /// Adds what is known apart from the body.
    pub(super) fn completed(&self, mut failure: Failure) -> Failure {
        let skewed = self.challenge.as_deref().is_some_and(|challenge| {
            names_our_scheme(challenge) && challenge.contains("invalid_dpop_proof")
        });
        failure.detail = clipped(&failure.detail);
        if skewed {
            failure.detail = with_clocks(&failure.detail);
        }
        failure.retry_after = failure.retry_after.or(self.retry_after);
        failure
    }

    fn json<T: DeserializeOwned>(&self) -> Option<T> {
        if self.is_too_long() { None } else { serde_json::from_slice(&self.body).ok() }
    }

    const fn is_success(&self) -> bool {
        self.status / 100 == 2
    }

    const fn is_redirect(&self) -> bool {
        self.status == 0 || self.status / 100 == 3
    }

    const fn is_too_long(&self) -> bool {
        self.body.len() > ANSWER_MAX
    }

    fn is_page(&self) -> bool {
        let media = self.content_type.as_deref().unwrap_or_default();
        let media = media.split(';').next().unwrap_or_default().trim();
        let by_name = ["text/html", "application/xhtml+xml"]
            .iter()
            .any(|page| media.eq_ignore_ascii_case(page));
        let body = self.body.strip_prefix(b"\xef\xbb\xbf").unwrap_or(&self.body);
        by_name || body.trim_ascii_start().starts_with(b"<")
    }

    /// It worked, and still is not what was asked for.
    fn of_another_form(&self, side: Side) -> Failure {
        if self.is_page() {
            return sign_in_page(side);
        }
        let detail = format!("{} answered, but not with what was asked for.", side.name());
        let reason = match side {
            Side::Platform => FailureReason::Platform,
            Side::Host => FailureReason::Remote,
        };
        Failure::new(reason, detail)
    }

    /// What a status means where the body says nothing.
    const fn reason_of_status(&self) -> FailureReason {
        match self.status {
            // 407 and 511 are of somebody on the way who wants a sign-in.
            401 | 407 | 511 => FailureReason::Authentication,
            403 => FailureReason::Permission,
            408 => FailureReason::Timeout,
            429 => FailureReason::Overloaded,
            // An error of the host itself has a body.
            _ => FailureReason::Platform,
        }
    }
}

fn sign_in_page(side: Side) -> Failure {
    let detail = format!(
        "A page answers in place of {}: sign in to the network or the proxy on the way first.",
        side.name().to_lowercase()
    );
    Failure::new(FailureReason::Authentication, detail)
}

/// What a refused proof may also be due to, added where it is not said yet.
pub(super) fn with_clocks(detail: &str) -> String {
    if detail.contains("clock skew") { detail.to_owned() } else { format!("{detail} {CLOCKS}") }
}

fn clipped(words: &str) -> String {
    words.chars().take(WORDS_MAX).collect()
}
