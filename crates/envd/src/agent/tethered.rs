//! The host's side of a tether: a command whose processes end together.

use std::{
    ffi::OsString,
    io::{self, IoSlice},
    mem::MaybeUninit,
    os::{
        fd::{AsFd, OwnedFd},
        unix::net::UnixStream as StdUnixStream,
    },
    path::PathBuf,
    process::Stdio,
    sync::Arc,
};

use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags};
use tokio::net::UnixStream;
use wakeful_wire::{rpc::Exit, sandbox::subcommand};

use super::tether::order;

/// Where and with what commands are started.
#[derive(Clone)]
pub struct Surroundings {
    /// This program, which runs the tether under its hidden subcommand. `/proc/self/exe` finds it
    /// even after an upgrade has replaced its file.
    pub program: PathBuf,
    /// The whole environment of every command; nothing else is inherited. May hold secrets.
    pub env: Vec<(OsString, OsString)>,
    /// The workspace.
    pub workspace: PathBuf,
    /// A directory for small files of the host's own, outside the workspace.
    pub scratch: PathBuf,
}

impl std::fmt::Debug for Surroundings {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Surroundings")
            .field("program", &self.program)
            .field("workspace", &self.workspace)
            .field("scratch", &self.scratch)
            .finish_non_exhaustive()
    }
}

/// A command to start.
#[derive(Clone)]
pub(super) struct Start {
    pub(super) program: OsString,
    pub(super) args: Vec<OsString>,
    /// Beside the surroundings' own; the later ones win.
    pub(super) env: Vec<(OsString, OsString)>,
    pub(super) dir: PathBuf,
}

impl Start {
    /// `sh -c COMMAND ARGS…` in `dir`.
    pub(super) fn shell(command: &str, args: &[&str], dir: PathBuf) -> Self {
        let mut all = vec![OsString::from("-c"), OsString::from(command), OsString::from("sh")];
        all.extend(args.iter().map(OsString::from));
        Self { program: OsString::from("/bin/sh"), args: all, env: Vec::new(), dir }
    }
}

/// The command's own streams.
#[derive(Debug)]
pub(super) enum Streams {
    /// Input, output, errors.
    Pipes([OwnedFd; 3]),
    /// One terminal, which becomes its controlling one.
    Terminal(OwnedFd),
}

/// A command that runs below a tether. Dropping it ends everything that the command has started.
#[derive(Debug)]
pub(super) struct Tethered {
    control: Arc<UnixStream>,
    line: Vec<u8>,
    ended: Option<Ended>,
}

/// How a command ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Ended {
    /// By itself or by a signal.
    Exit(Exit),
    /// Its tether was killed from outside, and it with its tether.
    Lost,
}

impl Ended {
    /// For people.
    pub(super) fn describe(self) -> String {
        match self {
            Self::Exit(Exit { code: Some(127), .. }) => {
                "its command could not be found or run (status 127)".to_owned()
            }
            Self::Exit(Exit { code: Some(code), .. }) => format!("it ended with status {code}"),
            Self::Exit(Exit { signal: Some(9), .. }) => {
                "it was killed (signal 9), perhaps for want of memory".to_owned()
            }
            Self::Exit(Exit { signal: Some(signal), .. }) => {
                format!("it was ended by signal {signal}")
            }
            Self::Exit(_) => "it ended".to_owned(),
            Self::Lost => "it was killed together with its tether".to_owned(),
        }
    }
}

impl Tethered {
    /// Starts a command.
    ///
    /// # Errors
    /// When no process or socket can be had. A program that does not exist is no error here: it
    /// ends with status 127.
    pub(super) fn start(
        surroundings: &Surroundings,
        start: &Start,
        streams: Streams,
    ) -> io::Result<Self> {
        let (ours, theirs) = StdUnixStream::pair()?;
        ours.set_nonblocking(true)?;
        let mode = match &streams {
            Streams::Pipes(_) => "hold",
            Streams::Terminal(_) => "hold-terminal",
        };
        let mut command = tokio::process::Command::new(&surroundings.program);
        command
            .arg(subcommand::TETHER)
            .arg(mode)
            .arg(&start.program)
            .args(&start.args)
            .current_dir(&start.dir)
            .env_clear()
            .envs(surroundings.env.iter().map(|(name, value)| (name, value)))
            .envs(start.env.iter().map(|(name, value)| (name, value)))
            .stdin(Stdio::from(OwnedFd::from(theirs)))
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        let mut child = command.spawn()?;
        // It holds the other end, whose closing tells that the tether is gone.
        drop(command);
        // Somebody must wait for it; where `envd` waits for all of its children, this one finds
        // nothing, and neither status matters.
        tokio::spawn(async move {
            let _taken_elsewhere = child.wait().await;
        });
        send_streams(&ours, &streams)?;
        Ok(Self { control: Arc::new(UnixStream::from_std(ours)?), line: Vec::new(), ended: None })
    }

    /// Waits until the command has ended; what it started may go on. Losing the future loses nothing.
    pub(super) async fn ended(&mut self) -> Ended {
        loop {
            if let Some(ended) = self.ended {
                return ended;
            }
            let mut bytes = [0; 64];
            if self.control.readable().await.is_err() {
                return self.lost();
            }
            match self.control.try_read(&mut bytes) {
                Ok(0) => return self.lost(),
                Ok(count) => {
                    self.line.extend_from_slice(&bytes[..count]);
                    if let Some(exit) = parse(&self.line) {
                        self.ended = Some(Ended::Exit(exit));
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(_) => return self.lost(),
            }
        }
    }

    fn lost(&mut self) -> Ended {
        *self.ended.get_or_insert(Ended::Lost)
    }

    /// Waits until nothing that the command has started is left.
    pub(super) async fn gone(&mut self) {
        let _how = self.ended().await;
        loop {
            let mut bytes = [0; 64];
            if self.control.readable().await.is_err() {
                return;
            }
            match self.control.try_read(&mut bytes) {
                Ok(0) => return,
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(_) => return,
            }
        }
    }

    /// Whether nothing is left already.
    pub(super) fn is_gone(&self) -> bool {
        matches!(self.control.try_read(&mut [0; 64]), Ok(0))
    }

    /// SIGINT to the command's process group.
    pub(super) fn interrupt(&self) {
        self.order(order::INTERRUPT);
    }

    /// SIGTERM to every process.
    pub(super) fn terminate(&self) {
        self.order(order::TERMINATE);
    }

    /// SIGKILL to every process, until none is left.
    pub(super) fn kill(&self) {
        self.order(order::KILL);
    }

    /// A tether that is gone needs no order; the socket holds far more than are ever sent.
    fn order(&self, order: u8) {
        let _gone = rustix::net::send(self.control.as_fd(), &[order], SendFlags::NOSIGNAL);
    }
}

fn parse(line: &[u8]) -> Option<Exit> {
    let text = std::str::from_utf8(line).ok()?;
    let (word, number) = text.strip_suffix('\n')?.split_once(' ')?;
    let number = number.parse().ok()?;
    match word {
        "exit" => Some(Exit { code: Some(number), signal: None }),
        "signal" => Some(Exit { code: None, signal: Some(number) }),
        _ => None,
    }
}

fn send_streams(control: &StdUnixStream, streams: &Streams) -> io::Result<()> {
    let descriptors: Vec<_> = match streams {
        Streams::Pipes(all) => all.iter().map(AsFd::as_fd).collect(),
        Streams::Terminal(one) => vec![one.as_fd()],
    };
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(3))];
    let mut ancillary = SendAncillaryBuffer::new(&mut space);
    if !ancillary.push(SendAncillaryMessage::ScmRights(&descriptors)) {
        return Err(io::Error::other("no room for descriptors"));
    }
    rustix::net::sendmsg(control, &[IoSlice::new(b"s")], &mut ancillary, SendFlags::NOSIGNAL)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tethers_line_says_how_the_command_ended() {
        let table: [(&[u8], Option<Exit>); 5] = [
            (b"exit 3\n", Some(Exit { code: Some(3), signal: None })),
            (b"signal 9\n", Some(Exit { code: None, signal: Some(9) })),
            (b"exit 3", None),
            (b"", None),
            (b"what 3\n", None),
        ];
        for (line, exit) in table {
            assert_eq!(parse(line), exit);
        }
    }
}
