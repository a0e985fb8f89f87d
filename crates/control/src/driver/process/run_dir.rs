//! Run directories: one per sandbox, with its control socket, its lock and its logs.

use std::{
    fs::{self, DirBuilder, File, OpenOptions},
    io,
    os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt},
    path::{Path, PathBuf},
};

use rustix::fs::FlockOperation;
use sha2::{Digest, Sha256};
use wakeful_wire::{SandboxUid, sandbox::run_dir};

/// A socket address holds 108 bytes with its terminating zero (unix(7)).
const SOCKET_MAX: usize = 107;
/// A run directory's own name: 16 hexadecimal digits.
const NAME_LEN: usize = 16;

/// The directory for run directories: `run` below the data directory, or, where a socket's path
/// would grow too long there, one with a short name below `runtime_dir` (`$XDG_RUNTIME_DIR`) or
/// else below `/tmp`, different for each user and data directory.
#[must_use]
pub fn run_root(data: &Path, runtime_dir: Option<&Path>, user: u32) -> PathBuf {
    let short = format!("wakeful-{user}-{}", digest(data.as_os_str().as_encoded_bytes()));
    let candidates = [Some(data.join("run")), runtime_dir.map(|dir| dir.join(&short))];
    candidates
        .into_iter()
        .flatten()
        .find(|root| fits(root))
        .unwrap_or_else(|| Path::new("/tmp").join(short))
}

fn fits(root: &Path) -> bool {
    root.as_os_str().len() + 1 + NAME_LEN + 1 + run_dir::SOCKET.len() <= SOCKET_MAX
}

fn digest(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().take(NAME_LEN / 2).map(|byte| format!("{byte:02x}")).collect()
}

/// The directory that holds the run directories.
#[derive(Debug, Clone)]
pub(super) struct RunRoot(PathBuf);

impl RunRoot {
    /// Makes it where it does not exist, and makes sure that it is this user's alone.
    pub(super) fn open(path: &Path) -> io::Result<Self> {
        make_private(path)?;
        let path = path.canonicalize()?;
        let metadata = fs::symlink_metadata(&path)?;
        if !metadata.is_dir() || metadata.uid() != rustix::process::geteuid().as_raw() {
            let why = format!("{} is not a directory of this user", path.display());
            return Err(io::Error::new(io::ErrorKind::PermissionDenied, why));
        }
        if metadata.permissions().mode() & 0o077 != 0 {
            fs::set_permissions(&path, PermissionsExt::from_mode(0o700))?;
        }
        if !fits(&path) {
            let why = format!("{} is too long for the path of a socket", path.display());
            return Err(io::Error::new(io::ErrorKind::InvalidInput, why));
        }
        Ok(Self(path))
    }

    /// A sandbox's run directory, whether or not it exists.
    pub(super) fn dir(&self, uid: SandboxUid) -> RunDir {
        RunDir(self.0.join(digest(uid.to_string().as_bytes())))
    }
}

pub(super) fn make_private(path: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(path)
}

/// Whether an `envd` lives, by its lock.
#[derive(Debug)]
pub(super) enum LockState {
    /// None does, and none can come up: there is no lock file to take.
    Missing,
    /// None does. While the file is held here, none can come up.
    Free(File),
    /// One does.
    Held,
}

/// One sandbox's run directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct RunDir(PathBuf);

impl RunDir {
    pub(super) fn path(&self) -> &Path {
        &self.0
    }

    pub(super) fn socket(&self) -> PathBuf {
        self.0.join(run_dir::SOCKET)
    }

    pub(super) fn logs(&self) -> PathBuf {
        self.0.join(run_dir::LOGS)
    }

    fn lock_file(&self) -> PathBuf {
        self.0.join(run_dir::LOCK)
    }

    /// Whether it exists. An error is a doubt, not an answer.
    pub(super) fn exists(&self) -> io::Result<bool> {
        self.0.try_exists()
    }

    /// Makes it with a fresh lock file, so that an `envd` may come up.
    pub(super) fn make(&self) -> io::Result<()> {
        DirBuilder::new().mode(0o700).create(&self.0)?;
        DirBuilder::new().mode(0o700).create(self.logs())?;
        let lock = self.lock_file();
        OpenOptions::new().write(true).create_new(true).mode(0o600).open(lock)?;
        Ok(())
    }

    /// Tries the lock.
    pub(super) fn lock(&self) -> io::Result<LockState> {
        let options = OpenOptions::new().read(true).write(true).open(self.lock_file());
        let file = match options {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(LockState::Missing),
            other => other?,
        };
        match rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => Ok(LockState::Free(file)),
            Err(rustix::io::Errno::WOULDBLOCK) => Ok(LockState::Held),
            Err(error) => Err(error.into()),
        }
    }

    /// Gives the sandbox up for good: from here on no late `envd` of it can come up. `held` shows
    /// that none is up.
    pub(super) fn give_up(&self, held: File) -> io::Result<()> {
        let removed = ignore_missing(fs::remove_file(self.lock_file()));
        // Only after the removal may a late `envd` get the lock, and find its file gone.
        drop(held);
        removed
    }

    /// Removes everything in it and then itself. A sandbox may have made directories below its
    /// scratch space that even their owner cannot enter; nothing of it runs any more.
    pub(super) fn remove(&self) -> io::Result<()> {
        match ignore_missing(fs::remove_dir_all(&self.0)) {
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
                open_up(&self.0);
                ignore_missing(fs::remove_dir_all(&self.0))
            }
            other => other,
        }
    }
}

pub(super) fn ignore_missing(result: io::Result<()>) -> io::Result<()> {
    match result {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        other => other,
    }
}

/// Lets the owner into every directory below `root`. Links are not followed.
fn open_up(root: &Path) {
    let mut open = vec![root.to_owned()];
    while let Some(dir) = open.pop() {
        let _stays_closed = fs::set_permissions(&dir, PermissionsExt::from_mode(0o700));
        let Ok(entries) = fs::read_dir(&dir) else { continue };
        open.extend(entries.flatten().filter_map(|entry| {
            entry.file_type().is_ok_and(|kind| kind.is_dir()).then(|| entry.path())
        }));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn uid() -> SandboxUid {
        "0199f0a0-7b5c-7c3e-9d2f-6a1b2c3d4e5f".parse().unwrap()
    }

    #[test]
    fn a_socket_path_always_fits() {
        let long = "/home/somebody/with/a/long/path/".repeat(4);
        let table = [
            ("/srv/wakeful", None, "/srv/wakeful/run"),
            ("/srv/wakeful", Some("/run/user/7"), "/srv/wakeful/run"),
            (long.as_str(), Some("/run/user/7"), "/run/user/7/wakeful-7-"),
            (long.as_str(), Some(long.as_str()), "/tmp/wakeful-7-"),
            (long.as_str(), None, "/tmp/wakeful-7-"),
        ];
        for (data, runtime, root) in table {
            let chosen = run_root(Path::new(data), runtime.map(Path::new), 7);
            assert!(chosen.to_str().unwrap().starts_with(root), "{chosen:?}");
            let socket = RunRoot(chosen).dir(uid()).socket();
            assert!(socket.as_os_str().len() <= SOCKET_MAX, "{socket:?}");
        }
        let other = format!("{long}x");
        assert_ne!(
            run_root(Path::new(&long), None, 7),
            run_root(Path::new(&other), None, 7),
            "two installations do not share one"
        );
    }

    #[test]
    fn a_directory_of_others_is_closed_before_it_is_used() {
        let dir = tempfile::tempdir().unwrap();
        fs::set_permissions(dir.path(), PermissionsExt::from_mode(0o755)).unwrap();
        RunRoot::open(dir.path()).unwrap();
        assert_eq!(fs::metadata(dir.path()).unwrap().permissions().mode() & 0o777, 0o700);
        let file = dir.path().join("file");
        fs::write(&file, "").unwrap();
        assert!(RunRoot::open(&file).is_err());
    }

    #[test]
    fn a_lock_says_whether_an_envd_lives_or_can_come_up() {
        let root = tempfile::tempdir().unwrap();
        let dir = RunRoot::open(root.path()).unwrap().dir(uid());
        assert!(matches!(dir.lock().unwrap(), LockState::Missing));
        dir.make().unwrap();
        assert!(dir.make().is_err(), "one sandbox has one");
        let LockState::Free(held) = dir.lock().unwrap() else { panic!("nobody has it") };
        assert!(matches!(dir.lock().unwrap(), LockState::Held));
        dir.give_up(held).unwrap();
        assert!(matches!(dir.lock().unwrap(), LockState::Missing));
        dir.remove().unwrap();
        dir.remove().unwrap();
        assert!(!dir.exists().unwrap());
    }

    #[test]
    fn directories_that_were_closed_are_removed_too() {
        let root = tempfile::tempdir().unwrap();
        let dir = RunRoot::open(root.path()).unwrap().dir(uid());
        dir.make().unwrap();
        let inner = dir.path().join("tmp/closed/inner");
        fs::create_dir_all(&inner).unwrap();
        fs::set_permissions(inner.parent().unwrap(), PermissionsExt::from_mode(0o000)).unwrap();
        dir.remove().unwrap();
        assert!(!dir.exists().unwrap());
    }
}
