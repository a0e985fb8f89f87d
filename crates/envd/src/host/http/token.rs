//! The token endpoint (RFC 6749, with RFC 9449's proofs) and the ticket endpoint.

use axum::{
    Form,
    body::{Body, Bytes},
    extract::{FromRequest as _, Request},
    http::{HeaderMap, HeaderValue, header},
    response::Response,
};
use serde_json::{Map, Value};
use wakeful_wire::host::{TokenError, TokenRequest};

use super::{
    admit::{self, Asked},
    answer::{self, Refusal},
};
use crate::credential::CredentialError;

/// Most bytes of a token request: a grant, a code or a refresh token, and a label.
const BODY_MAX: usize = 16 * 1024;

const FORM: &str = "application/x-www-form-urlencoded";
const JSON: &str = "application/json";

/// The grant types that this release knows.
const GRANT_TYPES: [&str; 3] =
    ["urn:wakeful:oauth:grant", "urn:wakeful:oauth:pairing", "refresh_token"];

/// Answers `POST /oauth/token`. Every error has the shape of RFC 6749 section 5.2.
pub(super) async fn exchange(asked: &Asked, body: Body) -> Response {
    let address = match asked.address() {
        Ok(address) => address,
        Err(refusal) => return unreadable(refusal),
    };
    let bytes = match admit::body(body, BODY_MAX).await {
        Ok(bytes) => bytes,
        Err(refusal) => return unreadable(refusal),
    };
    let request = match read(&asked.head.headers, bytes).await {
        Ok(request) => request,
        Err(error) => return answer::with_body(400, JSON, &error),
    };
    let authority = &asked.host.parts().authority;
    match authority.token(&request, &asked.presented(&address), asked.peer).await {
        Ok(token) => answer::json(&token),
        Err(error) => refused(&error),
    }
}

/// Answers `POST /ticket`.
///
/// # Errors
/// Whatever is wrong with the address or the credentials.
pub(super) fn ticket(asked: &Asked) -> Result<Response, Refusal> {
    let address = asked.address()?;
    let ticket = asked.host.parts().authority.ticket(&asked.presented(&address))?;
    Ok(answer::json(&ticket))
}

fn refused(error: &CredentialError) -> Response {
    if error.denial().is_none() {
        tracing::warn!(error = error as &dyn std::error::Error, "a session cannot be stored");
    }
    let status = error.token_status();
    let mut response = answer::with_body(status, JSON, &error.token_error());
    if let Some(denial) = error.denial() {
        let headers = response.headers_mut();
        answer::challenged(headers, denial, status);
        if let Some(seconds) = answer::retry_after(denial) {
            headers.insert(header::RETRY_AFTER, seconds.into());
        }
    }
    response
}

/// The request did not get as far as credentials.
fn unreadable(refusal: Refusal) -> Response {
    let problem = refusal.problem();
    let sentence = problem.detail.clone().unwrap_or_default();
    let mut response =
        answer::with_body(problem.status, JSON, &error("invalid_request", &sentence));
    if refusal.ends_connection() {
        response.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
    }
    response
}

fn error(name: &str, sentence: &str) -> TokenError {
    TokenError { error: name.to_owned(), error_description: sentence.to_owned(), reason: None }
}

async fn read(headers: &HeaderMap, body: Bytes) -> Result<TokenRequest, TokenError> {
    let invalid = |sentence: &str| error("invalid_request", sentence);
    let media = headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok());
    let media = media.unwrap_or_default().split(';').next().unwrap_or_default().trim();
    let fields = if media.eq_ignore_ascii_case(FORM) {
        form(body)
            .await
            .ok_or_else(|| invalid("The form is malformed, or has a parameter more than once."))?
    } else if media.eq_ignore_ascii_case(JSON) {
        serde_json::from_slice(&body).map_err(|_| invalid("The body is no JSON object."))?
    } else {
        return Err(invalid("Send a form or JSON."));
    };
    let known = match fields.get("grant_type") {
        Some(Value::String(name)) => GRANT_TYPES.contains(&name.as_str()),
        Some(_) | None => return Err(invalid("The grant_type is missing.")),
    };
    if !known {
        let sentence = format!("The grant types are {}.", GRANT_TYPES.join(", "));
        return Err(error("unsupported_grant_type", &sentence));
    }
    // The parser's own words may hold what was sent; they are not repeated.
    serde_json::from_value(Value::Object(fields))
        .map_err(|_| invalid("A parameter of this grant type is missing or no text."))
}

/// The parameters of a form. One without a value counts as not sent, and none may be there twice
/// (RFC 6749 section 3.2).
async fn form(body: Bytes) -> Option<Map<String, Value>> {
    let request = Request::post("/").header(header::CONTENT_TYPE, FORM).body(Body::from(body));
    let Form(pairs) = Form::<Vec<(String, String)>>::from_request(request.ok()?, &()).await.ok()?;
    let mut fields = Map::new();
    for (name, value) in pairs {
        if fields.insert(name, Value::String(value)).is_some() {
            return None;
        }
    }
    fields.retain(|_, value| value.as_str() != Some(""));
    Some(fields)
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn read_as(media: &str, body: &str) -> Result<TokenRequest, String> {
        let mut headers = HeaderMap::new();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_str(media).unwrap());
        let read = read(&headers, Bytes::copy_from_slice(body.as_bytes())).await;
        read.map_err(|error| error.error)
    }

    #[tokio::test]
    async fn a_form_and_json_are_read_alike() {
        let wanted = TokenRequest::Grant {
            grant: "wkg1.a+b".to_owned(),
            label: Some("my laptop".to_owned()),
        };
        let form = "grant_type=urn%3Awakeful%3Aoauth%3Agrant&grant=wkg1.a%2Bb&label=my+laptop";
        let json =
            r#"{"grant_type":"urn:wakeful:oauth:grant","grant":"wkg1.a+b","label":"my laptop"}"#;
        assert_eq!(read_as(FORM, form).await, Ok(wanted.clone()));
        assert_eq!(read_as("Application/JSON; charset=utf-8", json).await, Ok(wanted));
        let bare = "grant_type=refresh_token&refresh_token=x&label=&extra=1";
        let wanted = TokenRequest::Refresh { refresh_token: "x".to_owned() };
        assert_eq!(read_as(FORM, bare).await, Ok(wanted));
    }

    #[tokio::test]
    async fn other_requests_are_refused_by_their_oauth_names() {
        let table = [
            (FORM, "", "invalid_request"),
            (FORM, "grant_type=", "invalid_request"),
            (FORM, "grant_type=password", "unsupported_grant_type"),
            (FORM, "grant_type=refresh_token", "invalid_request"),
            (FORM, "grant_type=refresh_token&refresh_token=a&refresh_token=b", "invalid_request"),
            (JSON, "[]", "invalid_request"),
            (JSON, r#"{"grant_type":7}"#, "invalid_request"),
            (JSON, r#"{"grant_type":"refresh_token","refresh_token":7}"#, "invalid_request"),
            ("text/plain", "grant_type=refresh_token&refresh_token=a", "invalid_request"),
        ];
        for (media, body, name) in table {
            assert_eq!(read_as(media, body).await, Err(name.to_owned()), "{body}");
        }
    }
}
