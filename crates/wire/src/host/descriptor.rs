//! What a host says of itself to anybody.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use crate::{EnvId, HostId};

/// Where a host's descriptor is, below its address.
pub const DESCRIPTOR_PATH: &str = "/descriptor";

/// Who a host is. Public, cheap, and answered by the host alone: an answer is evidence that it
/// lives, if it names the host that was expected.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Descriptor {
    /// The host's lasting id. An environment's host has its environment's.
    pub id: HostId,
    /// The environment that it serves; absent for a host of its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub environment: Option<EnvId>,
    /// For people.
    pub label: String,
    /// Its release.
    pub release: String,
    /// The oldest and the newest protocol that it speaks.
    pub protocols: (u32, u32),
    /// Where it runs.
    pub platform: Platform,
    /// What it can do.
    pub capabilities: Capabilities,
}

/// Where a host runs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Platform {
    /// The operating system, such as `linux`.
    pub os: String,
    /// The processor, such as `x86_64`.
    pub arch: String,
}

/// What a host can do, by name. A name that a client does not know means nothing to it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(transparent)]
pub struct Capabilities(pub BTreeSet<String>);

/// The names of capabilities.
pub mod capability {
    /// Leaves idle subagents out of the list when asked to.
    pub const SHELL_THREAD_FAMILIES: &str = "shell_thread_families";
    /// Leaves older settled threads out of the list when asked to, and counts them.
    pub const SHELL_OLDER_SETTLED: &str = "shell_older_settled";
    /// Answers an unchanged list with a few bytes.
    pub const SHELL_CONDITIONAL: &str = "shell_conditional";
    /// Says when everything that happened during a load has been delivered.
    pub const SYNCHRONIZED: &str = "synchronized";
    /// Answers probes without work, ahead of everything queued.
    pub const PROBE: &str = "probe";
    /// Moves a live socket to the newer session of the same client.
    pub const SESSION_MOVES: &str = "session_moves";
    /// Takes grants of a control plane.
    pub const GRANTS: &str = "grants";
    /// Can be paired with.
    pub const PAIRING: &str = "pairing";

    /// Those that every host of this release has.
    pub const ALWAYS: &[&str] = &[
        SHELL_THREAD_FAMILIES,
        SHELL_OLDER_SETTLED,
        SHELL_CONDITIONAL,
        SYNCHRONIZED,
        PROBE,
        SESSION_MOVES,
    ];
}

impl Capabilities {
    /// Those that every host of this release has, and these.
    #[must_use]
    pub fn and(more: &[&str]) -> Self {
        Self(capability::ALWAYS.iter().chain(more).map(|name| (*name).to_owned()).collect())
    }

    /// Whether it can do this.
    #[must_use]
    pub fn has(&self, name: &str) -> bool {
        self.0.contains(name)
    }
}
