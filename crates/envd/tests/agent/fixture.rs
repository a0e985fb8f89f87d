//! Sessions of real agents, and what they say.

use std::{
    ffi::OsString,
    path::{Path, PathBuf},
    time::Duration,
};

use serde_json::Value;
use uuid::Uuid;
use wakeful_envd::{
    agent::{
        AcpAgent, Agent, AgentLimits, AgentSpec, Opening, Order, Said, Session, ShellAgent,
        Surroundings,
    },
    thread::command::AgentUpdate,
};
use wakeful_wire::rpc::{ClientId, Outcome, Prompt, StopReason, ThreadId, TurnId};

/// Far longer than anything here takes on a busy machine.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// A workspace and where agents run.
pub(crate) struct Place {
    _dir: tempfile::TempDir,
    pub(crate) surroundings: Surroundings,
}

impl Place {
    pub(crate) fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let (workspace, scratch) = (dir.path().join("workspace"), dir.path().join("scratch"));
        std::fs::create_dir_all(&workspace).unwrap();
        std::fs::create_dir_all(&scratch).unwrap();
        let path = std::env::var_os("PATH").unwrap_or_default();
        let env = vec![
            (OsString::from("PATH"), path),
            (OsString::from("HOME"), scratch.clone().into_os_string()),
        ];
        let program = PathBuf::from(env!("CARGO_BIN_EXE_wakeful-envd-harness"));
        Self { _dir: dir, surroundings: Surroundings { program, env, workspace, scratch } }
    }

    pub(crate) fn workspace(&self) -> &Path {
        &self.surroundings.workspace
    }

    /// The scripted agent, started with `words`. One that obeys is given the time that it takes.
    pub(crate) fn fake(&self, words: &str) -> AcpAgent {
        let obeys = !words.split(' ').any(|word| word == "deaf");
        self.fake_within(words, if obeys { AgentLimits::default() } else { quick() })
    }

    pub(crate) fn fake_within(&self, words: &str, limits: AgentLimits) -> AcpAgent {
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/agent/fake_agent.py");
        let command = format!("exec python3 -u {} {words}", script.display());
        let spec = AgentSpec { name: "fake".to_owned(), command };
        AcpAgent::new(spec, self.surroundings.clone(), limits)
    }

    pub(crate) fn shell(&self) -> ShellAgent {
        self.shell_within(quick())
    }

    pub(crate) fn shell_within(&self, limits: AgentLimits) -> ShellAgent {
        ShellAgent::new(self.surroundings.clone(), limits)
    }

    /// The live processes that were started here, and what each runs.
    pub(crate) fn processes(&self) -> Vec<(i32, String)> {
        let home = format!("HOME={}", self.surroundings.scratch.display());
        let read = |pid: i32, name: &str| {
            let bytes = std::fs::read(format!("/proc/{pid}/{name}")).unwrap_or_default();
            String::from_utf8_lossy(&bytes).replace('\0', "\n")
        };
        std::fs::read_dir("/proc")
            .unwrap()
            .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
            .filter(|pid| read(*pid, "environ").lines().any(|line| line == home))
            .filter(|pid| lives(*pid))
            .map(|pid| (pid, read(pid, "cmdline")))
            .collect()
    }

    /// Kills every process started here whose program's path holds `program`. Returns how many.
    pub(crate) fn kill(&self, program: &str) -> usize {
        let first = |command: &str| command.lines().next().unwrap_or_default().contains(program);
        let found: Vec<_> =
            self.processes().into_iter().filter(|(_, command)| first(command)).collect();
        for (pid, _) in &found {
            let pid = rustix::process::Pid::from_raw(*pid).unwrap();
            let _gone = rustix::process::kill_process(pid, rustix::process::Signal::KILL);
        }
        found.len()
    }

    /// What the scripted agent's processes said beside the protocol.
    pub(crate) fn remarks(&self) -> String {
        std::fs::read_to_string(self.surroundings.scratch.join("agent-fake.log")).unwrap()
    }
}

/// Short where waiting is what is tested.
pub(crate) fn quick() -> AgentLimits {
    AgentLimits { cancel_grace: Duration::from_millis(600), ..AgentLimits::default() }
}

pub(crate) fn opening(session: Option<&str>) -> Opening {
    Opening {
        thread: ThreadId::from_uuid(Uuid::new_v4()),
        project: String::new(),
        session: session.map(str::to_owned),
        mode: None,
    }
}

pub(crate) fn a_prompt(text: &str) -> Prompt {
    Prompt::text(ClientId::from_uuid(Uuid::new_v4()), text)
}

/// A session that is being talked to.
pub(crate) struct Talk {
    pub(crate) session: Session,
    /// Everything that was said so far.
    pub(crate) heard: Vec<Said>,
}

impl Talk {
    pub(crate) fn open(agent: &dyn Agent, opening: Opening) -> Self {
        Self { session: agent.open(opening), heard: Vec::new() }
    }

    pub(crate) async fn order(&self, order: Order) {
        self.session.orders.send(order).await.unwrap();
    }

    pub(crate) async fn begin(&self, text: &str) -> TurnId {
        let turn = TurnId::from_uuid(Uuid::new_v4());
        self.order(Order::Prompt { turn, prompt: a_prompt(text) }).await;
        turn
    }

    /// Begins a turn of the scripted agent.
    pub(crate) async fn play(&self, steps: Value) -> TurnId {
        self.begin(&steps.to_string()).await
    }

    /// The next thing said; nothing at the end.
    pub(crate) async fn next(&mut self) -> Option<Said> {
        let next = tokio::time::timeout(PATIENCE, self.session.said.recv()).await;
        let said = next.expect("the agent says nothing")?;
        self.heard.push(said.clone());
        Some(said)
    }

    /// Waits for something; fails if the session ends before.
    pub(crate) async fn until(&mut self, wanted: impl Fn(&AgentUpdate) -> bool) -> AgentUpdate {
        loop {
            let said = self.next().await;
            let said = said.unwrap_or_else(|| panic!("the session ended after {:?}", self.heard));
            if wanted(&said.update) {
                return said.update;
            }
        }
    }

    /// Waits for the end of a turn.
    pub(crate) async fn end_of(&mut self, turn: TurnId) -> Outcome {
        loop {
            let said = self.next().await;
            let said = said.unwrap_or_else(|| panic!("the session ended after {:?}", self.heard));
            if let (Some(of), AgentUpdate::TurnEnded(outcome)) = (said.turn, said.update)
                && of == turn
            {
                return outcome;
            }
        }
    }

    /// A whole turn of the scripted agent.
    pub(crate) async fn turn(&mut self, steps: Value) -> Outcome {
        let turn = self.play(steps).await;
        self.end_of(turn).await
    }

    /// Waits for text.
    pub(crate) async fn until_text(&mut self, wanted: &str) {
        while !self.text().contains(wanted) {
            self.next().await.unwrap_or_else(|| panic!("no `{wanted}` in {:?}", self.text()));
        }
    }

    /// Everything up to the end of the session, and why it ended.
    pub(crate) async fn hear_the_end(&mut self) -> String {
        while self.next().await.is_some() {}
        match &self.heard.last().unwrap().update {
            AgentUpdate::AgentEnded { why } => why.clone(),
            other => panic!("the last thing said is {other:?}"),
        }
    }

    /// All text of the agent, joined.
    pub(crate) fn text(&self) -> String {
        let text = |said: &Said| match &said.update {
            AgentUpdate::Text { text, .. } => Some(text.clone()),
            _ => None,
        };
        self.heard.iter().filter_map(text).collect()
    }

    pub(crate) fn notices(&self) -> String {
        let text = |said: &Said| match &said.update {
            AgentUpdate::Notice { text, .. } => Some(format!("{text}\n")),
            _ => None,
        };
        self.heard.iter().filter_map(text).collect()
    }

    /// All output of terminals, joined.
    pub(crate) fn output(&self) -> String {
        let text = |said: &Said| match &said.update {
            AgentUpdate::Terminal { text, .. } => Some(text.clone()),
            _ => None,
        };
        self.heard.iter().filter_map(text).collect()
    }

    /// The session of its own that the agent last named.
    pub(crate) fn bound(&self) -> Option<String> {
        let bound = |said: &Said| match &said.update {
            AgentUpdate::Session(session) => Some(session.clone()),
            _ => None,
        };
        self.heard.iter().rev().find_map(bound)
    }

    /// How many turns ended, each of which must have ended once.
    pub(crate) fn ends(&self) -> usize {
        let mut turns: Vec<_> = self
            .heard
            .iter()
            .filter(|said| matches!(said.update, AgentUpdate::TurnEnded(_)))
            .map(|said| said.turn.unwrap())
            .collect();
        let many = turns.len();
        turns.sort_unstable();
        turns.dedup();
        assert_eq!(turns.len(), many, "a turn ended twice");
        many
    }
}

pub(crate) const DONE: Outcome = Outcome::Completed { reason: StopReason::EndTurn };

/// Whether a process is there and no corpse.
pub(crate) fn lives(pid: i32) -> bool {
    let Ok(stat) = std::fs::read_to_string(format!("/proc/{pid}/stat")) else { return false };
    stat.rsplit_once(')').is_some_and(|(_, rest)| !rest.trim_start().starts_with(['Z', 'X']))
}

/// Waits for something that nobody announces.
pub(crate) async fn eventually(what: &str, holds: impl Fn() -> bool) {
    let until = tokio::time::Instant::now() + PATIENCE;
    while !holds() {
        assert!(tokio::time::Instant::now() < until, "{what} never came true");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

/// The process id in `pid N`.
pub(crate) fn pid_in(text: &str) -> i32 {
    let rest = text.split_once("pid ").unwrap().1;
    rest.chars().take_while(char::is_ascii_digit).collect::<String>().parse().unwrap()
}
