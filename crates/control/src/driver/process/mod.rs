//! Sandboxes as processes of this machine, each under an `envd` of its own.
//!
//! # How a sandbox is known
//!
//! By its run directory, whose name follows from the sandbox's uid. In it lies a lock file that
//! `envd` opens without creating it and holds as long as it lives. So whoever holds the lock and
//! removes the file knows for certain that no `envd` lives and that none can come up late: that is
//! what "absent" means here. Everything else is a doubt and changes nothing.
//!
//! An `envd` that lives is adopted when it answers the secret with the sandbox's own uid. The
//! platform is not its parent in any sense that matters: it sets no death signal, holds no pipe,
//! and can end at any moment.
//!
//! # What a crash leaves, and what becomes of it
//!
//! A later look or step always finds one of these, whichever process began it:
//!
//! | crash after | what is there | what happens |
//! | --- | --- | --- |
//! | the directory, before the lock file | no lock file | buried |
//! | the lock file, before the spawn | lock free | buried |
//! | the spawn, before the whole spec | lock free; `envd` reads the end of its input too early | `envd` ends by itself; buried |
//! | the whole spec, before `envd` locks | lock free | buried; `envd` finds no file, or one that is not the file it locked, and ends |
//! | the lock, before the control socket | lock held, no answer | unknown, until it answers |
//! | the hello | it answers | adopted |
//! | the stop was asked | it answers that it is stopping; then lock free | looked at again, then buried |
//! | a kill of `envd` alone | lock free, marked processes | they are killed; buried |
//! | the removal of the lock file, in the middle of a burial | no lock file | buried |
//!
//! Burying: take the lock, remove the lock file, kill what is left of the sandbox's processes, keep
//! the logs, remove the directory. Each part can be done again. A directory that is gone was the
//! last part of that, so it alone is the proof of absence.
//!
//! Within one process, turns keep a look from burying a sandbox that is being created.

mod ask;
mod burial;
mod cgroup;
mod hints;
mod host;
mod leftovers;
mod logs;
mod look;
mod programs;
mod report;
mod run_dir;
mod sight;
mod spawn;
mod start;
mod turns;

use std::{
    ffi::{OsStr, OsString},
    io,
    path::PathBuf,
    sync::Arc,
    time::Duration,
};

use async_trait::async_trait;
use wakeful_lifecycle::{
    SandboxRef, Seen,
    port::{DeliverError, Driver, DriverError, Launch, LogTail},
};
use wakeful_wire::{
    EnvId, SurfaceName,
    gate::Upstream,
    rpc::{Call, Taken},
    sandbox::{AskKind, EnvdStatus, Isolation, Refusal, Reply, SurfaceState, subcommand},
    template::Template,
};

pub use programs::{Reach, missing_program};
pub use report::IsolationReport;
pub use run_dir::run_root;

use logs::LogRoot;
use look::Look;
use run_dir::{RunDir, RunRoot};
use sight::Sights;
use spawn::Starter;
use turns::Turns;

/// How long one question may take before the answer is a doubt.
const ASK_TIME: Duration = Duration::from_secs(2);
/// How long an `envd` may take beyond the grace before it is killed.
const STOP_MARGIN: Duration = Duration::from_secs(5);

/// What a program that runs in a sandbox inherits of the platform's own environment.
const INHERITED: [&str; 4] = ["PATH", "LANG", "TZ", "TERM"];

/// What a [`ProcessDriver`] goes by.
#[derive(Debug, Clone)]
pub struct ProcessDriverConfig {
    /// The program that runs as `envd`, under the subcommands of
    /// [`wakeful_wire::sandbox::subcommand`]: this program itself.
    pub program: PathBuf,
    /// The directory for run directories ([`run_root`]).
    pub run_root: PathBuf,
    /// The directory for the logs of environments whose sandbox has ended.
    pub log_root: PathBuf,
    /// The isolation of every sandbox. The directories of `$PATH` and what [`Reach::new`] adds
    /// to them are readable beside what stands here.
    pub isolation: Isolation,
    /// The platform's own environment, of which a sandbox inherits `PATH`, `LANG`, `TZ` and `TERM`.
    /// `HOME` says what of `PATH` is the user's own.
    pub environment: Vec<(OsString, OsString)>,
    /// How long programs get between SIGTERM and SIGKILL when an `envd` is told to end by a signal
    /// rather than by a stop, which names its own grace.
    pub stop_grace: Duration,
}

/// Sandboxes as processes of this machine.
#[derive(Debug)]
pub struct ProcessDriver {
    starter: Starter,
    runs: RunRoot,
    logs: LogRoot,
    isolation: Isolation,
    reach: Reach,
    stop_grace: Duration,
    sights: Arc<Sights>,
    turns: Turns,
}

impl ProcessDriver {
    /// Makes the driver and its directories.
    ///
    /// # Errors
    /// When a directory cannot be made, is not this user's, or is too long for a socket's path.
    pub fn open(config: ProcessDriverConfig) -> io::Result<Self> {
        let home = config.environment.iter().find(|(name, _)| name == "HOME");
        let home = home.map(|(_, home)| PathBuf::from(home)).filter(|home| home.is_absolute());
        let environment: Vec<_> = config
            .environment
            .into_iter()
            .filter(|(name, _)| INHERITED.iter().any(|inherited| name == inherited))
            .collect();
        let path = environment.iter().find(|(name, _)| name == "PATH");
        let path = path.map_or_else(|| OsStr::new(""), |(_, path)| path.as_os_str());
        let mut isolation = config.isolation;
        let reach = Reach::new(
            path,
            home.as_deref(),
            &[&config.run_root, &config.log_root],
            isolation.landlock.then(|| isolation.readable.clone()),
        );
        isolation.readable.extend(reach.of_path().cloned());
        cgroup::sweep();
        Ok(Self {
            starter: Starter {
                program: config.program,
                subcommand: subcommand::ENVD.into(),
                environment,
            },
            runs: RunRoot::open(&config.run_root)?,
            logs: LogRoot::open(&config.log_root)?,
            isolation,
            reach,
            stop_grace: config.stop_grace,
            sights: Arc::default(),
            turns: Turns::default(),
        })
    }

    /// What is missing on this machine before a template can run, for people.
    #[must_use]
    pub fn missing_program(&self, template: &Template) -> Option<String> {
        missing_program(template, &self.reach)
    }

    /// What isolation this machine gives, found out by applying it.
    pub async fn isolation_report(&self) -> IsolationReport {
        report::find_out(&self.starter, &self.isolation).await
    }

    fn known(&self, sandbox: &SandboxRef) -> Option<(RunDir, Arc<EnvdStatus>)> {
        let status = self.sights.status(sandbox)?;
        Some((self.runs.dir(sandbox.uid), status))
    }
}

fn another_secret() -> DriverError {
    DriverError::passing("a sandbox of this uid has another secret")
}

fn left(error: io::Error) -> DriverError {
    DriverError::passing(format!("something of the sandbox is left: {error}"))
}

async fn off_the_runtime<T: Send + 'static>(
    work: impl FnOnce() -> io::Result<T> + Send + 'static,
) -> io::Result<T> {
    tokio::task::spawn_blocking(work).await.map_err(io::Error::other)?
}

#[async_trait]
impl Driver for ProcessDriver {
    async fn create(&self, launch: &Launch) -> Result<(), DriverError> {
        let sandbox = &launch.sandbox;
        let _turn = self.turns.take(sandbox.uid).await;
        let dir = self.runs.dir(sandbox.uid);
        let came_up = match self.look(sandbox, &dir, look::DYING_TIME).await {
            Look::Answers(status) => Ok(status),
            Look::Stranger => return Err(another_secret()),
            // One that an earlier process of ours has begun: it comes up, or it hangs.
            Look::Doubt => match self.hello(sandbox, &dir).await {
                Look::Answers(status) => Ok(status),
                Look::Stranger => return Err(another_secret()),
                Look::Nothing | Look::Dead | Look::Doubt => Err(start::no_hello()),
            },
            Look::Dead => {
                self.bury(sandbox, &dir).await.map_err(left)?;
                self.start(launch, &dir).await
            }
            Look::Nothing => self.start(launch, &dir).await,
        };
        match came_up {
            Ok(status) if status.stopping => {
                Err(DriverError::passing("it is still being taken down"))
            }
            Ok(status) => {
                tracing::debug!(sandbox = %sandbox.uid, env = %sandbox.env, "sandbox is up");
                self.adopt(sandbox, &dir, status);
                Ok(())
            }
            Err(error) => {
                self.kill(sandbox, &dir).await.map_err(left)?;
                Err(error)
            }
        }
    }

    async fn observe(&self, sandbox: &SandboxRef) -> Seen {
        // It is being created or stopped right now; what is seen in the middle of it means nothing.
        let Some(_turn) = self.turns.try_take(sandbox.uid) else { return Seen::Unknown };
        let dir = self.runs.dir(sandbox.uid);
        match self.look(sandbox, &dir, look::DYING_TIME).await {
            Look::Answers(status) => {
                let seen = sight::seen(&status);
                self.adopt(sandbox, &dir, status);
                seen
            }
            Look::Nothing => {
                self.sights.gone(sandbox);
                Seen::Absent
            }
            Look::Dead => match self.bury(sandbox, &dir).await {
                Ok(()) => Seen::Absent,
                Err(error) => {
                    tracing::warn!(%error, sandbox = %sandbox.uid, "a dead sandbox is not buried");
                    self.sights.doubted(sandbox);
                    Seen::Unknown
                }
            },
            Look::Doubt | Look::Stranger => {
                self.sights.doubted(sandbox);
                Seen::Unknown
            }
        }
    }

    fn glance(&self, sandbox: &SandboxRef) -> Seen {
        self.sights.glance(sandbox)
    }

    async fn stop(&self, sandbox: &SandboxRef, grace: Duration) -> Result<(), DriverError> {
        let _turn = self.turns.take(sandbox.uid).await;
        let dir = self.runs.dir(sandbox.uid);
        if !dir.exists().map_err(left)? {
            self.sights.gone(sandbox);
            return Ok(());
        }
        let stop = AskKind::Stop { grace_ms: wakeful_wire::time::millis(grace) };
        match ask::once(&dir.socket(), &sandbox.secret, stop, ASK_TIME).await {
            Ok(Reply::Done) => {
                if !burial::wait_free(&dir, grace + STOP_MARGIN).await {
                    tracing::warn!(sandbox = %sandbox.uid, "a sandbox does not stop and is killed");
                }
            }
            Ok(Reply::Refused(Refusal::Unauthorized)) => {
                return Err(another_secret());
            }
            Ok(_) | Err(_) => {}
        }
        self.kill(sandbox, &dir).await.map_err(left)?;
        tracing::debug!(sandbox = %sandbox.uid, env = %sandbox.env, "sandbox stopped");
        Ok(())
    }

    fn upstream(&self, sandbox: &SandboxRef, surface: &SurfaceName) -> Option<Upstream> {
        let (dir, status) = self.known(sandbox)?;
        if status.stopping {
            return None;
        }
        let authority = if *surface == SurfaceName::host() {
            host::authority(&status)?
        } else {
            let surface = status.surfaces.get(surface)?;
            (surface.state == SurfaceState::Ready).then(|| format!("127.0.0.1:{}", surface.port))?
        };
        Some(Upstream::Broker {
            socket: dir.socket(),
            secret: sandbox.secret.0.clone(),
            authority,
            basic: None,
        })
    }

    async fn start_surface(
        &self,
        sandbox: &SandboxRef,
        surface: &SurfaceName,
    ) -> Result<(), DriverError> {
        let dir = self.runs.dir(sandbox.uid);
        let ask = AskKind::Start { surface: surface.clone() };
        match ask::once(&dir.socket(), &sandbox.secret, ask, ASK_TIME).await {
            Ok(Reply::Done) => Ok(()),
            Ok(Reply::Refused(Refusal::Unknown)) => {
                Err(DriverError::permanent(format!("it has no surface `{surface}`")))
            }
            Ok(Reply::Refused(Refusal::Unauthorized)) => Err(another_secret()),
            Ok(_) => Err(DriverError::passing("it is being taken down")),
            Err(error) => Err(DriverError::passing(error.to_string())),
        }
    }

    async fn drain(&self, sandbox: &SandboxRef, hold: Duration) -> Result<u32, DriverError> {
        host::drain(&self.runs.dir(sandbox.uid), &sandbox.secret, hold).await
    }

    async fn deliver(&self, sandbox: &SandboxRef, call: &Call) -> Result<Taken, DeliverError> {
        host::deliver(&self.runs.dir(sandbox.uid), &sandbox.secret, call).await
    }

    async fn logs(
        &self,
        env: EnvId,
        surface: &SurfaceName,
        max: usize,
        from: Option<u64>,
    ) -> Result<LogTail, DriverError> {
        let running = self.sights.of_env(env).map(|uid| self.runs.dir(uid));
        let (logs, surface) = (self.logs.clone(), surface.clone());
        off_the_runtime(move || logs.tail(env, running.as_ref(), &surface, max, from))
            .await
            .map_err(|error| DriverError::passing(format!("its log cannot be read: {error}")))
    }

    async fn forget(&self, env: EnvId) -> Result<(), DriverError> {
        self.sights.forget(env);
        let logs = self.logs.clone();
        off_the_runtime(move || logs.forget(env))
            .await
            .map_err(|error| DriverError::passing(format!("its logs cannot be removed: {error}")))
    }

    async fn next_hint(&self) -> EnvId {
        self.sights.next_hint().await
    }
}
