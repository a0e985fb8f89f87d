//! What keeps a sandbox from its neighbours: resource limits, capabilities, Landlock, seccomp.
//!
//! All of it is applied by `envd` to itself, on its one thread, before it starts anything; children
//! inherit it and cannot take it off. Each part that a machine cannot enforce is left out and
//! reported, never assumed.

mod capabilities;
mod filter;
mod landlock;
mod limits;

use std::path::Path;

use wakeful_wire::sandbox::{Isolation, IsolationInForce};

/// What no rung that is applied here keeps apart.
const NETWORK: &str =
    "shared with the machine: another environment can reach this one's programs on their ports";

/// Applies what is asked for and reports what is really in force.
///
/// Must be called on the first thread before any other exists: Landlock and seccomp bind the
/// calling thread and what comes of it.
pub(crate) fn apply(isolation: &Isolation, workspace: &Path, run_dir: &Path) -> IsolationInForce {
    let mut parts = vec![("session".to_owned(), "each surface has its own".to_owned())];
    parts.push(("limits".to_owned(), limits::apply(&isolation.limits)));
    if isolation.landlock || isolation.seccomp {
        parts.push(("capabilities".to_owned(), capabilities::drop()));
    }
    let mut rung = "none";
    if isolation.landlock {
        let (in_force, state) = landlock::apply(&isolation.readable, workspace, run_dir);
        if in_force {
            rung = "landlock";
        }
        parts.push(("landlock".to_owned(), state));
    } else {
        parts.push(("landlock".to_owned(), "off by configuration".to_owned()));
    }
    let seccomp = if isolation.seccomp {
        match filter::apply() {
            Ok(()) => "in force".to_owned(),
            Err(error) => format!("not in force: {error}"),
        }
    } else {
        "off by configuration".to_owned()
    };
    parts.push(("seccomp".to_owned(), seccomp));
    parts.push(("network".to_owned(), NETWORK.to_owned()));
    IsolationInForce { rung: rung.to_owned(), parts }
}
