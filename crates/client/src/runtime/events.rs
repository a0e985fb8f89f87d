//! A platform's stream of changes.

use std::sync::Weak;

use wakeful_link::{
    Failure, FailureReason,
    http::{Reply, Side},
    platform::StreamId,
    route::Address,
};
use wakeful_wire::api::Environment;

use super::Shared;
use crate::http::{Sender, sse};

/// Opens the stream and brings the link what comes by it. Ends with the stream.
pub(super) async fn follow(
    shared: Weak<Shared>,
    sender: Sender,
    platform: Address,
    stream: StreamId,
) {
    let failure = match sender.stream(&platform, "/api/events").await {
        Err(reply) => failure_of(&reply),
        Ok(response) => {
            {
                let Some(shared) = shared.upgrade() else { return };
                shared.put(|link, now| link.handle_events_opened(now, &platform, stream));
            }
            read(&shared, response, &platform, stream).await
        }
    };
    if let Some(shared) = shared.upgrade() {
        shared.put(|link, now| link.handle_events_ended(now, &platform, stream, failure));
    }
}

fn failure_of(reply: &Reply) -> Failure {
    match reply {
        Reply::Answered(answer) => answer.failure(Side::Platform),
        Reply::TimedOut | Reply::Unreachable(_) | Reply::Unproven(_) => {
            match reply.read::<()>(Side::Platform) {
                Err(failure) => failure,
                Ok(()) => Failure::new(FailureReason::Platform, "The platform says nothing."),
            }
        }
    }
}

/// Reads until the stream ends, and says why it did.
async fn read(
    shared: &Weak<Shared>,
    mut response: reqwest::Response,
    platform: &Address,
    stream: StreamId,
) -> Failure {
    let mut reader = sse::Reader::default();
    loop {
        let Ok(Some(chunk)) = response.chunk().await else {
            return Failure::new(FailureReason::Transport, "The platform's stream ended.");
        };
        let Some(shared) = shared.upgrade() else {
            return Failure::new(FailureReason::Transport, "Nobody listens any more.");
        };
        shared.put(|link, now| link.handle_events_heard(now, platform, stream));
        let Ok(events) = reader.push(&chunk) else {
            return Failure::new(FailureReason::Platform, "The platform's events are too long.");
        };
        for event in events {
            // What a newer platform tells as well, or otherwise, is not for this client.
            if event.kind != "environment" {
                continue;
            }
            if let Ok(environment) = serde_json::from_str::<Environment>(&event.data) {
                let (env, phase) = (environment.id, environment.phase);
                shared.put(|link, now| link.handle_environment(now, platform, stream, env, phase));
            }
        }
    }
}
