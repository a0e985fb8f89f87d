//! An environment's life as a pure plan, and the ports it needs.
//!
//! # Theory of operation
//!
//! An environment's life is persisted, so one function decides it. [`plan`](plan::plan) takes the
//! record, what a driver observed, the activity clocks and the time, and returns the change to
//! commit, the steps to run once it is committed, and when to look again. It performs nothing and
//! never waits. The ensure gate, the idle sweep, a failure report, a restart after a crash and a
//! deletion all go through it, so no path is rare.
//!
//! A person's or a request's wish changes only the record's intent: that is [`command`]. What a
//! waiting request is to do follows from the record and the observation: that is [`verdict()`].
//!
//! Every commit names the generation that it was planned from. One that lost the race changes
//! nothing: load and plan again. A suspend names the activity sequence as well, so a touch that
//! lands in between makes it lose (see [`activity`] for the whole race).
//!
//! # What this crate never does
//!
//! It reads no clock, draws no randomness, waits for nothing and does no IO.
//!
//! # Where to start
//!
//! [`record`], then the module [`plan`](mod@plan). The ports are in [`port`]; their memory versions and the contract
//! suites that every other version must pass are in `testing` (feature `testing`).

pub mod activity;
pub mod command;
pub mod observation;
pub mod plan;
pub mod policy;
pub mod port;
pub mod record;
pub mod step;
pub mod verdict;

#[cfg(any(test, feature = "testing"))]
pub mod testing;

pub use activity::{Clock, Clocks, Lease};
pub use command::{Command, Refused, apply};
pub use observation::{Drained, Observation, Present, Seen, StartFault};
pub use plan::{Guard, LookAgain, Moment, Plan, plan};
pub use policy::Policy;
pub use record::{
    Failure, FreshSandbox, Intent, Record, Sandbox, SandboxRef, Secret, Starts, Stop, StopReason,
    StopStage, Woken,
};
pub use step::Step;
pub use verdict::{Verdict, verdict};
