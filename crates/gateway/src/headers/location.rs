//! `Location` and `Content-Location`: references of a program, mapped to the place where it is
//! served by resolving them (RFC 3986 §5), not by looking at how they begin (`cases.md`, C05).
//!
//! Two questions decide. Which target of its own does the program mean? And where would a browser
//! end that reads the reference as it is? Only where the two differ is it rewritten.

use wakeful_wire::template::HostPolicy;

use super::{Place, ResponseContext};
use crate::route::host_of;

/// The authorities by which a program may name itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Upstreams<'a> {
    /// Its own address.
    address: &'a str,
    /// The `Host` that it saw.
    seen: &'a str,
}

impl<'a> Upstreams<'a> {
    /// Those of the program behind an answer.
    #[must_use]
    pub(super) fn of(cx: &ResponseContext<'a>) -> Self {
        let seen = match cx.declared.map(|declared| &declared.host) {
            None | Some(HostPolicy::Keep) => cx.authority,
            Some(HostPolicy::Upstream) => cx.upstream,
            Some(HostPolicy::Fixed(name)) => name,
        };
        Self { address: cx.upstream, seen }
    }

    /// Whether an authority is the program's own address, under whichever name of this machine.
    fn is_address(&self, authority: &str) -> bool {
        if authority.eq_ignore_ascii_case(self.address) {
            return true;
        }
        let port = |authority: &str| authority.rsplit_once(':').map(|(_, port)| port.to_owned());
        let same_port = port(authority).is_some() && port(authority) == port(self.address);
        let local = |authority: &str| {
            host_of(authority).is_some_and(|host| {
                matches!(&*host, "localhost" | "127.0.0.1" | "[::1]" | "0.0.0.0" | "[::]")
            })
        };
        same_port && local(authority) && local(self.address)
    }

    fn is_seen(&self, authority: &str) -> bool {
        authority.eq_ignore_ascii_case(self.seen)
    }
}

/// A reference in its parts (RFC 3986, appendix B).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Reference<'a> {
    scheme: Option<&'a str>,
    authority: Option<&'a str>,
    path: &'a str,
    /// Query and fragment as they stand, with their `?` and `#`.
    tail: &'a str,
}

fn parse(text: &str) -> Reference<'_> {
    let is_scheme = |scheme: &str| {
        scheme.starts_with(|c: char| c.is_ascii_alphabetic())
            && scheme.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'+' | b'-' | b'.'))
    };
    let (scheme, rest) = match text.split_once(':') {
        Some((scheme, rest)) if is_scheme(scheme) => (Some(scheme), rest),
        Some(_) | None => (None, text),
    };
    let (rest, tail) = rest.split_at(rest.find(['?', '#']).unwrap_or(rest.len()));
    match rest.strip_prefix("//") {
        Some(rest) => {
            let (authority, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
            Reference { scheme, authority: Some(authority), path, tail }
        }
        None => Reference { scheme, authority: None, path: rest, tail },
    }
}

/// Resolves a path against a base path, both absolute afterwards (RFC 3986 §5.2.2–5.2.4).
fn resolve(base: &str, path: &str) -> String {
    if path.is_empty() {
        return base.to_owned();
    }
    if path.starts_with('/') {
        return without_dots(path);
    }
    let directory = base.rfind('/').map_or("/", |at| base.get(..=at).unwrap_or("/"));
    without_dots(&format!("{directory}{path}"))
}

fn without_dots(path: &str) -> String {
    let mut kept: Vec<&str> = Vec::new();
    let mut segments = path.split('/').skip(1).peekable();
    while let Some(segment) = segments.next() {
        let last = segments.peek().is_none();
        match dots(segment) {
            Some(dots) => {
                if dots == 2 {
                    kept.pop();
                }
                if last {
                    kept.push("");
                }
            }
            None => kept.push(segment),
        }
    }
    format!("/{}", kept.join("/"))
}

/// How many dots a dot segment has. Browsers take an encoded dot for one, too.
fn dots(segment: &str) -> Option<u8> {
    let mut rest = segment;
    let mut dots = 0;
    while dots < 3 && !rest.is_empty() {
        rest = [".", "%2e", "%2E"].into_iter().find_map(|dot| rest.strip_prefix(dot))?;
        dots += 1;
    }
    matches!(dots, 1 | 2).then_some(dots)
}

/// Whether a path lies in a prefix: it, or something behind its slash.
fn is_within(path: &str, prefix: &str) -> bool {
    path.strip_prefix(prefix).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// The reference that leads a browser where the program meant; `None` if it is to stay as it is.
pub(super) fn map(
    text: &str,
    cx: &ResponseContext<'_>,
    upstreams: &Upstreams<'_>,
) -> Option<String> {
    let reference = parse(text);
    let own_path = cx.target.split('?').next().unwrap_or("/");
    let path_of = |path: &str| if path.is_empty() { "/".to_owned() } else { without_dots(path) };
    match (reference.scheme, reference.authority) {
        // `mailto:` and the like; also `http:x`, which programs do not mean.
        (Some(_), None) => None,
        (scheme, Some(authority)) => {
            let web = scheme.is_none_or(|scheme| {
                scheme.eq_ignore_ascii_case("http") || scheme.eq_ignore_ascii_case("https")
            });
            let address = upstreams.is_address(authority);
            let public = authority.eq_ignore_ascii_case(cx.authority);
            let own = address || upstreams.is_seen(authority) || public;
            if !web || !own {
                return None;
            }
            let path = path_of(reference.path);
            match cx.place {
                // A program that knows its public address has said where to go.
                Place::Host { .. } if public && !address => None,
                Place::Host { host } => {
                    // With the origin: a path of two slashes alone would name another host.
                    Some(format!("{}{path}{}", cx.hosts.origin(host), reference.tail))
                }
                Place::Path { prefix } if is_within(&path, prefix) => {
                    (!public).then(|| format!("{path}{}", reference.tail))
                }
                Place::Path { prefix } => Some(format!("{prefix}{path}{}", reference.tail)),
            }
        }
        (None, None) => {
            let Place::Path { prefix } = cx.place else { return None };
            if reference.path.is_empty() {
                return None;
            }
            let meant = resolve(own_path, reference.path);
            if reference.path.starts_with('/') && is_within(&meant, prefix) {
                // It carries the prefix already: the program knows where it is served.
                return None;
            }
            let wanted = format!("{prefix}{meant}");
            let read = resolve(&format!("{prefix}{own_path}"), reference.path);
            (read != wanted).then(|| format!("{wanted}{}", reference.tail))
        }
    }
}

#[cfg(test)]
mod tests;
