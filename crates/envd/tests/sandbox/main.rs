//! `envd` as a real process, with real programs as its surfaces.
#![expect(
    clippy::unwrap_used,
    clippy::print_stderr,
    reason = "everything here is a test: a failed step fails it, and a skipped part says so"
)]

mod command;
mod control;
mod demo;
mod fixture;
mod isolation;
mod life;
mod surfaces;
