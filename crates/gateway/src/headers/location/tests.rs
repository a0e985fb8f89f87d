use proptest::prelude::*;
use wakeful_wire::Hosts;

use super::*;

const PUBLIC: &str = "wakeful.localhost:7878";
const PREFIX: &str = "/e/e1";

fn context<'a>(hosts: &'a Hosts, place: Place<'a>, target: &'a str) -> ResponseContext<'a> {
    ResponseContext {
        hosts,
        declared: None,
        place,
        target,
        authority: PUBLIC,
        upstream: "127.0.0.1:4096",
        basic: false,
        sandbox: false,
    }
}

fn on_path(reference: &str, target: &str) -> Option<String> {
    let hosts = Hosts::default();
    let cx = context(&hosts, Place::Path { prefix: PREFIX }, target);
    map(reference, &cx, &Upstreams::of(&cx))
}

/// The table of `cases.md`, C05. `None`: stays as it is.
#[test]
fn redirects_of_a_path_route_land_below_its_prefix_exactly_once() {
    let table = [
        ("/login", Some("/e/e1/login")),
        ("login", None),
        ("../c", None),
        ("?p=2", None),
        ("#f", None),
        ("", None),
        (".", None),
        ("/", Some("/e/e1/")),
        ("/e/e1/login", None),
        ("/e/e1", None),
        ("/e/e10/x", Some("/e/e1/e/e10/x")),
        ("/e/e1/../e2/x", Some("/e/e1/e/e2/x")),
        ("/e/e1/%2e%2e/e2/x", Some("/e/e1/e/e2/x")),
        ("../../../c?x#f", Some("/e/e1/c?x#f")),
        ("/a?next=/b#c", Some("/e/e1/a?next=/b#c")),
        ("http://127.0.0.1:4096/next", Some("/e/e1/next")),
        ("http://127.0.0.1:4096", Some("/e/e1/")),
        ("HTTP://LocalHost:4096/next?q", Some("/e/e1/next?q")),
        ("//127.0.0.1:4096/next", Some("/e/e1/next")),
        ("http://127.0.0.1:4096/e/e1/next", Some("/e/e1/next")),
        ("http://127.0.0.1:4096//x", Some("/e/e1//x")),
        ("http://wakeful.localhost:7878/next", Some("/e/e1/next")),
        ("http://wakeful.localhost:7878/e/e1/next", None),
        ("https://wakeful.localhost:7878/e/e1/next", None),
        ("http://127.0.0.1:4097/other", None),
        ("https://gw.example/e/e1/next", None),
        ("https://other.example/", None),
        ("//cdn.example/x", None),
        ("http://wakeful.localhost/next", None),
        ("mailto:a@b.example", None),
        ("javascript:alert(1)", None),
    ];
    for (reference, expected) in table {
        assert_eq!(on_path(reference, "/a/b?x=1").as_deref(), expected, "{reference}");
    }
}

#[test]
fn a_program_with_a_host_rule_is_known_by_the_host_that_it_saw() {
    use wakeful_wire::template::Template;
    let hosts = Hosts::default();
    let template: Template = serde_json::from_value(serde_json::json!({
        "surfaces": {"app": {"command": "x", "host": {"fixed": "inner.example"}}}
    }))
    .unwrap();
    let declared = template.surfaces.values().next();
    let mut cx = context(&hosts, Place::Path { prefix: PREFIX }, "/");
    cx.declared = declared;
    let mapped = |reference: &str, cx: &ResponseContext<'_>| map(reference, cx, &Upstreams::of(cx));
    assert_eq!(mapped("http://inner.example/x", &cx).as_deref(), Some("/e/e1/x"));
    cx.place = Place::Host { host: "e1.apps.wakeful.localhost" };
    cx.authority = "e1.apps.wakeful.localhost:7878";
    let public = "http://e1.apps.wakeful.localhost:7878";
    let expected = format!("{public}//y?z");
    assert_eq!(mapped("http://inner.example//y?z", &cx), Some(expected));
}

#[test]
fn on_a_host_of_its_own_only_the_programs_address_is_replaced() {
    let hosts = Hosts::default();
    let host = "e1.apps.wakeful.localhost";
    let mut cx = context(&hosts, Place::Host { host }, "/a/b");
    cx.authority = "e1.apps.wakeful.localhost:7878";
    let table = [
        ("http://127.0.0.1:4096/next", Some("http://e1.apps.wakeful.localhost:7878/next")),
        ("http://localhost:4096//x", Some("http://e1.apps.wakeful.localhost:7878//x")),
        ("http://e1.apps.wakeful.localhost:7878/x", None),
        ("/login", None),
        ("../../x", None),
        ("https://other.example/", None),
    ];
    for (reference, expected) in table {
        let mapped = map(reference, &cx, &Upstreams::of(&cx));
        assert_eq!(mapped.as_deref(), expected, "{reference}");
    }
}

fn segments() -> impl Strategy<Value = String> {
    let piece = prop::sample::select(vec!["a", "b", "..", ".", "", "e", "e1", "%2e%2e", "x%2Fy"]);
    prop::collection::vec(piece, 1..6).prop_map(|parts| parts.join("/"))
}

proptest! {
    /// Whatever path a program names, a browser that reads the answer ends where the program
    /// meant, below the prefix, and a second mapping changes nothing.
    #[test]
    fn a_browser_ends_where_the_program_meant(
        base in segments(),
        reference in segments(),
        absolute in any::<bool>(),
    ) {
        let target = format!("/{base}");
        let reference = if absolute { format!("/{reference}") } else { reference };
        // Two slashes name a host, and a colon a scheme: not what is drawn here.
        prop_assume!(!reference.starts_with("//"));
        let meant = resolve(&target, &reference);
        let mapped = on_path(&reference, &target);
        let read = mapped.clone().unwrap_or_else(|| reference.clone());
        let landed = resolve(&format!("{PREFIX}{target}"), &read);
        if mapped.is_none() && reference.starts_with('/') {
            // The program knows its prefix.
            prop_assert!(is_within(&landed, PREFIX));
        } else if !reference.is_empty() {
            prop_assert_eq!(&landed, &without_dots(&format!("{PREFIX}{meant}")));
            prop_assert!(is_within(&landed, PREFIX));
        }
        if let Some(mapped) = mapped {
            prop_assert_eq!(on_path(&mapped, &target), None);
        }
    }
}
