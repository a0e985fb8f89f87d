//! Bodies and queries, read with bounds, refused by the name of what is wrong.

use axum::{
    body::Body,
    extract::{FromRequest, FromRequestParts, Query, Request},
};
use bytes::Bytes;
use http::{HeaderMap, header, request::Parts};
use http_body_util::{BodyExt as _, LengthLimitError, Limited};
use serde::de::DeserializeOwned;
use wakeful_wire::Code;

use super::{AppState, Refusal};

/// The most bytes of a JSON body or a form.
pub(super) const BODY_MAX: usize = 64 * 1024;

/// A JSON body of at most `MAX` bytes.
#[derive(Debug)]
pub(super) struct Json<T, const MAX: usize = BODY_MAX>(pub(super) T);

/// A form's body.
#[derive(Debug)]
pub(crate) struct Form<T>(pub(crate) T);

/// A JSON body or a form's: the routes for programs and people alike.
#[derive(Debug)]
pub(super) enum Either<J, F> {
    /// A program's.
    Json(J),
    /// A person's.
    Form(F),
}

/// The query.
#[derive(Debug)]
pub(crate) struct Asked<T>(pub(crate) T);

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Json,
    Form,
}

fn kind(headers: &HeaderMap) -> Option<Kind> {
    let content_type = headers.get(header::CONTENT_TYPE)?.to_str().ok()?;
    let media_type = content_type.split(';').next().unwrap_or_default().trim();
    match media_type.to_ascii_lowercase().as_str() {
        "application/json" => Some(Kind::Json),
        "application/x-www-form-urlencoded" => Some(Kind::Form),
        _ => None,
    }
}

fn unsupported(expected: &str) -> Refusal {
    let detail = format!("The body must be sent with `Content-Type: {expected}`.");
    Refusal::because(Code::UnsupportedMedia, detail)
}

async fn collect(body: Body, max: usize) -> Result<Bytes, Refusal> {
    match Limited::new(body, max).collect().await {
        Ok(collected) => Ok(collected.to_bytes()),
        Err(error) if error.is::<LengthLimitError>() => {
            let detail = format!("The body may have at most {max} bytes.");
            Err(Refusal::because(Code::TooLarge, detail))
        }
        Err(_) => Err(Refusal::because(Code::BadRequest, "The body broke off.")),
    }
}

/// Reads an object. serde would also take a list, for the fields in their order: an empty one for
/// whatever has only defaults.
fn json<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, Refusal> {
    if bytes.trim_ascii_start().starts_with(b"[") {
        return Err(Refusal::because(Code::Invalid, "The body must be a JSON object."));
    }
    serde_json::from_slice(bytes).map_err(|error| {
        if error.is_data() {
            named(&error.to_string())
        } else {
            Refusal::because(Code::BadRequest, format!("The body is not JSON: {error}."))
        }
    })
}

/// What serde says of a field, with the field's name where it tells one.
fn named(message: &str) -> Refusal {
    let known = ["unknown field `", "missing field `", "duplicate field `"];
    let field = known.iter().find_map(|start| {
        let rest = message.split_once(start)?.1;
        rest.split_once('`').map(|(field, _)| field.to_owned())
    });
    match field {
        Some(field) => Refusal::invalid(field, format!("The body is wrong: {message}.")),
        None => Refusal::because(Code::Invalid, format!("The body is wrong: {message}.")),
    }
}

async fn form<T: DeserializeOwned>(bytes: Bytes) -> Result<T, Refusal> {
    let request = Request::post("/")
        .header(header::CONTENT_TYPE, "application/x-www-form-urlencoded")
        .body(Body::from(bytes))
        .map_err(|_| Refusal::new(Code::BadRequest))?;
    match axum::Form::<T>::from_request(request, &()).await {
        Ok(axum::Form(form)) => Ok(form),
        Err(error) => Err(named(&innermost(&error))),
    }
}

/// The first cause of an error says what was wrong; those above it only where it was met.
fn innermost(error: &dyn std::error::Error) -> String {
    let mut cause = error;
    while let Some(deeper) = cause.source() {
        cause = deeper;
    }
    cause.to_string()
}

impl<T: DeserializeOwned, const MAX: usize> FromRequest<AppState> for Json<T, MAX> {
    type Rejection = Refusal;

    async fn from_request(request: Request, _state: &AppState) -> Result<Self, Refusal> {
        if kind(request.headers()) != Some(Kind::Json) {
            return Err(unsupported("application/json"));
        }
        json(&collect(request.into_body(), MAX).await?).map(Self)
    }
}

impl<T: DeserializeOwned> FromRequest<AppState> for Form<T> {
    type Rejection = Refusal;

    async fn from_request(request: Request, _state: &AppState) -> Result<Self, Refusal> {
        if kind(request.headers()) != Some(Kind::Form) {
            return Err(unsupported("application/x-www-form-urlencoded"));
        }
        form(collect(request.into_body(), BODY_MAX).await?).await.map(Self)
    }
}

impl<J: DeserializeOwned, F: DeserializeOwned> FromRequest<AppState> for Either<J, F> {
    type Rejection = Refusal;

    async fn from_request(request: Request, _state: &AppState) -> Result<Self, Refusal> {
        match kind(request.headers()) {
            Some(Kind::Json) => {
                json(&collect(request.into_body(), BODY_MAX).await?).map(Self::Json)
            }
            Some(Kind::Form) => {
                form(collect(request.into_body(), BODY_MAX).await?).await.map(Self::Form)
            }
            None => Err(unsupported("application/json` or `application/x-www-form-urlencoded")),
        }
    }
}

/// A JSON body that may be left out.
#[derive(Debug)]
pub(super) struct MaybeJson<T>(pub(super) Option<T>);

impl<T: DeserializeOwned> FromRequest<AppState> for MaybeJson<T> {
    type Rejection = Refusal;

    async fn from_request(request: Request, _state: &AppState) -> Result<Self, Refusal> {
        let kind = kind(request.headers());
        let bytes = collect(request.into_body(), BODY_MAX).await?;
        match (bytes.is_empty(), kind) {
            (true, _) => Ok(Self(None)),
            (false, Some(Kind::Json)) => json(&bytes).map(|value| Self(Some(value))),
            (false, Some(Kind::Form) | None) => Err(unsupported("application/json")),
        }
    }
}

impl<T: DeserializeOwned> FromRequestParts<AppState> for Asked<T> {
    type Rejection = Refusal;

    async fn from_request_parts(parts: &mut Parts, _state: &AppState) -> Result<Self, Refusal> {
        Query::<T>::try_from_uri(&parts.uri).map(|Query(asked)| Self(asked)).map_err(|error| {
            let text = innermost(&error);
            Refusal::because(Code::BadRequest, format!("The query is wrong: {text}."))
        })
    }
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;

    use super::*;

    #[derive(Debug, PartialEq, Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Sample {
        user: String,
        #[serde(default)]
        password: Option<String>,
    }

    #[tokio::test]
    async fn fields_that_are_unknown_or_missing_are_refused_by_name() {
        let field = |refusal: Refusal| (refusal.code(), refusal.problem.field.map(String::from));
        let bad = |text: &str| field(json::<Sample>(text.as_bytes()).unwrap_err());
        assert_eq!(bad(r#"{"user":"a","colour":1}"#), (Code::Invalid, Some("colour".into())));
        assert_eq!(bad("{}"), (Code::Invalid, Some("user".into())));
        assert_eq!(bad(r#"{"user":1}"#), (Code::Invalid, None));
        assert_eq!(bad("{"), (Code::BadRequest, None));
        assert_eq!(bad(r#" ["a",null]"#), (Code::Invalid, None));
        let bad = async |text: &'static str| field(form::<Sample>(text.into()).await.unwrap_err());
        assert_eq!(bad("user=a&colour=1").await, (Code::Invalid, Some("colour".into())));
        assert_eq!(bad("password=x").await, (Code::Invalid, Some("user".into())));
    }

    #[tokio::test]
    async fn forms_are_decoded() {
        let form: Sample = form("user=a%20b+c&password=%E2%9C%93%26".into()).await.unwrap();
        assert_eq!(form, Sample { user: "a b c".into(), password: Some("✓&".into()) });
    }
}
