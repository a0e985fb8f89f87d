//! `/healthz`, `/readyz`, `/metrics`: for whoever runs the platform.

use axum::{
    extract::State,
    response::{IntoResponse, Response},
};
use http::header;
use utoipa_axum::{router::OpenApiRouter, routes};
use wakeful_wire::{Code, Problem};

use super::{AppState, Refusal};

pub(super) fn routes() -> OpenApiRouter<AppState> {
    OpenApiRouter::new().routes(routes!(healthz)).routes(routes!(readyz)).routes(routes!(metrics))
}

/// The process lives.
#[utoipa::path(
    get, path = "/healthz", tag = "operation", security(()),
    responses((status = 200, description = "It lives", body = String, content_type = "text/plain"))
)]
async fn healthz() -> &'static str {
    "ok\n"
}

/// Requests can be served: the database answers.
#[utoipa::path(
    get, path = "/readyz", tag = "operation", security(()),
    responses(
        (status = 200, description = "Ready", body = String, content_type = "text/plain"),
        (status = 503, description = "Not ready", body = Problem, content_type = "application/problem+json"),
    )
)]
async fn readyz(State(state): State<AppState>) -> Result<&'static str, Refusal> {
    match state.accounts.check().await {
        Ok(()) => Ok("ready\n"),
        Err(error) => {
            let error: &(dyn std::error::Error + 'static) = &error;
            tracing::warn!(error, "not ready");
            Err(Refusal::because(Code::ControlUnavailable, "The database does not answer."))
        }
    }
}

/// The metrics, as Prometheus reads them.
#[utoipa::path(
    get, path = "/metrics", tag = "operation", security(()),
    responses((status = 200, description = "The metrics", body = String, content_type = "application/openmetrics-text"))
)]
async fn metrics(State(state): State<AppState>) -> Result<Response, Refusal> {
    const MEDIA_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";
    let mut text = String::new();
    prometheus_client::encoding::text::encode(&mut text, &state.registry)
        .map_err(|_| Refusal::new(Code::Internal))?;
    Ok(([(header::CONTENT_TYPE, MEDIA_TYPE)], text).into_response())
}
