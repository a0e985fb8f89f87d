use wakeful_wire::hosts::Scheme;

use super::*;

#[test]
fn a_host_name_or_literal_tells_how_far_away_it_is() {
    use RouteClass::{Lan, Loopback, Public, Tailnet};
    let table = [
        ("localhost", Loopback),
        ("LOCALHOST.", Loopback),
        ("wakeful.localhost", Loopback),
        ("notlocalhost", Public),
        ("localhost.example", Public),
        ("127.0.0.1", Loopback),
        ("127.255.255.254", Loopback),
        ("0.0.0.0", Loopback),
        ("::1", Loopback),
        ("[::1]", Loopback),
        ("::ffff:127.0.0.1", Loopback),
        ("10.0.0.1", Lan),
        ("172.16.0.1", Lan),
        ("172.31.255.255", Lan),
        ("172.32.0.1", Public),
        ("192.168.1.5", Lan),
        ("192.169.1.5", Public),
        ("169.254.1.1", Lan),
        ("::ffff:192.168.1.5", Lan),
        ("fe80::1", Lan),
        ("febf::1", Lan),
        ("fd00::1", Lan),
        ("fc00::1", Lan),
        ("fec0::1", Public),
        ("nas.local", Lan),
        ("nas.local.", Lan),
        ("nas.home.arpa", Lan),
        ("100.63.255.255", Public),
        ("100.64.0.1", Tailnet),
        ("100.127.255.255", Tailnet),
        ("100.128.0.1", Public),
        ("fd7a:115c:a1e0::1", Tailnet),
        ("fd7a:115c:a1e1::1", Lan),
        ("laptop.tail1234.ts.net", Tailnet),
        ("ts.net.example", Public),
        ("notts.net", Public),
        ("laptop", Public),
        ("example.org", Public),
        ("8.8.8.8", Public),
        ("2001:db8::1", Public),
        ("", Public),
    ];
    for (host, class) in table {
        assert_eq!(RouteClass::of(host), class, "{host}");
    }
}

#[test]
fn only_this_machine_and_the_local_network_are_near() {
    let near = [RouteClass::Loopback, RouteClass::Lan].map(RouteClass::is_near);
    assert_eq!(near, [true, true]);
    let far = [RouteClass::Tailnet, RouteClass::Public].map(RouteClass::is_near);
    assert_eq!(far, [false, false]);
}

#[test]
fn addresses_that_mean_the_same_are_equal() {
    let table = [
        ("https://Example.ORG", "https://example.org"),
        ("HTTPS://example.org/", "https://example.org"),
        ("https://example.org:443", "https://example.org"),
        ("https://example.org:/", "https://example.org"),
        ("https://example.org.", "https://example.org"),
        ("http://example.org:080///", "http://example.org"),
        ("http://example.org:443", "http://example.org:443"),
        ("https://example.org:80", "https://example.org:80"),
        ("http://[0:0:0:0:0:0:0:1]:7878/", "http://[::1]:7878"),
        ("http://10.0.0.2:7880", "http://10.0.0.2:7880"),
        ("https://lab.example/Host/", "https://lab.example/Host"),
        ("https://lab.example/a%20b", "https://lab.example/a%20b"),
        ("http://my_host-1:1/", "http://my_host-1:1"),
    ];
    for (text, normal) in table {
        let address = Address::new(text).unwrap();
        assert_eq!(address.as_str(), normal, "{text}");
        assert_eq!(address, Address::new(normal).unwrap());
        let kept = serde_json::to_value(&address).unwrap();
        assert_eq!(kept, serde_json::Value::from(normal));
        assert_eq!(serde_json::from_value::<Address>(kept).unwrap(), address);
    }
}

#[test]
fn an_address_knows_its_scheme_and_class() {
    let address = Address::new("http://127.0.0.1:7880").unwrap();
    assert_eq!((address.scheme(), address.class()), (Scheme::Http, RouteClass::Loopback));
    let address = Address::new("https://a.example").unwrap();
    assert_eq!((address.scheme(), address.class()), (Scheme::Https, RouteClass::Public));
}

#[test]
fn what_is_no_address_is_refused_with_the_reason() {
    use AddressError::{Host, Path, Port, Query, Scheme, TooLong, UserInformation};
    let long = format!("http://a.example/{}", "a".repeat(ADDRESS_MAX));
    let name = format!("http://{}", "a.".repeat(130));
    let table = [
        ("", Scheme),
        ("example.org", Scheme),
        ("ftp://example.org", Scheme),
        ("wss://example.org", Scheme),
        ("https://ada:secret@example.org", UserInformation),
        ("https://ada@example.org/x", UserInformation),
        ("https://", Host),
        ("https:///x", Host),
        ("https://a..b", Host),
        ("https://.a", Host),
        ("https://a b", Host),
        ("https://höst.example", Host),
        ("https://[::1", Host),
        ("https://[::1]x", Host),
        ("https://[fe80::1%25eth0]", Host),
        ("https://127.1", Host),
        ("https://2130706433", Host),
        ("https://0x7f.1", Host),
        ("https://a.0x7f000001", Host),
        ("https://1.2.3.4.5", Host),
        ("https://256.0.0.1", Host),
        (&name, Host),
        ("https://a:0", Port),
        ("https://a:+1", Port),
        ("https://a:65536", Port),
        ("https://a:b", Port),
        ("https://a/x?y", Query),
        ("https://a#y", Query),
        ("https://a?", Query),
        ("https://a\\b", Path),
        ("https://a/b c", Path),
        ("https://a/%4", Path),
        ("https://a/%zz", Path),
        ("https://a/../b", Path),
        ("https://a/.", Path),
        ("https://a/%2E%2e/b", Path),
        ("https://a/.%2e", Path),
        (&long, TooLong),
    ];
    for (text, error) in table {
        assert_eq!(Address::new(text), Err(error), "{text}");
    }
}

fn route(address: &str) -> Route {
    Route::new(Address::new(address).unwrap())
}

fn addresses(routes: &Routes) -> Vec<&str> {
    routes.iter().map(|route| route.address().as_str()).collect()
}

const LOOPBACK: &str = "http://localhost:7880";
const LAN: &str = "http://10.0.0.1:7880";
const TAILNET: &str = "http://lab.tail1.ts.net:7880";
const PUBLIC: &str = "https://lab.example";

fn all() -> Routes {
    let mut routes = Routes::of(route(PUBLIC));
    for address in [LAN, TAILNET, LOOPBACK] {
        routes.add(route(address)).unwrap();
    }
    routes
}

#[test]
fn new_ways_go_by_class_and_those_of_one_class_by_age() {
    let mut routes = all();
    assert_eq!(addresses(&routes), [LOOPBACK, LAN, TAILNET, PUBLIC]);
    routes.add(route("http://10.0.0.2")).unwrap();
    assert_eq!(addresses(&routes), [LOOPBACK, LAN, "http://10.0.0.2", TAILNET, PUBLIC]);
}

#[test]
fn an_address_that_is_there_is_not_there_twice() {
    let mut routes = all();
    routes.add(route("HTTPS://LAB.example:443/")).unwrap();
    assert_eq!(addresses(&routes), [LOOPBACK, LAN, TAILNET, PUBLIC]);
    let kept = vec![route(PUBLIC), route(LAN), route("https://lab.example/")];
    assert_eq!(addresses(&Routes::try_from(kept).unwrap()), [PUBLIC, LAN]);
}

#[test]
fn a_persons_order_stays_and_is_kept() {
    let mut routes = all();
    let order = |addresses: &[&str]| -> Vec<Address> {
        addresses.iter().map(|address| Address::new(address).unwrap()).collect()
    };
    routes.reorder(&order(&[PUBLIC, TAILNET, LAN, LOOPBACK])).unwrap();
    for bad in [&[PUBLIC, TAILNET, LAN][..], &[PUBLIC, PUBLIC, LAN, LOOPBACK], &[]] {
        assert_eq!(routes.reorder(&order(bad)), Err(RoutesError::Order));
    }
    let unknown = order(&[PUBLIC, TAILNET, LAN, "https://other.example"]);
    assert_eq!(routes.reorder(&unknown), Err(RoutesError::Order));
    assert_eq!(addresses(&routes), [PUBLIC, TAILNET, LAN, LOOPBACK]);
    routes.add(route("http://10.0.0.2")).unwrap();
    let expected = ["http://10.0.0.2", PUBLIC, TAILNET, LAN, LOOPBACK];
    assert_eq!(addresses(&routes), expected);
    let kept = serde_json::to_string(&routes).unwrap();
    assert_eq!(serde_json::from_str::<Routes>(&kept).unwrap(), routes);
}

#[test]
fn a_host_has_at_least_one_way_and_not_too_many() {
    let mut routes = Routes::of(route(LAN));
    assert_eq!(routes.remove(&Address::new(LAN).unwrap()), Err(RoutesError::None));
    routes.remove(&Address::new(PUBLIC).unwrap()).unwrap();
    assert_eq!(addresses(&routes), [LAN]);
    for number in 1..ROUTES_MAX {
        routes.add(route(&format!("http://10.0.1.{number}"))).unwrap();
    }
    assert_eq!(routes.add(route(PUBLIC)), Err(RoutesError::TooMany));
    routes.add(route(LAN)).unwrap();
    routes.remove(&Address::new(LAN).unwrap()).unwrap();
    assert!(!routes.has(&Address::new(LAN).unwrap()));
    routes.add(route(PUBLIC)).unwrap();
    assert_eq!(serde_json::from_str::<Routes>("[]").ok(), None);
    let many: Vec<String> = (0..=ROUTES_MAX).map(|n| format!("http://10.0.2.{n}")).collect();
    let many = serde_json::to_string(&many).unwrap();
    assert_eq!(serde_json::from_str::<Routes>(&many).ok(), None);
}

fn pick<'a>(routes: &'a Routes, attempt: &RouteAttempt) -> Option<&'a str> {
    routes.pick(attempt).map(|route| route.address().as_str())
}

#[test]
fn an_attempt_goes_from_way_to_way_and_the_next_begins_with_the_best_again() {
    let routes = all();
    let mut attempt = RouteAttempt::default();
    let mut tried = Vec::new();
    while let Some(route) = routes.pick(&attempt) {
        tried.push(route.address().as_str());
        attempt.fail(route.address());
        attempt.fail(route.address());
    }
    assert_eq!(tried, [LOOPBACK, LAN, TAILNET, PUBLIC]);
    assert_eq!(pick(&routes, &RouteAttempt::default()), Some(LOOPBACK));
}

#[test]
fn an_attempt_ends_though_new_ways_keep_coming() {
    let mut attempt = RouteAttempt::default();
    let mut tried = 0;
    for number in 0..1_000 {
        let routes = Routes::of(route(&format!("http://h{number}.example")));
        let Some(route) = routes.pick(&attempt) else { break };
        attempt.fail(route.address());
        tried += 1;
    }
    assert_eq!(tried, ROUTES_MAX);
}

#[test]
fn a_page_that_came_by_https_speaks_no_plain_http() {
    let table = [
        (None, LAN, true),
        (None, PUBLIC, true),
        (Some(Scheme::Http), LAN, true),
        (Some(Scheme::Http), PUBLIC, true),
        (Some(Scheme::Https), LAN, false),
        (Some(Scheme::Https), LOOPBACK, false),
        (Some(Scheme::Https), PUBLIC, true),
    ];
    for (page, address, usable) in table {
        assert_eq!(route(address).usable_from(page), usable, "{page:?} {address}");
    }
    assert_eq!(pick(&all(), &RouteAttempt::of_page(Some(Scheme::Https))), Some(PUBLIC));
}
