//! Terminals that the host serves to an agent.

use std::{
    collections::BTreeMap,
    ffi::OsString,
    io,
    os::fd::OwnedFd,
    path::{Component, Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::{
    io::AsyncReadExt,
    net::unix::pipe,
    sync::{Notify, mpsc, watch},
};
use wakeful_wire::rpc::Exit;

use crate::agent::{
    limits::ceil,
    pty::Decoder,
    tethered::{Ended, Start, Streams, Surroundings, Tethered},
};

/// How many terminals a session has at once; a further one is refused.
const TERMINALS_MAX: usize = 32;
/// How much output is kept for the agent, whatever it asks for.
const KEPT_MAX: usize = 1024 * 1024;
/// How long output may still come after the command has ended: a process that it left behind can
/// hold the pipe for ever.
const REST: Duration = Duration::from_millis(300);

/// What happened in a terminal.
#[derive(Debug)]
pub(super) struct Happened {
    pub(super) terminal: String,
    pub(super) text: String,
    pub(super) exit: Option<Exit>,
}

/// The terminals of one session. Dropping it ends every command in them.
#[derive(Debug)]
pub(super) struct Terminals {
    surroundings: Surroundings,
    dir: PathBuf,
    open: BTreeMap<String, Terminal>,
    next: u32,
    happened: mpsc::Sender<Happened>,
}

#[derive(Debug)]
struct Terminal {
    kept: Arc<Mutex<Kept>>,
    exit: watch::Receiver<Option<Exit>>,
    kill: Arc<Notify>,
    running: tokio::task::JoinHandle<()>,
}

impl Drop for Terminal {
    fn drop(&mut self) {
        // The task holds the command; its end is the command's.
        self.running.abort();
    }
}

#[derive(Debug)]
struct Kept {
    text: String,
    max: usize,
    truncated: bool,
}

impl Kept {
    /// The newest output stays.
    fn push(&mut self, text: &str) {
        self.text.push_str(text);
        if self.text.len() > self.max {
            self.truncated = true;
            let cut = ceil(&self.text, self.text.len() - self.max);
            self.text.drain(..cut);
        }
    }
}

/// A command that an agent wants to run.
#[derive(Debug, Default)]
pub(super) struct Wanted {
    pub(super) command: String,
    pub(super) args: Vec<String>,
    pub(super) env: Vec<(String, String)>,
    pub(super) dir: Option<PathBuf>,
    pub(super) kept: Option<u64>,
}

impl Terminals {
    /// `dir` is the session's directory, absolute.
    pub(super) fn new(
        surroundings: Surroundings,
        dir: PathBuf,
        happened: mpsc::Sender<Happened>,
    ) -> Self {
        Self { surroundings, dir, open: BTreeMap::new(), next: 0, happened }
    }

    /// The session's directory.
    pub(super) fn dir(&self) -> &Path {
        &self.dir
    }

    /// Starts a command. Returns the terminal's id.
    ///
    /// # Errors
    /// When there are too many, its directory is outside the workspace, or nothing can be started.
    pub(super) fn create(&mut self, wanted: Wanted) -> io::Result<String> {
        if self.open.len() >= TERMINALS_MAX {
            return Err(io::Error::other(format!("more than {TERMINALS_MAX} terminals")));
        }
        let dir = match wanted.dir {
            Some(dir) => self.within(&dir)?,
            None => self.dir.clone(),
        };
        let (reader, writer) = io::pipe()?;
        let output = OwnedFd::from(writer);
        let input = OwnedFd::from(std::fs::File::open("/dev/null")?);
        let streams = Streams::Pipes([input, output.try_clone()?, output]);
        let pair = |(name, value): (String, String)| (OsString::from(name), OsString::from(value));
        let start = Start {
            program: OsString::from(wanted.command),
            args: wanted.args.into_iter().map(OsString::from).collect(),
            env: wanted.env.into_iter().map(pair).collect(),
            dir,
        };
        let tethered = Tethered::start(&self.surroundings, &start, streams)?;
        let reader = pipe::Receiver::from_owned_fd(OwnedFd::from(reader))?;
        self.next += 1;
        let id = format!("terminal-{}", self.next);
        let max = wanted
            .kept
            .and_then(|kept| usize::try_from(kept).ok())
            .map_or(KEPT_MAX, |kept| kept.min(KEPT_MAX));
        let kept = Arc::new(Mutex::new(Kept { text: String::new(), max, truncated: false }));
        let (ended, exit) = watch::channel(None);
        let kill = Arc::new(Notify::new());
        let follow = Follow {
            id: id.clone(),
            kept: Arc::clone(&kept),
            kill: Arc::clone(&kill),
            happened: self.happened.clone(),
        };
        let running = tokio::spawn(follow.run(tethered, reader, ended));
        self.open.insert(id.clone(), Terminal { kept, exit, kill, running });
        Ok(id)
    }

    /// What the protocol calls the output: newest text, whether older was dropped, how it ended.
    pub(super) fn output(&self, id: &str) -> Option<Value> {
        let terminal = self.open.get(id)?;
        let kept = terminal.kept.lock();
        let exit = terminal.exit.borrow().map(|exit| exit_status(&exit));
        Some(json!({ "output": kept.text, "truncated": kept.truncated, "exitStatus": exit }))
    }

    /// Resolves when the terminal's command has ended.
    pub(super) fn exit(&self, id: &str) -> Option<watch::Receiver<Option<Exit>>> {
        Some(self.open.get(id)?.exit.clone())
    }

    /// Ends the command with all that it started. The terminal stays. False: there is none.
    pub(super) fn kill(&self, id: &str) -> bool {
        let Some(terminal) = self.open.get(id) else { return false };
        terminal.kill.notify_one();
        true
    }

    /// Ends the command and forgets the terminal. False: there is none.
    pub(super) fn release(&mut self, id: &str) -> bool {
        self.open.remove(id).is_some()
    }

    /// Ends every command and forgets every terminal. Returns those whose end was not said.
    pub(super) fn clear(&mut self) -> Vec<String> {
        let cut =
            |(id, terminal): (String, Terminal)| terminal.exit.borrow().is_none().then_some(id);
        std::mem::take(&mut self.open).into_iter().filter_map(cut).collect()
    }

    fn within(&self, dir: &Path) -> io::Result<PathBuf> {
        let dir = self.dir.join(dir);
        // The command could change its directory itself; this keeps mistakes inside.
        let inside = dir.starts_with(&self.surroundings.workspace)
            && dir.components().all(|part| part != Component::ParentDir);
        if inside {
            Ok(dir)
        } else {
            Err(io::Error::new(
                io::ErrorKind::PermissionDenied,
                "its directory is outside the workspace",
            ))
        }
    }
}

/// How a command ended, as the protocol says it.
pub(super) fn exit_status(exit: &Exit) -> Value {
    json!({ "exitCode": exit.code, "signal": exit.signal.map(|signal| signal.to_string()) })
}

struct Follow {
    id: String,
    kept: Arc<Mutex<Kept>>,
    kill: Arc<Notify>,
    happened: mpsc::Sender<Happened>,
}

impl Follow {
    async fn run(
        self,
        mut tethered: Tethered,
        mut reader: pipe::Receiver,
        ended: watch::Sender<Option<Exit>>,
    ) {
        let mut decoder = Decoder::default();
        let mut buffer = vec![0; 16 * 1024];
        let mut open = true;
        let how = loop {
            tokio::select! {
                how = tethered.ended() => break how,
                () = self.kill.notified() => tethered.kill(),
                read = reader.read(&mut buffer), if open => match read {
                    Ok(count @ 1..) => self.heard(decoder.decode(&buffer[..count])).await,
                    Ok(_) | Err(_) => open = false,
                },
            }
        };
        let rest = async {
            while open && let Ok(count @ 1..) = reader.read(&mut buffer).await {
                self.heard(decoder.decode(&buffer[..count])).await;
            }
        };
        let _held_open = tokio::time::timeout(REST, rest).await;
        let text = decoder.finish();
        self.kept.lock().push(&text);
        let exit = match how {
            Ended::Exit(exit) => exit,
            Ended::Lost => Exit { code: None, signal: Some(9) },
        };
        let last = Happened { terminal: self.id.clone(), text, exit: Some(exit) };
        let _session_over = self.happened.send(last).await;
        ended.send_replace(Some(exit));
        // What it left running lives until the terminal is released, or killed again.
        loop {
            tokio::select! {
                () = tethered.gone() => return,
                () = self.kill.notified() => tethered.kill(),
            }
        }
    }

    async fn heard(&self, text: String) {
        self.kept.lock().push(&text);
        let heard = Happened { terminal: self.id.clone(), text, exit: None };
        let _session_over = self.happened.send(heard).await;
    }
}
