//! The whole system: the real binary with real sandboxes, spoken to over real sockets.
//!
//! Each test runs a `wakeful up` of its own on a free port with its own data directory. Whatever a
//! test waits for is a value that it looks at until a deadline that no healthy run comes near.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod agents;
mod client;
mod crashes;
mod deletion;
mod herd;
mod holding;
mod journey;
mod real_programs;
mod sleep;
mod support;
mod turns;
