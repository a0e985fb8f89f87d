//! A driver without processes, whose sandboxes do what a test tells them.

use std::{
    collections::{BTreeMap, VecDeque},
    sync::Arc,
    time::Duration,
};

use async_trait::async_trait;
use parking_lot::Mutex;
use tokio::sync::Notify;
use wakeful_wire::{
    EnvId, SandboxUid, SurfaceName,
    gate::Upstream,
    sandbox::{SurfaceState, SurfaceStatus},
};

use crate::{
    Present, SandboxRef, Seen, StartFault,
    port::{Driver, DriverError, Launch, LogTail},
};

/// A driver without processes. By default a sandbox is ready as soon as it is created.
#[derive(Debug, Default)]
pub struct ScriptedDriver {
    state: Mutex<State>,
    hint: Notify,
    turn: Notify,
}

#[derive(Debug, Default)]
struct State {
    sandboxes: BTreeMap<SandboxUid, (SandboxRef, Present)>,
    /// Faults for the next creates, in order.
    faults: VecDeque<StartFault>,
    hints: VecDeque<EnvId>,
    creates: u32,
    stops: u32,
    holding_creates: bool,
    holding_stops: bool,
    blind: bool,
    slow: bool,
}

impl ScriptedDriver {
    /// No sandboxes yet.
    #[must_use]
    pub fn new() -> Arc<Self> {
        Arc::default()
    }

    /// The next create fails with this.
    pub fn fail_next_create(&self, fault: StartFault) {
        self.state.lock().faults.push_back(fault);
    }

    /// While held, creates wait.
    pub fn hold_creates(&self, hold: bool) {
        self.state.lock().holding_creates = hold;
        self.turn.notify_waiters();
    }

    /// While held, stops wait.
    pub fn hold_stops(&self, hold: bool) {
        self.state.lock().holding_stops = hold;
        self.turn.notify_waiters();
    }

    /// While slow, new sandboxes are there but not ready until [`Self::set_ready`].
    pub fn slow_starts(&self, slow: bool) {
        self.state.lock().slow = slow;
    }

    /// While blind, every look is in doubt.
    pub fn blind(&self, blind: bool) {
        self.state.lock().blind = blind;
    }

    /// Makes every sandbox of an environment ready, or not.
    pub fn set_ready(&self, env: EnvId, ready: bool) {
        self.change(env, |present| {
            present.ready = ready;
            for status in present.surfaces.values_mut() {
                status.state = if ready { SurfaceState::Ready } else { SurfaceState::Starting };
            }
        });
    }

    /// The sandboxes of an environment vanish, as by `kill -9`.
    pub fn kill(&self, env: EnvId) {
        self.state.lock().sandboxes.retain(|_, (sandbox, _)| sandbox.env != env);
        self.tell(env);
    }

    /// How many creates were called.
    #[must_use]
    pub fn creates(&self) -> u32 {
        self.state.lock().creates
    }

    /// How many stops were called.
    #[must_use]
    pub fn stops(&self) -> u32 {
        self.state.lock().stops
    }

    /// The sandboxes that run.
    #[must_use]
    pub fn running(&self) -> Vec<SandboxRef> {
        self.state.lock().sandboxes.values().map(|(sandbox, _)| sandbox.clone()).collect()
    }

    fn change(&self, env: EnvId, change: impl Fn(&mut Present)) {
        for (sandbox, present) in self.state.lock().sandboxes.values_mut() {
            if sandbox.env == env {
                change(present);
            }
        }
        self.tell(env);
    }

    fn tell(&self, env: EnvId) {
        self.state.lock().hints.push_back(env);
        self.hint.notify_one();
    }

    async fn wait_while(&self, held: impl Fn(&State) -> bool) {
        loop {
            let turn = self.turn.notified();
            tokio::pin!(turn);
            turn.as_mut().enable();
            if !held(&self.state.lock()) {
                return;
            }
            turn.await;
        }
    }

    fn look(&self, sandbox: &SandboxRef) -> Seen {
        let state = self.state.lock();
        if state.blind {
            return Seen::Unknown;
        }
        match state.sandboxes.get(&sandbox.uid) {
            Some((there, present)) if there == sandbox => Seen::Present(present.clone()),
            Some(_) => Seen::Unknown,
            None => Seen::Absent,
        }
    }
}

#[async_trait]
impl Driver for ScriptedDriver {
    async fn create(&self, launch: &Launch) -> Result<(), DriverError> {
        self.state.lock().creates += 1;
        self.wait_while(|state| state.holding_creates).await;
        let mut state = self.state.lock();
        if let Some(fault) = state.faults.pop_front() {
            return Err(DriverError { fault });
        }
        let ready = !state.slow;
        let surfaces = launch
            .template
            .surfaces
            .keys()
            .map(|name| {
                let status = SurfaceStatus {
                    state: if ready { SurfaceState::Ready } else { SurfaceState::Starting },
                    eager: true,
                    port: 1,
                    pid: None,
                    starts: 1,
                    reason: None,
                };
                (name.clone(), status)
            })
            .collect();
        let present = Present { ready, surfaces, ..Present::default() };
        state
            .sandboxes
            .entry(launch.sandbox.uid)
            .or_insert_with(|| (launch.sandbox.clone(), present));
        Ok(())
    }

    async fn observe(&self, sandbox: &SandboxRef) -> Seen {
        self.look(sandbox)
    }

    fn glance(&self, sandbox: &SandboxRef) -> Seen {
        self.look(sandbox)
    }

    async fn stop(&self, sandbox: &SandboxRef, _grace: Duration) -> Result<(), DriverError> {
        self.state.lock().stops += 1;
        self.wait_while(|state| state.holding_stops).await;
        self.state.lock().sandboxes.remove(&sandbox.uid);
        Ok(())
    }

    fn upstream(&self, sandbox: &SandboxRef, _surface: &SurfaceName) -> Option<Upstream> {
        let address = std::net::SocketAddr::from(([127, 0, 0, 1], 1));
        matches!(self.look(sandbox), Seen::Present(_))
            .then_some(Upstream::Tcp { address, basic: None })
    }

    async fn start_surface(
        &self,
        sandbox: &SandboxRef,
        _surface: &SurfaceName,
    ) -> Result<(), DriverError> {
        match self.look(sandbox) {
            Seen::Present(_) => Ok(()),
            Seen::Absent | Seen::Unknown => Err(DriverError::passing("no such sandbox")),
        }
    }

    async fn logs(
        &self,
        _env: EnvId,
        _surface: &SurfaceName,
        _max: usize,
        _from: Option<u64>,
    ) -> Result<LogTail, DriverError> {
        Ok(LogTail::default())
    }

    async fn forget(&self, _env: EnvId) -> Result<(), DriverError> {
        Ok(())
    }

    async fn next_hint(&self) -> EnvId {
        loop {
            let told = self.hint.notified();
            if let Some(env) = self.state.lock().hints.pop_front() {
                return env;
            }
            told.await;
        }
    }
}
