//! Files of a workspace, whether or not a sandbox runs.
//!
//! Whoever runs in a sandbox owns its workspace and can plant links there, also between a check and
//! its use. So nothing here goes by a path as text: every access starts at an open handle of the
//! workspace's directory and stays beneath it by the kernel's own rule (`beneath`). Reading
//! follows links that stay inside; writing follows none. A write goes to a file without a name and
//! gets its name when it is whole, so every reader sees the old file or the new one (`incoming`).
//!
//! One directory at the top is the environment server's own: nothing in it is read, written,
//! removed or listed, also not by a link that leads there (`reserved`).

mod beneath;
mod error;
mod incoming;
mod listing;
mod media;
mod path;
mod range;
mod reserved;

pub use error::FileError;
pub use incoming::Incoming;
pub use listing::{Entry, EntryKind, LISTING_MAX, Listing};
pub use media::media_type;
pub use path::{PATH_MAX, PathFault, RelativePath, SEGMENT_MAX, UPLOADS};
pub use range::{ByteRange, Ranges, requested};

use std::{
    fs::File,
    os::fd::OwnedFd,
    path::{Path, PathBuf},
    sync::Arc,
};

use rustix::fs::{AtFlags, FileType, Mode, OFlags};

/// The workspace of one environment, opened. A cheap handle.
#[derive(Debug, Clone)]
pub struct Files {
    root: Arc<OwnedFd>,
}

/// What a path leads to.
#[derive(Debug)]
pub enum Found {
    /// A file, opened for reading.
    File(OpenFile),
    /// A directory's entries.
    Directory(Listing),
}

/// A file that is open for reading.
#[derive(Debug)]
pub struct OpenFile {
    /// The file.
    pub file: File,
    /// Its size when it was opened.
    pub size: u64,
    /// When it last changed, in nanoseconds since the epoch.
    pub modified_ns: i128,
    /// Changes with its content: for `ETag`.
    pub version: String,
}

impl Files {
    /// Opens the workspace at `root`, which the platform itself made.
    ///
    /// # Errors
    /// When it is no directory or cannot be opened.
    pub async fn open(root: PathBuf) -> Result<Self, FileError> {
        blocking(move || Self::open_now(&root)).await
    }

    fn open_now(root: &Path) -> Result<Self, FileError> {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let root = rustix::fs::open(root, flags, Mode::empty())?;
        Ok(Self { root: Arc::new(root) })
    }

    /// Opens a file for reading, or lists a directory. Links are followed while they stay inside.
    ///
    /// # Errors
    /// [`FileError::NotFound`] for what is not there, leads outside, or is neither file nor
    /// directory; [`FileError::Reserved`] for what is the environment server's.
    pub async fn read(&self, path: RelativePath) -> Result<Found, FileError> {
        let root = Arc::clone(&self.root);
        reserved::check(&path)?;
        blocking(move || read(&root, &path)).await
    }

    /// Begins a write to `path`, making the directories on the way there.
    ///
    /// # Errors
    /// [`FileError::IsDirectory`] when a directory stands there, [`FileError::NotDirectory`] when
    /// something else than a directory, or a link, stands in the way, [`FileError::Reserved`] when
    /// it would be the environment server's.
    pub async fn write(&self, path: RelativePath) -> Result<Incoming, FileError> {
        let root = Arc::clone(&self.root);
        reserved::check(&path)?;
        blocking(move || Incoming::begin(&root, &path)).await
    }

    /// Removes a file, a link (not what it leads to) or an empty directory.
    ///
    /// # Errors
    /// [`FileError::NotFound`], [`FileError::NotEmpty`] or [`FileError::Reserved`].
    pub async fn remove(&self, path: RelativePath) -> Result<(), FileError> {
        let root = Arc::clone(&self.root);
        reserved::check(&path)?;
        blocking(move || remove(&root, &path)).await
    }
}

fn read(root: &OwnedFd, path: &RelativePath) -> Result<Found, FileError> {
    // Without `NONBLOCK` a planted pipe would hold this thread for ever.
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY;
    let fd = match path.is_root() {
        true => rustix::fs::openat(root, ".", flags | OFlags::CLOEXEC, Mode::empty())?,
        false => beneath::open(root, path.as_str(), flags, beneath::Links::FollowInside)?,
    };
    // A link may have led anywhere inside.
    reserved::check_opened(root, &fd)?;
    let stat = rustix::fs::fstat(&fd)?;
    match FileType::from_raw_mode(stat.st_mode) {
        FileType::RegularFile => {
            let nanos =
                |seconds: i64, part: i64| i128::from(seconds) * 1_000_000_000 + i128::from(part);
            let modified_ns = nanos(stat.st_mtime, stat.st_mtime_nsec.cast_signed());
            let changed_ns = nanos(stat.st_ctime, stat.st_ctime_nsec.cast_signed());
            let size = u64::try_from(stat.st_size).unwrap_or_default();
            let version = format!("{:x}-{size:x}-{modified_ns:x}-{changed_ns:x}", stat.st_ino);
            Ok(Found::File(OpenFile { file: File::from(fd), size, modified_ns, version }))
        }
        FileType::Directory => {
            listing::list(&fd, reserved::is_top(root, &stat)?).map(Found::Directory)
        }
        FileType::Symlink
        | FileType::Fifo
        | FileType::Socket
        | FileType::CharacterDevice
        | FileType::BlockDevice
        | FileType::Unknown => Err(FileError::NotFound),
    }
}

fn remove(root: &OwnedFd, path: &RelativePath) -> Result<(), FileError> {
    let Some((parent, name)) = path.split_last() else { return Err(FileError::IsDirectory) };
    let parent = beneath::open_directory(root, parent)?;
    match rustix::fs::unlinkat(&parent, name, AtFlags::empty()) {
        Err(rustix::io::Errno::ISDIR | rustix::io::Errno::PERM) => {
            rustix::fs::unlinkat(&parent, name, AtFlags::REMOVEDIR)?;
            Ok(())
        }
        other => Ok(other?),
    }
}

/// Runs file work where it may block.
pub(crate) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, FileError> + Send + 'static,
) -> Result<T, FileError> {
    match tokio::task::spawn_blocking(work).await {
        Ok(done) => done,
        Err(error) => Err(FileError::Failed(std::io::Error::other(error))),
    }
}

#[cfg(test)]
mod tests;
