//! What stands in a directory.

use std::os::fd::OwnedFd;

use rustix::fs::{AtFlags, Dir, FileType};

use super::{
    FileError,
    path::{RESERVED, TEMPORARY},
};

/// The most entries that are listed.
pub const LISTING_MAX: usize = 10_000;

/// What stands in a directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listing {
    /// The entries, by name.
    pub entries: Vec<Entry>,
    /// Whether there are more than are listed.
    pub truncated: bool,
}

/// One entry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// Its name. Bytes that are no text are replaced.
    pub name: String,
    /// What it is.
    pub kind: EntryKind,
    /// Its size in bytes.
    pub size: u64,
    /// When it last changed, in milliseconds since the epoch.
    pub modified_ms: u64,
}

/// What an entry is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EntryKind {
    /// A file.
    File,
    /// A directory.
    Directory,
    /// A link, wherever it leads.
    Link,
    /// A pipe, a socket or a device.
    Other,
}

impl EntryKind {
    /// The stable text.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::File => "file",
            Self::Directory => "directory",
            Self::Link => "link",
            Self::Other => "other",
        }
    }
}

/// Lists an open directory. Files that are being written are left out; so is the environment
/// server's directory `at_top` of the workspace.
pub(super) fn list(directory: &OwnedFd, at_top: bool) -> Result<Listing, FileError> {
    let mut entries = Vec::new();
    let mut truncated = false;
    for entry in Dir::read_from(directory)? {
        let entry = entry?;
        let bytes = entry.file_name().to_bytes();
        if matches!(bytes, b"." | b"..") || bytes.starts_with(TEMPORARY.as_bytes()) {
            continue;
        }
        if at_top && bytes == RESERVED.as_bytes() {
            continue;
        }
        if entries.len() == LISTING_MAX {
            truncated = true;
            break;
        }
        let stat = rustix::fs::statat(directory, entry.file_name(), AtFlags::SYMLINK_NOFOLLOW);
        // Gone meanwhile.
        let Ok(stat) = stat else { continue };
        let kind = match FileType::from_raw_mode(stat.st_mode) {
            FileType::RegularFile => EntryKind::File,
            FileType::Directory => EntryKind::Directory,
            FileType::Symlink => EntryKind::Link,
            FileType::Fifo
            | FileType::Socket
            | FileType::CharacterDevice
            | FileType::BlockDevice
            | FileType::Unknown => EntryKind::Other,
        };
        let seconds = u64::try_from(stat.st_mtime).unwrap_or_default();
        entries.push(Entry {
            name: String::from_utf8_lossy(bytes).into_owned(),
            kind,
            size: u64::try_from(stat.st_size).unwrap_or_default(),
            modified_ms: seconds.saturating_mul(1_000),
        });
    }
    entries.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(Listing { entries, truncated })
}
