//! Other people's agents as real processes: each is started, spoken to and ended.
#![expect(
    clippy::unwrap_used,
    clippy::print_stderr,
    clippy::wildcard_enum_match_arm,
    reason = "everything here is a test: a failed step fails it, and a skipped part says so"
)]

#[path = "../agent/fixture.rs"]
#[expect(dead_code, reason = "shared with the tests of scripted agents, which use all of it")]
mod fixture;
#[path = "../agent/model.rs"]
mod model;
mod others;
