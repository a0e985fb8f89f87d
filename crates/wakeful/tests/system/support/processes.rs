//! Processes of this machine that belong to a platform's data directory.

use std::{
    fs,
    path::{Path, PathBuf},
};

use rustix::process::{Pid, Signal, kill_process};
use wakeful_wire::sandbox::{MARKER, RUN_MARKER, subcommand};

/// A process that lives.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Process {
    pub(crate) pid: u32,
    /// The uid of the sandbox that it is marked with.
    pub(crate) sandbox: Option<String>,
    pub(crate) command: String,
}

impl Process {
    /// Whether it is a sandbox's daemon.
    pub(crate) fn is_envd(&self) -> bool {
        self.command.split(' ').nth(1) == Some(subcommand::ENVD)
    }
}

/// Every process that is marked with a run directory of this data directory, or works in it.
pub(crate) fn of_data_dir(data: &Path) -> Vec<Process> {
    let entries = fs::read_dir("/proc").unwrap();
    let pids = entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok());
    pids.filter_map(|pid| look(pid, data)).collect()
}

fn look(pid: u32, data: &Path) -> Option<Process> {
    let proc = PathBuf::from(format!("/proc/{pid}"));
    if !lives(pid) {
        return None;
    }
    let environ = fs::read(proc.join("environ")).unwrap_or_default();
    let variable = |name: &str| {
        let name = format!("{name}=");
        let mut pairs = environ.split(|byte| *byte == 0);
        let value = pairs.find_map(|pair| pair.strip_prefix(name.as_bytes()))?;
        Some(String::from_utf8_lossy(value).into_owned())
    };
    let marked = variable(RUN_MARKER).is_some_and(|run| Path::new(&run).starts_with(data));
    let inside = fs::read_link(proc.join("cwd")).is_ok_and(|cwd| cwd.starts_with(data));
    if !marked && !inside {
        return None;
    }
    let command = fs::read(proc.join("cmdline")).unwrap_or_default();
    let command = String::from_utf8_lossy(&command).replace('\0', " ").trim().to_owned();
    if command.is_empty() {
        // It has given its memory back, and with it everything that marks it: it runs no more, and
        // is only not yet taken apart.
        return None;
    }
    Some(Process { pid, sandbox: variable(MARKER), command })
}

/// Whether a process lives; one that has ended and only waits to be waited for does not.
pub(crate) fn lives(pid: u32) -> bool {
    let Ok(stat) = fs::read_to_string(format!("/proc/{pid}/stat")) else { return false };
    let state = stat.rsplit_once(')').map(|(_, fields)| fields.trim_start());
    state.is_some_and(|state| !state.starts_with(['Z', 'X']))
}

/// Kills a process at once, if it still lives.
pub(crate) fn kill(pid: u32) {
    send(pid, Signal::KILL);
}

/// Sends a signal to a process, if it still lives.
pub(crate) fn send(pid: u32, signal: Signal) {
    if let Some(pid) = i32::try_from(pid).ok().and_then(Pid::from_raw) {
        let _ended = kill_process(pid, signal);
    }
}
