//! The driver's end of a control socket.

use std::{io, path::Path, time::Duration};

use tokio::{
    io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader, Take},
    net::UnixStream,
    time::Instant,
};
use wakeful_lifecycle::Secret;
use wakeful_wire::sandbox::{Ask, AskKind, LINE_MAX, Reply};

/// The pause before a socket with a full backlog is tried again.
const BACKLOG_PAUSE: Duration = Duration::from_millis(5);

/// No answer was had.
#[derive(Debug, thiserror::Error)]
pub(super) enum AskError {
    /// Nothing listens, or it went away before its answer.
    #[error("envd does not answer")]
    Gone(#[source] io::Error),
    /// It took longer than it may.
    #[error("envd does not answer in time")]
    Late,
    /// The answer makes no sense.
    #[error("envd's answer makes no sense")]
    Garbled,
}

/// Replies as they come, a line each.
#[derive(Debug)]
pub(super) struct Replies(BufReader<Take<UnixStream>>);

impl Replies {
    /// The next one, whenever it comes.
    pub(super) async fn next(&mut self) -> Result<Reply, AskError> {
        let max = u64::try_from(LINE_MAX).unwrap_or(u64::MAX);
        self.0.get_mut().set_limit(max);
        let mut line = Vec::new();
        self.0.read_until(b'\n', &mut line).await.map_err(AskError::Gone)?;
        if line.ends_with(b"\n") {
            serde_json::from_slice(&line).map_err(|_| AskError::Garbled)
        } else if line.len() < LINE_MAX {
            Err(AskError::Gone(io::ErrorKind::UnexpectedEof.into()))
        } else {
            Err(AskError::Garbled)
        }
    }
}

/// Asks, and leaves the answers to be read.
pub(super) async fn open(
    socket: &Path,
    secret: &Secret,
    ask: AskKind,
    time: Duration,
) -> Result<Replies, AskError> {
    let until = Instant::now() + time;
    let asking = async {
        let mut stream = connect(socket, until).await?;
        let mut line = serde_json::to_vec(&Ask { secret: secret.0.clone(), ask })?;
        line.push(b'\n');
        stream.write_all(&line).await?;
        Ok(Replies(BufReader::new(stream.take(0))))
    };
    match tokio::time::timeout_at(until, asking).await {
        Ok(asked) => asked.map_err(AskError::Gone),
        Err(_) => Err(AskError::Late),
    }
}

/// A full backlog is a busy `envd`, not a dead one.
async fn connect(socket: &Path, until: Instant) -> io::Result<UnixStream> {
    loop {
        match UnixStream::connect(socket).await {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock && Instant::now() < until => {
                tokio::time::sleep(BACKLOG_PAUSE).await;
            }
            other => return other,
        }
    }
}

/// Asks and takes one answer, both within `time`.
pub(super) async fn once(
    socket: &Path,
    secret: &Secret,
    ask: AskKind,
    time: Duration,
) -> Result<Reply, AskError> {
    let until = Instant::now() + time;
    let mut replies = open(socket, secret, ask, time).await?;
    tokio::time::timeout_at(until, replies.next()).await.map_err(|_| AskError::Late)?
}
