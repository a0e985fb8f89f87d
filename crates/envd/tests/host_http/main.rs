//! A host's HTTP side, over real connections: who may ask what, what the answers cost, and what
//! becomes of those who ask wrongly.
#![expect(
    clippy::unwrap_used,
    clippy::wildcard_enum_match_arm,
    reason = "everything here is a test: a failed step fails it"
)]

mod client;
mod connection;
mod credentials;
mod fixture;
mod pairing;
mod reads;
mod shell;
mod upgrade;
