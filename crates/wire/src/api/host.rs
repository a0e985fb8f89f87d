//! What the control plane gives and keeps for those who use an environment's host.

use serde::{Deserialize, Serialize};

use crate::{
    Phase, Problem, Timestamp,
    host::Scopes,
    rpc::{ClientId, Seq, ThreadId},
};

/// `POST /api/environments/{id}/grant`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(default, deny_unknown_fields)]
pub struct GrantRequest {
    /// What is wanted; absent: everything that the owner may do.
    #[cfg_attr(feature = "openapi", schema(value_type = Option<String>))]
    pub scopes: Option<Scopes>,
    /// Whether a sleeping environment is woken. Who does not say so gets 503 with the phase.
    pub wake: bool,
}

/// The answer: a grant to be exchanged at the host's token endpoint, once.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct GrantAnswer {
    /// The grant. A secret.
    pub grant: String,
    /// Its life in seconds.
    pub expires_in: u64,
    /// The public address of the host, without a slash at its end. Proofs are made for addresses
    /// below it.
    pub address: String,
}

impl std::fmt::Debug for GrantAnswer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("GrantAnswer").field("address", &self.address).finish_non_exhaustive()
    }
}

/// `POST /api/environments/{id}/prompts`: a prompt that is delivered once, as soon as the
/// environment is awake. Sent again with the same `client`, it is the same prompt.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct KeepPrompt {
    /// Drawn by the sender.
    pub client: ClientId,
    /// The text.
    pub text: String,
    /// The thread; absent: a new one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub thread: Option<ThreadId>,
    /// For a new thread, the agent; absent: the template's default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    /// For a new thread, the directory of the workspace that it works in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub project: Option<String>,
    /// For a new thread, its title.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
}

/// A prompt that the control plane keeps, or kept.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct KeptPrompt {
    /// The prompt.
    pub client: ClientId,
    /// Its thread, drawn here for a new one.
    pub thread: ThreadId,
    /// What became of it.
    pub state: PromptState,
    /// When it was taken.
    pub created_at: Timestamp,
    /// The event that took it, once it is delivered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<u64>))]
    pub seq: Option<Seq>,
    /// Why the host refused it, or why it waits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub problem: Option<Problem>,
    /// The environment's phase at the time of the answer.
    pub phase: Phase,
}

/// What became of a kept prompt.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(
    feature = "schema",
    derive(schemars::JsonSchema),
    schemars(transform = crate::schema::open)
)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum PromptState {
    /// It waits for its environment.
    Waiting,
    /// The host has taken it.
    Delivered,
    /// The host does not take it, and never will.
    Refused,
    /// Something that a newer server knows.
    #[serde(other)]
    Other,
}

/// The kept prompts of an environment, oldest first.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct KeptPrompts {
    /// The prompts.
    pub prompts: Vec<KeptPrompt>,
}
