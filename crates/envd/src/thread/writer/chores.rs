//! What the writer does when nobody waits, and after a write that failed.

use wakeful_wire::rpc::{Event, EventBody, ThreadId};

use super::{BATCH_BYTES_MAX, BATCH_MAX, SEAL_EVERY, UNSEALED_MAX, Writer};
use crate::thread::{
    log::{LogError, saved},
    state::State,
    view::Recorded,
};

impl Writer {
    /// Notes the chores that an event brings.
    pub(super) fn note(&mut self, event: &Event) {
        let Some(id) = event.thread else { return };
        let segment = |state: &Option<State>| {
            state.as_ref().and_then(|state| state.thread(id)).map_or(0, |held| held.segment)
        };
        if let EventBody::TurnStarted { segment, .. } = &event.body {
            self.since_seal.remove(&id);
            self.seal_later(id, segment.saturating_sub(1));
        } else if matches!(event.body, EventBody::TurnEnded { .. }) {
            let segment = segment(&self.state);
            self.since_seal.remove(&id);
            self.seal_later(id, segment);
        } else if matches!(event.body, EventBody::Deleted {}) {
            self.since_seal.remove(&id);
            self.may_purge = true;
        } else {
            let since = self.since_seal.entry(id).or_default();
            *since += 1;
            if *since >= SEAL_EVERY {
                self.since_seal.remove(&id);
                let segment = segment(&self.state);
                self.seal_later(id, segment);
            }
        }
    }

    fn seal_later(&mut self, id: ThreadId, segment: u32) {
        if self.unsealed.len() < UNSEALED_MAX && !self.unsealed.contains(&(id, segment)) {
            self.unsealed.push_back((id, segment));
        }
    }

    pub(super) fn has_chores(&self) -> bool {
        self.state.is_some()
            && (self.since_checkpoint >= self.settings.checkpoint_every
                || !self.unsealed.is_empty()
                || self.may_purge)
    }

    /// Does one chore. A failed one is left out: everything that chores make can be made later.
    pub(super) async fn chore(&mut self) {
        let done = if self.since_checkpoint >= self.settings.checkpoint_every {
            self.checkpoint().await
        } else if let Some((id, segment)) = self.unsealed.pop_front() {
            self.shared.log.seal(id, segment).await
        } else {
            let more = self.shared.log.purge().await;
            self.may_purge = *more.as_ref().unwrap_or(&false);
            more.map(drop)
        };
        if let Err(error) = done {
            tracing::warn!(%error, "tidying the thread log failed");
            self.since_checkpoint = 0;
            self.may_purge = false;
        }
    }

    /// Saves what changed since the last checkpoint. Nothing is being written, so state and view
    /// are at the same head.
    pub(super) async fn checkpoint(&mut self) -> Result<(), LogError> {
        let Some(state) = &self.state else { return Ok(()) };
        let rows = saved(state, &self.shared.view.read(), self.checkpointed)?;
        self.shared.log.checkpoint(state, rows).await?;
        self.checkpointed = state.head();
        self.since_checkpoint = 0;
        Ok(())
    }

    /// After a failed write: reads the log again, which tells whether the write took place, and
    /// publishes what it holds beyond what is published.
    pub(super) async fn revive(&mut self) {
        if self.state.is_some() {
            return;
        }
        let loaded = match self.shared.log.load().await {
            Ok(loaded) => loaded,
            Err(error) => {
                tracing::error!(%error, "the thread log cannot be read");
                return;
            }
        };
        self.state = Some(loaded.state);
        let mut at = self.shared.view.read().head();
        loop {
            match self.shared.log.since(at, BATCH_MAX, BATCH_BYTES_MAX).await {
                Ok(events) if events.is_empty() => return,
                Ok(events) => {
                    at = events.last().map_or(at, |last| last.event.seq);
                    self.publish(events.into_iter().map(Recorded::into_shared));
                }
                Err(error) => {
                    tracing::error!(%error, "the thread log cannot be read");
                    self.state = None;
                    return;
                }
            }
        }
    }
}
