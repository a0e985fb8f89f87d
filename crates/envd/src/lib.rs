//! The daemon inside a sandbox: it supervises a template's surfaces and brokers connections to
//! them.
//!
//! One process, one thread. [`main_blocking`] reads the sandbox's spec, takes the lock by which the
//! platform knows that it lives, binds the control socket, isolates itself, and then runs a
//! current-thread runtime until it is told to stop. It starts each surface's command through
//! [`exec_shim`], which ties the command to it. It owns nothing of the platform and outlives it.
//!
//! What decides is apart from what acts: `surface` (one process as a machine) and `budget` (how
//! often it is started again) are told the time and do nothing; `supervisor` carries out what they
//! say. A program that uses this crate calls these functions under the hidden subcommands of
//! [`wakeful_wire::sandbox::subcommand`]. `control` is the socket that the platform asks,
//! `isolation` what keeps the sandbox from its neighbours, [`demo`] the shipped template's own
//! program.
//!
//! The environment server stands beside that: [`thread`] is the log of what agents did and everything
//! derived from it, [`agent`] runs them, [`credential`] decides who may look and act, and [`host`] is
//! what clients reach.
//!
//! It runs in two places. Inside a sandbox `environment` opens it next to the surfaces, hands
//! connections to it over by the control socket, and tells the platform how it is used. On somebody's
//! machine [`alone`] listens for paired clients itself.

pub mod agent;
pub mod alone;
mod bounded_log;
mod budget;
mod clock;
mod control;
pub mod credential;
pub mod demo;
mod environment;
mod exec;
pub mod host;
mod isolation;
mod journal;
mod lock;
mod port;
mod probe;
mod probe_isolation;
mod processes;
mod reap;
mod startup;
mod supervisor;
mod surface;
pub mod thread;

pub use exec::exec_shim;
pub use probe_isolation::probe_isolation;
pub use startup::main_blocking;
