//! The process that holds an agent and everything it starts together.
//!
//! A tool can leave its agent's process group (`setsid`) and its agent (by losing its parent), and
//! then nothing tells it from another agent's tool. So each agent, terminal and command is started
//! by a process of its own that is a subreaper: whatever it starts stays below it, however it
//! daemonises, and is found there when it has to end.
//!
//! The tether's standard input is one end of a socket pair. The first message on it carries the
//! command's own streams; then one byte is one [`order`]. The tether answers one line when the
//! command has ended and closes the socket when nothing of it is left. The other end closing, as it
//! does when the host dies however suddenly, ends everything.

use std::{
    ffi::OsString,
    io::{self, IoSliceMut, Write},
    mem::MaybeUninit,
    os::{fd::OwnedFd, unix::process::CommandExt},
    process::{Command, ExitCode, Stdio},
    time::{Duration, Instant},
};

use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    net::{RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendFlags},
    process::{Pid, PidfdFlags, Signal, WaitOptions, WaitStatus},
};
use wakeful_wire::sandbox::subcommand;

use crate::processes;

/// What the host asks of a tether, one byte each.
pub(super) mod order {
    /// SIGINT to the command's process group.
    pub(in super::super) const INTERRUPT: u8 = b'i';
    /// SIGTERM to every process, once to each.
    pub(in super::super) const TERMINATE: u8 = b't';
    /// SIGKILL to every process until none is left.
    pub(in super::super) const KILL: u8 = b'k';
}

/// How often processes that were adopted meanwhile are waited for.
const REAP: Duration = Duration::from_secs(5);
/// How often the processes are looked at while they are being killed.
const LOOK: Duration = Duration::from_millis(10);
/// How long a process may take to vanish after SIGKILL before the tether gives up waiting.
const KILL_MAX: Duration = Duration::from_secs(10);

/// `envd-tether hold|hold-terminal PROGRAM ARGS…` holds, `envd-tether become|become-terminal
/// PARENT PROGRAM ARGS…` is the step between the tether and its command.
///
/// Called on the program's first thread, before anything else runs in it. Returns the status to
/// exit with, which means nothing to anybody.
pub fn tether(args: impl IntoIterator<Item = OsString>) -> ExitCode {
    let mut args = args.into_iter();
    let mode = args.next().and_then(|mode| mode.into_string().ok()).unwrap_or_default();
    let rest: Vec<_> = args.collect();
    let outcome = match mode.as_str() {
        "hold" => hold(&rest, "become"),
        "hold-terminal" => hold(&rest, "become-terminal"),
        "become" => Err(become_command(&rest, false)),
        "become-terminal" => Err(become_command(&rest, true)),
        _ => Err(io::Error::new(io::ErrorKind::InvalidInput, "unknown mode")),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            let _lost = writeln!(io::stderr(), "the command cannot be run: {error}");
            ExitCode::from(127)
        }
    }
}

fn hold(command: &[OsString], step: &str) -> io::Result<()> {
    // Of its own: a terminal's SIGINT and a signal to the host's group must not end it.
    let _is_leader = rustix::process::setsid();
    rustix::process::set_child_subreaper(Some(rustix::process::getpid()))?;
    let control = rustix::io::dup(io::stdin())?;
    rustix::io::fcntl_setfd(&control, rustix::io::FdFlags::CLOEXEC)?;
    let streams = receive_streams(&control)?;
    let mut child = Command::new("/proc/self/exe");
    child.arg(subcommand::TETHER).arg(step).arg(std::process::id().to_string()).args(command);
    let [input, output, errors] = streams;
    child.stdin(input).stdout(output).stderr(errors);
    // The handle is dropped: `reap` waits for every child.
    let id = child.spawn()?.id();
    // It holds the command's streams, which must close with the command.
    drop(child);
    let leader =
        i32::try_from(id).ok().and_then(Pid::from_raw).ok_or(io::ErrorKind::InvalidData)?;
    Hold { control, leader, leader_ended: false }.run();
    Ok(())
}

/// Three descriptors, or one that stands for all three.
fn receive_streams(control: &OwnedFd) -> io::Result<[Stdio; 3]> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(3))];
    let mut ancillary = RecvAncillaryBuffer::new(&mut space);
    let mut byte = [0];
    rustix::net::recvmsg(
        control,
        &mut [IoSliceMut::new(&mut byte)],
        &mut ancillary,
        RecvFlags::CMSG_CLOEXEC,
    )?;
    let mut received = Vec::new();
    for message in ancillary.drain() {
        if let RecvAncillaryMessage::ScmRights(descriptors) = message {
            received.extend(descriptors);
        }
    }
    if let [only] = received.as_slice() {
        let (second, third) = (only.try_clone()?, only.try_clone()?);
        received.extend([second, third]);
    }
    let streams: [OwnedFd; 3] =
        received.try_into().map_err(|_| io::Error::other("no streams were sent"))?;
    Ok(streams.map(Stdio::from))
}

struct Hold {
    control: OwnedFd,
    leader: Pid,
    leader_ended: bool,
}

impl Hold {
    fn run(&mut self) {
        let mut told = std::collections::HashSet::new();
        loop {
            if !self.reap() {
                return;
            }
            match self.wait() {
                Some(order::INTERRUPT) => self.interrupt(),
                Some(order::TERMINATE) => {
                    for process in self.descendants() {
                        if told.insert(process) {
                            let _gone = processes::signal(process, Signal::TERM);
                            let _gone = processes::signal(process, Signal::CONT);
                        }
                    }
                }
                // An unknown order is a host that is not ours.
                Some(_) => return self.kill_all(),
                None => {}
            }
        }
    }

    fn interrupt(&self) {
        // Once it was waited for, its id may be somebody else's.
        if !self.leader_ended {
            let _gone = rustix::process::kill_process_group(self.leader, Signal::INT);
        }
    }

    /// An order, or nothing after a while or when the command has ended. A host that is gone is
    /// the order to kill.
    fn wait(&self) -> Option<u8> {
        let pidfd = (!self.leader_ended)
            .then(|| rustix::process::pidfd_open(self.leader, PidfdFlags::empty()).ok())
            .flatten();
        let mut watched = vec![PollFd::new(&self.control, PollFlags::IN)];
        if let Some(pidfd) = &pidfd {
            watched.push(PollFd::new(pidfd, PollFlags::IN));
        }
        let timeout = Timespec { tv_sec: i64::try_from(REAP.as_secs()).unwrap_or(1), tv_nsec: 0 };
        let _interrupted = poll(&mut watched, Some(&timeout));
        if watched[0].revents().is_empty() {
            return None;
        }
        let mut byte = [0];
        match rustix::net::recv(&self.control, &mut byte[..], RecvFlags::empty()) {
            Ok((0, _)) => Some(order::KILL),
            Ok(_) => Some(byte[0]),
            Err(rustix::io::Errno::INTR | rustix::io::Errno::AGAIN) => None,
            Err(_) => Some(order::KILL),
        }
    }

    /// Takes the status of what has ended. Returns whether anything is left.
    fn reap(&mut self) -> bool {
        loop {
            match rustix::process::wait(WaitOptions::NOHANG) {
                Ok(Some((pid, status))) if pid == self.leader => {
                    self.leader_ended = true;
                    self.report(status);
                }
                Ok(Some(_)) | Err(rustix::io::Errno::INTR) => {}
                Ok(None) => return true,
                Err(_) => return false,
            }
        }
    }

    fn report(&self, status: WaitStatus) {
        let line = match (status.exit_status(), status.terminating_signal()) {
            (Some(code), _) => format!("exit {code}\n"),
            (None, Some(signal)) => format!("signal {signal}\n"),
            (None, None) => "exit 0\n".to_owned(),
        };
        let _gone = rustix::net::send(&self.control, line.as_bytes(), SendFlags::NOSIGNAL);
    }

    fn descendants(&self) -> Vec<processes::Process> {
        processes::descendants(std::process::id().cast_signed()).unwrap_or_default()
    }

    fn kill_all(&mut self) {
        let begun = Instant::now();
        while self.reap() && begun.elapsed() < KILL_MAX {
            for process in self.descendants() {
                let _gone = processes::signal(process, Signal::KILL);
            }
            let pause = Timespec { tv_sec: 0, tv_nsec: i64::from(LOOK.subsec_nanos()) };
            let _interrupted = poll(&mut [], Some(&pause));
        }
    }
}

/// Becomes the command, in a session of its own that ends with `PARENT`. Returns only when it failed.
fn become_command(args: &[OsString], terminal: bool) -> io::Error {
    let prepared = || -> io::Result<(OsString, Vec<OsString>)> {
        let [parent, program, rest @ ..] = args else {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "needs PARENT and PROGRAM"));
        };
        let parent = parent
            .to_str()
            .and_then(|parent| parent.parse().ok())
            .and_then(Pid::from_raw)
            .ok_or(io::ErrorKind::InvalidInput)?;
        rustix::process::set_parent_process_death_signal(Some(Signal::KILL))?;
        // The signal is not sent for a parent that died before it was asked for.
        if rustix::process::getppid() != Some(parent) {
            return Err(io::Error::other("its tether is gone"));
        }
        rustix::process::setsid()?;
        if terminal {
            rustix::process::ioctl_tiocsctty(io::stdin())?;
        }
        Ok((program.clone(), rest.to_vec()))
    };
    match prepared() {
        // `exec` resets the signal mask and the handling of SIGPIPE.
        Ok((program, rest)) => Command::new(program).args(rest).exec(),
        Err(error) => error,
    }
}
