//! The platform: which environments there are, and what they are doing.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};
use wakeful_wire::{EnvId, HostId, Phase, UserName};

use super::{Happening, PLATFORM, Reach, World, address};
use crate::{Failure, FailureReason, Instant, platform::StreamId};

/// How long an environment takes to be ready, in milliseconds.
const WAKES_IN: u64 = 2_000;

/// What a stream of changes says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Says {
    Opened,
    Environment(EnvId, Phase),
    Alive,
    Ended,
}

/// The platform.
#[derive(Debug)]
pub(in crate::link::tests) struct Platform {
    pub(in crate::link::tests) environments: BTreeMap<EnvId, (&'static str, Phase)>,
    pub(in crate::link::tests) reach: Reach,
    /// Whether whoever is signed in is still known.
    pub(in crate::link::tests) grants: bool,
    /// How long a grant takes, in milliseconds.
    pub(in crate::link::tests) thinks: u64,
    /// Whose token the client sends.
    pub(in crate::link::tests) user: Option<UserName>,
    /// How often something was woken.
    pub(in crate::link::tests) woken: usize,
    /// Environments that somebody wants awake as soon as they sleep.
    wanted_awake: BTreeSet<EnvId>,
    /// The stream that the client wants.
    pub(super) wanted: Option<StreamId>,
    /// The one that is open.
    open: Option<StreamId>,
}

impl Default for Platform {
    fn default() -> Self {
        Self {
            environments: BTreeMap::new(),
            reach: Reach::Up,
            grants: true,
            thinks: 0,
            user: None,
            woken: 0,
            wanted_awake: BTreeSet::new(),
            wanted: None,
            open: None,
        }
    }
}

impl Platform {
    /// Its list, as `GET /api/projects` answers it.
    pub(super) fn projects(&self) -> Value {
        let project = |(env, (name, phase)): (&EnvId, &(&str, Phase))| {
            json!({
                "id": env,
                "title": name,
                "template": "shell",
                "environments": [{
                    "id": env,
                    "project": env,
                    "slug": "dev",
                    "phase": phase,
                    "generation": 1,
                    "sandbox": null,
                    "since": 0,
                    "surfaces": [],
                    "clocks": {
                        "agent": { "expires_in_ms": 0 },
                        "app": { "expires_in_ms": 0 },
                    },
                    "leases": [],
                }],
            })
        };
        self.environments.iter().map(project).collect()
    }
}

impl World {
    /// What an environment's host is doing; nothing for a host that is paired with.
    pub(in crate::link::tests) fn phase_of(&self, host: HostId) -> Option<Phase> {
        let env = self.hosts[&host].env?;
        Some(self.platform.environments.get(&env).map_or(Phase::Deleted, |held| held.1))
    }

    /// Wakes an environment. Whether it will be ready.
    pub(in crate::link::tests) fn wake(&mut self, host: HostId) -> bool {
        let Some(env) = self.hosts[&host].env else { return false };
        match self.platform.environments.get(&env).map_or(Phase::Deleted, |held| held.1) {
            Phase::Suspended => {
                self.platform.woken += 1;
                self.turns(env, Phase::Starting);
                self.later(WAKES_IN, Happening::Turns(env, Phase::Ready));
                true
            }
            Phase::Starting | Phase::Ready => true,
            // It goes to sleep first.
            Phase::Suspending => {
                self.platform.wanted_awake.insert(env);
                true
            }
            Phase::Frozen
            | Phase::Failed
            | Phase::Disabled
            | Phase::Publishing
            | Phase::Deleted => false,
        }
    }

    /// An environment is put to sleep: its sockets are closed, as its own host does it.
    pub(in crate::link::tests) fn put_to_sleep(&mut self, host: HostId) {
        let Some(env) = self.hosts[&host].env else { return };
        if self.platform.environments[&env].1 != Phase::Ready {
            return;
        }
        self.turns(env, Phase::Suspending);
        let out = self.host_mut(host).close_all(4503, "suspending");
        self.send_out(host, out);
        self.later(500, Happening::Turns(env, Phase::Suspended));
    }

    /// An environment is deleted.
    pub(in crate::link::tests) fn delete(&mut self, host: HostId) {
        let Some(env) = self.hosts[&host].env else { return };
        self.platform.environments.remove(&env);
        let out = self.host_mut(host).close_all(4404, "deleted");
        self.send_out(host, out);
        self.stream_says(Says::Environment(env, Phase::Deleted));
    }

    pub(in crate::link::tests) fn turns(&mut self, env: EnvId, phase: Phase) {
        let Some(held) = self.platform.environments.get_mut(&env) else { return };
        if held.1 == phase {
            return;
        }
        held.1 = phase;
        if phase == Phase::Ready {
            self.host_mut(HostId::from(env)).log.restart(0);
        }
        self.stream_says(Says::Environment(env, phase));
        if phase == Phase::Suspended && self.platform.wanted_awake.remove(&env) {
            self.wake(HostId::from(env));
        }
    }

    fn stream_says(&mut self, says: Says) {
        if let Some(stream) = self.platform.open
            && self.platform.reach == Reach::Up
        {
            self.later(self.wires.latency, Happening::Says(stream, says));
        }
    }

    pub(super) fn follows(&mut self, stream: StreamId) {
        if self.platform.wanted != Some(stream) {
            return;
        }
        match self.platform.reach {
            Reach::Silent => {}
            Reach::Refuses | Reach::Busy(_) => {
                self.later(self.wires.latency, Happening::Says(stream, Says::Ended));
            }
            Reach::Up => {
                self.platform.open = Some(stream);
                self.stream_says(Says::Opened);
                for (env, (_, phase)) in self.platform.environments.clone() {
                    self.stream_says(Says::Environment(env, phase));
                }
            }
        }
    }

    /// The stream ends, as it does when the platform is started anew.
    pub(in crate::link::tests) fn end_stream(&mut self) {
        self.stream_says(Says::Ended);
        self.platform.open = None;
    }

    pub(super) fn platform_beats(&mut self) {
        self.stream_says(Says::Alive);
    }

    pub(super) fn says(&mut self, now: Instant, stream: StreamId, says: Says) {
        if self.platform.wanted != Some(stream) {
            return;
        }
        let platform = address(PLATFORM);
        match says {
            Says::Opened => self.link.handle_events_opened(now, &platform, stream),
            Says::Environment(env, phase) => {
                self.trace.environment(self.time, self.hosts[&HostId::from(env)].name, phase);
                self.link.handle_environment(now, &platform, stream, env, phase);
            }
            Says::Alive => self.link.handle_events_heard(now, &platform, stream),
            Says::Ended => {
                let failure = Failure::new(FailureReason::Network, "the stream ended");
                self.link.handle_events_ended(now, &platform, stream, failure);
            }
        }
    }
}
