//! A log file that cannot grow without bound.

use std::{
    ffi::OsString,
    fs::{self, File, OpenOptions},
    io::{self, Write},
    os::unix::fs::OpenOptionsExt,
    path::PathBuf,
};

/// The size at which a log file becomes the older one.
pub(crate) const LOG_MAX: u64 = 1024 * 1024;

/// A log file with one older file beside it (`.1`): at most twice its bound on disk.
///
/// A write that fails loses its text and nothing else: a full disk must not stop a program.
#[derive(Debug)]
pub(crate) struct BoundedLog {
    path: PathBuf,
    file: Option<File>,
    size: u64,
    max: u64,
}

impl BoundedLog {
    /// Opens the file for appending, making it (mode 0600) where it does not exist.
    pub(crate) fn open(path: PathBuf, max: u64) -> io::Result<Self> {
        let file = append_to(&path)?;
        let size = file.metadata()?.len();
        Ok(Self { path, file: Some(file), size, max })
    }

    /// Appends `bytes` as they are, turning the file over first where they would exceed the bound.
    pub(crate) fn write(&mut self, bytes: &[u8]) {
        let piece_max = usize::try_from(self.max).unwrap_or(usize::MAX).max(1);
        for piece in bytes.chunks(piece_max) {
            let len = u64::try_from(piece.len()).unwrap_or(u64::MAX);
            if self.size.saturating_add(len) > self.max {
                self.turn_over();
            }
            if let Some(file) = &mut self.file
                && file.write_all(piece).is_ok()
            {
                self.size += len;
            }
        }
    }

    fn turn_over(&mut self) {
        let mut older = OsString::from(&self.path);
        older.push(".1");
        // Where the rename fails, the file is cut instead: the bound holds either way.
        if fs::rename(&self.path, older).is_err() {
            let _cut = self.file.as_ref().map(|file| file.set_len(0));
        }
        self.file = append_to(&self.path).ok();
        self.size = self
            .file
            .as_ref()
            .and_then(|file| file.metadata().ok())
            .map_or(0, |metadata| metadata.len());
    }
}

fn append_to(path: &PathBuf) -> io::Result<File> {
    // A process of the sandbox can plant a link here; the log never follows it.
    OpenOptions::new()
        .append(true)
        .create(true)
        .mode(0o600)
        .custom_flags(libc::O_NOFOLLOW)
        .open(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_log_and_its_older_file_stay_within_their_bound() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("app.log");
        let mut log = BoundedLog::open(path.clone(), 100).unwrap();
        for number in 0..50 {
            log.write(format!("line {number:04}\n").as_bytes());
        }
        log.write(&[b'x'; 1000]);
        let older = dir.path().join("app.log.1");
        assert!(fs::metadata(&path).unwrap().len() <= 100);
        assert!(fs::metadata(&older).unwrap().len() <= 100);
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 2);
    }

    #[test]
    fn a_log_that_is_opened_again_goes_on_and_keeps_its_bound() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("app.log");
        BoundedLog::open(path.clone(), 10).unwrap().write(b"12345678");
        BoundedLog::open(path.clone(), 10).unwrap().write(b"9abc");
        assert_eq!(fs::read(&path).unwrap(), b"9abc");
        assert_eq!(fs::read(dir.path().join("app.log.1")).unwrap(), b"12345678");
    }

    #[test]
    fn a_planted_link_is_not_followed() {
        let dir = tempfile::tempdir().unwrap();
        let target = dir.path().join("target");
        fs::write(&target, b"precious").unwrap();
        let path = dir.path().join("app.log");
        std::os::unix::fs::symlink(&target, &path).unwrap();
        assert!(BoundedLog::open(path, 100).is_err());
        assert_eq!(fs::read(&target).unwrap(), b"precious");
    }
}
