//! The lock by which everybody knows whether an `envd` lives.

use std::{
    fs::{File, OpenOptions},
    io,
    os::unix::fs::MetadataExt,
    path::Path,
    time::{Duration, Instant},
};

use rustix::fs::FlockOperation;

/// How long a start waits for a driver that is just looking at the lock.
const PATIENCE: Duration = Duration::from_secs(2);

/// Why an `envd` may not come up.
#[derive(Debug, thiserror::Error)]
pub(crate) enum LockError {
    /// The driver has removed the lock file: this sandbox was given up.
    #[error("the lock file is gone: this sandbox was given up")]
    GivenUp,
    /// Another `envd` holds it.
    #[error("another envd holds the lock")]
    Held,
    /// It cannot be opened.
    #[error("the lock file cannot be opened")]
    Open(#[source] io::Error),
}

/// Opens the lock file without creating it, and locks it for as long as the file is open.
///
/// The lock counts only if the path still names the locked file afterwards: a driver that gives a
/// sandbox up removes the file, and this `envd` may have opened it just before.
pub(crate) fn take(path: &Path) -> Result<File, LockError> {
    take_within(path, PATIENCE)
}

fn take_within(path: &Path, patience: Duration) -> Result<File, LockError> {
    let opened = OpenOptions::new().read(true).write(true).open(path);
    let file = opened.map_err(|error| {
        if error.kind() == io::ErrorKind::NotFound {
            LockError::GivenUp
        } else {
            LockError::Open(error)
        }
    })?;
    let patient_until = Instant::now() + patience;
    while let Err(error) = rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive) {
        if error != rustix::io::Errno::WOULDBLOCK && error != rustix::io::Errno::INTR {
            return Err(LockError::Open(error.into()));
        }
        if Instant::now() >= patient_until {
            return Err(LockError::Held);
        }
        // A look at the lock by a driver takes microseconds. Nothing runs beside this wait.
        let pause = rustix::time::Timespec { tv_sec: 0, tv_nsec: 2_000_000 };
        let _interrupted = rustix::thread::nanosleep(&pause);
    }
    if !is_named(&file, path) {
        return Err(LockError::GivenUp);
    }
    Ok(file)
}

/// Whether `path` still names this very file.
fn is_named(file: &File, path: &Path) -> bool {
    match (std::fs::metadata(path), file.metadata()) {
        (Ok(named), Ok(held)) => (named.dev(), named.ino()) == (held.dev(), held.ino()),
        (Err(_), _) | (_, Err(_)) => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_an_existing_lock_file_that_nobody_holds_is_taken() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("lock");
        assert!(matches!(take(&path), Err(LockError::GivenUp)));
        File::create(&path).unwrap();
        let held = take(&path).unwrap();
        assert!(matches!(take_within(&path, Duration::ZERO), Err(LockError::Held)));
        drop(held);
        assert!(take(&path).is_ok());
    }

    #[test]
    fn a_file_that_was_removed_or_replaced_meanwhile_is_no_lock() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("lock");
        let file = File::create(&path).unwrap();
        assert!(is_named(&file, &path));
        std::fs::remove_file(&path).unwrap();
        assert!(!is_named(&file, &path));
        let _another = File::create(&path).unwrap();
        assert!(!is_named(&file, &path));
    }
}
