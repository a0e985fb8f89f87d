//! The ways of somebody who is not signed in, and of pages that belong on another host.

use http::{HeaderMap, HeaderValue, Method, StatusCode};
use wakeful_wire::{
    Hosts, SurfaceName,
    gate::{Route, SignedInBy},
    hosts::{GRANT_TICKET_PATH, NEXT, PathOrigin, SIGN_IN_PATH},
    template::{RouteKind, Surface},
};

use super::{CookieNames, Door};
use crate::{intent, route::Redirect};

/// What somebody gets who is not signed in. The same whether or not there is anything behind.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Anonymous {
    /// 401: a program, or a page's own request, which could not follow a redirect to a page.
    Unauthorized,
    /// To the main host's sign-in and back.
    SignIn {
        /// For `Location`.
        location: String,
    },
    /// To the main host for a ticket for this surface's host, which signs in first if need be.
    Ticket {
        /// For `Location`.
        location: String,
        /// The cookie that ties the ticket to this browser.
        cookie: HeaderValue,
    },
}

/// What somebody gets who is not signed in: page loads go to sign in, all else gets 401. `nonce` is
/// drawn by the caller: at least 128 random bits as letters, digits, `-` or `_`.
#[must_use]
pub fn anonymous(
    method: &Method,
    headers: &HeaderMap,
    door: Door<'_>,
    path_and_query: &str,
    hosts: &Hosts,
    names: &CookieNames,
    nonce: &str,
) -> Anonymous {
    if !intent::is_page_load(method, headers) {
        return Anonymous::Unauthorized;
    }
    match door {
        Door::Path => {
            let next = encode(path_and_query);
            let location = hosts.main_url(&format!("{SIGN_IN_PATH}?{NEXT}={next}"));
            Anonymous::SignIn { location }
        }
        Door::Host(host) => {
            let to = encode(&format!("{}{path_and_query}", hosts.origin(host)));
            let query = format!("{GRANT_TICKET_PATH}?to={to}&nonce={}", encode(nonce));
            let secure = if hosts.is_secure() { "; Secure" } else { "" };
            let cookie = format!(
                "{}={nonce}; Path=/; Max-Age=600; HttpOnly; SameSite=Lax{secure}",
                names.nonce
            );
            match HeaderValue::try_from(cookie) {
                Ok(cookie) => Anonymous::Ticket { location: hosts.main_url(&query), cookie },
                Err(_) => Anonymous::Unauthorized,
            }
        }
    }
}

/// The `Set-Cookie` of a surface host's session, after its ticket was redeemed.
#[must_use]
pub fn surface_cookie(
    hosts: &Hosts,
    names: &CookieNames,
    value: &str,
    max_age_s: u64,
) -> Option<HeaderValue> {
    let secure = if hosts.is_secure() { "; Secure" } else { "" };
    let cookie = format!(
        "{}={value}; Path=/; Max-Age={max_age_s}; HttpOnly; SameSite=Lax{secure}",
        names.surface
    );
    HeaderValue::try_from(cookie).ok()
}

/// The `Set-Cookie` that removes the nonce once its ticket is spent.
#[must_use]
pub fn spent_nonce(hosts: &Hosts, names: &CookieNames) -> Option<HeaderValue> {
    let secure = if hosts.is_secure() { "; Secure" } else { "" };
    let cookie = format!("{}=; Path=/; Max-Age=0; HttpOnly; SameSite=Lax{secure}", names.nonce);
    HeaderValue::try_from(cookie).ok()
}

/// Where a ticket leads after it was redeemed: a path of the same host, whatever the query said.
#[must_use]
pub fn ticket_destination(to: &str) -> &str {
    let inside = to.starts_with('/')
        && !to.starts_with("//")
        && !to.bytes().any(|byte| byte == b'\\' || byte.is_ascii_control());
    if inside { to } else { "/" }
}

/// Where a page load of a path route by cookie is led instead, so that nothing from a sandbox runs
/// in the dashboard's origin (`design.md`, decision 9). `None`: it is served here, because origins
/// are shared, because the surface has no host (its answers are then sandboxed), or because it is
/// no page load of a browser. `rest` is the target without the route's prefix.
#[must_use]
pub fn page_elsewhere(
    method: &Method,
    headers: &HeaderMap,
    by: SignedInBy,
    hosts: &Hosts,
    route: &Route,
    surface: (&SurfaceName, &Surface),
    rest: &str,
) -> Option<Redirect> {
    let (name, declared) = surface;
    let stays = by == SignedInBy::Token
        || hosts.path_origin == PathOrigin::Shared
        || declared.route == RouteKind::Path
        || !intent::is_page_load(method, headers);
    if stays {
        return None;
    }
    let host = hosts.surface_host(route.env, &route.slug, name);
    Some(Redirect {
        status: StatusCode::TEMPORARY_REDIRECT,
        location: format!("{}{rest}", hosts.origin(&host)),
    })
}

/// Percent-encodes a text for a query's value.
#[must_use]
pub fn encode(text: &str) -> String {
    const DIGITS: &[u8; 16] = b"0123456789ABCDEF";
    let mut out = String::with_capacity(text.len() + 16);
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.' | b'~' | b'/') {
            out.push(char::from(byte));
        } else {
            out.push('%');
            for digit in [byte >> 4, byte & 15] {
                out.push(DIGITS.get(usize::from(digit)).map_or('0', |digit| char::from(*digit)));
            }
        }
    }
    out
}
