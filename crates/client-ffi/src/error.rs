//! What can go wrong, for programs by its kind and for people in a sentence.

use std::str::FromStr;

use wakeful_client::pairing::NotPaired;
use wakeful_link::{Failure, boundary::CallFailure, registry::Refusal, session::Effect};

/// The longest text of the other side that is shown, in characters.
const WORDS_MAX: usize = 600;

/// Why something was not done. The kind is for programs; the text is for people, in one line, and
/// holds no secret.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error, uniffi::Error)]
#[uniffi(flat_error)]
pub enum ClientError {
    /// The client is closed. Nothing can be read or asked any more.
    #[error("This client is closed.")]
    Closed,
    /// What was given cannot be meant, such as an id that is none. Nothing was done.
    #[error("{0}")]
    Invalid(String),
    /// No such host is known.
    #[error("There is no such host here.")]
    NoSuchHost,
    /// Nobody answers at an address.
    #[error("{0}")]
    Unreachable(String),
    /// The host does not take the pairing code: it is wrong, used or too old.
    #[error("{0}")]
    CodeRefused(String),
    /// It was certainly not done, such as for want of a connection, or because the host refused.
    #[error("{0}")]
    NotDone(String),
    /// It may have been done and may not. Asking again with the same id is safe where an id is
    /// taken; otherwise read what holds now.
    #[error("{0}")]
    Uncertain(String),
    /// What this client keeps cannot be read or written.
    #[error("{0}")]
    Storage(String),
    /// A defect of this library.
    #[error("Something broke inside of this client. It goes on without.")]
    Internal,
}

impl ClientError {
    pub(crate) fn invalid(text: &str) -> Self {
        Self::Invalid(words(text))
    }

    pub(crate) fn not_done(text: &str) -> Self {
        Self::NotDone(words(text))
    }

    /// Something of this machine, such as a file.
    #[expect(clippy::needless_pass_by_value, reason = "used as a function on errors")]
    pub(crate) fn storage(error: anyhow::Error) -> Self {
        Self::Storage(words(&format!("{error:#}")))
    }

    /// Why a pairing came to nothing.
    pub(crate) fn pairing(error: &anyhow::Error) -> Self {
        let text = words(&format!("{error:#}"));
        match error.downcast_ref::<NotPaired>() {
            Some(NotPaired::Address) => Self::Invalid(text),
            Some(NotPaired::Unreachable(_) | NotPaired::NoHost(_)) => Self::Unreachable(text),
            Some(NotPaired::Refused(_)) => Self::CodeRefused(text),
            None => Self::Storage(text),
        }
    }
}

impl From<Failure> for ClientError {
    fn from(failure: Failure) -> Self {
        Self::not_done(&failure.detail)
    }
}

impl From<CallFailure> for ClientError {
    fn from(failed: CallFailure) -> Self {
        let text = words(&failed.failure.detail);
        match failed.effect {
            Effect::None => Self::NotDone(text),
            Effect::Unknown => Self::Uncertain(text),
        }
    }
}

impl From<Refusal> for ClientError {
    fn from(refusal: Refusal) -> Self {
        let text = words(&refusal.to_string());
        match refusal {
            Refusal::NotRunning => Self::Closed,
            Refusal::NotRegistered => Self::NoSuchHost,
            Refusal::Unkept(_) => Self::Storage(text),
            Refusal::Managed | Refusal::Routes(_) | Refusal::Busy | Refusal::Full => {
                Self::NotDone(text)
            }
        }
    }
}

/// Reads an id. The error says of what.
pub(crate) fn id<T: FromStr>(what: &str, text: &str) -> Result<T, ClientError> {
    text.parse().map_err(|_| ClientError::Invalid(format!("That is no id of a {what}.")))
}

/// One line that is fit to be shown: words of another side may be in it.
pub(crate) fn words(text: &str) -> String {
    text.chars().map(|each| if each.is_control() { ' ' } else { each }).take(WORDS_MAX).collect()
}

#[cfg(test)]
mod tests {
    use anyhow::Context as _;
    use wakeful_link::FailureReason;

    use super::*;

    #[test]
    fn words_of_another_side_are_one_bounded_line() {
        assert_eq!(words("Go\u{1b}[31m away\nnow"), "Go [31m away now");
        assert_eq!(words(&"é".repeat(5_000)).chars().count(), WORDS_MAX);
    }

    #[test]
    fn a_pairing_that_came_to_nothing_says_why_by_its_kind() {
        let refused = anyhow::Error::from(NotPaired::Refused("no such code".to_owned()));
        let refused = ClientError::pairing(&refused);
        assert_eq!(refused, ClientError::CodeRefused("no such code".to_owned()));
        let io = || std::io::Error::other("connection refused");
        let unreachable = Err::<(), _>(io())
            .with_context(|| NotPaired::Unreachable("http://h".to_owned()))
            .unwrap_err();
        let text = "http://h cannot be reached: connection refused".to_owned();
        assert_eq!(ClientError::pairing(&unreachable), ClientError::Unreachable(text));
        let address = Err::<(), _>(io()).context(NotPaired::Address).unwrap_err();
        assert!(matches!(ClientError::pairing(&address), ClientError::Invalid(_)));
        let kept = anyhow::Error::from(io());
        assert!(matches!(ClientError::pairing(&kept), ClientError::Storage(_)));
    }

    #[test]
    fn what_may_have_happened_is_told_from_what_certainly_did_not() {
        let failed = |effect| CallFailure {
            failure: Failure::new(FailureReason::Transport, "The connection was lost."),
            effect,
        };
        let text = "The connection was lost.".to_owned();
        assert_eq!(ClientError::from(failed(Effect::None)), ClientError::NotDone(text.clone()));
        assert_eq!(ClientError::from(failed(Effect::Unknown)), ClientError::Uncertain(text));
    }

    #[test]
    fn a_refusal_keeps_its_meaning() {
        assert_eq!(ClientError::from(Refusal::NotRunning), ClientError::Closed);
        assert_eq!(ClientError::from(Refusal::NotRegistered), ClientError::NoSuchHost);
        let full = ClientError::from(Refusal::Unkept("disk full".to_owned()));
        assert!(matches!(full, ClientError::Storage(_)));
        assert!(matches!(ClientError::from(Refusal::Managed), ClientError::NotDone(_)));
    }
}
