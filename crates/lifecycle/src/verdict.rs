//! What a waiting request is to do.

use wakeful_wire::{Phase, SandboxUid, SurfaceName, gate::GateState, sandbox::SurfaceState};

use crate::{Record, Seen};

/// The answer to a request that waits at the gate.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Verdict {
    /// What to do.
    pub state: GateState,
    /// The phase, for people.
    pub phase: Phase,
    /// The sandbox that serves, where one does.
    pub sandbox: Option<SandboxUid>,
    /// Why, for people.
    pub reason: Option<String>,
}

/// What a request for `surface` is to do, given the record and what was last seen of its sandbox.
///
/// "Ready" needs both halves: the record (so that a suspend that has been committed admits nothing
/// more) and the surface's own readiness (so that an open port is never taken for a program).
#[must_use]
pub fn verdict(record: &Record, seen: &Seen, surface: &SurfaceName) -> Verdict {
    let phase = record.phase();
    let answer = |state, reason| Verdict { state, phase, sandbox: None, reason };
    match phase {
        Phase::Deleted => answer(GateState::Gone, None),
        Phase::Disabled => answer(GateState::Disabled, None),
        Phase::Publishing | Phase::Starting => {
            answer(GateState::Starting, record.starts.reason.clone())
        }
        Phase::Suspended => answer(GateState::Asleep, None),
        // Draining or stopping: whoever comes now with intent wakes it again and waits.
        Phase::Suspending | Phase::Frozen => answer(GateState::Asleep, None),
        Phase::Failed => {
            answer(GateState::Failed, record.failure.as_ref().map(|failure| failure.reason.clone()))
        }
        Phase::Ready => {
            let Seen::Present(present) = seen else {
                return answer(GateState::SurfaceStarting, None);
            };
            let Some(status) = present.surfaces.get(surface) else {
                return answer(GateState::NotFound, None);
            };
            let (state, sandbox) = match status.state {
                SurfaceState::Ready => {
                    (GateState::Ready, record.sandbox.as_ref().map(|sandbox| sandbox.uid))
                }
                SurfaceState::Stopped | SurfaceState::Starting | SurfaceState::Restarting => {
                    (GateState::SurfaceStarting, None)
                }
                SurfaceState::GivenUp => (GateState::SurfaceFailed, None),
            };
            Verdict { state, phase, sandbox, reason: status.reason.clone() }
        }
    }
}
