//! Whose tokens these are.

use wakeful_wire::{
    EnvId, HostSessionId, UserName,
    host::{SessionView, grant::SealedGrant},
};

use crate::{Failure, FailureReason};

use super::Way;

/// Who this client is at the host: as it was told, or as the first answer said. Whatever says
/// something else afterwards is refused, so that a client never goes on as somebody else (a
/// browser's cookie may be another account's by now).
#[derive(Debug, Default)]
pub(super) struct Identity {
    account: Option<UserName>,
    environment: Option<EnvId>,
    /// The session of a pairing. The sessions of grants change with each renewal.
    session: Option<HostSessionId>,
    paired: bool,
}

impl Identity {
    pub(super) fn of(way: &Way) -> Self {
        match way {
            Way::Environment { account } => Self { account: account.clone(), ..Self::default() },
            Way::Paired { session, .. } => {
                Self { session: *session, paired: true, ..Self::default() }
            }
        }
    }

    /// Whether a grant is for the same account and environment. One of a form that this release
    /// cannot read passes: the host decides about it, and its session is checked all the same.
    ///
    /// # Errors
    /// It is for another.
    pub(super) fn check_grant(&mut self, text: &str) -> Result<(), Failure> {
        let Some(grant) = SealedGrant::parse(text).ok().and_then(|sealed| sealed.read().ok())
        else {
            return Ok(());
        };
        agree(&mut self.account, grant.subject, ANOTHER_ACCOUNT)?;
        agree(&mut self.environment, grant.audience, ANOTHER_HOST)
    }

    /// Whether a token stands for the same pairing.
    ///
    /// # Errors
    /// It stands for another.
    pub(super) fn check_token(&mut self, session: HostSessionId) -> Result<(), Failure> {
        if self.paired { agree(&mut self.session, session, ANOTHER_PAIRING) } else { Ok(()) }
    }

    /// Whether a session, as the host shows it to its own socket, is of the same account and
    /// pairing.
    ///
    /// # Errors
    /// It is of another.
    pub(super) fn check_session(&mut self, session: &SessionView) -> Result<(), Failure> {
        self.check_token(session.id)?;
        agree(&mut self.account, session.subject.clone(), ANOTHER_ACCOUNT)
    }
}

const ANOTHER_ACCOUNT: &str = "The answer is for another account: sign in again.";
const ANOTHER_HOST: &str = "The grant is for another environment.";
const ANOTHER_PAIRING: &str = "The answer is for another pairing: pair with the host again.";

/// Whether what is said is what is known. What is said first is known from then on.
fn agree<T: PartialEq>(known: &mut Option<T>, said: T, otherwise: &str) -> Result<(), Failure> {
    match known {
        Some(known) if *known != said => {
            Err(Failure::new(FailureReason::Authentication, otherwise))
        }
        Some(_) => Ok(()),
        None => {
            *known = Some(said);
            Ok(())
        }
    }
}
