//! The registry of settings: the one place where a setting is declared.
//!
//! A setting's variable is `WAKEFUL_` and its key in capitals with dots as underscores.

use std::time::Duration;

use super::{check, kind::Kind};

/// One setting.
#[derive(Debug, Clone, Copy)]
pub struct Declaration {
    /// Its key in `wakeful.toml`, a dot between table and key.
    pub key: &'static str,
    /// What it may be.
    pub kind: Kind,
    /// What it is unless set, as a variable would say it.
    pub default: &'static str,
    /// A line of `wakeful.toml` that sets it, for messages and the reference page.
    pub example: &'static str,
    /// What it does, in sentences.
    pub about: &'static str,
}

impl Declaration {
    /// The variable that sets it.
    #[must_use]
    pub fn variable(&self) -> String {
        format!("WAKEFUL_{}", self.key.to_ascii_uppercase().replace('.', "_"))
    }
}

const MILLI: Duration = Duration::from_millis(1);
const SECOND: Duration = Duration::from_secs(1);
const MINUTE: Duration = Duration::from_secs(60);
const HOUR: Duration = Duration::from_secs(3_600);
const YEAR: Duration = Duration::from_secs(365 * 86_400);

/// Every setting, in the order in which `wakeful config show` prints them.
pub const SETTINGS: &[Declaration] = &[
    Declaration {
        key: "listen",
        kind: Kind::List(check::address),
        default: "127.0.0.1:7878,[::1]:7878",
        example: r#"listen = ["127.0.0.1:7878", "[::1]:7878"]"#,
        about: "Addresses and ports to listen on. \
                By default a machine without IPv6 listens on IPv4 alone.",
    },
    Declaration {
        key: "data",
        kind: Kind::Text(check::path),
        default: ".wakeful",
        example: r#"data = "/var/lib/wakeful""#,
        about: "Directory of the database, the workspaces and the sandboxes' run directories. \
                A relative path starts at the working directory.",
    },
    Declaration {
        key: "domain",
        kind: Kind::Text(check::domain),
        default: "wakeful.localhost",
        example: r#"domain = "agents.example.org""#,
        about: "The domain of the dashboard. \
                Surfaces are served on names below it, so it needs a wildcard record, \
                except under `.localhost`, which browsers resolve by themselves.",
    },
    Declaration {
        key: "public_url",
        kind: Kind::Text(check::public_url_or_empty),
        default: "",
        example: r#"public_url = "https://agents.example.org""#,
        about: "What people type, where a TLS proxy stands in front. \
                Scheme, host and port only; the host must be the domain. \
                With `https` the cookies are `Secure`.",
    },
    Declaration {
        key: "cookie_suffix",
        kind: Kind::Text(check::cookie_suffix),
        default: "",
        example: r#"cookie_suffix = "blue""#,
        about: "Appended to the names of cookies. \
                Keeps apart two installations whose domains lie under one another.",
    },
    Declaration {
        key: "path_origin",
        kind: Kind::Choice(&["own", "shared"]),
        default: "own",
        example: r#"path_origin = "own""#,
        about: "`own` redirects a page load of a path route to the surface's own host, so that \
                nothing from a sandbox runs in the dashboard's origin. \
                `shared` serves it on the main host, for installations without wildcard names \
                that trust what runs in their environments.",
    },
    Declaration {
        key: "cores",
        kind: Kind::Count { min: 0, max: 1_024 },
        default: "0",
        example: "cores = 4",
        about: "How many per-core runtimes serve requests; `0` takes one for each processor.",
    },
    Declaration {
        key: "keep_sandboxes",
        kind: Kind::Flag,
        default: "false",
        example: "keep_sandboxes = false",
        about: "Leave sandboxes running when Wakeful is stopped, so that the next start adopts \
                them. Otherwise a clean stop suspends them.",
    },
    Declaration {
        key: "default_template",
        kind: Kind::Text(check::template_name),
        default: "demo",
        example: r#"default_template = "demo""#,
        about: "The template of a new user's first project, \
                and of a project that is made without naming one.",
    },
    Declaration {
        key: "idle.agent",
        kind: Kind::Duration { min: MILLI, max: YEAR },
        default: "30m",
        example: r#"[idle] agent = "30m""#,
        about: "How long an environment stays awake after the last activity of its agent, of any \
                other surface but the app, or of an upload.",
    },
    Declaration {
        key: "idle.app",
        kind: Kind::Duration { min: MILLI, max: YEAR },
        default: "10m",
        example: r#"[idle] app = "10m""#,
        about: "How long it stays awake after the last visit of its app.",
    },
    Declaration {
        key: "idle.floor",
        kind: Kind::Duration { min: MILLI, max: YEAR },
        default: "5m",
        example: r#"[idle] floor = "5m""#,
        about: "The least that people may set as an idle timeout. \
                At least five times `proxy.ws_keepalive_interval`, so that what is open touches \
                its clock several times before it could run out.",
    },
    Declaration {
        key: "idle.turn_limit",
        kind: Kind::Duration { min: MINUTE, max: YEAR },
        default: "6h",
        example: r#"[idle] turn_limit = "6h""#,
        about: "How long one turn of an agent keeps an environment awake at most. \
                A turn that runs longer goes on, but no longer counts as activity.",
    },
    Declaration {
        key: "proxy.ws_keepalive_interval",
        kind: Kind::Duration { min: MILLI, max: HOUR },
        default: "1m",
        example: r#"[proxy] ws_keepalive_interval = "1m""#,
        about: "How often an open socket, stream or request touches its clock.",
    },
    Declaration {
        key: "proxy.held_per_environment",
        kind: Kind::Count { min: 1, max: 1_000_000 },
        default: "16384",
        example: "[proxy] held_per_environment = 16384",
        about: "How many requests may wait for one environment to wake; beyond, 503 at once.",
    },
    Declaration {
        key: "proxy.held_total",
        kind: Kind::Count { min: 1, max: 10_000_000 },
        default: "65536",
        example: "[proxy] held_total = 65536",
        about: "How many requests may wait in all; beyond, 503 at once.",
    },
    Declaration {
        key: "wake.budget",
        kind: Kind::Duration { min: MILLI, max: HOUR },
        default: "60s",
        example: r#"[wake] budget = "60s""#,
        about: "How long a request is held while its environment wakes.",
    },
    Declaration {
        key: "start.attempts",
        kind: Kind::Count { min: 1, max: 100 },
        default: "5",
        example: "[start] attempts = 5",
        about: "How often a start is tried before the environment counts as failed.",
    },
    Declaration {
        key: "start.timeout",
        kind: Kind::Duration { min: SECOND, max: HOUR },
        default: "2m",
        example: r#"[start] timeout = "2m""#,
        about: "How long one start may take until every eager surface answers.",
    },
    Declaration {
        key: "retention.workspace",
        kind: Kind::Duration { min: Duration::ZERO, max: YEAR },
        default: "7d",
        example: r#"[retention] workspace = "7d""#,
        about: "How long a deleted project's files are kept and the deletion can be undone.",
    },
    Declaration {
        key: "isolation.mode",
        kind: Kind::Choice(&["auto", "none", "landlock"]),
        default: "auto",
        example: r#"[isolation] mode = "auto""#,
        about: "How sandboxes are kept from the rest of the machine. \
                `auto` takes the most that works here and `wakeful doctor` says what that is; \
                `landlock` refuses to start a sandbox without it; `none` confines nothing.",
    },
    Declaration {
        key: "isolation.readable",
        kind: Kind::List(check::absolute_path),
        default: "",
        example: r#"[isolation] readable = ["/opt/node"]"#,
        about: "Paths that sandboxes may read and execute, \
                beside their workspace and the system's own programs.",
    },
    Declaration {
        key: "isolation.limits.files",
        kind: Kind::Count { min: 64, max: 10_000_000 },
        default: "65536",
        example: "[isolation.limits] files = 65536",
        about: "Open descriptors of each process in a sandbox. \
                A lower limit of the machine holds all the same.",
    },
    Declaration {
        key: "isolation.limits.core",
        kind: Kind::Count { min: 0, max: u64::MAX >> 1 },
        default: "0",
        example: "[isolation.limits] core = 0",
        about: "Bytes of a core dump of a process in a sandbox.",
    },
    Declaration {
        key: "log.format",
        kind: Kind::Choice(&["text", "json"]),
        default: "text",
        example: r#"[log] format = "json""#,
        about: "How Wakeful writes its own log: for people, or as one JSON object a line.",
    },
    Declaration {
        key: "log.level",
        kind: Kind::Text(check::log_level),
        default: "info",
        example: r#"[log] level = "info,wakeful_gateway=debug""#,
        about: "What it logs: `error`, `warn`, `info`, `debug` or `trace`, for everything or for \
                single crates. Content of requests, files and variables is never logged above \
                `debug`.",
    },
];

/// The declaration of `key`.
#[must_use]
pub fn declaration(key: &str) -> Option<&'static Declaration> {
    SETTINGS.iter().find(|setting| setting.key == key)
}
