//! The `OpenAPI` document, made of the routes themselves.

use axum::{
    extract::State,
    response::{IntoResponse, Response},
};
use http::header;
use utoipa::{
    OpenApi as _, PartialSchema as _,
    openapi::{
        ContentBuilder, OpenApi, Ref, RefOr, ResponseBuilder,
        security::{ApiKey, ApiKeyValue, HttpAuthScheme, HttpBuilder, SecurityScheme},
    },
};
use utoipa_axum::{router::OpenApiRouter, routes};
use wakeful_wire::{Problem, api::DeletedProject};

use super::{AppState, UploadEvent, described};

pub(super) fn routes() -> OpenApiRouter<AppState> {
    OpenApiRouter::new().routes(routes!(openapi))
}

/// What is not said by a route.
#[derive(utoipa::OpenApi)]
#[openapi(
    info(
        title = "Wakeful",
        description = "Agent environments that sleep when nobody needs them and wake on the first byte.",
        license(name = "Apache-2.0", identifier = "Apache-2.0"),
    ),
    components(schemas(Problem, DeletedProject, UploadEvent)),
    security(("bearer" = []), ("token" = []), ("session" = [])),
    tags(
        (name = "accounts", description = "Users, their tokens and sessions"),
        (name = "projects", description = "Projects, their files and templates"),
        (name = "environments", description = "What runs"),
        (name = "events", description = "Changes as they happen"),
        (name = "operation", description = "For whoever runs the platform"),
    ),
)]
struct Skeleton;

pub(super) fn skeleton() -> OpenApi {
    let mut document = Skeleton::openapi();
    let components = document.components.get_or_insert_default();
    let bearer = HttpBuilder::new()
        .scheme(HttpAuthScheme::Bearer)
        .description(Some("A token, which begins with `wk_`"))
        .build();
    let header = ApiKeyValue::with_description(
        "X-Wakeful-Token",
        "The same token, where `Authorization` is needed for something else",
    );
    let cookie = ApiKeyValue::with_description(
        "wakeful_session",
        "A browser's session; changes need the main host's own `Origin`",
    );
    components.add_security_scheme("bearer", SecurityScheme::Http(bearer));
    components.add_security_scheme("token", SecurityScheme::ApiKey(ApiKey::Header(header)));
    components.add_security_scheme("session", SecurityScheme::ApiKey(ApiKey::Cookie(cookie)));
    document
}

/// The document that describes every route of the API.
#[must_use]
pub fn document() -> OpenApi {
    let (_, mut document) = described().split_for_parts();
    env!("CARGO_PKG_VERSION").clone_into(&mut document.info.version);
    // What the router calls `{*path}`, a document calls `{path}`.
    let paths = std::mem::take(&mut document.paths.paths);
    document.paths.paths =
        paths.into_iter().map(|(path, item)| (path.replace("{*", "{"), item)).collect();
    for item in document.paths.paths.values_mut() {
        let operations = [
            &mut item.get,
            &mut item.put,
            &mut item.post,
            &mut item.delete,
            &mut item.head,
            &mut item.patch,
        ];
        for operation in operations.into_iter().flatten() {
            // Any route may refuse: each refusal has the same body.
            let content =
                ContentBuilder::new().schema(Some(Ref::from_schema_name("Problem"))).build();
            let refused = ResponseBuilder::new()
                .description("Refused or failed")
                .content(Problem::MEDIA_TYPE, content)
                .build();
            operation.responses.responses.insert("default".into(), RefOr::T(refused));
        }
    }
    document
}

/// This document.
#[utoipa::path(
    get, path = "/api/openapi.json", tag = "operation", security(()),
    responses((status = 200, description = "The document", body = Object, content_type = "application/json"))
)]
async fn openapi(State(_state): State<AppState>) -> Response {
    let body = serde_json::to_string(&document()).unwrap_or_default();
    ([(header::CONTENT_TYPE, "application/json")], body).into_response()
}

/// Keeps the schema of a problem reachable from the components.
const _: fn() -> RefOr<utoipa::openapi::Schema> = Problem::schema;
