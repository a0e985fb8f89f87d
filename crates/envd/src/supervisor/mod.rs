//! Keeps the surfaces' processes running: the shell around [`SurfaceMachine`].

mod child;
mod output;
mod take_down;

use std::{collections::BTreeMap, io, sync::Arc, time::Duration};

use rustix::process::Pid;
use tokio::{
    signal::unix::{Signal, SignalKind, signal},
    sync::{mpsc, oneshot, watch},
    time::Instant,
};
use wakeful_wire::{
    SurfaceName,
    sandbox::{EnvdStatus, HostUse, IsolationInForce, Refusal, SandboxSpec, run_dir},
    template::Start,
};

pub(crate) use child::Surroundings;

use crate::{
    budget::BudgetPolicy,
    environment::Environment,
    journal::Journal,
    port::{Port, Ports},
    probe::Probe,
    reap::{self, Ended},
    surface::{Availability, Command, Input, ProbeOutcome, SurfaceMachine, Tick},
};
use output::{Log, Output};

/// How many events wait for the supervisor before who sends one waits.
const EVENTS_MAX: usize = 256;

/// How long a program's last words are waited for after its end. What it started elsewhere may
/// hold its output open.
const LAST_WORDS: Duration = Duration::from_millis(200);

/// What reaches the supervisor.
#[derive(Debug)]
pub(crate) enum Event {
    /// A connection to a surface is wanted; answers its port.
    Dial { surface: SurfaceName, answer: oneshot::Sender<Result<u16, Refusal>> },
    /// A surface is to run.
    Start { surface: SurfaceName, answer: oneshot::Sender<Result<(), Refusal>> },
    /// Everything is to end.
    Stop { grace: Duration },
    /// A probe came back.
    Probed { surface: SurfaceName, start: u32, outcome: ProbeOutcome },
    /// What an ended process wrote last.
    LastWords { surface: SurfaceName, start: u32, text: String },
}

/// One surface.
#[derive(Debug)]
struct Run {
    machine: SurfaceMachine,
    probe: Probe,
    log: Log,
    port: Option<Port>,
    process: Option<Leader>,
}

/// The process that runs a surface's command.
#[derive(Debug)]
struct Leader {
    pid: Pid,
    start: u32,
    output: Output,
}

impl Run {
    fn port_number(&self) -> u16 {
        self.port.as_ref().map_or(0, Port::number)
    }
}

/// Keeps the surfaces' processes running.
#[derive(Debug)]
pub(crate) struct Supervisor {
    spec: Arc<SandboxSpec>,
    surroundings: Surroundings,
    journal: Journal,
    isolation: IsolationInForce,
    origin: Instant,
    ports: Ports,
    surfaces: BTreeMap<SurfaceName, Run>,
    environment: Environment,
    usage: watch::Receiver<HostUse>,
    status: watch::Sender<Arc<EnvdStatus>>,
    sender: mpsc::Sender<Event>,
    events: mpsc::Receiver<Event>,
    child_ended: Signal,
    told_to_end: [Signal; 3],
}

impl Supervisor {
    /// Must be called in a current-thread runtime on the first thread, which then calls
    /// [`Self::run`]: children are bound to the life of the thread that spawns them.
    ///
    /// # Errors
    /// When signals cannot be listened for.
    pub(crate) fn new(
        spec: Arc<SandboxSpec>,
        surroundings: Surroundings,
        isolation: IsolationInForce,
        journal: Journal,
        environment: Environment,
    ) -> io::Result<Self> {
        let (sender, events) = mpsc::channel(EVENTS_MAX);
        let logs = spec.run_dir.join(run_dir::LOGS);
        let surfaces = spec
            .surfaces
            .iter()
            .map(|(name, surface)| {
                let run = Run {
                    machine: SurfaceMachine::new(
                        surface.start == Start::Eager,
                        BudgetPolicy::default(),
                    ),
                    probe: Probe::of(surface, &spec.basic_password),
                    log: Log::open(logs.join(format!("{name}.log"))),
                    port: None,
                    process: None,
                };
                (name.clone(), run)
            })
            .collect();
        let status = watch::Sender::new(Arc::new(EnvdStatus {
            env: spec.env,
            sandbox: spec.sandbox,
            pid: std::process::id(),
            surfaces: BTreeMap::new(),
            isolation: isolation.clone(),
            stopping: false,
            host: HostUse::default(),
        }));
        let mut supervisor = Self {
            ports: Ports::new(spec.sandbox),
            spec,
            surroundings,
            journal,
            isolation,
            origin: Instant::now(),
            surfaces,
            usage: environment.usage(),
            environment,
            status,
            sender,
            events,
            child_ended: signal(SignalKind::child())?,
            told_to_end: [
                signal(SignalKind::terminate())?,
                signal(SignalKind::interrupt())?,
                signal(SignalKind::hangup())?,
            ],
        };
        supervisor.publish(false);
        Ok(supervisor)
    }

    /// The status, now and as it changes.
    pub(crate) fn status(&self) -> watch::Receiver<Arc<EnvdStatus>> {
        self.status.subscribe()
    }

    /// Where events go.
    pub(crate) fn events(&self) -> mpsc::Sender<Event> {
        self.sender.clone()
    }

    fn now(&self) -> Tick {
        self.origin.elapsed()
    }

    /// Runs until it is told to stop and everything has been taken down.
    pub(crate) async fn run(mut self) {
        let grace = loop {
            self.carry_out();
            self.publish(false);
            let due = self.surfaces.values().filter_map(|run| run.machine.poll_timeout()).min();
            let wait = due.map(|tick| self.origin + tick);
            let [terminate, interrupt, hangup] = &mut self.told_to_end;
            tokio::select! {
                event = self.events.recv() => match event {
                    Some(Event::Stop { grace }) => break grace,
                    Some(event) => self.handle(event),
                    None => break Duration::ZERO,
                },
                _ = self.child_ended.recv() => self.reap(),
                // Published by the next round.
                Ok(()) = self.usage.changed() => {}
                _ = terminate.recv() => break self.own_grace(),
                _ = interrupt.recv() => break self.own_grace(),
                _ = hangup.recv() => break self.own_grace(),
                () = at(wait) => {
                    let now = self.now();
                    for run in self.surfaces.values_mut() {
                        run.machine.handle_timeout(now);
                    }
                }
            }
        };
        self.publish(true);
        self.take_down(grace).await;
    }

    fn own_grace(&self) -> Duration {
        Duration::from_millis(self.spec.stop_grace_ms)
    }

    fn handle(&mut self, event: Event) {
        let now = self.now();
        match event {
            // Taken by `run` and by the take-down.
            Event::Stop { .. } => {}
            Event::Dial { surface, answer } => {
                let _gone = answer.send(match self.surfaces.get_mut(&surface) {
                    None => Err(Refusal::Unknown),
                    Some(run) => {
                        run.machine.handle_input(now, Input::Wanted { insist: false });
                        match run.machine.availability() {
                            Availability::Ready => Ok(run.port_number()),
                            Availability::Coming => Err(Refusal::NotReady),
                            Availability::GivenUp { reason } => Err(Refusal::GivenUp { reason }),
                        }
                    }
                });
            }
            Event::Start { surface, answer } => {
                let _gone = answer.send(match self.surfaces.get_mut(&surface) {
                    None => Err(Refusal::Unknown),
                    Some(run) => {
                        run.machine.handle_input(now, Input::Wanted { insist: true });
                        Ok(())
                    }
                });
            }
            Event::Probed { surface, start, outcome } => {
                if let Some(run) = self.surfaces.get_mut(&surface) {
                    let before = run.machine.availability();
                    run.machine.handle_input(now, Input::Probed { start, outcome });
                    if before != run.machine.availability() {
                        self.journal.note(format_args!("surface {surface} answers"));
                    }
                }
            }
            Event::LastWords { surface, start, text } => {
                if let Some(run) = self.surfaces.get_mut(&surface) {
                    run.machine.handle_input(now, Input::LastWords { start, text });
                }
            }
        }
    }

    /// Does what the machines ask for.
    fn carry_out(&mut self) {
        let names: Vec<_> = self.surfaces.keys().cloned().collect();
        for name in names {
            while let Some(command) =
                self.surfaces.get_mut(&name).and_then(|run| run.machine.poll_command())
            {
                match command {
                    Command::Spawn { start } => self.spawn(&name, start),
                    Command::Probe { start, timeout } => self.probe(&name, start, timeout),
                }
            }
        }
    }

    fn spawn(&mut self, name: &SurfaceName, start: u32) {
        let now = self.now();
        let (Some(run), Some(surface)) =
            (self.surfaces.get_mut(name), self.spec.surfaces.get(name))
        else {
            return;
        };
        // A new port each time: the old one may be the reason for the end.
        run.port = None;
        let spawned = self.ports.claim().and_then(|port| {
            let (pid, output) =
                self.surroundings.spawn(&self.spec, surface, port.number(), &run.log)?;
            run.port = Some(port);
            Ok((pid, output))
        });
        let input = match spawned {
            Ok((pid, output)) => {
                self.journal.note(format_args!(
                    "surface {name} started: start {start}, process {}, port {}",
                    pid.as_raw_nonzero(),
                    run.port_number(),
                ));
                run.process = Some(Leader { pid, start, output });
                Input::Spawned { pid: pid.as_raw_nonzero().get().unsigned_abs() }
            }
            Err(error) => {
                self.journal.note(format_args!("surface {name} cannot be started: {error}"));
                Input::NotSpawned { reason: format!("its command cannot be started: {error}") }
            }
        };
        run.machine.handle_input(now, input);
    }

    fn probe(&self, name: &SurfaceName, start: u32, timeout: Duration) {
        let Some(run) = self.surfaces.get(name) else { return };
        let Some(leader) = &run.process else { return };
        let leader = leader.pid.as_raw_nonzero().get();
        let (probe, port, surface) = (run.probe.clone(), run.port_number(), name.clone());
        let (events, root) = (self.sender.clone(), std::process::id().cast_signed());
        tokio::spawn(async move {
            let outcome = probe.once(root, leader, port, timeout).await;
            let _ending = events.send(Event::Probed { surface, start, outcome }).await;
        });
    }

    fn leaders(&self) -> Vec<Pid> {
        self.surfaces.values().filter_map(|run| Some(run.process.as_ref()?.pid)).collect()
    }

    fn reap(&mut self) {
        for ended in reap::reap(&self.leaders()).ended {
            self.ended(&ended);
        }
    }

    fn ended(&mut self, ended: &Ended) {
        let now = self.now();
        let found = self
            .surfaces
            .iter_mut()
            .find(|(_, run)| run.process.as_ref().is_some_and(|leader| leader.pid == ended.pid));
        // Everything else is an orphan that only needed somebody to wait for it.
        let Some((name, run)) = found else { return };
        let Some(leader) = run.process.take() else { return };
        let how = reap::describe(ended.status);
        self.journal.note(format_args!("surface {name} has ended: {how}"));
        run.machine.handle_input(now, Input::Ended { start: leader.start, how });
        let (events, surface, start) = (self.sender.clone(), name.clone(), leader.start);
        let password = self.spec.basic_password.clone();
        tokio::spawn(async move {
            let text = leader.output.last_words(LAST_WORDS, &password).await;
            let _ending = events.send(Event::LastWords { surface, start, text }).await;
        });
    }

    fn publish(&mut self, stopping: bool) {
        let status = EnvdStatus {
            env: self.spec.env,
            sandbox: self.spec.sandbox,
            pid: std::process::id(),
            surfaces: self
                .surfaces
                .iter()
                .map(|(name, run)| (name.clone(), run.machine.status(run.port_number())))
                .collect(),
            isolation: self.isolation.clone(),
            stopping,
            host: self.usage.borrow().clone(),
        };
        self.status.send_if_modified(|current| {
            let changed = **current != status;
            if changed {
                *current = Arc::new(status);
            }
            changed
        });
    }
}

async fn at(moment: Option<Instant>) {
    match moment {
        Some(moment) => tokio::time::sleep_until(moment).await,
        None => std::future::pending().await,
    }
}
