//! Which requests of a page of another origin are refused.

use http::{HeaderMap, HeaderValue, Method, header};
use wakeful_wire::{Hosts, gate::SignedInBy};

use super::{AdmitError, Door};
use crate::intent;

/// Refuses what a page of another origin makes a browser send. Only a cookie is sent without the
/// page's doing, so only cookie-authenticated requests are checked.
///
/// - On a path route they come from the main host's own pages (`Sec-Fetch-Site: same-origin` or
///   `none`), or are page loads. Every app of every tenant is same-site with the main host, so
///   `SameSite` does not tell them apart.
/// - With an unsafe method they carry the door's exact `Origin`, or say `same-origin`.
/// - A WebSocket's `Origin`, where it has one, is the door's own or the dashboard's. Browsers
///   always send one, so a handshake without is a program's.
///
/// `authority` is the one that the request named ([`crate::route::authority`]).
///
/// # Errors
/// The request came from another origin.
pub fn check_origin(
    method: &Method,
    headers: &HeaderMap,
    by: SignedInBy,
    door: Door<'_>,
    authority: &str,
    hosts: &Hosts,
) -> Result<(), AdmitError> {
    if by == SignedInBy::Token {
        return Ok(());
    }
    let own = |origin: &HeaderValue| is_own_origin(origin, door, authority, hosts);
    let origin = headers.get(header::ORIGIN);
    let good = if intent::is_websocket(headers) {
        origin
            .is_none_or(|origin| own(origin) || origin.as_bytes() == hosts.main_origin().as_bytes())
    } else if intent::is_page_load(method, headers) {
        true
    } else {
        match headers.get("sec-fetch-site").map(HeaderValue::as_bytes) {
            Some(b"same-origin" | b"none") => true,
            Some(_) => method.is_safe() && door != Door::Path,
            // A browser that says nothing of where the request comes from, or no browser at all.
            None => match origin {
                Some(origin) => own(origin),
                None => method.is_safe(),
            },
        }
    };
    if good { Ok(()) } else { Err(AdmitError::CrossOrigin) }
}

/// Whether an `Origin` is the door's own: as it is known publicly, or as this request named it
/// (through a tunnel its port differs).
fn is_own_origin(origin: &HeaderValue, door: Door<'_>, authority: &str, hosts: &Hosts) -> bool {
    let host = match door {
        Door::Path => &hosts.domain,
        Door::Host(host) => host,
    };
    let origin = origin.as_bytes();
    if origin == hosts.origin(host).as_bytes() {
        return true;
    }
    origin
        .strip_prefix(hosts.scheme.as_str().as_bytes())
        .and_then(|rest| rest.strip_prefix(b"://"))
        .is_some_and(|named| named.eq_ignore_ascii_case(authority.as_bytes()))
}
