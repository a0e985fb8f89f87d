//! The step between `envd` and a surface's command.
//!
//! `envd` is one thread under `deny(unsafe_code)`, so nothing of its own can run between fork and
//! exec. Instead it starts this program once more, which prepares its own process and then becomes
//! the shell.

use std::{
    ffi::{OsStr, OsString},
    io::{self, Write},
    os::unix::{ffi::OsStrExt, process::CommandExt},
    process::{Command, ExitCode},
};

use rustix::process::{Pid, Signal};

/// `envd-exec PARENT COMMAND`: becomes `sh -c COMMAND` in a session of its own that ends with
/// `PARENT`.
///
/// Called by `envd` alone, on the program's first thread, before anything else runs in it. The
/// parent death signal is bound to the thread that spawned this process, which in `envd` is the
/// one thread that lives as long as it does. Standard streams, environment and working directory
/// are `envd`'s work. Returns only when it failed, with the status to exit with (127, as a shell
/// says "cannot be run"); it says why on standard error.
pub fn exec_shim(args: impl IntoIterator<Item = OsString>) -> ExitCode {
    let error = match prepare(args) {
        // `exec` resets the signal mask and the handling of SIGPIPE.
        Ok(command) => Command::new("/bin/sh").arg("-c").arg(command).exec(),
        Err(error) => error,
    };
    let _lost = writeln!(io::stderr(), "the command cannot be run: {error}");
    ExitCode::from(127)
}

fn prepare(args: impl IntoIterator<Item = OsString>) -> io::Result<OsString> {
    let mut args = args.into_iter();
    let (Some(parent), Some(command), None) = (args.next(), args.next(), args.next()) else {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "needs PARENT and COMMAND"));
    };
    let parent = parse_pid(&parent)
        .ok_or_else(|| io::Error::new(io::ErrorKind::InvalidInput, "PARENT is not a process id"))?;
    rustix::process::set_parent_process_death_signal(Some(Signal::KILL))?;
    // The signal is not sent for a parent that died before it was asked for.
    if rustix::process::getppid() != Some(parent) {
        return Err(io::Error::other("its envd is gone"));
    }
    rustix::process::setsid()?;
    Ok(command)
}

fn parse_pid(text: &OsStr) -> Option<Pid> {
    std::str::from_utf8(text.as_bytes()).ok()?.parse().ok().and_then(Pid::from_raw)
}
