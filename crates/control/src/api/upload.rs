//! `POST …/upload`: many files at once, as multipart (`spec/server-runtime.md`, 5.1).
//!
//! A field's name is the file's path below the directory of uploads. A bad file does not stop the
//! others. The answer is one line of JSON for each event. Its status tells how it went, so it is
//! sent when everything is seen; who wants to see progress meanwhile asks for it by
//! `X-Upload-Events: progress` and finds the outcome in the last line instead.

use std::{
    convert::Infallible,
    time::{Duration, Instant},
};

use axum::{
    body::Body,
    extract::{FromRequest as _, Multipart, Path, Request, State, multipart::Field},
    response::{IntoResponse, Response},
};
use bytes::Bytes;
use futures::{StreamExt as _, stream};
use http::{HeaderMap, StatusCode, header};
use tokio::sync::mpsc;
use utoipa_axum::{router::OpenApiRouter, routes};
use wakeful_wire::{Code, Problem, ProjectId};

use super::{
    AppState, Asked, Refusal, UploadEvent,
    caller::Caller,
    files::{Target, Transfer, Which, refuse_too_large},
};
use crate::files::{FileError, RelativePath};

/// The most files of one upload.
const FILES_MAX: u32 = 10_000;
/// Progress of a file is told no more often than this.
const PROGRESS_EVERY: Duration = Duration::from_millis(250);
/// How many events wait for a client that reads slowly, before the upload waits for it.
const EVENTS: usize = 64;

const EVENTS_HEADER: &str = "x-upload-events";
const NDJSON: &str = "application/x-ndjson";

pub(super) fn routes() -> OpenApiRouter<AppState> {
    OpenApiRouter::new().routes(routes!(upload))
}

/// What a client wants to be told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Telling {
    /// Each file, and the end.
    Files,
    /// Failures, and the end.
    Summary,
    /// Also how far each file is, as it happens.
    Progress,
}

fn telling(headers: &HeaderMap) -> Result<Telling, Refusal> {
    match headers.get(EVENTS_HEADER).map(http::HeaderValue::as_bytes) {
        None | Some(b"files") => Ok(Telling::Files),
        Some(b"summary") => Ok(Telling::Summary),
        Some(b"progress") => Ok(Telling::Progress),
        Some(_) => {
            let detail = "`X-Upload-Events` is `files`, `summary` or `progress`.";
            Err(Refusal::invalid("X-Upload-Events", detail))
        }
    }
}

/// Stores files below the workspace's directory of uploads. Wakes nothing and needs nothing awake.
#[utoipa::path(
    post, path = "/api/projects/{id}/upload", tag = "projects",
    request_body(
        content = Object, content_type = "multipart/form-data",
        description = "Each field's name is a path below the directory of uploads, its content the file",
    ),
    params(
        ("id" = ProjectId, Path, description = "The project"),
        ("environmentId" = Option<String>, Query, description = "The environment; Development where it is left out"),
        ("X-Upload-Events" = Option<String>, Header, description = "`files`, `summary` or `progress`"),
    ),
    responses(
        (status = 200, description = "With `progress`: see the last line", body = UploadEvent, content_type = "application/x-ndjson"),
        (status = 201, description = "Every file is stored", body = UploadEvent, content_type = "application/x-ndjson"),
        (status = 207, description = "Some files are stored: see each line", body = UploadEvent, content_type = "application/x-ndjson"),
        (status = 413, description = "Too large", body = Problem, content_type = "application/problem+json"),
        (status = 507, description = "No space left", body = UploadEvent, content_type = "application/x-ndjson"),
    )
)]
async fn upload(
    State(state): State<AppState>,
    caller: Caller,
    Path(id): Path<String>,
    Asked(which): Asked<Which>,
    request: Request,
) -> Result<Response, Refusal> {
    let telling = telling(request.headers())?;
    let limit = state.settings.upload_max;
    refuse_too_large(request.headers(), limit)?;
    let target = Target::find(&state, &caller, &id, &which).await?;
    let parts = Multipart::from_request(counted(request, limit), &()).await.map_err(|_| {
        let detail = "The body must be sent with `Content-Type: multipart/form-data`.";
        Refusal::because(Code::UnsupportedMedia, detail)
    })?;
    let transfer = target.begin(&state).await?;
    let (events, told) = mpsc::channel(EVENTS);
    let taking = Taking {
        target,
        limit,
        telling,
        events,
        stored: 0,
        failed: 0,
        worst: None,
        _transfer: transfer,
    };
    let lines = stream::unfold(told, async |mut told: mpsc::Receiver<Bytes>| {
        told.recv().await.map(|line| (line, told))
    });
    if telling == Telling::Progress {
        // The body of the answer drives the upload: a client that leaves ends both.
        let work = stream::once(taking.run(parts)).filter_map(async |_| None);
        let both = stream::select(lines, work).map(Ok::<_, Infallible>);
        return Ok(ndjson(StatusCode::OK, Body::from_stream(both)));
    }
    let (status, lines) = futures::join!(taking.run(parts), lines.collect::<Vec<_>>());
    Ok(ndjson(status, Body::from(lines.concat())))
}

fn ndjson(status: StatusCode, body: Body) -> Response {
    (status, [(header::CONTENT_TYPE, NDJSON)], body).into_response()
}

/// Stores the files of a page's form in `directory`, under the names that they have at the sender.
/// The first that cannot be stored ends it; those before it are stored.
pub(crate) async fn store_form(
    state: &AppState,
    target: Target,
    directory: &RelativePath,
    request: Request,
) -> Result<u32, Refusal> {
    let limit = state.settings.upload_max;
    refuse_too_large(request.headers(), limit)?;
    let mut parts = Multipart::from_request(counted(request, limit), &()).await.map_err(|_| {
        Refusal::because(Code::UnsupportedMedia, "The form must be sent as multipart.")
    })?;
    let transfer = target.begin(state).await?;
    let mut stored = 0;
    while let Some(mut field) = parts.next_field().await.map_err(|e| broken(&e, limit))? {
        let name = field.file_name().unwrap_or_default();
        // A field without a file is how a browser sends that none was chosen.
        let Some(name) = name.rsplit(['/', '\\']).next().filter(|name| !name.is_empty()) else {
            continue;
        };
        let place = format!("{directory}/{name}");
        let place = RelativePath::parse(place.trim_start_matches('/')).map_err(FileError::Path)?;
        let mut incoming = target.files.write(place).await?;
        while let Some(chunk) = field.chunk().await.map_err(|e| broken(&e, limit))? {
            incoming.write(&chunk).await?;
        }
        incoming.finish().await?;
        stored += 1;
    }
    drop(transfer);
    Ok(stored)
}

/// The whole body is bounded, also one that does not state its length and whose fields nobody reads.
fn counted(request: Request, limit: u64) -> Request {
    let (parts, body) = request.into_parts();
    let limit = usize::try_from(limit).unwrap_or(usize::MAX);
    let body = Body::new(http_body_util::Limited::new(body, limit));
    let mut request = Request::from_parts(parts, body);
    // The extractor's own limit is for bodies that are held in memory.
    axum::extract::DefaultBodyLimit::disable().apply(&mut request);
    request
}

struct Taking {
    target: Target,
    limit: u64,
    telling: Telling,
    events: mpsc::Sender<Bytes>,
    stored: u32,
    failed: u32,
    /// The code of the first file that failed.
    worst: Option<Code>,
    _transfer: Transfer,
}

impl Taking {
    /// Takes every field, and says how it went.
    async fn run(mut self, mut parts: Multipart) -> StatusCode {
        loop {
            let field = match parts.next_field().await {
                Ok(Some(field)) => field,
                Ok(None) => break,
                Err(error) => return self.broke_off(broken(&error, self.limit)).await,
            };
            if self.stored + self.failed == FILES_MAX {
                let detail = format!("At most {FILES_MAX} files can be sent at once.");
                return self.ended(Code::TooLarge, detail).await;
            }
            let path = field.name().unwrap_or_default().to_owned();
            match self.take(field, &path).await {
                Ok(bytes) => {
                    self.stored += 1;
                    if self.telling != Telling::Summary {
                        let bytes = Some(bytes);
                        let event =
                            UploadEvent::File { path, ok: true, bytes, code: None, error: None };
                        self.tell(&event).await;
                    }
                }
                Err(error) => {
                    self.failed += 1;
                    let code = error.code();
                    self.worst.get_or_insert(code);
                    let event = UploadEvent::File {
                        path,
                        ok: false,
                        bytes: None,
                        code: Some(code.as_str().to_owned()),
                        error: Some(sentence(&error)),
                    };
                    self.tell(&event).await;
                    if matches!(error, FileError::Aborted | FileError::TooLarge { .. }) {
                        return self.broke_off(error).await;
                    }
                }
            }
        }
        self.tell(&UploadEvent::Done { uploaded: self.stored, failed: self.failed }).await;
        match (self.worst, self.stored) {
            (None, _) => StatusCode::CREATED,
            (Some(_), 1..) => StatusCode::MULTI_STATUS,
            (Some(code), 0) => status(code),
        }
    }

    async fn take(&self, mut field: Field<'_>, path: &str) -> Result<u64, FileError> {
        let place = RelativePath::parse(path)?.below_uploads();
        let mut incoming = self.target.files.write(place).await?;
        let mut told_at = Instant::now();
        loop {
            let chunk = match field.chunk().await {
                Ok(Some(chunk)) => chunk,
                Ok(None) => break,
                Err(error) => return Err(broken(&error, self.limit)),
            };
            incoming.write(&chunk).await?;
            if self.telling == Telling::Progress && told_at.elapsed() >= PROGRESS_EVERY {
                told_at = Instant::now();
                let bytes = incoming.written();
                self.tell(&UploadEvent::Progress { path: path.to_owned(), bytes }).await;
            }
        }
        incoming.finish().await
    }

    async fn tell(&self, event: &UploadEvent) {
        let mut line = serde_json::to_vec(event).unwrap_or_default();
        line.push(b'\n');
        // Nobody reads any more: then nobody sends any more either, which ends the upload.
        let _ = self.events.send(line.into()).await;
    }

    async fn broke_off(&self, error: FileError) -> StatusCode {
        self.ended(error.code(), sentence(&error)).await
    }

    async fn ended(&self, code: Code, error: String) -> StatusCode {
        self.tell(&UploadEvent::Error { code: code.as_str().to_owned(), error }).await;
        status(code)
    }
}

fn status(code: Code) -> StatusCode {
    StatusCode::from_u16(code.status()).unwrap_or(StatusCode::BAD_REQUEST)
}

fn sentence(error: &FileError) -> String {
    error.detail().unwrap_or_else(|| {
        let cause: &(dyn std::error::Error + 'static) = error;
        tracing::error!(error = cause, "a file was not stored");
        "It could not be stored.".to_owned()
    })
}

/// Whether the sender broke off or sent too much.
fn broken(error: &axum::extract::multipart::MultipartError, limit: u64) -> FileError {
    let mut cause: Option<&(dyn std::error::Error + 'static)> = Some(error);
    while let Some(error) = cause {
        if error.is::<http_body_util::LengthLimitError>() {
            return FileError::TooLarge { limit };
        }
        cause = error.source();
    }
    FileError::Aborted
}
