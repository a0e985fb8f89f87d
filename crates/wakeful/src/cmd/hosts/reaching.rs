//! One host, reached: until it can be asked, and asking it.

use std::time::Duration;

use serde_json::Value;
use tokio::{sync::broadcast::Receiver, time::timeout};
use wakeful_link::{
    Change, ConnectionPhase, ConnectionState, Failure, FailureClass, FailureReason,
    boundary::{CallFailure, Token},
    session::Effect,
};
use wakeful_wire::{HostId, rpc::Call};

use super::{
    super::{
        backoff::{Backoff, chance},
        which::PAIRED,
    },
    failure::HostFailure,
    waiting::until,
};
use crate::connect::Reached;

/// How long a host that is woken may take: a start, and what a host needs after it.
pub(in crate::cmd) const WAKING: Duration = Duration::from_secs(120);
/// How often a call whose answer did not come is made again.
const TRIES: u32 = 6;
/// The longest pause between two of them.
const PAUSE_MAX: Duration = Duration::from_secs(5);
/// Longer than the link lets a call be under way.
const ANSWER_TIME: Duration = Duration::from_secs(120);

/// How much is put up with before a host counts as not to be reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::cmd) enum Tries {
    /// It wakes and starts, but where nobody answers at all that is it.
    First,
    /// Also a way that is broken for a while.
    All(Duration),
}

impl Tries {
    const fn patience(self) -> Duration {
        match self {
            Self::First => WAKING,
            Self::All(patience) => patience,
        }
    }

    /// Why the host is not to be reached, if that is so.
    fn end(self, connection: &ConnectionState) -> Option<Failure> {
        let failure = || connection.last_failure.clone();
        let is_broken = |failure: &Failure| {
            matches!(failure.reason, FailureReason::Network | FailureReason::Platform)
        };
        match connection.phase {
            ConnectionPhase::Blocked => failure(),
            ConnectionPhase::Backoff if self == Self::First => failure().filter(is_broken),
            ConnectionPhase::Backoff
            | ConnectionPhase::Available
            | ConnectionPhase::Offline
            | ConnectionPhase::Connecting
            | ConnectionPhase::Connected
            | ConnectionPhase::Asleep => None,
        }
    }
}

/// Waits until a host can be asked. It is woken if it sleeps.
///
/// # Errors
/// It cannot be reached.
pub(in crate::cmd) async fn connected(reached: &Reached, tries: Tries) -> Result<(), HostFailure> {
    let host = reached.host;
    let mut intended = false;
    let found = until(&reached.client, tries.patience(), |link, now| {
        // An environment that is not known yet comes with its platform's list.
        intended = intended || link.intend(now, host);
        let connection = link.connection(host)?;
        if connection.phase == ConnectionPhase::Connected {
            return Some(Ok(()));
        }
        tries.end(connection).map(Err)
    })
    .await;
    let last = || reached.client.with(|link, _| link.connection(host)?.last_failure.clone());
    let silent = || Failure::new(FailureReason::Timeout, "It cannot be reached.");
    found
        .unwrap_or_else(|| Err(last().unwrap_or_else(silent)))
        .map_err(|failure| failed(reached, failure))
}

/// Makes a call once. Whether it happened is not known where the failure says so.
///
/// # Errors
/// It was refused, or no answer came.
pub(in crate::cmd) async fn call(
    reached: &Reached,
    ask: impl FnOnce(&mut wakeful_link::Link, wakeful_link::Instant) -> Option<Token>,
) -> Result<Value, CallFailure> {
    let mut changes = reached.client.changes();
    let lost = |detail: &str| CallFailure {
        failure: Failure::new(FailureReason::Transport, detail),
        effect: Effect::Unknown,
    };
    let Some(asked) = reached.client.with(ask) else {
        return Err(lost("There is no such host any more."));
    };
    timeout(ANSWER_TIME, answer(&mut changes, reached.host, asked))
        .await
        .ok()
        .flatten()
        .unwrap_or_else(|| Err(lost("The answer was missed.")))
}

/// Makes a call that its host takes once, by the ids in it, however often it is made. It is made
/// again where it is not known whether it arrived.
///
/// # Errors
/// It was refused, or tried often enough.
pub(in crate::cmd) async fn call_until_known(
    reached: &Reached,
    asked: &Call,
    tries: Tries,
) -> Result<Value, HostFailure> {
    let mut backoff = Backoff::tries(TRIES, PAUSE_MAX);
    loop {
        connected(reached, tries).await?;
        let host = reached.host;
        match call(reached, |link, now| link.call(now, host, asked.clone())).await {
            Ok(value) => return Ok(value),
            Err(failure) if may_be_lost(&failure) => match backoff.pause(chance()) {
                Some(pause) => tokio::time::sleep(pause).await,
                None => return Err(failed(reached, failure.failure)),
            },
            Err(failure) => return Err(failed(reached, failure.failure)),
        }
    }
}

/// Whether making the call again is right: it may not have arrived, or was not looked at.
fn may_be_lost(failed: &CallFailure) -> bool {
    let passing = failed.failure.class() == FailureClass::Transient;
    let unseen = matches!(
        failed.failure.reason,
        FailureReason::Transport | FailureReason::Overloaded | FailureReason::Starting
    );
    passing && (failed.effect == Effect::Unknown || unseen)
}

pub(in crate::cmd) fn failed(reached: &Reached, failure: Failure) -> HostFailure {
    let paired = reached.name.starts_with(PAIRED);
    HostFailure { name: reached.name.clone(), paired, failure }
}

/// The outcome of a call, once it is answered; nothing where it may be among what was missed.
async fn answer(
    changes: &mut Receiver<Change>,
    of: HostId,
    asked: Token,
) -> Option<Result<Value, CallFailure>> {
    loop {
        match changes.recv().await {
            // Each host numbers its own calls.
            Ok(Change::Answered { host, token, outcome }) if (host, token) == (of, asked) => {
                return Some(outcome);
            }
            Ok(_) => {}
            Err(_) => return None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_is_made_again_only_where_it_may_be_lost_or_was_not_looked_at() {
        let table = [
            (FailureReason::Transport, Effect::Unknown, true),
            (FailureReason::Transport, Effect::None, true),
            (FailureReason::Timeout, Effect::Unknown, true),
            (FailureReason::Overloaded, Effect::None, true),
            (FailureReason::Starting, Effect::None, true),
            (FailureReason::Remote, Effect::Unknown, true),
            (FailureReason::Remote, Effect::None, false),
            (FailureReason::Configuration, Effect::None, false),
            (FailureReason::Unusable, Effect::Unknown, false),
            (FailureReason::Authentication, Effect::None, false),
        ];
        for (reason, effect, expected) in table {
            let failed = CallFailure { failure: Failure::new(reason, "x"), effect };
            assert_eq!(may_be_lost(&failed), expected, "{reason} {effect:?}");
        }
    }

    #[test]
    fn a_host_that_starts_is_waited_for_and_one_that_is_not_there_is_not() {
        let state = |phase, reason| ConnectionState {
            phase,
            last_failure: Some(Failure::new(reason, "x")),
            ..ConnectionState::default()
        };
        let long = Tries::All(Duration::from_secs(20));
        let table = [
            (ConnectionPhase::Backoff, FailureReason::Starting, false, false),
            (ConnectionPhase::Backoff, FailureReason::Network, true, false),
            (ConnectionPhase::Connecting, FailureReason::Network, false, false),
            (ConnectionPhase::Asleep, FailureReason::Asleep, false, false),
            (ConnectionPhase::Blocked, FailureReason::Authentication, true, true),
        ];
        for (phase, reason, first, all) in table {
            let state = state(phase, reason);
            assert_eq!(Tries::First.end(&state).is_some(), first, "{phase:?} {reason}");
            assert_eq!(long.end(&state).is_some(), all, "{phase:?} {reason}");
        }
    }
}
