//! A network of its own for a host, with a wire to it that loses what it is told to.

use std::{
    fs,
    io::Write as _,
    net::Ipv4Addr,
    process::{Command, Output, Stdio, id},
    sync::atomic::{AtomicU32, Ordering},
};

/// How far a network is from its clients, by its addresses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Far {
    /// Private addresses: the local network.
    Lan,
    /// Addresses for measurements (RFC 2544), which count as anywhere.
    Anywhere,
}

/// A network namespace with one wire to this one, which has addresses of each kind. Dropped, both
/// are gone.
#[derive(Debug)]
pub(crate) struct Network {
    /// The namespace.
    name: String,
    /// This side's end of the wire.
    wire: String,
    /// Where the wire's eight addresses begin, in each kind.
    place: u32,
}

static MADE: AtomicU32 = AtomicU32::new(0);

impl Network {
    /// Makes one. None, after saying why, where this system lets nobody make any.
    #[expect(clippy::print_stderr, reason = "the runner shows what a test left out")]
    pub(crate) fn new() -> Option<Self> {
        let allowed = Command::new("unshare").args(["-n", "true"]).output();
        if !allowed.is_ok_and(|output| output.status.success()) {
            eprintln!("SKIPPED: nobody may make a network namespace here (`unshare -n true`)");
            return None;
        }
        let number = MADE.fetch_add(1, Ordering::Relaxed);
        let pid = id();
        let place = pid.wrapping_mul(7).wrapping_add(number) % 4_096 * 8;
        let network = Self {
            name: format!("wk-faults-{pid}-{number}"),
            wire: format!("wk{pid}n{number}"),
            place,
        };
        let (name, wire) = (network.name.as_str(), network.wire.as_str());
        ip(&["netns", "add", name]);
        ip(&["link", "add", wire, "type", "veth", "peer", "name", "in", "netns", name]);
        for far in [Far::Lan, Far::Anywhere] {
            ip(&["addr", "add", &network.with_mask(far, 1), "dev", wire]);
            ip(&["-n", name, "addr", "add", &network.with_mask(far, 2), "dev", "in"]);
        }
        ip(&["link", "set", wire, "up"]);
        ip(&["-n", name, "link", "set", "in", "up"]);
        ip(&["-n", name, "link", "set", "lo", "up"]);
        Some(network)
    }

    fn address(&self, far: Far, number: u32) -> Ipv4Addr {
        let first = match far {
            Far::Lan => Ipv4Addr::new(10, 213, 0, 0),
            Far::Anywhere => Ipv4Addr::new(198, 18, 0, 0),
        };
        Ipv4Addr::from(u32::from(first) + self.place + number)
    }

    fn with_mask(&self, far: Far, number: u32) -> String {
        format!("{}/29", self.address(far, number))
    }

    /// The host's address of a kind.
    pub(crate) fn host(&self, far: Far) -> Ipv4Addr {
        self.address(far, 2)
    }

    /// A program that is run in the network.
    pub(crate) fn inside(&self, program: &str) -> Command {
        let mut command = Command::new("ip");
        command.args(["netns", "exec", &self.name, program]);
        command
    }

    /// Gives this side another local address in the place of the one that it has.
    pub(crate) fn move_client(&self) {
        ip(&["addr", "del", &self.with_mask(Far::Lan, 1), "dev", &self.wire]);
        ip(&["addr", "add", &self.with_mask(Far::Lan, 3), "dev", &self.wire]);
    }

    /// Loses whatever belongs to the connections that are open to the host, without a word; new
    /// ones pass. How many there are.
    pub(crate) fn lose_open_connections(&self) -> usize {
        let ports = self.ports();
        let listed = ports.iter().map(u16::to_string).collect::<Vec<_>>().join(", ");
        self.rules(&format!(
            "chain in {{ type filter hook input priority 0; tcp sport {{ {listed} }} drop; }}\n\
             chain out {{ type filter hook output priority 0; tcp dport {{ {listed} }} drop; }}"
        ));
        ports.len()
    }

    /// Loses everything.
    pub(crate) fn lose_everything(&self) {
        self.rules(
            "chain in { type filter hook input priority 0; policy drop; }\n\
             chain out { type filter hook output priority 0; policy drop; }",
        );
    }

    /// Loses nothing any more.
    pub(crate) fn lose_nothing(&self) {
        self.nft("flush ruleset\n");
    }

    fn rules(&self, chains: &str) {
        self.nft(&format!("flush ruleset\ntable inet faults {{\n{chains}\n}}\n"));
    }

    fn nft(&self, script: &str) {
        let mut nft = self.inside("nft");
        let nft = nft.args(["-f", "-"]).stdin(Stdio::piped());
        let mut nft = nft.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        nft.stdin.take().unwrap().write_all(script.as_bytes()).unwrap();
        succeeded("nft", &nft.wait_with_output().unwrap());
    }

    /// This side's ports of what is connected to the host.
    fn ports(&self) -> Vec<u16> {
        const ESTABLISHED: &str = "01";
        let hosts = [Far::Lan, Far::Anywhere].map(|far| u32::from(self.host(far)).swap_bytes());
        let hosts = hosts.map(|host| format!("{host:08X}:"));
        let table = fs::read_to_string("/proc/self/net/tcp").unwrap();
        let port = |line: &str| {
            let mut fields = line.split_whitespace().skip(1);
            let (local, remote, state) = (fields.next()?, fields.next()?, fields.next()?);
            let ours = hosts.iter().any(|host| remote.starts_with(host));
            let open = ours && state == ESTABLISHED;
            open.then(|| u16::from_str_radix(local.rsplit(':').next()?, 16).ok()).flatten()
        };
        let ports: Vec<u16> = table.lines().filter_map(port).collect();
        assert!(!ports.is_empty(), "nothing is connected to the host:\n{table}");
        ports
    }
}

impl Drop for Network {
    fn drop(&mut self) {
        // The wire by itself as well: a namespace lasts as long as a process in it.
        for arguments in [["link", "del", &self.wire], ["netns", "del", &self.name]] {
            let _gone = Command::new("ip").args(arguments).output();
        }
    }
}

fn ip(arguments: &[&str]) {
    let output = Command::new("ip").args(arguments).output();
    let output = output.expect("`ip` is not installed: run `cargo xtask setup`");
    succeeded(&format!("ip {}", arguments.join(" ")), &output);
}

fn succeeded(what: &str, output: &Output) {
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{what}: {errors}");
}
