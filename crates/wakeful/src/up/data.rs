//! The data directory: private, and one process's at a time.

use std::{
    fs::{DirBuilder, File, OpenOptions},
    os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _},
    path::{Path, PathBuf},
};

use anyhow::Context as _;
use rustix::fs::{FlockOperation, flock};

/// A data directory that this process has to itself until it is dropped.
#[derive(Debug)]
pub(super) struct DataDir {
    path: PathBuf,
    _lock: File,
}

impl DataDir {
    /// Makes the directory if there is none, and takes it.
    ///
    /// # Errors
    /// When it cannot be made, or another process has it.
    pub(super) fn take(path: &Path) -> anyhow::Result<Self> {
        DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(path)
            .with_context(|| format!("cannot make the data directory {}", path.display()))?;
        let lock = OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(false)
            .mode(0o600)
            .open(path.join("lock"))
            .with_context(|| format!("cannot use the data directory {}", path.display()))?;
        flock(&lock, FlockOperation::NonBlockingLockExclusive).map_err(|_| {
            anyhow::anyhow!(
                "another `wakeful up` uses the data directory {}; stop it, or choose another \
                 with --data",
                path.display()
            )
        })?;
        Ok(Self { path: path.to_owned(), _lock: lock })
    }

    /// The database file.
    #[must_use]
    pub(super) fn database(&self) -> PathBuf {
        self.path.join("wakeful.db")
    }

    /// Where workspaces stand.
    #[must_use]
    pub(super) fn workspaces(&self) -> PathBuf {
        self.path.join("workspaces")
    }

    /// The directory itself.
    #[must_use]
    pub(super) fn path(&self) -> &Path {
        &self.path
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_data_directory_is_private_and_one_processes_at_a_time() {
        use std::os::unix::fs::PermissionsExt as _;
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a/b");
        let taken = DataDir::take(&path).unwrap();
        assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o700);
        let error = DataDir::take(&path).unwrap_err().to_string();
        assert!(error.contains("another"), "{error}");
        drop(taken);
        DataDir::take(&path).unwrap();
    }
}
