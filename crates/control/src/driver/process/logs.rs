//! The logs of an environment: in its sandbox's run directory while one runs, kept afterwards.
//!
//! A sandbox can write to its own log directory. So nothing in it is followed if it is a link, and
//! only plain files are read or kept.

use std::{
    fs::{self, File, OpenOptions},
    io::{self, Read, Seek, SeekFrom},
    os::unix::fs::OpenOptionsExt,
    path::{Path, PathBuf},
    time::UNIX_EPOCH,
};

use rustix::fs::OFlags;
use wakeful_lifecycle::port::LogTail;
use wakeful_wire::{EnvId, SurfaceName};

use super::run_dir::{RunDir, ignore_missing, make_private};

/// The most that is returned at once, whatever is asked for.
const TAIL_MAX: usize = 1024 * 1024;
/// A position holds the milliseconds at which its file was made above the offset in it, so that
/// positions increase when a log turns over.
const OFFSET_BITS: u32 = 22;

/// Where the logs of environments without a sandbox are kept.
#[derive(Debug, Clone)]
pub(super) struct LogRoot(PathBuf);

impl LogRoot {
    pub(super) fn open(path: &Path) -> io::Result<Self> {
        make_private(path)?;
        Ok(Self(path.canonicalize()?))
    }

    fn dir(&self, env: EnvId) -> PathBuf {
        self.0.join(env.to_string())
    }

    /// Keeps the logs of a sandbox that has ended, in place of those of the one before it. A
    /// sandbox that wrote none leaves the older ones.
    pub(super) fn keep(&self, env: EnvId, run_dir: &RunDir) -> io::Result<()> {
        let kept = self.dir(env);
        let logs = match fs::read_dir(run_dir.logs()) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            other => other?,
        };
        let files: Vec<_> = logs
            .flatten()
            .filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_file()))
            .collect();
        if files.is_empty() {
            return Ok(());
        }
        make_private(&kept)?;
        for old in fs::read_dir(&kept)?.flatten() {
            ignore_missing(fs::remove_file(old.path()))?;
        }
        for file in files {
            let target = kept.join(file.file_name());
            // Another file system, such as a runtime directory in memory.
            if fs::rename(file.path(), &target).is_err() {
                let mut from = open_plain(&file.path())?;
                let mut to =
                    OpenOptions::new().write(true).create_new(true).mode(0o600).open(target)?;
                io::copy(&mut from, &mut to)?;
            }
        }
        Ok(())
    }

    /// Removes an environment's logs for good.
    pub(super) fn forget(&self, env: EnvId) -> io::Result<()> {
        ignore_missing(fs::remove_dir_all(self.dir(env)))
    }

    /// The end of a surface's log, from the sandbox that runs or else from what was kept.
    pub(super) fn tail(
        &self,
        env: EnvId,
        running: Option<&RunDir>,
        surface: &SurfaceName,
        max: usize,
        from: Option<u64>,
    ) -> io::Result<LogTail> {
        let dirs = running.map(RunDir::logs).into_iter().chain([self.dir(env)]);
        for dir in dirs {
            let pieces: Vec<_> = [format!("{surface}.log.1"), format!("{surface}.log")]
                .into_iter()
                .filter_map(|name| Piece::open(&dir.join(name)).ok())
                .collect();
            if !pieces.is_empty() {
                return read(pieces, max.min(TAIL_MAX), from);
            }
        }
        Ok(LogTail { bytes: Vec::new(), end: from.unwrap_or(0) })
    }
}

fn open_plain(path: &Path) -> io::Result<File> {
    let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK;
    let flags = i32::try_from(flags.bits()).unwrap_or(0);
    let file = OpenOptions::new().read(true).custom_flags(flags).open(path)?;
    if file.metadata()?.is_file() {
        Ok(file)
    } else {
        Err(io::Error::new(io::ErrorKind::InvalidInput, "not a plain file"))
    }
}

/// One of a log's two files: its text lies at the positions from `start` on.
#[derive(Debug)]
struct Piece {
    file: File,
    start: u64,
    len: u64,
}

impl Piece {
    fn open(path: &Path) -> io::Result<Self> {
        let file = open_plain(path)?;
        let metadata = file.metadata()?;
        let made = metadata.created().ok().and_then(|at| at.duration_since(UNIX_EPOCH).ok());
        let millis = made.map_or(0, |made| u64::try_from(made.as_millis()).unwrap_or(0));
        let offset_max = (1 << OFFSET_BITS) - 1;
        Ok(Self { file, start: millis << OFFSET_BITS, len: metadata.len().min(offset_max) })
    }

    fn end(&self) -> u64 {
        self.start + self.len
    }

    fn read(&mut self, from: u64, bytes: &mut Vec<u8>, max: usize) -> io::Result<()> {
        let offset = from.saturating_sub(self.start).min(self.len);
        self.file.seek(SeekFrom::Start(offset))?;
        let room = u64::try_from(max.saturating_sub(bytes.len())).unwrap_or(u64::MAX);
        (&mut self.file).take(room.min(self.len - offset)).read_to_end(bytes)?;
        Ok(())
    }
}

fn read(mut pieces: Vec<Piece>, max: usize, from: Option<u64>) -> io::Result<LogTail> {
    pieces.sort_by_key(|piece| piece.start);
    let mut bytes = Vec::new();
    let Some(from) = from else {
        // The last `max` bytes of both files together, from a line's beginning on.
        for piece in &mut pieces {
            let start = piece.start;
            piece.read(start, &mut bytes, usize::MAX)?;
        }
        let cut = bytes.len().saturating_sub(max);
        if cut > 0 {
            let line =
                bytes[cut..].iter().position(|byte| *byte == b'\n').map_or(cut, |at| cut + at + 1);
            bytes.drain(..line);
        }
        return Ok(LogTail { bytes, end: pieces.last().map_or(0, Piece::end) });
    };
    let mut end = from;
    for piece in &mut pieces {
        if piece.end() <= from || bytes.len() >= max {
            continue;
        }
        let begin = from.max(piece.start);
        let before = bytes.len();
        piece.read(begin, &mut bytes, max)?;
        end = begin + u64::try_from(bytes.len() - before).unwrap_or(0);
    }
    Ok(LogTail { bytes, end })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn env() -> EnvId {
        "0199f0a0-7b5c-7c3e-9d2f-6a1b2c3d4e5f".parse().unwrap()
    }

    fn setting() -> (tempfile::TempDir, LogRoot, RunDir, SurfaceName) {
        let dir = tempfile::tempdir().unwrap();
        let root = super::super::run_dir::RunRoot::open(&dir.path().join("r")).unwrap();
        let run = root.dir("0199f0a0-7b5c-7c3e-9d2f-6a1b2c3d4e5f".parse().unwrap());
        run.make().unwrap();
        let logs = LogRoot::open(&dir.path().join("l")).unwrap();
        (dir, logs, run, "app".parse().unwrap())
    }

    #[test]
    fn the_end_of_a_log_begins_at_a_line() {
        let (_dir, logs, run, app) = setting();
        fs::write(run.logs().join("app.log"), "one\ntwo\nthree\n").unwrap();
        let tail = |max| logs.tail(env(), Some(&run), &app, max, None).unwrap().bytes;
        assert_eq!(tail(1000), b"one\ntwo\nthree\n");
        assert_eq!(tail(12), b"two\nthree\n");
        assert_eq!(tail(6), b"");
        let none = logs.tail(env(), None, &app, 10, None).unwrap();
        assert_eq!(none, LogTail::default());
    }

    #[test]
    fn following_goes_on_where_it_ended_also_when_the_log_turns_over() {
        let (_dir, logs, run, app) = setting();
        let path = run.logs().join("app.log");
        fs::write(&path, "one\n").unwrap();
        let follow = |from, max| logs.tail(env(), Some(&run), &app, max, from).unwrap();
        let first = follow(None, 100);
        assert_eq!(first.bytes, b"one\n");
        let idle = follow(Some(first.end), 100);
        assert_eq!((idle.bytes.as_slice(), idle.end), (&b""[..], first.end));
        fs::write(&path, "one\ntwo\n").unwrap();
        fs::rename(&path, run.logs().join("app.log.1")).unwrap();
        // Files of one millisecond have positions in no order; a log turns over far more slowly.
        let made = fs::metadata(run.logs().join("app.log.1")).unwrap().created().unwrap();
        while made.elapsed().unwrap_or_default().as_millis() < 50 {
            std::thread::yield_now();
        }
        fs::write(&path, "three\n").unwrap();
        let second = follow(Some(first.end), 100);
        assert_eq!(second.bytes, b"two\nthree\n");
        assert!(second.end > first.end);
        let part = follow(Some(first.end), 6);
        assert_eq!(part.bytes, b"two\nth");
        assert_eq!(follow(Some(part.end), 100).bytes, b"ree\n");
    }

    #[test]
    fn logs_are_kept_after_the_sandbox_and_forgotten_with_the_environment() {
        let (_dir, logs, run, app) = setting();
        fs::write(run.logs().join("app.log"), "kept\n").unwrap();
        logs.keep(env(), &run).unwrap();
        run.remove().unwrap();
        logs.keep(env(), &run).unwrap();
        assert_eq!(logs.tail(env(), Some(&run), &app, 100, None).unwrap().bytes, b"kept\n");
        logs.forget(env()).unwrap();
        logs.forget(env()).unwrap();
        assert_eq!(logs.tail(env(), None, &app, 100, None).unwrap().bytes, b"");
    }

    #[test]
    fn a_planted_link_or_directory_is_neither_read_nor_kept() {
        let (dir, logs, run, app) = setting();
        let secret = dir.path().join("secret");
        fs::write(&secret, "secret").unwrap();
        std::os::unix::fs::symlink(&secret, run.logs().join("app.log")).unwrap();
        fs::create_dir(run.logs().join("db.log")).unwrap();
        assert_eq!(logs.tail(env(), Some(&run), &app, 100, None).unwrap().bytes, b"");
        logs.keep(env(), &run).unwrap();
        assert_eq!(logs.tail(env(), None, &app, 100, None).unwrap().bytes, b"");
    }
}
