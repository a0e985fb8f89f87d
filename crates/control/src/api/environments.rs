//! Environments: `/api/environments/{id}` and what can be done to one.

use std::time::Duration;

use axum::{
    Json as Answer,
    extract::{Path, State},
};
use http::StatusCode;
use serde::Deserialize;
use utoipa_axum::{router::OpenApiRouter, routes};
use wakeful_lifecycle::Command;
use wakeful_wire::{
    EnvId, Phase, Problem,
    api::{Environment, Explain},
};

use super::{AppState, Asked, Extend, Refusal, body::MaybeJson, caller::Caller};

/// How long an environment is kept awake where nobody says.
const EXTEND_DEFAULT: Extend = Extend { minutes: 60 };
/// The longest that it can be kept awake by one call.
const EXTEND_MAX_MINUTES: u32 = 24 * 60;

pub(super) fn routes() -> OpenApiRouter<AppState> {
    OpenApiRouter::new()
        .routes(routes!(show))
        .routes(routes!(wake))
        .routes(routes!(suspend))
        .routes(routes!(restart))
        .routes(routes!(extend))
        .routes(routes!(explain))
}

/// How long a call may wait.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Wait {
    #[serde(default)]
    wait_ms: u64,
}

/// An environment.
#[utoipa::path(
    get, path = "/api/environments/{id}", tag = "environments",
    params(("id" = EnvId, Path, description = "The environment")),
    responses(
        (status = 200, description = "The environment", body = Environment),
        (status = 404, description = "No such environment", body = Problem, content_type = "application/problem+json"),
    )
)]
async fn show(
    State(state): State<AppState>,
    caller: Caller,
    Path(id): Path<String>,
) -> Result<Answer<Environment>, Refusal> {
    caller.environment(&state, &id).await.map(Answer)
}

/// Wakes it. Also tries a failed one again.
#[utoipa::path(
    post, path = "/api/environments/{id}/wake", tag = "environments",
    params(
        ("id" = EnvId, Path, description = "The environment"),
        ("wait_ms" = Option<u64>, Query, description = "How long to wait until it is ready, at most a minute"),
    ),
    responses(
        (status = 200, description = "It is ready", body = Environment),
        (status = 202, description = "It wakes, or has failed: see its phase", body = Environment),
        (status = 423, description = "It is disabled", body = Problem, content_type = "application/problem+json"),
    )
)]
async fn wake(
    State(state): State<AppState>,
    caller: Caller,
    Path(id): Path<String>,
    Asked(wait): Asked<Wait>,
) -> Result<(StatusCode, Answer<Environment>), Refusal> {
    started(&state, &caller, &id, Command::WakeNow, &wait).await
}

/// Starts it anew in a fresh sandbox.
#[utoipa::path(
    post, path = "/api/environments/{id}/restart", tag = "environments",
    params(
        ("id" = EnvId, Path, description = "The environment"),
        ("wait_ms" = Option<u64>, Query, description = "How long to wait until it is ready, at most a minute"),
    ),
    responses(
        (status = 200, description = "It is ready", body = Environment),
        (status = 202, description = "It starts, or has failed: see its phase", body = Environment),
        (status = 409, description = "Not possible in this phase", body = Problem, content_type = "application/problem+json"),
        (status = 423, description = "It is disabled", body = Problem, content_type = "application/problem+json"),
    )
)]
async fn restart(
    State(state): State<AppState>,
    caller: Caller,
    Path(id): Path<String>,
    Asked(wait): Asked<Wait>,
) -> Result<(StatusCode, Answer<Environment>), Refusal> {
    started(&state, &caller, &id, Command::Restart, &wait).await
}

async fn started(
    state: &AppState,
    caller: &Caller,
    id: &str,
    command: Command,
    wait: &Wait,
) -> Result<(StatusCode, Answer<Environment>), Refusal> {
    let env = caller.environment(state, id).await?.id;
    let mut environment = state.engine.command(env, command).await?;
    let budget = Duration::from_millis(wait.wait_ms).min(state.settings.wait_max);
    if !budget.is_zero() {
        environment = state.engine.await_settled(env, budget).await?;
    }
    let ready = environment.phase == Phase::Ready;
    let status = if ready { StatusCode::OK } else { StatusCode::ACCEPTED };
    Ok((status, Answer(environment)))
}

/// Puts it to sleep now. Whatever is open there is closed.
#[utoipa::path(
    post, path = "/api/environments/{id}/suspend", tag = "environments",
    params(("id" = EnvId, Path, description = "The environment")),
    responses(
        (status = 202, description = "It goes to sleep", body = Environment),
        (status = 423, description = "It is disabled", body = Problem, content_type = "application/problem+json"),
    )
)]
async fn suspend(
    State(state): State<AppState>,
    caller: Caller,
    Path(id): Path<String>,
) -> Result<(StatusCode, Answer<Environment>), Refusal> {
    let env = caller.environment(&state, &id).await?.id;
    let environment = state.engine.command(env, Command::Suspend).await?;
    Ok((StatusCode::ACCEPTED, Answer(environment)))
}

/// Keeps it awake for a while, whatever happens there. It wakes nothing.
#[utoipa::path(
    post, path = "/api/environments/{id}/extend", tag = "environments",
    request_body(content = Extend, description = "For how long; an hour where it is left out"),
    params(("id" = EnvId, Path, description = "The environment")),
    responses((status = 200, description = "The environment", body = Environment))
)]
async fn extend(
    State(state): State<AppState>,
    caller: Caller,
    Path(id): Path<String>,
    MaybeJson(body): MaybeJson<Extend>,
) -> Result<Answer<Environment>, Refusal> {
    let env = caller.environment(&state, &id).await?.id;
    let Extend { minutes } = body.unwrap_or(EXTEND_DEFAULT);
    keep_awake(&state, env, minutes).await.map(Answer)
}

/// Keeps an environment awake for some minutes.
pub(crate) async fn keep_awake(
    state: &AppState,
    env: EnvId,
    minutes: u32,
) -> Result<Environment, Refusal> {
    if minutes == 0 || minutes > EXTEND_MAX_MINUTES {
        let detail = format!("Between 1 and {EXTEND_MAX_MINUTES} minutes.");
        return Err(Refusal::invalid("minutes", detail));
    }
    let time = Duration::from_secs(u64::from(minutes) * 60);
    Ok(state.engine.extend(env, time).await?)
}

/// Why it is awake and when it will sleep.
#[utoipa::path(
    get, path = "/api/environments/{id}/explain", tag = "environments",
    params(("id" = EnvId, Path, description = "The environment")),
    responses(
        (status = 200, description = "Each thing that keeps it awake", body = Explain),
        (status = 404, description = "No such environment", body = Problem, content_type = "application/problem+json"),
    )
)]
async fn explain(
    State(state): State<AppState>,
    caller: Caller,
    Path(id): Path<String>,
) -> Result<Answer<Explain>, Refusal> {
    let env = caller.environment(&state, &id).await?.id;
    Ok(Answer(state.engine.explain(env).await?))
}
