//! Files that an agent reads and writes through the host, beneath the workspace.
//!
//! An agent could reach these files by itself. What is served here is still confined: an agent on
//! the other side of a sandbox of its own must not use the host to leave it, and a link that its
//! tools have planted must not lead anywhere.

use std::{
    fs::File,
    io::{self, Read, Write},
    os::fd::OwnedFd,
    path::{Component, Path, PathBuf},
};

use rustix::fs::{AtFlags, FileType, Mode, OFlags, ResolveFlags};

/// The largest file that is read or written, in bytes.
const FILE_MAX: u64 = 8 * 1024 * 1024;
/// Never out of the workspace, whatever is planted in it.
const BENEATH: ResolveFlags = ResolveFlags::BENEATH.union(ResolveFlags::NO_MAGICLINKS);

/// The workspace, and the directory in it that relative paths begin at.
#[derive(Debug, Clone)]
pub(super) struct Files {
    workspace: PathBuf,
    /// Relative to the workspace.
    dir: PathBuf,
}

impl Files {
    pub(super) const fn new(workspace: PathBuf, dir: PathBuf) -> Self {
        Self { workspace, dir }
    }

    /// The lines of a text file from `line` (from 1), at most `limit` of them.
    ///
    /// # Errors
    /// When it is no file beneath the workspace, too large, or no text.
    pub(super) fn read(
        &self,
        path: &Path,
        line: Option<u32>,
        limit: Option<u32>,
    ) -> io::Result<String> {
        let (root, path) = self.locate(path)?;
        let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK | OFlags::NOCTTY;
        let file = File::from(rustix::fs::openat2(&root, &path, flags, Mode::empty(), BENEATH)?);
        let metadata = file.metadata()?;
        if !metadata.is_file() {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "it is not a file"));
        }
        let mut text = String::new();
        // One more than the bound, so that a file that grows meanwhile is noticed.
        file.take(FILE_MAX + 1).read_to_string(&mut text)?;
        if u64::try_from(text.len()).unwrap_or(u64::MAX) > FILE_MAX {
            return Err(too_large());
        }
        if line.is_none() && limit.is_none() {
            return Ok(text);
        }
        let skip = usize::try_from(line.unwrap_or(1).saturating_sub(1)).unwrap_or(usize::MAX);
        let take = limit.map_or(usize::MAX, |limit| usize::try_from(limit).unwrap_or(usize::MAX));
        Ok(text.split_inclusive('\n').skip(skip).take(take).collect())
    }

    /// Writes a text file, whole or not at all; makes the directories that it needs.
    ///
    /// # Errors
    /// When it cannot be a file beneath the workspace, or is too large.
    pub(super) fn write(&self, path: &Path, text: &str) -> io::Result<()> {
        if u64::try_from(text.len()).unwrap_or(u64::MAX) > FILE_MAX {
            return Err(too_large());
        }
        let (root, path) = self.locate(path)?;
        let invalid = || io::Error::new(io::ErrorKind::InvalidInput, "it is not a file's path");
        let name = path.file_name().ok_or_else(invalid)?.to_owned();
        let parent = directories(root, path.parent().unwrap_or_else(|| Path::new("")))?;
        let before = rustix::fs::statat(&parent, &name, AtFlags::SYMLINK_NOFOLLOW).ok();
        let mode = match before.map(|found| (FileType::from_raw_mode(found.st_mode), found.st_mode))
        {
            None => Mode::from_raw_mode(0o644),
            Some((FileType::RegularFile, mode)) => Mode::from_raw_mode(mode & 0o777),
            // A link is replaced by the file: it is never followed. Anything else is left alone.
            Some((FileType::Symlink, _)) => Mode::from_raw_mode(0o644),
            Some(_) => return Err(io::Error::new(io::ErrorKind::InvalidInput, "it is not a file")),
        };
        let mut random = [0; 8];
        getrandom::fill(&mut random).map_err(|_| io::Error::other("no randomness"))?;
        let temporary = format!(".wakeful-{:016x}", u64::from_ne_bytes(random));
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
        let written = rustix::fs::openat(&parent, &temporary, flags, Mode::from_raw_mode(0o600))
            .map_err(io::Error::from)
            .and_then(|file| {
                let mut file = File::from(file);
                file.write_all(text.as_bytes())?;
                rustix::fs::fchmod(&file, mode)?;
                Ok(rustix::fs::renameat(&parent, &temporary, &parent, &name)?)
            });
        if written.is_err() {
            let _never_made = rustix::fs::unlinkat(&parent, &temporary, AtFlags::empty());
        }
        written
    }

    /// The workspace, and the path in it.
    fn locate(&self, path: &Path) -> io::Result<(OwnedFd, PathBuf)> {
        let flags = OFlags::DIRECTORY | OFlags::PATH | OFlags::CLOEXEC;
        let root = rustix::fs::open(&self.workspace, flags, Mode::empty())?;
        let relative = if path.is_absolute() {
            path.strip_prefix(&self.workspace)
                .map_err(|_| {
                    io::Error::new(io::ErrorKind::PermissionDenied, "it is outside the workspace")
                })?
                .to_owned()
        } else {
            self.dir.join(path)
        };
        Ok((root, if relative.as_os_str().is_empty() { ".".into() } else { relative }))
    }
}

fn too_large() -> io::Error {
    io::Error::new(io::ErrorKind::FileTooLarge, format!("it exceeds {FILE_MAX} bytes"))
}

/// Opens a directory beneath `root`, making what is missing of it.
fn directories(root: OwnedFd, path: &Path) -> io::Result<OwnedFd> {
    let flags = OFlags::DIRECTORY | OFlags::PATH | OFlags::CLOEXEC;
    let mut reached = PathBuf::from(".");
    for part in path.components() {
        reached.push(part);
        let open = || rustix::fs::openat2(&root, &reached, flags, Mode::empty(), BENEATH);
        if open().is_err_and(|error| error == rustix::io::Errno::NOENT)
            && let Component::Normal(name) = part
        {
            let above = reached.parent().unwrap_or_else(|| Path::new("."));
            let above = rustix::fs::openat2(&root, above, flags, Mode::empty(), BENEATH)?;
            match rustix::fs::mkdirat(&above, name, Mode::from_raw_mode(0o755)) {
                Ok(()) | Err(rustix::io::Errno::EXIST) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }
    Ok(rustix::fs::openat2(&root, &reached, flags, Mode::empty(), BENEATH)?)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::*;

    fn files() -> (tempfile::TempDir, Files) {
        let dir = tempfile::tempdir().unwrap();
        let workspace = dir.path().join("ws");
        std::fs::create_dir_all(workspace.join("project")).unwrap();
        std::fs::write(dir.path().join("secret"), "no").unwrap();
        (dir, Files::new(workspace, "project".into()))
    }

    #[test]
    fn a_written_file_is_read_back_by_lines() {
        let (_dir, files) = files();
        files.write(Path::new("new/deep/a.txt"), "1\n2\n3\n4").unwrap();
        let absolute = files.workspace.join("project/new/deep/a.txt");
        assert_eq!(files.read(&absolute, None, None).unwrap(), "1\n2\n3\n4");
        assert_eq!(files.read(&absolute, Some(2), Some(2)).unwrap(), "2\n3\n");
        assert_eq!(files.read(&absolute, Some(9), None).unwrap(), "");
        files.write(Path::new("../b.txt"), "up").unwrap();
        assert_eq!(std::fs::read_to_string(files.workspace.join("b.txt")).unwrap(), "up");
    }

    #[test]
    fn nothing_outside_the_workspace_is_read_or_written() {
        let (dir, files) = files();
        symlink(dir.path(), files.workspace.join("out")).unwrap();
        symlink(dir.path().join("secret"), files.workspace.join("link")).unwrap();
        let outside = dir.path().join("secret");
        for path in
            ["../../secret", "../out/secret", "../link", "/etc/passwd", "/proc/self/environ"]
        {
            assert!(files.read(Path::new(path), None, None).is_err(), "{path}");
        }
        assert!(files.read(&outside, None, None).is_err());
        for path in ["../../secret", "../out/secret", "../out/new", "/etc/passwd", ".."] {
            assert!(files.write(Path::new(path), "changed").is_err(), "{path}");
        }
        assert!(files.write(&outside, "changed").is_err());
        // The link itself is in the workspace: it gives way, and what it led to stays.
        files.write(Path::new("../link"), "mine").unwrap();
        assert_eq!(std::fs::read_to_string(outside).unwrap(), "no");
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 2);
    }

    #[test]
    fn a_file_keeps_its_mode_and_a_directory_is_no_file() {
        let (_dir, files) = files();
        let script = files.workspace.join("run.sh");
        std::fs::write(&script, "old").unwrap();
        std::fs::set_permissions(&script, std::fs::Permissions::from_mode(0o755)).unwrap();
        files.write(&script, "new").unwrap();
        assert_eq!(std::fs::metadata(&script).unwrap().permissions().mode() & 0o777, 0o755);
        assert!(files.write(Path::new("../project"), "x").is_err());
        assert!(files.read(Path::new("../project"), None, None).is_err());
        assert_eq!(std::fs::read_dir(&files.workspace).unwrap().count(), 2);
    }
}
