//! Opening what lies beneath a directory, and nothing else.
//!
//! `openat2` lets the kernel itself refuse any step that would leave the directory, also when a
//! directory is swapped for a link in the middle of it. Where a kernel or a container's filter does
//! not have it, each component is opened by itself without following links, which is stricter.

use std::{
    os::fd::{AsFd, OwnedFd},
    sync::atomic::{AtomicBool, Ordering},
};

use rustix::{
    fs::{Mode, OFlags, ResolveFlags},
    io::Errno,
};

use super::FileError;

/// What happens to links on the way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Links {
    /// Followed while they stay inside.
    FollowInside,
    /// Not followed.
    Refuse,
}

/// Set once this kernel was found to lack `openat2`.
static WITHOUT_OPENAT2: AtomicBool = AtomicBool::new(false);

/// How often an open is tried again that the kernel could not prove to stay inside because
/// something was renamed meanwhile.
const TRIES: usize = 64;

/// Opens a path beneath `root`. `flags` may not create.
pub(super) fn open(
    root: &OwnedFd,
    path: &str,
    flags: OFlags,
    links: Links,
) -> Result<OwnedFd, FileError> {
    let flags = flags | OFlags::CLOEXEC;
    if WITHOUT_OPENAT2.load(Ordering::Relaxed) {
        return walk(root, path, flags);
    }
    let mut resolve = ResolveFlags::BENEATH | ResolveFlags::NO_MAGICLINKS;
    if links == Links::Refuse {
        resolve |= ResolveFlags::NO_SYMLINKS;
    }
    for _ in 0..TRIES {
        match rustix::fs::openat2(root, path, flags, Mode::empty(), resolve) {
            Ok(fd) => return Ok(fd),
            Err(Errno::AGAIN | Errno::INTR) => {}
            // A container's filter answers `PERM` for calls that it does not know.
            Err(Errno::NOSYS | Errno::PERM) if !works(root) => {
                WITHOUT_OPENAT2.store(true, Ordering::Relaxed);
                return walk(root, path, flags);
            }
            Err(errno) => return Err(errno.into()),
        }
    }
    Err(FileError::NotFound)
}

fn works(root: &OwnedFd) -> bool {
    let flags = OFlags::PATH | OFlags::CLOEXEC;
    rustix::fs::openat2(root, ".", flags, Mode::empty(), ResolveFlags::BENEATH).is_ok()
}

/// Opens component by component, following no link.
fn walk(root: &OwnedFd, path: &str, flags: OFlags) -> Result<OwnedFd, FileError> {
    let on_the_way = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let (parents, name) = match path.rsplit_once('/') {
        Some((parents, name)) => (Some(parents), name),
        None => (None, path),
    };
    let mut at: Option<OwnedFd> = None;
    for parent in parents.into_iter().flat_map(|parents| parents.split('/')) {
        let from = at.as_ref().unwrap_or(root);
        at = Some(rustix::fs::openat(from, parent, on_the_way, Mode::empty())?);
    }
    let from = at.as_ref().unwrap_or(root);
    Ok(rustix::fs::openat(from, name, flags | OFlags::NOFOLLOW, Mode::empty())?)
}

/// Opens a directory beneath `root`, following no link. Empty means `root`.
pub(super) fn open_directory(root: &OwnedFd, path: &str) -> Result<OwnedFd, FileError> {
    if path.is_empty() {
        return Ok(root.try_clone()?);
    }
    open(root, path, OFlags::PATH | OFlags::DIRECTORY, Links::Refuse)
}

/// As [`open_directory`], making what is missing.
pub(super) fn make_directory(root: &OwnedFd, path: &str) -> Result<OwnedFd, FileError> {
    match open_directory(root, path) {
        Err(FileError::NotFound) => {}
        other => return other,
    }
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let mut at = root.try_clone()?;
    for segment in path.split('/') {
        // Each step starts at an open handle and follows no link, so it stays beneath.
        match rustix::fs::mkdirat(at.as_fd(), segment, Mode::from_raw_mode(0o755)) {
            Ok(()) | Err(Errno::EXIST) => {}
            Err(errno) => return Err(errno.into()),
        }
        at = rustix::fs::openat(at.as_fd(), segment, flags, Mode::empty())?;
    }
    Ok(at)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    /// Both ways of opening, so that the one that this kernel does not take is held as well.
    #[test]
    fn neither_way_of_opening_leaves_the_directory() {
        let outside = tempfile::tempdir().unwrap();
        std::fs::write(outside.path().join("secret"), "s").unwrap();
        let inside = tempfile::tempdir().unwrap();
        let at = |name: &str| inside.path().join(name);
        std::fs::create_dir_all(at("d/e")).unwrap();
        std::fs::write(at("d/e/f"), "f").unwrap();
        symlink(outside.path(), at("out")).unwrap();
        symlink(outside.path().join("secret"), at("leak")).unwrap();
        symlink("../../../../../../etc/passwd", at("d/up")).unwrap();
        symlink("/proc/self/root/etc/passwd", at("magic")).unwrap();
        symlink("loop", at("loop")).unwrap();
        symlink("d/e/f", at("link")).unwrap();
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let root = rustix::fs::open(inside.path(), flags, Mode::empty()).unwrap();
        let read = OFlags::RDONLY | OFlags::NONBLOCK;
        for path in ["out/secret", "leak", "d/up", "magic", "loop", "link/x", "nothing"] {
            for links in [Links::FollowInside, Links::Refuse] {
                assert!(open(&root, path, read, links).is_err(), "{path} {links:?}");
            }
            assert!(walk(&root, path, read).is_err(), "{path}");
        }
        assert!(open(&root, "d/e/f", read, Links::Refuse).is_ok());
        assert!(walk(&root, "d/e/f", read).is_ok());
        assert!(open(&root, "link", read, Links::FollowInside).is_ok());
        assert!(open(&root, "link", read, Links::Refuse).is_err());
        assert!(walk(&root, "link", read).is_err());
        assert!(make_directory(&root, "out/new").is_err());
        assert!(!outside.path().join("new").exists());
    }
}
