//! The last hand on every answer of the main host: what a refusal looks like, and the headers that
//! keep browsers safe.

use std::time::Duration;

use axum::{
    extract::{Request, State},
    middleware::Next,
    response::{IntoResponse, Response},
};
use http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use wakeful_wire::{Code, Problem, hosts::Hosts};

use super::{AppState, Refusal, cookies, reference};
use crate::{accounts::retry_after_s, pages};

/// How long a client waits where an answer asks it to and nobody knows how long.
const RETRY_AFTER: Duration = Duration::from_secs(1);

/// What a page may do, beside the rest of its Content-Security-Policy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PageCsp {
    /// Its forms lead to the main host.
    Main,
    /// Its forms lead to the main host and may be redirected from there to surfaces' own hosts:
    /// browsers hold a form's redirects to `form-action` too.
    LeadsToSurfaces,
}

/// No route.
pub(super) async fn not_found() -> Refusal {
    Refusal::new(Code::NotFound)
}

/// A route, but not by this method.
pub(super) async fn method_not_allowed() -> Refusal {
    Refusal::new(Code::MethodNotAllowed)
}

/// Whether a person loads a page, as opposed to a program or a script that calls.
pub(super) fn is_page_load(headers: &HeaderMap) -> bool {
    match headers.get("sec-fetch-mode") {
        Some(mode) => mode == "navigate",
        None => headers
            .get(header::ACCEPT)
            .and_then(|accept| accept.to_str().ok())
            .is_some_and(|accept| accept.contains("text/html")),
    }
}

/// Gives every answer its form and headers.
pub(super) async fn finish(
    State(state): State<AppState>,
    request: Request,
    next: Next,
) -> Response {
    let page = is_page_load(request.headers());
    let get = matches!(*request.method(), Method::GET | Method::HEAD);
    let here = request.uri().path_and_query().map_or("/", |target| target.as_str()).to_owned();
    let hosts = state.engine.hosts().clone();
    let had_session = cookies::has(request.headers(), &hosts.session_cookie());
    let mut response = next.run(request).await;
    if let Some(refusal) = refusal_of(&mut response) {
        response = form(&hosts, &refusal, page, get, &here, response);
        if had_session && refusal.code() == Code::Unauthenticated {
            // What was sent stands for nobody (any more): the browser need not keep it.
            response.headers_mut().append(header::SET_COOKIE, cookies::expire_session(&hosts));
        }
    }
    secure(&hosts, &mut response);
    response
}

/// The refusal of a response, also of one that some part below refused in its own words.
fn refusal_of(response: &mut Response) -> Option<Refusal> {
    if let Some(refusal) = response.extensions_mut().remove::<Refusal>() {
        return Some(refusal);
    }
    let status = response.status();
    let foreign = (status.is_client_error() || status.is_server_error())
        && response
            .headers()
            .get(header::CONTENT_TYPE)
            .is_none_or(|content_type| content_type.as_bytes().starts_with(b"text/plain"));
    foreign.then(|| {
        let known = Code::ALL.iter().find(|code| code.status() == status.as_u16());
        let fallback = if status.is_client_error() { Code::BadRequest } else { Code::Internal };
        Refusal::new(known.copied().unwrap_or(fallback))
    })
}

fn form(
    hosts: &Hosts,
    refusal: &Refusal,
    page: bool,
    get: bool,
    here: &str,
    former: Response,
) -> Response {
    if page && get && refusal.code() == Code::Unauthenticated {
        let to = reference::sign_in(here);
        return (StatusCode::SEE_OTHER, [(header::LOCATION, to)]).into_response();
    }
    let mut response =
        if page { pages::refused(hosts, &refusal.problem) } else { problem(&refusal.problem) };
    *response.status_mut() = former.status();
    for name in [header::ALLOW, header::CONTENT_RANGE, header::SET_COOKIE] {
        for value in former.headers().get_all(&name) {
            response.headers_mut().append(&name, value.clone());
        }
    }
    if matches!(refusal.problem.status, 429 | 503) {
        let wait = retry_after_s(refusal.retry_after.unwrap_or(RETRY_AFTER));
        response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from(wait));
    }
    if refusal.code() == Code::Unauthenticated || refusal.code() == Code::BadCredentials {
        let scheme = HeaderValue::from_static("Bearer realm=\"wakeful\"");
        response.headers_mut().insert(header::WWW_AUTHENTICATE, scheme);
    }
    response
}

fn problem(problem: &Problem) -> Response {
    let body = serde_json::to_string(problem).unwrap_or_default();
    ([(header::CONTENT_TYPE, Problem::MEDIA_TYPE)], body).into_response()
}

fn secure(hosts: &Hosts, response: &mut Response) {
    let page = response.extensions_mut().remove::<PageCsp>();
    let headers = response.headers_mut();
    let csp = match page {
        Some(page) => HeaderValue::from_str(&page_csp(hosts, page)).ok(),
        None => None,
    };
    let nothing = HeaderValue::from_static("default-src 'none'; frame-ancestors 'none'; sandbox");
    headers.entry(header::CONTENT_SECURITY_POLICY).or_insert(csp.unwrap_or(nothing));
    let fixed = [
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::REFERRER_POLICY, "same-origin"),
        (header::HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
        (header::HeaderName::from_static("cross-origin-opener-policy"), "same-origin"),
        (header::CACHE_CONTROL, "no-store"),
    ];
    for (name, value) in fixed {
        headers.entry(name).or_insert(HeaderValue::from_static(value));
    }
}

fn page_csp(hosts: &Hosts, page: PageCsp) -> String {
    let surfaces = match page {
        PageCsp::Main => String::new(),
        PageCsp::LeadsToSurfaces => {
            format!(" {}", hosts.origin(&format!("*.{}", hosts.domain)))
        }
    };
    format!(
        "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; \
         img-src 'self' data:; form-action 'self'{surfaces}; frame-ancestors 'none'; base-uri 'none'"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_load_is_told_by_the_fetch_mode_or_else_by_what_is_accepted() {
        let table = [
            (&[("sec-fetch-mode", "navigate")][..], true),
            (&[("sec-fetch-mode", "cors"), ("accept", "text/html")], false),
            (&[("accept", "text/html,application/xhtml+xml;q=0.9")], true),
            (&[("accept", "*/*")], false),
            (&[], false),
        ];
        for (fields, page) in table {
            let mut headers = HeaderMap::new();
            for (name, value) in fields {
                headers.insert(*name, HeaderValue::from_static(value));
            }
            assert_eq!(is_page_load(&headers), page, "{fields:?}");
        }
    }

    #[test]
    fn only_pages_that_lead_to_surfaces_may_post_towards_their_hosts() {
        let hosts = Hosts::default();
        assert!(!page_csp(&hosts, PageCsp::Main).contains("wakeful.localhost"));
        let csp = page_csp(&hosts, PageCsp::LeadsToSurfaces);
        assert!(csp.contains("form-action 'self' http://*.wakeful.localhost:7878;"), "{csp}");
    }
}
