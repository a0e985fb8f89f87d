//! The sweep: finds what is due, whatever hint was lost. Its cost grows with what is due, not with
//! how many environments exist.

use std::time::Duration;

use super::Engine;

/// At the latest, the sweep looks into the due index this often.
const SWEEP_MAX: Duration = Duration::from_secs(15);

/// At the earliest, it looks again after this: what is due stays so until its task has planned.
const SWEEP_MIN: Duration = Duration::from_millis(50);

/// How many due environments one look takes.
const BATCH: usize = 512;

impl Engine {
    pub(super) async fn sweep(&self) {
        loop {
            let pause = match self.sweep_once().await {
                Ok(pause) => pause,
                Err(error) => {
                    tracing::warn!(error = &error as &dyn std::error::Error, "the sweep failed");
                    Duration::from_secs(1)
                }
            };
            tokio::time::sleep(SWEEP_MIN).await;
            tokio::select! {
                () = tokio::time::sleep(pause) => {}
                () = self.inner.sweep.notified() => {}
            }
        }
    }

    /// Nudges what is due and returns how long until the next is.
    async fn sweep_once(&self) -> Result<Duration, super::EngineError> {
        let store = &self.inner.parts.store;
        let due = store.due(self.now(), BATCH).await?;
        self.inner.metrics.sweep_looks.inc_by(due.len() as u64);
        for env in &due {
            self.nudge(*env);
        }
        if due.len() == BATCH {
            return Ok(Duration::ZERO);
        }
        if !due.is_empty() {
            // Their tasks are on it; each sets its next due time, which wakes the sweep.
            return Ok(Duration::from_secs(1));
        }
        let next = store.next_due().await?;
        Ok(next.map_or(SWEEP_MAX, |at| self.now().until(at).min(SWEEP_MAX)))
    }
}
