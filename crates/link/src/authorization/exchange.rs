//! What a control plane and a token endpoint answer.

use std::time::Duration;

use wakeful_wire::{
    api::GrantAnswer,
    host::{Denial, Remedy, TOKEN_TYPE, TokenError, TokenResponse},
};

use crate::{Failure, FailureReason};

use super::{Reply, Side, reply::with_clocks};

/// The longest grant, token or address that is taken, in bytes. Each stands in a header or a line
/// of its own.
const TEXT_MAX: usize = 8 * 1_024;

/// Why an exchange brought no token.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Refused {
    pub(super) failure: Failure,
    /// Whether another grant, or another proof, may do.
    pub(super) another_may_do: bool,
}

impl Refused {
    fn finally(failure: Failure) -> Self {
        Self { failure, another_may_do: false }
    }
}

/// A grant that can be exchanged.
///
/// # Errors
/// Why there is none.
pub(super) fn granted(reply: &Reply) -> Result<GrantAnswer, Failure> {
    let granted: GrantAnswer = reply.read(Side::Platform).map_err(|mut failure| {
        if failure.reason == FailureReason::Authentication && is_of_the_platform(reply) {
            failure.detail = format!("Sign in to the platform again: {}", failure.detail);
        }
        failure
    })?;
    let is_address = ["https://", "http://"]
        .iter()
        .any(|scheme| granted.address.strip_prefix(scheme).is_some_and(|rest| !rest.is_empty()));
    if is_address && fits(&granted.address) && fits(&granted.grant) {
        Ok(granted)
    } else {
        let detail = "The platform's grant cannot be used: it is malformed.";
        Err(Failure::new(FailureReason::Platform, detail))
    }
}

/// Whether an answer is one that the platform itself gave: a 401.
const fn is_of_the_platform(reply: &Reply) -> bool {
    matches!(reply, Reply::Answered(answer) if answer.status == 401)
}

/// A token with some life.
///
/// # Errors
/// Why there is none. `paired` says what a person would have to do about a credential that is gone.
pub(super) fn exchanged(reply: &Reply, paired: bool) -> Result<TokenResponse, Refused> {
    if let Reply::Answered(answer) = reply
        && let Some(error) = answer.token_error()
    {
        let mut refused = refusal(answer.status, &error, paired);
        refused.failure = answer.completed(refused.failure);
        return Err(refused);
    }
    let token: TokenResponse = reply.read(Side::Host).map_err(Refused::finally)?;
    let refreshes = token.refresh_token.as_deref().is_none_or(fits);
    if !token.token_type.eq_ignore_ascii_case(TOKEN_TYPE) {
        let detail = "The host gives tokens of a kind that this release does not use.";
        Err(Refused::finally(Failure::new(FailureReason::Unsupported, detail)))
    } else if fits(&token.access_token) && refreshes && token.expires_in > 0 {
        Ok(token)
    } else {
        let detail = "The host's token cannot be used: it is malformed or already over.";
        Err(Refused::finally(Failure::new(FailureReason::Remote, detail)))
    }
}

/// How long a token lives, from the arrival of the answer that brought it.
pub(super) const fn life(token: &TokenResponse) -> Duration {
    Duration::from_secs(token.expires_in)
}

/// Whether a text can stand in a header, and is no longer than it may be.
fn fits(text: &str) -> bool {
    (1..=TEXT_MAX).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_graphic())
}

fn refusal(status: u16, error: &TokenError, paired: bool) -> Refused {
    let said = error.error_description.as_str();
    let failure = |reason| Failure::new(reason, said);
    let remedy = error.reason.map(Denial::remedy);
    if remedy == Some(Remedy::Wait) || status == 429 {
        return Refused::finally(failure(FailureReason::Overloaded));
    }
    if status >= 500 {
        return Refused::finally(failure(FailureReason::Remote));
    }
    if status == 403 {
        return Refused::finally(failure(FailureReason::Permission));
    }
    if remedy == Some(Remedy::FreshProof) || (remedy.is_none() && is_of_the_proof(error)) {
        let reason = if error.reason == Some(Denial::ProofReplayed) {
            FailureReason::Remote
        } else {
            FailureReason::Configuration
        };
        let failure = Failure::new(reason, with_clocks(said));
        return Refused { failure, another_may_do: true };
    }
    if paired { of_pairing(error) } else { of_grant(error) }
}

/// A refresh token was refused.
fn of_pairing(error: &TokenError) -> Refused {
    let said = &error.error_description;
    let is_gone = match error.reason {
        Some(denial) => {
            matches!(denial.remedy(), Remedy::SignIn | Remedy::Renew)
                || matches!(denial, Denial::TokenKey | Denial::TokenKind)
        }
        None => error.error == "invalid_grant",
    };
    Refused::finally(if is_gone {
        let detail = format!("The host does not know this client any more: pair again. {said}");
        Failure::new(FailureReason::Authentication, detail)
    } else {
        Failure::new(FailureReason::Unsupported, said)
    })
}

/// A grant was refused, which the control plane had just given.
fn of_grant(error: &TokenError) -> Refused {
    let failure = |reason| Failure::new(reason, error.error_description.as_str());
    match error.reason {
        // The sandbox was replaced between grant and exchange, somebody on the way repeated the
        // request, or clocks differ. The next grant is for what runs by then.
        Some(
            Denial::GrantSignature | Denial::GrantUsed | Denial::GrantEarly | Denial::GrantExpired,
        ) => Refused { failure: failure(FailureReason::Remote), another_may_do: true },
        None if error.error == "invalid_grant" => {
            Refused { failure: failure(FailureReason::Remote), another_may_do: true }
        }
        Some(Denial::GrantAudience | Denial::GrantUnsupported) => {
            Refused::finally(failure(FailureReason::Configuration))
        }
        Some(Denial::GrantScope) => Refused::finally(failure(FailureReason::Permission)),
        Some(_) | None => Refused::finally(failure(FailureReason::Unsupported)),
    }
}

/// Whether a refusal whose reason this release does not know is about the proof.
fn is_of_the_proof(error: &TokenError) -> bool {
    matches!(error.error.as_str(), "invalid_dpop_proof" | "use_dpop_nonce")
}
