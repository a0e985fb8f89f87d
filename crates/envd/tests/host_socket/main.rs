//! The socket of a host, spoken to over a real WebSocket.

#![allow(
    clippy::unwrap_used,
    clippy::wildcard_enum_match_arm,
    reason = "a test fails by panicking"
)]

mod calls;
mod crowd;
mod endings;
mod fixture;
mod streams;
