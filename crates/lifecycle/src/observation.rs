//! What was seen of an environment's sandbox.

use std::collections::BTreeMap;

use wakeful_wire::{
    SurfaceName,
    sandbox::{HostUse, IsolationInForce, SurfaceStatus},
};

/// Everything that a plan is told of the world.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Observation {
    /// The sandbox of the record, as the driver saw it.
    pub seen: Seen,
    /// Why the last step for this sandbox failed, if it did.
    pub fault: Option<StartFault>,
    /// What the gateways, and for an idle suspend the sandbox, answered to the drain of the
    /// record's stop.
    pub drained: Drained,
}

impl Observation {
    /// Nothing is known.
    #[must_use]
    pub const fn unknown() -> Self {
        Self { seen: Seen::Unknown, fault: None, drained: Drained::Pending }
    }

    /// The driver saw this.
    #[must_use]
    pub const fn of(seen: Seen) -> Self {
        Self { seen, fault: None, drained: Drained::Pending }
    }
}

/// A sandbox as a driver saw it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Seen {
    /// The look failed or is in doubt. Changes nothing.
    Unknown,
    /// Confirmed: there is none of this uid, and none can come up late.
    Absent,
    /// It is there.
    Present(Present),
}

/// A sandbox that is there.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Present {
    /// Its `envd` said hello and every eager surface answers.
    pub ready: bool,
    /// It is going down.
    pub stopping: bool,
    /// Each surface.
    pub surfaces: BTreeMap<SurfaceName, SurfaceStatus>,
    /// What isolation is in force.
    pub isolation: IsolationInForce,
    /// How its environment server is used.
    pub host: HostUse,
}

/// Why a start failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StartFault {
    /// What happened, for people.
    pub reason: String,
    /// Whether trying again makes no sense until somebody changes something.
    pub permanent: bool,
}

/// What the holders that a drain asks answered to it: every gateway, and for an idle suspend the
/// sandbox itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Drained {
    /// Not all have answered.
    Pending,
    /// At least one holds something open, or runs a turn.
    Busy,
    /// Every gateway answered that nothing is in flight, and admits nothing more from its cache; the
    /// sandbox answered that no turn runs, and begins none while its hold lasts, which it still does.
    Yes,
}
