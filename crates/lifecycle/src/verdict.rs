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
///
/// The reserved surface `host` is the sandbox's own `envd`, which answers as soon as it has said
/// hello; it too is ready only in an environment that is.
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
            let serves = record.sandbox.as_ref().map(|sandbox| sandbox.uid);
            if *surface == SurfaceName::host() {
                return match &present.host.fault {
                    Some(fault) => answer(GateState::SurfaceFailed, Some(fault.clone())),
                    None => Verdict { sandbox: serves, ..answer(GateState::Ready, None) },
                };
            }
            let Some(status) = present.surfaces.get(surface) else {
                return answer(GateState::NotFound, None);
            };
            let (state, sandbox) = match status.state {
                SurfaceState::Ready => (GateState::Ready, serves),
                SurfaceState::Stopped | SurfaceState::Starting | SurfaceState::Restarting => {
                    (GateState::SurfaceStarting, None)
                }
                SurfaceState::GivenUp => (GateState::SurfaceFailed, None),
            };
            Verdict { state, phase, sandbox, reason: status.reason.clone() }
        }
    }
}

#[cfg(test)]
mod tests {
    use wakeful_wire::{Timestamp, sandbox::HostUse};

    use super::*;
    use crate::{
        Intent, Present, Sandbox, Stop, StopReason, StopStage,
        testing::{a_fresh_sandbox, a_project},
    };

    #[test]
    fn the_host_answers_in_an_environment_that_is_ready_whatever_its_surfaces_do() {
        let now = Timestamp(1_000);
        let fresh = a_fresh_sandbox();
        let (_, mut record) = a_project("alice", now);
        record.intent = Intent::Running;
        record.sandbox = Some(Sandbox {
            uid: fresh.uid,
            secret: fresh.secret,
            created_at: now,
            launched: true,
            ready_since: None,
            unready_since: None,
            recovery: false,
            stop: None,
        });
        let seen = |fault: Option<&str>| {
            let host = HostUse { fault: fault.map(str::to_owned), ..HostUse::default() };
            Seen::Present(Present { host, ..Present::default() })
        };
        let host = SurfaceName::host();
        let state = |record: &Record, seen: &Seen| verdict(record, seen, &host).state;
        assert_eq!(state(&record, &seen(None)), GateState::Starting, "not ready yet");

        if let Some(sandbox) = &mut record.sandbox {
            sandbox.ready_since = Some(now);
        }
        let ready = verdict(&record, &seen(None), &host);
        assert_eq!((ready.state, ready.sandbox), (GateState::Ready, Some(fresh.uid)));
        let faulty = verdict(&record, &seen(Some("its disk is full")), &host);
        assert_eq!((faulty.state, faulty.sandbox), (GateState::SurfaceFailed, None));
        assert_eq!(faulty.reason.as_deref(), Some("its disk is full"));
        assert_eq!(state(&record, &Seen::Unknown), GateState::SurfaceStarting);

        if let Some(sandbox) = &mut record.sandbox {
            let stage = StopStage::Draining { deadline: now };
            let decided = record.generation;
            sandbox.stop = Some(Stop { reason: StopReason::Idle, stage, decided, since: now });
        }
        assert_eq!(state(&record, &seen(None)), GateState::Asleep, "it drains");
    }
}
