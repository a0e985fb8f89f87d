//! What isolation this machine gives.

use std::{ffi::OsString, fs, io, time::Duration};

use tokio::io::AsyncWriteExt;
use wakeful_wire::sandbox::{Isolation, IsolationInForce, subcommand};

use super::{cgroup, spawn::Starter};

/// How long finding out may take.
const PROBE_TIME: Duration = Duration::from_secs(10);

/// What isolation this machine gives to a sandbox.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IsolationReport {
    /// What was in force in a process to which it was applied, as in every sandbox.
    pub in_force: IsolationInForce,
    /// What stands beside it or would stand above it, and its state, for people.
    pub beside: Vec<(String, String)>,
}

/// Applies the isolation to a process of this program that does nothing else, and asks it.
pub(super) async fn find_out(starter: &Starter, isolation: &Isolation) -> IsolationReport {
    let in_force = match tokio::time::timeout(PROBE_TIME, probe(starter, isolation)).await {
        Ok(Ok(in_force)) => in_force,
        Ok(Err(error)) => unknown(&error.to_string()),
        Err(_) => unknown("it took too long to find out"),
    };
    let groups = cgroup::parent().map_or_else(
        || "none: this user cannot make any".to_owned(),
        |parent| format!("below {}, to find and end processes", parent.display()),
    );
    let namespaces = match fs::read_to_string("/proc/sys/user/max_user_namespaces") {
        Ok(max) if max.trim() != "0" => "allowed by the kernel; not used on this rung",
        Ok(_) => "switched off",
        Err(_) => "unknown",
    };
    IsolationReport {
        in_force,
        beside: vec![
            ("control groups".to_owned(), groups),
            ("user namespaces".to_owned(), namespaces.to_owned()),
        ],
    }
}

fn unknown(why: &str) -> IsolationInForce {
    IsolationInForce {
        rung: "unknown".to_owned(),
        parts: vec![("probe".to_owned(), format!("failed: {why}"))],
    }
}

async fn probe(starter: &Starter, isolation: &Isolation) -> io::Result<IsolationInForce> {
    let mut child = starter
        .command(&OsString::from(subcommand::PROBE))
        .stdout(std::process::Stdio::piped())
        .kill_on_drop(true)
        .spawn()?;
    let text = serde_json::to_vec(isolation)?;
    let mut stdin = child.stdin.take().ok_or(io::ErrorKind::BrokenPipe)?;
    stdin.write_all(&text).await?;
    drop(stdin);
    let output = child.wait_with_output().await?;
    if !output.status.success() {
        return Err(io::Error::other(format!("the probe ended with {}", output.status)));
    }
    Ok(serde_json::from_slice(&output.stdout)?)
}
