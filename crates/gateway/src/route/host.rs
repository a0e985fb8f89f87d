//! The authority that a request names, and the host in it.

use std::{borrow::Cow, net::IpAddr};

use http::{HeaderMap, Uri, header};

use super::RouteError;

/// The authority that the request names: of an absolute target, else of the one `Host`
/// (RFC 9112 §3.2.2). Every request needs exactly one `Host` all the same.
///
/// # Errors
/// None, several, an empty one; or a target that is no URL of HTTP.
pub fn authority<'a>(uri: &'a Uri, headers: &'a HeaderMap) -> Result<&'a str, RouteError> {
    let mut lines = headers.get_all(header::HOST).iter();
    let host = lines.next().ok_or(RouteError::HostCount)?;
    if lines.next().is_some() || host.is_empty() {
        return Err(RouteError::HostCount);
    }
    let host = host.to_str().map_err(|_| RouteError::HostSyntax)?;
    let Some(authority) = uri.authority() else { return Ok(host) };
    match uri.scheme_str() {
        Some("http" | "https") => Ok(authority.as_str()),
        Some(_) | None => Err(RouteError::Target),
    }
}

/// The host of an authority: lower-case, without port and trailing dot; an IPv6 literal keeps its
/// brackets. `None` if it is malformed.
#[must_use]
pub fn host_of(authority: &str) -> Option<Cow<'_, str>> {
    let (host, port) = if authority.starts_with('[') {
        let end = authority.find(']')?;
        let (host, after) = authority.split_at(end + 1);
        match after {
            "" => (host, ""),
            after => (host, after.strip_prefix(':')?),
        }
    } else {
        authority.split_once(':').unwrap_or((authority, ""))
    };
    let host = host.strip_suffix('.').unwrap_or(host);
    let in_name = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'.' | b'_');
    let good = match host.strip_prefix('[').and_then(|host| host.strip_suffix(']')) {
        Some(inside) => inside.parse::<std::net::Ipv6Addr>().is_ok(),
        None => !host.is_empty() && host.bytes().all(in_name),
    };
    if !good || !port.bytes().all(|b| b.is_ascii_digit()) || port.len() > 5 {
        return None;
    }
    if host.bytes().any(|b| b.is_ascii_uppercase()) {
        Some(Cow::Owned(host.to_ascii_lowercase()))
    } else {
        Some(Cow::Borrowed(host))
    }
}

/// What stands before `.domain` in a host below it.
pub(super) fn below<'a>(host: &'a str, domain: &str) -> Option<&'a str> {
    host.strip_suffix(domain)?.strip_suffix('.')
}

pub(super) fn literal(host: &str) -> Option<IpAddr> {
    match host.strip_prefix('[').and_then(|host| host.strip_suffix(']')) {
        Some(inside) => inside.parse().ok().map(IpAddr::V6),
        None => host.parse().ok().map(IpAddr::V4),
    }
}
