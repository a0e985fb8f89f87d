//! A control group per sandbox, where the machine lets this user make one.
//!
//! It finds and kills what no mark and no ancestry leads to. It limits nothing on this rung. Only
//! the unified hierarchy (cgroups(7), version 2) is used, with or without controllers.

use std::{
    fs, io,
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

/// The file in a run directory that names the sandbox's group.
const RECORD: &str = "cgroup";
/// The pause between two looks at whether a group is empty.
const LOOK: Duration = Duration::from_millis(5);

/// One sandbox's control group.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Cgroup(PathBuf);

/// The group that this process is in, if this user may make groups below it.
pub(super) fn parent() -> Option<PathBuf> {
    let mounts = fs::read_to_string("/proc/self/mountinfo").ok()?;
    let own = fs::read_to_string("/proc/self/cgroup").ok()?;
    let parent = locate(&mounts, &own)?;
    let writable = rustix::fs::Access::WRITE_OK | rustix::fs::Access::EXEC_OK;
    rustix::fs::access(&parent, writable).ok()?;
    Some(parent)
}

/// The directory of the own group: where the unified hierarchy is mounted (proc_pid_mountinfo(5))
/// and which path `/proc/self/cgroup` names under `0::`.
fn locate(mounts: &str, own: &str) -> Option<PathBuf> {
    let path = own.lines().find_map(|line| line.strip_prefix("0::"))?;
    mounts.lines().find_map(|line| {
        let (fields, kind) = line.split_once(" - ")?;
        if !kind.starts_with("cgroup2 ") {
            return None;
        }
        let mut fields = fields.split(' ').skip(3);
        let (root, mount) = (fields.next()?, fields.next()?);
        let below = if root == "/" { path } else { path.strip_prefix(root)? };
        let below = below.trim_start_matches('/');
        // Outside of what this mount shows.
        if below.split('/').any(|part| part == "..") {
            return None;
        }
        Some(Path::new(mount).join(below))
    })
}

/// Removes the empty groups of sandboxes whose run directory somebody has deleted. One that is just
/// being made by another installation can be among them; that sandbox then has none.
pub(super) fn sweep() {
    let Some(entries) = parent().and_then(|parent| fs::read_dir(parent).ok()) else { return };
    for entry in entries.flatten() {
        let name = entry.file_name();
        let digits = name.to_str().and_then(|name| name.strip_prefix("wakeful-"));
        if digits
            .is_some_and(|rest| rest.len() == 16 && rest.bytes().all(|b| b.is_ascii_hexdigit()))
        {
            let _populated = fs::remove_dir(entry.path());
        }
    }
}

impl Cgroup {
    /// Makes a group for the sandbox of this run directory and records it there, before anything is
    /// put into it.
    pub(super) fn make(run_dir: &Path) -> Option<Self> {
        let name = format!("wakeful-{}", run_dir.file_name()?.to_str()?);
        let path = parent()?.join(name);
        fs::write(run_dir.join(RECORD), path.as_os_str().as_encoded_bytes()).ok()?;
        match fs::create_dir(&path) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => None,
            Ok(()) | Err(_) => Some(Self(path)),
        }
    }

    /// The group that is recorded in a run directory. The record lies where no sandbox can write;
    /// all the same, only a name that [`Self::make`] gives is taken.
    pub(super) fn recorded(run_dir: &Path) -> Option<Self> {
        let path = PathBuf::from(fs::read_to_string(run_dir.join(RECORD)).ok()?);
        let name = format!("wakeful-{}", run_dir.file_name()?.to_str()?);
        (path.is_absolute() && path.file_name()? == name.as_str()).then_some(Self(path))
    }

    /// Puts a process into it; what it starts from then on is in it too.
    pub(super) fn add(&self, pid: u32) -> io::Result<()> {
        fs::write(self.0.join("cgroup.procs"), pid.to_string())
    }

    /// Kills everything in it and removes it. Blocks until it is empty.
    ///
    /// # Errors
    /// When something is left in it after `time`.
    pub(super) fn kill(&self, time: Duration) -> io::Result<()> {
        let until = Instant::now() + time;
        loop {
            match fs::remove_dir(&self.0) {
                Ok(()) => return Ok(()),
                Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
                Err(error) if Instant::now() >= until => return Err(error),
                Err(_) => {}
            }
            // Since Linux 5.14; before, the mark and the ancestry must do.
            let _not_there = fs::write(self.0.join("cgroup.kill"), "1");
            let pause =
                rustix::time::Timespec { tv_sec: 0, tv_nsec: i64::from(LOOK.subsec_nanos()) };
            let _interrupted = rustix::thread::nanosleep(&pause);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::process::{Command, Stdio};

    use super::*;

    #[test]
    fn the_own_group_is_found_in_either_layout() {
        let unified = "24 1 0:22 / /proc rw - proc proc rw\n\
                       30 24 0:26 / /sys/fs/cgroup rw,nosuid - cgroup2 cgroup2 rw\n";
        let hybrid = "30 24 0:26 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n\
                      31 24 0:27 / /sys/fs/cgroup/unified rw - cgroup2 cgroup rw\n";
        let part = "30 24 0:26 /docker/ab /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n";
        let table = [
            (unified, "0::/user.slice/u.scope\n", Some("/sys/fs/cgroup/user.slice/u.scope")),
            (hybrid, "4:memory:/x\n0::/\n", Some("/sys/fs/cgroup/unified/")),
            (part, "0::/docker/ab/c\n", Some("/sys/fs/cgroup/c")),
            (part, "0::/../x\n", None),
            (unified, "0::/../x\n", None),
            (unified, "4:memory:/x\n", None),
            ("", "0::/\n", None),
        ];
        for (mounts, own, path) in table {
            assert_eq!(locate(mounts, own), path.map(PathBuf::from), "{own}");
        }
    }

    #[test]
    fn a_group_is_emptied_and_removed() {
        let root = tempfile::Builder::new().prefix("cgroup-test-").tempdir().unwrap();
        let Some(group) = Cgroup::make(root.path()) else { return };
        assert_eq!(Cgroup::recorded(root.path()), Some(group.clone()));
        let mut child = Command::new("sh")
            .args(["-c", "read go; env -i setsid sleep 1000 & env -i sleep 1000"])
            .stdin(Stdio::piped())
            .spawn()
            .unwrap();
        if group.add(child.id()).is_err() {
            child.kill().unwrap();
        }
        drop(child.stdin.take());
        group.kill(Duration::from_secs(30)).unwrap();
        assert!(!child.wait().unwrap().success());
        group.kill(Duration::ZERO).unwrap();
    }

    #[test]
    fn a_record_that_names_another_group_is_not_believed() {
        let root = tempfile::tempdir().unwrap();
        assert_eq!(Cgroup::recorded(root.path()), None);
        fs::write(root.path().join(RECORD), "/sys/fs/cgroup/system.slice").unwrap();
        assert_eq!(Cgroup::recorded(root.path()), None);
    }
}
