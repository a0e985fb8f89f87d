//! An agent's process and its three streams.

use std::{io, os::fd::OwnedFd, sync::Arc, time::Duration};

use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt, BufReader},
    net::unix::pipe,
    sync::mpsc,
};

use super::lines::{Line, next_line};
use crate::{
    agent::tethered::{Ended, Start, Streams, Surroundings, Tethered},
    bounded_log::BoundedLog,
};

/// How many messages wait to be written. An agent that reads nothing of so many is hung.
const WRITES_MAX: usize = 256;
/// How many lines wait to be handled; beyond, the agent waits.
const LINES_MAX: usize = 64;
/// How much of what it said on its standard error is kept for the reason of a failed start.
const WORDS_MAX: usize = 400;
/// How much of a line of noise is logged.
const NOISE_MAX: usize = 1024;
/// How long a process may take to end after its input was closed, and after SIGTERM.
const LEAVE: Duration = Duration::from_secs(2);
/// How long what is left may take to vanish after SIGKILL.
const VANISH: Duration = Duration::from_secs(15);

/// Where noise and standard error go: shared by every process of an agent.
pub(super) type Remarks = Arc<Mutex<Option<BoundedLog>>>;

/// An agent's process.
#[derive(Debug)]
pub(super) struct Process {
    pub(super) tethered: Tethered,
    pub(super) lines: mpsc::Receiver<Line>,
    pub(super) outbox: Outbox,
    words: Arc<Mutex<Vec<u8>>>,
}

/// Writes to the agent. The agent's input closes with the last clone.
#[derive(Debug, Clone)]
pub(super) struct Outbox(mpsc::Sender<String>);

impl Outbox {
    /// Sends one message. False: the agent has stopped reading, or is gone.
    #[must_use]
    fn send(&self, message: &Value) -> bool {
        self.0.try_send(format!("{message}\n")).is_ok()
    }

    /// Asks something; the answer carries `id`.
    #[must_use]
    pub(super) fn request(&self, id: u64, method: &str, params: &Value) -> bool {
        self.send(&json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }))
    }

    /// Says something.
    #[must_use]
    pub(super) fn notify(&self, method: &str, params: &Value) -> bool {
        self.send(&json!({ "jsonrpc": "2.0", "method": method, "params": params }))
    }

    /// Answers what the agent asked.
    #[must_use]
    pub(super) fn answer(&self, id: &Value, result: &Value) -> bool {
        self.send(&json!({ "jsonrpc": "2.0", "id": id, "result": result }))
    }

    /// Refuses what the agent asked.
    #[must_use]
    pub(super) fn refuse(&self, id: &Value, code: i64, message: &str) -> bool {
        let error = json!({ "code": code, "message": message });
        self.send(&json!({ "jsonrpc": "2.0", "id": id, "error": error }))
    }
}

impl Process {
    /// Starts an agent's command in its directory.
    pub(super) fn start(
        surroundings: &Surroundings,
        start: &Start,
        line_max: usize,
        remarks: &Remarks,
    ) -> io::Result<Self> {
        let (input, to_agent) = io::pipe()?;
        let (from_agent, output) = io::pipe()?;
        let (errors_from_agent, errors) = io::pipe()?;
        let streams = Streams::Pipes([input.into(), output.into(), errors.into()]);
        let tethered = Tethered::start(surroundings, start, streams)?;
        let writer = pipe::Sender::from_owned_fd(OwnedFd::from(to_agent))?;
        let reader = pipe::Receiver::from_owned_fd(OwnedFd::from(from_agent))?;
        let errors = pipe::Receiver::from_owned_fd(OwnedFd::from(errors_from_agent))?;
        let (outbox, messages) = mpsc::channel(WRITES_MAX);
        let (handled, lines) = mpsc::channel(LINES_MAX);
        let words = Arc::new(Mutex::new(Vec::new()));
        tokio::spawn(write(writer, messages));
        tokio::spawn(read(reader, line_max, handled, Arc::clone(remarks)));
        tokio::spawn(listen(errors, Arc::clone(remarks), Arc::clone(&words)));
        Ok(Self { tethered, lines, outbox: Outbox(outbox), words })
    }

    /// The last line that it said on its standard error.
    pub(super) fn last_words(&self) -> Option<String> {
        let bytes = self.words.lock().clone();
        let text = String::from_utf8_lossy(&bytes);
        let line = text.lines().map(str::trim).rfind(|line| !line.is_empty())?;
        Some(line.chars().filter(|c| !c.is_control()).collect())
    }

    /// Asks it to leave, then makes it: closes its input, waits, SIGTERM, waits, SIGKILL. Returns
    /// how it ended, when nothing of it is left.
    pub(super) async fn stop(self) -> Ended {
        let Self { mut tethered, lines, outbox, .. } = self;
        // What it still writes is read and dropped, so that it cannot hang on a full pipe.
        drop(lines);
        drop(outbox);
        if tokio::time::timeout(LEAVE, tethered.ended()).await.is_err() {
            tethered.terminate();
            let _still_there = tokio::time::timeout(LEAVE, tethered.ended()).await;
        }
        kill(tethered).await
    }

    /// Kills it and everything that it has started. Returns when nothing is left.
    pub(super) async fn kill(self) -> Ended {
        kill(self.tethered).await
    }
}

async fn kill(mut tethered: Tethered) -> Ended {
    tethered.kill();
    // Something that hangs in the kernel cannot be waited for without end.
    let _left = tokio::time::timeout(VANISH, tethered.gone()).await;
    tokio::time::timeout(VANISH, tethered.ended()).await.unwrap_or(Ended::Lost)
}

async fn write(mut agent: pipe::Sender, mut messages: mpsc::Receiver<String>) {
    while let Some(message) = messages.recv().await {
        if agent.write_all(message.as_bytes()).await.is_err() {
            return;
        }
    }
}

async fn read(agent: pipe::Receiver, max: usize, handled: mpsc::Sender<Line>, remarks: Remarks) {
    let mut reader = BufReader::with_capacity(64 * 1024, agent);
    while let Some(line) = next_line(&mut reader, max).await {
        if let Line::Noise(bytes) = &line {
            let mut kept = b"stdout: ".to_vec();
            kept.extend_from_slice(
                &bytes.trim_ascii_end()[..bytes.trim_ascii_end().len().min(NOISE_MAX)],
            );
            kept.push(b'\n');
            remark(&remarks, &kept);
        } else {
            let _nobody_listens = handled.send(line).await;
        }
    }
}

async fn listen(mut errors: pipe::Receiver, remarks: Remarks, words: Arc<Mutex<Vec<u8>>>) {
    let mut buffer = vec![0; 16 * 1024];
    while let Ok(count @ 1..) = errors.read(&mut buffer).await {
        remark(&remarks, &buffer[..count]);
        let mut words = words.lock();
        words.extend_from_slice(&buffer[..count]);
        let excess = words.len().saturating_sub(WORDS_MAX);
        words.drain(..excess);
    }
}

fn remark(remarks: &Remarks, bytes: &[u8]) {
    if let Some(log) = &mut *remarks.lock() {
        log.write(bytes);
    }
}
