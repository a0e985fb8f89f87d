//! What the visitor sees of an answer.

use http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use wakeful_wire::{
    Hosts,
    template::{BasePath, Surface},
};

use super::{
    hop::{Direction, Peer, strip},
    location::{self, Upstreams},
    set, set_cookie,
};
use crate::intent;

/// Where an answer is handed on, and what the visitor may see of it.
#[derive(Debug, Clone, Copy)]
pub struct ResponseContext<'a> {
    /// The public hosts.
    pub hosts: &'a Hosts,
    /// The surface's rules; `None` for the environment server's own.
    pub declared: Option<&'a Surface>,
    /// Where it was asked for.
    pub place: Place<'a>,
    /// The target that the program saw: a path, and perhaps a query.
    pub target: &'a str,
    /// The authority that the request named.
    pub authority: &'a str,
    /// The program's own address, `host:port`.
    pub upstream: &'a str,
    /// Whether a basic-auth pair was injected: the program's challenge then is not the visitor's.
    pub basic: bool,
    /// Whether to keep the answer from running in the dashboard's origin: it answers a
    /// cookie-authenticated request on a path route, and origins are separate.
    pub sandbox: bool,
}

/// Where an answer is handed on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place<'a> {
    /// A path route of the main host, by its prefix without a slash at its end.
    Path {
        /// The prefix.
        prefix: &'a str,
    },
    /// The surface's own host, lower-case and without port.
    Host {
        /// The host.
        host: &'a str,
    },
}

/// Headers that speak for the whole origin. On a path route that origin is the dashboard's, and a
/// program may not speak for it.
const WHOLE_ORIGIN: [&str; 10] = [
    "alt-svc",
    "accept-ch",
    "clear-site-data",
    "expect-ct",
    "nel",
    "origin-agent-cluster",
    "public-key-pins",
    "report-to",
    "service-worker-allowed",
    "strict-transport-security",
];

/// Rewrites an answer's headers into what the visitor is to see. A 101 keeps its upgrade.
pub fn prepare_response(status: StatusCode, headers: &mut HeaderMap, cx: &ResponseContext<'_>) {
    let switches = status == StatusCode::SWITCHING_PROTOCOLS && intent::is_websocket(headers);
    let peer = if cx.declared.is_none() { Peer::Server } else { Peer::Program };
    strip(headers, Direction::Response, peer);
    if switches {
        headers.insert(header::CONNECTION, HeaderValue::from_static("Upgrade"));
        headers.insert(header::UPGRADE, HeaderValue::from_static("websocket"));
    }
    if cx.basic {
        headers.remove(header::WWW_AUTHENTICATE);
    }
    if cx.declared.is_none() {
        // The environment server keeps its sessions by tokens. A cookie would be the dashboard's.
        headers.remove(header::SET_COOKIE);
    }
    set_cookie::filter(headers, cx.place);
    match cx.place {
        Place::Path { .. } => {
            for name in WHOLE_ORIGIN {
                headers.remove(name);
            }
        }
        Place::Host { .. } => keep_other_sites_data(headers),
    }
    let fixes =
        cx.declared.is_none_or(|declared| declared.base_path == BasePath::StripAndFixLocation);
    if fixes || matches!(cx.place, Place::Host { .. }) {
        let upstreams = Upstreams::of(cx);
        for name in [header::LOCATION, header::CONTENT_LOCATION] {
            let mapped = headers
                .get(&name)
                .and_then(|value| value.to_str().ok())
                .and_then(|reference| location::map(reference, cx, &upstreams));
            if let Some(mapped) = mapped {
                set(headers, name, &mapped);
            }
        }
    }
    // Nothing of the environment server is a page, whoever asks and however origins are set up.
    if cx.sandbox || cx.declared.is_none() {
        // Beside the program's own policy, which stays in force: all of them hold at once.
        headers.append(header::CONTENT_SECURITY_POLICY, HeaderValue::from_static("sandbox"));
        headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    }
}

/// `Clear-Site-Data: "cookies"` clears those of the whole registrable domain, the dashboard's and
/// other environments' among them. The rest of it ends at the surface's own origin.
fn keep_other_sites_data(headers: &mut HeaderMap) {
    let name = HeaderName::from_static("clear-site-data");
    if !headers.contains_key(&name) {
        return;
    }
    let mut kept: Vec<String> = Vec::new();
    for line in headers.get_all(&name) {
        let Ok(line) = line.to_str() else { continue };
        let harmless = |item: &&str| {
            !item.is_empty() && !matches!(*item, "\"cookies\"" | "\"*\"" | "\"clientHints\"")
        };
        kept.extend(line.split(',').map(str::trim).filter(harmless).map(str::to_owned));
    }
    headers.remove(&name);
    if !kept.is_empty() {
        set(headers, name, &kept.join(", "));
    }
}
