//! What devices, addresses and routes amount to.

use std::{
    collections::{BTreeMap, BTreeSet},
    net::{IpAddr, Ipv6Addr},
};

use super::message::{Device, Hop, Kind, Message};

/// How many devices, addresses and routes each are taken into account. The rest is left out.
const ROWS_MAX: usize = 4_096;

/// What the kernel's tables say.
#[derive(Debug, Default)]
pub(super) struct Facts {
    devices: BTreeMap<u32, Device>,
    addresses: BTreeSet<(u32, IpAddr)>,
    routes: BTreeSet<Route>,
}

/// One way of a route to everywhere.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Route {
    /// The table that it is in.
    pub table: u32,
    /// Lower ones go before.
    pub metric: u32,
    /// Where it leads.
    pub hop: Hop,
}

/// The network as connections see it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Picture {
    /// An address leads to something besides this machine.
    pub online: bool,
    /// The addresses that connections can be made from, with their devices.
    pub addresses: BTreeSet<(u32, IpAddr)>,
    /// The routes to everywhere.
    pub routes: BTreeSet<Route>,
}

impl Facts {
    /// Takes in what a table says.
    pub(super) fn take(&mut self, message: Message) {
        match message {
            Message::Device(device) if self.devices.len() < ROWS_MAX => {
                self.devices.insert(device.index, device);
            }
            // Temporary ones come and go beside one that lasts as long as the way does.
            Message::Address(address)
                if !address.doubtful
                    && !address.temporary
                    && is_reachable(address.ip)
                    && self.addresses.len() < ROWS_MAX =>
            {
                self.addresses.insert((address.device, address.ip));
            }
            Message::DefaultRoute(route) => {
                let left = ROWS_MAX - self.routes.len();
                let ways = route.hops.into_iter().take(left);
                let (table, metric) = (route.table, route.metric);
                self.routes.extend(ways.map(|hop| Route { table, metric, hop }));
            }
            Message::Device(_)
            | Message::Address(_)
            | Message::Done
            | Message::Refused(_)
            | Message::Other => {}
        }
    }

    /// What all that amounts to.
    ///
    /// Software gives addresses to devices that stay when the network goes. A bridge counts only if
    /// a route to everywhere leads over it; a tunnel, besides, only where the machine has no device
    /// of its own that it could run through. All else counts by having an address, also on a network
    /// that leads nowhere else: a wrong "offline" does more harm than a wrong "online".
    pub(super) fn picture(&self) -> Picture {
        let on = |index| self.devices.get(&index).filter(|device| device.running);
        let outside = |index| on(index).filter(|device| !device.loopback);
        let is_outside = |route: &&Route| outside(route.hop.device).is_some();
        let routes: BTreeSet<Route> = self.routes.iter().filter(is_outside).copied().collect();
        let leads_out = |index| routes.iter().any(|route| route.hop.device == index);
        let has_own = self.devices.values().any(|d| d.kind == Kind::Hardware && !d.loopback);

        let mut online = false;
        let mut addresses = BTreeSet::new();
        for &(index, ip) in &self.addresses {
            let Some(device) = outside(index) else { continue };
            let (is_way, is_network) = match device.kind {
                Kind::Hardware | Kind::Other => (true, true),
                Kind::Bridge => (leads_out(index), leads_out(index)),
                Kind::Tunnel => (true, !has_own && leads_out(index)),
            };
            online |= is_network;
            if is_way {
                addresses.insert((index, ip));
            }
        }
        Picture { online, addresses, routes }
    }
}

/// Whether an address says anything of a network: every device gives itself one of its link.
fn is_reachable(ip: IpAddr) -> bool {
    if ip.is_loopback() || ip.is_unspecified() || ip.is_multicast() {
        return false;
    }
    match ip {
        IpAddr::V4(ip) => !ip.is_link_local(),
        IpAddr::V6(ip) => !Ipv6Addr::is_unicast_link_local(&ip),
    }
}

#[cfg(test)]
mod tests;
