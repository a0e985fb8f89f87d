//! Asking something and waiting for what comes of it.

use std::time::Duration;

use serde::de::DeserializeOwned;
use tokio::{sync::broadcast::Receiver, time::timeout};
use wakeful_link::{
    Change, Instant, Link,
    registry::{OperationId, Refusal},
};
use wakeful_wire::{HostId, rpc::Call};

use super::Live;
use crate::error::ClientError;

/// Longer than the link lets a call be under way.
const ANSWER_TIME: Duration = Duration::from_secs(120);
/// Longer than a disk takes that still works.
const KEEPING_TIME: Duration = Duration::from_secs(30);

impl Live {
    /// Makes a call of a host, once.
    pub(super) async fn ask<A: DeserializeOwned>(
        &self,
        host: HostId,
        call: Call,
    ) -> Result<A, ClientError> {
        let mut changes = self.client.changes();
        let asked = self.client.with(|link, now| link.call(now, host, call));
        let asked = asked.ok_or(ClientError::NoSuchHost)?;
        let answered = hear(&mut changes, ANSWER_TIME, |change| {
            // Each host numbers its own calls.
            if let Change::Answered { host: of, token, outcome } = change
                && (of, token) == (host, asked)
            {
                return Some(outcome);
            }
            None
        });
        let answer = answered.await.ok_or_else(unheard)??;
        serde_json::from_value(answer).map_err(|_| {
            ClientError::Uncertain("The host's answer cannot be understood.".to_owned())
        })
    }

    /// Has something done to what is kept of hosts, and waits until it is.
    pub(super) async fn operate(
        &self,
        ask: impl FnOnce(&mut Link, Instant) -> Result<Option<OperationId>, Refusal>,
    ) -> Result<(), ClientError> {
        let mut changes = self.client.changes();
        let asked = self.client.with(ask)?.ok_or(ClientError::NoSuchHost)?;
        let ended = hear(&mut changes, KEEPING_TIME, |change| {
            if let Change::Operation { operation, outcome, .. } = change
                && operation == asked
            {
                return Some(outcome);
            }
            None
        });
        Ok(ended.await.ok_or_else(unheard)??)
    }

    /// Reads something of a host or does something to it.
    pub(super) fn with_host<R>(
        &self,
        host: HostId,
        look: impl FnOnce(&mut Link, Instant) -> R,
    ) -> Result<R, ClientError> {
        self.client.with(|link, now| {
            if link.entry(host).is_none() {
                return Err(ClientError::NoSuchHost);
            }
            Ok(look(link, now))
        })
    }
}

/// What is looked for in the changes that come; nothing if it does not come in time or may be among
/// what was missed.
async fn hear<R>(
    changes: &mut Receiver<Change>,
    patience: Duration,
    mut wanted: impl FnMut(Change) -> Option<R>,
) -> Option<R> {
    let hearing = async {
        loop {
            match changes.recv().await {
                Ok(change) => {
                    if let Some(found) = wanted(change) {
                        return Some(found);
                    }
                }
                Err(_) => return None,
            }
        }
    };
    timeout(patience, hearing).await.ok().flatten()
}

fn unheard() -> ClientError {
    ClientError::Uncertain("The answer was missed: it may have happened or not.".to_owned())
}
