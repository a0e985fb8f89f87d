use std::net::Ipv4Addr;

use http::header;
use proptest::prelude::*;

use super::*;

const ID: &str = "0199f0a0-7b5c-7c3e-9d2f-6a1b2c3d4e5f";
const LOOPBACK: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);
const ELSEWHERE: IpAddr = IpAddr::V4(Ipv4Addr::new(192, 0, 2, 7));

fn router() -> Router {
    Router::new(Arc::new(Hosts::default()))
}

fn host(host: &str) -> HeaderMap {
    let mut headers = HeaderMap::new();
    headers.insert(header::HOST, host.parse().unwrap());
    headers
}

fn at(name: &str, target: &str) -> Result<Target, RouteError> {
    router().route(&Method::GET, &target.parse().unwrap(), &host(name), ELSEWHERE)
}

fn on_main(target: &str) -> Result<Target, RouteError> {
    at("wakeful.localhost:7878", target)
}

fn rest_of(target: &str) -> Option<String> {
    let Ok(Target::Path(path)) = on_main(target) else { return None };
    Some(path.rest(target).to_owned())
}

#[test]
fn hosts_name_surfaces() {
    let table = [
        (format!("{ID}.apps.wakeful.localhost"), "app", HostLabel::Bare),
        (format!("{ID}-dev.apps.wakeful.localhost:7878"), "app", HostLabel::Slug("dev".into())),
        (format!("{ID}.preview.wakeful.localhost"), "app", HostLabel::Preview),
        (format!("{ID}.code.wakeful.localhost"), "vscode", HostLabel::Bare),
        (format!("{ID}.db.wakeful.localhost."), "db", HostLabel::Bare),
        (format!("{ID}-agent.on.wakeful.localhost"), "agent", HostLabel::Surface),
        (
            format!("{}-DEV.Apps.Wakeful.LOCALHOST:1", ID.to_uppercase()),
            "app",
            HostLabel::Slug("dev".into()),
        ),
    ];
    for (name, surface, label) in table {
        let Ok(Target::Host(target)) = at(&name, "/x") else { panic!("{name}") };
        assert_eq!(target.env.to_string(), ID, "{name}");
        assert_eq!(target.surface.as_str(), surface, "{name}");
        assert_eq!(target.label, label, "{name}");
        assert!(!target.own);
        assert_eq!(*target.host, *host_of(&name).unwrap());
        assert!(target.host.chars().all(|c| !c.is_uppercase()));
    }
}

#[test]
fn names_that_are_not_served_are_misdirected_and_names_without_anything_are_not_found() {
    let misdirected = [
        "evil.example",
        "wakeful.localhost.evil.example",
        "apps.wakeful.localhost",
        "x.wakeful.localhost",
        "notwakeful.localhost",
        "x.localhost",
        "127.1",
        "192.168.0.300",
    ];
    for name in misdirected {
        assert_eq!(at(name, "/"), Err(RouteError::Misdirected), "{name}");
    }
    assert_eq!(
        at(&format!("{ID}.apps.wakeful.localhost.evil.example"), "/"),
        Err(RouteError::Misdirected)
    );
    let unknown = [
        "bob.apps.wakeful.localhost".to_owned(),
        format!("{ID}x.apps.wakeful.localhost"),
        format!("{ID}-dev.code.wakeful.localhost"),
        format!("{ID}-dev.preview.wakeful.localhost"),
        format!("{ID}.on.wakeful.localhost"),
        format!("{ID}-host.on.wakeful.localhost"),
        format!("{ID}-app.on.wakeful.localhost"),
        format!("a.{ID}.apps.wakeful.localhost"),
    ];
    for name in unknown {
        assert_eq!(at(&name, "/"), Err(RouteError::Unknown), "{name}");
    }
}

#[test]
fn a_request_needs_exactly_one_well_formed_host() {
    let route = |headers: &HeaderMap, target: &str| {
        router().route(&Method::GET, &target.parse().unwrap(), headers, ELSEWHERE)
    };
    assert_eq!(route(&HeaderMap::new(), "/"), Err(RouteError::HostCount));
    assert_eq!(route(&host(""), "/"), Err(RouteError::HostCount));
    let mut two = host("wakeful.localhost");
    two.append(header::HOST, "wakeful.localhost".parse().unwrap());
    assert_eq!(route(&two, "/"), Err(RouteError::HostCount));
    for bad in [
        "a b",
        "user@wakeful.localhost",
        "wakeful.localhost:x",
        "[::1",
        "[x]",
        ":80",
        "a/b",
        "[::1]x",
    ] {
        assert_eq!(route(&host(bad), "/"), Err(RouteError::HostSyntax), "{bad}");
    }
}

#[test]
fn an_absolute_target_counts_instead_of_the_host() {
    let main = host("wakeful.localhost");
    let route =
        |target: &str| router().route(&Method::GET, &target.parse().unwrap(), &main, ELSEWHERE);
    assert_eq!(route("http://x/u/bob/"), Err(RouteError::Misdirected));
    let target = format!("http://{ID}.apps.wakeful.localhost:7878/a?b");
    assert!(matches!(route(&target), Ok(Target::Host(_))));
    assert_eq!(route("ftp://wakeful.localhost/"), Err(RouteError::Target));
    assert_eq!(route("http://a@wakeful.localhost/"), Err(RouteError::HostSyntax));
}

#[test]
fn paths_name_surfaces_and_their_rest_is_byte_for_byte() {
    let rests = [
        "/a%2520b",
        "/a%2Fb/c",
        "/x//y",
        "//graphql",
        "/@scope/pkg;v=1",
        "/%E2%9C%93",
        "/p?q=a%20b+c&r=%26&flag&empty=&z=%zz",
        "/?",
        "/p?next=//h/p?x%23",
        "/",
        "/%252e%252e/x",
        "/...",
        "/.hidden",
        "/a..b",
        "/x?..%2f..",
        "/%",
        "/%2",
        "/%zz",
    ];
    for rest in rests {
        for prefix in [format!("/api/proxy/{ID}"), "/u/bob".to_owned(), format!("/api/host/{ID}")] {
            let target = format!("{prefix}{rest}");
            assert_eq!(rest_of(&target).as_deref(), Some(rest), "{target}");
        }
    }
    let long = format!("/u/bob/{}", "x".repeat(7 * 1024));
    assert_eq!(rest_of(&long).unwrap().len(), 7 * 1024 + 1);
    let Ok(Target::Path(path)) = on_main("/u/bob/x") else { panic!() };
    assert_eq!(path.place, PathPlace::User(UserName::new("bob").unwrap()));
    assert_eq!(path.prefix("/u/bob/x"), "/u/bob");
}

#[test]
fn targets_that_could_leave_their_prefix_are_refused() {
    let id = ID;
    let bad = [
        format!("/api/proxy/{id}/../e2/s"),
        format!("/api/proxy/{id}/%2e%2e/e2/s"),
        format!("/api/proxy/{id}/..%2fe2/s"),
        format!("/api/proxy/{id}/.%2e%5ce2/s"),
        format!("/api/proxy/{id};x/../e2/s"),
        format!("/api/proxy/{id}\\..\\e2\\s"),
        format!("/api/proxy/{id}%00/s"),
        format!("/api/proxy/{id}/."),
        format!("/api/proxy/{id}/a/%2E"),
        format!("/api/proxy/{id}/a%5cb"),
        format!("/api/proxy/{id}/a%00"),
        "/u/bob/..".to_owned(),
        "/u/../api/projects".to_owned(),
        "/api/host/./x".to_owned(),
    ];
    for target in bad {
        assert_eq!(on_main(&target), Err(RouteError::Escape), "{target}");
    }
    let unknown = [
        format!("/api/proxy/{}/s", id.to_uppercase()),
        "/api/proxy/%65%32/s".to_owned(),
        format!("/api/proxy/{id};x/s"),
        "/u/Bob/s".to_owned(),
        "/u/b%6fb/s".to_owned(),
    ];
    for target in unknown {
        assert_eq!(on_main(&target), Err(RouteError::Unknown), "{target}");
    }
    // Behind no prefix there is nothing that it could name.
    for main in
        ["/api//proxy/x", "/api/proxy//x", "/u//x", "/api/projects/../x", "/", "*", "/uu/bob"]
    {
        assert_eq!(on_main(main), Ok(Target::Main), "{main}");
    }
}

#[test]
fn on_a_host_of_its_own_every_target_passes() {
    let name = format!("{ID}.apps.wakeful.localhost");
    for target in ["/../x", "/%2e%2e/x", "/a%00b", "/a\\b", "//x", "*"] {
        assert!(matches!(at(&name, target), Ok(Target::Host(_))), "{target}");
    }
}

#[test]
fn a_prefix_without_its_slash_is_redirected_with_its_method_and_query() {
    for (target, location) in [
        ("/u/bob".to_owned(), "/u/bob/".to_owned()),
        ("/u/bob?x=1".to_owned(), "/u/bob/?x=1".to_owned()),
        ("/u/bob?".to_owned(), "/u/bob/?".to_owned()),
        (format!("/api/proxy/{ID}?a=%2F"), format!("/api/proxy/{ID}/?a=%2F")),
    ] {
        for method in [Method::GET, Method::POST] {
            let uri = target.parse().unwrap();
            let got = router().route(&method, &uri, &host("wakeful.localhost"), ELSEWHERE);
            let Ok(Target::Redirect(redirect)) = got else { panic!("{target}") };
            assert_eq!((redirect.status.as_u16(), &redirect.location), (308, &location));
        }
    }
}

#[test]
fn the_gateways_own_routes_lie_on_surfaces_only() {
    let name = format!("{ID}.apps.wakeful.localhost");
    let own = |target: &str| {
        let Ok(Target::Host(target)) = at(&name, target) else { panic!("{target}") };
        target.own
    };
    assert!(own("/.wakeful/ticket?ticket=x"));
    assert!(!own("/.wakefulness"));
    assert!(!own("/%2ewakeful/ticket"));
    assert!(!own("/x/.wakeful/ticket"));
    assert!(matches!(on_main("/u/bob/.wakeful/status"), Ok(Target::Path(path)) if path.own));
    assert_eq!(on_main("/.wakeful/status"), Ok(Target::Main));
}

fn navigate() -> HeaderMap {
    let mut headers = host("localhost:7878");
    headers.insert("sec-fetch-mode", "navigate".parse().unwrap());
    headers
}

#[test]
fn pages_asked_for_by_address_are_led_to_the_name() {
    let page = |name: &str, peer: IpAddr| {
        let mut headers = navigate();
        headers.insert(header::HOST, name.parse().unwrap());
        router().route(&Method::GET, &"/u/bob/?x".parse().unwrap(), &headers, peer).unwrap()
    };
    for name in ["localhost", "localhost:7878", "127.0.0.1:7878", "[::1]:7878", "LOCALHOST."] {
        let Target::Redirect(redirect) = page(name, LOOPBACK) else { panic!("{name}") };
        assert_eq!(redirect.location, "http://wakeful.localhost:7878/u/bob/?x");
        assert_eq!(redirect.status.as_u16(), 307);
    }
    assert_eq!(page("192.0.2.1:7878", ELSEWHERE), Target::NeedsName);
    assert_eq!(page("192.0.2.1:7878", LOOPBACK), Target::NeedsName);
    // Whoever is elsewhere and asks for `localhost` came through a tunnel of their own.
    assert!(matches!(page("localhost", ELSEWHERE), Target::Path(_)));
}

#[test]
fn programs_are_served_at_an_address() {
    for name in ["localhost:7878", "127.0.0.1:7878", "[::1]:8080", "192.0.2.1"] {
        assert_eq!(at(name, "/api/projects"), Ok(Target::Main), "{name}");
        assert!(matches!(at(name, "/u/bob/"), Ok(Target::Path(_))), "{name}");
    }
}

#[test]
fn a_wrong_slug_leads_to_the_canonical_host_and_any_other_host_serves() {
    let hosts = Hosts::default();
    let slug = Slug::new("dev").unwrap();
    let canonical = |name: String, target: &str| {
        let Ok(Target::Host(host)) = at(&name, target) else { panic!("{name}") };
        host.canonical(&hosts, &slug, target)
    };
    let wrong = canonical(format!("{ID}-old.apps.wakeful.localhost"), "/a%2Fb?c").unwrap();
    assert_eq!(wrong.status.as_u16(), 308);
    assert_eq!(wrong.location, format!("http://{ID}-dev.apps.wakeful.localhost:7878/a%2Fb?c"));
    assert!(canonical(format!("{ID}-de.apps.wakeful.localhost"), "/").is_some());
    assert!(canonical(format!("{ID}-.apps.wakeful.localhost"), "/").is_some());
    for name in ["-dev.apps", ".apps", ".preview", ".code", "-agent.on"] {
        assert_eq!(canonical(format!("{ID}{name}.wakeful.localhost"), "/"), None, "{name}");
    }
}

/// The definition, spelled out: decode once, then look at the segments.
fn escapes(path: &str) -> bool {
    let bytes = path.as_bytes();
    let mut decoded = Vec::new();
    let mut at = 0;
    while at < bytes.len() {
        let pair = path.get(at + 1..at + 3).filter(|_| bytes[at] == b'%');
        match pair.filter(|pair| pair.bytes().all(|b| b.is_ascii_hexdigit())) {
            Some(pair) => {
                decoded.push(u8::from_str_radix(pair, 16).unwrap());
                at += 3;
            }
            None => {
                decoded.push(bytes[at]);
                at += 1;
            }
        }
    }
    decoded.contains(&0)
        || decoded.contains(&b'\\')
        || decoded.split(|b| *b == b'/').any(|segment| segment == b"." || segment == b"..")
}

proptest! {
    #[test]
    fn what_could_escape_is_what_the_definition_says(
        parts in prop::collection::vec(
            prop::sample::select(vec![
                "/", ".", "..", "%2e", "%2E", "%2f", "%5c", "%00", "%", "%2", "%25", "2e", "a", "\\",
            ]),
            0..12,
        )
    ) {
        let path = parts.concat();
        prop_assert_eq!(could_escape(&path), escapes(&path), "{}", path);
    }
}
