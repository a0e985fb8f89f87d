//! The environment servers of scripted sandboxes: what they hold back, and what they have taken.

use std::{collections::BTreeMap, time::Duration};

use tokio::time::Instant;
use wakeful_wire::{
    Code, EnvId, Problem, SandboxUid,
    rpc::{Call, Seq, Taken},
};

use crate::port::DeliverError;

/// The longest hold.
const HOLD_MAX: Duration = Duration::from_secs(60);

/// What all hosts hold back and have taken. What an environment's host has taken outlives its
/// sandboxes, as a workspace does.
#[derive(Debug, Default)]
pub(super) struct ScriptedHost {
    holds: BTreeMap<SandboxUid, Instant>,
    calls: BTreeMap<EnvId, Vec<Call>>,
    pub(super) commands: BTreeMap<EnvId, Vec<u64>>,
    pub(super) drains: Vec<(SandboxUid, Duration)>,
    pub(super) refusal: Option<DeliverError>,
    pub(super) deaf: bool,
}

impl ScriptedHost {
    /// Begins a hold, or ends it.
    pub(super) fn hold(&mut self, sandbox: SandboxUid, hold: Duration, now: Instant) {
        self.drains.push((sandbox, hold));
        if hold.is_zero() {
            self.holds.remove(&sandbox);
        } else {
            self.holds.insert(sandbox, now + hold.min(HOLD_MAX));
        }
    }

    /// Until when a sandbox begins nothing.
    pub(super) fn held_until(&self, sandbox: SandboxUid, now: Instant) -> Option<Instant> {
        self.holds.get(&sandbox).copied().filter(|until| *until > now)
    }

    /// The sandbox is gone.
    pub(super) fn forget(&mut self, sandbox: SandboxUid) {
        self.holds.remove(&sandbox);
    }

    /// Takes a delivered call, once.
    pub(super) fn take(&mut self, env: EnvId, call: &Call) -> Result<Taken, DeliverError> {
        if let Some(refusal) = &self.refusal {
            return Err(refusal.clone());
        }
        let thread = if let Call::ThreadCreate(create) = call {
            create.thread
        } else if let Call::ThreadPrompt(prompt) = call {
            prompt.thread
        } else {
            return Err(DeliverError::Refused(Problem::new(Code::Unsupported)));
        };
        let calls = self.calls.entry(env).or_default();
        let before = calls.iter().position(|taken| taken == call);
        let index = before.unwrap_or(calls.len());
        if before.is_none() {
            calls.push(call.clone());
        }
        let seq = Seq(u64::try_from(index).unwrap_or(u64::MAX).saturating_add(1));
        Ok(Taken { seq, thread: Some(thread), changed: before.is_none() })
    }

    /// What an environment's host has taken.
    pub(super) fn delivered(&self, env: EnvId) -> Vec<Call> {
        self.calls.get(&env).cloned().unwrap_or_default()
    }
}
