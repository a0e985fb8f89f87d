//! The built-in agent that runs commands.
//!
//! Each prompt is a command, run by `sh -c` in the thread's directory, in a real terminal of its
//! own. It needs no key and no model. The turn has completed when the command has ended with status
//! 0, and has failed otherwise, so that what waits in the queue does not go on after a failure.
//!
//! The working directory is kept from prompt to prompt. It is the agent's session (`cwd:PATH`, with
//! PATH relative to the workspace), so it outlives the host as every session does. What a command
//! leaves running on purpose (`nohup`, `setsid`) lives as long as the session.

mod command;

use std::{
    io,
    path::{Path, PathBuf},
    time::Duration,
};

use tokio::sync::mpsc;
use wakeful_wire::rpc::{
    NoticeLevel, Outcome, Prompt, ToolContent, ToolKind, ToolPatch, ToolStatus, TurnId,
};

use self::command::Done;
use super::{
    acp::AgentLimits,
    limits::{NAME, cut_end},
    pen::{Pen, Unheard},
    port::{Agent, Desk, Opening, Order, Session},
    pty::Terminal,
    tethered::{Start, Streams, Surroundings, Tethered},
};
use crate::thread::{command::AgentUpdate, limits::NAME_MAX};

/// The name by which threads ask for this agent.
pub const SHELL: &str = "shell";

/// Runs the command that it is given as its first argument, then notes where it ended.
const SCRIPT: &str = "trap 'pwd -P >\"$WAKEFUL_CWD\"' EXIT\neval \"shift\n$1\"";
/// The longest path that is read back.
const PATH_BYTES: u64 = 4096;

/// The built-in agent.
#[derive(Debug)]
pub struct ShellAgent {
    surroundings: Surroundings,
    limits: AgentLimits,
}

impl ShellAgent {
    /// Uses of the limits the turn's and the cancel's grace: SIGINT at once, SIGTERM after half of
    /// the grace, SIGKILL at its end.
    #[must_use]
    pub const fn new(surroundings: Surroundings, limits: AgentLimits) -> Self {
        Self { surroundings, limits }
    }
}

impl Agent for ShellAgent {
    fn open(&self, opening: Opening) -> Session {
        let (session, desk) = Session::pair();
        let shell = Shell {
            surroundings: self.surroundings.clone(),
            limits: self.limits.clone(),
            pen: Pen::new(desk.said.clone()),
            dir: PathBuf::new(),
            commands: 0,
            left: Vec::new(),
        };
        tokio::spawn(shell.run(opening, desk));
        session
    }
}

struct Shell {
    surroundings: Surroundings,
    limits: AgentLimits,
    pen: Pen,
    /// Relative to the workspace.
    dir: PathBuf,
    commands: u32,
    left: Vec<Tethered>,
}

impl Shell {
    async fn run(mut self, opening: Opening, desk: Desk) {
        let Desk { mut orders, said } = desk;
        drop(said);
        let _unheard = self.serve(opening, &mut orders).await;
        for mut left in std::mem::take(&mut self.left) {
            left.kill();
            let _hung = tokio::time::timeout(Duration::from_secs(5), left.gone()).await;
        }
        let why = "the session was ended".to_owned();
        let _unheard = self.pen.say(AgentUpdate::AgentEnded { why }).await;
    }

    async fn serve(
        &mut self,
        opening: Opening,
        orders: &mut mpsc::Receiver<Order>,
    ) -> Result<(), Unheard> {
        self.dir = PathBuf::from(opening.project);
        if let Some(kept) = opening.session.as_deref().and_then(|text| text.strip_prefix("cwd:"))
            && is_inside(&self.surroundings.workspace, Path::new(kept))
        {
            self.dir = PathBuf::from(kept);
        }
        while let Some(order) = orders.recv().await {
            match order {
                Order::Prompt { turn, prompt } => {
                    self.pen.begin(turn).await?;
                    let done = self.turn(turn, &prompt, orders).await?;
                    let (outcome, stop) = match done {
                        Ok(done) => (done.outcome, done.stop),
                        Err(error) => {
                            let message = format!("the command could not be started: {error}");
                            (Outcome::Failed { message }, false)
                        }
                    };
                    self.pen.end(AgentUpdate::TurnEnded(outcome)).await?;
                    if stop {
                        return Ok(());
                    }
                }
                Order::End => return Ok(()),
                Order::Cancel { .. } | Order::Answer { .. } | Order::Mode { .. } => {}
            }
        }
        Ok(())
    }

    async fn turn(
        &mut self,
        turn: TurnId,
        prompt: &Prompt,
        orders: &mut mpsc::Receiver<Order>,
    ) -> Result<io::Result<Done>, Unheard> {
        if !is_inside(&self.surroundings.workspace, &self.dir) {
            let text = "the working directory is gone; the workspace is used instead";
            self.pen.notice(NoticeLevel::Warning, text).await?;
            self.dir = PathBuf::new();
        }
        self.say_session().await?;
        let command = prompt.plain();
        self.commands += 1;
        // Unique in the thread, also after a restart.
        let id = format!("{turn}-{}", self.commands);
        let note = self.surroundings.scratch.join(format!("cwd-{id}"));
        let started = Terminal::open().and_then(|(terminal, theirs)| {
            let dir = self.surroundings.workspace.join(&self.dir);
            let mut start = Start::shell(SCRIPT, &[&command], dir);
            start.env.push(("TERM".into(), "xterm-256color".into()));
            start.env.push(("WAKEFUL_CWD".into(), note.clone().into()));
            let streams = Streams::Terminal(theirs);
            Ok((terminal, Tethered::start(&self.surroundings, &start, streams)?))
        });
        let (terminal, tethered) = match started {
            Ok(started) => started,
            Err(error) => return Ok(Err(error)),
        };
        self.pen
            .say(AgentUpdate::Tool(ToolPatch {
                id: id.clone(),
                title: Some(cut_end(command, NAME)),
                kind: Some(ToolKind::Execute),
                status: Some(ToolStatus::InProgress),
                content: Some(vec![ToolContent::Terminal { terminal: id.clone() }]),
                ..ToolPatch::default()
            }))
            .await?;
        let done = self.follow(turn, &id, terminal, tethered, orders).await?;
        let exit = Some(done.exit);
        self.pen
            .say(AgentUpdate::Terminal { terminal: id.clone(), text: String::new(), exit })
            .await?;
        let completed = matches!(done.outcome, Outcome::Completed { .. });
        let status = if completed { ToolStatus::Completed } else { ToolStatus::Failed };
        self.pen
            .say(AgentUpdate::Tool(ToolPatch { id, status: Some(status), ..ToolPatch::default() }))
            .await?;
        self.moved(&note).await?;
        Ok(Ok(done))
    }

    /// Reads where the command ended; a command that did not say stays where it was.
    async fn moved(&mut self, note: &Path) -> Result<(), Unheard> {
        let workspace = self.surroundings.workspace.canonicalize();
        let dir = read_note(note);
        let _never_written = std::fs::remove_file(note);
        let (Ok(workspace), Some(dir)) = (workspace, dir) else { return Ok(()) };
        let Ok(relative) = dir.strip_prefix(&workspace) else {
            if dir != workspace.join(&self.dir) {
                let text = "the command ended outside the workspace; the next one begins in it";
                self.pen.notice(NoticeLevel::Info, text).await?;
            }
            return Ok(());
        };
        if relative == self.dir {
            return Ok(());
        }
        self.dir = relative.to_owned();
        self.say_session().await
    }

    async fn say_session(&mut self) -> Result<(), Unheard> {
        // A directory whose name is no text, or is too long, cannot be kept, only used.
        let Some(dir) = self.dir.to_str() else { return Ok(()) };
        let session = format!("cwd:{dir}");
        if session.len() > NAME_MAX {
            return Ok(());
        }
        self.pen.say(AgentUpdate::Session(session)).await
    }
}

/// Whether `dir` is a directory of the workspace.
fn is_inside(workspace: &Path, dir: &Path) -> bool {
    let (Ok(root), Ok(dir)) = (workspace.canonicalize(), workspace.join(dir).canonicalize()) else {
        return false;
    };
    dir.starts_with(root) && dir.is_dir()
}

fn read_note(note: &Path) -> Option<PathBuf> {
    use std::{io::Read, os::unix::ffi::OsStringExt};
    let mut bytes = Vec::new();
    std::fs::File::open(note).ok()?.take(PATH_BYTES).read_to_end(&mut bytes).ok()?;
    let path = bytes.strip_suffix(b"\n")?.to_vec();
    Some(PathBuf::from(std::ffi::OsString::from_vec(path)))
}
