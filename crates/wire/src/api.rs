//! The public JSON shapes (`design.md`, "Shapes"). More fields may stand beside these.

mod host;

use serde::{Deserialize, Serialize};

pub use host::{GrantAnswer, GrantRequest, KeepPrompt, KeptPrompt, KeptPrompts, PromptState};

use crate::{
    EnvId, Generation, Phase, ProjectId, SandboxUid, Slug, SurfaceName, TemplateName, Timestamp,
    UserName, gate::LeaseKind,
};

/// A project with its environments.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Project {
    /// Its id, also its Development environment's.
    pub id: ProjectId,
    /// Its title.
    pub title: String,
    /// What its environments run.
    pub template: TemplateName,
    /// Its environments.
    pub environments: Vec<Environment>,
}

/// An environment.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Environment {
    /// Its id.
    pub id: EnvId,
    /// Its project.
    pub project: ProjectId,
    /// Its slug, `dev` for the Development environment.
    pub slug: Slug,
    /// What people see.
    pub phase: Phase,
    /// The record's version.
    pub generation: Generation,
    /// The running incarnation.
    pub sandbox: Option<SandboxUid>,
    /// Since when it has been in this phase, in milliseconds since the epoch.
    pub since: Timestamp,
    /// The ways in.
    pub surfaces: Vec<SurfaceView>,
    /// The two activity clocks.
    pub clocks: ClocksView,
    /// What holds it awake.
    pub leases: Vec<LeaseView>,
    /// The surface that its project's page and `/u/{user}/` open.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub home: Option<SurfaceName>,
    /// What woke it last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub woken: Option<WokenView>,
    /// Why it is in `failed`, or why its last start did not work.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure: Option<FailureView>,
    /// How its processes are isolated, while it runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub isolation: Option<crate::sandbox::IsolationInForce>,
}

/// A way in.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct SurfaceView {
    /// Its name.
    pub name: SurfaceName,
    /// Where a browser opens it.
    pub url: String,
    /// Where a program reaches it by path, if it has a path route.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path_url: Option<String>,
    /// Whether it answers now.
    pub ready: bool,
    /// Why not, for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// The two activity clocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ClocksView {
    /// Fed by every surface but the app.
    pub agent: ClockView,
    /// Fed by visits of the app.
    pub app: ClockView,
}

/// One clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ClockView {
    /// When it runs out, from now, in milliseconds; 0 when it has.
    pub expires_in_ms: u64,
}

/// One lease.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct LeaseView {
    /// The surface.
    #[serde(deserialize_with = "crate::name::addressed")]
    pub surface: SurfaceName,
    /// What is open.
    pub kind: LeaseKind,
    /// How many.
    pub count: u32,
    /// Since when.
    pub since: Timestamp,
    /// Who counts them.
    pub holder: String,
}

/// What woke an environment.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct WokenView {
    /// When.
    pub at: Timestamp,
    /// By what, for people: `a visit of app by ada (cookie)`.
    pub by: String,
}

/// Why an environment did not start.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct FailureView {
    /// What happened, for people.
    pub reason: String,
    /// Whether it stays so until somebody changes something.
    pub permanent: bool,
    /// How often it was tried.
    pub attempts: u32,
    /// When it is tried again, from now, in milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry_in_ms: Option<u64>,
}

/// Why an environment is awake and when it will sleep.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Explain {
    /// The phase.
    pub phase: Phase,
    /// Each thing that keeps it awake.
    pub awake_because: Vec<AwakeBecause>,
    /// When it will sleep if nothing more happens; `null` while a lease holds it, or asleep.
    pub sleeps_in_ms: Option<u64>,
    /// The same, for people.
    pub sentence: String,
}

/// One thing that keeps an environment awake.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum AwakeBecause {
    /// A clock has not run out.
    Clock {
        /// `agent` or `app`.
        surface: String,
        /// When it does, from now, in milliseconds.
        expires_in_ms: u64,
    },
    /// Something is open.
    Lease {
        /// The surface.
        #[serde(deserialize_with = "crate::name::addressed")]
        surface: SurfaceName,
        /// What is open.
        what: LeaseKind,
        /// How many.
        count: u32,
        /// Since when.
        since: Timestamp,
    },
}

/// `POST /users`.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct SignUp {
    /// The name to take.
    pub user: UserName,
    /// A password, without which only the token signs in.
    #[serde(default)]
    pub password: Option<String>,
}

/// The answer to `POST /users`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct SignedUp {
    /// The name.
    pub user: UserName,
    /// The bearer token, shown once.
    pub token: String,
    /// The default project.
    pub project: Project,
}

/// `POST /login`.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct SignIn {
    /// The name.
    pub user: UserName,
    /// A bearer token.
    #[serde(default)]
    pub token: Option<String>,
    /// The password.
    #[serde(default)]
    pub password: Option<String>,
}

/// `POST /api/projects`.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct CreateProject {
    /// A title.
    pub title: String,
    /// A template's name; the default one where absent.
    #[serde(default)]
    pub template: Option<TemplateName>,
}

/// A template that can be chosen.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct TemplateView {
    /// Its name.
    pub name: TemplateName,
    /// Its title.
    pub title: String,
    /// A sentence of what it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// Its surfaces' names.
    pub surfaces: Vec<SurfaceName>,
    /// What is missing on this machine, with the command that installs it; absent when it can run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub missing: Option<String>,
}

/// A deleted project that can still be restored.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct DeletedProject {
    /// Its id.
    pub id: ProjectId,
    /// Its title.
    pub title: String,
    /// When it was deleted.
    pub deleted_at: Timestamp,
    /// Until when it can be restored.
    pub keep_until: Timestamp,
}
