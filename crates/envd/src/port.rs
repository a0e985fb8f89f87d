//! Ports for surfaces.

use std::{
    io,
    net::{Ipv4Addr, Ipv6Addr, TcpListener},
    os::{
        linux::net::SocketAddrExt,
        unix::net::{SocketAddr, UnixDatagram},
    },
};

use wakeful_wire::SandboxUid;

/// Below the range from which the system takes ports for outgoing connections by default, so that
/// none of those can take a port between its choice and the program's bind.
const FIRST: u16 = 18_000;
/// How many there are, and a step that visits each of them once.
const COUNT: u16 = 12_288;
const STEP: u32 = 7919;
/// How many ports are taken from the system before a start is given up.
const TRIES: usize = 16;

/// A loopback port that no other `envd` in this network namespace uses.
///
/// It is claimed by a name in the abstract socket namespace, which ends with this value or with the
/// process. Programs that are no `envd`'s do not know of the claim; so before a surface counts as
/// ready, the listener's owner is checked. That check is all there is for a port without a claim.
#[derive(Debug)]
pub(crate) struct Port {
    number: u16,
    _claim: Option<UnixDatagram>,
}

impl Port {
    /// The port's number.
    pub(crate) const fn number(&self) -> u16 {
        self.number
    }
}

/// Chooses ports, a different one each time.
#[derive(Debug)]
pub(crate) struct Ports {
    position: u32,
}

impl Ports {
    /// Each sandbox begins elsewhere.
    pub(crate) fn new(sandbox: SandboxUid) -> Self {
        let position = sandbox
            .uuid()
            .as_bytes()
            .iter()
            .fold(17_u32, |sum, byte| sum.wrapping_mul(31).wrapping_add(u32::from(*byte)));
        Self { position }
    }

    /// The next port that is free and that nobody has claimed. Anybody on the machine can take all
    /// the names, so where no claim is to be had, a free port of the system's choice without one.
    ///
    /// # Errors
    /// `AddrInUse` when there is no free port.
    pub(crate) fn claim(&mut self) -> io::Result<Port> {
        self.claim_by(|number| {
            let name = SocketAddr::from_abstract_name(format!("wakeful-port-{number}"))?;
            UnixDatagram::bind_addr(&name)
        })
    }

    fn claim_by(&mut self, claim: impl Fn(u16) -> io::Result<UnixDatagram>) -> io::Result<Port> {
        for _ in 0..COUNT {
            self.position = self.position.wrapping_add(STEP);
            let offset = u16::try_from(self.position % u32::from(COUNT)).unwrap_or(0);
            let number = FIRST + offset;
            let Ok(claim) = claim(number) else { continue };
            if is_free(number) {
                return Ok(Port { number, _claim: Some(claim) });
            }
        }
        for _ in 0..TRIES {
            let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
            let number = listener.local_addr()?.port();
            drop(listener);
            if is_free(number) {
                return Ok(Port { number, _claim: None });
            }
        }
        Err(io::Error::new(io::ErrorKind::AddrInUse, "no free port is left"))
    }
}

/// A machine without IPv6 has only the first kind of loopback address.
fn is_free(port: u16) -> bool {
    let taken = |result: io::Result<TcpListener>| {
        result.is_err_and(|error| error.kind() != io::ErrorKind::AddrNotAvailable)
    };
    TcpListener::bind((Ipv4Addr::LOCALHOST, port)).is_ok()
        && !taken(TcpListener::bind((Ipv6Addr::LOCALHOST, port)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_claim_differs_and_a_taken_port_is_passed_over() {
        let uid: SandboxUid = "0199f0a0-7b5c-7c3e-9d2f-6a1b2c3d4e5f".parse().unwrap();
        let first = Ports::new(uid).claim().unwrap();
        // The same sequence again meets the claim and goes on.
        let second = Ports::new(uid).claim().unwrap();
        assert_ne!(first.number(), second.number());
        let number = second.number();
        drop(second);
        let _taken = TcpListener::bind((Ipv4Addr::LOCALHOST, number)).unwrap();
        let third = Ports::new(uid).claim().unwrap();
        assert!(![first.number(), number].contains(&third.number()));
    }

    #[test]
    fn where_every_name_is_taken_the_system_gives_a_free_port() {
        let uid: SandboxUid = "0199f0a0-7b5c-7c3e-9d2f-6a1b2c3d4e5f".parse().unwrap();
        let mut ports = Ports::new(uid);
        let port = ports.claim_by(|_| Err(io::ErrorKind::AddrInUse.into())).unwrap();
        assert!(port._claim.is_none());
        assert_ne!(port.number(), 0);
        TcpListener::bind((Ipv4Addr::LOCALHOST, port.number())).unwrap();
        assert!(ports.claim().unwrap()._claim.is_some(), "and a claim once one is to be had");
    }

    #[test]
    fn the_step_visits_every_port() {
        let visited: std::collections::HashSet<_> =
            (0..u32::from(COUNT)).map(|k| (k * STEP) % u32::from(COUNT)).collect();
        assert_eq!(visited.len(), usize::from(COUNT));
    }
}
