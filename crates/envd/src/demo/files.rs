//! The workspace's files, read-only and never followed out of it.

use std::{
    ffi::CString,
    fmt::Write as _,
    fs::File,
    io::{self, Read},
    os::fd::OwnedFd,
    path::Path,
};

use bytes::Bytes;
use http::{HeaderValue, Response, header};
use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags, ResolveFlags};
use tokio::sync::mpsc;

use super::body::Payload;
use crate::thread::log::DIRECTORY;

/// How many entries of a directory are listed.
const ENTRIES_MAX: usize = 2000;
/// How much of a file is read at once.
const PIECE: usize = 64 * 1024;

/// The directory that everything is looked up beneath.
#[derive(Debug)]
pub(super) struct Workspace(OwnedFd);

/// What a path names.
#[derive(Debug)]
pub(super) enum Found {
    Directory(Listing),
    File(File),
}

/// A directory's entries, by name, directories first.
#[derive(Debug, Default)]
pub(super) struct Listing {
    pub(super) entries: Vec<Entry>,
    /// Whether there are more than are listed.
    pub(super) cut: bool,
}

#[derive(Debug, PartialEq, Eq)]
pub(super) struct Entry {
    pub(super) name: Vec<u8>,
    pub(super) kind: Kind,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Kind {
    Directory,
    File {
        size: u64,
    },
    /// A link, a pipe, a device: shown, not opened.
    Other,
}

impl Workspace {
    pub(super) fn open(path: &Path) -> io::Result<Self> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        Ok(Self(rustix::fs::open(path, flags, Mode::empty())?))
    }

    /// Opens what `path` names beneath the workspace, where no part of it is a link. Pipes and
    /// devices are not found, nor is the environment server's own directory.
    pub(super) fn find(&self, path: &[u8]) -> io::Result<Found> {
        if path.split(|byte| *byte == b'/').next() == Some(DIRECTORY.as_bytes()) {
            return Err(io::ErrorKind::NotFound.into());
        }
        let top = path.is_empty();
        let path = if path.is_empty() { b"." } else { path };
        let path = CString::new(path).map_err(|_| io::ErrorKind::InvalidInput)?;
        let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK | OFlags::NOCTTY;
        let resolve =
            ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
        let fd = rustix::fs::openat2(&self.0, path, flags, Mode::empty(), resolve)?;
        let kind = FileType::from_raw_mode(rustix::fs::fstat(&fd)?.st_mode);
        if kind == FileType::Directory {
            Ok(Found::Directory(list(&fd, top)?))
        } else if kind == FileType::RegularFile {
            Ok(Found::File(File::from(fd)))
        } else {
            Err(io::ErrorKind::NotFound.into())
        }
    }
}

fn list(fd: &OwnedFd, top: bool) -> io::Result<Listing> {
    let mut listing = Listing::default();
    for entry in Dir::read_from(fd)? {
        let entry = entry?;
        let name = entry.file_name();
        if matches!(name.to_bytes(), b"." | b"..") {
            continue;
        }
        if top && name.to_bytes() == DIRECTORY.as_bytes() {
            continue;
        }
        if listing.entries.len() >= ENTRIES_MAX {
            listing.cut = true;
            break;
        }
        let Ok(stat) = rustix::fs::statat(fd, name, AtFlags::SYMLINK_NOFOLLOW) else { continue };
        let kind = FileType::from_raw_mode(stat.st_mode);
        let kind = if kind == FileType::Directory {
            Kind::Directory
        } else if kind == FileType::RegularFile {
            Kind::File { size: u64::try_from(stat.st_size).unwrap_or(0) }
        } else {
            Kind::Other
        };
        listing.entries.push(Entry { name: name.to_bytes().to_vec(), kind });
    }
    listing.entries.sort_by(|a, b| {
        (a.kind != Kind::Directory, &a.name).cmp(&(b.kind != Kind::Directory, &b.name))
    });
    Ok(listing)
}

/// Answers with a file's content; a file that shrinks meanwhile is visibly cut short.
pub(super) fn answer(file: File, path: &[u8], download: bool) -> Response<Payload> {
    let length = file.metadata().map_or(0, |metadata| metadata.len());
    let (sender, pieces) = mpsc::channel(2);
    tokio::task::spawn_blocking(move || {
        let mut rest = file.take(length);
        loop {
            let mut piece = vec![0; PIECE];
            let read = rest.read(&mut piece);
            let last = !matches!(read, Ok(1..));
            let piece = match read {
                Ok(0) if rest.limit() == 0 => return,
                Ok(0) => Err(io::ErrorKind::UnexpectedEof.into()),
                Ok(count) => {
                    piece.truncate(count);
                    Ok(Bytes::from(piece))
                }
                Err(error) => Err(error),
            };
            if sender.blocking_send(piece).is_err() || last {
                return;
            }
        }
    });
    let mut response = Response::new(Payload::Pieces { pieces, length: Some(length) });
    let headers = response.headers_mut();
    let content_type = content_type(path);
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(content_type));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    if download || content_type == UNKNOWN {
        let name = path.rsplit(|byte| *byte == b'/').next().unwrap_or(path);
        let disposition = format!("attachment; filename*=UTF-8''{}", encode(name));
        if let Ok(value) = HeaderValue::from_str(&disposition) {
            headers.insert(header::CONTENT_DISPOSITION, value);
        }
    }
    response
}

const UNKNOWN: &str = "application/octet-stream";

fn content_type(path: &[u8]) -> &'static str {
    let extension = path.rsplit(|byte| *byte == b'.').next().unwrap_or_default();
    match extension.to_ascii_lowercase().as_slice() {
        b"html" | b"htm" => "text/html; charset=utf-8",
        b"css" => "text/css; charset=utf-8",
        b"js" | b"mjs" => "text/javascript; charset=utf-8",
        b"json" => "application/json",
        b"svg" => "image/svg+xml",
        b"png" => "image/png",
        b"jpg" | b"jpeg" => "image/jpeg",
        b"gif" => "image/gif",
        b"webp" => "image/webp",
        b"pdf" => "application/pdf",
        b"txt" | b"md" | b"csv" | b"log" | b"toml" | b"yaml" | b"yml" | b"rs" | b"py" | b"ts"
        | b"sh" | b"sql" => "text/plain; charset=utf-8",
        _ => UNKNOWN,
    }
}

/// Decodes the percent signs of a path. `None` for a malformed one, for NUL, and for a dot segment
/// or an encoded slash, which would make two spellings of one file.
pub(super) fn decode(path: &str) -> Option<Vec<u8>> {
    let mut decoded = Vec::with_capacity(path.len());
    let mut bytes = path.bytes();
    while let Some(byte) = bytes.next() {
        let byte = if byte == b'%' {
            let pair = [bytes.next()?, bytes.next()?];
            if !pair.iter().all(u8::is_ascii_hexdigit) {
                return None;
            }
            let byte = u8::from_str_radix(std::str::from_utf8(&pair).ok()?, 16).ok()?;
            if byte == b'/' {
                return None;
            }
            byte
        } else {
            byte
        };
        if byte == 0 {
            return None;
        }
        decoded.push(byte);
    }
    let trimmed = decoded.strip_suffix(b"/").unwrap_or(&decoded);
    let odd = |segment: &[u8]| matches!(segment, b"" | b"." | b"..");
    if !trimmed.is_empty() && trimmed.split(|byte| *byte == b'/').any(odd) {
        return None;
    }
    Some(trimmed.to_vec())
}

/// One path segment with everything but unreserved characters percent-encoded (RFC 3986 §2.3).
pub(super) fn encode(segment: &[u8]) -> String {
    let mut text = String::with_capacity(segment.len());
    for byte in segment {
        if byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_' | b'~') {
            text.push(char::from(*byte));
        } else {
            let _infallible = write!(text, "%{byte:02X}");
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_has_one_spelling_and_no_way_up() {
        let table: [(&str, Option<&[u8]>); 11] = [
            ("", Some(b"")),
            ("a/b.txt", Some(b"a/b.txt")),
            ("a/", Some(b"a")),
            ("a%20b%C3%A9", Some("a bé".as_bytes())),
            ("..", None),
            ("a/%2e%2e/b", None),
            ("a%2Fb", None),
            ("a//b", None),
            ("a%00", None),
            ("a%4", None),
            ("%+1", None),
        ];
        for (path, decoded) in table {
            assert_eq!(decode(path).as_deref(), decoded, "{path}");
        }
    }

    #[test]
    fn a_name_survives_encoding() {
        let name = "a b/ü?#%:.txt".replace('/', "").into_bytes();
        assert_eq!(decode(&encode(&name)), Some(name));
    }

    #[test]
    fn links_and_pipes_are_not_followed() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().join("workspace");
        std::fs::create_dir_all(root.join("sub")).unwrap();
        std::fs::write(root.join("sub/file"), "x").unwrap();
        std::fs::write(dir.path().join("secret"), "s").unwrap();
        std::os::unix::fs::symlink("../secret", root.join("link")).unwrap();
        std::os::unix::fs::symlink("sub", root.join("inside")).unwrap();
        let pipe = root.join("pipe");
        rustix::fs::mknodat(rustix::fs::CWD, &pipe, FileType::Fifo, Mode::from(0o600), 0).unwrap();
        let workspace = Workspace::open(&root).unwrap();
        for refused in ["link", "inside/file", "pipe", "none", "/etc/passwd"] {
            assert!(workspace.find(refused.as_bytes()).is_err(), "{refused}");
        }
        assert!(matches!(workspace.find(b"sub/file"), Ok(Found::File(_))));
        let Ok(Found::Directory(listing)) = workspace.find(b"") else { panic!("a directory") };
        let shown: Vec<_> =
            listing.entries.iter().map(|entry| (entry.name.as_slice(), entry.kind)).collect();
        let expected: [(&[u8], Kind); 4] = [
            (b"sub", Kind::Directory),
            (b"inside", Kind::Other),
            (b"link", Kind::Other),
            (b"pipe", Kind::Other),
        ];
        assert_eq!(shown, expected);
    }

    #[test]
    fn the_environment_servers_directory_is_not_shown() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(dir.path().join(DIRECTORY)).unwrap();
        std::fs::write(dir.path().join(DIRECTORY).join("threads.db"), "log").unwrap();
        std::fs::create_dir_all(dir.path().join("sub").join(DIRECTORY)).unwrap();
        let workspace = Workspace::open(dir.path()).unwrap();
        assert!(workspace.find(b".wakeful").is_err());
        assert!(workspace.find(b".wakeful/threads.db").is_err());
        let names = |path: &[u8]| match workspace.find(path).unwrap() {
            Found::Directory(listing) => {
                listing.entries.into_iter().map(|entry| entry.name).collect::<Vec<_>>()
            }
            Found::File(_) => panic!("a file"),
        };
        assert_eq!(names(b""), [b"sub"]);
        assert_eq!(names(b"sub"), [b".wakeful"]);
    }
}
