//! What a surface's program writes.

use std::{collections::VecDeque, io, os::fd::OwnedFd, path::PathBuf, sync::Arc, time::Duration};

use parking_lot::Mutex;
use tokio::{io::AsyncReadExt, net::unix::pipe, task::JoinHandle};

use crate::bounded_log::{BoundedLog, LOG_MAX};

/// How many bytes of a program's output are kept for the reason of its end.
const TAIL_MAX: usize = 2048;
/// How many of its last lines, and how many characters of them, the reason holds.
const WORDS_MAX: (usize, usize) = (3, 400);

/// A surface's log file, shared by all its starts.
#[derive(Debug, Clone)]
pub(crate) struct Log(Arc<Mutex<Option<BoundedLog>>>);

impl Log {
    /// Opens the file; where that fails, output is read and dropped, since a program must not
    /// block on a full pipe.
    pub(crate) fn open(path: PathBuf) -> Self {
        Self(Arc::new(Mutex::new(BoundedLog::open(path, LOG_MAX).ok())))
    }

    fn write(&self, bytes: &[u8]) {
        if let Some(log) = &mut *self.0.lock() {
            log.write(bytes);
        }
    }
}

/// The output of one start, followed until its last writer closes it.
#[derive(Debug)]
pub(crate) struct Output {
    tail: Arc<Mutex<VecDeque<u8>>>,
    following: JoinHandle<()>,
}

impl Output {
    /// Begins to follow.
    ///
    /// # Errors
    /// When the pipe cannot be watched.
    pub(crate) fn follow(reader: io::PipeReader, log: Log) -> io::Result<Self> {
        let mut reader = pipe::Receiver::from_owned_fd(OwnedFd::from(reader))?;
        let tail = Arc::new(Mutex::new(VecDeque::with_capacity(TAIL_MAX)));
        let kept = Arc::clone(&tail);
        let following = tokio::spawn(async move {
            let mut buffer = vec![0; 16 * 1024];
            while let Ok(count @ 1..) = reader.read(&mut buffer).await {
                log.write(&buffer[..count]);
                keep(&mut kept.lock(), &buffer[..count]);
            }
        });
        Ok(Self { tail, following })
    }

    /// The last lines, without `secret`, after the end of the output or `wait`, whichever is first.
    /// What still writes afterwards is followed on.
    pub(crate) async fn last_words(mut self, wait: Duration, secret: &str) -> String {
        let _still_open = tokio::time::timeout(wait, &mut self.following).await;
        let bytes: Vec<u8> = self.tail.lock().iter().copied().collect();
        words(&bytes, secret)
    }
}

fn keep(tail: &mut VecDeque<u8>, bytes: &[u8]) {
    let bytes = &bytes[bytes.len().saturating_sub(TAIL_MAX)..];
    let excess = (tail.len() + bytes.len()).saturating_sub(TAIL_MAX);
    tail.drain(..excess);
    tail.extend(bytes);
}

fn words(bytes: &[u8], secret: &str) -> String {
    let mut text = String::from_utf8_lossy(bytes).into_owned();
    if !secret.is_empty() {
        text = text.replace(secret, "…");
    }
    let lines: Vec<_> = text
        .lines()
        .map(|line| line.chars().filter(|c| !c.is_control()).collect::<String>())
        .filter(|line| !line.trim().is_empty())
        .collect();
    let joined = lines[lines.len().saturating_sub(WORDS_MAX.0)..].join(" / ");
    let excess = joined.chars().count().saturating_sub(WORDS_MAX.1);
    joined.chars().skip(excess).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn last_words_are_the_last_lines_without_the_secret_and_control_characters() {
        let table: [(&[u8], &str); 5] = [
            (b"", ""),
            (b"one\n\ntwo\nthree\nfour\n", "two / three / four"),
            (b"\x1b[31mred\x1b[0m", "[31mred[0m"),
            (b"user:hunter2", "user:…"),
            (b"\xff\xfe", "\u{fffd}\u{fffd}"),
        ];
        for (bytes, text) in table {
            assert_eq!(words(bytes, "hunter2"), text);
        }
        assert_eq!(words(&[b'x'; 2000], "").len(), WORDS_MAX.1);
    }

    #[test]
    fn the_tail_is_bounded() {
        let mut tail = VecDeque::new();
        for _ in 0..10 {
            keep(&mut tail, &[b'a'; 700]);
        }
        keep(&mut tail, &[b'b'; 5000]);
        assert_eq!(tail.len(), TAIL_MAX);
        assert!(tail.iter().all(|byte| *byte == b'b'));
    }
}
