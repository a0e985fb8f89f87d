//! The path of a request: its prefix, and what could leave it.

use wakeful_wire::hosts::OWN_PREFIX;

pub(super) fn split_query(path_and_query: &str) -> (&str, Option<&str>) {
    match path_and_query.split_once('?') {
        Some((path, query)) => (path, Some(query)),
        None => (path_and_query, None),
    }
}

#[derive(Clone, Copy)]
pub(super) enum PathKind {
    Agent,
    EnvHost,
    User,
}

pub(super) fn path_kind(path: &str) -> Option<(PathKind, &str)> {
    let kinds = [
        ("/api/proxy/", PathKind::Agent),
        ("/u/", PathKind::User),
        ("/api/host/", PathKind::EnvHost),
    ];
    kinds.into_iter().find_map(|(prefix, kind)| Some((kind, path.strip_prefix(prefix)?)))
}

/// Whether a path, without its prefix, is one of the gateway's own.
pub(super) fn is_own(path: &str) -> bool {
    path.starts_with(OWN_PREFIX)
}

/// Whether a path, read raw or decoded once, holds a dot segment, a backslash or a NUL. What is
/// still encoded after one decoding is opaque data.
#[must_use]
pub fn could_escape(path: &str) -> bool {
    // Only dots matter to the segment at hand; more than two, or anything else, makes it harmless.
    let mut dots = Some(0_u8);
    let mut bytes = path.bytes();
    while let Some(byte) = bytes.next() {
        let decoded = if byte == b'%' {
            let mut ahead = bytes.clone();
            match (ahead.next().and_then(hex), ahead.next().and_then(hex)) {
                (Some(high), Some(low)) => {
                    bytes = ahead;
                    high << 4 | low
                }
                _ => byte,
            }
        } else {
            byte
        };
        match decoded {
            0 | b'\\' => return true,
            b'/' => {
                if matches!(dots, Some(1 | 2)) {
                    return true;
                }
                dots = Some(0);
            }
            b'.' => dots = dots.filter(|dots| *dots < 2).map(|dots| dots + 1),
            _ => dots = None,
        }
    }
    matches!(dots, Some(1 | 2))
}

const fn hex(digit: u8) -> Option<u8> {
    match digit {
        b'0'..=b'9' => Some(digit - b'0'),
        b'a'..=b'f' => Some(digit - b'a' + 10),
        b'A'..=b'F' => Some(digit - b'A' + 10),
        _ => None,
    }
}
