//! Projects and templates: `/api/projects`, `/api/templates`.

use axum::{
    Json as Answer,
    extract::{Path, State},
    response::{IntoResponse, Response},
};
use http::{StatusCode, header};
use serde::Deserialize;
use utoipa_axum::{router::OpenApiRouter, routes};
use wakeful_wire::{
    Code, Problem, ProjectId,
    api::{CreateProject, DeletedProject, Project, TemplateView},
};

use super::{AppState, Asked, Refusal, body::Json, caller::Caller};

/// The most characters of a title.
pub(crate) const TITLE_MAX: usize = 120;

pub(super) fn routes() -> OpenApiRouter<AppState> {
    OpenApiRouter::new()
        .routes(routes!(list, create))
        .routes(routes!(show, delete))
        .routes(routes!(restore))
        .routes(routes!(templates))
}

/// Which projects are asked for.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Which {
    #[serde(default)]
    deleted: bool,
}

/// The projects of the user, oldest first; or those that were deleted and can still be restored,
/// newest first.
#[utoipa::path(
    get, path = "/api/projects", tag = "projects",
    params(("deleted" = Option<bool>, Query, description = "The deleted ones, as `DeletedProject`")),
    responses((status = 200, description = "The projects", body = Vec<Project>))
)]
async fn list(
    State(state): State<AppState>,
    caller: Caller,
    Asked(which): Asked<Which>,
) -> Result<Response, Refusal> {
    if which.deleted {
        let deleted: Vec<DeletedProject> = state.engine.deleted(&caller.user).await?;
        return Ok(Answer(deleted).into_response());
    }
    Ok(Answer(state.engine.projects(&caller.user).await?).into_response())
}

/// Makes a project. Its environment sleeps until somebody visits.
#[utoipa::path(
    post, path = "/api/projects", tag = "projects", request_body = CreateProject,
    responses(
        (status = 201, description = "The project", body = Project),
        (status = 400, description = "Unknown template, or a program of it is missing", body = Problem, content_type = "application/problem+json"),
    )
)]
async fn create(
    State(state): State<AppState>,
    caller: Caller,
    Json(body): Json<CreateProject>,
) -> Result<Response, Refusal> {
    let project = make(&state, &caller, &body).await?;
    let place = format!("/api/projects/{}", project.id);
    Ok((StatusCode::CREATED, [(header::LOCATION, place)], Answer(project)).into_response())
}

/// Makes a project, once its title is fit.
pub(crate) async fn make(
    state: &AppState,
    caller: &Caller,
    wanted: &CreateProject,
) -> Result<Project, Refusal> {
    let title = wanted.title.trim();
    let length = title.chars().count();
    if length == 0 || length > TITLE_MAX || title.chars().any(char::is_control) {
        let detail = format!("A project needs a title of at most {TITLE_MAX} characters.");
        return Err(Refusal::invalid("title", detail));
    }
    let template = wanted.template.as_ref();
    state.engine.create_project(&caller.user, title, template, false).await.map_err(|error| {
        let mut refusal = Refusal::from(error);
        if refusal.code() == Code::Invalid {
            *refusal.problem = refusal.problem.field("template");
        }
        refusal
    })
}

/// A project with its environments.
#[utoipa::path(
    get, path = "/api/projects/{id}", tag = "projects",
    params(("id" = ProjectId, Path, description = "The project")),
    responses(
        (status = 200, description = "The project", body = Project),
        (status = 404, description = "No such project", body = Problem, content_type = "application/problem+json"),
    )
)]
async fn show(
    State(state): State<AppState>,
    caller: Caller,
    Path(id): Path<String>,
) -> Result<Answer<Project>, Refusal> {
    caller.project(&state, &id).await.map(Answer)
}

/// Deletes a project: it stops, and its files are kept for a while. Repeating it changes nothing.
#[utoipa::path(
    delete, path = "/api/projects/{id}", tag = "projects",
    params(("id" = ProjectId, Path, description = "The project")),
    responses(
        (status = 202, description = "Deleted; it can be restored until its files are removed"),
        (status = 404, description = "No such project", body = Problem, content_type = "application/problem+json"),
    )
)]
async fn delete(
    State(state): State<AppState>,
    caller: Caller,
    Path(id): Path<String>,
) -> Result<StatusCode, Refusal> {
    remove(&state, &caller, &id).await?;
    Ok(StatusCode::ACCEPTED)
}

/// Deletes a project of the caller, or one that is deleted already.
pub(crate) async fn remove(state: &AppState, caller: &Caller, id: &str) -> Result<(), Refusal> {
    let id = match caller.project(state, id).await {
        Ok(project) => project.id,
        Err(refusal) if refusal.code() == Code::NotFound => deleted(state, caller, id).await?,
        Err(refusal) => return Err(refusal),
    };
    Ok(state.engine.delete_project(id).await?)
}

/// Undoes a deletion: the project is there again, asleep.
#[utoipa::path(
    post, path = "/api/projects/{id}/restore", tag = "projects",
    params(("id" = ProjectId, Path, description = "The deleted project")),
    responses(
        (status = 200, description = "The project", body = Project),
        (status = 404, description = "No such project, or its files are removed", body = Problem, content_type = "application/problem+json"),
        (status = 409, description = "It is not deleted", body = Problem, content_type = "application/problem+json"),
    )
)]
async fn restore(
    State(state): State<AppState>,
    caller: Caller,
    Path(id): Path<String>,
) -> Result<Answer<Project>, Refusal> {
    bring_back(&state, &caller, &id).await.map(Answer)
}

/// Restores a deleted project of the caller. What the deletion does meanwhile is the engine's care.
pub(crate) async fn bring_back(
    state: &AppState,
    caller: &Caller,
    id: &str,
) -> Result<Project, Refusal> {
    match deleted(state, caller, id).await {
        Ok(deleted) => {
            state.engine.restore_project(deleted).await?;
            caller.project(state, id).await
        }
        Err(refusal) if refusal.code() == Code::NotFound => {
            caller.project(state, id).await?;
            Err(Refusal::because(Code::WrongPhase, "The project is not deleted."))
        }
        Err(refusal) => Err(refusal),
    }
}

async fn deleted(state: &AppState, caller: &Caller, id: &str) -> Result<ProjectId, Refusal> {
    let id: ProjectId = id.parse().map_err(|_| Refusal::new(Code::NotFound))?;
    let found = state.engine.deleted_project(id).await?;
    found
        .filter(|found| found.owner == caller.user)
        .map(|found| found.value.id)
        .ok_or_else(|| Refusal::new(Code::NotFound))
}

/// What projects can run, and what is missing on this machine for each.
#[utoipa::path(
    get, path = "/api/templates", tag = "projects",
    responses((status = 200, description = "The templates", body = Vec<TemplateView>))
)]
async fn templates(State(state): State<AppState>, _caller: Caller) -> Answer<Vec<TemplateView>> {
    Answer(state.engine.templates())
}
