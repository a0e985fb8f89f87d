//! `POST /api/environments/{id}/grant`: what lets a signed-in owner enter the environment's host.

use axum::{
    Json as Answer,
    extract::{Path, State},
    response::{IntoResponse, Response},
};
use http::{HeaderValue, StatusCode, header};
use ring::hmac;
use utoipa_axum::{router::OpenApiRouter, routes};
use wakeful_lifecycle::{Command, SandboxRef, Secret};
use wakeful_wire::{
    Code, EnvId, GrantId, Phase, Problem,
    api::{GrantAnswer, GrantRequest},
    host::{
        Scopes,
        grant::{Grant, LIFETIME, MAC_LEN},
    },
};

use super::{AppState, Refusal, body::MaybeJson, caller::Caller};
use crate::clock;

pub(super) fn routes() -> OpenApiRouter<AppState> {
    OpenApiRouter::new().routes(routes!(grant))
}

/// Gives a grant for the environment's host, where it is exchanged once, within a minute.
#[utoipa::path(
    post, path = "/api/environments/{id}/grant", tag = "environments",
    request_body(content = GrantRequest, description = "What is wanted; everything, without a wake, where it is left out"),
    params(("id" = EnvId, Path, description = "The environment")),
    responses(
        (status = 201, description = "The grant, a secret, and the address of the host", body = GrantAnswer),
        (status = 423, description = "It is disabled", body = Problem, content_type = "application/problem+json"),
        (status = 502, description = "It cannot start", body = Problem, content_type = "application/problem+json"),
        (status = 503, description = "It is asleep, or still starting: see `phase`", body = Problem, content_type = "application/problem+json"),
    )
)]
async fn grant(
    State(state): State<AppState>,
    caller: Caller,
    Path(id): Path<String>,
    MaybeJson(request): MaybeJson<GrantRequest>,
) -> Result<Response, Refusal> {
    let env = caller.environment(&state, &id).await?.id;
    let GrantRequest { scopes, wake } = request.unwrap_or_default();
    let scopes = scopes.unwrap_or_else(Scopes::all);
    if scopes.is_empty() {
        return Err(Refusal::invalid("scopes", "None of these is a scope that a host knows."));
    }
    let sandbox = sandbox(&state, &caller, env, wake).await?;
    let grant_id = GrantId::from_uuid(uuid::Uuid::new_v4());
    // By the wall clock: the host compares with its own, and knows no other.
    let grant = Grant::new(grant_id, env, caller.user, scopes, clock::wall());
    let answer = GrantAnswer {
        grant: seal(&grant, &sandbox.secret),
        expires_in: LIFETIME.as_secs(),
        address: state.engine.hosts().main_url(&format!("/api/host/{env}")),
    };
    tracing::info!(%env, user = %grant.subject, grant = %grant.id, "a grant was given");
    let no_store = HeaderValue::from_static("no-store");
    let headers = [(header::CACHE_CONTROL, no_store)];
    Ok((StatusCode::CREATED, headers, Answer(answer)).into_response())
}

/// The sandbox of an environment that is ready; with `wake`, one that is made so within the bound.
async fn sandbox(
    state: &AppState,
    caller: &Caller,
    env: EnvId,
    wake: bool,
) -> Result<SandboxRef, Refusal> {
    let mut seen = state.engine.sandbox(env).await?;
    if wake && seen.0 != Phase::Ready {
        state.engine.command(env, Command::WakeNow).await?;
        seen = state.engine.await_sandbox(env, state.settings.grant_wait).await?;
    }
    let (phase, sandbox) = seen;
    let code = match (phase, sandbox) {
        (Phase::Ready, Some(sandbox)) => return Ok(sandbox),
        (Phase::Ready, None) | (Phase::Starting, _) => Code::Starting,
        // Woken, it still goes to sleep first.
        (Phase::Suspending, _) if wake => Code::Starting,
        (Phase::Suspended | Phase::Suspending | Phase::Frozen, _) => Code::Asleep,
        (Phase::Failed, _) => Code::EnvironmentFailed,
        (Phase::Disabled, _) => Code::EnvironmentDisabled,
        (Phase::Publishing, _) => Code::WrongPhase,
        (Phase::Deleted, _) => Code::Gone,
    };
    let mut refusal = Refusal::new(code).phase(phase);
    if code == Code::EnvironmentFailed {
        let failure = caller.environment(state, &env.to_string()).await?.failure;
        if let Some(failure) = failure {
            *refusal.problem = refusal.problem.detail(failure.reason);
        }
    }
    Err(refusal)
}

/// Seals a grant under a sandbox's secret (decision 6).
fn seal(grant: &Grant, secret: &Secret) -> String {
    let key = hmac::Key::new(hmac::HMAC_SHA256, secret.0.as_bytes());
    grant.seal(|signed| {
        let mut mac = [0; MAC_LEN];
        mac.copy_from_slice(hmac::sign(&key, signed).as_ref());
        mac
    })
}

#[cfg(test)]
mod tests {
    use wakeful_envd::credential::GrantGate;
    use wakeful_wire::{
        Timestamp, UserName,
        host::{Denial, Scope},
    };

    use super::*;

    #[test]
    fn what_is_sealed_here_is_taken_by_the_sandbox_with_that_secret_alone() {
        let env = EnvId::from_uuid(uuid::Uuid::from_u128(1));
        let id = GrantId::from_uuid(uuid::Uuid::from_u128(2));
        let scopes = Scopes::from_iter([Scope::Read, Scope::Write]);
        let now = Timestamp(1_000_000);
        let grant = Grant::new(id, env, UserName::new("alice").unwrap(), scopes, now);
        let text = seal(&grant, &Secret("of this sandbox".into()));
        let open = |secret: &str| GrantGate::new(env, secret).open(&text, now);
        assert_eq!(open("of this sandbox"), Ok(grant));
        assert_eq!(open("of another sandbox"), Err(Denial::GrantSignature));
    }
}
