//! Opening: saved threads, and what came after them.

use std::{collections::HashMap, sync::Arc};

use futures::TryStreamExt as _;
use sqlx::Row as _;
use wakeful_wire::rpc::{ClientId, Seq};

use super::{Log, LogError, REDUCER, seq, thread, tidy::HostBody};
use crate::thread::{
    state::{Entry, State},
    view::{Recorded, View},
};

/// How many events are read at once.
const STEP: usize = 2_000;
/// How many bytes of them.
const STEP_BYTES: usize = 8 * 1024 * 1024;

/// A log's state as it was opened.
#[derive(Debug)]
pub struct Loaded {
    /// What decisions are made from.
    pub state: State,
    /// What is published, at the same head.
    pub view: View,
    /// The checkpoint whose saved threads were used; 0 if none was.
    pub checkpoint: Seq,
    /// How many events came after it.
    pub tail: usize,
}

impl Log {
    /// The state of the whole log: from the last checkpoint and what came after it, or, where the
    /// rules have changed since, from the beginning.
    ///
    /// # Errors
    /// If the database fails.
    pub async fn load(&self) -> Result<Loaded, LogError> {
        let host = sqlx::query("SELECT checkpoint, reducer, body FROM host")
            .fetch_optional(&self.reader)
            .await?;
        let mut state = State::default();
        let mut changed = HashMap::new();
        if let Some(row) = host
            && row.try_get::<i64, _>("reducer")? == REDUCER
            && let Ok(host) = serde_json::from_str::<HostBody>(row.try_get("body")?)
            && let Some(saved) = self.saved_threads(&mut changed).await?
        {
            state = saved;
            state.head = seq(row.try_get("checkpoint")?);
            state.epochs = host.epochs;
            state.remembered = host.remembered;
        }
        self.prompts(&mut state).await?;
        let mut view = View::load(&state, &changed);
        let checkpoint = state.head;
        let mut tail = 0;
        loop {
            let events = self.since(state.head, STEP, STEP_BYTES).await?;
            if events.is_empty() {
                view.share(&state, state.threads.keys().copied());
                return Ok(Loaded { state, view, checkpoint, tail });
            }
            tail += events.len();
            for recorded in events.into_iter().map(Recorded::into_shared) {
                state.apply(&recorded.event);
                view.apply(&recorded);
            }
        }
    }

    /// The saved threads; nothing if one cannot be read, and the log has to be read instead.
    async fn saved_threads(
        &self,
        changed: &mut HashMap<wakeful_wire::rpc::ThreadId, Seq>,
    ) -> Result<Option<State>, LogError> {
        let mut state = State::default();
        let mut rows = sqlx::query("SELECT thread, changed, body FROM threads").fetch(&self.reader);
        while let Some(row) = rows.try_next().await? {
            let Ok(entry) = serde_json::from_str::<Entry>(row.try_get("body")?) else {
                changed.clear();
                return Ok(None);
            };
            changed.insert(entry.thread.id, seq(row.try_get("changed")?));
            state.put(Arc::new(entry));
        }
        Ok(Some(state))
    }

    async fn prompts(&self, state: &mut State) -> Result<(), LogError> {
        let mut rows = sqlx::query("SELECT client, thread, seq FROM prompts").fetch(&self.reader);
        while let Some(row) = rows.try_next().await? {
            let client: &[u8] = row.try_get("client")?;
            let owner: &[u8] = row.try_get("thread")?;
            if let (Ok(client), Some(owner)) = (uuid::Uuid::from_slice(client), thread(owner)) {
                let at = seq(row.try_get("seq")?);
                state.clients.insert(ClientId::from_uuid(client), (owner, at));
            }
        }
        Ok(())
    }
}
