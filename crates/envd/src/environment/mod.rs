//! The environment server inside a sandbox.
//!
//! It stands beside the surfaces and neither needs the other: where its files cannot be used, the
//! surfaces run all the same, the status says what is wrong, and it is tried again.
//!
//! # Races
//!
//! *A drain before it is open* counts no turns, since opening ends those that a crash left running;
//! the hold is kept and begins with the host, under the lock under which it becomes reachable. So
//! nothing can begin between the two.
//!
//! *An end while it is being opened* waits for the opening and then closes what was opened; nobody
//! has reached it by then.

mod activity;
pub(crate) mod agents;
pub(crate) mod opening;
#[cfg(test)]
mod tests;
pub(crate) mod usage;

use std::{
    ffi::OsString,
    fmt, io,
    os::{fd::OwnedFd, unix::net::UnixStream as StdUnixStream},
    sync::Arc,
    time::Duration,
};

use parking_lot::Mutex;
use rustix::net::{AddressFamily, SocketFlags, SocketType};
use tokio::{
    net::UnixStream,
    sync::{Semaphore, watch},
    time::Instant,
};
use tokio_util::{sync::CancellationToken, task::TaskTracker};
use wakeful_wire::{
    Code, HostId, Problem,
    host::capability,
    rpc::{Call, Taken},
    sandbox::{HostUse, Refusal, SandboxSpec, run_dir},
};

use crate::{
    agent::Surroundings,
    credential::Sources,
    host::{Address, Farewell},
    journal::Journal,
};
use opening::{Opened, OpeningError, Pass, Plan};
use usage::Uses;

/// How many connections it has at once. Further ones are refused.
const CONNECTIONS_MAX: usize = 8_192;
/// How long a delivered call may take, waiting for the host and for the end of a hold included.
const DELIVERY_TIME: Duration = Duration::from_secs(20);
/// The first and the longest pause before files that could not be used are tried again.
const AGAIN: (Duration, Duration) = (Duration::from_millis(200), Duration::from_secs(30));

/// Where it stands.
#[derive(Debug, Clone)]
enum Phase {
    /// It is opened for the first time.
    Opening,
    /// It could not be opened, and is tried again.
    Failing {
        reason: String,
    },
    Open(Arc<Opened>),
    /// It is taken down.
    Ended,
}

/// The environment server of a sandbox. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Environment(Arc<Inner>);

struct Inner {
    plan: Plan,
    turn_limit: Duration,
    journal: Journal,
    phase: watch::Sender<Phase>,
    /// Until when nothing may begin. Held while it becomes open.
    held_until: Mutex<Option<Instant>>,
    usage: watch::Sender<HostUse>,
    places: Arc<Semaphore>,
    ending: CancellationToken,
    tasks: TaskTracker,
}

impl fmt::Debug for Environment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Environment")
            .field("phase", &*self.0.phase.borrow())
            .finish_non_exhaustive()
    }
}

impl Environment {
    /// Begins to open it. `variables` are the whole environment of its agents. Needs the
    /// current-thread runtime of the first thread, which then also starts its agents.
    pub(crate) fn open(
        spec: &SandboxSpec,
        variables: Vec<(OsString, OsString)>,
        journal: Journal,
    ) -> Self {
        let surroundings = Surroundings {
            program: "/proc/self/exe".into(),
            env: variables,
            workspace: spec.workspace.clone(),
            scratch: spec.run_dir.join(run_dir::TMP),
        };
        let label = match spec.host.label.as_str() {
            "" => spec.env.to_string(),
            label => label.to_owned(),
        };
        let plan = Plan {
            workspace: spec.workspace.clone(),
            sources: Sources::system(),
            pass: Pass::Grants { audience: spec.env, secret: spec.secret.clone() },
            agents: agents::agents(
                &spec.agents,
                &surroundings,
                Duration::from_millis(spec.host.turn_limit_ms),
            ),
            config: agents::config(&spec.agents, spec.host.default_agent.as_deref()),
            descriptor: opening::descriptor(
                HostId::from(spec.env),
                Some(spec.env),
                label,
                &[capability::GRANTS],
            ),
            address: Address::Stated,
            uses: Uses::new(Duration::from_millis(spec.host.activity_interval_ms)),
        };
        let environment = Self(Arc::new(Inner {
            plan,
            turn_limit: Duration::from_millis(spec.host.turn_limit_ms),
            journal,
            phase: watch::Sender::new(Phase::Opening),
            held_until: Mutex::new(None),
            usage: watch::Sender::new(HostUse::default()),
            places: Arc::new(Semaphore::new(CONNECTIONS_MAX)),
            ending: CancellationToken::new(),
            tasks: TaskTracker::new(),
        }));
        environment.0.tasks.spawn(environment.clone().keep_opening());
        environment.0.tasks.close();
        environment
    }

    /// How it is used, as it changes.
    pub(crate) fn usage(&self) -> watch::Receiver<HostUse> {
        self.0.usage.subscribe()
    }

    /// Tries until it is open or is to end.
    async fn keep_opening(self) {
        let inner = &self.0;
        let mut pause = AGAIN.0;
        while !inner.ending.is_cancelled() {
            match Opened::open(&inner.plan).await {
                Ok(opened) => return self.reachable(Arc::new(opened)),
                Err(error) => self.failing(&error),
            }
            tokio::select! {
                () = tokio::time::sleep(pause) => {}
                () = inner.ending.cancelled() => {}
            }
            pause = (pause * 2).min(AGAIN.1);
        }
    }

    fn reachable(&self, opened: Arc<Opened>) {
        let inner = &self.0;
        let telling = (self.clone(), Arc::clone(&opened));
        {
            let held_until = inner.held_until.lock();
            let left = held_until.map(|until| until.saturating_duration_since(Instant::now()));
            if let Some(left) = left.filter(|left| !left.is_zero()) {
                let _none = opened.host.drain(left, inner.turn_limit);
            }
            inner.phase.send_replace(Phase::Open(opened));
        }
        inner.journal.note(format_args!("the host is open"));
        tokio::spawn(async move {
            let (Self(inner), opened) = telling;
            let told = usage::tell(&opened, &inner.plan.uses, inner.turn_limit, &inner.usage);
            tokio::select! {
                () = told => {}
                () = inner.ending.cancelled() => {}
            }
        });
    }

    fn failing(&self, error: &OpeningError) {
        let reason = in_full(error);
        let news = self.0.usage.send_if_modified(|usage| {
            let news = usage.fault.as_ref() != Some(&reason);
            usage.fault = Some(reason.clone());
            news
        });
        if news {
            self.0.journal.note(format_args!("the host cannot be opened: {reason}"));
        }
        self.0.phase.send_replace(Phase::Failing { reason });
    }

    /// A new connection to it: the end that the asker is given.
    ///
    /// # Errors
    /// [`Refusal::NotReady`] while it is opened, [`Refusal::GivenUp`] while it cannot be,
    /// [`Refusal::Connect`] when it has [`CONNECTIONS_MAX`] or no descriptor is free.
    pub(crate) fn dial(&self) -> Result<OwnedFd, Refusal> {
        let opened = match &*self.0.phase.borrow() {
            Phase::Opening => return Err(Refusal::NotReady),
            Phase::Failing { reason } => return Err(Refusal::GivenUp { reason: reason.clone() }),
            Phase::Ended => return Err(Refusal::Stopping),
            Phase::Open(opened) => Arc::clone(opened),
        };
        let Ok(place) = Arc::clone(&self.0.places).try_acquire_owned() else {
            let reason = format!("{CONNECTIONS_MAX} connections are open already");
            return Err(Refusal::Connect { reason });
        };
        let (ours, theirs) =
            pair().map_err(|error| Refusal::Connect { reason: error.to_string() })?;
        let host = opened.host.clone();
        tokio::spawn(async move {
            host.serve(ours, None).await;
            drop(place);
        });
        Ok(theirs)
    }

    /// Begins a drain, and says how many turns run. While it is not open none does.
    ///
    /// # Errors
    /// [`Refusal::Stopping`] once it ends.
    pub(crate) fn drain(&self, hold: Duration) -> Result<u32, Refusal> {
        let mut held_until = self.0.held_until.lock();
        *held_until = Instant::now().checked_add(hold);
        match &*self.0.phase.borrow() {
            Phase::Open(opened) => Ok(opened.host.drain(hold, self.0.turn_limit)),
            Phase::Opening | Phase::Failing { .. } => Ok(0),
            Phase::Ended => Err(Refusal::Stopping),
        }
    }

    /// Carries out a call that was kept for it.
    ///
    /// # Errors
    /// [`Refusal::Host`] with a problem that says whether a retry makes sense, which is safe: a
    /// call that was taken before is told where. [`Refusal::Stopping`] once it ends.
    pub(crate) async fn deliver(&self, call: Call) -> Result<Taken, Refusal> {
        if !matches!(call, Call::ThreadCreate(_) | Call::ThreadPrompt(_)) {
            let detail = format!("`{}` is not kept for a sleeping environment.", call.method());
            return Err(refused(Problem::new(Code::Unsupported).detail(detail)));
        }
        let delivering = async {
            let opened = self.opened().await?;
            opened.host.call(call).await.map_err(refused)
        };
        tokio::time::timeout(DELIVERY_TIME, delivering).await.unwrap_or_else(|_| {
            let detail = "The environment did not come to it in time. Send it again.";
            Err(refused(Problem::new(Code::Overloaded).detail(detail)))
        })
    }

    /// Waits while it is opened for the first time.
    async fn opened(&self) -> Result<Arc<Opened>, Refusal> {
        let mut phase = self.0.phase.subscribe();
        let found = phase.wait_for(|phase| !matches!(phase, Phase::Opening)).await;
        match found.as_deref() {
            Ok(Phase::Open(opened)) => Ok(Arc::clone(opened)),
            Ok(Phase::Failing { reason }) => {
                let detail = format!("The environment's host cannot be opened: {reason}.");
                Err(refused(Problem::new(Code::SurfaceFailed).detail(detail)))
            }
            Ok(Phase::Opening | Phase::Ended) | Err(_) => Err(Refusal::Stopping),
        }
    }

    /// Ends it: what connects or is asked from now on is refused, clients are told, agents end, the
    /// files are closed.
    pub(crate) async fn end(&self) {
        self.0.ending.cancel();
        // An opening under way comes to its end, so that what it opened is closed.
        self.0.tasks.wait().await;
        let before = self.0.phase.send_replace(Phase::Ended);
        if let Phase::Open(opened) = before {
            opened.end(Farewell::SUSPENDING).await;
            self.0.journal.note(format_args!("the host is closed"));
        }
    }
}

fn refused(problem: Problem) -> Refusal {
    Refusal::Host { problem: Box::new(problem) }
}

/// An error with its causes, in one line.
pub(crate) fn in_full(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text = format!("{text}: {error}");
        cause = error.source();
    }
    text
}

/// Two ends of a connection. Both are non-blocking, and neither outlives an `exec`.
fn pair() -> io::Result<(UnixStream, OwnedFd)> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let (ours, theirs) =
        rustix::net::socketpair(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
    Ok((UnixStream::from_std(StdUnixStream::from(ours))?, theirs))
}
