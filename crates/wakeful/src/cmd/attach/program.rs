//! What a program is told of a thread: one JSON value a line.

use serde_json::json;
use wakeful_link::threads::{Held, ThreadState};
use wakeful_wire::rpc::{Seq, ThreadItem};

/// Passes on what a stream takes in, beginning with a snapshot that the host vouches for, and then
/// each event once, in order.
#[derive(Debug, Default)]
pub(super) struct Program {
    began: bool,
    /// Up to where events were passed on, or are in the snapshot that was.
    at: Seq,
}

impl Program {
    /// The lines of some items, each with its line end. `state` is what the thread is at after them.
    ///
    /// # Errors
    /// None is to be expected: what came as JSON becomes JSON.
    pub(super) fn lines(
        &mut self,
        items: Vec<ThreadItem>,
        state: Option<&ThreadState>,
    ) -> serde_json::Result<Vec<String>> {
        let mut lines = Vec::new();
        for item in items {
            match &item {
                ThreadItem::Snapshot { detail, .. } => {
                    self.began = true;
                    self.at = detail.thread.seq;
                    lines.push(serde_json::to_string(&item)? + "\n");
                }
                ThreadItem::Synchronized { .. } => {
                    // A kept copy was resumed. It is passed on once the host has confirmed it.
                    if let Some(held) = state.and_then(|state| state.held.as_ref())
                        && !self.began
                    {
                        lines.push(self.begin(held)?);
                    }
                    lines.push(serde_json::to_string(&item)? + "\n");
                }
                ThreadItem::Deleted { .. } if self.began => {
                    lines.push(serde_json::to_string(&item)? + "\n");
                }
                ThreadItem::Events { events } if self.began => {
                    for event in events.iter().filter(|event| event.seq > self.at) {
                        lines.push(format!("{}\n", json!({ "type": "event", "event": event })));
                    }
                    let newest = events.iter().map(|event| event.seq).max();
                    self.at = self.at.max(newest.unwrap_or(Seq::ZERO));
                }
                ThreadItem::Events { .. }
                | ThreadItem::Deleted { .. }
                | ThreadItem::Resumed { .. }
                | ThreadItem::Unknown => {}
            }
        }
        Ok(lines)
    }

    fn begin(&mut self, held: &Held) -> serde_json::Result<String> {
        self.began = true;
        self.at = held.detail.thread.seq;
        let detail = Box::new((*held.detail).clone());
        let snapshot = ThreadItem::Snapshot { cursor: held.cursor, detail };
        Ok(serde_json::to_string(&snapshot)? + "\n")
    }
}
