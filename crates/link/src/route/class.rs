//! How far a host is, by its address.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// How far away and how steady the way to a host is. It decides how long a silence means nothing,
/// and which of several ways is tried first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum RouteClass {
    /// On this machine.
    Loopback,
    /// In the local network.
    Lan,
    /// In an overlay network, which may be relayed.
    Tailnet,
    /// Anywhere else.
    Public,
}

impl RouteClass {
    /// Whether a lost packet is hardly possible: on this machine and in the local network.
    #[must_use]
    pub const fn is_near(self) -> bool {
        matches!(self, Self::Loopback | Self::Lan)
    }

    /// The class of a host as it stands in an address: a name in any case, an IPv4 literal, or an
    /// IPv6 literal with or without brackets.
    ///
    /// A name tells only where its ending is reserved for a kind of network. A name without a dot
    /// may belong to the local network or to an overlay, so it counts as [`Public`](Self::Public):
    /// to be patient with a near host costs seconds, to be impatient with a far one costs a socket.
    #[must_use]
    pub fn of(host: &str) -> Self {
        let host = host.strip_suffix('.').unwrap_or(host);
        let literal =
            host.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).unwrap_or(host);
        match literal.parse() {
            Ok(IpAddr::V4(address)) => Self::of_v4(address),
            Ok(IpAddr::V6(address)) => Self::of_v6(address),
            Err(_) => Self::of_name(host),
        }
    }

    fn of_name(name: &str) -> Self {
        // RFC 6761 and RFC 8375 reserve the local endings, RFC 6762 reserves `.local`.
        if is_below(name, "localhost") {
            Self::Loopback
        } else if is_below(name, "local") || is_below(name, "home.arpa") {
            Self::Lan
        } else if is_below(name, "ts.net") {
            Self::Tailnet
        } else {
            Self::Public
        }
    }

    fn of_v4(address: Ipv4Addr) -> Self {
        let [first, second, ..] = address.octets();
        // A connection to the unspecified address reaches this machine.
        if address.is_loopback() || address.is_unspecified() {
            Self::Loopback
        } else if address.is_private() || address.is_link_local() {
            Self::Lan
        } else if first == 100 && second & 0xc0 == 64 {
            // 100.64.0.0/10: shared address space, which overlay networks number their hosts from.
            Self::Tailnet
        } else {
            Self::Public
        }
    }

    fn of_v6(address: Ipv6Addr) -> Self {
        if let Some(inner) = address.to_ipv4_mapped() {
            return Self::of_v4(inner);
        }
        if address.is_loopback() || address.is_unspecified() {
            Self::Loopback
        } else if address.segments()[..3] == TAILNET_V6 {
            Self::Tailnet
        } else if address.is_unique_local() || address.is_unicast_link_local() {
            Self::Lan
        } else {
            Self::Public
        }
    }
}

/// The part of the unique local addresses that Tailscale numbers its hosts from, a /48.
const TAILNET_V6: [u16; 3] = [0xfd7a, 0x115c, 0xa1e0];

/// Whether a name is `ending` or ends in `.ending`.
fn is_below(name: &str, ending: &str) -> bool {
    let Some(split) = name.len().checked_sub(ending.len()) else {
        return false;
    };
    let (before, last) = name.as_bytes().split_at(split);
    last.eq_ignore_ascii_case(ending.as_bytes()) && before.last().is_none_or(|byte| *byte == b'.')
}
