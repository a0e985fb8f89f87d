//! Agents as real processes: scripted ones that misbehave, the shell, and OpenCode.
#![expect(
    clippy::unwrap_used,
    clippy::print_stderr,
    clippy::wildcard_enum_match_arm,
    reason = "everything here is a test: a failed step fails it, and a skipped part says so"
)]

mod acp;
mod fixture;
mod model;
mod opencode;
mod runner;
mod shell;
mod strange;
mod trouble;
