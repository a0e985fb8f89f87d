//! The port to an agent.

use tokio::sync::mpsc;
use wakeful_wire::rpc::{Prompt, RequestId, ThreadId, TurnId};

use crate::thread::command::AgentUpdate;

/// An agent as a template names it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AgentSpec {
    /// Its name in the template.
    pub name: String,
    /// The shell command that runs it and speaks ACP on its standard streams.
    pub command: String,
}

/// What a session is opened with.
#[derive(Debug, Clone)]
pub struct Opening {
    /// The thread.
    pub thread: ThreadId,
    /// The directory of the workspace that it works in; empty: the workspace itself. A path that
    /// leaves the workspace is refused.
    pub project: String,
    /// The agent's own session to go on with, if the thread has one.
    pub session: Option<String>,
    /// The mode that the agent is to be put in, if a person has chosen one.
    pub mode: Option<String>,
}

/// What an agent can be told. Orders are carried out in their order, except that a cancel never
/// waits for the prompt that it cancels.
#[derive(Debug, Clone)]
pub enum Order {
    /// Begin a turn. There is at most one at a time; one that comes during another is refused with
    /// its [`AgentUpdate::TurnEnded`].
    Prompt {
        /// The turn.
        turn: TurnId,
        /// What to do.
        prompt: Prompt,
    },
    /// End the turn. Obeyed within the grace, or else the agent and its tools are killed. Without
    /// effect on a turn that is not running.
    Cancel {
        /// The turn.
        turn: TurnId,
    },
    /// Answer a permission. Without effect on a request that is no longer asked.
    Answer {
        /// The request.
        request: RequestId,
        /// The option, by the agent's id; nothing withdraws the question.
        option: Option<String>,
    },
    /// Change the agent's mode.
    Mode {
        /// The mode, by the agent's id.
        mode: String,
    },
    /// End the session: the turn is cut, the agent is asked to leave, then killed.
    End,
}

/// One thing that an agent says. The last thing of a turn is [`AgentUpdate::TurnEnded`], the last of
/// a session [`AgentUpdate::AgentEnded`].
#[derive(Debug, Clone, PartialEq)]
pub struct Said {
    /// The turn that it belongs to; absent: it came outside of a turn.
    pub turn: Option<TurnId>,
    /// What.
    pub update: AgentUpdate,
}

/// How many sayings wait to be taken before the agent is no longer read.
pub const SAID_MAX: usize = 64;
/// How many orders wait. Only a host that floods a session can fill it, and then it waits.
const ORDERS_MAX: usize = 64;

/// One session of an agent, for one thread.
///
/// Dropping it ends the session as [`Order::End`] does, without anybody to hear of it.
#[derive(Debug)]
pub struct Session {
    /// What it is told. A closed channel: it has ended, or is about to say so.
    pub orders: mpsc::Sender<Order>,
    /// What it says. Ends after [`AgentUpdate::AgentEnded`].
    pub said: mpsc::Receiver<Said>,
}

/// The other side of a [`Session`].
#[derive(Debug)]
pub(super) struct Desk {
    pub(super) orders: mpsc::Receiver<Order>,
    pub(super) said: mpsc::Sender<Said>,
}

impl Session {
    /// A session and its other side.
    pub(super) fn pair() -> (Self, Desk) {
        let (to_agent, orders) = mpsc::channel(ORDERS_MAX);
        let (said, from_agent) = mpsc::channel(SAID_MAX);
        (Self { orders: to_agent, said: from_agent }, Desk { orders, said })
    }
}

/// Something that can work in threads.
///
/// What holds for every implementation: each [`Order::Prompt`] that was taken is answered by exactly
/// one [`AgentUpdate::TurnEnded`] of its turn; nothing of a turn is said before its prompt was taken;
/// [`AgentUpdate::AgentEnded`] comes once, last, after the end of a running turn, when none of its processes is
/// left; a failure to start is said by them, too.
pub trait Agent: Send + Sync + std::fmt::Debug {
    /// Opens a session. Needs a tokio runtime; returns at once.
    fn open(&self, opening: Opening) -> Session;
}
