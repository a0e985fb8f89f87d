//! Where everything that `attach` says goes: text for people, or one JSON value a line.

use std::collections::BTreeMap;

use serde_json::json;
use wakeful_wire::rpc::ThreadItem;

use super::{change::Change, render::Render, state::Following};
use crate::output::Output;

/// Takes what is printed.
pub(super) trait Sink {
    /// Standard output, as it is.
    fn out(&mut self, text: &str) -> anyhow::Result<()>;
    /// A line on the side, for people.
    fn note(&mut self, text: &str);
}

impl Sink for Output {
    fn out(&mut self, text: &str) -> anyhow::Result<()> {
        self.raw(text.as_bytes())
    }

    fn note(&mut self, text: &str) {
        Self::note(*self, text);
    }
}

/// Whether the host is there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Connection {
    /// A socket is open.
    Connected,
    /// It broke off, and is tried again.
    Lost,
    /// The environment sleeps.
    Asleep,
}

impl Connection {
    const fn as_str(self) -> &'static str {
        match self {
            Self::Connected => "connected",
            Self::Lost => "lost",
            Self::Asleep => "asleep",
        }
    }
}

/// Prints for people or for programs.
#[derive(Debug)]
pub(super) struct Screen<S> {
    sink: S,
    /// Nothing: for programs.
    render: Option<Render>,
}

impl<S: Sink> Screen<S> {
    /// Prints text by `render`, or JSON without it.
    pub(super) const fn new(sink: S, render: Option<Render>) -> Self {
        Self { sink, render }
    }

    /// An item that is about to be taken in, for programs: each event once, in order.
    pub(super) fn item(&mut self, following: &Following, item: &ThreadItem) -> anyhow::Result<()> {
        if self.render.is_some() {
            return Ok(());
        }
        for line in lines(following, item)? {
            self.sink.out(&line)?;
        }
        Ok(())
    }

    /// What is new, for people.
    pub(super) fn changes(&mut self, changes: &[Change]) -> anyhow::Result<()> {
        let Some(render) = &mut self.render else { return Ok(()) };
        let text = render.render(changes);
        if text.is_empty() { Ok(()) } else { self.sink.out(&text) }
    }

    /// How it stands with the host, for programs.
    pub(super) fn connection(&mut self, connection: Connection) -> anyhow::Result<()> {
        if self.render.is_some() {
            return Ok(());
        }
        let line = json!({ "type": "connection", "state": connection.as_str() });
        self.sink.out(&format!("{line}\n"))
    }

    /// A line on the side, for people.
    pub(super) fn note(&mut self, text: &str) -> anyhow::Result<()> {
        self.close()?;
        if self.render.is_some() {
            self.sink.note(text);
        }
        Ok(())
    }

    /// Ends a line that is open.
    pub(super) fn close(&mut self) -> anyhow::Result<()> {
        let rest = self.render.as_mut().map(Render::close).unwrap_or_default();
        if rest.is_empty() { Ok(()) } else { self.sink.out(&rest) }
    }
}

/// An item in lines of JSON: snapshots, synchronized and deleted as they came, each new event in a
/// line of its own.
fn lines(following: &Following, item: &ThreadItem) -> anyhow::Result<Vec<String>> {
    let mut lines = Vec::new();
    match item {
        ThreadItem::Snapshot { .. }
        | ThreadItem::Synchronized { .. }
        | ThreadItem::Deleted { .. } => lines.push(serde_json::to_string(item)? + "\n"),
        ThreadItem::Events { events } => {
            let mut newest = None;
            for event in events {
                if following.is_new(event) && newest < Some(event.seq) {
                    newest = Some(event.seq);
                    lines.push(format!("{}\n", json!({ "type": "event", "event": event })));
                }
            }
        }
        ThreadItem::Resumed { .. } | ThreadItem::Unknown => {}
    }
    Ok(lines)
}

/// Whether text has colours: on a terminal, unless `NO_COLOR` is set to something.
pub(super) fn has_colours(terminal: bool, variables: &BTreeMap<String, String>) -> bool {
    terminal && variables.get("NO_COLOR").is_none_or(String::is_empty)
}
