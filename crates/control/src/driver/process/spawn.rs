//! Starting an `envd`.

use std::{
    ffi::OsString,
    fs::OpenOptions,
    io::{self, Read, Seek, SeekFrom},
    os::unix::fs::OpenOptionsExt,
    path::{Path, PathBuf},
    process::{ExitStatus, Stdio},
};

use tokio::{
    io::AsyncWriteExt,
    process::{Child, Command},
};
use wakeful_wire::sandbox::{MARKER, RUN_MARKER, SandboxSpec};

use super::{cgroup::Cgroup, run_dir::RunDir};

/// The file for what an `envd` says before its own log is open, or while it dies.
const STDERR: &str = "envd.err";
/// How much of it a reason holds, in bytes.
const REASON_MAX: u64 = 600;

/// How a program is started as `envd`.
#[derive(Debug, Clone)]
pub(super) struct Starter {
    pub(super) program: PathBuf,
    pub(super) subcommand: OsString,
    pub(super) environment: Vec<(OsString, OsString)>,
}

impl Starter {
    /// A command of the program in an environment of its own, without standard streams.
    pub(super) fn command(&self, subcommand: &OsString) -> Command {
        let mut command = Command::new(&self.program);
        command
            .arg(subcommand)
            .env_clear()
            .envs(self.environment.iter().map(|(name, value)| (name, value)))
            .current_dir("/")
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        command
    }

    /// Starts an `envd` and gives it its spec. The handle may be dropped: nothing of ours is tied to
    /// it, and it outlives us.
    ///
    /// # Errors
    /// When it cannot be started, or ends before it has read its spec.
    pub(super) async fn start(&self, spec: &SandboxSpec, dir: &RunDir) -> io::Result<Child> {
        let errors = OpenOptions::new()
            .append(true)
            .create(true)
            .mode(0o600)
            .open(dir.path().join(STDERR))?;
        let mut child = self
            .command(&self.subcommand)
            .env(MARKER, spec.sandbox.to_string())
            .env(RUN_MARKER, dir.path())
            .stderr(errors)
            .spawn()?;
        // Before the spec is complete it starts nothing, so nothing of it escapes the group.
        if let (Some(group), Some(pid)) = (Cgroup::make(dir.path()), child.id())
            && let Err(error) = group.add(pid)
        {
            tracing::debug!(%error, sandbox = %spec.sandbox, "no control group for this sandbox");
        }
        let text = serde_json::to_vec(spec)?;
        let mut stdin = child.stdin.take().ok_or(io::ErrorKind::BrokenPipe)?;
        let sent = async {
            stdin.write_all(&text).await?;
            stdin.shutdown().await
        };
        match sent.await {
            Ok(()) => Ok(child),
            // It has ended already; its own words say more than a broken pipe.
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(child),
            Err(error) => Err(error),
        }
    }
}

/// Why an `envd` ended before its hello, for people.
pub(super) fn why_ended(dir: &Path, status: Option<ExitStatus>) -> String {
    let said = last_words(&dir.join(STDERR)).unwrap_or_default();
    let how = status.map_or_else(|| "it ended".to_owned(), |status| status.to_string());
    if said.is_empty() {
        format!("envd did not come up ({how})")
    } else {
        format!("envd did not come up ({how}): {said}")
    }
}

fn last_words(path: &Path) -> io::Result<String> {
    let mut file = std::fs::File::open(path)?;
    let len = file.metadata()?.len();
    file.seek(SeekFrom::Start(len.saturating_sub(REASON_MAX)))?;
    let mut bytes = Vec::new();
    file.take(REASON_MAX).read_to_end(&mut bytes)?;
    Ok(String::from_utf8_lossy(&bytes).split_whitespace().collect::<Vec<_>>().join(" "))
}
