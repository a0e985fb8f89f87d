//! The compute port.

use std::{collections::BTreeMap, path::PathBuf, time::Duration};

use async_trait::async_trait;
use wakeful_wire::{
    EnvId, Problem, SurfaceName,
    gate::Upstream,
    rpc::{Call, Taken},
    sandbox::HostSpec,
    template::Template,
};

use crate::{SandboxRef, Seen, StartFault};

/// Everything that a sandbox is launched with.
#[derive(Clone)]
pub struct Launch {
    /// The sandbox.
    pub sandbox: SandboxRef,
    /// Its workspace, which exists.
    pub workspace: PathBuf,
    /// What it runs.
    pub template: Template,
    /// Variables of every process: the template's, overridden by the environment's own.
    pub variables: BTreeMap<String, String>,
    /// The password for surfaces with `auth = "basic"`.
    pub basic_password: String,
    /// What its environment server is set up with.
    pub host: HostSpec,
}

impl std::fmt::Debug for Launch {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Launch").field("sandbox", &self.sandbox).finish_non_exhaustive()
    }
}

/// A step could not be done.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}", fault.reason)]
pub struct DriverError {
    /// Why, and whether trying again makes sense.
    pub fault: StartFault,
}

impl DriverError {
    /// A reason that may pass by itself.
    #[must_use]
    pub fn passing(reason: impl Into<String>) -> Self {
        Self { fault: StartFault { reason: reason.into(), permanent: false } }
    }

    /// A reason that stays until somebody changes something.
    #[must_use]
    pub fn permanent(reason: impl Into<String>) -> Self {
        Self { fault: StartFault { reason: reason.into(), permanent: true } }
    }
}

/// A call was not delivered to a sandbox's environment server.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DeliverError {
    /// The host will never take it as it is: sending it again is refused again.
    #[error("the host refuses it: {}", .0.detail.as_deref().unwrap_or(&.0.title))]
    Refused(Problem),
    /// Not now, for this reason. Whether it was taken may be unknown: it is sent again, also to
    /// another incarnation, and a call that was taken before is answered so.
    #[error("{0}")]
    Later(String),
}

/// The end of a log.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LogTail {
    /// The last bytes, starting at a line.
    pub bytes: Vec<u8>,
    /// A position to go on from, for following: opaque but increasing.
    pub end: u64,
}

/// Creates, observes and takes down sandboxes. Knows nothing of clocks, intents or users.
///
/// Every operation is idempotent on the sandbox's uid. A sandbox is known by its uid *and* its
/// secret: one that answers with another secret is not ours and is never adopted or stopped.
#[async_trait]
pub trait Driver: Send + Sync + 'static {
    /// Creates the sandbox, or adopts it if it is there, and returns when its `envd` has said
    /// hello (its surfaces need not answer yet).
    ///
    /// # Errors
    /// Nothing of it is left when it fails.
    async fn create(&self, launch: &Launch) -> Result<(), DriverError>;

    /// Looks. [`Seen::Absent`] is a promise: there is none of this uid and none can come up late.
    /// Whatever is in doubt is [`Seen::Unknown`].
    async fn observe(&self, sandbox: &SandboxRef) -> Seen;

    /// What was last seen, without looking: for the gate's answer. [`Seen::Unknown`] when this
    /// process has not looked yet.
    fn glance(&self, sandbox: &SandboxRef) -> Seen;

    /// Takes it down with everything in it: SIGTERM, `grace`, SIGKILL. Returns when nothing is
    /// left, also when there was nothing.
    ///
    /// # Errors
    /// When something is left; it is called again.
    async fn stop(&self, sandbox: &SandboxRef, grace: Duration) -> Result<(), DriverError>;

    /// How a gateway reaches a surface that is ready. `None` when that is not known (any more).
    fn upstream(&self, sandbox: &SandboxRef, surface: &SurfaceName) -> Option<Upstream>;

    /// Starts a lazy surface, or one that was given up. Does not wait for it.
    ///
    /// # Errors
    /// When the sandbox cannot be asked or has no such surface.
    async fn start_surface(
        &self,
        sandbox: &SandboxRef,
        surface: &SurfaceName,
    ) -> Result<(), DriverError>;

    /// Asks the sandbox whether anything runs in its threads, and has it begin nothing for `hold`
    /// from when it hears of it: what is asked of its host meanwhile waits, and is refused as not
    /// taken should the stop come. Returns the turns that run within their limit, counting
    /// what is just being begun. 0 is a promise for as long as the hold lasts. A further ask
    /// replaces the hold of the one before; [`Duration::ZERO`] ends it. At most a minute counts.
    ///
    /// Two asks for one sandbox that are under way at once may arrive in either order.
    ///
    /// A sandbox of an older release, whose `envd` has no host, runs no turns.
    ///
    /// # Errors
    /// When there is no such sandbox, or it gave no answer; the hold may have begun all the same.
    async fn drain(&self, sandbox: &SandboxRef, hold: Duration) -> Result<u32, DriverError>;

    /// Has the sandbox's host carry out a call that was kept for it (`thread.create` or
    /// `thread.prompt`), and returns when what it caused is durable. Idempotent by the ids in the
    /// call, across incarnations too. May take half a minute: it waits for the host to open and
    /// for the end of a hold.
    ///
    /// # Errors
    /// [`DeliverError`] says whether it makes sense to send it again.
    async fn deliver(&self, sandbox: &SandboxRef, call: &Call) -> Result<Taken, DeliverError>;

    /// The end of a surface's log of an environment, also after its sandbox has ended: at most
    /// `max` bytes, or those after position `from`.
    ///
    /// # Errors
    /// When it cannot be read. A log that does not exist yet is empty.
    async fn logs(
        &self,
        env: EnvId,
        surface: &SurfaceName,
        max: usize,
        from: Option<u64>,
    ) -> Result<LogTail, DriverError>;

    /// Removes what is left of an environment for good: logs and the like. The workspace is not
    /// the driver's.
    ///
    /// # Errors
    /// When something is left.
    async fn forget(&self, env: EnvId) -> Result<(), DriverError>;

    /// Waits for the next hint: this environment's sandbox changed. One caller at a time. A hint may
    /// be lost; it only makes somebody look sooner. Dropping the future loses none.
    async fn next_hint(&self) -> EnvId;
}
