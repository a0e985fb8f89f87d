//! How `attach` behaves.

use clap::{Args, ValueEnum};

/// How a thread is followed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Args)]
pub struct AttachArgs {
    /// Wake the environment, now and whenever it falls asleep
    #[arg(long)]
    pub wake: bool,
    /// End when the thread has nothing left to do: 0 if its last turn completed, 4 if not
    #[arg(long)]
    pub until_idle: bool,
    /// Answer whatever the agent asks for
    #[arg(long, value_name = "ANSWER")]
    pub approve: Option<Approve>,
}

/// What is answered to every permission that is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Approve {
    /// Allow it, just this once where that is offered
    Allow,
    /// Reject it, just this once where that is offered
    Reject,
}
