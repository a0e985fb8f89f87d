//! Messages as the kernel writes them, whole and damaged.

use super::*;

const IPV4: u8 = 2;
const IPV6: u8 = 10;
const NESTED: u16 = 0x8000;

fn attribute(kind: u16, value: &[u8]) -> Vec<u8> {
    let length = u16::try_from(4 + value.len()).unwrap();
    padded([&length.to_ne_bytes(), &kind.to_ne_bytes(), value].concat())
}

fn padded(mut bytes: Vec<u8>) -> Vec<u8> {
    bytes.resize(bytes.len().next_multiple_of(4), 0);
    bytes
}

fn message(kind: u16, body: &[&[u8]]) -> Vec<u8> {
    let body = body.concat();
    let length = u32::try_from(HEADER + body.len()).unwrap();
    padded([&length.to_ne_bytes(), &kind.to_ne_bytes()[..], &[0; 10], &body].concat())
}

fn device_body(family: u8, index: u32, flags: u32) -> Vec<u8> {
    [&[family, 0, 1, 0], &index.to_ne_bytes(), &flags.to_ne_bytes(), &[0; 4][..]].concat()
}

fn address_body(family: u8, flags: u8, index: u32) -> Vec<u8> {
    [&[family, 24, flags, 0], &index.to_ne_bytes()[..]].concat()
}

fn route_body(family: u8, prefix: u8, kind: u8) -> Vec<u8> {
    vec![family, prefix, 0, 0, 254, 3, 0, kind, 0, 0, 0, 0]
}

fn all(received: &[u8]) -> Vec<Message> {
    messages(received).collect()
}

fn one(received: &[u8]) -> Message {
    let mut read = all(received);
    assert_eq!(read.len(), 1);
    read.remove(0)
}

fn named(kind: &str) -> Vec<u8> {
    let kind = attribute(1, format!("{kind}\0").as_bytes());
    attribute(18 | NESTED, &[attribute(9, &[0; 3]), kind].concat())
}

#[test]
fn a_device_runs_if_it_is_up_and_something_is_at_the_other_end() {
    let table = [
        (0x1_0043, true, false),
        (0x1003, false, false),
        (0x1002, false, false),
        (0x49, true, true),
    ];
    for (flags, running, loopback) in table {
        let written = message(NEW_DEVICE, &[&device_body(0, 7, flags), &attribute(3, b"eth0\0")]);
        let expected = Device { index: 7, running, loopback, kind: Kind::Hardware };
        assert_eq!(one(&written), Message::Device(expected), "{flags:#x}");
    }
}

#[test]
fn a_device_of_software_says_what_it_is() {
    let table = [
        ("bridge", Kind::Bridge),
        ("dummy", Kind::Bridge),
        ("tun", Kind::Tunnel),
        ("wireguard", Kind::Tunnel),
        ("vxlan", Kind::Tunnel),
        ("veth", Kind::Other),
        ("bond", Kind::Other),
        ("bridge_slave", Kind::Other),
    ];
    for (name, kind) in table {
        let written = message(GONE_DEVICE, &[&device_body(0, 7, 0), &named(name)]);
        let expected = Device { index: 7, running: false, loopback: false, kind };
        assert_eq!(one(&written), Message::Device(expected), "{name}");
    }
}

#[test]
fn a_port_that_leaves_its_bridge_is_no_device_that_goes() {
    const BRIDGE_FAMILY: u8 = 7;
    let written = message(GONE_DEVICE, &[&device_body(BRIDGE_FAMILY, 7, 0x43)]);
    assert_eq!(one(&written), Message::Other);
}

#[test]
fn an_address_is_the_near_end_of_a_line() {
    let near = attribute(2, &[10, 0, 0, 1]);
    let far = attribute(1, &[10, 0, 0, 2]);
    let written = message(NEW_ADDRESS, &[&address_body(IPV4, 0x80, 3), &far, &near]);
    let ip = "10.0.0.1".parse().unwrap();
    let expected = Address { device: 3, ip, doubtful: false, temporary: false };
    assert_eq!(one(&written), Message::Address(expected));
}

#[test]
fn the_flags_of_an_address_say_what_it_is_good_for() {
    let ip: IpAddr = "2001:db8::1".parse().unwrap();
    let octets = attribute(1, &"2001:db8::1".parse::<std::net::Ipv6Addr>().unwrap().octets());
    let table = [
        (IPV6, 0x80, false, false),
        (IPV6, 0x40, true, false),
        (IPV6, 0x44, false, false),
        (IPV6, 0x48, true, false),
        (IPV6, 0x88, true, false),
        (IPV6, 0x01, false, true),
        (IPV4, 0x81, false, false),
    ];
    for (family, flags, doubtful, temporary) in table {
        let written = message(GONE_ADDRESS, &[&address_body(family, flags, 3), &octets]);
        let expected = Address { device: 3, ip, doubtful, temporary };
        assert_eq!(one(&written), Message::Address(expected), "{family} {flags:#x}");
    }
}

#[test]
fn only_a_route_to_everywhere_that_leads_somewhere_is_a_default_route() {
    const UNICAST: u8 = 1;
    const UNREACHABLE: u8 = 7;
    let device = attribute(4, &3_u32.to_ne_bytes());
    for (prefix, kind, expected) in
        [(0, UNICAST, true), (24, UNICAST, false), (0, UNREACHABLE, false)]
    {
        let written = message(NEW_ROUTE, &[&route_body(IPV4, prefix, kind), &device]);
        let read = one(&written);
        assert_eq!(matches!(read, Message::DefaultRoute(_)), expected, "/{prefix} of {kind}");
        assert!(expected || read == Message::Other);
    }
}

#[test]
fn a_default_route_tells_its_table_its_metric_and_where_it_leads() {
    let device = attribute(4, &3_u32.to_ne_bytes());
    let gateway = attribute(5, &[192, 0, 2, 1]);
    let metric = attribute(6, &600_u32.to_ne_bytes());
    let body = route_body(IPV4, 0, 1);
    let plain = message(NEW_ROUTE, &[&body, &gateway, &device, &metric]);
    let hop = Hop { device: 3, gateway: Some("192.0.2.1".parse().unwrap()) };
    let expected = DefaultRoute { table: 254, metric: 600, hops: vec![hop] };
    assert_eq!(one(&plain), Message::DefaultRoute(expected));

    let table = attribute(15, &51_820_u32.to_ne_bytes());
    let line = message(GONE_ROUTE, &[&body, &device, &table]);
    let hop = Hop { device: 3, gateway: None };
    let expected = DefaultRoute { table: 51_820, metric: 0, hops: vec![hop] };
    assert_eq!(one(&line), Message::DefaultRoute(expected));

    let nowhere = message(NEW_ROUTE, &[&body]);
    let expected = DefaultRoute { table: 254, metric: 0, hops: vec![] };
    assert_eq!(one(&nowhere), Message::DefaultRoute(expected));
}

#[test]
fn a_default_route_can_lead_several_ways_and_by_a_gateway_of_the_other_family() {
    let hop = |device: u32, gateway: Vec<u8>| {
        let length = u16::try_from(8 + gateway.len()).unwrap();
        [&length.to_ne_bytes(), &[0, 0][..], &device.to_ne_bytes(), &gateway].concat()
    };
    let six: std::net::Ipv6Addr = "fe80::1".parse().unwrap();
    let other = [&u16::from(IPV6).to_ne_bytes(), &six.octets()[..]].concat();
    let several = attribute(
        9,
        &[hop(3, attribute(5, &[192, 0, 2, 1])), hop(4, attribute(18, &other)), hop(5, vec![])]
            .concat(),
    );
    let written = message(NEW_ROUTE, &[&route_body(IPV4, 0, 1), &several]);
    let hops = vec![
        Hop { device: 3, gateway: Some("192.0.2.1".parse().unwrap()) },
        Hop { device: 4, gateway: Some(six.into()) },
        Hop { device: 5, gateway: None },
    ];
    let expected = DefaultRoute { table: 254, metric: 0, hops };
    assert_eq!(one(&written), Message::DefaultRoute(expected));
}

#[test]
fn a_table_ends_or_is_refused() {
    let done = message(DONE, &[&[0; 4]]);
    let refused = message(ERROR, &[&(-13_i32).to_ne_bytes(), &[0; 16]]);
    let taken = message(ERROR, &[&[0; 20]]);
    let read = all(&[done, refused, taken].concat());
    assert_eq!(read, [Message::Done, Message::Refused(13), Message::Other]);
}

/// One message of each kind, in a row.
fn sample() -> Vec<u8> {
    let hop = [&12_u16.to_ne_bytes(), &[0; 6][..], &attribute(5, &[])].concat();
    [
        message(NEW_DEVICE, &[&device_body(0, 2, 0x43), &named("veth")]),
        message(NEW_ADDRESS, &[&address_body(IPV4, 0, 2), &attribute(2, &[10, 0, 0, 1])]),
        message(NEW_ROUTE, &[&route_body(IPV4, 0, 1), &attribute(9, &hop)]),
        message(ERROR, &[&[0xff; 4]]),
    ]
    .concat()
}

#[test]
fn what_is_cut_short_ends_without_harm() {
    let whole = sample();
    assert_eq!(all(&whole).len(), 4);
    for end in 0..whole.len() {
        assert!(all(&whole[..end]).len() < 4, "cut at {end}");
    }
}

#[test]
fn no_damage_to_a_length_or_a_type_does_harm() {
    let whole = sample();
    for at in 0..whole.len() {
        for byte in [0, 1, 3, 4, 5, 8, 0x7f, 0xff] {
            let mut damaged = whole.clone();
            damaged[at] = byte;
            assert!(all(&damaged).len() <= damaged.len() / HEADER, "{byte} at {at}");
        }
    }
}

#[test]
fn a_request_asks_for_everything_of_a_table() {
    for (table, kind, length) in
        [(Table::Devices, 18, 32), (Table::Addresses, 22, 24), (Table::Routes, 26, 28)]
    {
        let request = table.request();
        assert_eq!(request.len(), length);
        assert_eq!(u32_at(&request, 0), u32::try_from(length).ok());
        assert_eq!(u16_at(&request, 4), Some(kind));
        assert_eq!(u16_at(&request, 6), Some(0x301));
        assert!(request[8..].iter().all(|byte| *byte == 0));
    }
}
