//! A driver without processes, whose sandboxes do what a test tells them.

use std::{
    collections::{BTreeMap, VecDeque},
    sync::Arc,
    time::Duration,
};

use async_trait::async_trait;
use parking_lot::Mutex;
use tokio::{sync::Notify, time::Instant};
use wakeful_wire::{
    EnvId, SandboxUid, SurfaceName,
    gate::Upstream,
    rpc::{Call, Taken},
    sandbox::{HostSpec, SurfaceState, SurfaceStatus},
};

use super::scripted_host::ScriptedHost;
use crate::{
    Present, SandboxRef, Seen, StartFault,
    port::{DeliverError, Driver, DriverError, Launch, LogTail},
};

/// A driver without processes. By default a sandbox is ready as soon as it is created.
#[derive(Debug, Default)]
pub struct ScriptedDriver {
    state: Mutex<State>,
    hint: Notify,
    /// Whatever a call waits for may have come.
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
    launched: BTreeMap<EnvId, HostSpec>,
    host: ScriptedHost,
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
        self.turn.notify_waiters();
        self.tell(env);
    }

    /// What the host of an environment's last sandbox was set up with.
    #[must_use]
    pub fn launched(&self, env: EnvId) -> Option<HostSpec> {
        self.state.lock().launched.get(&env).cloned()
    }

    /// Every sandbox of an environment runs this many turns.
    pub fn set_turns(&self, env: EnvId, turns: u32) {
        self.change(env, |present| present.host.turns = turns);
    }

    /// Somebody uses the host of an environment's sandboxes.
    pub fn use_host(&self, env: EnvId) {
        self.change(env, |present| present.host.activity += 1);
    }

    /// The host of an environment's sandboxes does not serve for this reason, or does again.
    pub fn set_host_fault(&self, env: EnvId, fault: Option<&str>) {
        self.change(env, |present| present.host.fault = fault.map(str::to_owned));
    }

    /// While deaf, a sandbox gives no answer to a drain, which holds nothing then.
    pub fn deaf_to_drains(&self, deaf: bool) {
        self.state.lock().host.deaf = deaf;
    }

    /// Deliveries are refused with this, or taken again.
    pub fn refuse_deliveries(&self, refusal: Option<DeliverError>) {
        self.state.lock().host.refusal = refusal;
    }

    /// The calls that an environment's host has taken, each once, in order.
    #[must_use]
    pub fn delivered(&self, env: EnvId) -> Vec<Call> {
        self.state.lock().host.delivered(env)
    }

    /// The drains that were asked for and answered: of which sandbox, and for how long.
    #[must_use]
    pub fn drains(&self) -> Vec<(SandboxUid, Duration)> {
        self.state.lock().host.drains.clone()
    }

    /// Somebody sends a command to the host of a sandbox. It waits while a drain holds. True: it is
    /// durable, and its turn runs until [`Self::end_turn`]. False: it was not taken, since the
    /// sandbox is gone.
    pub async fn begin_turn(&self, sandbox: SandboxUid, command: u64) -> bool {
        self.wait_out_hold(sandbox).await;
        let env = {
            let mut state = self.state.lock();
            let State { sandboxes, host, .. } = &mut *state;
            let Some((there, present)) = sandboxes.get_mut(&sandbox) else { return false };
            present.host.turns += 1;
            host.commands.entry(there.env).or_default().push(command);
            there.env
        };
        self.tell(env);
        true
    }

    /// A turn of a sandbox has ended. Nothing, where the sandbox has.
    pub fn end_turn(&self, sandbox: SandboxUid) {
        let env = match self.state.lock().sandboxes.get_mut(&sandbox) {
            Some((there, present)) => {
                present.host.turns = present.host.turns.saturating_sub(1);
                there.env
            }
            None => return,
        };
        self.tell(env);
    }

    /// The commands that an environment's host has taken, in order: what is in its workspace.
    #[must_use]
    pub fn commands(&self, env: EnvId) -> Vec<u64> {
        self.state.lock().host.commands.get(&env).cloned().unwrap_or_default()
    }

    /// Waits until no drain holds the sandbox, or there is none.
    async fn wait_out_hold(&self, sandbox: SandboxUid) {
        loop {
            let turn = self.turn.notified();
            tokio::pin!(turn);
            turn.as_mut().enable();
            let until = {
                let state = self.state.lock();
                let held = state.host.held_until(sandbox, Instant::now());
                held.filter(|_| state.sandboxes.contains_key(&sandbox))
            };
            let Some(until) = until else { return };
            tokio::select! {
                () = turn => {}
                () = tokio::time::sleep_until(until) => {}
            }
        }
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
        state.launched.insert(launch.sandbox.env, launch.host.clone());
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
        {
            let mut state = self.state.lock();
            state.sandboxes.remove(&sandbox.uid);
            state.host.forget(sandbox.uid);
        }
        // Whatever its host held back is refused.
        self.turn.notify_waiters();
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

    async fn drain(&self, sandbox: &SandboxRef, hold: Duration) -> Result<u32, DriverError> {
        let Seen::Present(present) = self.look(sandbox) else {
            return Err(DriverError::passing("no such sandbox"));
        };
        {
            let mut state = self.state.lock();
            if state.host.deaf {
                return Err(DriverError::passing("it does not answer"));
            }
            state.host.hold(sandbox.uid, hold, Instant::now());
        }
        self.turn.notify_waiters();
        Ok(present.host.turns)
    }

    async fn deliver(&self, sandbox: &SandboxRef, call: &Call) -> Result<Taken, DeliverError> {
        self.wait_out_hold(sandbox.uid).await;
        match self.look(sandbox) {
            Seen::Present(_) => self.state.lock().host.take(sandbox.env, call),
            Seen::Absent | Seen::Unknown => Err(DeliverError::Later("no such sandbox".into())),
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
