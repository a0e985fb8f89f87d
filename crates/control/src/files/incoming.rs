//! A file that is being written. Nobody sees it before it is whole.
//!
//! It is a file without a name (`O_TMPFILE`), so a crash leaves nothing. Where the file system does
//! not have that, it gets a temporary name, which is never listed. [`Incoming::finish`] flushes it
//! to disk and then gives it its name in one step; dropped before, it is gone and the old file is
//! as it was.

use std::{fs::File, os::fd::OwnedFd};

use rustix::{
    fs::{AtFlags, FileType, Mode, OFlags},
    io::Errno,
};
use tokio::io::AsyncWriteExt as _;

use super::{FileError, RelativePath, beneath, blocking, path::TEMPORARY};

/// What a new file may: its owner reads and writes it, others read it.
const NEW_FILE: u32 = 0o644;

/// A file that is being written.
#[derive(Debug)]
pub struct Incoming {
    file: tokio::fs::File,
    written: u64,
    place: Place,
}

/// Where it goes.
#[derive(Debug)]
struct Place {
    directory: OwnedFd,
    name: String,
    /// Its temporary name, where it has one; removed when dropped.
    temporary: Option<String>,
}

impl Drop for Place {
    fn drop(&mut self) {
        if let Some(temporary) = &self.temporary {
            // Nothing better can be done than trying: a failure leaves a name that is not listed.
            let _ = rustix::fs::unlinkat(&self.directory, temporary.as_str(), AtFlags::empty());
        }
    }
}

fn temporary_name() -> String {
    format!("{TEMPORARY}{}", uuid::Uuid::new_v4().simple())
}

impl Incoming {
    pub(super) fn begin(root: &OwnedFd, path: &RelativePath) -> Result<Self, FileError> {
        let Some((parent, name)) = path.split_last() else { return Err(FileError::IsDirectory) };
        let directory = beneath::make_directory(root, parent)?;
        let mode = match rustix::fs::statat(&directory, name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(stat) => match FileType::from_raw_mode(stat.st_mode) {
                FileType::Directory => return Err(FileError::IsDirectory),
                // A script stays a script. Never set-uid: those bits are not in the mask.
                FileType::RegularFile => (stat.st_mode & 0o777) | 0o600,
                FileType::Symlink
                | FileType::Fifo
                | FileType::Socket
                | FileType::CharacterDevice
                | FileType::BlockDevice
                | FileType::Unknown => NEW_FILE,
            },
            Err(Errno::NOENT) => NEW_FILE,
            Err(errno) => return Err(errno.into()),
        };
        let place = Place { directory, name: name.to_owned(), temporary: None };
        let mode = Mode::from_raw_mode(mode);
        match Self::nameless(&place, mode) {
            Ok(fd) => Ok(Self::new(fd, place)),
            // How file systems say that they do not have it.
            Err(Errno::OPNOTSUPP | Errno::ISDIR | Errno::INVAL | Errno::NOENT) => {
                Self::named(place, mode)
            }
            Err(errno) => Err(errno.into()),
        }
    }

    fn new(fd: OwnedFd, place: Place) -> Self {
        Self { file: tokio::fs::File::from_std(File::from(fd)), written: 0, place }
    }

    fn nameless(place: &Place, mode: Mode) -> Result<OwnedFd, Errno> {
        let flags = OFlags::WRONLY | OFlags::CLOEXEC | OFlags::TMPFILE;
        rustix::fs::openat(&place.directory, ".", flags, mode)
    }

    fn named(mut place: Place, mode: Mode) -> Result<Self, FileError> {
        let temporary = temporary_name();
        let flags = OFlags::WRONLY | OFlags::CLOEXEC | OFlags::CREATE | OFlags::EXCL;
        let flags = flags | OFlags::NOFOLLOW;
        let fd = rustix::fs::openat(&place.directory, temporary.as_str(), flags, mode)?;
        place.temporary = Some(temporary);
        Ok(Self::new(fd, place))
    }

    /// Writes on.
    ///
    /// # Errors
    /// [`FileError::NoSpace`], or whatever the disk says.
    pub async fn write(&mut self, bytes: &[u8]) -> Result<(), FileError> {
        self.file.write_all(bytes).await?;
        self.written += bytes.len() as u64;
        Ok(())
    }

    /// How many bytes were written.
    #[must_use]
    pub const fn written(&self) -> u64 {
        self.written
    }

    /// Flushes it to disk and gives it its name; whatever file or link had that name is replaced.
    /// Returns its size.
    ///
    /// # Errors
    /// The old file is as it was.
    pub async fn finish(mut self) -> Result<u64, FileError> {
        self.file.flush().await?;
        let Self { file, written, mut place } = self;
        let file = file.into_std().await;
        blocking(move || {
            file.sync_all()?;
            let temporary = match &place.temporary {
                Some(temporary) => temporary.clone(),
                None => place.temporary.insert(link(&file, &place.directory)?).clone(),
            };
            let directory = &place.directory;
            // Where this fails, the temporary name goes with `place`.
            rustix::fs::renameat(directory, temporary.as_str(), directory, place.name.as_str())?;
            drop(place.temporary.take());
            // The name itself must survive a power cut too.
            let handle = rustix::fs::openat(
                directory,
                ".",
                OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC,
                Mode::empty(),
            )?;
            rustix::fs::fsync(&handle)?;
            Ok(written)
        })
        .await
    }
}

/// Gives a nameless file a temporary name: a link cannot replace another file, a rename can.
fn link(file: &File, directory: &OwnedFd) -> Result<String, FileError> {
    use std::os::fd::AsRawFd as _;
    let temporary = temporary_name();
    let itself = format!("/proc/self/fd/{}", file.as_raw_fd());
    let follow = AtFlags::SYMLINK_FOLLOW;
    rustix::fs::linkat(rustix::fs::CWD, itself, directory, temporary.as_str(), follow)?;
    Ok(temporary)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn where_a_file_needs_a_name_it_is_not_listed_and_goes_when_given_up() {
        let dir = tempfile::tempdir().unwrap();
        let open = || {
            let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
            let directory = rustix::fs::open(dir.path(), flags, Mode::empty()).unwrap();
            let place = Place { directory, name: "f".into(), temporary: None };
            Incoming::named(place, Mode::from_raw_mode(NEW_FILE)).unwrap()
        };
        std::fs::write(dir.path().join("f"), "old").unwrap();
        let mut incoming = open();
        incoming.write(b"half").await.unwrap();
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 2);
        let files = super::super::Files::open(dir.path().to_owned()).await.unwrap();
        let found = files.read(RelativePath::root()).await.unwrap();
        let super::super::Found::Directory(listing) = found else { panic!("a file") };
        assert_eq!(listing.entries.len(), 1);
        drop(incoming);
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 1);
        let mut incoming = open();
        incoming.write(b"new").await.unwrap();
        assert_eq!(incoming.finish().await.unwrap(), 3);
        assert_eq!(std::fs::read_to_string(dir.path().join("f")).unwrap(), "new");
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 1);
    }
}
