//! What an environment runs: a template and its surfaces, as written in `wakeful.toml`.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::{ClockKind, SurfaceName, TemplateName};

/// What an environment runs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Template {
    /// A title for people; the template's name where absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// A sentence for people who choose a template.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// The surface that `/u/{user}/` and the dashboard open. Where absent: `agent`, else the first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub home: Option<SurfaceName>,
    /// Variables of every process. An environment's own variables and secrets override them.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub env: BTreeMap<String, String>,
    /// How to install the programs, shown when one is missing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub install: Option<String>,
    /// The programs that its commands need, each found on `PATH` or at its absolute path. They are
    /// looked for before anything starts.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub needs: Vec<String>,
    /// The agents that threads can be made with, by name. The built-in `shell` needs no entry.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub agents: BTreeMap<String, Agent>,
    /// The agent that a thread gets when nobody chose one. Where absent: the only entry of
    /// `agents`, else `shell`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub default_agent: Option<String>,
    /// The ways in.
    #[serde(default)]
    pub surfaces: BTreeMap<SurfaceName, Surface>,
}

/// The name of the built-in agent that runs commands.
pub const SHELL_AGENT: &str = "shell";

/// An agent that speaks ACP on its standard input and output.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct Agent {
    /// The shell command that `envd` runs in the workspace.
    pub command: String,
    /// For people; the name where absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
}

impl Template {
    /// The surface to open first: the declared home, else `agent`, else the first by name.
    /// `None` for a template without surfaces.
    #[must_use]
    pub fn home(&self) -> Option<&SurfaceName> {
        self.home
            .as_ref()
            .filter(|home| self.surfaces.contains_key(*home))
            .or_else(|| self.surfaces.get_key_value("agent").map(|(name, _)| name))
            .or_else(|| self.surfaces.keys().next())
    }

    /// Says which of the programs that it needs are missing, and how they are installed; `None`
    /// when all are there. `found` says whether a program is.
    #[must_use]
    pub fn missing(&self, found: impl Fn(&str) -> bool) -> Option<String> {
        let missing: Vec<_> =
            self.needs.iter().filter(|program| !found(program)).map(String::as_str).collect();
        let verb = if missing.len() == 1 { "is" } else { "are" };
        if missing.is_empty() {
            return None;
        }
        let install = self.install.as_deref().map(|how| format!("; install with: {how}"));
        let install = install.unwrap_or_default();
        Some(format!("{} {verb} not installed{install}", missing.join(", ")))
    }

    /// The agent that a thread gets when nobody chose one.
    #[must_use]
    pub fn default_agent(&self) -> &str {
        match (&self.default_agent, self.agents.len()) {
            (Some(name), _) => name,
            (None, 1) => self.agents.keys().next().map_or(SHELL_AGENT, String::as_str),
            (None, _) => SHELL_AGENT,
        }
    }

    /// The title for people.
    #[must_use]
    pub fn title<'a>(&'a self, name: &'a TemplateName) -> &'a str {
        self.title.as_deref().unwrap_or(name.as_str())
    }
}

/// One way into an environment.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Surface {
    /// The shell command that `envd` runs in the workspace, with `$PORT` set to the port that it
    /// must serve on the loopback address.
    pub command: String,
    /// When the command is started.
    #[serde(default)]
    pub start: Start,
    /// How readiness is probed.
    #[serde(default)]
    pub ready: Ready,
    /// Where it is reached.
    #[serde(default)]
    pub route: RouteKind,
    /// What happens to the prefix of a path route.
    #[serde(default)]
    pub base_path: BasePath,
    /// Which `Host` the program sees.
    #[serde(default)]
    pub host: HostPolicy,
    /// Which `Origin` the program sees, after the gateway itself has checked it.
    #[serde(default)]
    pub origin: OriginPolicy,
    /// Which clock visits feed. Where absent: `app` for the surface named `app`, else `agent`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clock: Option<ClockKind>,
    /// Which requests wake a sleeping environment. Where absent: `any` for the surface named
    /// `app`, else `intent`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wake: Option<Wake>,
    /// Path patterns that always count as intent. `*` matches any run of characters.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub wake_paths: Vec<String>,
    /// Path patterns that never count as intent: a program's own polls and reconnects.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub background: Vec<String>,
    /// Which credential the gateway injects.
    #[serde(default)]
    pub auth: Auth,
    /// Who may visit.
    #[serde(default)]
    pub access: Access,
}

impl Surface {
    /// The clock that visits of this surface feed.
    #[must_use]
    pub fn clock(&self, name: &SurfaceName) -> ClockKind {
        match self.clock {
            Some(clock) => clock,
            None if name.as_str() == "app" => ClockKind::App,
            None => ClockKind::Agent,
        }
    }

    /// Which requests wake a sleeping environment.
    #[must_use]
    pub fn wake(&self, name: &SurfaceName) -> Wake {
        match self.wake {
            Some(wake) => wake,
            None if name.as_str() == "app" => Wake::Any,
            None => Wake::Intent,
        }
    }
}

/// When a surface's command is started.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Start {
    /// With the sandbox; the environment is not ready before it answers.
    #[default]
    Eager,
    /// On the first visit of this surface.
    Lazy,
}

/// How readiness is probed. An open port is not a ready program, so prefer `http`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Ready {
    /// A GET of this path answers with one of these statuses, twice, each within a second.
    Http(ReadyHttp),
    /// The port takes a connection, twice.
    Tcp(ReadyTcp),
}

impl Default for Ready {
    fn default() -> Self {
        Self::Tcp(ReadyTcp { tcp: true })
    }
}

/// `{ http = "/healthz", status = [200, 401] }`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ReadyHttp {
    /// The path of the probe.
    pub http: String,
    /// The statuses that mean ready; any below 500 where empty.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub status: Vec<u16>,
}

/// `{ tcp = true }`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ReadyTcp {
    /// Always true.
    pub tcp: bool,
}

/// Where a surface is reached.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RouteKind {
    /// By a path of the main host.
    Path,
    /// By a host of its own.
    Host,
    /// By either.
    #[default]
    Both,
}

/// What happens to the prefix of a path route.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum BasePath {
    /// The prefix is taken off; redirects are mapped back under it.
    #[default]
    StripAndFixLocation,
    /// The prefix is taken off, and nothing else is done.
    Strip,
}

/// Which `Host` the program sees.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum HostPolicy {
    /// The visitor's.
    #[default]
    Keep,
    /// The program's own address, `127.0.0.1:PORT`.
    Upstream,
    /// A fixed name.
    Fixed(String),
}

/// Which `Origin` the program sees.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum OriginPolicy {
    /// The visitor's.
    #[default]
    Keep,
    /// The origin that fits the `Host` that the program sees.
    Rewrite,
    /// None.
    Drop,
}

/// Which requests wake a sleeping environment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Wake {
    /// Those that show intent: page loads, unsafe methods, programs (`design.md`, "Intent").
    Intent,
    /// Any but HEAD, OPTIONS, prefetches and what `background` names.
    Any,
    /// None: it is woken from the dashboard or by the API.
    Never,
}

/// Which credential the gateway injects.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Auth {
    /// None.
    #[default]
    None,
    /// HTTP Basic with a random password per environment. The program finds the pair in
    /// `$WAKEFUL_BASIC_USER` and `$WAKEFUL_BASIC_PASSWORD`.
    Basic,
}

/// Who may visit.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Access {
    /// The owner.
    #[default]
    Private,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_template_says_what_is_missing_and_how_to_install_it() {
        let template: Template = serde_json::from_value(serde_json::json!({
            "needs": ["here", "gone"], "install": "apt-get install gone"
        }))
        .unwrap();
        assert_eq!(template.missing(|_| true), None);
        assert_eq!(
            template.missing(|program| program == "here").as_deref(),
            Some("gone is not installed; install with: apt-get install gone")
        );
    }
}
