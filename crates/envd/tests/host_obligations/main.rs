//! What a host owes its clients, shown from the outside: over real sockets and over HTTP at once.
//! `docs/host-obligations.md` lists which test shows what.
#![expect(
    clippy::unwrap_used,
    clippy::wildcard_enum_match_arm,
    reason = "everything here is a test: a failed step fails it"
)]

#[path = "../host_http/client.rs"]
#[expect(dead_code, reason = "shared with the tests of the HTTP side, which use all of it")]
mod client;
mod door;
#[path = "../host_http/fixture.rs"]
#[expect(dead_code, reason = "shared with the tests of the HTTP side, which use all of it")]
mod fixture;
mod lists;
mod once;
mod sessions;
mod takeover;
