//! From the start of the process to an open session.

use std::time::Duration;

use agent_client_protocol::{
    schema::ProtocolVersion,
    v1::schema::{
        ClientCapabilities, FileSystemCapabilities, Implementation, InitializeRequest,
        LoadSessionRequest, NewSessionRequest, ResumeSessionRequest, SetSessionModeRequest,
    },
};
use serde::Serialize;
use serde_json::Value;
use tokio::time::Instant;
use wakeful_wire::rpc::{NoticeLevel, Outcome};

use super::{Acp, Expected, Fault, Over, describe};
use crate::{
    agent::limits::{NAME, cut_end},
    thread::{command::AgentUpdate, limits::NAME_MAX},
};

/// How far a session is.
#[derive(Debug)]
pub(super) struct Phase {
    until: Option<Instant>,
    session: Option<String>,
    replaying: bool,
}

impl Phase {
    pub(super) fn begin(open: Duration) -> Self {
        Self { until: Some(Instant::now() + open), session: None, replaying: false }
    }

    /// When it has taken too long.
    pub(super) const fn due(&self) -> Option<Instant> {
        self.until
    }

    /// The agent's id of the session, once it is open.
    pub(super) fn session(&self) -> Option<&str> {
        self.session.as_deref()
    }

    /// Whether the agent tells now what it remembers. The answer to the load is its end.
    pub(super) const fn is_replaying(&self) -> bool {
        self.replaying
    }
}

/// The protocol's types cannot fail to become JSON.
pub(super) fn params(message: &impl Serialize) -> Value {
    serde_json::to_value(message).unwrap_or_default()
}

impl Acp {
    pub(super) fn initialize(&mut self) -> Result<(), Over> {
        let files = FileSystemCapabilities::new().read_text_file(true).write_text_file(true);
        let request = InitializeRequest::new(ProtocolVersion::V1)
            .client_capabilities(ClientCapabilities::new().fs(files).terminal(true))
            .client_info(Implementation::new("wakeful", env!("CARGO_PKG_VERSION")));
        self.request(Expected::Initialize, "initialize", &params(&request))
    }

    pub(super) async fn initialized(&mut self, result: Result<Value, Fault>) -> Result<(), Over> {
        let answer = result.map_err(|fault| self.unopened(&describe(&fault)))?;
        let version = answer.get("protocolVersion").and_then(Value::as_u64);
        if version != Some(1) {
            return Err(self.unopened("it does not speak version 1 of the protocol"));
        }
        let capabilities = answer.get("agentCapabilities");
        let can =
            |path: &[&str]| path.iter().try_fold(capabilities?, |value, name| value.get(name));
        let loads = can(&["loadSession"]).and_then(Value::as_bool).unwrap_or(false);
        let resumes = can(&["sessionCapabilities", "resume"]).is_some_and(Value::is_object);
        let Some(session) = self.setting.opening.session.clone() else { return self.open_new() };
        let dir = self.terminals.dir().to_owned();
        // Without a replay where that can be had: the thread's own log is whole.
        if resumes {
            let request = ResumeSessionRequest::new(session, dir);
            let expected = Expected::Session { replays: false, again: true };
            self.request(expected, "session/resume", &params(&request))
        } else if loads {
            self.phase.replaying = true;
            let request = LoadSessionRequest::new(session, dir);
            let expected = Expected::Session { replays: true, again: true };
            self.request(expected, "session/load", &params(&request))
        } else {
            self.forgotten("it cannot go on with an earlier session").await?;
            self.open_new()
        }
    }

    pub(super) async fn opened(
        &mut self,
        result: Result<Value, Fault>,
        replays: bool,
        again: bool,
    ) -> Result<(), Over> {
        if replays {
            self.phase.replaying = false;
        }
        let answer = match result {
            Ok(answer) => answer,
            Err(fault) if again => {
                self.forgotten(&describe(&fault)).await?;
                return self.open_new();
            }
            Err(fault) => return Err(self.unopened(&describe(&fault))),
        };
        let given = answer.get("sessionId").and_then(Value::as_str).map(str::to_owned);
        let session = if again { self.setting.opening.session.clone() } else { given };
        let Some(session) = session.filter(|session| session.len() <= NAME) else {
            return Err(self.unopened("it gave no session"));
        };
        self.phase.until = None;
        self.phase.session = Some(session.clone());
        // A longer one would be cut, and could not be found again after a restart.
        if session.len() <= NAME_MAX {
            self.pen.say(AgentUpdate::Session(session)).await?;
        }
        let mode = answer
            .get("modes")
            .and_then(|modes| modes.get("currentModeId"))
            .and_then(Value::as_str)
            .map(|mode| cut_end(mode.to_owned(), NAME));
        if let Some(mode) = &mode {
            self.pen.say(AgentUpdate::Mode(mode.clone())).await?;
        }
        if let Some(wanted) =
            self.setting.opening.mode.take().filter(|it| Some(it) != mode.as_ref())
        {
            self.set_mode(wanted)?;
        }
        self.send_waiting()
    }

    fn open_new(&mut self) -> Result<(), Over> {
        let request = NewSessionRequest::new(self.terminals.dir());
        let expected = Expected::Session { replays: false, again: false };
        self.request(expected, "session/new", &params(&request))
    }

    /// Says that the agent begins anew.
    async fn forgotten(&mut self, why: &str) -> Result<(), Over> {
        let text = format!("the agent begins a new session and remembers nothing of before: {why}");
        Ok(self.pen.notice(NoticeLevel::Warning, text).await?)
    }

    /// The agent cannot be worked with.
    pub(super) fn unopened(&self, why: &str) -> Over {
        let message = format!("the agent did not start: {why}");
        Over::Kill(Outcome::Failed { message }, why.to_owned())
    }

    pub(super) fn set_mode(&mut self, mode: String) -> Result<(), Over> {
        let Some(session) = self.phase.session() else {
            self.setting.opening.mode = Some(mode);
            return Ok(());
        };
        let request = SetSessionModeRequest::new(session.to_owned(), mode.clone());
        self.request(Expected::Mode(mode), "session/set_mode", &params(&request))
    }
}
