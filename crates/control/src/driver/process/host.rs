//! The environment server of a sandbox, as the driver reaches it.
//!
//! An `envd` of a release before it had one may still run, adopted: it knows neither ask and refuses
//! both as [`Refusal::Unknown`]. Its status states no fault and no turns, by default.

use std::time::Duration;

use wakeful_lifecycle::{
    Secret,
    port::{DeliverError, DriverError},
};
use wakeful_wire::{
    rpc::{Call, Taken},
    sandbox::{AskKind, EnvdStatus, Refusal, Reply},
    time::millis,
};

use super::{ASK_TIME, another_secret, ask, run_dir::RunDir};

/// How long a delivery may take. It is longer than `envd` lets it take, whose answer says more.
const DELIVERY_TIME: Duration = Duration::from_secs(25);

/// The `Host` of requests to the host itself, where it serves.
pub(super) fn authority(status: &EnvdStatus) -> Option<String> {
    status.host.fault.is_none().then(|| "host".to_owned())
}

/// Asks for a drain. An `envd` that has no host runs no turns, and never will.
pub(super) async fn drain(
    dir: &RunDir,
    secret: &Secret,
    hold: Duration,
) -> Result<u32, DriverError> {
    let ask = AskKind::Drain { hold_ms: millis(hold) };
    match ask::once(&dir.socket(), secret, ask, ASK_TIME).await {
        Ok(Reply::Drained { turns }) => Ok(turns),
        Ok(Reply::Refused(Refusal::Unknown)) => Ok(0),
        Ok(Reply::Refused(Refusal::Unauthorized)) => Err(another_secret()),
        Ok(_) => Err(DriverError::passing("it is being taken down")),
        Err(error) => Err(DriverError::passing(error.to_string())),
    }
}

/// Delivers a call. One that no host there can take is for a later incarnation.
pub(super) async fn deliver(
    dir: &RunDir,
    secret: &Secret,
    call: &Call,
) -> Result<Taken, DeliverError> {
    let ask = AskKind::Deliver { call: Box::new(call.clone()) };
    let answer = ask::once(&dir.socket(), secret, ask, DELIVERY_TIME).await;
    Err(DeliverError::Later(match answer {
        Ok(Reply::Taken(taken)) => return Ok(taken),
        Ok(Reply::Refused(refusal)) => match refusal {
            Refusal::Host { problem } => {
                if !problem.retry {
                    return Err(DeliverError::Refused(*problem));
                }
                let title = problem.title;
                problem.detail.unwrap_or_else(|| title.into_owned())
            }
            Refusal::Unknown => "its envd is of an older release and has no host".to_owned(),
            Refusal::Unauthorized => another_secret().to_string(),
            Refusal::GivenUp { reason } | Refusal::Connect { reason } => reason,
            Refusal::NotReady => "its host is not open yet".to_owned(),
            Refusal::Stopping => "it is being taken down".to_owned(),
        },
        Ok(Reply::Status(_) | Reply::Done | Reply::Drained { .. }) => {
            "envd's answer makes no sense".to_owned()
        }
        Err(error) => error.to_string(),
    }))
}
