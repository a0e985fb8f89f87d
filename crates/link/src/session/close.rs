//! What the end of a socket means.

use wakeful_wire::{
    Code, Phase,
    host::{Denial, Remedy, close},
};

use super::problem::reason_of;
use crate::{Failure, FailureReason};

/// The longest part of a close frame's reason that is repeated, in characters. A close frame has no
/// room for more; whoever reads sockets may not hold to it.
const REASON_MAX: usize = 123;

/// What the end of a socket means for its connection: of one that was open, and of one that was
/// opened only to say why it is refused. Without a code the connection was lost.
///
/// The codes are those of `docs/protocol.md`, "Close codes". The words of the reason decide only
/// where a code leaves several answers: which phase it is (4503), which credential was refused
/// (4401).
#[must_use]
pub fn failure_of_close(code: Option<u16>, reason: &str) -> Failure {
    let reason: String = reason.chars().take(REASON_MAX).collect();
    let Some(code) = code else {
        return Failure::new(FailureReason::Transport, "The connection was lost.");
    };
    let phase = phase_of(&reason);
    let (why, sentence) = match code {
        4401 => match denial_of(&reason) {
            // The ticket of this attempt is used up or too old; the next attempt has another.
            Some(denial) if is_mended_by_asking_again(denial.remedy()) => {
                (FailureReason::Transport, denial.sentence())
            }
            Some(denial) => (FailureReason::Authentication, denial.sentence()),
            None => (FailureReason::Authentication, "Not signed in."),
        },
        4403 => (FailureReason::Permission, "This is not allowed."),
        4404 => (FailureReason::Unusable, "There is no such environment."),
        4423 => (FailureReason::Unusable, "The environment is switched off."),
        close::SESSION_REVOKED => {
            (FailureReason::Authentication, "The session was revoked. Sign in or pair again.")
        }
        close::SESSION_EXPIRED => {
            (FailureReason::Transport, "The session ran out. It is renewed first.")
        }
        4503 => match (phase, code_of(&reason)) {
            (Some(phase), _) => of_phase(phase),
            (None, Some(code)) => (reason_of(code), code.title()),
            (None, None) => (FailureReason::Asleep, "The environment is asleep."),
        },
        1013 => (FailureReason::Overloaded, "The host has too much to do."),
        1001 | 1012 => (FailureReason::Transport, "The host ended the connection for now."),
        1009 => (FailureReason::Transport, "A frame was too long for the other side."),
        1002 | 1003 | 1007 | 1008 => {
            (FailureReason::Transport, "The two sides did not understand each other.")
        }
        _ => (FailureReason::Transport, "The connection ended."),
    };
    let detail = if reason.is_empty() {
        format!("{sentence} (close code {code})")
    } else {
        format!("{sentence} (close code {code}: {reason})")
    };
    Failure { phase, ..Failure::new(why, detail) }
}

const fn is_mended_by_asking_again(remedy: Remedy) -> bool {
    match remedy {
        Remedy::FreshProof | Remedy::Renew | Remedy::Wait => true,
        Remedy::SignIn | Remedy::Nothing => false,
    }
}

/// What a socket that is closed because of the environment's phase means.
const fn of_phase(phase: Phase) -> (FailureReason, &'static str) {
    match phase {
        Phase::Suspended | Phase::Frozen => (FailureReason::Asleep, "The environment is asleep."),
        Phase::Suspending => (FailureReason::Asleep, "The environment is being put to sleep."),
        Phase::Starting => (FailureReason::Starting, "The environment is starting."),
        Phase::Ready => (FailureReason::Starting, "The environment is almost ready."),
        Phase::Publishing => (FailureReason::Starting, "The environment is being prepared."),
        Phase::Failed => (FailureReason::Unusable, "The environment cannot start."),
        Phase::Disabled => (FailureReason::Unusable, "The environment is switched off."),
        Phase::Deleted => (FailureReason::Unusable, "The environment was deleted."),
    }
}

fn phase_of(text: &str) -> Option<Phase> {
    serde_json::from_value(text.into()).ok()
}

fn denial_of(text: &str) -> Option<Denial> {
    Denial::ALL.iter().copied().find(|denial| denial.as_str() == text)
}

fn code_of(text: &str) -> Option<Code> {
    Code::ALL.iter().copied().find(|code| code.as_str() == text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::FailureClass;

    #[test]
    fn each_close_code_has_its_meaning() {
        use FailureReason::{
            Asleep, Authentication, Overloaded, Permission, Platform, Starting, Transport, Unusable,
        };
        let table = [
            (None, "", Transport, None),
            (Some(1000), "", Transport, None),
            (Some(1001), "the host is ending", Transport, None),
            (Some(1001), "silent", Transport, None),
            (Some(1002), "", Transport, None),
            (Some(1006), "", Transport, None),
            (Some(1008), "not a frame of this protocol", Transport, None),
            (Some(1009), "a frame is too long", Transport, None),
            (Some(1011), "", Transport, None),
            (Some(1012), "restarting", Transport, None),
            (Some(1013), "", Overloaded, None),
            (Some(4000), "", Transport, None),
            (Some(4401), "", Authentication, None),
            (Some(4401), "unauthenticated", Authentication, None),
            (Some(4401), "session_unknown", Authentication, None),
            (Some(4401), "ticket_malformed", Authentication, None),
            (Some(4401), "ticket_used", Transport, None),
            (Some(4401), "ticket_expired", Transport, None),
            (Some(4403), "forbidden", Permission, None),
            (Some(4403), "cross_origin", Permission, None),
            (Some(4404), "not_found", Unusable, None),
            (Some(4404), "deleted", Unusable, Some(Phase::Deleted)),
            (Some(4423), "disabled", Unusable, Some(Phase::Disabled)),
            (Some(4411), "session_revoked", Authentication, None),
            (Some(4412), "session_expired", Transport, None),
            (Some(4503), "suspending", Asleep, Some(Phase::Suspending)),
            (Some(4503), "suspended", Asleep, Some(Phase::Suspended)),
            (Some(4503), "frozen", Asleep, Some(Phase::Frozen)),
            (Some(4503), "starting", Starting, Some(Phase::Starting)),
            (Some(4503), "ready", Starting, Some(Phase::Ready)),
            (Some(4503), "publishing", Starting, Some(Phase::Publishing)),
            (Some(4503), "failed", Unusable, Some(Phase::Failed)),
            (Some(4503), "disabled", Unusable, Some(Phase::Disabled)),
            (Some(4503), "deleted", Unusable, Some(Phase::Deleted)),
            (Some(4503), "asleep", Asleep, None),
            (Some(4503), "restarting", Starting, None),
            (Some(4503), "overloaded", Overloaded, None),
            (Some(4503), "control_unavailable", Platform, None),
            (Some(4503), "", Asleep, None),
            (Some(4503), "moonlit", Asleep, None),
        ];
        for (code, words, reason, phase) in table {
            let failure = failure_of_close(code, words);
            assert_eq!((failure.reason, failure.phase), (reason, phase), "{code:?} {words}");
            assert!(failure.detail.contains(words), "{code:?} {words}: {}", failure.detail);
        }
    }

    #[test]
    fn a_revoked_session_waits_for_a_person_and_one_that_ran_out_is_renewed() {
        let revoked = failure_of_close(Some(4411), "session_revoked");
        assert_eq!(revoked.class(), FailureClass::Blocked);
        assert!(revoked.detail.contains("revoked"));
        let expired = failure_of_close(Some(4412), "session_expired");
        assert_eq!(expired.class(), FailureClass::Transient);
        assert!(expired.detail.contains("ran out"));
    }

    #[test]
    fn a_long_reason_is_cut() {
        let failure = failure_of_close(Some(1011), &"é".repeat(100_000));
        assert!(failure.detail.chars().count() < 256);
    }
}
