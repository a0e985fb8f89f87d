//! What a driver and `envd` say to one another.
//!
//! `envd` gets its [`SandboxSpec`] as JSON on standard input, up to end of file, so that no secret
//! stands in a process list or a file. It listens on the control socket of its run directory.
//! A connection there carries one [`Ask`] as one line of JSON, at most [`LINE_MAX`] bytes, and then
//! one [`Reply`] line, or a line per change for [`AskKind::Watch`]. The reply to
//! [`AskKind::Dial`] carries the connected descriptor as `SCM_RIGHTS`.

use std::{collections::BTreeMap, path::PathBuf};

use serde::{Deserialize, Serialize};

use crate::{
    EnvId, Problem, SandboxUid, SurfaceName,
    rpc::{Call, Taken},
    template::{Agent, Surface},
};

/// The user of the basic-auth pair that a gateway injects and that the programs find in
/// `$WAKEFUL_BASIC_USER`.
pub const BASIC_USER: &str = "wakeful";

/// The longest line on a control socket, in bytes.
pub const LINE_MAX: usize = 256 * 1024;

/// The variable that marks every process of a sandbox; its value is the [`SandboxUid`].
pub const MARKER: &str = "WAKEFUL_SANDBOX";

/// The variable that stands beside [`MARKER`]; its value is the run directory, which tells the
/// sandboxes of one installation from those of another on the same machine.
pub const RUN_MARKER: &str = "WAKEFUL_RUN_DIR";

/// What every sandbox can read and execute: the system's own programs, libraries and settings.
/// Paths that a machine does not have are skipped.
pub const BASE_READABLE: &[&str] = &[
    "/usr",
    "/bin",
    "/sbin",
    "/lib",
    "/lib32",
    "/lib64",
    "/libx32",
    "/etc",
    "/opt",
    "/nix",
    "/proc",
    "/sys",
    "/run/systemd/resolve",
    "/run/current-system",
];

/// The hidden subcommands under which the program runs parts of itself in a sandbox.
pub mod subcommand {
    /// The daemon: a [`SandboxSpec`](super::SandboxSpec) on standard input.
    pub const ENVD: &str = "envd";
    /// The step between the daemon and a surface's command.
    pub const SHIM: &str = "envd-exec";
    /// What holds the processes of one agent, terminal or command together.
    pub const TETHER: &str = "envd-tether";
    /// Applies an [`Isolation`](super::Isolation) from standard input to itself and prints the
    /// [`IsolationInForce`](super::IsolationInForce), both as JSON.
    pub const PROBE: &str = "envd-probe";
}

/// File names in a sandbox's run directory.
pub mod run_dir {
    /// The control socket.
    pub const SOCKET: &str = "envd.sock";
    /// Made by the driver before it spawns `envd`, and locked (`flock`) by `envd` for as long as it
    /// lives. `envd` opens it without creating it: where the driver has removed it, a late `envd`
    /// ends at once, so a sandbox that was given up cannot come up afterwards.
    pub const LOCK: &str = "lock";
    /// The log directory: `envd.log` and `{surface}.log`, each with one older `.1` beside it.
    pub const LOGS: &str = "logs";
    /// The sandbox's own scratch space, `$TMPDIR` of its processes. Ends with the sandbox.
    pub const TMP: &str = "tmp";
}

/// Everything that a sandbox is started with. Holds secrets: it is sent on standard input and
/// never written to a file or printed.
#[derive(Clone, Serialize, Deserialize)]
pub struct SandboxSpec {
    /// The environment.
    pub env: EnvId,
    /// This incarnation.
    pub sandbox: SandboxUid,
    /// What every [`Ask`] must carry. Also the nonce by which an adopted sandbox is known again.
    pub secret: String,
    /// The workspace: working directory and home of every process.
    pub workspace: PathBuf,
    /// The run directory, short enough for a socket path (108 bytes).
    pub run_dir: PathBuf,
    /// Variables of every process.
    pub env_vars: BTreeMap<String, String>,
    /// The password for surfaces with `auth = "basic"`.
    pub basic_password: String,
    /// The surfaces.
    pub surfaces: BTreeMap<SurfaceName, Surface>,
    /// Isolation and limits.
    pub isolation: Isolation,
    /// How long processes get between SIGTERM and SIGKILL, in milliseconds.
    pub stop_grace_ms: u64,
    /// The agents that threads can be made with, by name. The built-in `shell` is always there.
    #[serde(default)]
    pub agents: BTreeMap<String, Agent>,
    /// What the environment server is set up with.
    #[serde(default)]
    pub host: HostSpec,
}

/// What an environment server is set up with.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct HostSpec {
    /// The environment's name for people.
    pub label: String,
    /// The agent that a thread gets when nobody chose one; `shell` where absent.
    pub default_agent: Option<String>,
    /// How long one turn keeps the environment awake at most, in milliseconds.
    pub turn_limit_ms: u64,
    /// How often at most [`HostUse::activity`] counts, in milliseconds.
    pub activity_interval_ms: u64,
}

impl Default for HostSpec {
    fn default() -> Self {
        Self {
            label: String::new(),
            default_agent: None,
            turn_limit_ms: 6 * 60 * 60 * 1000,
            activity_interval_ms: 60 * 1000,
        }
    }
}

impl std::fmt::Debug for SandboxSpec {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SandboxSpec")
            .field("env", &self.env)
            .field("sandbox", &self.sandbox)
            .field("workspace", &self.workspace)
            .field("run_dir", &self.run_dir)
            .finish_non_exhaustive()
    }
}

/// How a sandbox is kept from its neighbours. The ladder's base rung; namespaces stand above it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Isolation {
    /// Landlock: only the workspace, the run directory's logs and `/tmp` are writable, only
    /// `readable` can be read. False runs without it.
    pub landlock: bool,
    /// A seccomp filter refuses ptrace, mounting, kernel modules, bpf, keyrings and the like.
    pub seccomp: bool,
    /// Paths that can be read and executed, beside those every program needs.
    pub readable: Vec<PathBuf>,
    /// Resource limits.
    pub limits: Limits,
}

/// Resource limits of a sandbox, by `setrlimit` on this rung.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Limits {
    /// Open descriptors of each process.
    pub files: u64,
    /// Bytes of a core dump.
    pub core: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self { files: 65_536, core: 0 }
    }
}

/// What is really in force in a sandbox, as `envd` found when it applied it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct IsolationInForce {
    /// The rung's name: `none` or `landlock`.
    pub rung: String,
    /// Each part and its state, for people: `("landlock", "fully enforced")`.
    pub parts: Vec<(String, String)>,
}

/// A request on the control socket.
#[derive(Clone, Serialize, Deserialize)]
pub struct Ask {
    /// The sandbox's secret, compared in constant time before anything else is read of it.
    pub secret: String,
    /// What is asked.
    pub ask: AskKind,
}

impl std::fmt::Debug for Ask {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Ask").field("ask", &self.ask).finish_non_exhaustive()
    }
}

/// What is asked of `envd`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AskKind {
    /// The status, once.
    Status,
    /// The status, now and whenever it changes, a line each.
    Watch,
    /// A connected descriptor to a surface. Starts a lazy surface and then refuses with
    /// [`Refusal::NotReady`] until it answers.
    Dial {
        /// The surface.
        #[serde(deserialize_with = "crate::name::addressed")]
        surface: SurfaceName,
    },
    /// Start a lazy surface, or one that was given up.
    Start {
        /// The surface.
        surface: SurfaceName,
    },
    /// Nothing new may begin in threads for this long: whatever is asked for meanwhile waits, and
    /// goes on afterwards unless a stop has come. Answered by [`Reply::Drained`]. A second ask
    /// counts from its own moment.
    Drain {
        /// How long, in milliseconds; at most a minute counts. 0 ends it.
        hold_ms: u64,
    },
    /// Carry out a call that the control plane kept for a sleeping environment. Only
    /// `thread.create` and `thread.prompt` are taken. Answered by [`Reply::Taken`].
    Deliver {
        /// The call.
        call: Box<Call>,
    },
    /// Take everything down and end: sockets of the host are closed with 4503, then SIGTERM, grace, SIGKILL. Answered before it begins.
    Stop {
        /// The grace in milliseconds.
        grace_ms: u64,
    },
}

/// An answer on the control socket.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Reply {
    /// The status.
    Status(EnvdStatus),
    /// Taken; for [`AskKind::Dial`] the descriptor travels with this line.
    Done,
    /// What still runs. 0: nothing does, and nothing begins while the drain holds.
    Drained {
        /// Turns that run within their limit.
        turns: u32,
    },
    /// A delivered call was carried out, now or before. What it caused is durable.
    Taken(Taken),
    /// Refused.
    Refused(Refusal),
}

/// Why `envd` refused.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Refusal {
    /// Wrong secret.
    Unauthorized,
    /// No such surface, or not a request.
    Unknown,
    /// The surface is on its way.
    NotReady,
    /// The surface's program cannot be kept running.
    GivenUp {
        /// Why, for people.
        reason: String,
    },
    /// The program's port does not take connections just now.
    Connect {
        /// Why, for people.
        reason: String,
    },
    /// The host did not take a delivered call. Where the problem says that a retry makes sense, it
    /// may take it later.
    Host {
        /// Why.
        problem: Box<Problem>,
    },
    /// The sandbox is being taken down.
    Stopping,
}

/// What `envd` knows of itself. Sent first when all eager surfaces are known, then on each change.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct EnvdStatus {
    /// The environment.
    pub env: EnvId,
    /// This incarnation.
    pub sandbox: SandboxUid,
    /// `envd`'s process id.
    pub pid: u32,
    /// Each surface.
    pub surfaces: BTreeMap<SurfaceName, SurfaceStatus>,
    /// What isolation is in force.
    pub isolation: IsolationInForce,
    /// True once it has begun to take everything down.
    pub stopping: bool,
    /// How its environment server is used.
    #[serde(default)]
    pub host: HostUse,
}

/// How an environment server is used.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct HostUse {
    /// Why it does not serve, for people; absent: it does.
    pub fault: Option<String>,
    /// Turns that run within their limit: each keeps the environment awake.
    pub turns: u32,
    /// Rises when somebody used the host, at most once each interval: the environment counts as in
    /// use just now.
    pub activity: u64,
}

impl EnvdStatus {
    /// Whether every eager surface answers.
    #[must_use]
    pub fn eager_ready(&self) -> bool {
        self.surfaces.values().filter(|surface| surface.eager).all(|surface| {
            // One broken surface never fails the environment: once given up it no longer counts.
            matches!(surface.state, SurfaceState::Ready | SurfaceState::GivenUp)
        })
    }
}

/// One surface's process.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SurfaceStatus {
    /// Where it stands.
    pub state: SurfaceState,
    /// Whether it is started with the sandbox.
    pub eager: bool,
    /// Its port on the sandbox's loopback address.
    pub port: u16,
    /// The process, while one runs.
    pub pid: Option<u32>,
    /// How often it was started.
    pub starts: u32,
    /// Why it is not ready, for people.
    pub reason: Option<String>,
}

/// Where a surface's process stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SurfaceState {
    /// Lazy, and not asked for yet.
    Stopped,
    /// Started, not answering yet.
    Starting,
    /// Answers.
    Ready,
    /// Ended; it is started again shortly.
    Restarting,
    /// Ended too often; it is started again when somebody asks.
    GivenUp,
}
