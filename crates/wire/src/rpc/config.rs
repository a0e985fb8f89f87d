//! How a host is set up, as far as its clients need to know.

use serde::{Deserialize, Serialize};

/// A host's configuration. It is small, and always sent whole.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct HostConfig {
    /// Higher after each change within one start of the host.
    pub revision: u64,
    /// The agents that threads can be made with, by name.
    #[serde(default)]
    pub agents: Vec<AgentView>,
    /// The agent that a thread gets when nobody chose one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub default_agent: Option<String>,
}

/// An agent as clients see it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct AgentView {
    /// Its name in the template.
    pub name: String,
    /// For people; the name where absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
}
