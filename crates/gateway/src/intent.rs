//! Intent: whether a request may wake a sleeping environment (`design.md`, "Intent").
//!
//! A forgotten tab polls and reconnects for ever; if each of its requests woke the environment, it
//! would never sleep. So a browser wakes by what a person does, and by whatever a surface's
//! template does not call background. What browsers send, and where they send nothing, is in
//! `spec/browser.md`.

use http::{HeaderMap, Method, header};
use wakeful_wire::{
    SurfaceName,
    gate::SignedInBy,
    template::{Surface, Wake},
};

/// The header by which a client of ours states its intent: `wake` or `none`.
pub const STATED: &str = "wakeful-intent";

/// What a request is, as far as waking and holding care.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Visit {
    /// A browser opens a page by GET: held briefly, then shown the waking page.
    PageLoad,
    /// A browser submits a form: held to the budget, since nobody could repeat it.
    Submit,
    /// A page fetched, or guessed at, before anybody asked for it.
    Speculative,
    /// A browser opens a WebSocket.
    Socket,
    /// Any other request of a page: script, image, stream.
    Resource,
    /// A program, known by its token.
    Program,
    /// Nobody known, and no browser by its headers: a crawler, a health check.
    Stranger,
}

/// Which visits wake, as a surface's template says.
#[derive(Debug, Clone, Copy)]
pub struct Rules<'a> {
    /// Which requests wake at all.
    pub wake: Wake,
    /// Path patterns that always count.
    pub wake_paths: &'a [String],
    /// Path patterns that never count.
    pub background: &'a [String],
}

impl<'a> Rules<'a> {
    /// The rules of a declared surface.
    #[must_use]
    pub fn of(surface: &'a Surface, name: &SurfaceName) -> Self {
        Self {
            wake: surface.wake(name),
            wake_paths: &surface.wake_paths,
            background: &surface.background,
        }
    }
}

/// Whether the request asks for the upgrade to a WebSocket. Token lists are read as lists, in any
/// case, over any number of lines (`cases.md`, C11).
#[must_use]
pub fn is_websocket(headers: &HeaderMap) -> bool {
    has_token(headers, &header::CONNECTION, "upgrade")
        && has_token(headers, &header::UPGRADE, "websocket")
}

/// Whether a comma-separated header holds a token, in any case.
#[must_use]
pub fn has_token(headers: &HeaderMap, name: &header::HeaderName, token: &str) -> bool {
    headers
        .get_all(name)
        .iter()
        .flat_map(|line| line.as_bytes().split(|byte| *byte == b','))
        .any(|item| item.trim_ascii().eq_ignore_ascii_case(token.as_bytes()))
}

/// Whether a browser navigates: opens a page or submits a form. Where it sends no `Sec-Fetch-*`
/// (plain HTTP outside `.localhost`), accepting `text/html` says so.
#[must_use]
pub fn is_navigation(method: &Method, headers: &HeaderMap) -> bool {
    if *method == Method::OPTIONS || is_websocket(headers) {
        return false;
    }
    match headers.get("sec-fetch-mode") {
        Some(mode) => mode.as_bytes().eq_ignore_ascii_case(b"navigate"),
        None if sends_fetch_metadata(headers) => false,
        None => accepts_html(headers),
    }
}

/// Whether a browser opens a page by GET because somebody asked for it. A prefetch or prerender is
/// no page load.
#[must_use]
pub fn is_page_load(method: &Method, headers: &HeaderMap) -> bool {
    *method == Method::GET && is_navigation(method, headers) && !is_speculative(headers)
}

/// Whether the browser only prepares for what somebody may ask later.
#[must_use]
pub fn is_speculative(headers: &HeaderMap) -> bool {
    let says = |name: &str, word: &[u8]| {
        headers.get_all(name).iter().any(|line| {
            line.as_bytes()
                .split(|byte| matches!(byte, b';' | b','))
                .any(|item| item.trim_ascii().eq_ignore_ascii_case(word))
        })
    };
    says("sec-purpose", b"prefetch")
        || says("sec-purpose", b"prerender")
        || says("purpose", b"prefetch")
        || says("x-purpose", b"preview")
        || says("x-moz", b"prefetch")
}

fn sends_fetch_metadata(headers: &HeaderMap) -> bool {
    headers.contains_key("sec-fetch-site") || headers.contains_key("sec-fetch-dest")
}

/// Whether `Accept` names `text/html` itself; `*/*` does not.
#[must_use]
pub fn accepts_html(headers: &HeaderMap) -> bool {
    headers
        .get_all(header::ACCEPT)
        .iter()
        .flat_map(|line| line.as_bytes().split(|byte| *byte == b','))
        .map(|range| range.split(|byte| *byte == b';').next().unwrap_or_default().trim_ascii())
        .any(|range| range.eq_ignore_ascii_case(b"text/html"))
}

/// What a request is. `by` says by what the visitor showed who they are: a cookie means a browser,
/// a token means a program.
#[must_use]
pub fn visit(method: &Method, headers: &HeaderMap, by: Option<SignedInBy>) -> Visit {
    if by == Some(SignedInBy::Token) {
        return Visit::Program;
    }
    if is_speculative(headers) {
        return Visit::Speculative;
    }
    if is_websocket(headers) {
        let browser = by.is_some() || headers.contains_key(header::ORIGIN);
        return if browser { Visit::Socket } else { Visit::Stranger };
    }
    if is_navigation(method, headers) {
        return match *method {
            Method::GET => Visit::PageLoad,
            _ if method.is_safe() => Visit::Resource,
            _ => Visit::Submit,
        };
    }
    let browser = by.is_some()
        || sends_fetch_metadata(headers)
        || headers.contains_key("sec-fetch-mode")
        || headers.contains_key(header::ORIGIN);
    if browser { Visit::Resource } else { Visit::Stranger }
}

/// Whether a request may wake a sleeping environment. `path` is the path as the program would see
/// it, without query.
///
/// In this order: HEAD and OPTIONS never wake, nor does anything if the surface says `never`; a
/// client of ours states its intent; programs wake; prefetches do not; then the surface's
/// `wake_paths` and `background`; and what is left wakes, save that under `intent` a stranger's
/// request must be a page load or have an unsafe method.
#[must_use]
pub fn wakes(
    visit: Visit,
    method: &Method,
    path: &str,
    headers: &HeaderMap,
    rules: Rules<'_>,
) -> bool {
    if *method == Method::HEAD || *method == Method::OPTIONS || rules.wake == Wake::Never {
        return false;
    }
    if let Some(stated) = stated(headers) {
        return stated;
    }
    if visit == Visit::Program {
        return true;
    }
    if visit == Visit::Speculative {
        return false;
    }
    if rules.wake_paths.iter().any(|pattern| matches(pattern, path)) {
        return true;
    }
    if rules.background.iter().any(|pattern| matches(pattern, path)) {
        return false;
    }
    match visit {
        Visit::Stranger => rules.wake == Wake::Any || !method.is_safe(),
        Visit::PageLoad | Visit::Submit | Visit::Socket | Visit::Resource => true,
        Visit::Program => true,
        Visit::Speculative => false,
    }
}

/// Whether a request to the reserved surface `host` may wake. Its own clients state their intent;
/// without that, programs and unsafe methods do, a page's polls and sockets do not.
#[must_use]
pub fn host_surface_wakes(visit: Visit, method: &Method, headers: &HeaderMap) -> bool {
    let never = *method == Method::HEAD || *method == Method::OPTIONS;
    match stated(headers) {
        Some(stated) => stated && !never,
        None => !never && (visit == Visit::Program || !method.is_safe()),
    }
}

fn stated(headers: &HeaderMap) -> Option<bool> {
    match headers.get(STATED)?.as_bytes().trim_ascii() {
        value if value.eq_ignore_ascii_case(b"wake") => Some(true),
        value if value.eq_ignore_ascii_case(b"none") => Some(false),
        _ => None,
    }
}

/// Whether a path fits a pattern, in which `*` stands for any run of characters, also slashes.
/// Takes time in proportion to the product of both lengths at most.
#[must_use]
pub fn matches(pattern: &str, path: &str) -> bool {
    let (pattern, path) = (pattern.as_bytes(), path.as_bytes());
    let (mut at, mut seen) = (0, 0);
    // Where the last star stood, and how much of the path it has taken so far.
    let mut star: Option<(usize, usize)> = None;
    while seen < path.len() {
        if pattern.get(at) == Some(&b'*') {
            star = Some((at, seen));
            at += 1;
        } else if pattern.get(at) == path.get(seen) {
            at += 1;
            seen += 1;
        } else if let Some((stood, taken)) = star {
            star = Some((stood, taken + 1));
            at = stood + 1;
            seen = taken + 1;
        } else {
            return false;
        }
    }
    pattern.get(at..).is_some_and(|rest| rest.iter().all(|byte| *byte == b'*'))
}

#[cfg(test)]
mod tests;
