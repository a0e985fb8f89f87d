//! Error codes and the body that carries them.

use std::{borrow::Cow, fmt};

use serde::{Deserialize, Deserializer, Serialize};

use crate::{Phase, newer};

macro_rules! codes {
    ($($(#[$doc:meta])* $name:ident = $text:literal, $status:literal, retry $retry:literal, title $title:literal;)*) => {
        /// A stable code for each way in which Wakeful refuses or fails.
        ///
        /// It answers by exhaustive match: the HTTP status, whether trying again makes sense, and
        /// a title for people. Clients decide by the code, never by the text.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
        #[cfg_attr(
            feature = "schema",
            derive(schemars::JsonSchema),
            schemars(transform = crate::schema::open)
        )]
        #[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
        pub enum Code {
            $($(#[$doc])* #[serde(rename = $text)] $name,)*
        }

        impl Code {
            /// Every code, in the order of its declaration.
            pub const ALL: &'static [Self] = &[$(Self::$name,)*];

            /// The stable text.
            #[must_use]
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$name => $text,)* }
            }

            /// The HTTP status it is sent with.
            #[must_use]
            pub const fn status(self) -> u16 {
                match self { $(Self::$name => $status,)* }
            }

            /// Whether the same request may succeed later without anybody changing anything.
            #[must_use]
            pub const fn retryable(self) -> bool {
                match self { $(Self::$name => $retry,)* }
            }

            /// A title for people.
            #[must_use]
            pub const fn title(self) -> &'static str {
                match self { $(Self::$name => $title,)* }
            }
        }
    };
}

codes! {
    /// The request itself is malformed.
    BadRequest = "bad_request", 400, retry false, title "Bad request";
    /// A path that could escape its prefix.
    BadTarget = "bad_target", 400, retry false, title "Bad request target";
    /// A field holds a value that it may not hold.
    Invalid = "invalid", 400, retry false, title "Invalid value";
    /// Nobody is signed in.
    Unauthenticated = "unauthenticated", 401, retry false, title "Not signed in";
    /// Name and password or token do not match.
    BadCredentials = "bad_credentials", 401, retry false, title "Wrong user, password or token";
    /// Signed in, may see it, may not do this.
    Forbidden = "forbidden", 403, retry false, title "Not allowed";
    /// The request came from another origin.
    CrossOrigin = "cross_origin", 403, retry false, title "Refused from another origin";
    /// There is nothing here, or not for this user.
    NotFound = "not_found", 404, retry false, title "Not found";
    /// The method does not fit the resource.
    MethodNotAllowed = "method_not_allowed", 405, retry false, title "Method not allowed";
    /// The name is taken.
    Conflict = "conflict", 409, retry false, title "Already exists";
    /// A method, kind or version that this release does not know.
    Unsupported = "unsupported", 400, retry false, title "Not supported by this release";
    /// The resource's state does not allow it now.
    WrongPhase = "wrong_phase", 409, retry false, title "Not possible in this phase";
    /// It was there and has been deleted.
    Gone = "gone", 410, retry false, title "Deleted";
    /// A body over its limit.
    TooLarge = "too_large", 413, retry false, title "Too large";
    /// A content type that is not understood.
    UnsupportedMedia = "unsupported_media_type", 415, retry false, title "Unsupported content type";
    /// A host name that this listener does not serve.
    Misdirected = "misdirected", 421, retry false, title "Unknown host name";
    /// The environment is switched off.
    EnvironmentDisabled = "environment_disabled", 423, retry false, title "Environment disabled";
    /// Too many tries.
    TooManyRequests = "too_many_requests", 429, retry true, title "Too many requests";
    /// Header fields over their limit.
    HeadersTooLarge = "headers_too_large", 431, retry false, title "Header fields too large";
    /// Something in Wakeful failed.
    Internal = "internal", 500, retry true, title "Internal error";
    /// The surface closed, refused or garbled a request in flight.
    UpstreamFailed = "upstream_failed", 502, retry true, title "The program did not answer";
    /// The environment cannot start.
    EnvironmentFailed = "environment_failed", 502, retry false, title "The environment cannot start";
    /// The environment runs, but this surface's program does not.
    SurfaceFailed = "surface_failed", 502, retry true, title "The program cannot start";
    /// The environment is asleep and this request does not wake it.
    Asleep = "asleep", 503, retry true, title "Asleep";
    /// The environment is still starting.
    Starting = "starting", 503, retry true, title "Still starting";
    /// The sandbox is gone; a new one starts.
    Restarting = "restarting", 503, retry true, title "Restarting";
    /// Too many requests wait already.
    Overloaded = "overloaded", 503, retry true, title "Too many waiting requests";
    /// The control plane cannot be asked.
    ControlUnavailable = "control_unavailable", 503, retry true, title "Control plane unavailable";
    /// No room on the workspace's disk.
    NoSpace = "no_space", 507, retry false, title "No space left";
}

impl Code {
    /// The code of this text; for one that this release does not know, what comes nearest to its
    /// status. That is never a code which says something of an environment.
    fn nearest(text: &str, status: u16) -> Self {
        let known = Self::ALL.iter().copied().find(|code| code.as_str() == text);
        known.unwrap_or(match status {
            401 => Self::Unauthenticated,
            403 => Self::Forbidden,
            404 => Self::NotFound,
            409 => Self::Conflict,
            410 => Self::Gone,
            413 => Self::TooLarge,
            429 => Self::TooManyRequests,
            503 => Self::Overloaded,
            ..500 => Self::BadRequest,
            500.. => Self::Internal,
        })
    }
}

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// The body of an error answer: `application/problem+json` (RFC 9457).
///
/// Every text in it is for the outside: it says what to do and holds nothing internal.
///
/// A code that this release does not know is read as the nearest one that it does, by status; a
/// phase that it does not know as none. Title, status and whether to retry stay as they were sent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Problem {
    /// The stable code.
    pub code: Code,
    /// A title for people.
    pub title: Cow<'static, str>,
    /// The HTTP status, also in the answer's status line.
    pub status: u16,
    /// What happened and what to do, in a sentence.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
    /// Whether trying again makes sense.
    pub retry: bool,
    /// The environment's phase, where the answer is about one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(with = "Option<String>"))]
    pub phase: Option<Phase>,
    /// The field that is wrong, where one is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub field: Option<Cow<'static, str>>,
}

impl<'de> Deserialize<'de> for Problem {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        struct Sent {
            code: String,
            title: String,
            status: u16,
            #[serde(default)]
            detail: Option<String>,
            retry: bool,
            #[serde(default, deserialize_with = "newer::known")]
            phase: Option<Phase>,
            #[serde(default)]
            field: Option<String>,
        }
        let sent = Sent::deserialize(deserializer)?;
        Ok(Self {
            code: Code::nearest(&sent.code, sent.status),
            title: sent.title.into(),
            status: sent.status,
            detail: sent.detail,
            retry: sent.retry,
            phase: sent.phase,
            field: sent.field.map(Cow::Owned),
        })
    }
}

impl Problem {
    /// The media type of the body.
    pub const MEDIA_TYPE: &'static str = "application/problem+json";

    /// A problem with its code's own words.
    #[must_use]
    pub const fn new(code: Code) -> Self {
        Self {
            code,
            title: Cow::Borrowed(code.title()),
            status: code.status(),
            detail: None,
            retry: code.retryable(),
            phase: None,
            field: None,
        }
    }

    /// With a sentence of what happened and what to do.
    #[must_use]
    pub fn detail(mut self, detail: impl Into<String>) -> Self {
        self.detail = Some(detail.into());
        self
    }

    /// With the environment's phase.
    #[must_use]
    pub const fn phase(mut self, phase: Phase) -> Self {
        self.phase = Some(phase);
        self
    }

    /// With the name of the field that is wrong.
    #[must_use]
    pub fn field(mut self, field: impl Into<Cow<'static, str>>) -> Self {
        self.field = Some(field.into());
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_code_has_its_own_text_and_an_error_status() {
        let mut texts: Vec<_> = Code::ALL.iter().map(|code| code.as_str()).collect();
        texts.sort_unstable();
        texts.dedup();
        assert_eq!(texts.len(), Code::ALL.len());
        assert!(Code::ALL.iter().all(|code| (400..600).contains(&code.status())));
    }

    #[test]
    fn a_problem_says_its_code_status_and_whether_to_retry() {
        let problem = Problem::new(Code::Asleep).phase(Phase::Suspended);
        assert_eq!(
            serde_json::to_string(&problem).unwrap(),
            r#"{"code":"asleep","title":"Asleep","status":503,"retry":true,"phase":"suspended"}"#
        );
    }

    #[test]
    fn a_problem_of_a_newer_release_is_read_as_the_nearest_that_is_known() {
        let table = [
            (404, Code::NotFound),
            (418, Code::BadRequest),
            (503, Code::Overloaded),
            (599, Code::Internal),
        ];
        for (status, code) in table {
            let sent = serde_json::json!({
                "code": "tide_is_out", "title": "Low tide", "status": status, "retry": true,
                "phase": "tidal", "since": 3,
            });
            let read: Problem = serde_json::from_value(sent).unwrap();
            assert_eq!((read.code, read.status, read.phase), (code, status, None));
            assert!(read.retry && read.title == "Low tide");
        }
        for code in Code::ALL {
            let sent = Problem::new(*code).phase(Phase::Ready).field("x").detail("y");
            let text = serde_json::to_string(&sent).unwrap();
            assert_eq!(serde_json::from_str::<Problem>(&text).unwrap(), sent);
        }
    }
}
