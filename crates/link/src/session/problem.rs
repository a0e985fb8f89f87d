//! What a problem means to whoever asked.

use wakeful_wire::{Code, Phase, Problem};

use crate::{Failure, FailureReason};

/// What a problem means: of a call on a socket, of a request to the host or to its platform, and of
/// a refused upgrade. A `Retry-After` header is not part of a problem: whoever has it adds it to
/// the failure.
///
/// The code decides. Where a newer peer's code was read as a nearest one that says little
/// ([`Code::BadRequest`], [`Code::Internal`]), its own word on retrying does.
#[must_use]
pub fn failure_of(problem: &Problem) -> Failure {
    let reason = match (problem.code, problem.retry) {
        (Code::BadRequest, true) => FailureReason::Remote,
        (Code::Internal, false) => FailureReason::Unusable,
        (Code::WrongPhase, _) => match problem.phase {
            Some(Phase::Failed | Phase::Disabled | Phase::Deleted) => FailureReason::Unusable,
            Some(
                Phase::Suspended
                | Phase::Starting
                | Phase::Ready
                | Phase::Frozen
                | Phase::Suspending
                | Phase::Publishing,
            )
            | None => reason_of(Code::WrongPhase),
        },
        (code, _) => reason_of(code),
    };
    let detail = problem.detail.clone().unwrap_or_else(|| problem.title.clone().into_owned());
    Failure { phase: problem.phase, ..Failure::new(reason, detail) }
}

/// What a code means (spec client-runtime 2.5).
pub(super) const fn reason_of(code: Code) -> FailureReason {
    match code {
        Code::Unauthenticated | Code::BadCredentials => FailureReason::Authentication,
        Code::Forbidden | Code::CrossOrigin => FailureReason::Permission,
        Code::BadRequest
        | Code::BadTarget
        | Code::Invalid
        | Code::MethodNotAllowed
        | Code::TooLarge
        | Code::UnsupportedMedia
        | Code::Misdirected
        | Code::HeadersTooLarge => FailureReason::Configuration,
        Code::Unsupported => FailureReason::Unsupported,
        Code::NotFound
        | Code::Gone
        | Code::EnvironmentDisabled
        | Code::EnvironmentFailed
        | Code::NoSpace => FailureReason::Unusable,
        Code::TooManyRequests | Code::Overloaded => FailureReason::Overloaded,
        Code::ControlUnavailable => FailureReason::Platform,
        Code::Asleep => FailureReason::Asleep,
        Code::Starting | Code::Restarting | Code::WrongPhase => FailureReason::Starting,
        Code::Conflict | Code::Internal | Code::UpstreamFailed | Code::SurfaceFailed => {
            FailureReason::Remote
        }
    }
}

/// Whether something that failed may have happened all the same. Whoever gave a command decides by
/// it whether giving it again is safe; nothing else repeats a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Effect {
    /// It certainly did not happen.
    None,
    /// It may have happened.
    Unknown,
}

impl Effect {
    /// What a problem says of it. A host refuses before it begins, except where itself or the way
    /// to it breaks.
    #[must_use]
    pub const fn of(problem: &Problem) -> Self {
        match problem.code {
            Code::Internal
            | Code::UpstreamFailed
            | Code::SurfaceFailed
            | Code::Restarting
            | Code::ControlUnavailable => Self::Unknown,
            Code::BadRequest
            | Code::BadTarget
            | Code::Invalid
            | Code::Unauthenticated
            | Code::BadCredentials
            | Code::Forbidden
            | Code::CrossOrigin
            | Code::NotFound
            | Code::MethodNotAllowed
            | Code::Conflict
            | Code::Unsupported
            | Code::WrongPhase
            | Code::Gone
            | Code::TooLarge
            | Code::UnsupportedMedia
            | Code::Misdirected
            | Code::EnvironmentDisabled
            | Code::TooManyRequests
            | Code::HeadersTooLarge
            | Code::EnvironmentFailed
            | Code::Asleep
            | Code::Starting
            | Code::Overloaded
            | Code::NoSpace => Self::None,
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::FailureClass;

    #[test]
    fn every_code_has_a_meaning_that_agrees_with_its_own_word_on_retrying() {
        for code in Code::ALL.iter().copied() {
            let failure = failure_of(&Problem::new(code));
            assert_eq!(failure.detail, code.title());
            let may_be_repeated = match failure.class() {
                FailureClass::Transient | FailureClass::Asleep => true,
                FailureClass::Blocked => false,
            };
            // Of these the code says that the same request is of no use, but an attempt differs
            // from the one before: the thread or the phase may have moved on.
            let moves_on = matches!(code, Code::Conflict | Code::WrongPhase);
            assert_eq!(may_be_repeated, code.retryable() || moves_on, "{code}");
        }
    }

    #[test]
    fn sentence_and_phase_are_kept() {
        let problem = Problem::new(Code::Asleep).detail("It naps.").phase(Phase::Frozen);
        let failure = failure_of(&problem);
        assert_eq!(failure.reason, FailureReason::Asleep);
        assert_eq!((failure.detail.as_str(), failure.phase), ("It naps.", Some(Phase::Frozen)));
    }

    #[test]
    fn the_phase_says_whether_waiting_helps() {
        let wrong = |phase| failure_of(&Problem::new(Code::WrongPhase).phase(phase)).reason;
        assert_eq!(wrong(Phase::Publishing), FailureReason::Starting);
        assert_eq!(wrong(Phase::Disabled), FailureReason::Unusable);
        assert_eq!(wrong(Phase::Deleted), FailureReason::Unusable);
    }

    #[test]
    fn a_code_of_a_newer_peer_is_judged_by_status_and_its_word_on_retrying() {
        let table = [
            (418, true, FailureReason::Remote),
            (418, false, FailureReason::Configuration),
            (401, false, FailureReason::Authentication),
            (404, false, FailureReason::Unusable),
            (503, true, FailureReason::Overloaded),
            (599, true, FailureReason::Remote),
            (599, false, FailureReason::Unusable),
        ];
        for (status, retry, reason) in table {
            let sent = json!({ "code": "ebb", "title": "Ebb", "status": status, "retry": retry });
            let problem: Problem = serde_json::from_value(sent).unwrap();
            assert_eq!(failure_of(&problem).reason, reason, "{status} {retry}");
        }
    }

    #[test]
    fn a_host_that_fails_may_have_done_it_and_one_that_refuses_has_not() {
        assert_eq!(Effect::of(&Problem::new(Code::Internal)), Effect::Unknown);
        assert_eq!(Effect::of(&Problem::new(Code::UpstreamFailed)), Effect::Unknown);
        assert_eq!(Effect::of(&Problem::new(Code::Asleep)), Effect::None);
        assert_eq!(Effect::of(&Problem::new(Code::Invalid)), Effect::None);
        assert_eq!(Effect::of(&Problem::new(Code::TooManyRequests)), Effect::None);
    }
}
