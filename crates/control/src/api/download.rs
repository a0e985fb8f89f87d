//! A file as an answer: whole, in part, or not changed (RFC 9110, sections 13 and 14).

use std::io::{self, SeekFrom};

use axum::{
    body::Body,
    response::{IntoResponse, Response},
};
use bytes::Bytes;
use futures::stream;
use http::{HeaderMap, HeaderValue, StatusCode, header};
use tokio::io::{AsyncReadExt as _, AsyncSeekExt as _};
use wakeful_wire::{Code, Problem};

use super::{Refusal, reference::encode};
use crate::files::{ByteRange, OpenFile, Ranges, media_type, requested};

/// How much of a file is read at once.
const CHUNK: usize = 64 * 1024;

/// Answers with a file. Nothing of a sandbox may run in the main host's origin, so it is an
/// attachment whatever its type.
pub(super) fn answer(file: OpenFile, name: &str, headers: &HeaderMap) -> Result<Response, Refusal> {
    let tag = format!("\"{}\"", file.version);
    let field = |name| headers.get(name).and_then(|value: &HeaderValue| value.to_str().ok());
    if field(header::IF_NONE_MATCH).is_some_and(|asked| names_tag(asked, &tag)) {
        return Ok((StatusCode::NOT_MODIFIED, [(header::ETAG, tag)]).into_response());
    }
    // A range of a file that has changed since is of no use: only the exact tag vouches for it.
    let vouched = field(header::IF_RANGE).is_none_or(|asked| asked.trim() == tag);
    let asked = if vouched { field(header::RANGE) } else { None };
    let whole = ByteRange { start: 0, length: file.size };
    let (status, range) = match requested(asked, file.size) {
        Ranges::Whole => (StatusCode::OK, whole),
        Ranges::Part(part) => (StatusCode::PARTIAL_CONTENT, part),
        Ranges::Unsatisfiable => return Ok(unsatisfiable(file.size)),
    };
    let size = file.size;
    let mut response = Response::new(body(file, range));
    *response.status_mut() = status;
    let out = response.headers_mut();
    out.insert(header::CONTENT_TYPE, HeaderValue::from_static(media_type(name)));
    out.insert(header::CONTENT_LENGTH, range.length.into());
    out.insert(header::ACCEPT_RANGES, HeaderValue::from_static("bytes"));
    out.insert(header::CACHE_CONTROL, HeaderValue::from_static("private, no-cache"));
    let texts = [(header::ETAG, tag), (header::CONTENT_DISPOSITION, attachment(name))];
    for (name, text) in texts {
        out.insert(name, HeaderValue::from_str(&text).map_err(|_| Refusal::new(Code::Internal))?);
    }
    if status == StatusCode::PARTIAL_CONTENT {
        let last = range.start + range.length - 1;
        let text = format!("bytes {}-{last}/{size}", range.start);
        let value = HeaderValue::from_str(&text).map_err(|_| Refusal::new(Code::Internal))?;
        out.insert(header::CONTENT_RANGE, value);
    }
    Ok(response)
}

fn names_tag(field: &str, tag: &str) -> bool {
    field
        .split(',')
        .map(str::trim)
        .any(|asked| asked == "*" || asked.strip_prefix("W/").unwrap_or(asked) == tag)
}

fn unsatisfiable(size: u64) -> Response {
    let detail = format!("The file has {size} bytes.");
    let mut problem = Problem::new(Code::Invalid).detail(detail).field("Range");
    problem.status = StatusCode::RANGE_NOT_SATISFIABLE.as_u16();
    let refusal = Refusal { problem: Box::new(problem), retry_after: None };
    let mut response = refusal.into_response();
    if let Ok(value) = HeaderValue::from_str(&format!("bytes */{size}")) {
        response.headers_mut().insert(header::CONTENT_RANGE, value);
    }
    response
}

/// `attachment` with the name in both spellings (RFC 6266).
fn attachment(name: &str) -> String {
    let plain: String = name
        .chars()
        .map(|c| {
            if c.is_ascii_graphic() && !matches!(c, '"' | '\\' | '%') || c == ' ' { c } else { '_' }
        })
        .collect();
    format!("attachment; filename=\"{plain}\"; filename*=UTF-8''{}", encode(name))
}

/// The bytes of a range. A file that became shorter meanwhile ends the answer with an error, never
/// as if it were whole.
fn body(file: OpenFile, range: ByteRange) -> Body {
    struct Reading {
        file: tokio::fs::File,
        start: Option<u64>,
        left: u64,
    }
    let reading = Reading {
        file: tokio::fs::File::from_std(file.file),
        start: (range.start > 0).then_some(range.start),
        left: range.length,
    };
    Body::from_stream(stream::try_unfold(reading, async |mut reading| {
        if reading.left == 0 {
            return Ok(None);
        }
        if let Some(start) = reading.start.take() {
            reading.file.seek(SeekFrom::Start(start)).await?;
        }
        let wanted = usize::try_from(reading.left).unwrap_or(CHUNK).min(CHUNK);
        let mut chunk = vec![0; wanted];
        let read = reading.file.read(&mut chunk).await?;
        if read == 0 {
            return Err(io::Error::from(io::ErrorKind::UnexpectedEof));
        }
        chunk.truncate(read);
        reading.left -= read as u64;
        Ok(Some((Bytes::from(chunk), reading)))
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_cannot_break_out_of_its_header() {
        assert_eq!(
            attachment("a \"b\"\r\nX: ü.txt"),
            "attachment; filename=\"a _b___X: _.txt\"; \
             filename*=UTF-8''a%20%22b%22%0D%0AX%3A%20%C3%BC.txt"
        );
    }

    #[test]
    fn a_tag_is_found_among_others_and_weakly() {
        for asked in ["*", "\"x\"", "\"y\", \"x\"", "W/\"x\""] {
            assert!(names_tag(asked, "\"x\""), "{asked}");
        }
        assert!(!names_tag("\"xy\"", "\"x\""));
    }
}
