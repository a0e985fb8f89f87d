//! Variables and secrets of an environment: `/api/environments/{id}/variables`.

use axum::{
    Json as Answer,
    extract::{Path, State},
};
use http::StatusCode;
use utoipa_axum::{router::OpenApiRouter, routes};
use wakeful_wire::{EnvId, Problem};

use super::{AppState, Refusal, SetVariable, Variable, body::Json, caller::Caller};

pub(super) fn routes() -> OpenApiRouter<AppState> {
    OpenApiRouter::new().routes(routes!(list)).routes(routes!(set, remove))
}

/// The variables of an environment, by name. Secrets are masked.
#[utoipa::path(
    get, path = "/api/environments/{id}/variables", tag = "environments",
    params(("id" = EnvId, Path, description = "The environment")),
    responses((status = 200, description = "The variables", body = Vec<Variable>))
)]
async fn list(
    State(state): State<AppState>,
    caller: Caller,
    Path(id): Path<String>,
) -> Result<Answer<Vec<Variable>>, Refusal> {
    let env = caller.environment(&state, &id).await?.id;
    let variables = state.variables.list(env).await?;
    Ok(Answer(variables.into_iter().map(Variable::from).collect()))
}

/// Sets a variable. Processes get it when the environment starts the next time.
#[utoipa::path(
    put, path = "/api/environments/{id}/variables/{name}", tag = "environments",
    request_body = SetVariable,
    params(
        ("id" = EnvId, Path, description = "The environment"),
        ("name" = String, Path, description = "The variable's name"),
    ),
    responses(
        (status = 201, description = "Set; there was none of that name"),
        (status = 204, description = "Set anew"),
        (status = 400, description = "What cannot be a name or a value", body = Problem, content_type = "application/problem+json"),
    )
)]
async fn set(
    State(state): State<AppState>,
    caller: Caller,
    Path((id, name)): Path<(String, String)>,
    Json(body): Json<SetVariable>,
) -> Result<StatusCode, Refusal> {
    let env = caller.environment(&state, &id).await?.id;
    let new = state.variables.set(env, &name, &body.value, body.secret).await?;
    Ok(if new { StatusCode::CREATED } else { StatusCode::NO_CONTENT })
}

/// Removes a variable.
#[utoipa::path(
    delete, path = "/api/environments/{id}/variables/{name}", tag = "environments",
    params(
        ("id" = EnvId, Path, description = "The environment"),
        ("name" = String, Path, description = "The variable's name"),
    ),
    responses(
        (status = 204, description = "Removed"),
        (status = 404, description = "No such variable", body = Problem, content_type = "application/problem+json"),
    )
)]
async fn remove(
    State(state): State<AppState>,
    caller: Caller,
    Path((id, name)): Path<(String, String)>,
) -> Result<StatusCode, Refusal> {
    let env = caller.environment(&state, &id).await?.id;
    state.variables.remove(env, &name).await?;
    Ok(StatusCode::NO_CONTENT)
}
