//! What the program sees of a request.

use std::{fmt::Write as _, net::IpAddr};

use http::{HeaderMap, HeaderName, HeaderValue, header};
use wakeful_wire::{
    Hosts, SurfaceName, UserName,
    host::PUBLIC_ADDRESS_HEADER,
    template::{HostPolicy, OriginPolicy, Surface},
};

use super::{
    hop::{Direction, Peer, strip},
    set, set_cookie,
};
use crate::admit;

/// What the program is to see of the connection in front.
#[derive(Debug, Clone, Copy)]
pub struct RequestContext<'a> {
    /// The public hosts.
    pub hosts: &'a Hosts,
    /// The surface's name.
    pub surface: &'a SurfaceName,
    /// Its rules; `None` for the environment server's own surface, which sees what was sent.
    pub declared: Option<&'a Surface>,
    /// The authority that the request named ([`crate::route::authority`]).
    pub authority: &'a str,
    /// The program's own address, `host:port`.
    pub upstream: &'a str,
    /// Where the connection came from.
    pub peer: IpAddr,
    /// Who visits, where somebody is signed in.
    pub user: Option<&'a UserName>,
    /// The basic-auth pair to inject, as a value of `Authorization` ([`basic`]).
    pub basic: Option<&'a HeaderValue>,
    /// The prefix of a path route, without a slash at its end.
    pub prefix: Option<&'a str>,
    /// Whether the request is a WebSocket handshake that is to be passed on as one.
    pub upgrade: bool,
}

/// The value of `Authorization` for a pair `user:password`. It is marked as sensitive. `None` for
/// a pair that does not fit in a header, which no generated pair is.
#[must_use]
pub fn basic(pair: &str) -> Option<HeaderValue> {
    use base64::{Engine as _, engine::general_purpose::STANDARD};
    let mut value = HeaderValue::try_from(format!("Basic {}", STANDARD.encode(pair))).ok()?;
    value.set_sensitive(true);
    Some(value)
}

/// The host that the program sees under its surface's rules.
#[must_use]
pub fn seen_host<'a>(cx: &RequestContext<'a>) -> &'a str {
    match cx.declared.map(|declared| &declared.host) {
        None | Some(HostPolicy::Keep) => cx.authority,
        Some(HostPolicy::Upstream) => cx.upstream,
        Some(HostPolicy::Fixed(name)) => name,
    }
}

/// Rewrites a request's headers into what the program is to see.
pub fn prepare_request(headers: &mut HeaderMap, cx: &RequestContext<'_>) {
    let peer = if cx.declared.is_none() { Peer::Server } else { Peer::Program };
    strip(headers, Direction::Request, peer);
    filter_cookies(headers);
    let env_host = cx.surface.as_str() == "host";
    let passes_authorization = env_host || cx.surface.as_str() == "app";
    match cx.basic {
        Some(basic) => {
            headers.insert(header::AUTHORIZATION, basic.clone());
        }
        None => {
            let mut lines = headers.get_all(header::AUTHORIZATION).iter();
            if !passes_authorization || lines.any(|line| admit::our_token(line).is_some()) {
                headers.remove(header::AUTHORIZATION);
            }
        }
    }
    let seen = seen_host(cx);
    if headers.get(header::HOST).map(HeaderValue::as_bytes) != Some(seen.as_bytes()) {
        set(headers, header::HOST, seen);
    }
    match cx.declared.map(|declared| declared.origin) {
        None | Some(OriginPolicy::Keep) => {}
        Some(OriginPolicy::Drop) => {
            headers.remove(header::ORIGIN);
        }
        Some(OriginPolicy::Rewrite) => {
            // `null` stays: a page without an origin does not get one from here.
            let known = headers.get(header::ORIGIN).is_some_and(|origin| origin != "null");
            if known {
                let scheme = match cx.declared.map(|declared| &declared.host) {
                    None | Some(HostPolicy::Keep) => cx.hosts.scheme.as_str(),
                    Some(HostPolicy::Upstream | HostPolicy::Fixed(_)) => "http",
                };
                set(headers, header::ORIGIN, &format!("{scheme}://{seen}"));
            }
        }
    }
    let mut peer = String::with_capacity(40);
    // Writing to a string cannot fail.
    let _ = write!(peer, "{}", cx.peer.to_canonical());
    set(headers, HeaderName::from_static("x-forwarded-for"), &peer);
    set(headers, HeaderName::from_static("x-forwarded-host"), cx.authority);
    let proto = HeaderValue::from_static(cx.hosts.scheme.as_str());
    headers.insert(HeaderName::from_static("x-forwarded-proto"), proto);
    if let Some(prefix) = cx.prefix {
        set(headers, HeaderName::from_static("x-forwarded-prefix"), prefix);
    }
    // What proofs are made for (RFC 9449 §4.2): from the configuration alone, since whoever sends
    // the request chooses its `Host`.
    if env_host && let Some(prefix) = cx.prefix {
        let address = cx.hosts.main_url(prefix);
        set(headers, HeaderName::from_static(PUBLIC_ADDRESS_HEADER), &address);
    }
    if let Some(user) = cx.user {
        set(headers, HeaderName::from_static("x-wakeful-user"), user.as_str());
    }
    if cx.upgrade {
        headers.insert(header::CONNECTION, HeaderValue::from_static("Upgrade"));
        headers.insert(header::UPGRADE, HeaderValue::from_static("websocket"));
    }
}

/// Takes Wakeful's own cookies away and joins the rest in one line, in their order. Every name
/// that begins with `wakeful_` is Wakeful's, so that one installation's never reach the programs
/// of another.
fn filter_cookies(headers: &mut HeaderMap) {
    let mut lines = headers.get_all(header::COOKIE).iter();
    let Some(first) = lines.next() else { return };
    let single = lines.next().is_none();
    if single && !first.as_bytes().split(|byte| *byte == b';').any(is_our_pair) {
        return;
    }
    let mut kept: Vec<u8> = Vec::with_capacity(first.len());
    for line in headers.get_all(header::COOKIE) {
        for pair in line.as_bytes().split(|byte| *byte == b';') {
            let pair = pair.trim_ascii();
            if pair.is_empty() || is_our_pair(pair) {
                continue;
            }
            if !kept.is_empty() {
                kept.extend_from_slice(b"; ");
            }
            kept.extend_from_slice(pair);
        }
    }
    match HeaderValue::from_bytes(&kept) {
        Ok(value) if !kept.is_empty() => {
            headers.insert(header::COOKIE, value);
        }
        Ok(_) | Err(_) => {
            headers.remove(header::COOKIE);
        }
    }
}

fn is_our_pair(pair: &[u8]) -> bool {
    let name = pair.split(|byte| *byte == b'=').next().unwrap_or_default();
    set_cookie::is_ours(name.trim_ascii())
}
