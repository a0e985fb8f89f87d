//! The environment server's own directory, which nobody reaches from outside.

use std::{
    ffi::OsString,
    os::fd::{AsRawFd as _, OwnedFd},
    path::PathBuf,
};

use rustix::fs::Stat;

use super::{FileError, RelativePath, path::RESERVED};

/// Refuses a path that names the directory or something in it.
pub(super) fn check(path: &RelativePath) -> Result<(), FileError> {
    if path.is_reserved() { Err(FileError::Reserved) } else { Ok(()) }
}

/// Refuses what was opened by a path that names something else, when links on it led into the
/// directory: the kernel says where it really is.
pub(super) fn check_opened(root: &OwnedFd, opened: &OwnedFd) -> Result<(), FileError> {
    if place(opened)?.starts_with(place(root)?.join(RESERVED)) {
        return Err(FileError::Reserved);
    }
    Ok(())
}

/// Whether this is the workspace itself, by whatever path it was reached.
pub(super) fn is_top(root: &OwnedFd, stat: &Stat) -> Result<bool, FileError> {
    let top = rustix::fs::fstat(root)?;
    Ok((top.st_dev, top.st_ino) == (stat.st_dev, stat.st_ino))
}

fn place(fd: &OwnedFd) -> Result<PathBuf, FileError> {
    use std::os::unix::ffi::OsStringExt as _;
    let link = format!("/proc/self/fd/{}", fd.as_raw_fd());
    let place = rustix::fs::readlinkat(rustix::fs::CWD, link, Vec::new())?;
    Ok(OsString::from_vec(place.into_bytes()).into())
}
