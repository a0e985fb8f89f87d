//! Agents that speak the Agent Client Protocol, version 1, on their standard streams.
//!
//! The messages are the crate `agent-client-protocol`'s; the connection is ours, because a host
//! needs what the crate's cannot give: lines that are no messages are noise and never answered,
//! nothing queues without bound between the pipe and the log, one line that is too long or that
//! nobody understands costs only itself, and updates keep their order around a prompt's answer
//! without exception.
//!
//! There is one process per thread, started when the first order comes and ended with the session,
//! so no two processes of this host ever have one of the agent's sessions open.

mod files;
mod lines;
mod permissions;
mod process;
mod session;
mod terminals;
mod update;

use std::{sync::Arc, time::Duration};

use parking_lot::Mutex;

use self::process::Remarks;
use super::{
    port::{Agent, AgentSpec, Opening, Session},
    tethered::Surroundings,
};
use crate::bounded_log::{BoundedLog, LOG_MAX};

/// How long an agent may take, and how much it may say in one line.
#[derive(Debug, Clone)]
pub struct AgentLimits {
    /// From the start of its process to an open session.
    pub open: Duration,
    /// The longest turn. A longer one is cancelled and has failed.
    pub turn: Duration,
    /// From a cancel to the end of the turn. Then the agent and its tools are killed.
    pub cancel_grace: Duration,
    /// The longest line, in bytes. A longer one is left out, and said so.
    pub line: usize,
}

impl Default for AgentLimits {
    fn default() -> Self {
        Self {
            open: Duration::from_secs(120),
            turn: Duration::from_secs(4 * 60 * 60),
            cancel_grace: Duration::from_secs(10),
            line: 32 * 1024 * 1024,
        }
    }
}

/// An agent of a template, run by its command.
#[derive(Debug)]
pub struct AcpAgent {
    spec: AgentSpec,
    surroundings: Surroundings,
    limits: AgentLimits,
    remarks: Remarks,
}

impl AcpAgent {
    /// What its processes say beside the protocol goes to `agent-NAME.log` in the scratch
    /// directory, which holds at most twice 1 MiB with its older file.
    #[must_use]
    pub fn new(spec: AgentSpec, surroundings: Surroundings, limits: AgentLimits) -> Self {
        let name: String = spec
            .name
            .chars()
            .map(|c| if c.is_ascii_alphanumeric() || c == '-' { c } else { '_' })
            .take(64)
            .collect();
        let path = surroundings.scratch.join(format!("agent-{name}.log"));
        let remarks = Arc::new(Mutex::new(BoundedLog::open(path, LOG_MAX).ok()));
        Self { spec, surroundings, limits, remarks }
    }
}

impl Agent for AcpAgent {
    fn open(&self, opening: Opening) -> Session {
        let (session, desk) = Session::pair();
        let acp = session::Setting {
            spec: self.spec.clone(),
            surroundings: self.surroundings.clone(),
            limits: self.limits.clone(),
            remarks: Arc::clone(&self.remarks),
            opening,
        };
        tokio::spawn(session::run(acp, desk));
        session
    }
}
