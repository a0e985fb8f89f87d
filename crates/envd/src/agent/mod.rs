//! Agents: what works in a thread.
//!
//! An [`Agent`] opens a [`Session`] for one thread: orders go in, what it says comes out, both in
//! order and bounded. [`AcpAgent`] speaks the Agent Client Protocol with any program that does,
//! [`ShellAgent`] runs each prompt as a command in a real terminal. A [`Runner`] binds the threads
//! of a host to their agents: it starts queued prompts in order, one turn at a time per thread, and
//! holds the environment awake while one runs.
//!
//! # What can happen at once, and why it is safe
//!
//! One task owns a session: it alone reads the agent's lines, keeps what is pending and says what
//! happened, so the order of the wire is the order of the log. The agent's output is read only as
//! fast as the log takes it: the bounded channel fills, the task stops reading, the pipe fills and
//! the agent waits. An order never waits behind output that nobody takes, because the runner takes
//! output until the session's end, whatever else happens.
//!
//! A turn begins with [`Order::Prompt`] and ends with exactly one `TurnEnded`, whichever of
//! these comes first: the agent's answer, the end of the grace after a cancel, the turn limit, the
//! end of the process, the end of the session. Whoever ends it takes the turn out of its place, so
//! nobody can end it twice. What an agent says outside a turn is said as it comes and belongs to no
//! turn.
//!
//! Every process of an agent lives below a tether of its own (`tether`), which is how a tool that
//! has left its agent's process group is found and ended.

mod acp;
mod limits;
mod pen;
mod port;
mod pty;
mod runner;

mod shell;
mod tether;
mod tethered;

pub use acp::{AcpAgent, AgentLimits};
pub use port::{Agent, AgentSpec, Opening, Order, SAID_MAX, Said, Session};

pub use runner::{Lease, Leases, NotTaken, Reports, Runner, RunnerLimits};
pub use shell::{SHELL, ShellAgent};
pub use tether::tether;
pub use tethered::Surroundings;
