//! Units of work for the shell, run after the plan that holds them is committed.

use wakeful_wire::{EnvId, Generation};

use crate::{SandboxRef, StopReason};

/// One unit of work. Each is idempotent: a crash before, in or after it leads to the same step or
/// to an observation that needs it no more.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Step {
    /// Create the sandbox, or adopt it if it is there.
    Create(SandboxRef),
    /// Ask every gateway to drain.
    Drain {
        /// The environment.
        env: EnvId,
        /// The generation of the decision.
        decided: Generation,
        /// Whether nothing open averts it.
        forced: bool,
    },
    /// Take the sandbox down.
    Stop(SandboxRef, StopReason),
    /// Nothing runs any more: remove the rows and write the tombstone.
    Bury(EnvId),
}
