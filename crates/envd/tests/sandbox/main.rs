//! `envd` as a real process, with real programs as its surfaces.
#![expect(
    clippy::unwrap_used,
    clippy::print_stderr,
    reason = "everything here is a test: a failed step fails it, and a skipped part says so"
)]

#[path = "../alone/client.rs"]
mod client;
mod command;
mod control;
mod demo;
mod fixture;
mod host;
mod host_life;
mod host_socket;
mod isolation;
mod life;
mod surfaces;
