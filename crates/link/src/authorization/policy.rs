//! What a refusal of a request, or of a ticket, leads to.

use std::time::Duration;

use wakeful_wire::host::{TOKEN_TYPE, TicketResponse};

use crate::Failure;

/// How long the host may take to answer a ticket request. An attempt that has less time left gives
/// up sooner; that is no word on the token, and is not reported.
pub const TICKET_LIMIT: Duration = Duration::from_secs(10);

/// What becomes of a request over HTTP that was refused.
#[derive(Debug, Clone, Copy)]
pub struct HttpPolicy;

impl HttpPolicy {
    /// Whether a request is sent once more, with another token and a fresh proof: if the host did
    /// not take the token, and only the first time. `challenge` is the answer's
    /// `WWW-Authenticate`; `already` whether this was the second try. The refusal of anybody else
    /// on the way, such as the platform, is not the token's and is surfaced.
    #[must_use]
    pub fn retry(status: u16, challenge: Option<&str>, already: bool) -> bool {
        status == 401 && !already && challenge.is_some_and(names_our_scheme)
    }
}

/// Whether one of the challenges of a header is for the scheme that a host's tokens have.
pub(super) fn names_our_scheme(challenge: &str) -> bool {
    let mut quoted = false;
    let mut parts = challenge.split(|letter| {
        quoted ^= letter == '"';
        letter == ',' && !quoted
    });
    parts.any(|part| {
        let scheme = part.trim_start().split([' ', '\t']).next().unwrap_or_default();
        scheme.eq_ignore_ascii_case(TOKEN_TYPE)
    })
}

/// What a ticket request led to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ticket {
    /// A ticket, for the one socket that this attempt opens.
    Taken(TicketResponse),
    /// The token was replaced: ask for one once more, in the same attempt, and then for a ticket.
    /// Never said twice in a row, because a token that was had for this very attempt is not
    /// replaced within it.
    Again,
    /// None. The attempt has failed.
    Failed(Failure),
}
