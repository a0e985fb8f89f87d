//! A prompt that is handed to a paired host itself.

use std::time::Duration;

use wakeful_wire::{
    host::close::SESSION_REVOKED,
    rpc::{Call, Taken},
};

use super::super::backoff::{Backoff, chance};
use crate::host::{HostClient, HostError};

/// How often a command whose answer did not come is sent again.
const TRIES: u32 = 6;
/// The longest pause between two tries.
const PAUSE_MAX: Duration = Duration::from_secs(5);

/// Makes a call. It is made again, with its ids, where it is not known whether it arrived; the host
/// takes it once.
pub(super) async fn call(host: &HostClient, call: &Call) -> Result<Taken, HostError> {
    let mut backoff = Backoff::tries(TRIES, PAUSE_MAX);
    loop {
        match once(host, call).await {
            Err(error) if error.is_passing() => match backoff.pause(chance()) {
                Some(pause) => tokio::time::sleep(pause).await,
                None => return Err(error),
            },
            answer => return answer,
        }
    }
}

async fn once(host: &HostClient, call: &Call) -> Result<Taken, HostError> {
    let mut socket = host.connect(true).await?;
    let answer = match socket.answer(call).await {
        Ok(answer) => answer,
        Err(ended) if ended.code == Some(SESSION_REVOKED) => {
            return Err(HostError::NotPaired(host.label()));
        }
        Err(ended) => return Err(HostError::Unreachable(ended.to_string())),
    };
    socket.close().await;
    let value = answer.map_err(HostError::Refused)?;
    serde_json::from_value(value).map_err(|error| HostError::Garbled(error.to_string()))
}
