//! What the engine counts.

use prometheus_client::{
    encoding::EncodeLabelSet,
    metrics::{counter::Counter, family::Family},
    registry::Registry,
};
use wakeful_lifecycle::StopReason;

/// Labels of `wakeful_suspends_total`.
#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
pub struct SuspendLabels {
    /// Why: `idle`, `asked`, `restart`, `deleted`, `disabled`, `start_failed`, `unready`.
    pub reason: &'static str,
}

/// What the engine counts. Clones count the same.
#[derive(Debug, Clone, Default)]
pub struct EngineMetrics {
    /// Sandboxes that a driver was asked to create.
    pub starts: Counter,
    /// Creates that failed.
    pub start_failures: Counter,
    /// Sandboxes that were taken down, by reason.
    pub suspends: Family<SuspendLabels, Counter>,
    /// Ensure calls that the control plane answered.
    pub ensures: Counter,
    /// Commits that lost a race and were planned again.
    pub lost_commits: Counter,
    /// Looks by the sweep.
    pub sweep_looks: Counter,
}

impl EngineMetrics {
    /// Registers them all.
    pub fn register(&self, registry: &mut Registry) {
        // A reason that has not occurred is a zero, not an absence.
        for reason in StopReason::ALL {
            drop(self.suspends.get_or_create(&SuspendLabels { reason: reason.as_str() }));
        }
        registry.register(
            "wakeful_sandbox_starts",
            "Sandboxes that a driver was asked to create",
            self.starts.clone(),
        );
        registry.register(
            "wakeful_sandbox_start_failures",
            "Creates that failed",
            self.start_failures.clone(),
        );
        registry.register(
            "wakeful_suspends",
            "Sandboxes that were taken down, by reason",
            self.suspends.clone(),
        );
        registry.register(
            "wakeful_control_ensures",
            "Ensure calls that the control plane answered",
            self.ensures.clone(),
        );
        registry.register(
            "wakeful_lost_commits",
            "Commits that lost a race and were planned again",
            self.lost_commits.clone(),
        );
        registry.register(
            "wakeful_sweep_looks",
            "Environments that the sweep looked at",
            self.sweep_looks.clone(),
        );
    }
}
