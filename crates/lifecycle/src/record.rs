//! The record of an environment: what is wanted of it, and how far that has come.

use std::fmt;

use serde::{Deserialize, Serialize};
use wakeful_wire::{
    EnvId, Generation, Phase, ProjectId, SandboxUid, Slug, TemplateName, Timestamp, UserName,
};

/// What the record wants.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Intent {
    /// A sandbox.
    Running,
    /// No sandbox; the workspace is kept.
    Suspended,
    /// To be removed, with a tombstone.
    Deleted,
}

/// The record of an environment. Changed only by committing a [`Plan`](crate::Plan) or an applied
/// [`Command`](crate::Command) at the generation that it was computed from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Record {
    /// Its id.
    pub id: EnvId,
    /// The project that it belongs to.
    pub project: ProjectId,
    /// The project's owner.
    pub owner: UserName,
    /// Its slug, unique in the project, never changed.
    pub slug: Slug,
    /// What it runs.
    pub template: TemplateName,
    /// The record's version.
    pub generation: Generation,
    /// What is wanted.
    pub intent: Intent,
    /// Switched off: an overlay over everything else but deletion.
    pub disabled: bool,
    /// A publish prepares its files; nothing may run.
    pub publishing: bool,
    /// The incarnation that exists, or may exist.
    pub sandbox: Option<Sandbox>,
    /// How the starts of late have gone.
    pub starts: Starts,
    /// Why it is failed, if it is.
    pub failure: Option<Failure>,
    /// An idle suspend was given up because something was open: not decided again before this.
    pub idle_not_before: Option<Timestamp>,
    /// What woke it last.
    pub woken: Option<Woken>,
    /// Since when the phase is what it is.
    pub since: Timestamp,
    /// When it was created.
    pub created_at: Timestamp,
}

impl Record {
    /// A new environment, suspended, with an empty workspace.
    #[must_use]
    pub const fn new(
        id: EnvId,
        project: ProjectId,
        owner: UserName,
        slug: Slug,
        template: TemplateName,
        now: Timestamp,
    ) -> Self {
        Self {
            id,
            project,
            owner,
            slug,
            template,
            generation: Generation(1),
            intent: Intent::Suspended,
            disabled: false,
            publishing: false,
            sandbox: None,
            starts: Starts { failed: 0, retry_at: None, reason: None, recovery: false },
            failure: None,
            idle_not_before: None,
            woken: None,
            since: now,
            created_at: now,
        }
    }

    /// What people see, derived from both halves of the record.
    #[must_use]
    pub fn phase(&self) -> Phase {
        if self.intent == Intent::Deleted {
            return Phase::Deleted;
        }
        if self.disabled {
            return Phase::Disabled;
        }
        if self.publishing {
            return Phase::Publishing;
        }
        match (&self.sandbox, self.intent) {
            // A failure is shown while its sandbox is still being taken away, too.
            (_, Intent::Running) if self.failure.is_some() => Phase::Failed,
            (None, Intent::Running) => Phase::Starting,
            (None, _) => Phase::Suspended,
            (Some(sandbox), intent) => match (&sandbox.stop, intent) {
                // A drain can still be aborted, but admits nothing: it is not ready any more.
                (Some(stop), Intent::Running) if stop.reason == StopReason::Idle => {
                    Phase::Suspending
                }
                // A wake that is queued behind a stop.
                (Some(_), Intent::Running) => Phase::Starting,
                (Some(_), _) => Phase::Suspending,
                (None, _) if sandbox.ready_since.is_some() => Phase::Ready,
                (None, _) => Phase::Starting,
            },
        }
    }

    /// Makes a buried record live again: asleep, at a generation that nobody has seen.
    pub fn revive(&mut self, now: Timestamp) {
        self.generation = self.generation.next();
        self.intent = Intent::Suspended;
        self.sandbox = None;
        self.starts = Starts::default();
        self.failure = None;
        self.idle_not_before = None;
        self.since = now;
    }

    /// Whether a touch may count: there is something to keep awake, or on its way.
    #[must_use]
    pub fn takes_touches(&self) -> bool {
        match self.phase() {
            Phase::Starting | Phase::Ready | Phase::Frozen | Phase::Suspending => true,
            Phase::Suspended
            | Phase::Failed
            | Phase::Disabled
            | Phase::Publishing
            | Phase::Deleted => false,
        }
    }
}

/// What woke an environment. Every wakeup is named.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Woken {
    /// When.
    pub at: Timestamp,
    /// By what, for people.
    pub by: String,
}

/// One incarnation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sandbox {
    /// Its uid.
    pub uid: SandboxUid,
    /// What its `envd` expects to hear from us.
    pub secret: Secret,
    /// When it was decided.
    pub created_at: Timestamp,
    /// Whether it was seen alive. Before that, its absence means "not yet", afterwards "died".
    pub launched: bool,
    /// Since when it is ready.
    pub ready_since: Option<Timestamp>,
    /// Since when it is not ready although it was.
    pub unready_since: Option<Timestamp>,
    /// Started because its predecessor died, not because somebody came: its start touches no clock.
    pub recovery: bool,
    /// Its end, once decided.
    pub stop: Option<Stop>,
}

impl Sandbox {
    /// A name for it that a driver understands.
    #[must_use]
    pub fn reference(&self, env: EnvId) -> SandboxRef {
        SandboxRef { env, uid: self.uid, secret: self.secret.clone() }
    }
}

/// What a driver is told of a sandbox.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SandboxRef {
    /// The environment.
    pub env: EnvId,
    /// The incarnation.
    pub uid: SandboxUid,
    /// What its `envd` expects to hear from us.
    pub secret: Secret,
}

/// A uid and a secret for a sandbox that a plan may create, drawn by the caller.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FreshSandbox {
    /// The uid.
    pub uid: SandboxUid,
    /// The secret, at least 128 bits.
    pub secret: Secret,
}

/// A text that is never printed.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Secret(pub String);

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(…)")
    }
}

/// The end of a sandbox, once decided.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stop {
    /// Why.
    pub reason: StopReason,
    /// How far.
    pub stage: StopStage,
    /// The generation of the record in which it was decided; drain answers name it.
    pub decided: Generation,
    /// When it was decided.
    pub since: Timestamp,
}

impl Stop {
    /// Whether nothing that is open can avert it.
    #[must_use]
    pub fn forced(&self) -> bool {
        self.reason != StopReason::Idle
    }
}

/// Why a sandbox ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StopReason {
    /// Both clocks ran out and nothing is held.
    Idle,
    /// A person, or a clean end of the platform.
    Asked,
    /// To be replaced because somebody asked for that.
    Restart,
    /// The environment is being deleted.
    Deleted,
    /// The environment was switched off.
    Disabled,
    /// The start failed or took too long.
    StartFailed,
    /// It was ready, and then was not for longer than the grace.
    Unready,
}

impl StopReason {
    /// Every reason.
    pub const ALL: [Self; 7] = [
        Self::Idle,
        Self::Asked,
        Self::Restart,
        Self::Deleted,
        Self::Disabled,
        Self::StartFailed,
        Self::Unready,
    ];

    /// The stable text, as in `wakeful_suspends_total{reason}`.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Idle => "idle",
            Self::Asked => "asked",
            Self::Restart => "restart",
            Self::Deleted => "deleted",
            Self::Disabled => "disabled",
            Self::StartFailed => "start_failed",
            Self::Unready => "unready",
        }
    }
}

/// How far the end of a sandbox has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StopStage {
    /// Gateways are asked whether anything is still in flight. Can be aborted.
    Draining {
        /// When waiting for the answers ends.
        deadline: Timestamp,
    },
    /// The driver takes it down. Cannot be aborted; a wake is queued behind it.
    Stopping,
}

/// How the starts of late have gone.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Starts {
    /// How many failed in a row.
    pub failed: u32,
    /// When the next is due.
    pub retry_at: Option<Timestamp>,
    /// Why the last failed, for people.
    pub reason: Option<String>,
    /// The next start replaces a sandbox that died, and nobody has come since.
    pub recovery: bool,
}

/// Why an environment is failed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Failure {
    /// What happened, for people.
    pub reason: String,
    /// Whether trying again makes no sense until somebody changes something.
    pub permanent: bool,
    /// How many starts failed.
    pub attempts: u32,
    /// Since when.
    pub since: Timestamp,
    /// When it becomes `suspended` by itself.
    pub heal_at: Option<Timestamp>,
}
