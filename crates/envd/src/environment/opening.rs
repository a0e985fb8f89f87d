//! Opening and ending what a host is made of.

use std::{
    fs::DirBuilder, io, os::unix::fs::DirBuilderExt, path::PathBuf, sync::Arc, time::Duration,
};

use tokio::{sync::watch, task::AbortHandle};
use wakeful_wire::{
    EnvId, HostId, Timestamp,
    host::{Capabilities, Descriptor, Platform},
    rpc::HostConfig,
};

use super::{agents::Agents, usage::Uses};
use crate::{
    agent::{Runner, RunnerLimits},
    credential::{Authority, AuthorityOptions, GrantGate, OpenError, Sources},
    host::{Address, Farewell, Host, HostParts},
    thread::{
        Settings, Threads,
        log::{DIRECTORY, LogError},
    },
};

/// How long a host is silent on a socket at most.
const HEARTBEAT: Duration = Duration::from_secs(30);
/// The session file's name, in the log's directory.
const SESSIONS: &str = "sessions.db";

/// What a host is opened with. It can be opened with it again.
#[derive(Debug)]
pub(crate) struct Plan {
    pub(crate) workspace: PathBuf,
    pub(crate) sources: Sources,
    pub(crate) pass: Pass,
    pub(crate) agents: Agents,
    pub(crate) config: HostConfig,
    pub(crate) descriptor: Descriptor,
    pub(crate) address: Address,
    pub(crate) uses: Uses,
}

/// How clients enter.
pub(crate) enum Pass {
    /// By grants of the control plane for this environment, which has the sandbox's secret as well.
    Grants { audience: EnvId, secret: String },
    /// By pairing alone. The pepper is a secret, too.
    Pairing { pepper: Vec<u8> },
}

impl std::fmt::Debug for Pass {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Grants { .. } => "Grants",
            Self::Pairing { .. } => "Pairing",
        })
    }
}

impl Pass {
    fn onto(&self, options: &mut AuthorityOptions) {
        match self {
            Self::Grants { audience, secret } => {
                options.grants = Some(GrantGate::new(*audience, secret));
                options.pepper = secret.as_bytes().to_vec();
            }
            Self::Pairing { pepper } => options.pepper.clone_from(pepper),
        }
    }
}

/// Why a host cannot be opened.
#[derive(Debug, thiserror::Error)]
pub(crate) enum OpeningError {
    #[error("the directory `{DIRECTORY}` of the workspace cannot be used")]
    Directory(#[source] io::Error),
    #[error(transparent)]
    Log(#[from] LogError),
    #[error(transparent)]
    Sessions(#[from] OpenError),
}

/// What a host says of itself.
pub(crate) fn descriptor(
    id: HostId,
    environment: Option<EnvId>,
    label: String,
    capabilities: &[&str],
) -> Descriptor {
    Descriptor {
        id,
        environment,
        label,
        release: env!("CARGO_PKG_VERSION").to_owned(),
        protocols: Host::protocols(),
        platform: Platform {
            os: std::env::consts::OS.to_owned(),
            arch: std::env::consts::ARCH.to_owned(),
        },
        capabilities: Capabilities::and(capabilities),
    }
}

/// An open host and what it runs on.
#[derive(Debug)]
pub(crate) struct Opened {
    pub(crate) host: Host,
    pub(crate) threads: Threads,
    pub(crate) authority: Authority,
    runner: Runner,
    sources: Sources,
    time: AbortHandle,
    /// Nobody hears of changes once it is gone.
    _config: watch::Sender<HostConfig>,
}

impl Opened {
    /// Opens everything. Afterwards turns begin as they are asked for.
    ///
    /// The log comes last, since each time it is opened is written into it.
    ///
    /// # Errors
    /// When a file cannot be used. Then nothing is left open.
    pub(crate) async fn open(plan: &Plan) -> Result<Self, OpeningError> {
        let directory = plan.workspace.join(DIRECTORY);
        DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(&directory)
            .map_err(OpeningError::Directory)?;
        let mut options = AuthorityOptions::new(directory.join(SESSIONS), plan.sources.clone());
        plan.pass.onto(&mut options);
        let authority = Authority::open(options).await?;
        let sources = plan.sources.clone();
        let clock: Arc<dyn Fn() -> Timestamp + Send + Sync> = Arc::new(move || sources.now());
        let mut settings = Settings::new(plan.workspace.clone());
        settings.clock = Arc::clone(&clock);
        let threads = match Threads::open(settings).await {
            Ok(threads) => threads,
            Err(error) => {
                authority.sessions().close().await;
                return Err(error.into());
            }
        };
        let runner = Runner::new(
            Arc::new(threads.clone()),
            plan.agents.clone(),
            Arc::new(plan.uses.clone()),
            RunnerLimits::default(),
        );
        // From here on, before anybody can begin a turn.
        let follower = threads.follow(threads.cursor().seq);
        let running = runner.clone();
        tokio::spawn(async move { running.run(follower).await });
        let sessions = authority.sessions().clone();
        let time = tokio::spawn(async move { sessions.keep_time().await }).abort_handle();
        let (config, configured) = watch::channel(plan.config.clone());
        let host = Host::new(HostParts {
            threads: threads.clone(),
            authority: authority.clone(),
            descriptor: plan.descriptor.clone(),
            config: configured,
            address: plan.address.clone(),
            used: Arc::new(plan.uses.clone()),
            clock,
            heartbeat: HEARTBEAT,
        });
        let sources = plan.sources.clone();
        Ok(Self { host, threads, authority, runner, sources, time, _config: config })
    }

    /// The host's time.
    pub(crate) fn now(&self) -> Timestamp {
        self.sources.now()
    }

    /// Ends it: clients are told first, then agents end, whose last words are still written, then
    /// the files are closed. Ending in the middle loses nothing either: the log is whole at every
    /// moment, and agents end with this process.
    pub(crate) async fn end(&self, farewell: Farewell) {
        self.host.close(farewell).await;
        self.runner.stop().await;
        self.threads.close().await;
        self.time.abort();
        self.authority.sessions().close().await;
    }
}
