//! An address of a host or of a platform, in one form.

use std::{
    cmp::Ordering,
    fmt,
    net::{Ipv4Addr, Ipv6Addr},
    str::FromStr,
};

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use wakeful_wire::hosts::Scheme;

use super::RouteClass;

/// The longest address, in bytes.
pub const ADDRESS_MAX: usize = 2_048;

/// The longest host name, in bytes (RFC 1035).
const NAME_MAX: usize = 253;

/// An `http` or `https` address that paths are put behind: origin and perhaps a path, without a
/// slash at the end, query, fragment or user information.
///
/// Two addresses that mean the same are equal: scheme and host are in lower case, a default port
/// is left out, and IP literals are in their usual form.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Address {
    text: String,
    scheme: Scheme,
    class: RouteClass,
}

/// Why a text is not an address.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum AddressError {
    /// It is longer than [`ADDRESS_MAX`].
    #[error("longer than {ADDRESS_MAX} bytes")]
    TooLong,
    /// It does not begin with `http://` or `https://`.
    #[error("must begin with http:// or https://")]
    Scheme,
    /// It holds a name or password. They are secrets, and an address is shown.
    #[error("must not hold a user name or password")]
    UserInformation,
    /// The host is missing or not one. A name outside ASCII is written in its `xn--` form.
    #[error("has no host that can be reached")]
    Host,
    /// The port is not a number from 1 to 65535.
    #[error("has a port that is none")]
    Port,
    /// The path has a dot segment or a character that belongs in no path.
    #[error("has a path that is none")]
    Path,
    /// It has a query or fragment; paths are put behind an address.
    #[error("must not have a query or fragment")]
    Query,
}

impl Address {
    /// Reads an address and brings it to its one form.
    ///
    /// # Errors
    /// What is wrong with it, to be shown to whoever gave it. The error does not repeat the text.
    pub fn new(text: &str) -> Result<Self, AddressError> {
        if text.len() > ADDRESS_MAX {
            return Err(AddressError::TooLong);
        }
        let (scheme, rest) = text.split_once("://").ok_or(AddressError::Scheme)?;
        let scheme = [Scheme::Http, Scheme::Https]
            .into_iter()
            .find(|known| scheme.eq_ignore_ascii_case(known.as_str()))
            .ok_or(AddressError::Scheme)?;
        let authority_end = rest.find(['/', '?', '#', '\\']).unwrap_or(rest.len());
        let (authority, path) = rest.split_at(authority_end);
        if authority.contains('@') {
            return Err(AddressError::UserInformation);
        }
        if path.contains(['?', '#']) {
            return Err(AddressError::Query);
        }
        let (host, port) = split_port(authority)?;
        let host = normal_host(host)?;
        let port = match port {
            None => None,
            Some(port) => Some(parse_port(port)?).filter(|port| *port != scheme.default_port()),
        };
        let path = path.trim_end_matches('/');
        if !is_path(path) {
            return Err(AddressError::Path);
        }
        let class = RouteClass::of(&host);
        let port = port.map_or_else(String::new, |port| format!(":{port}"));
        Ok(Self { text: format!("{scheme}://{host}{port}{path}"), scheme, class })
    }

    /// The address as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Whether it is spoken to by HTTP or HTTPS.
    #[must_use]
    pub const fn scheme(&self) -> Scheme {
        self.scheme
    }

    /// How far away it is.
    #[must_use]
    pub const fn class(&self) -> RouteClass {
        self.class
    }
}

fn split_port(authority: &str) -> Result<(&str, Option<&str>), AddressError> {
    let host_end = if authority.starts_with('[') {
        authority.find(']').ok_or(AddressError::Host)? + 1
    } else {
        authority.find(':').unwrap_or(authority.len())
    };
    let (host, rest) = authority.split_at(host_end);
    match rest.strip_prefix(':') {
        // RFC 3986 allows the colon without a number.
        Some("") => Ok((host, None)),
        Some(port) => Ok((host, Some(port))),
        None if rest.is_empty() => Ok((host, None)),
        None => Err(AddressError::Host),
    }
}

fn parse_port(text: &str) -> Result<u16, AddressError> {
    // `u16::from_str` takes a sign.
    if !text.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(AddressError::Port);
    }
    text.parse().ok().filter(|port| *port != 0).ok_or(AddressError::Port)
}

fn normal_host(text: &str) -> Result<String, AddressError> {
    if let Some(rest) = text.strip_prefix('[') {
        let literal = rest.strip_suffix(']').ok_or(AddressError::Host)?;
        let literal: Ipv6Addr = literal.parse().map_err(|_| AddressError::Host)?;
        return Ok(format!("[{literal}]"));
    }
    let name = text.strip_suffix('.').unwrap_or(text).to_ascii_lowercase();
    let is_label = |label: &str| {
        !label.is_empty()
            && label.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_'))
    };
    if name.len() > NAME_MAX || !name.split('.').all(is_label) {
        return Err(AddressError::Host);
    }
    // Browsers read every name that ends in a number as an IPv4 address, also `127.1` and
    // `0x7f000001`. Only the usual form is taken, so that nobody reads a host differently.
    let last = name.rsplit('.').next().unwrap_or_default();
    let is_number = last.bytes().all(|byte| byte.is_ascii_digit())
        || last
            .strip_prefix("0x")
            .is_some_and(|digits| digits.bytes().all(|digit| digit.is_ascii_hexdigit()));
    if is_number && name.parse::<Ipv4Addr>().is_err() {
        return Err(AddressError::Host);
    }
    Ok(name)
}

fn is_path(path: &str) -> bool {
    let bytes = path.as_bytes();
    let fits = bytes.iter().enumerate().all(|(at, byte)| match byte {
        b'%' => {
            let escape = bytes.get(at + 1..at + 3);
            escape.is_some_and(|digits| digits.iter().all(u8::is_ascii_hexdigit))
        }
        _ => byte.is_ascii_alphanumeric() || b"-._~/!$&'()*+,;=:@".contains(byte),
    });
    // Programs drop dot segments at different places, also escaped ones.
    fits && !path.split('/').any(|segment| {
        matches!(segment.to_ascii_lowercase().replace("%2e", ".").as_str(), "." | "..")
    })
}

// Scheme and class follow from the text.
impl Ord for Address {
    fn cmp(&self, other: &Self) -> Ordering {
        self.text.cmp(&other.text)
    }
}

impl PartialOrd for Address {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl FromStr for Address {
    type Err = AddressError;

    fn from_str(text: &str) -> Result<Self, AddressError> {
        Self::new(text)
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl fmt::Debug for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl Serialize for Address {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.text)
    }
}

impl<'de> Deserialize<'de> for Address {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        Self::new(&text).map_err(serde::de::Error::custom)
    }
}
