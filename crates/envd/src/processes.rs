//! Which processes belong to this sandbox, and what they listen on.
//!
//! `envd` is a subreaper: a process that loses its parent becomes `envd`'s child. So everything
//! that was started in the sandbox and lives is a descendant of `envd`, however it daemonised.

use std::{
    collections::{HashMap, HashSet},
    fs, io,
    net::SocketAddr,
    os::fd::OwnedFd,
};

use rustix::process::{Pid, PidfdFlags, PidfdGetfdFlags, Signal};

/// One process, told from a later one with the same id by its start time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Process {
    pub(crate) pid: i32,
    pub(crate) started: u64,
}

/// Every descendant of `root`, without `root`. One pass over `/proc`: a process that is born
/// meanwhile may be missed, so whoever needs all of them repeats until nothing is left.
pub(crate) fn descendants(root: i32) -> io::Result<Vec<Process>> {
    let mut children: HashMap<i32, Vec<Process>> = HashMap::new();
    for entry in fs::read_dir("/proc")? {
        let Some(pid) = entry.ok().and_then(|entry| entry.file_name().to_str()?.parse().ok())
        else {
            continue;
        };
        if let Some((parent, started)) = stat(pid) {
            children.entry(parent).or_default().push(Process { pid, started });
        }
    }
    let mut found = Vec::new();
    let mut open = vec![root];
    while let Some(parent) = open.pop() {
        for child in children.remove(&parent).unwrap_or_default() {
            open.push(child.pid);
            found.push(child);
        }
    }
    Ok(found)
}

/// A process's parent and start time. `None` when it is gone.
fn stat(pid: i32) -> Option<(i32, u64)> {
    parse_stat(&fs::read_to_string(format!("/proc/{pid}/stat")).ok()?)
}

/// The fourth and the twenty-second field of `/proc/PID/stat` (proc_pid_stat(5)). The second, the
/// command in parentheses, may hold blanks and parentheses itself.
fn parse_stat(text: &str) -> Option<(i32, u64)> {
    let mut fields = text.get(text.rfind(')')? + 1..)?.split_ascii_whitespace();
    let parent = fields.nth(1)?.parse().ok()?;
    let started = fields.nth(17)?.parse().ok()?;
    Some((parent, started))
}

/// Signals exactly this process: never one that has its id meanwhile. An error means that it is
/// gone already, or out of reach.
pub(crate) fn signal(process: Process, signal: Signal) -> io::Result<()> {
    let pid = Pid::from_raw(process.pid).ok_or(io::ErrorKind::NotFound)?;
    let fd = rustix::process::pidfd_open(pid, PidfdFlags::empty())?;
    match stat(process.pid) {
        Some((_, started)) if started == process.started => {
            Ok(rustix::process::pidfd_send_signal(fd, signal)?)
        }
        _ => Err(io::ErrorKind::NotFound.into()),
    }
}

/// Whether the listener that a dial of this loopback port reaches belongs to `leader` or another
/// descendant of `root`. Another environment's program may have taken the port between its
/// allocation and the program's bind. `Ok(false)` as well while nothing listens.
pub(crate) fn owns_listener(root: i32, leader: i32, port: u16) -> io::Result<bool> {
    // Asking the processes for their sockets costs far less than reading the system's tables, and
    // most programs listen in their first process.
    let mut refused = match listens(leader, port) {
        Ok(true) => return Ok(true),
        other => other.is_err(),
    };
    let descendants = descendants(root)?;
    for process in &descendants {
        match listens(process.pid, port) {
            Ok(true) => return Ok(true),
            other => refused |= other.is_err(),
        }
    }
    // A system can forbid looking into one's own descendants (Yama, or a program that forbids it).
    if refused { owns_listed(&descendants, port) } else { Ok(false) }
}

/// Whether a process listens on `port` where a loopback dial reaches it. An error means that it
/// does not let itself be looked into; one that is gone listens on nothing.
fn listens(pid: i32, port: u16) -> io::Result<bool> {
    let absent = |error: io::Error| {
        let gone = error.kind() == io::ErrorKind::NotFound
            || error.raw_os_error() == Some(rustix::io::Errno::SRCH.raw_os_error());
        if gone { Ok(false) } else { Err(error) }
    };
    let Some(id) = Pid::from_raw(pid) else { return Ok(false) };
    let pidfd = match rustix::process::pidfd_open(id, PidfdFlags::empty()) {
        Ok(pidfd) => pidfd,
        Err(error) => return absent(error.into()),
    };
    let fds = match fs::read_dir(format!("/proc/{pid}/fd")) {
        Ok(fds) => fds,
        Err(error) => return absent(error),
    };
    for fd in fds.flatten() {
        let is_socket = fs::read_link(fd.path())
            .is_ok_and(|target| target.as_os_str().as_encoded_bytes().starts_with(b"socket:"));
        let number = fd.file_name().to_str().and_then(|number| number.parse().ok());
        let (true, Some(number)) = (is_socket, number) else { continue };
        match rustix::process::pidfd_getfd(&pidfd, number, PidfdGetfdFlags::empty()) {
            Ok(socket) if is_reached(&socket, port) => return Ok(true),
            // Closed meanwhile.
            Ok(_) | Err(rustix::io::Errno::BADF | rustix::io::Errno::SRCH) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(false)
}

/// Whether this socket listens on `port` where a loopback dial reaches it.
fn is_reached(socket: &OwnedFd, port: u16) -> bool {
    let address = rustix::net::getsockname(socket)
        .ok()
        .and_then(|address| SocketAddr::try_from(address).ok());
    let Some(address) = address else { return false };
    let ip = address.ip().to_canonical();
    address.port() == port
        && (ip.is_loopback() || ip.is_unspecified())
        && rustix::net::sockopt::socket_acceptconn(socket).unwrap_or(false)
}

/// The same by the system's tables: whether every listener that a dial of this loopback port could
/// reach belongs to one of `processes`, and there is one.
fn owns_listed(processes: &[Process], port: u16) -> io::Result<bool> {
    let mut listeners = HashSet::new();
    for table in ["/proc/self/net/tcp", "/proc/self/net/tcp6"] {
        match fs::read_to_string(table) {
            Ok(text) => listeners.extend(text.lines().filter_map(|line| listener(line, port))),
            // No IPv6 on this machine.
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
    }
    if listeners.is_empty() {
        return Ok(false);
    }
    for process in processes {
        let Ok(fds) = fs::read_dir(format!("/proc/{}/fd", process.pid)) else { continue };
        for target in fds.filter_map(|fd| fs::read_link(fd.ok()?.path()).ok()) {
            let inode = target.to_str().and_then(|target| {
                target.strip_prefix("socket:[")?.strip_suffix(']')?.parse().ok()
            });
            if let Some(inode) = inode {
                listeners.remove(&inode);
            }
        }
    }
    Ok(listeners.is_empty())
}

/// The inode of the socket in a line of `/proc/net/tcp` or `tcp6` (proc_pid_net(5)), if it listens
/// on `port` where a loopback dial reaches it.
fn listener(line: &str, port: u16) -> Option<u64> {
    const LISTEN: &str = "0A";
    const REACHED: [&str; 5] = [
        "00000000",
        "0100007F",
        "00000000000000000000000000000000",
        "00000000000000000000000001000000",
        // 127.0.0.1 as an IPv4-mapped IPv6 address.
        "0000000000000000FFFF00000100007F",
    ];
    let mut fields = line.split_ascii_whitespace();
    let (address, at) = fields.nth(1)?.split_once(':')?;
    let state = fields.nth(1)?;
    let reached = REACHED.contains(&address)
        && state == LISTEN
        && u16::from_str_radix(at, 16).is_ok_and(|at| at == port);
    if reached { fields.nth(5)?.parse().ok() } else { None }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_name_with_parentheses_does_not_shift_the_fields() {
        let text = "12 (a) b (c) S 7 1 1 0 -1 4 1 0 0 0 5 6 0 0 20 0 1 0 4242 9 9";
        assert_eq!(parse_stat(text), Some((7, 4242)));
        assert_eq!(parse_stat("12 (a"), None);
        assert_eq!(parse_stat(""), None);
    }

    #[test]
    fn a_listener_is_known_by_port_state_and_reachable_address() {
        let line = |address: &str, state: &str| {
            format!(
                "0: {address} 00000000:0000 {state} 00000000:00000000 00:00000000 00000000 0 0 77 1"
            )
        };
        let table = [
            ("0100007F:1F90", "0A", Some(77)),
            ("00000000:1F90", "0A", Some(77)),
            ("00000000000000000000000001000000:1F90", "0A", Some(77)),
            ("0100007F:1F91", "0A", None),
            ("0100007F:1F90", "01", None),
            ("0200000A:1F90", "0A", None),
        ];
        for (address, state, inode) in table {
            assert_eq!(listener(&line(address, state), 8080), inode, "{address} {state}");
        }
        let header =
            "sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt uid";
        assert_eq!(listener(header, 8080), None);
    }

    #[test]
    fn this_process_is_no_descendant_of_itself_and_its_child_is() {
        let me = std::process::id().cast_signed();
        let mut child = std::process::Command::new("sleep").arg("100").spawn().unwrap();
        let pid = child.id().cast_signed();
        let found = descendants(me).unwrap();
        assert!(found.iter().all(|process| process.pid != me));
        let process = *found.iter().find(|process| process.pid == pid).unwrap();
        let later = Process { started: process.started + 1, ..process };
        assert!(signal(later, Signal::KILL).is_err(), "another process with this id");
        assert!(child.try_wait().unwrap().is_none());
        signal(process, Signal::KILL).unwrap();
        child.wait().unwrap();
    }

    #[test]
    fn only_a_listener_that_a_dial_reaches_counts() {
        let me = std::process::id().cast_signed();
        for address in ["127.0.0.1:0", "0.0.0.0:0", "[::1]:0", "[::]:0"] {
            let listener = std::net::TcpListener::bind(address).unwrap();
            let port = listener.local_addr().unwrap().port();
            assert!(listens(me, port).unwrap(), "{address}");
            assert!(!listens(me, port ^ 1).unwrap() || port ^ 1 == 0, "{address}");
        }
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let connected = std::net::TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let port = connected.local_addr().unwrap().port();
        assert!(!listens(me, port).unwrap(), "a connection is no listener");
        let listener = std::net::TcpListener::bind("127.0.0.2:0").unwrap();
        assert!(listens(me, listener.local_addr().unwrap().port()).unwrap());
        assert!(!listens(i32::MAX, port).unwrap(), "nor is a process that is gone");
    }

    #[test]
    fn a_port_that_somebody_else_serves_is_not_ours() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let me = std::process::id().cast_signed();
        let parent = rustix::process::getppid().unwrap().as_raw_nonzero().get();
        let mut child = std::process::Command::new("sleep").arg("100").spawn().unwrap();
        let pid = child.id().cast_signed();
        // The listener is this process's own, not a descendant's.
        assert!(!owns_listener(me, pid, port).unwrap());
        assert!(!owns_listed(&descendants(me).unwrap(), port).unwrap());
        assert!(owns_listener(parent, pid, port).unwrap());
        assert!(owns_listed(&descendants(parent).unwrap(), port).unwrap());
        child.kill().unwrap();
        child.wait().unwrap();
    }
}
