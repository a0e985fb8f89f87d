//! Configuration: `wakeful.toml`, `WAKEFUL_…` variables and flags, resolved once into [`Config`].
//!
//! A flag beats a variable, a variable beats the file, the file beats the default; each value knows
//! where it came from. Nothing below reads the process environment, a file or a clock: everything
//! comes in as [`Layers`], so each rule is a table in a test. The other parts of the program never
//! see a layer: they are built from the plain values here.
//!
//! Start at [`setting::SETTINGS`], the registry from which parsing, `wakeful config show` and the
//! reference pages are made; [`schema`] is the same for templates.

pub mod build;
pub mod check;
mod document;
pub mod duration;
pub mod fault;
pub mod kind;
pub mod layers;
pub mod nearest;
pub mod node;
pub mod reference;
pub mod schema;
pub mod setting;
pub mod show;
pub mod template;
mod walk;

use std::{collections::BTreeMap, net::SocketAddr, path::PathBuf, time::Duration};

use wakeful_wire::{
    TemplateName,
    hosts::{Hosts, PathOrigin, Scheme},
    sandbox::Limits,
    template::Template,
};

pub use fault::ConfigError;
pub use layers::{Layers, Origin};

/// Everything that `wakeful up` runs with, checked and resolved.
#[derive(Debug, Clone, PartialEq)]
pub struct Config {
    /// Where the one listener listens. Never empty.
    pub listen: Vec<SocketAddr>,
    /// The directory of the database, the workspaces and the run directories. Absolute.
    pub data: PathBuf,
    /// The domain under which everything is served: lower-case, no port, no dot at either end.
    pub domain: String,
    /// What people type, where that differs from `http://{domain}:{port}`.
    pub public_url: Option<PublicUrl>,
    /// Appended to the names of cookies, so that two installations on one host are kept apart.
    /// Empty unless configured.
    pub cookie_suffix: String,
    /// Whether pages of path routes run on hosts of their own or on the main host.
    pub path_origin: PathOrigin,
    /// How many per-core runtimes serve the data plane. At least one.
    pub cores: usize,
    /// Whether a clean stop leaves sandboxes running, for an upgrade.
    pub keep_sandboxes: bool,
    /// The template of a new user's first project. It exists in `templates`.
    pub default_template: TemplateName,
    /// When environments fall asleep.
    pub idle: Idle,
    /// The data plane.
    pub proxy: Proxy,
    /// Waking.
    pub wake: Wake,
    /// Starting sandboxes.
    pub start: Start,
    /// Keeping what was deleted.
    pub retention: Retention,
    /// Keeping sandboxes from their neighbours.
    pub isolation: Isolation,
    /// The program's own log.
    pub log: Log,
    /// What environments can run: shipped ones and configured ones.
    pub templates: BTreeMap<TemplateName, Template>,
    /// Where each setting's value came from, by key.
    pub origins: BTreeMap<&'static str, Origin>,
    /// What is odd but no error, for people: an unknown `WAKEFUL_…` variable.
    pub warnings: Vec<String>,
}

impl Config {
    /// Resolves the layers.
    ///
    /// # Errors
    /// Every fault that was found, each with where it stands and how it is written right.
    pub fn resolve(layers: &Layers) -> Result<Self, ConfigError> {
        build::resolve(layers)
    }

    /// How the public side is reached, when the listener has got this port: by the public address
    /// if one is configured, else by plain HTTP at the domain and this port.
    #[must_use]
    pub fn hosts(&self, port: u16) -> Hosts {
        let (scheme, port) = match &self.public_url {
            Some(url) => (if url.secure { Scheme::Https } else { Scheme::Http }, url.port()),
            None => (Scheme::Http, Some(port)),
        };
        Hosts {
            domain: self.domain.clone(),
            scheme,
            port: port.filter(|port| *port != scheme.default_port()),
            cookie_suffix: self.cookie_suffix.clone(),
            path_origin: self.path_origin,
        }
    }

    /// Whether nobody has set `key`: then its default may bend to the machine, such as listening
    /// on IPv4 alone where there is no IPv6.
    #[must_use]
    pub fn is_default(&self, key: &str) -> bool {
        self.origins.get(key).is_none_or(|origin| *origin == Origin::Default)
    }
}

/// `[idle]`: how long an activity clock keeps an environment awake after the last activity.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Idle {
    /// The agent clock: every surface but the app's, and uploads.
    pub agent: Duration,
    /// The app clock.
    pub app: Duration,
    /// The least that either may be, wherever people set it. At least five times
    /// [`Proxy::ws_keepalive_interval`].
    pub floor: Duration,
    /// How long one turn of an agent keeps its environment awake at most; at least a minute.
    pub turn_limit: Duration,
}

/// `[proxy]`: the data plane.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Proxy {
    /// How often what is open touches its clock.
    pub ws_keepalive_interval: Duration,
    /// How many requests may wait for one environment; beyond, 503 at once.
    pub held_per_environment: usize,
    /// How many requests may wait in all; beyond, 503 at once.
    pub held_total: usize,
}

/// `[wake]`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Wake {
    /// How long a request is held while its environment wakes.
    pub budget: Duration,
}

/// `[start]`: starting sandboxes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Start {
    /// How often a start is tried before the environment counts as failed. At least one.
    pub attempts: u32,
    /// How long one start may take until its eager surfaces answer.
    pub timeout: Duration,
}

/// `[retention]`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Retention {
    /// How long a deleted project's workspace is kept and can be restored.
    pub workspace: Duration,
}

/// `[isolation]`: keeping sandboxes from their neighbours.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Isolation {
    /// Which rung of the ladder is asked for.
    pub mode: IsolationMode,
    /// Paths that sandboxes may read and execute beside those that every program needs. Absolute.
    pub readable: Vec<PathBuf>,
    /// Resource limits of each process.
    pub limits: Limits,
}

/// A rung of the isolation ladder.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IsolationMode {
    /// The highest that works here.
    Auto,
    /// None: sandboxes see what the platform sees.
    None,
    /// Landlock and seccomp, or no start at all.
    Landlock,
}

/// `[log]`: the program's own log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Log {
    /// How a line is written.
    pub format: LogFormat,
    /// What is written: a level, or directives such as `info,wakeful_gateway=debug`.
    pub level: String,
}

/// How a log line is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LogFormat {
    /// For people.
    Text,
    /// One JSON object a line.
    Json,
}

/// `https://example.org:8443`: scheme and authority, and nothing behind.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PublicUrl {
    /// Whether the scheme is `https`, which makes cookies `Secure` and `__Host-`.
    pub secure: bool,
    /// Host, and port where one is given. Lower-case.
    pub authority: String,
}

impl PublicUrl {
    /// The host without its port.
    #[must_use]
    pub fn host(&self) -> &str {
        self.authority.split_once(':').map_or(&self.authority, |(host, _)| host)
    }

    /// The port, where one is given.
    #[must_use]
    pub fn port(&self) -> Option<u16> {
        self.authority.split_once(':').and_then(|(_, port)| port.parse().ok())
    }
}

impl std::fmt::Display for PublicUrl {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let scheme = if self.secure { "https" } else { "http" };
        write!(f, "{scheme}://{}", self.authority)
    }
}
