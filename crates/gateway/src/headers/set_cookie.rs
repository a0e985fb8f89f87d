//! `Set-Cookie` of programs: none may reach beyond its own place, or shadow one of Wakeful's.

use http::{HeaderMap, HeaderValue, header};

use super::Place;

/// Whether a cookie's name is one of Wakeful's, under any prefix that a browser gives a meaning.
pub(super) fn is_ours(name: &[u8]) -> bool {
    let begins = |name: &[u8], beginning: &[u8]| {
        name.get(..beginning.len()).is_some_and(|start| start.eq_ignore_ascii_case(beginning))
    };
    // Browsers compare the prefixes without regard to case.
    let bare = [b"__Host-".as_slice(), b"__Secure-", b"__Http-", b"__Host-Http-"]
        .into_iter()
        .filter(|prefix| begins(name, prefix))
        .map(<[u8]>::len)
        .max()
        .and_then(|len| name.get(len..))
        .unwrap_or(name);
    begins(bare, b"wakeful_")
}

/// Drops the lines that may not stand and re-scopes the rest under a path route's prefix.
pub(super) fn filter(headers: &mut HeaderMap, place: Place<'_>) {
    if !headers.contains_key(header::SET_COOKIE) {
        return;
    }
    let unchanged = headers
        .get_all(header::SET_COOKIE)
        .iter()
        .all(|line| matches!(judge(line.as_bytes(), place), Judged::Keep));
    if unchanged {
        return;
    }
    let lines: Vec<HeaderValue> = headers
        .get_all(header::SET_COOKIE)
        .iter()
        .filter_map(|line| match judge(line.as_bytes(), place) {
            Judged::Keep => Some(line.clone()),
            Judged::Drop => None,
            Judged::Rewrite(bytes) => HeaderValue::from_bytes(&bytes).ok(),
        })
        .collect();
    headers.remove(header::SET_COOKIE);
    for line in lines {
        headers.append(header::SET_COOKIE, line);
    }
}

#[derive(Debug, PartialEq, Eq)]
enum Judged {
    Keep,
    Drop,
    Rewrite(Vec<u8>),
}

fn judge(line: &[u8], place: Place<'_>) -> Judged {
    let mut parts = line.split(|byte| *byte == b';');
    let pair = parts.next().unwrap_or_default();
    // Without `=`, browsers take the whole as the value of a nameless cookie, which servers then
    // read as a name: what looks like one of ours is treated as one.
    let name = pair.split(|byte| *byte == b'=').next().unwrap_or_default().trim_ascii();
    let nameless = pair.trim_ascii_start().first() == Some(&b'=');
    let shadow =
        nameless && is_ours(pair.trim_ascii_start().get(1..).unwrap_or_default().trim_ascii());
    if is_ours(name) || shadow {
        return Judged::Drop;
    }
    let mut path: Option<&[u8]> = None;
    for attribute in parts.clone() {
        let (key, value) = key_value(attribute);
        if key.eq_ignore_ascii_case(b"domain") && !value.is_empty() && !reaches_only(value, place) {
            return Judged::Drop;
        }
        if key.eq_ignore_ascii_case(b"path") {
            path = Some(value);
        }
    }
    let Place::Path { prefix } = place else { return Judged::Keep };
    if name.get(..7).is_some_and(|start| start.eq_ignore_ascii_case(b"__Host-")) {
        // Holds only with the path of the whole host.
        return Judged::Drop;
    }
    // Without a usable path, a browser takes the directory of the request, which lies within.
    let Some(path) = path.filter(|path| path.first() == Some(&b'/')) else {
        return Judged::Keep;
    };
    if is_within(path, prefix.as_bytes()) {
        return Judged::Keep;
    }
    let mut out = pair.to_vec();
    for attribute in parts {
        if !key_value(attribute).0.eq_ignore_ascii_case(b"path") {
            out.push(b';');
            out.extend_from_slice(attribute);
        }
    }
    out.extend_from_slice(b"; Path=");
    out.extend_from_slice(prefix.as_bytes());
    out.extend_from_slice(path);
    Judged::Rewrite(out)
}

fn key_value(attribute: &[u8]) -> (&[u8], &[u8]) {
    match attribute.iter().position(|byte| *byte == b'=') {
        Some(at) => {
            let (key, value) = attribute.split_at(at);
            (key.trim_ascii(), value.get(1..).unwrap_or_default().trim_ascii())
        }
        None => (attribute.trim_ascii(), b""),
    }
}

/// Whether a `Domain` names this host itself: nothing stands below it that it could reach.
fn reaches_only(domain: &[u8], place: Place<'_>) -> bool {
    let domain = domain.strip_prefix(b".").unwrap_or(domain);
    match place {
        // Hosts of surfaces stand below the main host.
        Place::Path { .. } => false,
        Place::Host { host } => domain.eq_ignore_ascii_case(host.as_bytes()),
    }
}

/// Whether a path lies in a prefix: it, or something behind its slash.
fn is_within(path: &[u8], prefix: &[u8]) -> bool {
    path.strip_prefix(prefix).is_some_and(|rest| rest.is_empty() || rest.first() == Some(&b'/'))
}

#[cfg(test)]
mod tests {
    use super::*;

    const PATH: Place<'_> = Place::Path { prefix: "/u/bob" };
    const HOST: Place<'_> = Place::Host { host: "e1.apps.wakeful.localhost" };

    fn filtered(line: &str, place: Place<'_>) -> Option<String> {
        let mut headers = HeaderMap::new();
        headers.insert(header::SET_COOKIE, line.parse().unwrap());
        filter(&mut headers, place);
        headers.get(header::SET_COOKIE).map(|line| line.to_str().unwrap().to_owned())
    }

    #[test]
    fn no_cookie_shadows_one_of_wakefuls() {
        for name in [
            "wakeful_session",
            "__Host-wakeful_session",
            "__host-wakeful_session-b",
            "__Secure-wakeful_surface",
            "WAKEFUL_session",
            " wakeful_session ",
            "=wakeful_session",
        ] {
            for place in [PATH, HOST] {
                assert_eq!(filtered(&format!("{name}=evil; Path=/"), place), None, "{name}");
            }
        }
    }

    #[test]
    fn no_cookie_reaches_beyond_its_host() {
        for domain in
            ["wakeful.localhost", ".wakeful.localhost", "localhost", "apps.wakeful.localhost"]
        {
            let line = format!("a=1; Domain={domain}");
            assert_eq!(filtered(&line, HOST), None, "{domain}");
            assert_eq!(filtered(&line, PATH), None, "{domain}");
        }
        let own = "a=1; domain=.E1.apps.wakeful.localhost; Secure";
        assert_eq!(filtered(own, HOST).as_deref(), Some(own));
        assert_eq!(filtered("a=1; Domain=", HOST).as_deref(), Some("a=1; Domain="));
    }

    #[test]
    fn on_a_path_route_cookies_stay_below_the_prefix() {
        let table = [
            ("ok=1; Path=/", Some("ok=1; Path=/u/bob/")),
            ("ok=1; path = /x ; HttpOnly", Some("ok=1; HttpOnly; Path=/u/bob/x")),
            ("ok=1; Path=/u/bob/x", Some("ok=1; Path=/u/bob/x")),
            ("ok=1; Path=/u/bob", Some("ok=1; Path=/u/bob")),
            ("ok=1; Path=/u/bobby", Some("ok=1; Path=/u/bob/u/bobby")),
            ("ok=1", Some("ok=1")),
            ("ok=1; Path=x", Some("ok=1; Path=x")),
            ("ok=1; Path=/a; Path=/", Some("ok=1; Path=/u/bob/")),
            ("__Host-a=1; Path=/; Secure", None),
        ];
        for (line, expected) in table {
            assert_eq!(filtered(line, PATH).as_deref(), expected, "{line}");
        }
        assert_eq!(filtered("ok=1; Path=/", HOST).as_deref(), Some("ok=1; Path=/"));
    }

    #[test]
    fn the_lines_that_may_stand_keep_their_order() {
        let mut headers = HeaderMap::new();
        for line in ["a=1", "wakeful_session=evil", "b=2; Path=/", "c=3"] {
            headers.append(header::SET_COOKIE, line.parse().unwrap());
        }
        filter(&mut headers, PATH);
        let lines: Vec<_> = headers.get_all(header::SET_COOKIE).iter().collect();
        assert_eq!(lines, ["a=1", "b=2; Path=/u/bob/", "c=3"]);
    }
}
