use std::collections::BTreeSet;

use http::StatusCode;
use proptest::prelude::*;
use wakeful_wire::{Hosts, SurfaceName, UserName, hosts::Scheme, template::Surface};

use super::*;
use crate::intent;

fn headers(lines: &[(&str, &str)]) -> HeaderMap {
    let mut headers = HeaderMap::new();
    for (name, value) in lines {
        headers.append(HeaderName::try_from(*name).unwrap(), value.parse().unwrap());
    }
    headers
}

fn surface(rules: serde_json::Value) -> Surface {
    let mut declared = serde_json::json!({"command": "x"});
    declared.as_object_mut().unwrap().extend(rules.as_object().unwrap().clone());
    serde_json::from_value(declared).unwrap()
}

struct Setup {
    hosts: Hosts,
    name: SurfaceName,
    declared: Surface,
    user: UserName,
    basic: Option<HeaderValue>,
    prefix: Option<&'static str>,
    upgrade: bool,
}

impl Setup {
    fn new(name: &str, rules: serde_json::Value) -> Self {
        Self {
            hosts: Hosts::default(),
            name: SurfaceName::new(name).unwrap(),
            declared: surface(rules),
            user: UserName::new("alice").unwrap(),
            basic: None,
            prefix: None,
            upgrade: false,
        }
    }

    fn prepare(&self, lines: &[(&str, &str)]) -> HeaderMap {
        let mut all = vec![("host", "wakeful.localhost:7878")];
        all.extend_from_slice(lines);
        let mut headers = headers(&all);
        let cx = RequestContext {
            hosts: &self.hosts,
            surface: &self.name,
            declared: Some(&self.declared),
            authority: "wakeful.localhost:7878",
            upstream: "127.0.0.1:4096",
            peer: "192.0.2.7".parse().unwrap(),
            user: Some(&self.user),
            basic: self.basic.as_ref(),
            prefix: self.prefix,
            upgrade: self.upgrade,
        };
        prepare_request(&mut headers, &cx);
        headers
    }
}

fn app() -> Setup {
    Setup::new("app", serde_json::json!({}))
}

fn all<'a>(headers: &'a HeaderMap, name: &str) -> Vec<&'a str> {
    headers.get_all(name).iter().map(|value| value.to_str().unwrap()).collect()
}

/// `cases.md`, C04.
#[test]
fn what_ends_at_this_hop_or_is_named_in_connection_does_not_go_on() {
    let seen = app().prepare(&[
        ("connection", "close, X-Forwarded-User, Cookie, Host, X-Secret, , content-length"),
        ("connection", "x-other,X-FORWARDED-FOR"),
        ("x-secret", "1"),
        ("x-other", "1"),
        ("cookie", "a=1"),
        ("content-length", "5"),
        ("keep-alive", "timeout=5"),
        ("te", "trailers, deflate"),
        ("proxy-authorization", "Basic eA=="),
        ("proxy-connection", "keep-alive"),
        ("upgrade", "h2c"),
        ("http2-settings", "AAAA"),
        ("transfer-encoding", "chunked"),
        ("expect", "100-continue"),
        ("x-kept", "1"),
    ]);
    let names: BTreeSet<_> = seen.keys().map(HeaderName::as_str).collect();
    let expected = BTreeSet::from([
        "host",
        "content-length",
        "x-kept",
        "x-forwarded-for",
        "x-forwarded-host",
        "x-forwarded-proto",
        "x-wakeful-user",
    ]);
    assert_eq!(names, expected);
    assert_eq!(all(&seen, "host"), ["wakeful.localhost:7878"]);
}

/// `cases.md`, C31.
#[test]
fn every_spelling_of_an_identity_is_replaced_by_one_value_of_the_gateways() {
    let seen = app().prepare(&[
        ("x-forwarded-user", "admin"),
        ("X-Forwarded-User", "root"),
        ("X_Forwarded_User", "admin"),
        ("x-forwarded_for", "10.0.0.1"),
        ("x-wakeful-user", "admin"),
        ("X_Wakeful_User", "admin"),
        ("x-wakeful-token", "wk_secret"),
        ("wakeful-intent", "wake"),
        ("x-forwarded-for", "10.0.0.1"),
        ("x-forwarded-for", "10.0.0.2"),
        ("x-forwarded-host", "evil.example"),
        ("x-forwarded-proto", "https"),
        ("x-forwarded-prefix", "/evil"),
        ("forwarded", "for=10.0.0.1"),
        ("x-original-method", "OPTIONS"),
        ("x-real-ip", "10.0.0.1"),
        ("x-auth-request-email", "a@b"),
        ("remote_user", "admin"),
        ("proxy", "http://evil"),
    ]);
    assert_eq!(all(&seen, "x-forwarded-for"), ["192.0.2.7"]);
    assert_eq!(all(&seen, "x-forwarded-host"), ["wakeful.localhost:7878"]);
    assert_eq!(all(&seen, "x-forwarded-proto"), ["http"]);
    assert_eq!(all(&seen, "x-wakeful-user"), ["alice"]);
    assert_eq!(seen.len(), 5, "{seen:?}");
}

#[test]
fn wakefuls_cookies_stay_here_and_the_rest_goes_on_in_one_line() {
    let seen = app().prepare(&[("cookie", "a=\"x; y=z=1"), ("cookie", "b=2")]);
    assert_eq!(all(&seen, "cookie"), ["a=\"x; y=z=1; b=2"]);
    let seen = app().prepare(&[(
        "cookie",
        "a=1; wakeful_session=S; b=2;wakeful_session=T; __Host-wakeful_surface-x=U; wakeful=3; c=4",
    )]);
    assert_eq!(all(&seen, "cookie"), ["a=1; b=2; wakeful=3; c=4"]);
    let seen = app().prepare(&[("cookie", "wakeful_session=S")]);
    assert!(all(&seen, "cookie").is_empty());
    let untouched = "odd  spacing=1;b=2";
    assert_eq!(all(&app().prepare(&[("cookie", untouched)]), "cookie"), [untouched]);
}

/// `cases.md`, C29.
#[test]
fn the_programs_own_authorization_reaches_the_app_and_a_token_reaches_nobody() {
    let agent = Setup::new("agent", serde_json::json!({}));
    for value in ["Bearer app-123", "Basic dTpw"] {
        assert_eq!(all(&app().prepare(&[("authorization", value)]), "authorization"), [value]);
        assert!(!agent.prepare(&[("authorization", value)]).contains_key("authorization"));
    }
    for value in ["Bearer wk_secret", "bearer  wk_secret"] {
        for setup in [app(), Setup::new("agent", serde_json::json!({}))] {
            assert!(!setup.prepare(&[("authorization", value)]).contains_key("authorization"));
        }
    }
    let mut injected = app();
    injected.basic = basic("opencode:pass");
    for value in ["Bearer app-123", "Bearer wk_secret"] {
        let seen = injected.prepare(&[("authorization", value)]);
        assert_eq!(all(&seen, "authorization"), ["Basic b3BlbmNvZGU6cGFzcw=="]);
    }
    assert!(basic("a:b").unwrap().is_sensitive());
}

#[test]
fn host_and_origin_follow_the_templates_rules() {
    let own = "http://wakeful.localhost:7878";
    let table = [
        ("keep", "keep", "wakeful.localhost:7878", Some(own)),
        ("upstream", "keep", "127.0.0.1:4096", Some(own)),
        ("upstream", "rewrite", "127.0.0.1:4096", Some("http://127.0.0.1:4096")),
        ("keep", "rewrite", "wakeful.localhost:7878", Some(own)),
        ("keep", "drop", "wakeful.localhost:7878", None),
    ];
    for (host, origin, seen_host, seen_origin) in table {
        let setup = Setup::new("db", serde_json::json!({"host": host, "origin": origin}));
        let seen = setup.prepare(&[("origin", own)]);
        assert_eq!(all(&seen, "host"), [seen_host]);
        assert_eq!(seen.get("origin").map(|v| v.to_str().unwrap()), seen_origin, "{host} {origin}");
        assert!(!setup.prepare(&[]).contains_key("origin"), "none is made up");
    }
    let fixed = serde_json::json!({"host": {"fixed": "inner.example"}, "origin": "rewrite"});
    let fixed = Setup::new("db", fixed);
    let seen = fixed.prepare(&[("origin", own)]);
    assert_eq!(all(&seen, "host"), ["inner.example"]);
    assert_eq!(all(&seen, "origin"), ["http://inner.example"]);
    assert_eq!(all(&fixed.prepare(&[("origin", "null")]), "origin"), ["null"]);
}

#[test]
fn a_handshake_goes_on_as_one_and_a_path_route_says_its_prefix() {
    let mut setup = app();
    setup.upgrade = true;
    setup.prefix = Some("/u/alice");
    let seen = setup.prepare(&[
        ("connection", "keep-alive, Upgrade, x-gone"),
        ("x-gone", "1"),
        ("upgrade", "WebSocket"),
        ("sec-websocket-protocol", "v2.bin, v1.json"),
        ("sec-websocket-protocol", "token.abc123"),
        ("sec-websocket-extensions", "permessage-deflate; client_max_window_bits"),
    ]);
    assert_eq!(all(&seen, "connection"), ["Upgrade"]);
    assert_eq!(all(&seen, "upgrade"), ["websocket"]);
    assert_eq!(all(&seen, "sec-websocket-protocol"), ["v2.bin, v1.json", "token.abc123"]);
    assert_eq!(all(&seen, "x-forwarded-prefix"), ["/u/alice"]);
    assert!(!seen.contains_key("x-gone"));
    assert!(intent::is_websocket(&seen));
}

#[test]
fn the_environment_server_sees_what_was_sent_to_it() {
    let hosts = Hosts::default();
    let name = SurfaceName::host();
    let mut seen = headers(&[
        ("host", "wakeful.localhost:7878"),
        ("authorization", "DPoP token"),
        ("dpop", "proof"),
        ("origin", "http://wakeful.localhost:7878"),
        ("x-wakeful-token", "wk_secret"),
        ("wakeful-public-address", "http://evil.example/api/host/x"),
        ("wakeful_public-address", "http://evil.example/api/host/x"),
        ("connection", "wakeful-public-address"),
        ("wakeful-known", "tag"),
        ("wakeful_known", "tag"),
        ("wakeful-host", "another"),
    ]);
    let cx = RequestContext {
        hosts: &hosts,
        surface: &name,
        declared: None,
        authority: "wakeful.localhost:7878",
        upstream: "envd",
        peer: "::ffff:192.0.2.7".parse().unwrap(),
        user: None,
        basic: None,
        prefix: Some("/api/host/x"),
        upgrade: false,
    };
    prepare_request(&mut seen, &cx);
    assert_eq!(all(&seen, "authorization"), ["DPoP token"]);
    assert_eq!(all(&seen, "dpop"), ["proof"]);
    assert_eq!(all(&seen, "x-forwarded-for"), ["192.0.2.7"]);
    assert!(!seen.contains_key("x-wakeful-token"));
    assert!(!seen.contains_key("x-wakeful-user"));
    assert_eq!(all(&seen, "wakeful-known"), ["tag"]);
    for other in ["wakeful_known", "wakeful-host"] {
        assert!(!seen.contains_key(other), "{other}");
    }
    let stated = "http://wakeful.localhost:7878/api/host/x";
    assert_eq!(all(&seen, "wakeful-public-address"), [stated]);
    assert!(!seen.contains_key("wakeful_public-address"));
    // As visitors come to it, whatever this request named.
    let hosts = Hosts::new("Example.com.", Scheme::Https, Some(443)).unwrap();
    let cx = RequestContext { hosts: &hosts, authority: "10.0.0.1:8080", ..cx };
    prepare_request(&mut seen, &cx);
    assert_eq!(all(&seen, "wakeful-public-address"), ["https://example.com/api/host/x"]);
}

#[test]
fn only_the_environment_server_is_told_its_public_address_and_what_it_is_known_by() {
    let mut setup = app();
    setup.prefix = Some("/u/alice");
    let lines = [("wakeful-public-address", "http://evil.example"), ("wakeful-known", "tag")];
    let seen = setup.prepare(&lines);
    assert!(!seen.contains_key("wakeful-public-address") && !seen.contains_key("wakeful-known"));
}

#[test]
fn the_environment_server_sets_no_cookie_and_shows_no_page() {
    let seen = answered(
        Place::Path { prefix: "/api/host/x" },
        |cx| cx.declared = None,
        &[
            ("set-cookie", "a=1"),
            ("set-cookie", "b=1; Path=/"),
            ("content-type", "text/html"),
            ("content-security-policy", "default-src 'none'"),
            ("www-authenticate", "DPoP algs=\"ES256\""),
            ("dpop-nonce", "n"),
            ("etag", "\"1\""),
            ("cache-control", "no-store"),
            ("wakeful-host", "0199f0a0-7b5c-7c3e-9d2f-000000000001"),
            ("wakeful-phase", "failed"),
            ("wakeful-known", "tag"),
        ],
    );
    for lost in ["set-cookie", "wakeful-phase", "wakeful-known"] {
        assert!(!seen.contains_key(lost), "{lost}");
    }
    assert_eq!(all(&seen, "content-security-policy"), ["default-src 'none'", "sandbox"]);
    assert_eq!(all(&seen, "x-content-type-options"), ["nosniff"]);
    for kept in ["www-authenticate", "dpop-nonce", "etag", "cache-control", "wakeful-host"] {
        assert!(seen.contains_key(kept), "{kept}");
    }
}

#[test]
fn an_absolute_targets_host_replaces_the_one_that_was_sent() {
    let hosts = Hosts::default();
    let setup = app();
    let mut seen = headers(&[("host", "evil.example")]);
    let cx = RequestContext {
        hosts: &hosts,
        surface: &setup.name,
        declared: Some(&setup.declared),
        authority: "wakeful.localhost:7878",
        upstream: "127.0.0.1:1",
        peer: "192.0.2.7".parse().unwrap(),
        user: None,
        basic: None,
        prefix: None,
        upgrade: false,
    };
    prepare_request(&mut seen, &cx);
    assert_eq!(all(&seen, "host"), ["wakeful.localhost:7878"]);
}

fn answered(
    place: Place<'_>,
    change: impl Fn(&mut ResponseContext<'_>),
    lines: &[(&str, &str)],
) -> HeaderMap {
    let hosts = Hosts::default();
    let declared = surface(serde_json::json!({}));
    let mut cx = ResponseContext {
        hosts: &hosts,
        declared: Some(&declared),
        place,
        target: "/a/b",
        authority: "wakeful.localhost:7878",
        upstream: "127.0.0.1:4096",
        basic: false,
        sandbox: false,
    };
    change(&mut cx);
    let mut headers = headers(lines);
    prepare_response(StatusCode::OK, &mut headers, &cx);
    headers
}

const PATH: Place<'_> = Place::Path { prefix: "/u/bob" };
const HOST: Place<'_> = Place::Host { host: "e1.apps.wakeful.localhost" };

#[test]
fn an_answer_loses_its_hop_and_what_it_names() {
    for place in [PATH, HOST] {
        let seen = answered(
            place,
            |_| {},
            &[
                ("connection", "X-Internal, close"),
                ("x-internal", "1"),
                ("keep-alive", "max=3"),
                ("transfer-encoding", "chunked"),
                ("proxy-authenticate", "Basic"),
                ("upgrade", "h2c"),
                ("wakeful-phase", "failed"),
                ("wakeful-host", "0199f0a0-7b5c-7c3e-9d2f-000000000001"),
                ("cache-control", "no-transform"),
            ],
        );
        let names: Vec<_> = seen.keys().map(HeaderName::as_str).collect();
        assert_eq!(names, ["cache-control"]);
    }
}

#[test]
fn a_program_does_not_speak_for_the_dashboards_origin() {
    let lines = [
        ("clear-site-data", "\"cookies\", \"cache\""),
        ("service-worker-allowed", "/"),
        ("strict-transport-security", "max-age=1"),
        ("set-cookie", "wakeful_session=evil; Path=/"),
        ("set-cookie", "a=1; Domain=wakeful.localhost"),
        ("set-cookie", "ok=1; Path=/"),
    ];
    let seen = answered(PATH, |_| {}, &lines);
    assert_eq!(seen.len(), 1);
    assert_eq!(all(&seen, "set-cookie"), ["ok=1; Path=/u/bob/"]);
    let seen = answered(HOST, |_| {}, &lines);
    assert_eq!(all(&seen, "clear-site-data"), ["\"cache\""]);
    assert_eq!(all(&seen, "set-cookie"), ["ok=1; Path=/"]);
    let seen = answered(HOST, |_| {}, &[("clear-site-data", "\"*\"")]);
    assert!(seen.is_empty());
}

#[test]
fn the_sandbox_policy_stands_beside_the_programs_own() {
    let lines = [("content-security-policy", "script-src 'self'")];
    let seen = answered(PATH, |cx| cx.sandbox = true, &lines);
    assert_eq!(all(&seen, "content-security-policy"), ["script-src 'self'", "sandbox"]);
    assert_eq!(all(&seen, "x-content-type-options"), ["nosniff"]);
    let seen = answered(PATH, |_| {}, &lines);
    assert_eq!(all(&seen, "content-security-policy"), ["script-src 'self'"]);
}

#[test]
fn a_challenge_to_the_injected_credential_is_not_the_visitors() {
    let lines = [("www-authenticate", "Basic realm=\"Secure Area\"")];
    assert!(answered(HOST, |cx| cx.basic = true, &lines).is_empty());
    assert_eq!(answered(HOST, |_| {}, &lines).len(), 1);
}

#[test]
fn locations_are_mapped_unless_the_template_only_strips() {
    let lines = [("location", "/login"), ("content-location", "/x/1")];
    let seen = answered(PATH, |_| {}, &lines);
    assert_eq!(all(&seen, "location"), ["/u/bob/login"]);
    assert_eq!(all(&seen, "content-location"), ["/u/bob/x/1"]);
    let hosts = Hosts::default();
    let strip = surface(serde_json::json!({"base_path": "strip"}));
    let cx = ResponseContext {
        hosts: &hosts,
        declared: Some(&strip),
        place: PATH,
        target: "/",
        authority: "wakeful.localhost:7878",
        upstream: "127.0.0.1:4096",
        basic: false,
        sandbox: false,
    };
    let mut seen = headers(&lines);
    prepare_response(StatusCode::FOUND, &mut seen, &cx);
    assert_eq!(all(&seen, "location"), ["/login"]);
}

#[test]
fn a_switch_of_protocols_keeps_its_upgrade() {
    let hosts = Hosts::default();
    let cx = ResponseContext {
        hosts: &hosts,
        declared: None,
        place: HOST,
        target: "/",
        authority: "x",
        upstream: "y",
        basic: false,
        sandbox: false,
    };
    let mut seen = headers(&[
        ("connection", "upgrade"),
        ("upgrade", "websocket"),
        ("sec-websocket-accept", "x"),
    ]);
    prepare_response(StatusCode::SWITCHING_PROTOCOLS, &mut seen, &cx);
    assert_eq!(all(&seen, "connection"), ["Upgrade"]);
    assert_eq!(all(&seen, "upgrade"), ["websocket"]);
    assert_eq!(all(&seen, "sec-websocket-accept"), ["x"]);
}

proptest! {
    /// Whatever a visitor sends, under any spelling and however it is named in `Connection`: what
    /// the gateway states arrives once, and nothing that ends here goes on.
    #[test]
    fn no_request_takes_away_or_adds_to_what_the_gateway_states(
        lines in prop::collection::vec(
            (
                prop::sample::select(vec![
                    "connection", "X-Forwarded-For", "x_forwarded_for", "x-forwarded_proto",
                    "x-wakeful-user", "X_WAKEFUL_USER", "te", "keep-alive", "upgrade", "cookie",
                    "authorization", "x-custom", "forwarded", "proxy-foo", "transfer-encoding",
                ]),
                prop::sample::select(vec![
                    "close", "x-forwarded-for", "host, x-wakeful-user", "X-Forwarded-Proto,,x-custom",
                    "wakeful_session=a; b=c", "Bearer wk_x", "chunked", "connection",
                ]),
            ),
            0..12,
        )
    ) {
        let seen = app().prepare(&lines);
        prop_assert_eq!(all(&seen, "host"), ["wakeful.localhost:7878"]);
        prop_assert_eq!(all(&seen, "x-forwarded-for"), ["192.0.2.7"]);
        prop_assert_eq!(all(&seen, "x-forwarded-proto"), ["http"]);
        prop_assert_eq!(all(&seen, "x-wakeful-user"), ["alice"]);
        for name in seen.keys() {
            let folded = name.as_str().replace('_', "-");
            let stated = matches!(
                name.as_str(),
                "x-forwarded-for" | "x-forwarded-host" | "x-forwarded-proto" | "x-wakeful-user"
            );
            prop_assert!(stated || !folded.starts_with("x-forwarded"), "{}", name);
            prop_assert!(stated || !folded.starts_with("x-wakeful"), "{}", name);
            let hop = ["connection", "te", "keep-alive", "upgrade", "transfer-encoding", "proxy-foo"];
            prop_assert!(!hop.contains(&name.as_str()), "{}", name);
        }
        prop_assert!(all(&seen, "authorization").iter().all(|line| !line.contains("wk_")));
        prop_assert!(all(&seen, "cookie").iter().all(|line| !line.contains("wakeful_")));
        prop_assert!(all(&seen, "cookie").len() <= 1);
        let named = lines.iter().filter(|(name, _)| *name == "connection").any(|(_, value)| value.contains("x-custom"));
        prop_assert!(!named || !seen.contains_key("x-custom"));
    }
}
