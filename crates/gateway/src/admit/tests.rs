use std::{collections::BTreeMap, sync::Arc};

use http::Method;
use wakeful_wire::{
    EnvId, Slug, SurfaceName,
    gate::{Route, SignedInBy},
    hosts::PathOrigin,
    template::Surface,
};

use super::*;

type Lines = &'static [(&'static str, &'static str)];

const OWN: &str = "http://wakeful.localhost:7878";
const MAIN: &str = "wakeful.localhost:7878";
const HOST: &str = "e1.apps.wakeful.localhost";

fn headers(lines: &[(&str, &str)]) -> HeaderMap {
    let mut headers = HeaderMap::new();
    for (name, value) in lines {
        headers.append(HeaderName::try_from(*name).unwrap(), value.parse().unwrap());
    }
    headers
}

fn names() -> CookieNames {
    CookieNames::of(&Hosts::default())
}

fn read(lines: &[(&str, &str)], door: Door<'_>) -> Result<Credentials, AdmitError> {
    credentials(&headers(lines), &names(), door)
}

fn token(text: &str) -> Option<Credential> {
    Some(Credential::Token(text.to_owned()))
}

fn somebody(user: &str, by: SignedInBy) -> Principal {
    Principal { user: UserName::new(user).unwrap(), by }
}

/// `cases.md`, C29.
#[test]
fn only_wakefuls_own_tokens_are_read_from_authorization() {
    let table: [(Lines, Option<Credential>); 8] = [
        (&[("authorization", "Bearer app-123")], None),
        (&[("authorization", "Basic dTpw")], None),
        (&[("authorization", "Bearer wk_a")], token("wk_a")),
        (&[("authorization", "bEARER   wk_a ")], token("wk_a")),
        (&[("authorization", "Basic wk_a")], None),
        (&[("authorization", "wk_a")], None),
        (&[("authorization", "Bearer app-123"), ("x-wakeful-token", "wk_a")], token("wk_a")),
        (&[("authorization", "Bearer wk_a"), ("x-wakeful-token", "wk_a")], token("wk_a")),
    ];
    for (lines, expected) in table {
        for door in [Door::Path, Door::Host(HOST)] {
            assert_eq!(read(lines, door).unwrap().token, expected, "{lines:?}");
        }
    }
}

#[test]
fn ambiguous_credentials_are_never_guessed_at() {
    let table: [Lines; 4] = [
        &[("authorization", "Bearer app-123"), ("authorization", "Bearer wk_a")],
        &[("authorization", "Bearer x"), ("authorization", "Bearer x")],
        &[("authorization", "Bearer wk_a"), ("x-wakeful-token", "wk_b")],
        &[("x-wakeful-token", "wk_a"), ("x-wakeful-token", "wk_b")],
    ];
    for lines in table {
        let error = read(lines, Door::Path).unwrap_err();
        assert_eq!((error, error.code().status()), (AdmitError::Ambiguous, 400), "{lines:?}");
    }
}

/// `cases.md`, C28.
#[test]
fn every_cookie_of_the_doors_own_name_is_a_candidate() {
    let lines = [
        ("cookie", "wakeful_session=EXPIRED; x=1; wakeful_session=VALID"),
        ("cookie", "wakeful_surface=S; wakeful_session=\"quoted=\"; wakeful_session_x=no"),
    ];
    let values = |door| read(&lines, door).unwrap().cookies;
    let session = |value: &str| Credential::Session(value.to_owned());
    assert_eq!(values(Door::Path), [session("EXPIRED"), session("VALID"), session("\"quoted=\"")]);
    let surface = Credential::Surface { value: "S".to_owned(), host: HOST.to_owned() };
    assert_eq!(values(Door::Host(HOST)), [surface], "the dashboard's cookie opens no other door");
    let many = "wakeful_session=x; ".repeat(100);
    assert_eq!(read(&[("cookie", &many)], Door::Path).unwrap().cookies.len(), COOKIES_MAX);
    assert!(read(&[], Door::Path).unwrap().is_empty());
}

#[test]
fn by_https_only_cookies_with_the_host_prefix_count() {
    let hosts = Hosts::new("wake.example", wakeful_wire::hosts::Scheme::Https, None).unwrap();
    let names = CookieNames::of(&hosts);
    let headers = headers(&[("cookie", "wakeful_session=planted; __Host-wakeful_session=good")]);
    let found = credentials(&headers, &names, Door::Path).unwrap().cookies;
    assert_eq!(found, [Credential::Session("good".to_owned())]);
}

#[test]
fn token_and_cookie_must_agree_and_a_bad_token_is_not_overlooked() {
    let by_token = somebody("alice", SignedInBy::Token);
    let by_cookie = somebody("alice", SignedInBy::Cookie);
    let bob = somebody("bob", SignedInBy::Cookie);
    let table = [
        (None, None, Ok(None)),
        (None, Some(by_cookie.clone()), Ok(Some(by_cookie.clone()))),
        (Some(Some(by_token.clone())), None, Ok(Some(by_token.clone()))),
        (Some(Some(by_token.clone())), Some(by_cookie.clone()), Ok(Some(by_token.clone()))),
        (Some(Some(by_token)), Some(bob), Err(AdmitError::TwoUsers)),
        (Some(None), Some(by_cookie), Err(AdmitError::BadToken)),
        (Some(None), None, Err(AdmitError::BadToken)),
    ];
    for (token, cookie, expected) in table {
        assert_eq!(decide(token, cookie), expected);
    }
    assert_eq!(AdmitError::TwoUsers.code().status(), 400);
    assert_eq!(AdmitError::BadToken.code().status(), 401);
}

#[test]
fn a_cookie_is_of_no_use_to_a_page_of_another_origin() {
    let sibling = "http://e2.apps.wakeful.localhost:7878";
    let surface = "http://e1.apps.wakeful.localhost:7878";
    let path = Door::Path;
    let host = Door::Host(HOST);
    let get = Method::GET;
    let post = Method::POST;
    let navigate = ("sec-fetch-mode", "navigate");
    let cors = ("sec-fetch-mode", "cors");
    let site = |value| ("sec-fetch-site", value);
    let origin = |value| ("origin", value);
    let upgrade = [("connection", "upgrade"), ("upgrade", "websocket")];
    let socket = |from| [upgrade[0], upgrade[1], origin(from)];
    // Door, method, headers, and whether they pass.
    let table = vec![
        (path, &get, vec![cors, site("same-origin")], true),
        (path, &get, vec![cors, site("none")], true),
        (path, &get, vec![cors, site("same-site")], false),
        (path, &get, vec![cors, site("cross-site")], false),
        (path, &get, vec![navigate, site("cross-site")], true),
        (path, &get, vec![navigate, site("cross-site"), ("sec-purpose", "prefetch")], false),
        (path, &get, vec![], true),
        (path, &get, vec![origin(OWN)], true),
        (path, &get, vec![origin(sibling)], false),
        (path, &post, vec![site("same-origin")], true),
        (path, &post, vec![site("same-site"), origin(OWN)], false),
        (path, &post, vec![navigate, site("same-site"), origin(sibling)], false),
        (path, &post, vec![origin(OWN)], true),
        (path, &post, vec![origin("http://WAKEFUL.localhost:9999")], false),
        (path, &post, vec![origin("https://wakeful.localhost:7878")], false),
        (path, &post, vec![origin(sibling)], false),
        (path, &post, vec![origin("null")], false),
        (path, &post, vec![], false),
        (host, &get, vec![cors, site("same-site")], true),
        (host, &post, vec![site("same-origin"), origin(surface)], true),
        (host, &post, vec![origin(surface)], true),
        (host, &post, vec![origin(OWN)], false),
        (host, &post, vec![site("same-site"), origin(sibling)], false),
        (host, &post, vec![], false),
        (host, &get, socket(surface).to_vec(), true),
        (host, &get, socket(OWN).to_vec(), true),
        (host, &get, socket(sibling).to_vec(), false),
        (host, &get, socket("https://evil.example").to_vec(), false),
        (host, &get, socket("null").to_vec(), false),
        (host, &get, upgrade.to_vec(), true),
        (path, &get, socket(OWN).to_vec(), true),
        (path, &get, socket(surface).to_vec(), false),
    ];
    let hosts = Hosts::default();
    for (door, method, lines, passes) in table {
        let headers = headers(&lines);
        let authority = if door == Door::Path { MAIN } else { "e1.apps.wakeful.localhost:7878" };
        let check = |by| check_origin(method, &headers, by, door, authority, &hosts);
        assert_eq!(check(SignedInBy::Cookie).is_ok(), passes, "{door:?} {method} {lines:?}");
        assert_eq!(check(SignedInBy::Token), Ok(()), "a token is sent on purpose");
    }
}

#[test]
fn through_a_tunnel_the_origin_is_the_one_that_the_request_named() {
    let post = headers(&[("origin", "http://localhost:9000")]);
    let check = |authority: &str| {
        let hosts = Hosts::default();
        check_origin(&Method::POST, &post, SignedInBy::Cookie, Door::Path, authority, &hosts)
    };
    assert_eq!(check("localhost:9000"), Ok(()));
    assert_eq!(check("localhost:9001"), Err(AdmitError::CrossOrigin));
}

#[test]
fn environments_of_others_are_not_there() {
    let owner = UserName::new("alice").unwrap();
    let alice = somebody("alice", SignedInBy::Cookie);
    let bob = somebody("bob", SignedInBy::Token);
    let visit = |who| may_visit(&owner, Access::Private, who);
    assert_eq!(visit(Some(&alice)), Ok(()));
    assert_eq!(visit(Some(&bob)), Err(AdmitError::NotFound));
    assert_eq!(visit(None), Err(AdmitError::NotSignedIn));
    assert_eq!(AdmitError::NotFound.code().status(), 404);
}

#[test]
fn page_loads_are_led_to_sign_in_and_all_else_gets_401() {
    let hosts = Hosts::default();
    let page = headers(&[("sec-fetch-mode", "navigate")]);
    let fetch = headers(&[("sec-fetch-mode", "cors"), ("accept", "text/html")]);
    let preflight = headers(&[("access-control-request-headers", "authorization")]);
    let ask = |method: &Method, headers: &HeaderMap, door| {
        anonymous(method, headers, door, "/a/b?c=d&e", &hosts, &names(), "n0nce")
    };
    for door in [Door::Path, Door::Host(HOST)] {
        assert_eq!(ask(&Method::GET, &fetch, door), Anonymous::Unauthorized);
        assert_eq!(ask(&Method::POST, &page, door), Anonymous::Unauthorized);
        assert_eq!(ask(&Method::OPTIONS, &preflight, door), Anonymous::Unauthorized);
    }
    let location = format!("{OWN}/login?next=/a/b%3Fc%3Dd%26e");
    assert_eq!(ask(&Method::GET, &page, Door::Path), Anonymous::SignIn { location });
    let Anonymous::Ticket { location, cookie } = ask(&Method::GET, &page, Door::Host(HOST)) else {
        panic!()
    };
    assert_eq!(
        location,
        format!(
            "{OWN}/surface-ticket?to=http%3A//e1.apps.wakeful.localhost%3A7878/a/b%3Fc%3Dd%26e\
             &nonce=n0nce"
        )
    );
    assert_eq!(
        cookie.to_str().unwrap(),
        "wakeful_nonce=n0nce; Path=/; Max-Age=600; HttpOnly; SameSite=Lax"
    );
    let back = headers(&[("cookie", "wakeful_nonce=old; wakeful_nonce=n0nce")]);
    assert_eq!(names().nonces(&back), ["old", "n0nce"]);
}

#[test]
fn a_ticket_never_leads_to_another_host() {
    let table = [
        ("/a?b=//c", "/a?b=//c"),
        ("/", "/"),
        ("", "/"),
        ("//evil.example", "/"),
        ("/\\evil.example", "/"),
        ("https://evil.example/", "/"),
        ("/a\r\nb", "/"),
        ("/\t/evil.example", "/"),
    ];
    for (to, expected) in table {
        assert_eq!(ticket_destination(to), expected, "{to:?}");
    }
}

#[test]
fn pages_of_path_routes_are_led_to_the_surfaces_own_host() {
    let env: EnvId = "0199f0a0-7b5c-7c3e-9d2f-6a1b2c3d4e5f".parse().unwrap();
    let name = SurfaceName::app();
    let declared = |route: &str| -> Surface {
        serde_json::from_value(serde_json::json!({"command": "x", "route": route})).unwrap()
    };
    let route = Route {
        env,
        owner: UserName::new("alice").unwrap(),
        slug: Slug::new("dev").unwrap(),
        title: "Demo".to_owned(),
        home: None,
        surfaces: BTreeMap::from([(name.clone(), Arc::new(declared("both")))]),
        idle_min_ms: 1,
    };
    let page = headers(&[("sec-fetch-mode", "navigate")]);
    let mut hosts = Hosts::default();
    let led = |hosts: &Hosts, method: &Method, headers: &HeaderMap, by, kind: &str| {
        let declared = declared(kind);
        page_elsewhere(method, headers, by, hosts, &route, (&name, &declared), "//x%2F?y")
            .map(|redirect| redirect.location)
    };
    let get = Method::GET;
    let cookie = SignedInBy::Cookie;
    let expected = format!("http://{env}-dev.apps.wakeful.localhost:7878//x%2F?y");
    assert_eq!(led(&hosts, &get, &page, cookie, "both"), Some(expected.clone()));
    assert_eq!(led(&hosts, &get, &page, cookie, "host"), Some(expected));
    assert_eq!(led(&hosts, &get, &page, cookie, "path"), None);
    assert_eq!(led(&hosts, &get, &page, SignedInBy::Token, "both"), None);
    assert_eq!(led(&hosts, &Method::POST, &page, cookie, "both"), None);
    assert_eq!(led(&hosts, &get, &headers(&[]), cookie, "both"), None);
    hosts.path_origin = PathOrigin::Shared;
    assert_eq!(led(&hosts, &get, &page, cookie, "both"), None);
}
