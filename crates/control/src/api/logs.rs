//! What a surface's program wrote: `/api/environments/{id}/logs`.

use axum::{
    body::Body,
    extract::{Path, State},
    response::{IntoResponse, Response},
};
use bytes::Bytes;
use futures::stream;
use http::{HeaderName, header};
use serde::Deserialize;
use utoipa_axum::{router::OpenApiRouter, routes};
use wakeful_wire::{Code, EnvId, Problem, SurfaceName, api::Environment};

use super::{
    AppState, Asked, Refusal,
    caller::Caller,
    events::{Admission, StreamSlot},
};
use crate::engine::EngineError;

/// The most bytes that are read of a log at once.
const CHUNK_MAX: usize = 256 * 1024;
/// The lines that are shown where nobody says.
const TAIL_DEFAULT: usize = 200;

pub(super) fn routes() -> OpenApiRouter<AppState> {
    OpenApiRouter::new().routes(routes!(logs))
}

/// Which log.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Which {
    #[serde(default)]
    surface: Option<String>,
    #[serde(default)]
    tail: Option<usize>,
    #[serde(default)]
    follow: bool,
}

/// The end of a surface's log, also after its sandbox has ended; with `follow`, what is written
/// from then on as well.
#[utoipa::path(
    get, path = "/api/environments/{id}/logs", tag = "environments",
    params(
        ("id" = EnvId, Path, description = "The environment"),
        ("surface" = Option<String>, Query, description = "The surface; the first where it is left out"),
        ("tail" = Option<usize>, Query, description = "How many lines of the end; 200 where it is left out"),
        ("follow" = Option<bool>, Query, description = "Whether the answer goes on"),
    ),
    responses(
        (status = 200, description = "The log", body = String, content_type = "text/plain"),
        (status = 404, description = "No such environment or surface", body = Problem, content_type = "application/problem+json"),
    )
)]
async fn logs(
    State(state): State<AppState>,
    caller: Caller,
    Path(id): Path<String>,
    Asked(which): Asked<Which>,
) -> Result<Response, Refusal> {
    let environment = caller.environment(&state, &id).await?;
    let surface = surface(&environment, which.surface.as_deref())?;
    let slot = if which.follow { Some(StreamSlot::take(&state, &caller.user)?) } else { None };
    let (text, end) = tail(&state, &environment, &surface, which.tail).await?;
    let body = match slot {
        None => Body::from(text),
        Some(slot) => {
            let follow = Follow {
                env: environment.id,
                surface,
                end,
                first: Some(text),
                admission: Admission::new(&state, caller),
                state,
                _slot: slot,
            };
            Body::from_stream(stream::unfold(follow, Follow::next))
        }
    };
    let headers = [
        (header::CONTENT_TYPE, "text/plain; charset=utf-8"),
        (HeaderName::from_static("x-accel-buffering"), "no"),
    ];
    Ok((headers, body).into_response())
}

/// The surface of that name, or the first.
pub(crate) fn surface(
    environment: &Environment,
    asked: Option<&str>,
) -> Result<SurfaceName, Refusal> {
    let mut surfaces = environment.surfaces.iter().map(|surface| &surface.name);
    let found = match asked {
        Some(asked) => surfaces.find(|name| name.as_str() == asked),
        None => surfaces.next(),
    };
    let missing = || Refusal::because(Code::NotFound, "The environment has no such surface.");
    found.cloned().ok_or_else(missing)
}

/// The last lines of a log, and where it goes on.
pub(crate) async fn tail(
    state: &AppState,
    environment: &Environment,
    surface: &SurfaceName,
    lines: Option<usize>,
) -> Result<(Bytes, u64), EngineError> {
    let log = state.engine.logs(environment.id, surface, CHUNK_MAX, None).await?;
    let start = last_lines(&log.bytes, lines.unwrap_or(TAIL_DEFAULT));
    Ok((Bytes::from(log.bytes).slice(start..), log.end))
}

/// Where the last `lines` lines begin.
fn last_lines(text: &[u8], lines: usize) -> usize {
    if lines == 0 {
        return text.len();
    }
    let body = text.strip_suffix(b"\n").unwrap_or(text);
    let mut ends = body.iter().enumerate().rev().filter(|(_, byte)| **byte == b'\n');
    ends.nth(lines - 1).map_or(0, |(at, _)| at + 1)
}

struct Follow {
    state: AppState,
    env: EnvId,
    surface: SurfaceName,
    end: u64,
    first: Option<Bytes>,
    admission: Admission,
    _slot: StreamSlot,
}

impl Follow {
    async fn next(mut self) -> Option<(Result<Bytes, std::io::Error>, Self)> {
        // Sent also when empty, so that the head is not held back.
        if let Some(first) = self.first.take() {
            return Some((Ok(first), self));
        }
        loop {
            tokio::select! {
                () = self.admission.ended() => return None,
                () = tokio::time::sleep(self.state.settings.log_poll) => {}
            }
            let read = self.state.engine.logs(self.env, &self.surface, CHUNK_MAX, Some(self.end));
            match read.await {
                Ok(log) => {
                    self.end = log.end;
                    if !log.bytes.is_empty() {
                        return Some((Ok(log.bytes.into()), self));
                    }
                }
                // Deleted: there is nothing more to come.
                Err(error) if error.code() == Code::NotFound => return None,
                Err(error) => return Some((Err(std::io::Error::other(error)), self)),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_lines_are_found_with_and_without_an_end_of_line() {
        let table = [
            ("", 5, ""),
            ("a\nb\nc\n", 2, "b\nc\n"),
            ("a\nb\nc", 2, "b\nc"),
            ("a\nb\nc\n", 3, "a\nb\nc\n"),
            ("a\nb\nc\n", 9, "a\nb\nc\n"),
            ("a\n\n\n", 2, "\n\n"),
            ("a\nb\n", 0, ""),
        ];
        for (text, lines, expected) in table {
            let start = last_lines(text.as_bytes(), lines);
            assert_eq!(&text[start..], expected, "{text:?} {lines}");
        }
    }
}
