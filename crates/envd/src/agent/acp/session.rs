//! One session: the task that owns an agent's process and everything that is open with it.

mod asked;
mod finish;
mod heard;
mod opening;
mod turn;

use std::{
    path::{Component, Path, PathBuf},
    sync::Arc,
};

use tokio::{
    sync::{Semaphore, mpsc},
    time::Instant,
};
use wakeful_wire::rpc::Outcome;

use self::{opening::Phase, turn::Turn};
use super::{
    AgentLimits,
    files::Files,
    lines::Fault,
    permissions::Permissions,
    process::{Process, Remarks},
    terminals::{Happened, Terminals},
};
use crate::{
    agent::{
        limits::cut_end,
        pen::{Pen, Unheard},
        port::{AgentSpec, Desk, Opening, Order},
        tethered::{Start, Surroundings},
    },
    thread::command::AgentUpdate,
};

/// How many of the agent's requests are served at once; a further one is refused.
const SERVED_MAX: usize = 64;
/// How many happenings of terminals wait.
const HAPPENED_MAX: usize = 64;
/// How long what an agent wrote before its end may take to be read.
const REST: std::time::Duration = std::time::Duration::from_secs(2);

/// All that a session begins with.
#[derive(Debug)]
pub(super) struct Setting {
    pub(super) spec: AgentSpec,
    pub(super) surroundings: Surroundings,
    pub(super) limits: AgentLimits,
    pub(super) remarks: Remarks,
    pub(super) opening: Opening,
}

/// Why a session is over.
#[derive(Debug)]
enum Over {
    /// The host wants it, or listens no longer.
    Stop,
    /// The agent's process has ended, or has closed its output.
    Gone,
    /// It must be killed: the turn ends like this, and this is why.
    Kill(Outcome, String),
}

impl From<Unheard> for Over {
    fn from(Unheard: Unheard) -> Self {
        Self::Stop
    }
}

/// What an answer of the agent is awaited for.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Expected {
    Initialize,
    Session { replays: bool, again: bool },
    Prompt,
    Mode(String),
}

struct Acp {
    setting: Setting,
    pen: Pen,
    process: Process,
    phase: Phase,
    turn: Option<Turn>,
    expected: Vec<(u64, Expected)>,
    next_id: u64,
    permissions: Permissions,
    files: Files,
    terminals: Terminals,
    served: Arc<Semaphore>,
    /// Whether it has said already that it could not read something.
    puzzled: bool,
}

/// Runs a session until it is over.
pub(super) async fn run(setting: Setting, mut desk: Desk) {
    let mut pen = Pen::new(desk.said.clone());
    drop(desk.said);
    // Nothing is started for a session that is never used.
    let Some(first) = desk.orders.recv().await else { return };
    let (happened, mut happening) = mpsc::channel(HAPPENED_MAX);
    let started =
        directory(&setting.surroundings.workspace, &setting.opening.project).and_then(|dir| {
            let start = Start::shell(&setting.spec.command, &[], dir.clone());
            let Setting { surroundings, limits, remarks, .. } = &setting;
            let process = Process::start(surroundings, &start, limits.line, remarks)
                .map_err(|error| error.to_string())?;
            Ok((dir, process))
        });
    let (dir, process) = match started {
        Ok(started) => started,
        Err(error) => return refuse(&mut pen, first, &error).await,
    };
    let relative = PathBuf::from(&setting.opening.project);
    let mut acp = Acp {
        files: Files::new(setting.surroundings.workspace.clone(), relative),
        terminals: Terminals::new(setting.surroundings.clone(), dir, happened),
        phase: Phase::begin(setting.limits.open),
        setting,
        pen,
        process,
        turn: None,
        expected: Vec::new(),
        next_id: 0,
        permissions: Permissions::default(),
        served: Arc::new(Semaphore::new(SERVED_MAX)),
        puzzled: false,
    };
    let over = acp.work(first, &mut desk.orders, &mut happening).await;
    drop(happening);
    let _unheard = acp.finish(over).await;
}

/// Says that nothing could be started.
async fn refuse(pen: &mut Pen, first: Order, error: &str) {
    let why = format!("the agent could not be started: {error}");
    let said = async {
        if let Order::Prompt { turn, .. } = first {
            pen.begin(turn).await?;
            pen.end(AgentUpdate::TurnEnded(Outcome::Failed { message: why.clone() })).await?;
        }
        pen.say(AgentUpdate::AgentEnded { why }).await
    };
    let _unheard: Result<(), Unheard> = said.await;
}

/// The directory of a project, which must be in the workspace.
fn directory(workspace: &Path, project: &str) -> Result<PathBuf, String> {
    let project = Path::new(project);
    let inside = project.components().all(|part| matches!(part, Component::Normal(_)));
    let dir = workspace.join(project);
    if !inside {
        return Err("its directory is outside the workspace".to_owned());
    }
    // A link that leads out would be followed by every program anyway; the first step is checked so
    // that a planted one is at least noticed.
    match (dir.canonicalize(), workspace.canonicalize()) {
        (Ok(dir), Ok(workspace)) if dir.starts_with(&workspace) => {}
        (Ok(_), Ok(_)) => return Err("its directory is outside the workspace".to_owned()),
        (Err(error), _) | (_, Err(error)) => return Err(format!("its directory: {error}")),
    }
    Ok(dir)
}

impl Acp {
    async fn work(
        &mut self,
        first: Order,
        orders: &mut mpsc::Receiver<Order>,
        happening: &mut mpsc::Receiver<Happened>,
    ) -> Over {
        let begun = async {
            self.initialize()?;
            self.order(first).await
        };
        if let Err(over) = begun.await {
            return over;
        }
        loop {
            let due = self.due();
            let step = tokio::select! {
                biased;
                order = orders.recv() => match order {
                    Some(Order::End) | None => return Over::Stop,
                    Some(order) => self.order(order).await,
                },
                () = at(due) => self.time().await,
                line = self.process.lines.recv() => match line {
                    Some(line) => self.line(line).await,
                    None => return Over::Gone,
                },
                Some(happened) = happening.recv() => self.happened(happened).await,
                _how = self.process.tethered.ended() => self.rest().await,
            };
            if let Err(over) = step {
                return over;
            }
        }
    }

    /// The next moment at which something is due.
    fn due(&self) -> Option<Instant> {
        [self.pen.due(), self.phase.due(), self.turn.as_ref().map(Turn::due)]
            .into_iter()
            .flatten()
            .min()
    }

    async fn time(&mut self) -> Result<(), Over> {
        let now = Instant::now();
        if self.pen.due().is_some_and(|due| due <= now) {
            self.pen.flush().await?;
        }
        if self.phase.due().is_some_and(|due| due <= now) {
            return Err(self.unopened("it did not answer in time"));
        }
        self.turn_time(now).await
    }

    /// The process has ended: what it wrote before is still read.
    async fn rest(&mut self) -> Result<(), Over> {
        let until = Instant::now() + REST;
        while let Ok(Some(line)) = tokio::time::timeout_at(until, self.process.lines.recv()).await {
            self.line(line).await?;
        }
        Err(Over::Gone)
    }

    async fn order(&mut self, order: Order) -> Result<(), Over> {
        match order {
            Order::Prompt { turn, prompt } => self.prompt(turn, prompt).await,
            Order::Cancel { turn } => self.cancel(turn).await,
            Order::Answer { request, option } => self.answer(request, option).await,
            Order::Mode { mode } => self.set_mode(mode),
            Order::End => Err(Over::Stop),
        }
    }
}

/// An agent that has stopped reading cannot be worked with.
fn written(sent: bool) -> Result<(), Over> {
    if sent {
        return Ok(());
    }
    let why = "it stopped reading what it was sent".to_owned();
    Err(Over::Kill(Outcome::Failed { message: format!("the agent was ended: {why}") }, why))
}

/// An agent's error, for people.
fn describe(fault: &Fault) -> String {
    let message = cut_end(fault.message.clone(), 1024);
    match fault.code {
        -32000 => format!("it needs to be signed in ({message})"),
        code if message.is_empty() => format!("error {code}"),
        _ => message,
    }
}

async fn at(moment: Option<Instant>) {
    match moment {
        Some(moment) => tokio::time::sleep_until(moment).await,
        None => std::future::pending().await,
    }
}
