//! What the kernel writes of its devices, addresses and routes (rtnetlink(7)).
//!
//! Only what a picture needs is read. What is not understood is passed over, and nothing is believed
//! of a length that does not fit.

use std::{iter, net::IpAddr};

/// How long a message's own header is, and a request's.
const HEADER: usize = 16;
/// The types that a message can be of.
const ERROR: u16 = 2;
const DONE: u16 = 3;
const NEW_DEVICE: u16 = 16;
const GONE_DEVICE: u16 = 17;
const NEW_ADDRESS: u16 = 20;
const GONE_ADDRESS: u16 = 21;
const NEW_ROUTE: u16 = 24;
const GONE_ROUTE: u16 = 25;

/// A table of the kernel's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Table {
    /// Devices.
    Devices,
    /// Their addresses.
    Addresses,
    /// Routes, those of all tables.
    Routes,
}

impl Table {
    /// The message that asks for all of it.
    pub(super) fn request(self) -> Vec<u8> {
        /// A request for everything.
        const DUMP: u16 = 0x301;
        let (kind, body) = match self {
            Self::Devices => (18_u16, 16),
            Self::Addresses => (22, 8),
            Self::Routes => (26, 12),
        };
        let mut request = vec![0; HEADER + body];
        // The body stays empty: whatever the family. So do the number and the sender.
        let length = u32::try_from(request.len()).unwrap_or_default();
        request[..4].copy_from_slice(&length.to_ne_bytes());
        request[4..6].copy_from_slice(&kind.to_ne_bytes());
        request[6..8].copy_from_slice(&DUMP.to_ne_bytes());
        request
    }
}

/// A message of the kernel's.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Message {
    /// A device is there, or gone.
    Device(Device),
    /// An address is there, or gone.
    Address(Address),
    /// A route to everywhere is there, or gone.
    DefaultRoute(DefaultRoute),
    /// The table ends here.
    Done,
    /// The request was refused, with this error number.
    Refused(i32),
    /// Anything else.
    Other,
}

/// A device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Device {
    /// The kernel's number of it.
    pub index: u32,
    /// It is up, and something is at the other end.
    pub running: bool,
    /// It leads back to this machine.
    pub loopback: bool,
    /// What it is.
    pub kind: Kind,
}

/// What a device is, as far as it tells whether a network is behind it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// A device of the machine itself.
    Hardware,
    /// One that joins others, or none: with an address also where nothing but this machine's own
    /// containers and virtual machines is behind it.
    Bridge,
    /// One whose traffic leaves by another device, and that stays when the network goes.
    Tunnel,
    /// Any other that is made by software: one end of a container's pair, a bond, a modem's line.
    Other,
}

impl Kind {
    fn named(name: &[u8]) -> Self {
        match name.split(|byte| *byte == 0).next().unwrap_or_default() {
            b"bridge" | b"dummy" | b"ifb" => Self::Bridge,
            b"tun" | b"wireguard" | b"vxlan" | b"geneve" | b"gre" | b"gretap" | b"ip6gre"
            | b"ipip" | b"ip6tnl" | b"sit" | b"vti" | b"vti6" | b"xfrm" => Self::Tunnel,
            _ => Self::Other,
        }
    }
}

/// An address of a device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Address {
    /// The device.
    pub device: u32,
    /// The address.
    pub ip: IpAddr,
    /// It is not known yet to be nobody else's, or is known to be somebody's.
    pub doubtful: bool,
    /// One of the changing ones that stand beside a lasting one for privacy.
    pub temporary: bool,
}

/// A route to everywhere.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct DefaultRoute {
    /// The table that it is in.
    pub table: u32,
    /// Lower ones go before.
    pub metric: u32,
    /// Where it leads, which may be several ways at once.
    pub hops: Vec<Hop>,
}

/// Where a route leads.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Hop {
    /// The device that it leaves by.
    pub device: u32,
    /// Who is to carry it on, if anybody.
    pub gateway: Option<IpAddr>,
}

/// The messages in what was received at once. Ends early at one that does not fit.
pub(super) fn messages(mut received: &[u8]) -> impl Iterator<Item = Message> {
    iter::from_fn(move || {
        let length = usize::try_from(u32_at(received, 0)?).ok()?;
        let message = received.get(..length).filter(|message| message.len() >= HEADER)?;
        received = after(received, length);
        Some(read(message).unwrap_or(Message::Other))
    })
}

fn read(message: &[u8]) -> Option<Message> {
    let body = message.get(HEADER..)?;
    match u16_at(message, 4)? {
        DONE => Some(Message::Done),
        ERROR => match i32::from_ne_bytes(body.get(..4)?.try_into().ok()?) {
            0 => Some(Message::Other),
            error => Some(Message::Refused(error.saturating_neg())),
        },
        NEW_DEVICE | GONE_DEVICE => device(body),
        NEW_ADDRESS | GONE_ADDRESS => address(body),
        NEW_ROUTE | GONE_ROUTE => default_route(body),
        _ => None,
    }
}

fn device(body: &[u8]) -> Option<Message> {
    const UP_AND_RUNNING: u32 = 0x41;
    const LOOPBACK: u32 = 0x8;
    const INFO: u16 = 18;
    const INFO_KIND: u16 = 1;
    // Bridges tell of their ports in messages of the same type.
    if *body.first()? != 0 {
        return None;
    }
    let flags = u32_at(body, 8)?;
    let kind = find(body.get(16..)?, INFO).and_then(|info| find(info, INFO_KIND));
    Some(Message::Device(Device {
        index: u32_at(body, 4)?,
        running: flags & UP_AND_RUNNING == UP_AND_RUNNING,
        loopback: flags & LOOPBACK != 0,
        kind: kind.map_or(Kind::Hardware, Kind::named),
    }))
}

fn address(body: &[u8]) -> Option<Message> {
    const IPV6: u8 = 10;
    const ADDRESS: u16 = 1;
    const LOCAL: u16 = 2;
    const TEMPORARY: u8 = 0x01;
    const OPTIMISTIC: u8 = 0x04;
    const TAKEN: u8 = 0x08;
    const TENTATIVE: u8 = 0x40;
    let flags = *body.get(2)?;
    let attributes = body.get(8..)?;
    // Where both are there, the other one is of the far end.
    let ip = find(attributes, LOCAL).or_else(|| find(attributes, ADDRESS));
    let tentative = flags & TENTATIVE != 0 && flags & OPTIMISTIC == 0;
    Some(Message::Address(Address {
        device: u32_at(body, 4)?,
        ip: ip_of(ip?)?,
        doubtful: tentative || flags & TAKEN != 0,
        // The same flag says of an old address that it is not its network's first.
        temporary: *body.first()? == IPV6 && flags & TEMPORARY != 0,
    }))
}

fn default_route(body: &[u8]) -> Option<Message> {
    const UNICAST: u8 = 1;
    const METRIC: u16 = 6;
    const SEVERAL: u16 = 9;
    const TABLE: u16 = 15;
    let to_everywhere = *body.get(1)? == 0;
    if !to_everywhere || *body.get(7)? != UNICAST {
        return None;
    }
    let attributes = body.get(12..)?;
    let number = |kind| find(attributes, kind).and_then(|value| u32_at(value, 0));
    let hops = match find(attributes, SEVERAL) {
        Some(several) => hops(several).collect(),
        None => Vec::from_iter(one_hop(attributes)),
    };
    Some(Message::DefaultRoute(DefaultRoute {
        table: number(TABLE).unwrap_or_else(|| u32::from(body[4])),
        metric: number(METRIC).unwrap_or(0),
        hops,
    }))
}

fn one_hop(attributes: &[u8]) -> Option<Hop> {
    const DEVICE: u16 = 4;
    let device = find(attributes, DEVICE).and_then(|value| u32_at(value, 0))?;
    Some(Hop { device, gateway: gateway(attributes) })
}

fn hops(mut several: &[u8]) -> impl Iterator<Item = Hop> {
    /// How long a hop is without its attributes.
    const HOP: usize = 8;
    iter::from_fn(move || {
        let length = usize::from(u16_at(several, 0)?);
        let hop = several.get(..length).filter(|hop| hop.len() >= HOP)?;
        several = after(several, length);
        Some(Hop { device: u32_at(hop, 4)?, gateway: gateway(&hop[HOP..]) })
    })
}

fn gateway(attributes: &[u8]) -> Option<IpAddr> {
    const GATEWAY: u16 = 5;
    const GATEWAY_OF_OTHER_FAMILY: u16 = 18;
    let other = || find(attributes, GATEWAY_OF_OTHER_FAMILY).and_then(|value| value.get(2..));
    find(attributes, GATEWAY).or_else(other).and_then(ip_of)
}

/// The value of the first attribute of that type.
fn find(mut attributes: &[u8], wanted: u16) -> Option<&[u8]> {
    /// How long an attribute is without its value.
    const ATTRIBUTE: usize = 4;
    /// The bits above say how the value is written.
    const TYPE: u16 = 0x3fff;
    loop {
        let length = usize::from(u16_at(attributes, 0)?);
        let attribute = attributes.get(..length).filter(|found| found.len() >= ATTRIBUTE)?;
        if u16_at(attribute, 2)? & TYPE == wanted {
            return attribute.get(ATTRIBUTE..);
        }
        attributes = after(attributes, length);
    }
}

fn ip_of(bytes: &[u8]) -> Option<IpAddr> {
    let four = <[u8; 4]>::try_from(bytes).map(IpAddr::from);
    four.or_else(|_| <[u8; 16]>::try_from(bytes).map(IpAddr::from)).ok()
}

/// What follows something of that length. Everything begins at a multiple of four.
fn after(bytes: &[u8], length: usize) -> &[u8] {
    bytes.get(length.next_multiple_of(4)..).unwrap_or_default()
}

fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_ne_bytes(bytes.get(at..at + 2)?.try_into().ok()?))
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_ne_bytes(bytes.get(at..at + 4)?.try_into().ok()?))
}

#[cfg(test)]
mod tests;
