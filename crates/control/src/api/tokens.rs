//! Bearer tokens: `/api/tokens`.

use axum::{
    Json as Answer,
    extract::{Path, State},
};
use http::StatusCode;
use utoipa_axum::{router::OpenApiRouter, routes};
use wakeful_wire::Problem;

use super::{AppState, CreateToken, CreatedToken, Refusal, Token, body::Json, caller::Caller};

pub(super) fn routes() -> OpenApiRouter<AppState> {
    OpenApiRouter::new().routes(routes!(list, create)).routes(routes!(revoke))
}

/// The tokens of the user, newest first, without their texts.
#[utoipa::path(
    get, path = "/api/tokens", tag = "accounts",
    responses((status = 200, description = "The tokens", body = Vec<Token>))
)]
async fn list(
    State(state): State<AppState>,
    caller: Caller,
) -> Result<Answer<Vec<Token>>, Refusal> {
    let tokens = state.accounts.tokens(&caller.user).await?;
    Ok(Answer(tokens.into_iter().map(Token::from).collect()))
}

/// Makes a token. Its text is shown once.
#[utoipa::path(
    post, path = "/api/tokens", tag = "accounts", request_body = CreateToken,
    responses((status = 201, description = "The token", body = CreatedToken))
)]
async fn create(
    State(state): State<AppState>,
    caller: Caller,
    Json(body): Json<CreateToken>,
) -> Result<(StatusCode, Answer<CreatedToken>), Refusal> {
    let token = state.accounts.create_token(&caller.user, &body.name).await?;
    let created = CreatedToken {
        token: token.text,
        id: token.view.id,
        name: token.view.name,
        created_at: token.view.created_at,
    };
    Ok((StatusCode::CREATED, Answer(created)))
}

/// Ends a token.
#[utoipa::path(
    delete, path = "/api/tokens/{id}", tag = "accounts",
    params(("id" = String, Path, description = "The token's id")),
    responses(
        (status = 204, description = "Ended"),
        (status = 404, description = "No such token", body = Problem, content_type = "application/problem+json"),
    )
)]
async fn revoke(
    State(state): State<AppState>,
    caller: Caller,
    Path(id): Path<String>,
) -> Result<StatusCode, Refusal> {
    state.accounts.revoke_token(&caller.user, &id).await?;
    Ok(StatusCode::NO_CONTENT)
}
