//! Files of a project's workspace: `/api/projects/{id}/files/…` and `…/upload`.

use axum::{
    body::Body,
    extract::{Path, Request, State},
    response::{IntoResponse, Response},
};
use futures::StreamExt as _;
use http::{HeaderMap, StatusCode, header};
use serde::Deserialize;
use tokio::sync::OwnedSemaphorePermit;
use utoipa_axum::{router::OpenApiRouter, routes};
use wakeful_wire::{
    ClockKind, Code, EnvId, Problem, ProjectId, SurfaceName, api::Project, gate::LeaseKind,
};

use super::{AppState, Asked, FileListing, Refusal, StoredFile, caller::Caller, download, upload};
use crate::{
    engine::Hold,
    files::{FileError, Files, Found, RelativePath},
};

pub(super) fn routes() -> OpenApiRouter<AppState> {
    OpenApiRouter::new()
        .routes(routes!(list_root))
        .routes(routes!(read, write, remove))
        .merge(upload::routes())
}

/// Which environment's files.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Which {
    /// The Development environment's where it is left out.
    #[serde(default, rename = "environmentId")]
    pub(crate) environment: Option<String>,
}

/// An environment's files, and what a transfer to them holds.
pub(crate) struct Target {
    pub(crate) env: EnvId,
    pub(crate) files: Files,
}

impl Target {
    /// The files of an environment of a project of the caller. Nothing of it is woken.
    pub(crate) async fn find(
        state: &AppState,
        caller: &Caller,
        project: &str,
        which: &Which,
    ) -> Result<Self, Refusal> {
        let project = caller.project(state, project).await?;
        let env = environment(&project, which.environment.as_deref())?;
        Self::of(state, env).await
    }

    /// The files of an environment, which the caller was found to own.
    pub(crate) async fn of(state: &AppState, env: EnvId) -> Result<Self, Refusal> {
        let root = state.engine.workspace(env).await?;
        Ok(Self { env, files: Files::open(root).await? })
    }

    /// Begins a transfer: the environment's agent clock is touched, and it stays awake if it is.
    pub(super) async fn begin(&self, state: &AppState) -> Result<Transfer, Refusal> {
        let turn = std::sync::Arc::clone(&state.uploads).try_acquire_owned().map_err(|_| {
            Refusal::because(Code::Overloaded, "Too many uploads are under way. Try again.")
        })?;
        let hold = state.engine.hold(self.env, SurfaceName::agent(), LeaseKind::Upload);
        state.engine.touch(self.env, ClockKind::Agent).await?;
        Ok(Transfer { _hold: hold, _turn: turn })
    }
}

fn environment(project: &Project, asked: Option<&str>) -> Result<EnvId, Refusal> {
    let Some(asked) = asked else { return Ok(project.id.into()) };
    let found = project.environments.iter().find(|env| env.id.to_string() == asked);
    found.map(|env| env.id).ok_or_else(|| Refusal::new(Code::NotFound))
}

/// A transfer under way.
#[must_use]
pub(super) struct Transfer {
    _hold: Hold,
    _turn: OwnedSemaphorePermit,
}

/// What stands in the workspace.
#[utoipa::path(
    get, path = "/api/projects/{id}/files", tag = "projects",
    params(
        ("id" = ProjectId, Path, description = "The project"),
        ("environmentId" = Option<String>, Query, description = "The environment; Development where it is left out"),
    ),
    responses((status = 200, description = "The entries", body = FileListing))
)]
async fn list_root(
    State(state): State<AppState>,
    caller: Caller,
    Path(id): Path<String>,
    Asked(which): Asked<Which>,
) -> Result<Response, Refusal> {
    let target = Target::find(&state, &caller, &id, &which).await?;
    show(&target, RelativePath::root(), &HeaderMap::new()).await
}

/// A file as an attachment, or what stands in a directory. Links are followed while they stay in
/// the workspace.
#[utoipa::path(
    get, path = "/api/projects/{id}/files/{*path}", tag = "projects",
    params(
        ("id" = ProjectId, Path, description = "The project"),
        ("path" = String, Path, description = "The file or directory, relative to the workspace"),
        ("environmentId" = Option<String>, Query, description = "The environment; Development where it is left out"),
        ("Range" = Option<String>, Header, description = "One range of bytes"),
    ),
    responses(
        (status = 200, description = "The file; a directory's entries as `FileListing`", body = Vec<u8>, content_type = "application/octet-stream"),
        (status = 206, description = "The range", body = Vec<u8>, content_type = "application/octet-stream"),
        (status = 304, description = "Not changed"),
        (status = 404, description = "No such file", body = Problem, content_type = "application/problem+json"),
        (status = 416, description = "Nothing of the file is in the range", body = Problem, content_type = "application/problem+json"),
    )
)]
async fn read(
    State(state): State<AppState>,
    caller: Caller,
    Path((id, path)): Path<(String, String)>,
    Asked(which): Asked<Which>,
    headers: HeaderMap,
) -> Result<Response, Refusal> {
    let target = Target::find(&state, &caller, &id, &which).await?;
    let path = RelativePath::parse_or_root(&path).map_err(FileError::Path)?;
    match show(&target, path.clone(), &headers).await {
        // What an agent calls `/workspace/x` is `x` here.
        Err(refusal) if refusal.code() == Code::NotFound => {
            match path.as_str().strip_prefix("workspace/") {
                Some(rest) => {
                    let rest = RelativePath::parse(rest).map_err(FileError::Path)?;
                    show(&target, rest, &headers).await
                }
                None => Err(refusal),
            }
        }
        other => other,
    }
}

async fn show(
    target: &Target,
    path: RelativePath,
    headers: &HeaderMap,
) -> Result<Response, Refusal> {
    match target.files.read(path.clone()).await? {
        Found::File(file) => download::answer(file, path.name().unwrap_or("file"), headers),
        Found::Directory(listing) => {
            let listing = FileListing {
                path: path.as_str().to_owned(),
                entries: listing.entries.into_iter().map(Into::into).collect(),
                truncated: listing.truncated,
            };
            Ok(axum::Json(listing).into_response())
        }
    }
}

/// Stores a file. Until it is whole, and if it breaks off, the old one stands. Directories on the
/// way are made; links are not followed.
#[utoipa::path(
    put, path = "/api/projects/{id}/files/{*path}", tag = "projects",
    request_body(content = Vec<u8>, content_type = "application/octet-stream"),
    params(
        ("id" = ProjectId, Path, description = "The project"),
        ("path" = String, Path, description = "The file, relative to the workspace"),
        ("environmentId" = Option<String>, Query, description = "The environment; Development where it is left out"),
    ),
    responses(
        (status = 201, description = "Stored", body = StoredFile),
        (status = 409, description = "A directory stands there", body = Problem, content_type = "application/problem+json"),
        (status = 413, description = "Too large", body = Problem, content_type = "application/problem+json"),
        (status = 507, description = "No space left", body = Problem, content_type = "application/problem+json"),
    )
)]
async fn write(
    State(state): State<AppState>,
    caller: Caller,
    Path((id, path)): Path<(String, String)>,
    Asked(which): Asked<Which>,
    request: Request,
) -> Result<(StatusCode, axum::Json<StoredFile>), Refusal> {
    let path = RelativePath::parse(&path).map_err(FileError::Path)?;
    refuse_too_large(request.headers(), state.settings.upload_max)?;
    let target = Target::find(&state, &caller, &id, &which).await?;
    let transfer = target.begin(&state).await?;
    let mut incoming = target.files.write(path.clone()).await?;
    let mut body = body_stream(request.into_body());
    while let Some(chunk) = body.next().await {
        let chunk = chunk.map_err(|_| FileError::Aborted)?;
        let limit = state.settings.upload_max;
        if incoming.written() + chunk.len() as u64 > limit {
            return Err(FileError::TooLarge { limit }.into());
        }
        incoming.write(&chunk).await?;
    }
    let size = incoming.finish().await?;
    drop(transfer);
    let stored = StoredFile { path: path.as_str().to_owned(), size };
    Ok((StatusCode::CREATED, axum::Json(stored)))
}

fn body_stream(body: Body) -> axum::body::BodyDataStream {
    body.into_data_stream()
}

/// Refuses a body by the length that it states, before any of it is taken.
pub(super) fn refuse_too_large(headers: &HeaderMap, limit: u64) -> Result<(), Refusal> {
    let stated = headers.get(header::CONTENT_LENGTH).and_then(|length| length.to_str().ok());
    match stated.and_then(|length| length.parse::<u64>().ok()) {
        Some(length) if length > limit => Err(FileError::TooLarge { limit }.into()),
        Some(_) | None => Ok(()),
    }
}

/// Removes a file, a link or an empty directory.
#[utoipa::path(
    delete, path = "/api/projects/{id}/files/{*path}", tag = "projects",
    params(
        ("id" = ProjectId, Path, description = "The project"),
        ("path" = String, Path, description = "The file, relative to the workspace"),
        ("environmentId" = Option<String>, Query, description = "The environment; Development where it is left out"),
    ),
    responses(
        (status = 204, description = "Removed"),
        (status = 404, description = "No such file", body = Problem, content_type = "application/problem+json"),
        (status = 409, description = "A directory that is not empty", body = Problem, content_type = "application/problem+json"),
    )
)]
async fn remove(
    State(state): State<AppState>,
    caller: Caller,
    Path((id, path)): Path<(String, String)>,
    Asked(which): Asked<Which>,
) -> Result<StatusCode, Refusal> {
    let path = RelativePath::parse(&path).map_err(FileError::Path)?;
    let target = Target::find(&state, &caller, &id, &which).await?;
    target.files.remove(path).await?;
    Ok(StatusCode::NO_CONTENT)
}
