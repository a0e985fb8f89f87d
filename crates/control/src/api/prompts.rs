//! Prompts that are kept until an environment is awake: `/api/environments/{id}/prompts`.

use std::time::Duration;

use axum::{
    Json as Answer,
    extract::{Path, State},
};
use http::StatusCode;
use serde::Deserialize;
use utoipa_axum::{router::OpenApiRouter, routes};
use wakeful_wire::{
    Code, EnvId, Problem,
    api::{KeepPrompt, KeptPrompt, KeptPrompts},
    rpc::ClientId,
};

use super::{AppState, Asked, Refusal, body::Json, caller::Caller, events::StreamSlot};

/// The most bytes of a request: any text that may be kept fits, however it is escaped.
const BODY_MAX: usize = 1 << 20;

/// The longest that a call waits for a prompt.
const WAIT_MAX: Duration = Duration::from_secs(30);

pub(super) fn routes() -> OpenApiRouter<AppState> {
    OpenApiRouter::new().routes(routes!(list, keep)).routes(routes!(show, withdraw))
}

/// How long a call waits.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Wait {
    #[serde(default)]
    wait: u64,
}

fn client(text: &str) -> Result<ClientId, Refusal> {
    text.parse().map_err(|_| Refusal::new(Code::NotFound))
}

/// Keeps a prompt for an agent, wakes the environment, and delivers it once as soon as that is
/// ready. Sent again with the same `client`, it is the same prompt. Without `thread`, a new thread
/// is made; with it, `agent`, `project` and `title` mean nothing.
#[utoipa::path(
    post, path = "/api/environments/{id}/prompts", tag = "environments",
    request_body = KeepPrompt,
    params(("id" = EnvId, Path, description = "The environment")),
    responses(
        (status = 200, description = "It was kept before", body = KeptPrompt),
        (status = 202, description = "It is kept", body = KeptPrompt),
        (status = 409, description = "Another prompt was sent with this `client`", body = Problem, content_type = "application/problem+json"),
        (status = 413, description = "Longer than 128 KiB, or than what a host is told in one line", body = Problem, content_type = "application/problem+json"),
        (status = 423, description = "It is disabled", body = Problem, content_type = "application/problem+json"),
        (status = 429, description = "Too many prompts wait for it", body = Problem, content_type = "application/problem+json"),
    )
)]
async fn keep(
    State(state): State<AppState>,
    caller: Caller,
    Path(id): Path<String>,
    Json(request): Json<KeepPrompt, BODY_MAX>,
) -> Result<(StatusCode, Answer<KeptPrompt>), Refusal> {
    let environment = caller.environment(&state, &id).await?;
    let (new, kept) = state.prompts.keep(&environment, &request).await?;
    let status = if new { StatusCode::ACCEPTED } else { StatusCode::OK };
    Ok((status, Answer(kept)))
}

/// The prompts that are kept for it, and those that were settled within a week, oldest first.
#[utoipa::path(
    get, path = "/api/environments/{id}/prompts", tag = "environments",
    params(("id" = EnvId, Path, description = "The environment")),
    responses((status = 200, description = "The prompts", body = KeptPrompts))
)]
async fn list(
    State(state): State<AppState>,
    caller: Caller,
    Path(id): Path<String>,
) -> Result<Answer<KeptPrompts>, Refusal> {
    let environment = caller.environment(&state, &id).await?;
    Ok(Answer(state.prompts.list(&environment).await?))
}

/// What became of a prompt.
#[utoipa::path(
    get, path = "/api/environments/{id}/prompts/{client}", tag = "environments",
    params(
        ("id" = EnvId, Path, description = "The environment"),
        ("client" = String, Path, description = "The prompt's `client`"),
        ("wait" = Option<u64>, Query, description = "How many seconds to wait while it is waiting, at most 30"),
    ),
    responses(
        (status = 200, description = "The prompt", body = KeptPrompt),
        (status = 404, description = "No such prompt, or not any more", body = Problem, content_type = "application/problem+json"),
        (status = 429, description = "Too many calls wait", body = Problem, content_type = "application/problem+json"),
    )
)]
async fn show(
    State(state): State<AppState>,
    caller: Caller,
    Path((id, prompt)): Path<(String, String)>,
    Asked(wait): Asked<Wait>,
) -> Result<Answer<KeptPrompt>, Refusal> {
    let env = caller.environment(&state, &id).await?.id;
    let prompt = client(&prompt)?;
    let budget = Duration::from_secs(wait.wait).min(WAIT_MAX);
    // One that waits is an open stream like another.
    let _slot = if budget.is_zero() { None } else { Some(StreamSlot::take(&state, &caller.user)?) };
    Ok(Answer(state.prompts.find(env, prompt, budget).await?))
}

/// Takes a prompt back that still waits.
#[utoipa::path(
    delete, path = "/api/environments/{id}/prompts/{client}", tag = "environments",
    params(
        ("id" = EnvId, Path, description = "The environment"),
        ("client" = String, Path, description = "The prompt's `client`"),
    ),
    responses(
        (status = 204, description = "It is not delivered any more"),
        (status = 404, description = "No such prompt", body = Problem, content_type = "application/problem+json"),
        (status = 409, description = "It does not wait any more", body = Problem, content_type = "application/problem+json"),
    )
)]
async fn withdraw(
    State(state): State<AppState>,
    caller: Caller,
    Path((id, prompt)): Path<(String, String)>,
) -> Result<StatusCode, Refusal> {
    let env = caller.environment(&state, &id).await?.id;
    state.prompts.withdraw(env, client(&prompt)?).await?;
    Ok(StatusCode::NO_CONTENT)
}
