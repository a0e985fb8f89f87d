//! Waiting for children, adopted ones as well.
//!
//! One place waits for all of them, so that no exit status is taken from under somebody else.

use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, WaitOptions, WaitStatus};

/// A child that has ended.
#[derive(Debug)]
pub(crate) struct Ended {
    pub(crate) pid: Pid,
    pub(crate) status: WaitStatus,
}

/// What a round of reaping found.
#[derive(Debug)]
pub(crate) struct Reaped {
    /// Children that have ended since the last round.
    pub(crate) ended: Vec<Ended>,
    /// Whether any child is left. Without children there are no descendants.
    pub(crate) any_left: bool,
}

/// Takes the status of every child that has ended.
///
/// Of a child among `leaders` the rest of its process group is killed, before its id is free for
/// another process to have: what it started and left running would else hold its port.
pub(crate) fn reap(leaders: &[Pid]) -> Reaped {
    let peek = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
    for leader in leaders {
        if let Ok(Some(_)) = rustix::process::waitid(WaitId::Pid(*leader), peek) {
            let _gone = rustix::process::kill_process_group(*leader, Signal::KILL);
        }
    }
    let mut ended = Vec::new();
    loop {
        match rustix::process::wait(WaitOptions::NOHANG) {
            Ok(Some((pid, status))) => {
                if leaders.contains(&pid) {
                    let _gone = rustix::process::kill_process_group(pid, Signal::KILL);
                }
                ended.push(Ended { pid, status });
            }
            Ok(None) => return Reaped { ended, any_left: true },
            Err(rustix::io::Errno::INTR) => {}
            Err(_) => return Reaped { ended, any_left: false },
        }
    }
}

/// How a process ended, for people.
pub(crate) fn describe(status: WaitStatus) -> String {
    match (status.exit_status(), status.terminating_signal()) {
        (Some(127), _) => "its command could not be found or run (status 127)".to_owned(),
        (Some(126), _) => "its command could not be run (status 126)".to_owned(),
        (Some(code), _) => format!("it ended with status {code}"),
        (None, Some(9)) => "it was killed (signal 9), perhaps for want of memory".to_owned(),
        (None, Some(signal)) => format!("it was ended by signal {signal}"),
        (None, None) => "it ended".to_owned(),
    }
}
