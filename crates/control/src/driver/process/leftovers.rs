//! Processes of a sandbox whose `envd` is gone, or does not listen.
//!
//! Every process of a sandbox carries two variables: the sandbox's uid and its run directory. A
//! process can drop them from its environment; so its ancestry counts as well, and, where there is
//! one, its control group.

use std::{
    collections::{HashMap, HashSet},
    fs, io,
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use rustix::process::{Pid, PidfdFlags, Signal};
use wakeful_wire::{
    SandboxUid,
    sandbox::{MARKER, RUN_MARKER},
};

/// The pause between two looks at what is left.
const LOOK: Duration = Duration::from_millis(5);

/// How a sandbox's processes are known.
#[derive(Debug, Clone)]
pub(super) struct Mark {
    uid: SandboxUid,
    run_dir: PathBuf,
}

/// One process, told from a later one with the same id by its start time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct Process {
    pid: i32,
    parent: i32,
    started: u64,
}

impl Mark {
    pub(super) fn new(uid: SandboxUid, run_dir: &Path) -> Self {
        Self { uid, run_dir: run_dir.to_owned() }
    }

    /// Kills everything that carries the mark or descends from something that does, an `envd` that
    /// lives among them. Blocks until nothing is left.
    ///
    /// Everything is stopped first, until a look finds nothing new: what is stopped starts nothing,
    /// so nothing gets away to another parent while its own is being killed.
    ///
    /// # Errors
    /// When something is left after `time`.
    pub(super) fn kill_all(&self, time: Duration) -> io::Result<()> {
        let until = Instant::now() + time;
        let mut stopped = HashSet::new();
        loop {
            let left = self.find()?;
            if left.is_empty() {
                return Ok(());
            }
            if Instant::now() >= until {
                return Err(io::Error::new(
                    io::ErrorKind::TimedOut,
                    format!("{} of its processes cannot be killed", left.len()),
                ));
            }
            let news: Vec<_> = left.iter().filter(|process| stopped.insert(**process)).collect();
            let (whom, what) = if news.is_empty() {
                (left.iter().collect(), Signal::KILL)
            } else {
                (news, Signal::STOP)
            };
            for process in whom {
                let _gone = signal(*process, what);
            }
            let pause =
                rustix::time::Timespec { tv_sec: 0, tv_nsec: i64::from(LOOK.subsec_nanos()) };
            let _interrupted = rustix::thread::nanosleep(&pause);
        }
    }

    /// What lives of it now.
    fn find(&self) -> io::Result<Vec<Process>> {
        let all = processes()?;
        let marks = [
            format!("{MARKER}={}", self.uid).into_bytes(),
            [format!("{RUN_MARKER}=").as_bytes(), self.run_dir.as_os_str().as_encoded_bytes()]
                .concat(),
        ];
        let marked = all.iter().filter(|process| {
            // Another user's process cannot be looked into, and is not ours.
            let environ = fs::read(format!("/proc/{}/environ", process.pid)).unwrap_or_default();
            let pairs: HashSet<&[u8]> = environ.split(|byte| *byte == 0).collect();
            marks.iter().all(|mark| pairs.contains(mark.as_slice()))
        });
        Ok(closure(&all, marked.copied().collect()))
    }
}

/// `seeds` and all their descendants.
fn closure(all: &[Process], seeds: Vec<Process>) -> Vec<Process> {
    let mut children: HashMap<i32, Vec<Process>> = HashMap::new();
    for process in all {
        children.entry(process.parent).or_default().push(*process);
    }
    let mut found: HashSet<Process> = HashSet::new();
    let mut open = seeds;
    while let Some(process) = open.pop() {
        if found.insert(process) {
            open.extend(children.get(&process.pid).into_iter().flatten());
        }
    }
    found.into_iter().collect()
}

/// Signals exactly this process: never one that has its id meanwhile.
fn signal(process: Process, signal: Signal) -> io::Result<()> {
    let pid = Pid::from_raw(process.pid).ok_or(io::ErrorKind::NotFound)?;
    let fd = rustix::process::pidfd_open(pid, PidfdFlags::empty())?;
    match stat(process.pid) {
        Some(now) if now.started == process.started => {
            Ok(rustix::process::pidfd_send_signal(fd, signal)?)
        }
        Some(_) | None => Err(io::ErrorKind::NotFound.into()),
    }
}

/// Every process that lives.
fn processes() -> io::Result<Vec<Process>> {
    Ok(fs::read_dir("/proc")?
        .filter_map(|entry| stat(entry.ok()?.file_name().to_str()?.parse().ok()?))
        .collect())
}

fn stat(pid: i32) -> Option<Process> {
    parse_stat(pid, &fs::read_to_string(format!("/proc/{pid}/stat")).ok()?)
}

/// State, parent and start time of `/proc/PID/stat` (proc_pid_stat(5)); the command before them may
/// hold blanks and parentheses. `None` for one that has ended and only waits to be waited for.
fn parse_stat(pid: i32, text: &str) -> Option<Process> {
    let mut fields = text.get(text.rfind(')')? + 1..)?.split_ascii_whitespace();
    if matches!(fields.next()?, "Z" | "X") {
        return None;
    }
    let parent = fields.next()?.parse().ok()?;
    let started = fields.nth(17)?.parse().ok()?;
    Some(Process { pid, parent, started })
}

#[cfg(test)]
mod tests {
    use std::process::{Child, Command, Stdio};

    use super::*;

    #[test]
    fn the_dead_do_not_count() {
        let text = |state: &str| {
            format!("12 (a) b (c) {state} 7 1 1 0 -1 4 1 0 0 0 5 6 0 0 20 0 1 0 4242 9 9")
        };
        let process = Process { pid: 12, parent: 7, started: 4242 };
        assert_eq!(parse_stat(12, &text("S")), Some(process));
        assert_eq!(parse_stat(12, &text("T")), Some(process));
        assert_eq!(parse_stat(12, &text("Z")), None);
        assert_eq!(parse_stat(12, ""), None);
    }

    #[test]
    fn descendants_count_and_neighbours_do_not() {
        let process = |pid, parent| Process { pid, parent, started: 1 };
        let all = [process(1, 0), process(5, 1), process(6, 5), process(7, 6), process(8, 1)];
        let mut pids: Vec<_> =
            closure(&all, vec![all[1]]).into_iter().map(|process| process.pid).collect();
        pids.sort_unstable();
        assert_eq!(pids, [5, 6, 7]);
        assert!(closure(&all, Vec::new()).is_empty());
    }

    fn marked(mark: &Mark, script: &str) -> Child {
        Command::new("sh")
            .args(["-c", script])
            .env(MARKER, mark.uid.to_string())
            .env(RUN_MARKER, &mark.run_dir)
            .stdin(Stdio::null())
            .spawn()
            .unwrap()
    }

    #[test]
    fn marked_processes_and_what_descends_of_them_are_killed_and_no_others() {
        let dir = tempfile::tempdir().unwrap();
        let uid: SandboxUid = "0199f0a0-7b5c-7c3e-9d2f-6a1b2c3d4e5f".parse().unwrap();
        let ours = Mark::new(uid, dir.path());
        let others = Mark::new(uid, &dir.path().join("other"));
        let unmarked = dir.path().join("unmarked");
        let script = format!(
            "env -i sh -c 'echo $$ > {0}.new; mv {0}.new {0}; sleep 1000' & trap '' TERM; wait; wait",
            unmarked.display()
        );
        let mut parent = marked(&ours, &script);
        let mut neighbour = marked(&others, "exec sleep 1000");
        let until = Instant::now() + Duration::from_secs(30);
        while !unmarked.exists() && Instant::now() < until {
            std::thread::yield_now();
        }
        let child: i32 = fs::read_to_string(&unmarked).unwrap().trim().parse().unwrap();
        assert!(stat(child).is_some());
        ours.kill_all(Duration::from_secs(30)).unwrap();
        assert!(!parent.wait().unwrap().success());
        assert_eq!(stat(child), None);
        assert!(neighbour.try_wait().unwrap().is_none(), "another installation's sandbox");
        others.kill_all(Duration::from_secs(30)).unwrap();
        neighbour.wait().unwrap();
    }
}
