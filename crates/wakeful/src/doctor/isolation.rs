//! What isolation is in force here, asked of a process that applies it to itself.
//!
//! Landlock and seccomp cannot be taken off again, and what a machine claims to have is not always
//! what works, so the honest answer comes from a process that has tried.

use std::{
    io::Write as _,
    path::Path,
    process::{Command, Stdio},
};

use anyhow::{Context as _, bail};
use wakeful_wire::sandbox::{Isolation, IsolationInForce, subcommand};

use crate::config::{self, IsolationMode};

/// What a sandbox is asked for under this configuration.
#[must_use]
pub fn wanted(isolation: &config::Isolation) -> Isolation {
    let confined = isolation.mode != IsolationMode::None;
    Isolation {
        landlock: confined,
        seccomp: confined,
        readable: isolation.readable.clone(),
        limits: isolation.limits.clone(),
    }
}

/// Runs `program` (this binary) to find out.
///
/// # Errors
/// It cannot be run, or fails.
pub fn probe(program: &Path, wanted: &Isolation) -> anyhow::Result<IsolationInForce> {
    let mut child = Command::new(program)
        .arg(subcommand::PROBE)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .context("the probe cannot be started")?;
    let mut stdin = child.stdin.take().context("the probe has no standard input")?;
    // A probe that ends early says why on its standard error, which is worth more than this error.
    let sent = stdin.write_all(&serde_json::to_vec(wanted)?);
    drop(stdin);
    let output = child.wait_with_output()?;
    if !output.status.success() {
        let why = String::from_utf8_lossy(&output.stderr);
        bail!("the probe ended with {}: {}", output.status, why.trim());
    }
    sent?;
    serde_json::from_slice(&output.stdout).context("the probe's answer is garbled")
}
