//! Carrying out commands, each in a task of its own.

use std::sync::Arc;

use futures::{FutureExt as _, future::BoxFuture};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;
use wakeful_wire::{
    Code, HostSessionId, Problem,
    rpc::{Call, Taken},
};

use super::calls::Key;
use crate::{credential::CredentialError, host::Host};

/// What came of a command.
pub(super) type Done = Result<Value, Problem>;

/// Begins a command. `own` is the session that asks. Once it has been let through it is carried out
/// to its end, whether or not anybody waits; while it waits to be let through, `gone` ends it.
pub(super) fn begin(
    host: &Host,
    call: Call,
    own: HostSessionId,
    key: Key,
    gone: CancellationToken,
) -> BoxFuture<'static, (Key, Done)> {
    let host = Host(Arc::clone(&host.0));
    let task = tokio::spawn(carry_out(host, call, own, gone));
    async move {
        let done = task.await.unwrap_or_else(|_panic| {
            tracing::error!("a command made the host panic");
            Err(Problem::new(Code::Internal))
        });
        (key, done)
    }
    .boxed()
}

#[expect(clippy::wildcard_enum_match_arm, reason = "`Host::call` matches every other call")]
async fn carry_out(host: Host, call: Call, own: HostSessionId, gone: CancellationToken) -> Done {
    let sessions = host.0.parts.authority.sessions();
    match call {
        Call::Activity(_) => {
            host.0.parts.used.used();
            Ok(json!({}))
        }
        Call::SessionRevoke(call) => {
            sessions.revoke(call.session).await.map(|_was_there| json!({})).map_err(refused)
        }
        Call::SessionRevokeOthers(_) => {
            sessions.revoke_others(own, None).await.map(|_many| json!({})).map_err(refused)
        }
        call => host.call_unless(call, gone.cancelled()).await.map(taken),
    }
}

fn taken(taken: Taken) -> Value {
    serde_json::to_value(taken).unwrap_or_default()
}

#[expect(clippy::needless_pass_by_value, reason = "it is what `map_err` hands over")]
fn refused(error: CredentialError) -> Problem {
    if let CredentialError::File(error) = &error {
        tracing::warn!(error = error as &dyn std::error::Error, "sessions cannot be stored");
    }
    error.problem()
}
