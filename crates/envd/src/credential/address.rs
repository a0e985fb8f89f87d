//! Addresses as a proof's `htu` names them (RFC 9449 section 4.3).
//!
//! The gateway knows at which public address a request arrived, `envd` does not. So the address to
//! compare with is put together of the base that the gateway states and the path of the request.
//! Both sides are brought to one form by RFC 3986 section 6.2.2 and 6.2.3: scheme and host in lower
//! case, no default port, escapes in upper case and only where needed, no dot segments. Query and
//! fragment are dropped.

use std::{fmt, net::Ipv6Addr};

/// The longest address that is looked at, in bytes.
pub const ADDRESS_MAX: usize = 2_048;

/// An `http` or `https` address in normal form, without query and fragment.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct HttpAddress {
    origin: String,
    path: String,
}

/// The text is not an `http` or `https` address.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not an http or https address of at most {ADDRESS_MAX} bytes")]
pub struct AddressError;

impl HttpAddress {
    /// Reads an absolute address.
    ///
    /// # Errors
    /// For another scheme, for user information, for an empty or odd host, for a malformed escape,
    /// and for anything longer than [`ADDRESS_MAX`].
    pub fn parse(text: &str) -> Result<Self, AddressError> {
        if text.len() > ADDRESS_MAX {
            return Err(AddressError);
        }
        let text = text.split_once('#').map_or(text, |(before, _)| before);
        let text = text.split_once('?').map_or(text, |(before, _)| before);
        let (scheme, rest) = text.split_once("://").ok_or(AddressError)?;
        let (scheme, default_port) = if scheme.eq_ignore_ascii_case("https") {
            ("https", 443)
        } else if scheme.eq_ignore_ascii_case("http") {
            ("http", 80)
        } else {
            return Err(AddressError);
        };
        let (authority, path) = rest.find('/').map_or((rest, "/"), |at| rest.split_at(at));
        let authority = normal_authority(authority, default_port).ok_or(AddressError)?;
        Ok(Self {
            origin: format!("{scheme}://{authority}"),
            path: normal_path(path).ok_or(AddressError)?,
        })
    }

    /// The address of `target` below this one: a request's path, with or without a query. A slash
    /// at the end of this address and the one that begins `target` are one slash.
    ///
    /// # Errors
    /// When `target` does not begin with a slash, is malformed, or makes the whole too long.
    pub fn below(&self, target: &str) -> Result<Self, AddressError> {
        let target = target.split_once('#').map_or(target, |(before, _)| before);
        let target = target.split_once('?').map_or(target, |(before, _)| before);
        if !target.starts_with('/') || target.len() > ADDRESS_MAX - self.path.len() {
            return Err(AddressError);
        }
        let path = format!("{}{target}", self.path.trim_end_matches('/'));
        Ok(Self { origin: self.origin.clone(), path: normal_path(&path).ok_or(AddressError)? })
    }
}

impl fmt::Display for HttpAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", self.origin, self.path)
    }
}

fn normal_authority(text: &str, default_port: u16) -> Option<String> {
    let (host, port) = match text.strip_prefix('[') {
        Some(rest) => {
            let (address, rest) = rest.split_once(']')?;
            let address: Ipv6Addr = address.parse().ok()?;
            (
                format!("[{address}]"),
                rest.strip_prefix(':').or_else(|| rest.is_empty().then_some(""))?,
            )
        }
        None => {
            let (host, port) = text.split_once(':').unwrap_or((text, ""));
            let fits = host
                .bytes()
                .all(|b| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'-' | b'_' | b'~'));
            if host.is_empty() || !fits {
                return None;
            }
            (host.to_ascii_lowercase(), port)
        }
    };
    if port.is_empty() {
        return Some(host);
    }
    if !port.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    let port: u16 = port.parse().ok()?;
    Some(if port == default_port { host } else { format!("{host}:{port}") })
}

fn normal_path(text: &str) -> Option<String> {
    let mut decoded = String::with_capacity(text.len());
    let mut bytes = text.bytes();
    while let Some(byte) = bytes.next() {
        if byte == b'%' {
            let digit = |b: u8| char::from(b).to_digit(16).and_then(|d| u8::try_from(d).ok());
            let byte = digit(bytes.next()?)? << 4 | digit(bytes.next()?)?;
            if is_unreserved(byte) {
                decoded.push(char::from(byte));
            } else {
                decoded.push('%');
                for digit in [byte >> 4, byte & 0xf] {
                    let digit = char::from_digit(u32::from(digit), 16)?;
                    decoded.push(digit.to_ascii_uppercase());
                }
            }
        } else if is_unreserved(byte) || b"/!$&'()*+,;=:@".contains(&byte) {
            decoded.push(char::from(byte));
        } else {
            return None;
        }
    }
    Some(without_dot_segments(&decoded))
}

const fn is_unreserved(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_' | b'~')
}

/// RFC 3986 section 5.2.4 for a path that begins with a slash.
fn without_dot_segments(path: &str) -> String {
    let mut kept: Vec<&str> = Vec::new();
    let mut segments = path.split('/').skip(1).peekable();
    while let Some(segment) = segments.next() {
        let is_last = segments.peek().is_none();
        match segment {
            "." | ".." => {
                if segment == ".." {
                    kept.pop();
                }
                if is_last {
                    kept.push("");
                }
            }
            _ => kept.push(segment),
        }
    }
    format!("/{}", kept.join("/"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_that_mean_the_same_have_one_form() {
        let table = [
            ("https://example.org", "https://example.org/"),
            ("HTTPS://EXAMPLE.org:443/a?q=1#f", "https://example.org/a"),
            ("http://example.org:80", "http://example.org/"),
            ("http://example.org:/", "http://example.org/"),
            ("https://example.org:80/", "https://example.org:80/"),
            ("http://e/%7euser/%41%2f%c3%a9", "http://e/~user/A%2F%C3%A9"),
            ("http://e/a/./b/../c/%2e%2E/d", "http://e/a/d"),
            ("http://e/a/..", "http://e/"),
            ("http://e/a/b/.", "http://e/a/b/"),
            ("http://e/../../x", "http://e/x"),
            ("http://e//a//", "http://e//a//"),
            ("http://[0:0:0:0:0:0:0:1]:7878/x", "http://[::1]:7878/x"),
            ("http://e?x", "http://e/"),
        ];
        for (text, normal) in table {
            assert_eq!(HttpAddress::parse(text).unwrap().to_string(), normal, "{text}");
            let again = HttpAddress::parse(normal).unwrap();
            assert_eq!(again, HttpAddress::parse(text).unwrap());
        }
    }

    #[test]
    fn other_texts_are_no_addresses() {
        let long = format!("http://e/{}", "a".repeat(ADDRESS_MAX));
        for bad in [
            "",
            "/path",
            "example.org/a",
            "ftp://example.org/",
            "wss://example.org/",
            "http:///a",
            "http://user@example.org/",
            "http://user:1@example.org/",
            "http://example.org:99999/",
            "http://example.org:+80/",
            "http://exa mple.org/",
            "http://[::1/",
            "http://[::1]x/",
            "http://e/a b",
            "http://e/%",
            "http://e/%4",
            "http://e/%zz",
            "http://e/é",
            "http://e/\\",
            "http://e/\u{0}",
            &long,
        ] {
            assert_eq!(HttpAddress::parse(bad), Err(AddressError), "{bad:?}");
        }
    }

    #[test]
    fn a_request_stands_below_the_stated_base() {
        let base = HttpAddress::parse("https://w.example/api/host/e1/").unwrap();
        let below = |target| base.below(target).map(|address| address.to_string());
        assert_eq!(below("/shell?after=3").unwrap(), "https://w.example/api/host/e1/shell");
        assert_eq!(below("/").unwrap(), "https://w.example/api/host/e1/");
        assert_eq!(below("shell"), Err(AddressError));
        assert_eq!(below(&format!("/{}", "a".repeat(ADDRESS_MAX))), Err(AddressError));
        let root = HttpAddress::parse("http://localhost:9").unwrap();
        assert_eq!(root.below("/shell").unwrap().to_string(), "http://localhost:9/shell");
    }
}
