//! Resource limits.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use wakeful_wire::sandbox::Limits;

/// Sets the limits, each at most as high as the machine lets it be. Answers what is in force, for
/// people.
pub(super) fn apply(limits: &Limits) -> String {
    let files = set(Resource::Nofile, limits.files);
    let core = set(Resource::Core, limits.core);
    format!("{files} open files, core dumps of {core} bytes")
}

fn set(resource: Resource, wanted: u64) -> String {
    // A hard limit can be lowered by anybody and raised by nobody.
    let allowed = getrlimit(resource).maximum.unwrap_or(u64::MAX);
    let value = wanted.min(allowed);
    let limit = Rlimit { current: Some(value), maximum: Some(value) };
    match setrlimit(resource, limit) {
        Ok(()) => value.to_string(),
        Err(error) => format!("(not set: {error})"),
    }
}
