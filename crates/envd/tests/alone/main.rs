//! A host of its own as a real process.
#![expect(clippy::unwrap_used, reason = "everything here is a test: a failed step fails it")]

mod client;
mod fixture;
mod local;
mod pairing;
