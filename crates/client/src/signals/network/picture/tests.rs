//! Machines as they are, and whether they are online.

use super::{
    super::message::{Address, DefaultRoute},
    *,
};

const LO: u32 = 1;
const ETH: u32 = 2;
const SOFT: u32 = 3;
const TUN: u32 = 4;

fn device(index: u32, kind: Kind, running: bool) -> Message {
    Message::Device(Device { index, running, loopback: index == LO, kind })
}

fn address(device: u32, ip: &str) -> Message {
    let ip = ip.parse().unwrap();
    Message::Address(Address { device, ip, doubtful: false, temporary: false })
}

fn route(device: u32, gateway: &str, metric: u32) -> Message {
    let hop = Hop { device, gateway: gateway.parse().ok() };
    Message::DefaultRoute(DefaultRoute { table: 254, metric, hops: vec![hop] })
}

/// A machine that has what every machine has, and what is given.
fn machine(rest: Vec<Message>) -> Picture {
    let lo = [device(LO, Kind::Hardware, true), address(LO, "127.0.0.1"), address(LO, "::1")];
    let mut facts = Facts::default();
    for message in lo.into_iter().chain(rest) {
        facts.take(message);
    }
    facts.picture()
}

#[test]
fn a_machine_is_online_if_an_address_leads_to_something_besides_it() {
    use Kind::{Bridge, Hardware, Other, Tunnel};
    let wire = |running| device(ETH, Hardware, running);
    let pair = || device(SOFT, Other, true);
    let bridge = || device(SOFT, Bridge, true);
    let tunnel = || device(TUN, Tunnel, true);
    let table = [
        ("nothing but itself", vec![], false),
        ("a device without address", vec![wire(true)], false),
        ("an address", vec![wire(true), address(ETH, "192.0.2.5")], true),
        ("one of IPv6", vec![wire(true), address(ETH, "2001:db8::5")], true),
        ("a private one of IPv6", vec![wire(true), address(ETH, "fd00::2")], true),
        ("that of its link", vec![wire(true), address(ETH, "fe80::5")], false),
        ("the one without a server", vec![wire(true), address(ETH, "169.254.3.4")], false),
        ("an address without a cable", vec![wire(false), address(ETH, "192.0.2.5")], false),
        ("an address of no device", vec![address(9, "192.0.2.5")], false),
        ("another of itself", vec![address(LO, "192.0.2.5")], false),
        ("a container's pair", vec![pair(), address(SOFT, "172.17.0.2")], true),
        (
            "containers on it and no network",
            vec![wire(true), bridge(), address(SOFT, "172.17.0.1")],
            false,
        ),
        (
            "an uplink in a bridge",
            vec![wire(true), bridge(), address(SOFT, "192.0.2.5"), route(SOFT, "192.0.2.1", 0)],
            true,
        ),
        (
            "a tunnel that outlived the network",
            vec![wire(true), tunnel(), address(TUN, "100.64.0.7"), route(TUN, "", 0)],
            false,
        ),
        (
            "a tunnel is all that the machine has",
            vec![tunnel(), address(TUN, "10.0.2.100"), route(TUN, "10.0.2.2", 0)],
            true,
        ),
        ("a tunnel to nowhere", vec![tunnel(), address(TUN, "10.0.2.100")], false),
    ];
    for (name, rest, online) in table {
        assert_eq!(machine(rest).online, online, "{name}");
    }
}

/// A machine on a network, with something besides.
fn at_home(besides: Vec<Message>) -> Picture {
    let home = [
        device(ETH, Kind::Hardware, true),
        address(ETH, "192.0.2.5"),
        route(ETH, "192.0.2.1", 100),
    ];
    machine(home.into_iter().chain(besides).collect())
}

#[test]
fn the_way_is_another_one_if_an_address_a_tunnel_or_a_default_route_is() {
    let home = at_home(vec![]);
    let unreachable = DefaultRoute { table: 254, metric: 0, hops: vec![] };
    let temporary = Message::Address(Address {
        device: ETH,
        ip: "2001:db8::77".parse().unwrap(),
        doubtful: false,
        temporary: true,
    });
    let doubtful = Message::Address(Address {
        device: ETH,
        ip: "2001:db8::5".parse().unwrap(),
        doubtful: true,
        temporary: false,
    });
    let bridge = device(SOFT, Kind::Bridge, true);
    let tunnel = device(TUN, Kind::Tunnel, true);
    let table = [
        ("nothing", vec![], false),
        ("another address", vec![address(ETH, "2001:db8::5")], true),
        ("one that changes for privacy", vec![temporary], false),
        ("one that is not sure yet", vec![doubtful], false),
        ("one of a link", vec![address(ETH, "fe80::5")], false),
        ("another gateway", vec![route(ETH, "192.0.2.2", 100)], true),
        ("another metric", vec![route(ETH, "192.0.2.1", 50)], true),
        ("a route to nowhere", vec![Message::DefaultRoute(unreachable)], false),
        ("a route over a device that is down", vec![route(9, "198.51.100.1", 0)], false),
        ("a route to itself", vec![route(LO, "", 0)], false),
        ("a tunnel", vec![tunnel, address(TUN, "100.64.0.7")], true),
        ("containers", vec![bridge, address(SOFT, "172.17.0.1")], false),
    ];
    for (name, besides, changed) in table {
        let now = at_home(besides);
        assert!(now.online, "{name}");
        assert_eq!(now != home, changed, "{name}");
    }
}

#[test]
fn a_route_with_several_ways_is_as_good_as_several_routes() {
    let hops = [ETH, SOFT].map(|device| Hop { device, gateway: None }).to_vec();
    let several = Message::DefaultRoute(DefaultRoute { table: 254, metric: 0, hops });
    let devices = || vec![device(ETH, Kind::Hardware, true), device(SOFT, Kind::Other, true)];
    let mut joined = devices();
    joined.push(several);
    let mut apart = devices();
    apart.extend([route(ETH, "", 0), route(SOFT, "", 0)]);
    assert_eq!(machine(joined), machine(apart));
}

#[test]
fn more_than_can_be_held_is_left_out() {
    let mut facts = Facts::default();
    for index in 0..10_000_u32 {
        facts.take(device(index, Kind::Other, true));
        facts.take(address(index, "192.0.2.5"));
        facts.take(route(index, "", 0));
    }
    assert_eq!(facts.devices.len(), ROWS_MAX);
    assert_eq!(facts.addresses.len(), ROWS_MAX);
    assert_eq!(facts.routes.len(), ROWS_MAX);
    assert!(facts.picture().online);
}
