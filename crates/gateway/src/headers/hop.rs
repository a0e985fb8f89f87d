//! What ends at this hop, and what a visitor may not state.

use http::{HeaderMap, HeaderName, header};
use wakeful_wire::{host::HOST_HEADER, rpc::KNOWN_HEADER};

/// Whose the headers are on the other side of the gateway.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Peer {
    /// A program, which may state nothing in Wakeful's name.
    Program,
    /// The environment server. What it and its clients tell each other goes through: a client, what
    /// it knows the host by; the host, who it is.
    Server,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Direction {
    Request,
    Response,
}

/// Takes away what ends at this hop: the fields of RFC 9110 §7.6.1, those that `Connection` names,
/// and on requests everything by which a visitor could state who or where they are.
pub(super) fn strip(headers: &mut HeaderMap, direction: Direction, peer: Peer) {
    // What is named in `Connection`, except what the gateway itself is answerable for.
    let mut named: Vec<HeaderName> = Vec::new();
    for line in headers.get_all(header::CONNECTION) {
        for item in line.as_bytes().split(|byte| *byte == b',') {
            let item = item.trim_ascii();
            if is_usual(item) {
                continue;
            }
            let stated = [header::HOST, header::CONTENT_LENGTH];
            named.extend(HeaderName::from_bytes(item).ok().filter(|name| !stated.contains(name)));
        }
    }
    for name in named.drain(..) {
        headers.remove(name);
    }
    let ends = |name: &&HeaderName| {
        let passes = peer == Peer::Server && name.as_str() == told(direction);
        !passes && ends_here(name.as_str(), direction)
    };
    named.extend(headers.keys().filter(ends).cloned());
    for name in named {
        headers.remove(name);
    }
}

/// What an environment server and its clients tell each other in Wakeful's name.
const fn told(direction: Direction) -> &'static str {
    match direction {
        Direction::Request => KNOWN_HEADER,
        Direction::Response => HOST_HEADER,
    }
}

/// What nearly every `Connection` line holds, which names no field of its own.
fn is_usual(item: &[u8]) -> bool {
    item.is_empty()
        || item.eq_ignore_ascii_case(b"close")
        || item.eq_ignore_ascii_case(b"keep-alive")
        || item.eq_ignore_ascii_case(b"upgrade")
}

fn ends_here(name: &str, direction: Direction) -> bool {
    let hop = matches!(
        name,
        "connection" | "keep-alive" | "te" | "transfer-encoding" | "upgrade" | "http2-settings"
    ) || name.starts_with("proxy-");
    hop || match direction {
        // `Expect` is answered by this hop: 100 is sent when the program can take the body.
        Direction::Request => matches!(name, "expect" | "proxy") || is_identity(name),
        Direction::Response => begins_folded(name, "wakeful-"),
    }
}

/// Whether a header states who or where the visitor is, in any spelling: programs of the CGI
/// tradition read `X_Forwarded_User` as `X-Forwarded-User`.
fn is_identity(name: &str) -> bool {
    const BEGINNINGS: [&str; 6] =
        ["x-forwarded", "x-wakeful-", "wakeful-", "x-auth-request-", "x-original-", "x-webauth-"];
    const NAMES: [&str; 7] = [
        "forwarded",
        "x-real-ip",
        "x-client-ip",
        "true-client-ip",
        "x-rewrite-url",
        "remote-user",
        "x-remote-user",
    ];
    // Cheap first: most names begin otherwise.
    if !matches!(name.as_bytes().first(), Some(b'x' | b'w' | b'f' | b't' | b'r')) {
        return false;
    }
    BEGINNINGS.iter().any(|beginning| begins_folded(name, beginning))
        || NAMES.iter().any(|other| name.len() == other.len() && begins_folded(name, other))
}

/// Whether a (lower-case) name begins with a text when its underscores are read as dashes.
fn begins_folded(name: &str, beginning: &str) -> bool {
    let fold = |byte: u8| if byte == b'_' { b'-' } else { byte };
    name.len() >= beginning.len()
        && name.bytes().zip(beginning.bytes()).all(|(one, other)| fold(one) == other)
}
