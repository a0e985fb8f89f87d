//! Names under `.localhost` are this machine, whatever its resolver says (RFC 6761 section 6.3).

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use reqwest::dns::{Addrs, Name, Resolve, Resolving};

/// Resolves `localhost` and every name below it to the loopback addresses, and asks the system for
/// all others.
#[derive(Debug, Clone, Copy)]
pub struct Loopback;

impl Resolve for Loopback {
    fn resolve(&self, name: Name) -> Resolving {
        Box::pin(async move {
            if is_loopback(name.as_str()) {
                let addresses = [IpAddr::from(Ipv4Addr::LOCALHOST), Ipv6Addr::LOCALHOST.into()];
                let addresses = addresses.map(|address| SocketAddr::new(address, 0));
                return Ok(Box::new(addresses.into_iter()) as Addrs);
            }
            let addresses: Vec<_> = tokio::net::lookup_host((name.as_str(), 0)).await?.collect();
            Ok(Box::new(addresses.into_iter()) as Addrs)
        })
    }
}

/// Whether a host of a URL is this machine.
#[must_use]
pub fn is_loopback(host: &str) -> bool {
    let host = host.strip_suffix('.').unwrap_or(host).to_ascii_lowercase();
    let address = host.strip_prefix('[').and_then(|h| h.strip_suffix(']')).unwrap_or(&host);
    host == "localhost"
        || host.ends_with(".localhost")
        || address.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everything_under_localhost_is_this_machine() {
        for yes in ["localhost", "wakeful.localhost", "a.b.LOCALHOST.", "127.0.0.2", "[::1]"] {
            assert!(is_loopback(yes), "{yes}");
        }
        for no in ["notlocalhost", "localhost.example.org", "10.0.0.1", ""] {
            assert!(!is_loopback(no), "{no}");
        }
    }
}
