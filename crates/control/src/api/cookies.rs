//! Cookies of the main host.

use std::time::Duration;

use http::{HeaderMap, HeaderValue, header};
use wakeful_wire::hosts::Hosts;

/// The most values of one name that are tried.
const CANDIDATES_MAX: usize = 16;

/// Every value that was sent under a name: a browser may send several, and only one of them holds.
pub(super) fn candidates<'a>(headers: &'a HeaderMap, name: &str) -> Vec<&'a str> {
    headers
        .get_all(header::COOKIE)
        .iter()
        .filter_map(|line| line.to_str().ok())
        .flat_map(|line| line.split(';'))
        .filter_map(|pair| pair.trim().split_once('='))
        .filter(|(found, _)| *found == name)
        .map(|(_, value)| value.trim_matches('"'))
        .take(CANDIDATES_MAX)
        .collect()
}

/// Whether any value was sent under a name.
pub(super) fn has(headers: &HeaderMap, name: &str) -> bool {
    !candidates(headers, name).is_empty()
}

/// Sets the session cookie.
pub(crate) fn session(hosts: &Hosts, value: &str, lifetime: Duration) -> HeaderValue {
    let secure = if hosts.is_secure() { "; Secure" } else { "" };
    let name = hosts.session_cookie();
    let age = lifetime.as_secs();
    let text = format!("{name}={value}; Path=/; Max-Age={age}; HttpOnly; SameSite=Lax{secure}");
    // Names and values are letters, digits, dashes and underscores.
    HeaderValue::from_str(&text).unwrap_or_else(|_| HeaderValue::from_static(""))
}

/// Takes the session cookie back.
pub(crate) fn expire_session(hosts: &Hosts) -> HeaderValue {
    session(hosts, "", Duration::ZERO)
}

#[cfg(test)]
mod tests {
    use wakeful_wire::hosts::Scheme;

    use super::*;

    #[test]
    fn every_value_of_a_name_is_a_candidate() {
        let mut headers = HeaderMap::new();
        headers.append(header::COOKIE, HeaderValue::from_static("s=old; x=1; s=new; ss=no"));
        headers.append(header::COOKIE, HeaderValue::from_static("s=\"quoted\";s=a=b; s"));
        assert_eq!(candidates(&headers, "s"), ["old", "new", "quoted", "a=b"]);
        assert!(!has(&headers, "t"));
    }

    #[test]
    fn by_https_the_cookie_is_secure_and_bound_to_its_host() {
        let mut hosts = Hosts::default();
        let plain = session(&hosts, "v", Duration::from_secs(60));
        let expected = "wakeful_session=v; Path=/; Max-Age=60; HttpOnly; SameSite=Lax";
        assert_eq!(plain, expected);
        hosts.scheme = Scheme::Https;
        hosts.cookie_suffix = "b".to_owned();
        let secure = session(&hosts, "v", Duration::from_secs(60));
        let expected =
            "__Host-wakeful_session-b=v; Path=/; Max-Age=60; HttpOnly; SameSite=Lax; Secure";
        assert_eq!(secure, expected);
    }
}
