//! References: percent-encoding, and where a sign-in may lead on to.

use std::fmt::Write as _;

use wakeful_wire::hosts::{Hosts, NEXT, SIGN_IN_PATH};

/// The longest place to go on to, in bytes.
const NEXT_MAX: usize = 4_096;

/// A text as one value of a query, or one segment of a path.
#[must_use]
pub(crate) fn encode(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for byte in text.bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => {
                out.push(char::from(byte));
            }
            // Writing to a string cannot fail.
            _ => drop(write!(out, "%{byte:02X}")),
        }
    }
    out
}

/// The sign-in page, leading on to `next`.
#[must_use]
pub(crate) fn sign_in(next: &str) -> String {
    format!("{SIGN_IN_PATH}?{NEXT}={}", encode(next))
}

/// Where a sign-in leads on to: a path of the main host, and nothing else. Given as a path or as a
/// whole URL of the main host.
#[must_use]
pub(crate) fn next<'a>(hosts: &Hosts, asked: Option<&'a str>) -> Option<&'a str> {
    let asked = asked?;
    let path = asked.strip_prefix(hosts.main_origin().as_str()).unwrap_or(asked);
    let mut bytes = path.bytes();
    // A browser reads `//host` and `/\host` as another host, and drops tabs and line ends first.
    let local = bytes.next() == Some(b'/')
        && !matches!(bytes.next(), Some(b'/' | b'\\'))
        && path.bytes().all(|b| b > b' ' && b != 0x7f)
        && path.len() <= NEXT_MAX;
    local.then_some(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everything_but_the_unreserved_is_encoded() {
        assert_eq!(encode("a-B_1.~"), "a-B_1.~");
        assert_eq!(encode("/p?q=a b&c#ü"), "%2Fp%3Fq%3Da%20b%26c%23%C3%BC");
    }

    #[test]
    fn a_sign_in_leads_on_within_the_main_host_alone() {
        let hosts = Hosts::default();
        let table = [
            ("/projects", Some("/projects")),
            ("/u/alice/?x=1#y", Some("/u/alice/?x=1#y")),
            ("/", Some("/")),
            ("http://wakeful.localhost:7878/account", Some("/account")),
            ("http://wakeful.localhost:7878.evil.example/", None),
            ("http://wakeful.localhost:7878@evil.example/", None),
            ("http://wakeful.localhost:7878//evil.example/", None),
            ("http://evil.example/", None),
            ("//evil.example/", None),
            ("/\\evil.example/", None),
            ("/\t/evil.example/", None),
            ("\\/evil.example", None),
            ("javascript:alert(1)", None),
            ("projects", None),
            ("", None),
        ];
        for (asked, path) in table {
            assert_eq!(next(&hosts, Some(asked)), path, "{asked:?}");
        }
        assert_eq!(next(&hosts, None), None);
        let long = format!("/{}", "x".repeat(NEXT_MAX));
        assert_eq!(next(&hosts, Some(&long)), None);
    }
}
