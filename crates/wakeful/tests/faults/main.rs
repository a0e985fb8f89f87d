//! The client against real hosts over real sockets, and what can happen to them on the way.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod fixture;
mod network;
mod proxy;

mod first;
mod restart;
mod sessions;
mod silence;
mod stopped;
mod wire;
