//! The client's connections as pure machines.
//!
//! # Theory of operation
//!
//! A connection's life is not persisted, so machines without IO decide it. Each behaviour is a type
//! of its own with its own named deadlines: what happened goes in by `handle_…`, what is to be done
//! comes out of `poll_action`, and `poll_timeout` says when to call `handle_timeout` at the latest.
//! Time is an argument, and so is chance. The parent only routes and combines.
//!
//! # What this crate never does
//!
//! It knows no socket, no runtime, no wall clock and no randomness of its own, and it compiles for
//! the browser.

// Where the tests run in a page, this is what `#[test]` means.
#[cfg(all(test, target_arch = "wasm32"))]
#[macro_use]
extern crate wakeful_page_test;

pub mod authorization;
pub mod boundary;
pub mod effect;
pub mod families;
pub mod http;
pub mod platform;
pub mod registry;
pub mod route;
pub mod session;
pub mod settled;
pub mod shell;
pub mod steady;
pub mod supervisor;
pub mod threads;

mod chance;
mod failure;
mod host;
mod link;
mod state;
mod time;

pub use chance::Chance;
pub use effect::{At, Change, Effect, Enter, Way};
pub use failure::{Failure, FailureClass, FailureReason};
pub use host::Options;
pub use link::Link;
pub use state::{AttemptId, ConnectionPhase, ConnectionState, DataStatus, Network, Stage};
pub use time::Instant;
