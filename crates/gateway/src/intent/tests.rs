use super::*;

fn headers(lines: &[(&str, &str)]) -> HeaderMap {
    let mut headers = HeaderMap::new();
    for (name, value) in lines {
        headers.append(header::HeaderName::try_from(*name).unwrap(), value.parse().unwrap());
    }
    headers
}

const HTML: (&str, &str) =
    ("accept", "text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,*/*;q=0.8");
const SOCKET: [(&str, &str); 4] = [
    ("connection", "Upgrade"),
    ("upgrade", "websocket"),
    ("sec-websocket-version", "13"),
    ("sec-websocket-extensions", "permessage-deflate; client_max_window_bits"),
];

fn page() -> HeaderMap {
    headers(&[
        HTML,
        ("sec-fetch-mode", "navigate"),
        ("sec-fetch-dest", "document"),
        ("sec-fetch-site", "none"),
        ("sec-fetch-user", "?1"),
    ])
}

fn fetch(dest: &str, mode: &str) -> HeaderMap {
    headers(&[
        ("accept", "*/*"),
        ("sec-fetch-mode", mode),
        ("sec-fetch-dest", dest),
        ("sec-fetch-site", "same-origin"),
    ])
}

fn socket() -> HeaderMap {
    let mut lines = SOCKET.to_vec();
    lines.push(("origin", "http://wakeful.localhost:7878"));
    headers(&lines)
}

fn with(mut headers: HeaderMap, name: &'static str, value: &str) -> HeaderMap {
    headers.insert(name, value.parse().unwrap());
    headers
}

const COOKIE: Option<SignedInBy> = Some(SignedInBy::Cookie);
const TOKEN: Option<SignedInBy> = Some(SignedInBy::Token);

/// Real header sets of `spec/browser.md`, and what they are.
#[test]
fn requests_are_told_apart_by_what_browsers_really_send() {
    let get = Method::GET;
    let table = [
        ("a page", &get, page(), COOKIE, Visit::PageLoad),
        ("an iframe", &get, with(page(), "sec-fetch-dest", "iframe"), COOKIE, Visit::PageLoad),
        ("a form", &Method::POST, page(), COOKIE, Visit::Submit),
        ("fetch", &get, fetch("empty", "cors"), COOKIE, Visit::Resource),
        (
            "an event stream",
            &get,
            with(fetch("empty", "cors"), "accept", "text/event-stream"),
            COOKIE,
            Visit::Resource,
        ),
        ("an image", &get, fetch("image", "no-cors"), COOKIE, Visit::Resource),
        ("a socket", &get, socket(), COOKIE, Visit::Socket),
        ("a prefetch", &get, with(page(), "sec-purpose", "prefetch"), COOKIE, Visit::Speculative),
        (
            "a prerender",
            &get,
            with(page(), "sec-purpose", "prefetch;prerender"),
            COOKIE,
            Visit::Speculative,
        ),
        ("an old prefetch", &get, with(page(), "x-moz", "prefetch"), COOKIE, Visit::Speculative),
        ("a page over plain HTTP", &get, headers(&[HTML]), COOKIE, Visit::PageLoad),
        ("a fetch over plain HTTP", &get, headers(&[("accept", "*/*")]), COOKIE, Visit::Resource),
        (
            "a fetch that accepts HTML",
            &get,
            with(fetch("empty", "cors"), "accept", "text/html"),
            COOKIE,
            Visit::Resource,
        ),
        (
            "a metadata-only fetch",
            &get,
            headers(&[HTML, ("sec-fetch-site", "same-origin")]),
            COOKIE,
            Visit::Resource,
        ),
        ("HEAD of a page", &Method::HEAD, headers(&[HTML]), COOKIE, Visit::Resource),
        ("a program", &get, headers(&[("accept", "*/*")]), TOKEN, Visit::Program),
        ("a program that takes HTML", &get, headers(&[HTML]), TOKEN, Visit::Program),
        ("a program's socket", &get, headers(&SOCKET), TOKEN, Visit::Program),
        ("nobody's socket", &get, headers(&SOCKET), None, Visit::Stranger),
        ("a stranger's page load", &get, page(), None, Visit::PageLoad),
        ("a crawler", &get, headers(&[("accept", "*/*")]), None, Visit::Stranger),
    ];
    for (what, method, headers, by, expected) in table {
        assert_eq!(visit(method, &headers, by), expected, "{what}");
    }
}

fn rules<'a>(wake: Wake, wake_paths: &'a [String], background: &'a [String]) -> Rules<'a> {
    Rules { wake, wake_paths, background }
}

#[test]
fn what_wakes_is_what_somebody_does() {
    let background = ["/global/*".to_owned(), "*/event".to_owned()];
    let wake_paths = ["/global/start".to_owned()];
    let get = Method::GET;
    let post = Method::POST;
    let preflight = Method::OPTIONS;
    // What, method, path, headers, by, and whether it wakes under `intent` and under `any`.
    let table = [
        ("a page", &get, "/", page(), COOKIE, true, true),
        ("a stranger's page", &get, "/", page(), None, true, true),
        ("a form", &post, "/", page(), COOKIE, true, true),
        ("a POST of a page", &post, "/x", fetch("empty", "cors"), COOKIE, true, true),
        ("an image", &get, "/x.png", fetch("image", "no-cors"), COOKIE, true, true),
        ("a stream", &get, "/stream", fetch("empty", "cors"), COOKIE, true, true),
        ("a socket", &get, "/ws", socket(), COOKIE, true, true),
        ("a background poll", &get, "/global/health", fetch("empty", "cors"), COOKIE, false, false),
        ("a background stream", &get, "/api/event", fetch("empty", "cors"), COOKIE, false, false),
        ("a background socket", &get, "/global/ws", socket(), COOKIE, false, false),
        ("a background POST", &post, "/global/beat", fetch("empty", "cors"), COOKIE, false, false),
        ("a wake path", &get, "/global/start", fetch("empty", "cors"), COOKIE, true, true),
        ("HEAD", &Method::HEAD, "/global/start", page(), COOKIE, false, false),
        ("a preflight", &preflight, "/global/start", fetch("empty", "cors"), None, false, false),
        ("HEAD of a program", &Method::HEAD, "/", headers(&[]), TOKEN, false, false),
        (
            "a prefetch",
            &get,
            "/global/start",
            with(page(), "sec-purpose", "prefetch"),
            COOKIE,
            false,
            false,
        ),
        ("a program", &get, "/global/health", headers(&[]), TOKEN, true, true),
        ("a program's socket", &get, "/global/ws", headers(&SOCKET), TOKEN, true, true),
        ("a crawler", &get, "/", headers(&[("accept", "*/*")]), None, false, true),
        ("a stranger's POST", &post, "/hook", headers(&[]), None, true, true),
        ("our client that waits", &post, "/", with(page(), STATED, "none"), COOKIE, false, false),
        (
            "our client that wakes",
            &get,
            "/global/x",
            with(fetch("empty", "cors"), STATED, "Wake"),
            COOKIE,
            true,
            true,
        ),
        (
            "an unknown statement",
            &get,
            "/global/x",
            with(fetch("empty", "cors"), STATED, "maybe"),
            COOKIE,
            false,
            false,
        ),
    ];
    for (what, method, path, headers, by, intent, any) in table {
        let seen = visit(method, &headers, by);
        for (wake, expected) in [(Wake::Intent, intent), (Wake::Any, any), (Wake::Never, false)] {
            let rules = rules(wake, &wake_paths, &background);
            assert_eq!(wakes(seen, method, path, &headers, rules), expected, "{what}, {wake:?}");
        }
    }
}

#[test]
fn the_environment_servers_own_clients_say_when_they_wake() {
    let get = Method::GET;
    let table = [
        (&get, socket(), COOKIE, false),
        (&get, fetch("empty", "cors"), COOKIE, false),
        (&Method::POST, fetch("empty", "cors"), COOKIE, true),
        (&get, headers(&[]), TOKEN, true),
        (&get, with(headers(&[]), STATED, "none"), TOKEN, false),
        (&get, with(fetch("empty", "cors"), STATED, "wake"), COOKIE, true),
        (&Method::HEAD, with(headers(&[]), STATED, "wake"), TOKEN, false),
    ];
    for (method, headers, by, expected) in table {
        assert_eq!(host_surface_wakes(visit(method, &headers, by), method, &headers), expected);
    }
}

#[test]
fn an_upgrade_is_read_from_lists_in_any_case_and_over_several_lines() {
    let table: [(&[(&str, &str)], bool); 6] = [
        (&[("connection", "keep-alive, Upgrade"), ("upgrade", "WebSocket")], true),
        (&[("connection", "UPGRADE"), ("upgrade", "websocket")], true),
        (
            &[("connection", "keep-alive"), ("connection", "upgrade"), ("upgrade", "websocket")],
            true,
        ),
        (&[("connection", "upgrade"), ("upgrade", "h2c")], false),
        (&[("connection", "upgrades"), ("upgrade", "websocket")], false),
        (&[("upgrade", "websocket")], false),
    ];
    for (lines, expected) in table {
        assert_eq!(is_websocket(&headers(lines)), expected, "{lines:?}");
    }
}

#[test]
fn only_a_get_that_somebody_asked_for_is_a_page_load() {
    assert!(is_page_load(&Method::GET, &page()));
    assert!(!is_page_load(&Method::POST, &page()));
    assert!(!is_page_load(&Method::GET, &with(page(), "sec-purpose", "prefetch")));
    assert!(!is_page_load(&Method::GET, &fetch("empty", "cors")));
    assert!(!is_page_load(&Method::GET, &headers(&[("accept", "text/htmlx, */*")])));
    assert!(is_page_load(&Method::GET, &headers(&[("accept", "*/*, Text/HTML;q=0.5")])));
}

#[test]
fn a_star_stands_for_any_run_of_characters() {
    let table = [
        ("", "", true),
        ("", "/", false),
        ("*", "", true),
        ("*", "/a/b", true),
        ("/a", "/a", true),
        ("/a", "/ab", false),
        ("/a*", "/ab/c", true),
        ("*/event", "/api/event", true),
        ("*/event", "/api/events", false),
        ("/a/*/c", "/a/b/b/c", true),
        ("/a/*/c", "/a/c", false),
        ("*a*b*", "xxaxxbxx", true),
        ("*a*b*", "xxbxxaxx", false),
        ("/**", "/", true),
        ("a*aa", "aaaa", true),
    ];
    for (pattern, path, expected) in table {
        assert_eq!(matches(pattern, path), expected, "{pattern} {path}");
    }
    // No pattern takes exponential time.
    assert!(!matches(&"*a".repeat(200), &"a".repeat(199)));
}
