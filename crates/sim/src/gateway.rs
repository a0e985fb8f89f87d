//! A gateway without sockets: the real gate, leases and drains, driven as its shell drives them.

use std::{sync::Arc, time::Duration};

use parking_lot::Mutex;
use tokio::sync::Notify;
use wakeful_control::engine::Engine;
use wakeful_gateway::{
    activity::{Activity, DrainAction, Drains},
    gate::{Ask, Config, Entry, Gate, Key},
    leases::{Lease, Leases, NoBell},
};
use wakeful_lifecycle::testing::a_holder;
use wakeful_wire::{
    EnvId, SandboxUid,
    gate::{GateEvent, GateState, LeaseKind},
};

use crate::seed::Seed;

/// The shortest idle timeout, as the gateway knows it from the route.
const IDLE_MIN: Duration = Duration::from_secs(600);

/// A gateway.
#[derive(Debug)]
pub struct SimGateway {
    engine: Engine,
    gate: Mutex<Gate>,
    leases: Leases,
    drains: Mutex<Drains>,
    activity: Mutex<Activity>,
    stirred: Notify,
    seed: Seed,
    /// Since the gateway's start; entries and paces go by it.
    now: Mutex<Duration>,
}

/// A request that was admitted to a sandbox.
#[derive(Debug)]
pub struct Admitted {
    /// Where it runs.
    pub sandbox: SandboxUid,
    /// Held until its last byte.
    pub lease: Lease,
}

impl SimGateway {
    /// A gateway of this engine, whose event loop runs as a task of its own.
    #[must_use]
    pub fn start(engine: &Engine, seed: &Seed) -> Arc<Self> {
        let holder = a_holder();
        engine.gateway_joined(holder);
        let gateway = Arc::new(Self {
            engine: engine.clone(),
            gate: Mutex::new(Gate::new(Config::default())),
            leases: Leases::new(Arc::new(NoBell)),
            drains: Mutex::new(Drains::new(holder)),
            activity: Mutex::new(Activity::new(holder, Duration::from_secs(60), Duration::ZERO)),
            stirred: Notify::new(),
            seed: seed.clone(),
            now: Mutex::default(),
        });
        let mut events = engine.gate_events();
        let task = Arc::clone(&gateway);
        tokio::spawn(async move {
            while let Ok(event) = events.recv().await {
                // An event takes its time to arrive.
                task.seed.give_way(6).await;
                task.handle(&event).await;
            }
        });
        gateway
    }

    async fn handle(&self, event: &GateEvent) {
        self.gate.lock().handle_event(event);
        self.stir();
        self.seed.give_way(3).await;
        self.drains.lock().handle_event(event, &self.leases);
        self.drain_actions();
        self.report().await;
    }

    fn stir(&self) {
        while self.gate.lock().poll_stirred().is_some() {}
        self.stirred.notify_waiters();
    }

    fn drain_actions(&self) {
        loop {
            let action = self.drains.lock().poll_action(&self.leases);
            match action {
                Some(DrainAction::Answer(answer)) => self.engine.drained(&answer),
                Some(DrainAction::Close { .. }) => {}
                None => return,
            }
        }
    }

    /// Sends what is due to be reported.
    pub async fn report(&self) {
        loop {
            let now = *self.now.lock();
            let report = self.activity.lock().poll_report(now, &self.leases);
            let Some(report) = report else { return };
            self.seed.give_way(4).await;
            let arrived = self.engine.activity(&report).await.is_ok();
            self.activity.lock().handle_reported(&report, arrived, &self.leases);
        }
    }

    /// Lets time pass for this gateway.
    pub fn advance(&self, duration: Duration) {
        *self.now.lock() += duration;
        self.stirred.notify_waiters();
    }

    /// Gets a request admitted: from the cache if that holds, else by asking; waits while the
    /// environment starts. `None` when it sleeps and the request has no intent.
    ///
    /// # Panics
    /// When the answer is one that no request of a simulation should get.
    pub async fn admit(self: &Arc<Self>, key: &Key, kind: LeaseKind) -> Option<Admitted> {
        let mut ask = None;
        loop {
            let now = *self.now.lock();
            let stirred = self.stirred.notified();
            tokio::pin!(stirred);
            stirred.as_mut().enable();
            let next = match ask.take() {
                Some(id) => self.gate.lock().handle_wait(key, id, now),
                None => self.gate.lock().handle_request(key, now),
            };
            match next {
                Ask::Answer(entry) => {
                    // Between the answer and the admission anything may happen.
                    self.seed.give_way(4).await;
                    match self.admit_from(&entry, now, kind) {
                        Some(admitted) => return Some(admitted),
                        None if entry.answer().state == GateState::Ready => {}
                        None => match entry.answer().state {
                            GateState::Asleep if !key.intent => return None,
                            GateState::Asleep
                            | GateState::Starting
                            | GateState::SurfaceStarting => self.wait(stirred).await,
                            other @ (GateState::Ready
                            | GateState::SurfaceFailed
                            | GateState::Failed
                            | GateState::Disabled
                            | GateState::Gone
                            | GateState::NotFound) => panic!("{other:?}"),
                        },
                    }
                }
                Ask::Load(load) => {
                    let gateway = Arc::clone(self);
                    tokio::spawn(async move {
                        gateway.seed.give_way(4).await;
                        let answer = gateway.engine.ensure(&load.key.request()).await.ok();
                        gateway.seed.give_way(4).await;
                        let now = *gateway.now.lock();
                        let leases = &gateway.leases;
                        gateway.gate.lock().handle_answer(load, answer, IDLE_MIN, leases, now);
                        gateway.stir();
                    });
                    self.wait(stirred).await;
                }
                Ask::Wait(id) => {
                    self.wait(stirred).await;
                    ask = Some(id);
                }
                Ask::Later(_) => self.wait(stirred).await,
                Ask::Unavailable | Ask::Overloaded => panic!("the simulation overloads nothing"),
            }
        }
    }

    /// Waits until something stirs, or a second has passed without it.
    async fn wait(&self, stirred: std::pin::Pin<&mut tokio::sync::futures::Notified<'_>>) {
        // The pace of asking again is a second of the gateway's time.
        if tokio::time::timeout(Duration::from_secs(1), stirred).await.is_err() {
            self.advance(Duration::from_secs(1));
        }
    }

    /// Admits from an entry that a core may have kept.
    #[must_use]
    pub fn admit_from(&self, entry: &Entry, now: Duration, kind: LeaseKind) -> Option<Admitted> {
        let lease = entry.admit(now, kind)?;
        let sandbox = entry.answer().sandbox?;
        Some(Admitted { sandbox, lease })
    }

    /// A request has ended: its lease is given back, and whoever drains hears of it.
    pub fn settle(&self, admitted: Admitted) {
        drop(admitted);
        self.drain_actions();
    }

    /// What is open of an environment.
    #[must_use]
    pub fn in_flight(&self, env: EnvId) -> u32 {
        self.leases.in_flight(env)
    }
}
