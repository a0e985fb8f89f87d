//! Where a host of its own is reached, and what it says of that.

use std::{
    fmt::Write as _,
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket},
    path::Path,
};

use super::ask::Offered;
use crate::credential::{CODE_LIFETIME, HttpAddress, is_near};

/// The address to give to another machine, without a slash at its end: the public one if there is
/// one, else where it listens. For a listener on every address it is `outward`, if that is known.
pub(super) fn address(
    public: Option<&HttpAddress>,
    listening: SocketAddr,
    outward: Option<IpAddr>,
) -> String {
    if let Some(public) = public {
        return public.to_string().trim_end_matches('/').to_owned();
    }
    let shown = match (listening.ip().is_unspecified(), outward) {
        (false, _) => listening.ip(),
        (true, Some(outward)) => outward,
        (true, None) if listening.is_ipv4() => Ipv4Addr::LOCALHOST.into(),
        (true, None) => Ipv6Addr::LOCALHOST.into(),
    };
    format!("http://{}", SocketAddr::new(shown, listening.port()))
}

/// This machine's own address towards others, as its routes say. Nothing is sent.
pub(super) fn outward(listening: SocketAddr) -> Option<IpAddr> {
    // Addresses for documentation (RFC 5737, RFC 3849): no packet ever goes there.
    let (from, to): (IpAddr, IpAddr) = if listening.is_ipv4() {
        (Ipv4Addr::UNSPECIFIED.into(), Ipv4Addr::new(192, 0, 2, 1).into())
    } else {
        (Ipv6Addr::UNSPECIFIED.into(), Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 1).into())
    };
    let socket = UdpSocket::bind((from, 0)).ok()?;
    socket.connect((to, 9)).ok()?;
    Some(socket.local_addr().ok()?.ip()).filter(|own| !own.is_unspecified())
}

/// What is said once it listens.
pub(super) fn welcome(workspace: &Path, listening: SocketAddr, offered: &Offered) -> String {
    let mut text = format!("The host of {} listens on {listening}.\n", workspace.display());
    let minutes = CODE_LIFETIME.as_secs() / 60;
    let Offered { code, address, .. } = offered;
    let _infallible = write!(
        text,
        "To connect from elsewhere, within {minutes} minutes:\n\n    wakeful pair {address} {code}\n\n\
         For another code, here: wakeful pair\n"
    );
    let ip = listening.ip();
    if !ip.is_loopback() {
        text.push_str(
            "It listens beyond this machine, by plain HTTP: whoever can read the network reads \
             what is done here.\n",
        );
        if !ip.is_unspecified() && !is_near(ip) {
            text.push_str("Pairing is refused to whoever is not on this machine or its network.\n");
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use wakeful_wire::Timestamp;

    use super::*;

    #[test]
    fn another_machine_is_given_an_address_that_it_can_use() {
        let public = HttpAddress::parse("https://lab.example/host/").unwrap();
        let lan: IpAddr = "192.168.1.7".parse().unwrap();
        let table = [
            (None, "127.0.0.1:7880", Some(lan), "http://127.0.0.1:7880"),
            (None, "[::1]:7880", None, "http://[::1]:7880"),
            (None, "0.0.0.0:7880", Some(lan), "http://192.168.1.7:7880"),
            (None, "0.0.0.0:7880", None, "http://127.0.0.1:7880"),
            (None, "[::]:7880", None, "http://[::1]:7880"),
            (Some(&public), "0.0.0.0:7880", Some(lan), "https://lab.example/host"),
        ];
        for (public, listening, outward, shown) in table {
            assert_eq!(address(public, listening.parse().unwrap(), outward), shown);
        }
    }

    #[test]
    fn the_welcome_has_the_whole_command_and_warns_of_plain_http() {
        let offered = Offered {
            code: "ABCD-EFGH".to_owned(),
            expires_at: Timestamp(0),
            address: "http://192.168.1.7:7880".to_owned(),
        };
        let said = |listening: &str| welcome(Path::new("/w"), listening.parse().unwrap(), &offered);
        let here = said("127.0.0.1:7880");
        assert!(here.contains("\n    wakeful pair http://192.168.1.7:7880 ABCD-EFGH\n"), "{here}");
        assert!(here.contains("of /w listens on 127.0.0.1:7880") && !here.contains("plain HTTP"));
        assert!(said("0.0.0.0:7880").contains("plain HTTP"));
        assert!(!said("192.168.1.7:7880").contains("refused"));
        assert!(said("8.8.8.8:7880").contains("refused to whoever"));
    }
}
